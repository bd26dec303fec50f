"""Gradients at states with winners: against a naive Monte Carlo, the symmetric limit, refusals."""

import math

import numpy as np
import pytest

from bnlib import broken_symmetry_gradients as broken
from bnlib import seeds
from bnlib.activations import activation, power_relu
from bnlib.mean_field import gradient_growth, symmetric_fixed_point
from bnlib.two_block import BlockState, block_covariance

RELU = activation("relu")


def naive_table(phi, covariance, k, draws, rng):
    """tr(P_a C P_b C^T) / tr P_a with every matrix written out."""
    n = len(covariance)
    m = n - k
    q = np.r_[np.full(k, 1 / k), np.full(m, -1 / m)] * math.sqrt(k * m / n)
    cluster = np.diag(np.r_[np.zeros(k), np.ones(m)])
    cluster[k:, k:] -= 1 / m
    block = np.diag(np.r_[np.ones(k), np.zeros(m)])
    block[:k, :k] -= 1 / k
    projections = [np.outer(q, q), cluster, block]
    values, vectors = np.linalg.eigh(covariance)
    h = (vectors * np.sqrt(np.maximum(values, 0))) @ rng.standard_normal((n, draws))
    total = np.zeros((3, 3))
    for one in h.T:
        one = one - one.mean()
        size = np.linalg.norm(one)
        v = one / size
        layer = (np.eye(n) - 1 / n - np.outer(v, v)) * phi.derivative(math.sqrt(n) * v)
        for a in range(3):
            for b in range(3):
                trace = np.trace(projections[a] @ layer @ projections[b] @ layer.T)
                total[a, b] += n / size**2 * trace / np.trace(projections[a])
    return total / draws


def test_map_is_that_of_written_out_matrices():
    n, k, draws = 9, 3, 40
    covariance = block_covariance(n, k, 0.8, 0.3)
    naive = naive_table(power_relu(1.5), covariance, k, draws, np.random.default_rng(1))
    values, vectors = np.linalg.eigh(covariance)
    h = (vectors * np.sqrt(np.maximum(values, 0))) @ np.random.default_rng(1).standard_normal((n, draws))
    assert np.allclose(broken._one_part(power_relu(1.5), h, k), naive, rtol=1e-9)


def test_symmetric_state_has_the_known_growth(seed):
    n = 12
    covariance = symmetric_fixed_point(RELU, n).centered * (np.eye(n) - 1 / n)
    for k in (1, 4):  # any grouping is right there
        found = broken.block_growth_rate(RELU, covariance, k, 20000, np.random.default_rng(seed))
        assert abs(found.mean - gradient_growth(RELU, n)) < 5 * found.error
        assert abs(found.mean - gradient_growth(RELU, n) * (n - 3) / (n - 1)) > 5 * found.error


def test_scale_is_that_of_one_layer():
    symmetric = BlockState(1, 1.0, 1.0, 1 / 8, 0.0)
    covariance = broken.state_covariance(8, symmetric, 1)
    mu = symmetric_fixed_point(RELU, 8).centered
    assert np.allclose(covariance, mu * (np.eye(8) - 1 / 8), atol=1e-10)
    with pytest.raises(ValueError, match="state must be a fixed point"):
        broken.state_covariance(8, BlockState(1, 1.0, 0.2, 0.5, 0.0), 1)


def test_networks_at_a_winner_take_all_state(seed):
    rows = broken.broken_rows([(64, 1, 1)], [64, 128], 5, 12, 10000, lambda *key: seeds.generator(seed, *key))
    row = rows[0]
    assert row["comparable"]
    assert abs(row["z"]) < 5
    assert row["theory"] - 5 * row["error"] > 1.3
    assert abs(row["network"] - 1.2) > 5 * row["network_error"]


def test_refusals():
    with pytest.raises(ValueError, match="one winner is a fixed point, got 20 for degree 1"):
        broken.broken_state(20, 1, 1)
    with pytest.raises(ValueError, match="k must lie between 1 and 6, got 7"):
        broken.block_growth_rate(RELU, np.eye(8), 7, 100, np.random.default_rng(0))
    with pytest.raises(ValueError, match="draws must be at least 50, got 10"):
        broken.block_growth_rate(RELU, np.eye(8), 2, 10, np.random.default_rng(0))
