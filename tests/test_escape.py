"""Tests of bnlib.escape: the normal form against the full map, limits for large batches, escape rates, messages."""

import math

import numpy as np
import pytest

from bnlib import escape
from bnlib.escape_noise import spread_of_state, state_of_spread
from bnlib.kernels import recentered_relu_kernel


def spread_after_full_layer(a: np.ndarray) -> np.ndarray:
    """Spread after one infinitely wide layer on the whole Gram matrix, from the batch with C_ii = 1 + a_i."""
    n = len(a)
    c = -1 / (n - 1) - (a[:, None] + a[None, :]) / (n - 2)
    np.fill_diagonal(c, 1 + a)
    k = recentered_relu_kernel(c)
    g = np.eye(n) - 1 / n
    after = np.diagonal(g @ k @ g)
    return n * after / after.sum() - 1


# ---------------------------------------------------------------- naive references


@pytest.mark.parametrize("n", [4, 8, 15])
def test_normal_form_is_the_expansion_of_the_full_map(n, seed):
    form = escape.normal_form(n)
    a = np.random.default_rng(seed).uniform(-0.2, 0.2, n)
    a[0] = 1.0  # one large entry, so that the square does not vanish by accident
    a = a - a.mean()
    for size in (1e-2, 5e-3):
        left = spread_after_full_layer(size * a) - form.multiplier * size * a
        square = form.curvature * size**2 * (a**2 - (a**2).mean())
        assert np.abs(left - square).max() < 5 * size * np.abs(square).max()  # of third order
        assert np.abs(left - 1.3 * square).max() > 5 * size * np.abs(square).max()  # power: another curvature


@pytest.mark.parametrize("n", [5, 8, 40])
def test_one_sample_follows_the_full_map(n):
    a = np.full(n, -0.3 / (n - 1))
    a[0] = 0.3
    assert escape.next_spread(0.3, n) == pytest.approx(spread_after_full_layer(a)[0], rel=1e-9)


def test_separatrix_is_fixed_and_approaches_the_quadratic_one():
    for n in (7, 8, 16, 128):
        form = escape.normal_form(n)
        assert escape.next_spread(form.separatrix, n) == pytest.approx(form.separatrix, rel=1e-9)
        assert escape.next_spread(form.separatrix * 1.01, n) > form.separatrix * 1.01
    assert form.separatrix == pytest.approx(form.separatrix_quadratic, rel=0.02)
    assert escape.normal_form(6).separatrix is None


def test_large_batches():
    form = escape.normal_form(1000)
    assert 1000 * (1 - form.multiplier) == pytest.approx((math.pi - 2) / (2 * (math.pi - 1)), rel=3e-3)
    assert form.curvature == pytest.approx(1 / (4 * (math.pi - 1)), rel=3e-3)
    doubled = escape.normal_form(2000)
    assert doubled.crossover_width / form.crossover_width == pytest.approx(8, rel=0.01)


def test_exponent_tends_to_the_quadratic_one():
    for n, tolerance in ((16, 0.08), (64, 0.03), (256, 0.01)):
        assert escape.exit_exponent(n) == pytest.approx(escape.normal_form(n).exponent_quadratic, rel=tolerance)
    assert escape.exit_exponent(6) is None
    assert escape.exit_time(100, 6) is None
    assert escape.cluster_fluctuation(100, 6) is None


def test_exit_law_against_a_chain_of_the_quadratic_form(seed):
    """A Langevin chain with the normal form's numbers leaves at the rate of the quadratic exponent."""
    n, form = 7, escape.normal_form(7)
    random = np.random.default_rng(seed)
    # Slower and weaker than a layer, so that the chain is close to its continuous limit; noise so that W d = 2.
    back, curvature, height = 0.05, 0.1, 2.0
    crossover = form.noise * curvature**2 / back**3
    width = height * crossover * 3 * (n - 2) ** 2 / (n * (n - 1))
    a = np.zeros((400, n))
    times = np.zeros(400)
    running = np.ones(400, dtype=bool)
    for layer in range(1, 3001):
        xi = random.standard_normal(a.shape) * math.sqrt(form.noise / width)
        step = (1 - back) * a + curvature * (a**2 - (a**2).mean(axis=1, keepdims=True)) + xi
        a = np.clip(step - step.mean(axis=1, keepdims=True), -3, 3)
        out = running & (a.max(axis=1) > 2 * back / curvature * (n - 1) / (n - 2))
        times[out] = layer
        running &= ~out
        if not running.any():
            break
    rate = (~running).sum() / (times[~running].sum() + layer * running.sum())
    expected = n * back / (2 * math.pi) * (1 + 2 / (n - 2)) ** (-(n - 2) / 2) * math.exp(-height)
    assert 0.4 < rate / expected < 2.0  # the law is asymptotic: at a height of 2 within a factor of about two
    assert not 0.4 < rate / (expected * math.exp(-height)) < 2.0  # power: twice the height


def test_times_grow_exponentially():
    first, second = escape.exit_time(4096, 8), escape.exit_time(8192, 8)
    assert math.log(second / first) / 4096 == pytest.approx(escape.exit_exponent(8), rel=1e-9)


def test_spreads_of_input_and_of_noise(seed):
    n, dimension, draws = 8, 200, 4000
    x = np.random.default_rng(seed).standard_normal((draws, n, dimension))
    x -= x.mean(axis=1, keepdims=True)
    c = (x**2).sum(axis=2)
    a = n * c / c.sum(axis=1, keepdims=True) - 1
    variance = (a**2).mean(axis=1)
    error = variance.std() / math.sqrt(draws)
    assert abs(variance.mean() - escape.input_spread(dimension, n) ** 2) < 5 * error + 0.02 * variance.mean()
    one = escape.stationary_spread(1000, n)
    assert one == pytest.approx(2 * escape.stationary_spread(4000, n))
    assert spread_of_state(state_of_spread(one, n), n) == pytest.approx(one)


def test_fluctuation_of_the_cluster():
    assert escape.cluster_fluctuation(400, 16) == pytest.approx(2 * escape.cluster_fluctuation(1600, 16))
    assert 2 < math.degrees(escape.cluster_fluctuation(512, 64)) < 4


def test_messages():
    with pytest.raises(ValueError, match="width is 0; valid is a number of neurons of at least 1"):
        escape.exit_time(0, 8)
    with pytest.raises(ValueError, match="slope is 1; valid is any leaky slope but 1"):
        escape.normal_form(8, 1)
    with pytest.raises(ValueError, match="dimension is 0; valid is a number of features of at least 1"):
        escape.input_spread(0, 8)
    with pytest.raises(ValueError, match="n must be a whole number of samples"):
        escape.exit_exponent(8.5)
    with pytest.raises(ValueError, match="slope is 1; valid is any leaky slope but 1"):
        escape.stationary_spread(10, 8, 1)
    with pytest.raises(ValueError, match=r"width is 0\.5"):
        escape.cluster_fluctuation(0.5, 8)
