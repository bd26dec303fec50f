"""Pictures of the model beside networks: that they show the numbers they are given."""

import numpy as np
import pytest

from bnlib import figures, tree_transfer_figures


@pytest.fixture
def axes():
    figure, found = figures.new_figure()
    yield found[0, 0]
    figures.close(figure)


def test_energy_ratio_ends_where_the_energies_are_equal(axes):
    tree_transfer_figures.draw_energy_ratio(axes, 8)
    larger, smaller, bound = (line.get_ydata() for line in axes.get_lines())
    assert larger[-1] == pytest.approx(smaller[-1]) == pytest.approx(0.2)
    assert (np.asarray(larger) < bound[0]).all()
    assert smaller[0] == pytest.approx(1, abs=1e-3)


def test_paths_are_medians(axes):
    values = np.array([[0.1, 0.2, 0.9], [0.3, 0.4, 0.5]])
    tree_transfer_figures.draw_paths(axes, [1, 2], {"a": values, "b": values / 2}, "title")
    assert axes.get_lines()[0].get_ydata().tolist() == [0.2, 0.4]
    assert len(axes.collections) == 1


def test_distributions_are_steps_from_zero_to_one(axes):
    tree_transfer_figures.draw_distributions(axes, {"a": np.array([3.0, 1.0]), "b": np.array([2.0])}, "title")
    line = axes.get_lines()[0]
    assert line.get_xdata().tolist() == [1, 1, 3]
    assert line.get_ydata().tolist() == [0, 0.5, 1]


def test_distance_paths_have_bands(axes):
    rows = [{"depth": d, "distance": 0.1 * d, "low": 0.0, "high": 0.5} for d in (1, 2)]
    tree_transfer_figures.draw_distance_paths(axes, {"n = 8": rows, "n = 9": rows}, 0.25)
    assert axes.get_lines()[0].get_ydata().tolist() == [0.1, 0.2]
    assert len(axes.collections) == 2


def test_escaped_bars_are_the_shares(axes):
    rows = [{"escaped": str(k), "share": s, "low": s / 2, "high": s} for k, s in enumerate((0.25, 0.75))]
    tree_transfer_figures.draw_escaped(axes, {"a": rows, "b": rows[::-1]}, "title")
    assert [patch.get_height() for patch in axes.patches] == [0.25, 0.75, 0.75, 0.25]
