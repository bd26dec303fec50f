"""Half of batch normalization: maps against matrices written out, exact limits, messages."""

import math

import numpy as np
import pytest

from bnlib import half_normalization as half
from bnlib.kernels import rms_fixed_point


def test_symmetric_state_against_the_iterated_maps():
    for n in (4, 8, 32):
        found, exact = half.recentered_relu_rates_at(np.eye(n)), half.recentered_relu_rates(n)
        assert found.forward == pytest.approx(exact.forward, rel=1e-12)
        assert found.gradient == pytest.approx(exact.gradient, rel=1e-12)


def test_ratio_does_not_depend_on_the_weight_variance():
    assert half.recentered_relu_rates(8, 1.0).relative == pytest.approx(half.recentered_relu_rates(8, 5.0).relative)
    start = half.outlier_start(8)
    one, five = half.recentered_relu_rates_at(start, 1.0), half.recentered_relu_rates_at(start, 5.0)
    assert one.relative == pytest.approx(five.relative)
    assert five.gradient == pytest.approx(5 * one.gradient)


def test_state_is_reproduced_by_a_sample_of_neurons(seed):
    state, forward = half.recentered_relu_state(half.outlier_start(12))
    generator = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(state)
    h = (vectors * np.sqrt(np.maximum(values, 0))) @ generator.standard_normal((12, 200000))
    after = np.maximum(h, 0)
    after -= after.mean(axis=0)
    traces = (after**2).sum(axis=0)
    error = traces.std(ddof=1) / math.sqrt(traces.size)
    assert abs(traces.mean() - forward) < 5 * error
    assert abs(traces.mean() - half.recentered_relu_rates(12, 1.0).forward) > 5 * error  # the symmetric state's
    assert np.allclose(after @ after.T / traces.size / forward, state, atol=0.02)


def test_outlier_needs_a_start_in_its_basin_and_enough_samples():
    symmetric = half.recentered_relu_rates(16)
    assert half.recentered_relu_rates_at(half.outlier_start(16)).relative < 1.2 < symmetric.relative
    assert half.recentered_relu_rates_at(half.outlier_start(16, 1.01)).relative == pytest.approx(symmetric.relative)
    few = half.recentered_relu_rates_at(half.outlier_start(5)).relative  # no outlier state below seven samples
    assert few == pytest.approx(half.recentered_relu_rates(5).relative)


def test_rescaling_against_matrices_written_out(seed):
    n, cosine = 6, math.cos(rms_fixed_point(6).value)
    rates, error = half.rescaled_relu_rates(n, cosine, 40000, np.random.default_rng(seed))
    generator = np.random.default_rng(seed + 1000)
    ones, matrices = np.ones((n, n)), []
    for _ in range(6000):
        h = math.sqrt(1 - cosine) * generator.standard_normal(n) + math.sqrt(cosine) * generator.standard_normal()
        s = math.sqrt(h @ h / n)
        backward = (np.eye(n) - np.outer(h, h) / (n * s**2)) / s @ np.diag((h > 0).astype(float))
        images = [2 * backward @ pi @ backward.T for pi in (np.eye(n), ones)]
        matrices.append([[np.trace(one) for one in images], [one.sum() for one in images]])
    to_features = np.array([[n, n], [n, n * n]], dtype=float)
    groups = np.array(matrices).reshape(20, 300, 2, 2).mean(axis=1)
    naive = [max(np.linalg.eigvals(np.linalg.solve(to_features, one)).real) for one in groups]
    spread = np.std(naive, ddof=1) / math.sqrt(20)
    assert abs(np.mean(naive) - rates.gradient) < 5 * math.hypot(spread, error) + 0.02
    assert error < 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: half.recentered_relu_rates(1), "n must be a batch size of at least 2, got 1"),
        (lambda: half.recentered_relu_state(np.ones((3, 3))), "they are all equal"),
        (lambda: half.recentered_relu_state(np.eye(1)), "square matrix of at least two rows"),
        (lambda: half.rescaled_relu_rates(8, 1.0, 1000, np.random.default_rng(0)), "cosine must be from 0 to below 1"),
        (lambda: half.rescaled_relu_rates(8, 0.5, 10, np.random.default_rng(0)), "draws must be at least 100, got 10"),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()
