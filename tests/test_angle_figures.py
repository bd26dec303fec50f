"""The pictures hold a mark for each number that they are given, and none where nothing was measured."""

import numpy as np
import pytest
import torch

from bnlib import angle_figures, figures


@pytest.fixture
def axes():
    figure, grid = figures.new_figure()
    yield grid[0, 0]
    figures.close(figure)


def test_depth_curves_show_theory_where_there_is_one(axes):
    cell = {"depths": (1, 2), "mean": [80.0, None], "q10": [79.0, None], "q90": [81.0, None]}
    angle_figures.depth_curves(axes, {"NL": cell, "STD+NL": cell}, {"NL": [80.0, 70.0], "STD+NL": None}, title="t")
    assert len(axes.lines) == 3
    assert axes.lines[0].get_ydata()[0] == 80
    assert np.isnan(axes.lines[0].get_ydata()[1])
    assert axes.lines[1].get_xdata().tolist() == [1, 2]


def test_layer_maps_hold_curves_points_and_the_diagonal(axes):
    x = np.array([10.0, 20.0])
    angle_figures.layer_maps(axes, x, {"a": x, "b": x / 2}, {"b": [(10, 5, 0.1), (20, 10, 0.1)]})
    curves = [line for line in axes.lines if line.get_linestyle() != "None"]
    assert len(curves) >= 3
    assert len(axes.containers) == 1
    assert axes.containers[0].lines[0].get_ydata().tolist() == [5, 10]


def test_width_panel_marks_infinite_width_only_where_it_is_known(axes):
    row = [{"mean_deg": 60.0, "standard_error_deg": 0.1}, {"mean_deg": None, "standard_error_deg": None}]
    angle_figures.width_panel(axes, [32, 128], {"NL": row, "STD+NL": row}, {"NL": 5.0, "STD+NL": None}, "t")
    assert [t.get_text() for t in axes.get_xticklabels()] == ["32", "128", "∞"]
    at_the_end = [line for line in axes.lines if list(line.get_xdata()) == [256]]
    assert len(at_the_end) == 1


def test_widened_curves_and_bands(axes):
    curve = {key: np.array([3.0, 2.0, 1.0, 1.0]) for key in ("mean", "q10", "q90")}
    angle_figures.widened_curves(axes, curve, np.ones(4), ["wide", "narrow"], depth=2, title="t")
    assert [line.get_label() for line in axes.lines[:2]] == ["wide", "narrow"]
    angle_figures.essay_bands(axes)
    angle_figures.batch_size_ticks(axes, [4, 8])
    assert [t.get_text() for t in axes.get_xticklabels()] == ["4", "8"]


def test_rises_have_a_curve_each(axes):
    angle_figures.rise_panel(axes, {8: [(10, -1, 0.1), (20, 0, 0.1)], 16: [(10, 1, 0.1)]}, title="t")
    assert [c.lines[0].get_ydata().tolist() for c in axes.containers] == [[-1, 0], [1]]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["n = 8", "n = 16"]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (5.0, None, "5"),
        (5.0, 0.0, "5"),
        (123.4, 56.0, "123 ± 56"),
        (0.5, 0.0999, "0.500 ± 0.100"),
        (0.0, 2e-7, "0 ± 2·10⁻⁷"),
        (1.8e-14, 4e-16, "0 (to rounding)"),
    ],
)
def test_numbers_with_their_errors(value, error, text):
    assert angle_figures.with_error(value, error) == text


def test_no_negative_zero():
    shown = [angle_figures.plain_number(v) for v in (-0.004, 0.0, -0.006, 1.5, None)]
    assert shown == ["0.00", "0.00", "−0.01", "1.50", "–"]


def test_no_row_of_the_table_is_black():
    colors = [angle_figures.row_style(index)["color"] for index in range(5)]
    assert len(set(colors)) == 5
    assert "#000000" not in colors


def test_plane_panel_has_one_star_and_the_others(axes):
    picture = {
        "coordinates": [[0.1, 0.2], [1, 0], [0.1, 0.3]],
        "index": 1,
        "captured": None,
        "stages": "NL",
        "depth": 3,
    }
    angle_figures.plane_panel(axes, picture)
    circles, star = axes.collections
    assert len(circles.get_offsets()) == 2
    assert star.get_offsets().tolist() == [[1, 0]]
    assert "share in the plane: none" in axes.get_title()


def test_histograms_count_everything(axes):
    values = torch.tensor([[-0.5, 0.1], [0.1, 100.0]])
    shares = angle_figures.histogram(values)
    assert shares.sum() == pytest.approx(0.75)
    assert shares.max() == pytest.approx(0.5)
    angle_figures.histogram_panel(axes, shares, title="NL", text="skewness 1")
    (steps,) = axes.patches
    assert steps.get_data().values.tolist() == shares.tolist()
    angle_figures.count_panel(axes, np.array([0.5, 0.5]), title="NL")
    assert len(axes.patches) == 3
