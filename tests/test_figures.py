"""Figures: opaque, closed after use, legible without colour."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from bnlib import figures


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    assert plt.get_fignums() == []


def test_the_ground_is_opaque_white():
    figure, axes = figures.new_figure(rows=2, columns=2, height=2)
    assert axes.shape == (2, 2)
    assert figure.get_facecolor() == (1, 1, 1, 1)
    figures.show(figure)


def test_curves_differ_by_more_than_colour():
    styles = [figures.line_style(index) for index in range(7)]
    assert len({(style["marker"], str(style["linestyle"])) for style in styles}) == 7
    assert len({str(sorted(figures.line_style(index).items(), key=str)) for index in range(14)}) == 14


def test_neighbouring_colours_differ_in_grey():
    greys = [np.dot([0.2126, 0.7152, 0.0722], to_rgb(color)) for color in figures.COLORS[:6]]
    assert min(abs(a - b) for a, b in pairwise(greys)) > 0.05


def test_curves_with_bands_and_labels():
    figure, axes = figures.new_figure()
    x = [1, 2, 3]
    figures.curves(axes[0, 0], x, [("a", x), ("b", [2, 2, 2])], bands=[(x, x), (x, x)], direct_labels=True)
    assert {text.get_text() for text in axes[0, 0].texts} == {"a", "b"}
    figures.close(figure)


def test_heat_map_leaves_unmeasured_cells_blank():
    figure, axes = figures.new_figure()
    table = np.array([[1.0, np.nan], [3.0, 4.0]])
    names = dict(rows=[4, 8], columns=[10, 30], row_label="n", column_label="depth", value_label="angle, degrees")
    figures.heat_map(axes[0, 0], table, **names)
    assert [text.get_text() for text in axes[0, 0].texts] == ["1", "3", "4"]
    figures.close(figure)


def test_table_cells():
    shown = [figures._cell(entry) for entry in (None, True, 0.123456, np.float64(2), "<a>", 12345)]
    assert shown == ["–", "yes", "0.1235", "2", "&lt;a&gt;", "12345"]
    figures.table([[1, 2]], header=["a", "b"], caption="numbers")


def test_star_and_circles_draws_every_sample_once():
    figure, axes = figures.new_figure()
    panel = axes[0, 0]
    figures.star_and_circles(panel, np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]), 1)
    circles, star = panel.collections
    assert circles.get_offsets().tolist() == [[0.0, 1.0], [0.5, 0.5]]
    assert star.get_offsets().tolist() == [[1.0, 0.0]]
    with pytest.raises(ValueError, match="index is 3; valid is a row of points, 0 to 2"):
        figures.star_and_circles(panel, np.zeros((3, 2)), 3)
    figures.close(figure)
