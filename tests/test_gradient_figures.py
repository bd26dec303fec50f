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
