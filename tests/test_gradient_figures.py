"""Figures of the chapter on gradients: the map's cells and its line."""

import matplotlib.pyplot as plt
import pytest

from bnlib import figures, gradient_figures


def test_map_draws_every_cell_and_the_line():
    cells = [
        {"depth": depth, "batch_size": n, "accuracy": 0.5 + depth / 100 + n / 1000} for depth in (2, 4) for n in (8, 16)
    ]
    figure, axes = figures.new_figure()
    gradient_figures.trainability_map(axes[0, 0], cells, {8: 1.0, 16: 1.5}, 2.0, "SGD")
    assert len(axes[0, 0].texts) == 4
    heights = [line.get_ydata()[0] for line in axes[0, 0].lines[1::2]]
    assert heights == pytest.approx([0.5, 1.0])  # 2 is the first row's center, 3 half-way to the second's
    plt.close(figure)


def test_new_panels_draw_what_they_are_given():
    figure, axes = figures.new_figure(rows=3)
    spectra = [
        {"activation": "relu", "depth": depth, "largest": 2.0**depth, "mean_square": 1.5**depth, "median": 0.5**depth}
        for depth in (1, 2, 4)
    ]
    gradient_figures.jacobian_spectra(axes[0, 0], spectra)
    assert [line.get_ydata()[-1] for line in axes[0, 0].lines[:3]] == pytest.approx([16.0, 1.5**2, 0.0625])
    paths = [
        {"arithmetic": "exact", "path": [0.0, -50.0, None, None]},
        {"arithmetic": "float32", "path": [0.0, -5.0, -9.0, 3.0]},
    ]
    gradient_figures.arithmetic_paths(axes[1, 0], paths)
    assert [len(line.get_xdata()) for line in axes[1, 0].lines[:2]] == [2, 3]
    gradient_figures.backward_eigenvalues(axes[2, 0], [4, 8], {"G": [3.0, 2.0], "L": [2.0, 1.5]})
    assert [text.get_text() for text in axes[2, 0].get_legend().get_texts()] == ["G", "L"]
    plt.close(figure)


def test_depths_over_scales_leave_out_what_was_not_found():
    figure, axes = figures.new_figure()
    points = [
        {"optimizer": "sgd", "activation": "a", "scale": 1.0, "depth": 10.0},
        {"optimizer": "sgd", "activation": "b", "scale": 4.0, "depth": 40.0},
        {"optimizer": "sgd", "activation": "c", "scale": 9.0, "depth": None},
        {"optimizer": "adam", "activation": "a", "scale": 1.0, "depth": None},
    ]
    gradient_figures.depth_over_scale(axes[0, 0], points)
    marks, line = axes[0, 0].lines
    assert list(marks.get_ydata()) == [10.0, 40.0]
    assert list(line.get_ydata()) == pytest.approx([10.0, 40.0])
    plt.close(figure)


def test_choice_of_epsilon_shows_the_choice_and_the_new_networks():
    figure, axes = figures.new_figure()
    outcome = {"accuracy": 0.4, "worst": 0.3, "best": 0.6}
    row = {
        "activation": "relu",
        "shift": 1.0,
        "depth": 80,
        "tried": [{"fraction": 0.5, "accuracies": [0.2, None]}],
        "fraction": 0.5,
        "base": outcome,
        "raised": outcome | {"accuracy": 0.5},
    }
    gradient_figures.epsilon_choice(axes[0, 0], [row])
    assert [list(line.get_ydata()) for line in axes[0, 0].lines[:2]] == [[0.2, 0.0], [0.4, 0.5]]
    assert axes[0, 0].get_legend().get_texts()[0].get_text().endswith("80 layers")
    plt.close(figure)
