"""Winner-take-all states: the class map against the whole layer, births and stability; bad input."""

import math

import numpy as np
import pytest

from bnlib.homogeneous import homogeneous, instability_degree
from bnlib.homogeneous_layer import homogeneous_transform
from bnlib.two_block import (
    BlockState,
    block_covariance,
    block_growth,
    block_state,
    critical_batch_size,
    distinguished_share,
    group_average,
    log_drift,
    next_block,
    next_ratio,
    onset_degree,
    recentered_outlier_ratio,
    symmetric_slope,
    two_block_states,
    weakest_return,
)

RELU = homogeneous(1)


@pytest.mark.parametrize(("k", "alpha"), [(1, 1), (2, 2), (3, 1.5), (4, 3)])
@pytest.mark.parametrize(("block", "cluster"), [(1.0, 0.3), (0.4, 0.01), (2.0, 1e-5)])
def test_the_class_map_is_the_layer(k, alpha, block, cluster):
    n, phi = 8, homogeneous(alpha, 1, 0.2)
    v = homogeneous_transform(block_covariance(n, k, block, cluster), phi)
    v -= v.mean(axis=0)
    v -= v.mean(axis=1, keepdims=True)
    q = np.r_[np.full(k, 1 / k), np.full(n - k, -1 / (n - k))]
    along = q @ v @ q / (q @ q)
    found = next_block(block, cluster, n, k, phi)
    if k > 1:
        assert found[0] == pytest.approx((v[0, 0] - v[0, 1]) / along, rel=1e-9)
    assert found[1] == pytest.approx((v[-1, -1] - v[-1, -2]) / along, rel=1e-9)
    assert v == pytest.approx(group_average(v, k), abs=1e-12)


def test_slope_at_the_symmetric_state_is_the_multiplier():
    for n, alpha in ((6, 1), (10, 2), (64, 1)):
        phi, step = homogeneous(alpha), 1e-4
        slope = 1 + (log_drift(math.exp(step), n, phi) - log_drift(math.exp(-step), n, phi)) / (2 * step)
        assert slope == pytest.approx(symmetric_slope(n, alpha), abs=1e-6)


def test_relu_has_a_winner_from_52_on():
    critical = critical_batch_size(RELU)
    assert 51 < critical < 52
    assert two_block_states(51, RELU, lowest=-14.0, points=120) == []
    outer, inner = two_block_states(52, RELU, lowest=-14.0, points=120)
    assert outer.slope < 1 < inner.slope
    assert outer.share > inner.share > 1 / 52
    for state in (outer, inner):
        assert next_ratio(state.ratio, 52, RELU) == pytest.approx(state.ratio, rel=1e-9)
    assert critical_batch_size(homogeneous(1, 1, 1), largest=40) is None  # the identity
    assert weakest_return(200, homogeneous(1, 1, 1))[0] > 0


def test_onset_lies_below_the_instability():
    for n in (10,):
        onset = onset_degree(n)
        assert onset < instability_degree(n)
        assert weakest_return(n, homogeneous(onset + 0.01))[0] < 0 < weakest_return(n, homogeneous(onset - 0.01))[0]


def test_one_winner_of_a_square_is_unstable_and_three_are_stable(seed):
    phi, generator = homogeneous(2), np.random.default_rng(seed)
    one, three = block_state(10, 1, phi), block_state(10, 3, phi)
    assert block_growth(10, one, phi, generator) > 1.1
    assert block_growth(10, three, phi, generator) < 0.95
    assert three.inside_cluster == 0 < one.inside_cluster
    assert distinguished_share(one.inside_cluster, 10) == pytest.approx(one.share, rel=1e-6)


def test_tiny_clusters_grow_like_a_square_root():
    for alpha in (1, 2, 30):
        ratio = next_ratio(1e-36, 10, homogeneous(alpha)) / next_ratio(1e-40, 10, homogeneous(alpha))
        assert ratio == pytest.approx(100, rel=0.02)


def test_tiny_clusters_beside_two_winners_keep_their_logarithm():
    # r'/r = A + B log(1/r): a straight line over hundreds of orders of magnitude, also below rounding.
    for alpha in (2, 3):
        ratios = [next_block(1.0, r, 10, 2, homogeneous(alpha))[1] / r for r in (1e-30, 1e-60, 1e-90)]
        assert ratios[1] - ratios[0] == pytest.approx(ratios[2] - ratios[1], rel=1e-6)
        assert ratios[1] > ratios[0]
    bounded = [next_block(1.0, r, 10, 3, homogeneous(2))[1] / r for r in (1e-30, 1e-90)]
    assert bounded[0] == pytest.approx(bounded[1], rel=1e-9)


def test_growth_at_the_symmetric_state(seed):
    growth = block_growth(6, BlockState(1, 1.0, 1.0, 1 / 6, 0.0), homogeneous(1.5), np.random.default_rng(seed))
    assert growth == pytest.approx(symmetric_slope(6, 1.5), abs=0.02)


def test_the_odd_point():
    assert distinguished_share(recentered_outlier_ratio(64), 64) > 0.9


def test_errors(unchecked):
    with pytest.raises(ValueError, match="ratio must be positive and finite, got 0"):
        next_ratio(0, 8, RELU)
    with pytest.raises(ValueError, match="n must be a batch size of at least 3, got 2"):
        next_block(1, 1, 2, 1, RELU)
    with pytest.raises(ValueError, match="k must lie between 1 and 6, got 7"):
        next_block(1, 1, 8, 7, RELU)
    with pytest.raises(ValueError, match="k must lie between 1 and 3, got 0"):
        block_covariance(5, 0, 1, 1)
    with pytest.raises(ValueError, match="inside_cluster must be positive and finite, got nan"):
        next_block(1, math.nan, 8, 2, RELU)
    for function in (two_block_states, weakest_return):
        with pytest.raises(ValueError, match="at least 5, got 4"):
            function(4, RELU)
    with pytest.raises(ValueError, match="at least 5, got 4"):
        block_state(4, 1, RELU)
    with pytest.raises(ValueError, match="points must be at least 4"):
        two_block_states(8, RELU, points=2)
    with pytest.raises(ValueError, match="steps must be at least 6, got 2"):
        block_growth(6, BlockState(1, 1.0, 1.0, 0.2, 0.0), RELU, np.random.default_rng(0), steps=2)
    with pytest.raises(ValueError, match="ratio must be at least 0"):
        distinguished_share(-1, 8)
    with pytest.raises(ValueError, match="n must be a batch size of at least 3"):
        distinguished_share(1, 2)
    with pytest.raises(ValueError, match="largest must be at least 5"):
        critical_batch_size(RELU, 2)
