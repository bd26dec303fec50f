"""Two batches through a layer: the one-parameter class, draws, the linearization, bad input."""

import math

import numpy as np
import pytest

from bnlib.activations import activation
from bnlib.cross_batch import correlation_map
from bnlib.mean_field import relu_cross_batch_constant, relu_cross_batch_decay, relu_symmetric_fixed_point
from bnlib.two_batches import (
    symmetric_basis,
    symmetric_pair,
    two_batch_jacobian_facts,
    two_batch_layer,
    two_batch_path,
)


@pytest.mark.parametrize("n", [4, 5])
def test_the_class_of_one_correlation(n):
    g, mu = np.eye(n) - 1 / n, relu_symmetric_fixed_point(n).centered
    independent = two_batch_layer(symmetric_pair(n))
    assert independent[:n, n:] == pytest.approx(np.full((n, n), relu_cross_batch_constant(n)), abs=1e-9)
    for rho in (0.3, 0.8):
        between = g @ two_batch_layer(symmetric_pair(n, rho))[:n, n:] @ g
        assert between == pytest.approx(correlation_map(activation("relu"), n, rho, 100) * mu * g, abs=1e-7)


@pytest.mark.parametrize("slope", [0.0, -0.4])
def test_against_draws(slope, seed):
    generator = np.random.default_rng(seed)
    n, draws = 4, 20_000
    x = generator.standard_normal((2 * n, 7)) * np.exp(0.5 * generator.standard_normal((2 * n, 1)))
    h = generator.standard_normal((draws, 7)) @ x.T

    def values(part):
        part = part - part.mean(axis=1, keepdims=True)
        b = part / np.sqrt((part**2).mean(axis=1, keepdims=True))
        return np.where(b > 0, b, slope * b)

    products = values(h[:, :n])[:, :, None] * values(h[:, n:])[:, None, :]
    error = products.std(axis=0, ddof=1) / math.sqrt(draws)
    found = two_batch_layer(x @ x.T, slope)
    assert (np.abs(products.mean(axis=0) - found[:n, n:]) < 5 * error).all()
    assert found == pytest.approx(found.T)
    if slope == 0:
        wrong = relu_cross_batch_constant(n)  # power: independent batches are told apart
        assert (np.abs(products.mean(axis=0) - wrong) > 5 * error).any()


def test_the_linearization():
    found = two_batch_jacobian_facts(4)
    assert found["diagonal_from_between"] < 1e-9
    assert found["between_nonzero"] == 9
    for key in ("own_spectrum_error", "between_error", "whole_error", "centering_error"):
        assert found[key] < 1e-5, key


def test_path(seed):
    x = np.random.default_rng(seed).standard_normal((8, 8))
    x[4:] = x[:4] + 0.2 * x[4:]
    path = two_batch_path(x @ x.T, 12)
    assert path[-1]["centered"] < path[0]["centered"] / 3
    assert path[-1]["centered"] / path[-2]["centered"] == pytest.approx(relu_cross_batch_decay(4), abs=0.12)
    assert len(symmetric_basis(4)) == 36


def test_errors(unchecked):
    for bad, sentence in (
        (np.eye(6), "two batches of at least 4 samples each"),
        (np.eye(9), "two batches of at least 4 samples each"),
        (np.full((8, 8), np.nan), "must be finite"),
        (np.diag([1.0] * 7 + [-1]), "must be positive semi-definite"),
        (np.kron(np.eye(2), np.diag([1.0, 0, 0, 0])), "must have rank at least 3 after centering, got 1"),
    ):
        with pytest.raises(ValueError, match=sentence):
            two_batch_layer(bad)
    with pytest.raises(ValueError, match="slope must be finite"):
        two_batch_layer(np.eye(8), math.inf)
    with pytest.raises(ValueError, match="layers must be at least 1"):
        two_batch_path(np.eye(8), 0)
    with pytest.raises(ValueError, match="correlation must lie between 0 and 1, got 2"):
        symmetric_pair(4, 2)
    with pytest.raises(ValueError, match="at least 4, got 3"):
        symmetric_pair(3)
