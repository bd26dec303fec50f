"""Gradients at rank one: the law of a layer, ball arithmetic against float64, refusals."""

import math

import numpy as np
import pytest
import torch

from bnlib import rank_one_gradients as rank_one
from bnlib.power_networks import drawn_network, power_network


def test_constant_by_hand():
    # n = 3, alpha = 1: lambda = 5/6, slope 1, a = 3 / (5/6).
    assert rank_one.cluster_constant(3, 1) == pytest.approx(3.6)
    # alpha = 2: lambda = (1/3)(4 + 1/4), a = 3 * 4 * 2^-1 / lambda.
    assert rank_one.cluster_constant(3, 2) == pytest.approx(6 / (4.25 / 3))
    assert rank_one.neutral_width(10, 2) * rank_one.median_growth(10, 2, 1) == pytest.approx(1)


def test_law_of_a_layer(seed):
    rng = np.random.default_rng(seed)
    for alpha, width in ((1, 60), (3, 100)):
        median, error = rank_one.median_and_error(rank_one.layer_factors(6, alpha, width, 3000, rng))
        theory = math.log(rank_one.median_growth(6, alpha, width))
        assert abs(median - theory) < 5 * error + 1 / width  # N^2 is not quite d^2 / 4
        wrong = math.log(rank_one.cluster_constant(6, alpha) * width)  # without Levy's median and the quarter
        assert abs(median - wrong) > 5 * error
    assert np.median(rank_one.layer_factors(6, 2, 50, 21, rng, constant=True)) < 1e-25


@pytest.mark.parametrize("alpha", [1, 2, 5])
def test_ball_arithmetic_agrees_with_torch(seed, alpha):
    drawn = drawn_network(5, 12, 3, None, torch.Generator().manual_seed(seed))
    x, weights, readout = drawn
    exact = rank_one.exact_network(x.numpy(), [one.numpy() for one in weights], readout.numpy(), alpha)
    for one, other in zip(exact, power_network(*drawn, alpha, "float64"), strict=True):
        assert one.log_square == pytest.approx(other.log_square, abs=1e-6)
        assert one.cluster == pytest.approx(other.cluster, rel=1e-6)


def test_two_samples_vanish_without_rounding():
    rng = np.random.default_rng(0)
    found = rank_one.exact_network(rng.normal(size=(2, 3)), rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3)), 1)
    assert [layer.log_square for layer in found] == [-math.inf, -math.inf]


def test_too_few_bits_are_refused():
    x, weights, readout = drawn_network(10, 12, 5, 1e-3, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="bits must be more: a squared norm has fewer than 20 bits left"):
        rank_one.exact_network(x.numpy(), [one.numpy() for one in weights], readout.numpy(), 30, bits=60)


def test_precision_is_put_back_and_refusals():
    import flint

    before, rng = flint.ctx.prec, np.random.default_rng(0)
    rank_one.exact_network(rng.normal(size=(4, 3)), rng.normal(size=(2, 3, 3)), rng.normal(size=(4, 3)), 2, bits=300)
    assert flint.ctx.prec == before
    with pytest.raises(ValueError, match=r"alpha must be a whole number of at least 1, got 1\.5"):
        rank_one.exact_network(rng.normal(size=(4, 3)), rng.normal(size=(1, 3, 3)), rng.normal(size=(4, 3)), 1.5)
    with pytest.raises(ValueError, match="alpha must be a positive finite degree, got 0"):
        rank_one.rank_one_eigenvalue(5, 0)
    with pytest.raises(ValueError, match=r"width must be at least 1, got 0\.5"):
        rank_one.median_growth(5, 1, 0.5)
    with pytest.raises(ValueError, match="width and draws must be at least 1, got 0 and 3"):
        rank_one.layer_factors(5, 1, 0, 3, rng)
    with pytest.raises(ValueError, match="at least 10 positive numbers, got 3"):
        rank_one.median_and_error(np.ones(3))
