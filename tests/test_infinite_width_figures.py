"""The pictures draw what they say."""

import math

import numpy as np
import pytest

from bnlib import figures
from bnlib import infinite_width_figures as pictures
from bnlib.outlier_class import class_geometry
from bnlib.outlier_fixed_points import bifurcation_branches, outlier_state, saddle_node, separatrix


@pytest.fixture
def panel():
    figure, axes = figures.new_figure(rows=2)
    yield axes[:, 0]
    figure.canvas.draw()
    figures.close(figure)


def test_bifurcation(panel):
    branches = bifurcation_branches(pictures.branch_sizes(64, 30))
    pictures.bifurcation(panel[0], branches, [5, 7, 8])
    drawn = [line.get_ydata() for line in panel[0].lines]
    assert any(len(y) == 1 and y[0] == outlier_state(8).norm_ratio for y in drawn)
    assert any(len(y) == 1 and y[0] == separatrix(7).norm_ratio for y in drawn)
    assert any(saddle_node().n == line.get_xdata()[0] for line in panel[0].lines if len(line.get_xdata()) == 1)


def test_drift_curves_vanish_at_the_states(panel):
    pictures.drift_curves(panel[0], [6, 8])
    curve = panel[0].lines[2]
    x, y = curve.get_xdata(), curve.get_ydata()
    order = np.argsort(x)
    for state in (outlier_state(8), separatrix(8)):
        assert abs(np.interp(state.norm_ratio, x[order], y[order])) < 0.05
    u = pictures._state_of_ratio(2.0, 8)
    g = class_geometry(0.0, u, 8)
    assert math.sqrt(g.outlier_square / g.cluster_square) == pytest.approx(2.0, rel=1e-12)


def test_multipliers_and_limits(panel):
    row = {"n": 8, "class": 0.93, "cluster": 0.89, "cluster pairs": 0.84, "symmetric": 0.956, "separatrix": 1.03}
    pictures.multiplier_curves(panel[0], [row, row | {"n": 16}])
    assert [line.get_ydata()[0] for line in panel[0].lines] == pytest.approx([0.07, 0.11, 0.16, 0.044, 0.03])
    pictures.large_batches(panel, 64)
    for axes in panel[1:]:
        assert axes.lines[1].get_ydata()[-1] == pytest.approx(64 * (separatrix(64).norm_ratio - 1), rel=1e-9)


def test_limit_of_the_drift(panel):
    pictures.drift_at_infinity(panel[0], [4096])
    limit, near = panel[0].lines[1].get_ydata()[1:], panel[0].lines[2].get_ydata()
    np.testing.assert_allclose(near, limit, atol=2e-3)


def test_branches_and_basins(panel):
    pictures.many_outlier_branches(panel[0], [1, 2], 16)
    assert len(panel[0].lines) == 4
    pictures.basin_scatter(panel[1], {"8": [(0.5, False), (2.0, True)], "16": [(1.5, True)]})
    assert [label.get_text() for label in panel[1].get_yticklabels()] == ["n = 8", "n = 16"]
