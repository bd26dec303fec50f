"""Between recentering alone and batch normalization: both ends, averages over draws in the middle, bad input."""

import math

import numpy as np
import pytest

from bnlib import outlier_fixed_points as recentered
from bnlib import two_block
from bnlib.homogeneous import homogeneous
from bnlib.rescaling_bridge import branch, bridge_state, fold, log_drift, tilted_rule
from bnlib.two_block import block_covariance


@pytest.mark.parametrize("t", [0.0625, 0.3, 1.0])
def test_the_rule_integrates_powers_of_the_length(t):
    s, weights = tilted_rule(np.array([0.3]), np.array([9.0]), t)
    # E[y_1^2 |y|^(-2t)] = E|y|^(2-2t) / 9, y with 9 coordinates of variance 0.3
    moment = 0.6 ** (1 - t) * math.gamma(5.5 - t) / math.gamma(4.5) / 9
    assert weights @ (s * 0.3 / (1 + 0.6 * s)) == pytest.approx(moment, rel=1e-10)


def _drawn(ratio, n, t, generator, draws=100_000, parts=20):
    values, vectors = np.linalg.eigh(block_covariance(n, 1, 1.0, ratio))
    root = vectors * np.sqrt(np.maximum(values, 0))
    found = []
    for _ in range(parts):
        y = generator.standard_normal((draws // parts, n)) @ root.T
        f = np.maximum(y, 0) * ((y**2).sum(axis=1) ** (-t / 2))[:, None]
        k = f.T @ f
        k -= k.mean(axis=0)
        k -= k.mean(axis=1, keepdims=True)
        along = k[0, 0] * n / (n - 1)
        found.append(math.log((np.trace(k) - along) / (n - 2) / along / ratio))
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(parts)


def test_against_draws(seed):
    mean, error = _drawn(0.05, 8, 0.5, np.random.default_rng(seed))
    assert abs(mean - log_drift(0.05, 8, 0.5)) < 5 * error + 2e-4  # of order 1/draws: the logarithm of a mean
    assert abs(mean - log_drift(0.05, 8, 1)) > 5 * error  # power: the wrong stage


def test_the_two_ends_are_known():
    relu = homogeneous(1)
    for ratio in (1e-8, 1e-3, 0.5):
        assert log_drift(ratio, 20, 1) == pytest.approx(two_block.log_drift(ratio, 20, relu), abs=1e-9)
        assert log_drift(ratio, 20, 0) == pytest.approx(recentered.log_drift(ratio * 19 / 20, 20), abs=1e-12)
    assert fold(0) == pytest.approx(recentered.saddle_node().n, abs=1e-5)
    assert fold(1) == pytest.approx(two_block.critical_batch_size(relu), abs=1e-4)
    assert bridge_state(64, 0).ratio == pytest.approx(two_block.recentered_outlier_ratio(64), rel=1e-9)
    assert bridge_state(64, 0).norm_ratio == pytest.approx(recentered.outlier_state(64).norm_ratio, rel=1e-9)
    outer = two_block.two_block_states(64, relu, lowest=-14.0, points=120)[0]
    assert bridge_state(64, 1).ratio == pytest.approx(outer.ratio, rel=1e-9)
    assert bridge_state(64, 1).slope == pytest.approx(outer.slope, abs=1e-6)


def test_bsb1_is_a_fixed_point_at_every_stage():
    for t in (0, 0.1, 0.5, 1):
        assert abs(log_drift(1.0, 12, t)) < 1e-10


def test_the_branch():
    rows = branch(40, 2)
    assert [row["t"] for row in rows] == [0, 0.5, 1]
    assert rows[-1]["ratio"] is None  # 40 samples have no winner under full batch normalization
    assert rows[0]["slope"] < 1 > rows[1]["slope"]
    assert rows[0]["fold"] < rows[1]["fold"] < rows[2]["fold"]


def test_errors(unchecked):
    with pytest.raises(ValueError, match=r"t must be 0 or lie between 0.0625 and 1, got 0.01"):
        log_drift(0.1, 8, 0.01)
    with pytest.raises(ValueError, match="got nan"):
        tilted_rule(np.ones(1), np.ones(1), math.nan)
    with pytest.raises(ValueError, match="n must be a batch size of at least 5, got 4"):
        bridge_state(4, 1)
    with pytest.raises(ValueError, match="stages must lie between 1 and 16, got 17"):
        branch(64, 17)
