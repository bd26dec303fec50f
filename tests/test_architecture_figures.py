"""Figures of chapter 11 draw what they are given: bars as long as shares, words in boxes, lines as intervals."""

import numpy as np
import pytest

from bnlib import architecture_figures as pictures
from bnlib.figures import close
from bnlib.geometry_classes import CLASSES


def cell(**more):
    usual = {
        "row": "ReLU",
        "architecture": "dense RC+NL",
        "draws": 4,
        "counts": {"outlier": 3, "other": 1},
        "outlier_low": 0.2,
        "outlier_high": 0.99,
        "odd_angle_deg": 88.0,
        "onset": 20.0,
        "onset_low": 10.0,
        "onset_high": None,
    }
    return {**usual, **more}


def test_bars_add_up_to_one():
    panel = [cell(), cell(row="tanh", counts={"symmetric": 4})]
    figure = pictures.shares([panel, panel[:1]], ["row", "row"], ["a", "b"])
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["ReLU", "tanh"]
    widths = np.array([bar.get_width() for bar in axis.patches]).reshape(len(CLASSES), 2)
    assert widths.sum(axis=0) == pytest.approx([1, 1])
    assert widths[CLASSES.index("outlier")] == pytest.approx([0.75, 0])
    assert widths[CLASSES.index("symmetric")] == pytest.approx([0, 1])
    close(figure)


def test_shares_and_angles_over_the_slope():
    row = [cell(), cell(odd_angle_deg=None)]
    figure = pictures.slope_map({8: row, 32: row}, [0.0, 0.5], [90.0, 143.1])
    above, below = figure.axes
    assert [text.get_text() for text in above.get_legend().get_texts()] == ["n = 8", "n = 32"]
    curve = next(line for line in below.lines if line.get_color() == "black")
    assert list(curve.get_ydata()) == [90.0, 143.1]
    assert np.isnan(below.lines[0].get_ydata()[1])
    close(figure)


def test_boxes_hold_share_and_class():
    figure = pictures.variance_map(np.array([[[0.25, 1.0]]]), [[["line", "outlier"]]], ["gelu"], [1.0, 4.0], ["a"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.25\nline", "1.00\noutlier"]
    close(figure)


def test_onsets_reach_as_far_as_their_intervals():
    figure = pictures.onsets([cell(), cell(onset_low=None, onset_high=30.0)], 200)
    lines = [line.get_xdata() for line in figure.axes[0].lines]
    assert [list(x) for x in lines] == [[10.0, 200], [20.0], [20.0, 30.0], [20.0]]
    close(figure)


def test_no_onsets_at_all():
    close(pictures.onsets([], 10))
