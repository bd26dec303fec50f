"""Tests of bnlib.escape_noise: fourth moments of neurons against Monte Carlo and closed forms, messages."""

import math

import numpy as np
import pytest

from bnlib import escape_noise as noise
from bnlib import leaky
from bnlib.kernels import relu_cosine


def neurons(n: int, count: int, slope: float, random: np.random.Generator) -> np.ndarray:
    """Values of `count` neurons at a symmetric batch of n, mean square 1."""
    g = random.standard_normal((count, n))
    h = (g - g.mean(axis=1, keepdims=True)) * math.sqrt(n / (n - 1))
    return np.where(h > 0, h, slope * h) * math.sqrt(2 / (1 + slope**2))


def spread_per_neuron(r: np.ndarray) -> np.ndarray:
    y = (r - r.mean(axis=1, keepdims=True)) ** 2
    total = y.sum(axis=1, keepdims=True)
    return (r.shape[1] * y - total) / total.mean()


@pytest.mark.parametrize(("n", "slope"), [(3, 0.0), (5, 0.3), (8, 0.0), (20, -0.5)])
def test_noise_against_neurons(n, slope, seed):
    z = spread_per_neuron(neurons(n, 100_000, slope, np.random.default_rng(seed)))
    squares = (z**2).sum(axis=1) / (n - 1)
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - noise.spread_noise(n, slope)) < 5 * error
    assert abs(squares.mean() - 1.1 * noise.spread_noise(n, slope)) > 5 * error  # power


@pytest.mark.parametrize(("n", "slope"), [(4, 0.0), (6, 0.2)])
def test_fluctuations_against_neurons(n, slope, seed):
    r = neurons(n, 200_000, slope, np.random.default_rng(seed))
    m = r[:, :, None] * r[:, None, :]
    parts = noise.gram_fluctuations(n, slope)
    index = np.arange(n)
    diagonal = m[:, index, index]
    off = (m.sum(axis=2) - diagonal) / (n - 1)
    t = np.stack([diagonal.mean(axis=1), off.mean(axis=1)])
    np.testing.assert_allclose(parts.mean, [1.0, leaky.leaky_cosine(-1 / (n - 1), slope)], rtol=1e-9)
    count = len(r)

    def close(product: np.ndarray, value: float) -> bool:
        return abs(product.mean() - value) < 5 * product.std() / math.sqrt(count)

    t = t - parts.mean[:, None]
    assert close(t[0] * t[0], parts.uniform[0, 0])
    assert close(t[0] * t[1], parts.uniform[0, 1])
    assert close(t[1] * t[1], parts.uniform[1, 1])
    a = diagonal - diagonal.mean(axis=1, keepdims=True)
    b = (off - off.mean(axis=1, keepdims=True)) * (n - 1) / (n - 2)
    assert close(a[:, 0] * a[:, 0], parts.sample[0, 0])
    assert close(a[:, 0] * b[:, 0], parts.sample[0, 1])
    assert close(b[:, 0] * b[:, 0], parts.sample[1, 1])
    e = m[:, 0, 1] - off.mean(axis=1) - b[:, 0] - b[:, 1]
    assert close(e * e, parts.pair * (n - 3) / (n - 1))  # the projection's diagonal
    assert not close(e * e, parts.pair)


def test_covariances_are_covariances():
    for n in (3, 4, 9, 200):
        for slope in (-1.0, 0.0, 0.5):
            parts = noise.gram_fluctuations(n, slope)
            assert np.linalg.eigvalsh(parts.uniform).min() > -1e-9
            assert np.linalg.eigvalsh(parts.sample).min() > -1e-9
            assert parts.pair >= 0


def test_large_batches_have_the_kurtosis():
    # r = relu(g): mean 1/sqrt(2 pi), E r^2 = 1/2, E r^3 = sqrt(2/pi), E r^4 = 3/2.
    mu = 1 / math.sqrt(2 * math.pi)
    variance = 0.5 - mu**2
    fourth = 1.5 - 4 * mu * math.sqrt(2 / math.pi) + 6 * mu**2 * 0.5 - 3 * mu**4
    assert noise.spread_noise(2000) == pytest.approx(fourth / variance**2 - 1, rel=1e-3)


@pytest.mark.parametrize(("n", "a", "slope"), [(5, 0.4, 0.0), (8, 0.6, 0.0), (8, -0.5, 0.3), (16, 13.8, 0.0)])
def test_noise_along_the_way(n, a, slope, seed):
    random = np.random.default_rng(seed)
    m, count, u = n - 1, 100_000, noise.state_of_spread(a, n)
    g = random.standard_normal((count, m))
    x = random.standard_normal(count) * m / n
    h = np.column_stack([x, -x[:, None] / m + math.sqrt(u) * (g - g.mean(axis=1, keepdims=True))])
    r = np.where(h > 0, h, slope * h)
    y = (r - r.mean(axis=1, keepdims=True)) ** 2
    total = y.sum(axis=1)
    k = 1 + noise.spread_of_state(leaky.next_state(u, n, slope), n)
    z = (n * y[:, 0] - k * total) / total.mean()
    error = (z**2).std() / math.sqrt(count)
    assert abs((z**2).mean() - noise.noise_along(a, n, slope)) < 5 * error
    assert abs((z**2).mean() - noise.noise_along(0.0, n, slope)) > 5 * error  # power: another state


def test_noise_along_at_the_symmetric_state():
    for n in (4, 8, 50):
        for slope in (-1.0, 0.0, 0.4):
            expected = noise.spread_noise(n, slope) * (1 - 1 / n)
            assert noise.noise_along(0.0, n, slope) == pytest.approx(expected, rel=1e-6)


def test_states_and_spreads():
    for n in (3, 8, 100):
        a = np.linspace(-0.9, n - 2.001, 30)
        np.testing.assert_allclose(noise.spread_of_state(noise.state_of_spread(a, n), n), a, atol=1e-9)
    assert noise.state_of_spread(0.0, 8) == pytest.approx(7 / 8)
    assert relu_cosine(-1 / 7) == pytest.approx(noise.gram_fluctuations(8).mean[1], abs=1e-12)


def test_messages():
    with pytest.raises(ValueError, match=r"n must be a whole number of samples, got 7\.5\.$"):
        noise.spread_noise(7.5)
    with pytest.raises(ValueError, match="n must be a batch size of at least 3, got 2"):
        noise.gram_fluctuations(2)
    with pytest.raises(ValueError, match="n must be a batch size of at least 4, got 3"):
        noise.noise_along(0.1, 3)
    with pytest.raises(ValueError, match="a must be a spread above -1 and at most n - 2"):
        noise.state_of_spread(7.0, 8)
    with pytest.raises(ValueError, match=r"a is 6\.0; valid is a spread above -1 and below n - 2 = 6"):
        noise.noise_along(6.0, 8)
