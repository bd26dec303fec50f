"""Figures of chapter 10: that the numbers drawn are the numbers given, and that gaps are survived."""

import warnings

import numpy as np
import pytest

from bnlib import figures, training_figures
from bnlib.dedicated import dedicated_rows
from bnlib.training_data import training_set


@pytest.fixture
def panels():
    figure, axes = figures.new_figure(rows=2)
    yield axes[:, 0]
    figure.canvas.draw()
    figures.close(figure)


def row(step, kept, same, started=4, loss=1.0):
    return {
        "step": step,
        "kept": kept,
        "same": same,
        "started": started,
        "chance": 0.1,
        "kept_low": 0.1,
        "kept_high": 0.9,
        "same_low": None,
        "same_high": None,
        "loss": loss,
        "loss_low": None if loss is None else loss / 2,
        "loss_high": None if loss is None else loss * 2,
    }


def test_survival(panels):
    training_figures.survival(panels[0], {"rows": [row(0, 4, 4), row(10, 2, 1)]}, "title")
    assert [list(line.get_ydata()) for line in panels[0].get_lines()[:2]] == [[1.0, 0.5], [1.0, 0.25]]
    both = {"rows": [row(0, 4, 4)]}, "title", {"rows": [row(0, 4, 3), row(5, 4, 2)]}
    training_figures.survival(panels[0], *both)
    assert list(panels[0].get_lines()[-2].get_ydata()) == [0.75, 0.5]
    training_figures.survival(panels[1], {"rows": [row(0, 0, 0, started=0), row(1, 0, 0, started=0)]}, "nobody")
    assert np.isnan(panels[1].get_lines()[0].get_ydata()).all()


def test_along_training(panels):
    runs = [("a", {"rows": [row(0, 1, 1), row(5, 1, 1, loss=None)]}), ("b", {"rows": [row(0, 1, 1, loss=None)]})]
    training_figures.along_training(panels[0], runs, "loss", "loss")
    assert len(panels[0].get_lines()) == 1
    assert list(panels[0].get_lines()[0].get_xdata()) == [0]


def test_companions(panels):
    rows = [
        {"time": time, "batches": batches, "count": count, "same": same, "same_error": None}
        for time, batches, count, same in (
            ("start", "fixed", 1, 0.5),
            ("start", "resampled", 1, 0.4),
            ("end", "fixed", 1, 0.9),
            ("end", "resampled", 1, None),
        )
    ]
    training_figures.companions(panels[0], rows, "title")
    labels = [text.get_text() for text in panels[0].get_legend().get_texts()]
    assert labels == ["before training", "after training, fixed batches"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training_figures.companions(panels[1], rows[3:], "nothing to draw")
    assert panels[1].get_legend() is None


def test_collapse_curves(panels):
    rows = [{"step": 0, "within": 2.0, "simplex_gap": 0.5}, {"step": 9, "within": None, "simplex_gap": None}]
    training_figures.collapse_curves(panels, [{"name": "NL", "rows": rows}])
    assert [list(panel.get_lines()[0].get_ydata()) for panel in panels] == [[2.0], [0.5]]


def test_times(panels):
    arms = [{"arm": "he", "samples": 8, "steps": 100, "times": [10, None]}]
    training_figures.times(panels[0], arms, ["he", "batch norm"])
    offsets = panels[0].collections[0].get_offsets()
    assert offsets[0][1] == 10
    assert offsets[1][1] > 100


def test_dedicated(panels, generator):
    x = training_set("random labels", 60, generator=generator).x
    training_figures.dedicated(
        panels, dedicated_rows(x[:40], [8, 40], [None, 16], x[40:], repeats=2, generator=generator)
    )
    assert len(panels[0].get_lines()) == 4
    assert len(panels[1].get_lines()) == 4
