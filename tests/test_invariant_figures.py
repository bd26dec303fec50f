"""Tests of bnlib.invariant_figures: every picture holds what it was given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bnlib import figures, invariant_geometry
from bnlib import invariant_figures as pictures


@pytest.fixture
def axes():
    figure, panels = figures.new_figure()
    yield panels[0, 0]
    plt.close(figure)


def names(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_geometry(axes):
    plane = invariant_geometry.invariant_representation(8)
    pictures.draw_geometry(axes, plane)
    points = {tuple(np.round(line.get_xydata()[0], 9)) for line in axes.lines}
    assert points == {(1.0, 0.0), (0.0, round(1 / 7, 9)), tuple(np.round(plane.mean(axis=0), 9))}


def test_activities(axes):
    pictures.draw_activities(axes, [("a", "o", 0, [1.0, 0.0], [0.0, 2.0]), ("b", "^", 1, [1.0], [1.0])])
    assert names(axes) == ["a", "b"]
    assert axes.lines[0].get_xydata().tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_first_moments(axes):
    pictures.draw_first_moments(axes, [2, 4], [0.3, 0.15], {2: {"mean": 0.3, "standard_error": 0.01}})
    assert len(names(axes)) == 3
    assert axes.lines[1].get_ydata().tolist() == [5 / 16, 5 / 32]


def test_contraction(axes):
    ratios = np.array([0.6, 1.0, 2.0])
    pictures.draw_contraction(axes, ratios, {"tight": np.outer(1 / ratios**2, [0.5, 0.6, 0.7])}, 0.9)
    assert names(axes) == ["tight", r"bound $\alpha$"]
    assert axes.lines[1].get_ydata()[1] == 1.0


def test_ratio_laws(axes):
    grid = np.array([0.5, 1.0, 2.0])
    pictures.draw_ratio_laws(axes, grid, {4: np.array([0.2, 0.5, 0.8])}, {4: np.linspace(0, 2, 101)})
    assert names(axes) == ["width 4"]
    np.testing.assert_allclose(axes.lines[1].get_xdata(), np.linspace(0.1, 1.9, 19))


def test_scale_walks(axes):
    pictures.draw_scale_walks(axes, {4: (-0.5, np.zeros((3, 6))), 8: (-0.1, np.zeros((3, 6)))})
    assert names(axes) == ["width 4", "width 8"]
    assert axes.lines[1].get_ydata()[-1] == -2.5


def test_density_ratios_and_growth_rates(axes):
    pictures.draw_density_ratios(axes, np.array([0.0, np.pi / 2]), {3: np.array([0.5, 0.5])})
    assert axes.lines[0].get_xdata().tolist() == [0.0, 90.0]
    pictures.draw_growth_rates(axes, [2, 4], {8: [0.0, 0.5]}, [(16, 0.9, 0.1)])
    assert "simulated" in names(axes)


def test_escape_and_settled(axes):
    pictures.draw_escape(axes, {8: {"theory": np.ones(5), "quantiles": np.ones((3, 4))}})
    assert names(axes) == ["n = 8"]
    settled = [{"n": n, "cluster_angle_deg": 50.0, "three_pi_over_n_deg": 60.0} for n in (8, 16)]
    pictures.draw_settled(axes, settled, {8: np.array([49.0, 50.0, 52.0])})
    assert "simulated, width 1024" in names(axes)
    pictures.draw_settled(axes, settled, {})  # nothing simulated: the lines alone


@pytest.mark.parametrize("theory", [None, [0.9, 0.05, 0.05]])
def test_shares(axes, theory):
    pictures.draw_shares(axes, np.array([[0.9, 0.06, 0.04], [0.8, 0.1, 0.1]]), theory, "share", log=True)
    assert len(names(axes)) == (2 if theory is None else 3)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.85, 0.08, 0.07])
