"""Two batches: the global map against draws and its slope, convexity, backward rates; bad input."""

import math
from itertools import pairwise

import numpy as np
import pytest

from bnlib.activations import activation, leaky_relu
from bnlib.cross_batch import (
    backward_correlation,
    correlation_map,
    correlation_path,
    direction_correlation,
    largest_decay,
    mutual_information,
)
from bnlib.gegenbauer import gegenbauer
from bnlib.mean_field import cross_batch_decay, symmetric_fixed_point
from bnlib.mean_field_survey import normalize


def _pairs(n, rho, draws, generator):
    one, other = generator.standard_normal((2, draws, n))
    return normalize(one[..., None])[..., 0], normalize((rho * one + math.sqrt(1 - rho**2) * other)[..., None])[..., 0]


@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_directions_against_draws(rho, seed):
    n, draws = 6, 40_000
    one, other = _pairs(n, rho, draws, np.random.default_rng(seed))
    values = gegenbauer(np.clip((one * other).mean(axis=1), -1, 1), 4, n)
    error = values.std(axis=1, ddof=1) / math.sqrt(draws)
    for degree in range(1, 5):
        assert abs(values[degree].mean() - direction_correlation(rho, degree, n)) < 5 * error[degree]
    assert abs(values[1].mean() - rho) > 5 * error[1]  # power: directions are less correlated than the vectors


@pytest.mark.parametrize("name", ["relu", "tanh", "square"])
def test_the_map_against_draws(name, seed):
    n, draws, rho, phi = 7, 40_000, 0.7, activation(name)
    one, other = _pairs(n, rho, draws, np.random.default_rng(seed))
    f, g = phi(one), phi(other)
    f, g = f - f.mean(axis=1, keepdims=True), g - g.mean(axis=1, keepdims=True)
    ratio = (f * g).sum(axis=1) / ((n - 1) * symmetric_fixed_point(phi, n).centered)
    error = ratio.std(ddof=1) / math.sqrt(draws)
    assert abs(ratio.mean() - correlation_map(phi, n, rho)) < 5 * error + 2e-4
    assert abs(ratio.mean() - rho) > 5 * error


@pytest.mark.parametrize("n", [4, 8, 40])
def test_slope_convexity_and_ends(n):
    grid = np.linspace(0, 1, 21)
    for phi in (activation("relu"), activation("sin"), leaky_relu(0.5), activation("identity")):
        values = correlation_map(phi, n, grid)
        assert values[0] == 0
        assert values[-1] == pytest.approx(1, abs=1e-12)
        assert (np.diff(values, 2) > -1e-12).all()
        assert (values[1:-1] < grid[1:-1]).all()
        assert correlation_map(phi, n, 1e-7) / 1e-7 == pytest.approx(cross_batch_decay(phi, n), abs=1e-6)


def test_the_identity_keeps_most():
    for n in (4, 8, 64):
        assert cross_batch_decay(activation("identity"), n) == pytest.approx(largest_decay(n), abs=1e-12)
        assert cross_batch_decay(activation("erf-like"), n) < largest_decay(n) < 1
    shifted = type(activation("identity"))("3 x + 1", lambda x: 3 * x + 1, lambda x: 3 + 0 * x)
    assert cross_batch_decay(shifted, 8) == pytest.approx(largest_decay(8), abs=1e-12)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_backward_and_forward_rates_agree(name, seed):
    phi = activation(name)
    value, error = backward_correlation(phi, 9, 40_000, np.random.default_rng(seed))
    assert abs(value - cross_batch_decay(phi, 9)) < 5 * error
    assert abs(value - largest_decay(9)) > 5 * error


def test_information_falls():
    path = correlation_path(activation("relu"), 8, 0.9, 5)
    information = [mutual_information(rho, 8) for rho in path]
    assert all(a > b for a, b in pairwise(information))
    assert mutual_information(0.6, 3) == pytest.approx(-math.log(0.8) * 2)


def test_errors(unchecked):
    with pytest.raises(ValueError, match="rho must lie between 0 and 1"):
        direction_correlation(1.1, 1, 8)
    with pytest.raises(ValueError, match="degree must be at least 0, got -1"):
        direction_correlation(0.5, -1, 8)
    with pytest.raises(ValueError, match="at least 3, got 2"):
        correlation_map(activation("relu"), 2, 0.5)
    with pytest.raises(ValueError, match="two equal batches share infinitely much"):
        mutual_information(1.0, 8)
    for function in (lambda: largest_decay(1), lambda: mutual_information(0.5, 1)):
        with pytest.raises(ValueError, match="n must be a batch size of at least 2, got 1"):
            function()
    with pytest.raises(ValueError, match="draws must be at least 2"):
        backward_correlation(activation("relu"), 8, 1, np.random.default_rng(0))
