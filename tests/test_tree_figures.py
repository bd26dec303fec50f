"""The pictures of the tree show the neurons that they should."""

import random
from fractions import Fraction

import numpy as np
import pytest

from bnlib import figures, tree_figures


def test_neurons_come_in_the_order_of_the_tree(seed):
    draw = random.Random(seed)
    batch = [Fraction(draw.randrange(100), 3) for _ in range(5)] + [50]
    neurons = [sorted(y - min(batch) for y in batch)]
    for depth in range(5):
        np.testing.assert_allclose(tree_figures.neuron_values(batch, depth), np.array(neurons, dtype=float))
        children = []
        for v in neurons:
            mean = sum(v) / len(v)
            children += [[max(x - mean, 0) for x in v], [max(mean - x, 0) for x in v]]
        neurons = children


@pytest.mark.parametrize("batch", [[1, 2], [0, 0, 1], [-5, "-7/2", -1, 0, "3/2", 2, 4, 8], list(range(12))])
def test_pictures_hold_a_mark_for_each_neuron(batch):
    figure, axes = figures.new_figure(rows=2)
    tree_figures.draw_tree(axes[0, 0], batch, 3)
    tree_figures.draw_partition(axes[1, 0], batch, 4)
    # Bars of 1 + 2 + 4 + 8 neurons, one a sample; intervals of 1 + 2 + ... + 16.
    assert len(axes[0, 0].patches) == 15 * len(batch)
    assert len(axes[1, 0].patches) == 31
    widths = [patch.get_width() for patch in axes[1, 0].patches[-16:]]
    span = float(max(map(Fraction, batch)) - min(map(Fraction, batch)))
    assert sum(widths) == pytest.approx(span, rel=1e-12)
    figures.close(figure)


def test_curves_have_their_numbers():
    from bnlib import tree, tree_survey

    figure, axes = figures.new_figure(rows=2)
    tree_figures.draw_energies(axes[0, 0], [0, 1, 4, 6], 12)
    shares, rest = tree.energy_shares(tree.grow([0, 1, 4, 6], 12))
    drawn = [line.get_ydata()[-1] for line in axes[0, 0].get_lines()]
    np.testing.assert_allclose(drawn, [*shares, rest])
    assert [text.get_text() for text in axes[0, 0].get_legend().get_texts()][:3] == ["3 above", "2 above", "1 above"]
    figures.close(figure)
    figure, axes = figures.new_figure(rows=2)
    tree_figures.draw_limit(axes[0, 0], axes[1, 0], [0, 1, 4, 6], 30)
    assert axes[0, 0].get_lines()[0].get_ydata()[-1] == tree.geometry(tree.grow([0, 1, 4, 6], 30)).norm_max
    assert axes[1, 0].get_lines()[1].get_ydata()[0] == tree.limit([0, 1, 4, 6]).geometry.gap
    figures.close(figure)
    rows = tree_survey.survey([5, 6], 1, rng=np.random.default_rng(0))
    figure, axes = figures.new_figure()
    tree_figures.draw_survey(axes[0, 0], rows, "larger", tree_survey.KINDS, [0.1, 0.2])
    assert axes[0, 0].get_lines()[-1].get_ydata().tolist() == [0.1, 0.2]
    assert axes[0, 0].get_lines()[0].get_ydata()[0] == rows[0]["ratio_larger"]
    figures.close(figure)


def test_batches_without_interior_can_be_drawn():
    figure, axes = figures.new_figure(rows=2)
    tree_figures.draw_energies(axes[0, 0], [0, 1], 3)
    tree_figures.draw_limit(axes[0, 0], axes[1, 0], [0, 1], 3)
    figures.close(figure)
