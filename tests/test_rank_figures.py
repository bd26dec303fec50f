"""Pictures of the rank theorem: what is drawn is what was given."""

import numpy as np
import pytest

from bnlib import figures, rank_figures
from bnlib.planar_gamma import gamma_planar, sectors


@pytest.fixture
def axes():
    figure, found = figures.new_figure()
    yield found[0, 0]
    figures.close(figure)


def test_circle_shades_the_share_gamma(axes):
    angles = np.deg2rad([0, 30, 60])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    gamma = gamma_planar(x)
    rank_figures.draw_circle(axes, x, sectors(x, gamma.witness))
    shaded = sum(w.theta2 - w.theta1 for w in axes.patches if tuple(w.get_facecolor()[:3]) != (1.0, 1.0, 1.0))
    assert np.isclose(shaded / 360, gamma.gamma)


def test_function_along_the_circle_vanishes_outside_the_shade(axes):
    angles = np.deg2rad([0, 30, 60])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    witness = gamma_planar(x).witness
    found = sectors(x, witness)
    rank_figures.draw_along_circle(axes, x, witness, found)
    degrees, values = axes.lines[0].get_data()
    silent = np.zeros(len(degrees), dtype=bool)
    for sector in found:
        if sector.silent:
            silent |= (np.deg2rad(degrees) - sector.begin) % (2 * np.pi) < sector.width
    assert np.abs(values[silent]).max() < 1e-12
    assert np.abs(values[~silent]).max() > 0.01


def test_waiting_times_and_their_bars(axes):
    cells = [{"mean": 10.0, "standard_error": 1.0}, {"mean": 40.0, "standard_error": 2.0}]
    rank_figures.draw_waiting_times(axes, [4, 8], cells, [("bound", [20, 80])])
    assert axes.lines[0].get_ydata().tolist() == [20, 80]
    ends = axes.collections[0].get_segments()
    assert [segment[:, 1].tolist() for segment in ends] == [[5.0, 15.0], [30.0, 50.0]]
    rank_figures.name_ticks(axes, [4, 8])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8"]


def test_rank_over_depth(axes):
    cells = [
        {"depth": d, "rank": {"0.01": [1, 3]}, "live_neurons": [4, 4], "effective": {"entropy": [1.0, 2.0]}}
        for d in (1, 2)
    ]
    rank_figures.draw_rank_over_depth(axes, cells, "He")
    assert [line.get_label() for line in axes.lines] == [
        "rank at 0.01",
        "neurons not silent",
        "effective rank (entropy)",
    ]
    assert axes.lines[0].get_ydata().tolist() == [2.0, 2.0]


def test_accuracy_shows_every_network_and_diverged_ones_at_zero(axes):
    cells = {"He": [{"depth": 1, "train": [1.0, None, 0.5], "train_mean": 0.5}]}
    rank_figures.draw_accuracy_over_depth(axes, cells, "train")
    assert axes.lines[1].get_ydata().tolist() == [1.0, 0.0, 0.5]


def test_tail(axes):
    found = {"neurons": [8, 9], "measured": [0.5, 0.1], "gamma": 0.5}
    found |= {"binomial": [0.6, 0.2], "chernoff": [0.9, 0.5], "simple": [1.0, 0.9]}
    rank_figures.draw_tail(axes, "orthogonal", found, 1000)
    assert axes.get_title() == "orthogonal, γ = 0.5"
    assert axes.lines[0].get_ydata().tolist() == [0.6, 0.2]


def test_law(axes):
    rank_figures.draw_gamma_law(axes, {3: np.array([0.4, 0.1])})
    assert axes.lines[0].get_ydata().tolist() == [0.5, 1.0]
