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


def test_numbers_of_a_heat_map_stand_out_from_their_cells():
    figure, axes = figures.new_figure()
    names = dict(rows=["a"], columns=[1, 2, 3], row_label="n", column_label="depth", value_label="ratio")
    figures.heat_map(axes[0, 0], np.array([[1.0, np.nan, 9.0]]), logarithmic=True, **names)
    assert [text.get_color() for text in axes[0, 0].texts] == ["white", "black"]
    figures.close(figure)


def test_black_and_white_are_chosen_by_the_better_contrast():
    assert [figures.text_color((g, g, g)) for g in (0.0, 0.45, 0.48, 1.0)] == ["white", "white", "black", "black"]


def test_coinciding_curves_keep_their_markers_apart():
    places = [set(figures.marked_points(40, index)) for index in range(4)]
    assert all(not a & b for a, b in pairwise(places))
    for index in range(5):
        found = figures.marked_points(300, index, logarithmic=True)
        assert found == sorted(set(found))
        assert found[0] >= 0
        assert found[-1] < 300
        assert 5 <= len(found) <= 12
        assert figures.marked_points(3, index) == [0, 1, 2]


def test_plain_ticks_within_the_limits():
    figure, axes = figures.new_figure()
    for limits, shown in (((0.3, 1.1), ["0.5", "1"]), ((1, 300), ["1", "3", "10", "30", "100", "300"])):
        axes[0, 0].set(xscale="log", xlim=limits)
        figures.plain_ticks(axes[0, 0].xaxis)
        assert [label.get_text() for label in axes[0, 0].get_xticklabels()] == shown
        assert axes[0, 0].get_xlim() == pytest.approx(limits)
    figures.close(figure)


def test_numbers_beside_points_do_not_cover_each_other():
    figure, axes = figures.new_figure()
    points = 0.5 + 0.01 * np.array([[np.cos(t), np.sin(t)] for t in range(8)])
    figures.number_points(axes[0, 0], points, [0, 2, 3, 5, 7])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes[0, 0].texts]
    assert [text.get_text() for text in axes[0, 0].texts] == ["1", "3", "4", "6", "8"]
    centers = np.array([[box.x0 + box.x1, box.y0 + box.y1] for box in boxes]) / 2
    gaps = [np.abs(a - b).max() for i, a in enumerate(centers) for b in centers[:i]]
    assert min(gaps) > 4 * figures.DOTS_PER_INCH / 72
    figures.close(figure)


def test_table_cells():
    shown = [figures._cell(entry) for entry in (None, True, 0.123456, np.float64(2), "<a>", 12345)]
    assert shown == ["–", "yes", "0.1235", "2", "&lt;a&gt;", "12345"]
    shown = [figures._cell(entry) for entry in (17871.3, 1e-14, -2.5e9, "1.2e-05 ± 3e-06", "0.0e+00", "commit 3e12+5f")]
    assert shown == ["17870", "10⁻¹⁴", "-2.5·10⁹", "1.2·10⁻⁵ ± 3·10⁻⁶", "0", "commit 3e12+5f"]
    figures.table([[1, 2]], header=["a", "b"], caption="numbers")


def test_columns_of_words_are_told_from_columns_of_numbers():
    assert figures._holds_words(["confirmed", "–", "refuted"])
    assert figures._holds_words(["no", "yes"])
    for numbers in (
        ["1", "–", "2.5 ± 0.1"],
        ["45 [41, –]"],
        ["0.55 to 1.00", "3 of 48"],
        ["10⁻⁵", "3·10⁻⁶"],
        ["–"],
        [],
    ):
        assert not figures._holds_words(numbers)


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
