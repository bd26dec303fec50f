"""Several outliers: fixed points, their instability, and where they begin."""

import math

import numpy as np
import pytest

from bnlib.infinite_width import batch_from_distances, batches, view
from bnlib.many_outliers import (
    collapsed_outlier_multiplier,
    many_outlier_saddle_node,
    many_outlier_states,
    unstable_counts,
)
from bnlib.outlier_class import next_class_state
from bnlib.outlier_fixed_points import outlier_state
from bnlib.state_stability import class_distances


@pytest.mark.parametrize(("n", "k"), [(9, 2), (12, 3), (20, 5), (24, 8), (64, 6)])
def test_states_are_fixed_points_with_k_minus_one_and_k_ways_out(n, k):
    states = many_outlier_states(n, k)
    assert [state.unstable_directions for state in states] == [k - 1, k]
    for state in states:
        p, u, _ = next_class_state(state.p, state.u, n, k)
        assert (p, u) == pytest.approx((state.p, state.u), rel=1e-9)
        assert state.norm_ratio > 1
        assert state.residual < 1e-10
    assert states[0].unstable_blocks == {"outliers": k - 1}
    assert states[1].unstable_blocks == {"class": 1, "outliers": k - 1}


def test_states_of_a_majority_are_the_same_seen_from_the_others():
    few, many = many_outlier_states(12, 3), many_outlier_states(12, 9)
    for state in few:
        assert any((s.p, s.u) == pytest.approx((state.u, state.p), rel=1e-8) for s in many)


@pytest.mark.parametrize(("n", "k"), [(8, 2), (11, 3), (13, 4), (7, 3)])
def test_small_batches_have_none(n, k):
    assert many_outlier_states(n, k) == []


@pytest.mark.parametrize("k", [2, 3, 5])
def test_saddle_node_separates(k):
    n = many_outlier_saddle_node(k)
    assert many_outlier_states(n - 0.02, k) == []
    pair = many_outlier_states(n + 0.02, k)
    assert len(pair) == 2
    far = many_outlier_states(n + 0.08, k)
    gap, wide = (math.log(states[0].norm_ratio / states[1].norm_ratio) for states in (pair, far))
    assert wide / gap == pytest.approx(2, rel=0.05)  # like a square root


def test_the_larger_of_two_outliers_wins():
    """The unstable direction is a race: lengthen one of two equal outliers a little and only that one is left."""
    n, state = 16, many_outlier_states(16, 2)[0]
    squared = class_distances(state.p, state.u, n, 2)
    squared[0, 1:] *= 1.001
    squared[1:, 0] *= 1.001
    *_, last = batches(batch_from_distances(squared), 600)
    seen = view(last)
    assert seen.index == 0
    assert seen.norm_ratio == pytest.approx(outlier_state(n).norm_ratio, rel=1e-8)


def test_coinciding_outliers_separate():
    """A pair at a distance of 1e-6: one layer multiplies its squared distance by the stated factor, scale removed."""
    n, k, u = 12, 3, 0.3
    tiny = 1e-12
    p, _, _ = next_class_state(tiny, u, n, k)
    assert p / tiny == pytest.approx(collapsed_outlier_multiplier(n, k, u), rel=1e-5)
    assert all(collapsed_outlier_multiplier(n, k, u) > 1 for u in (0.01, 0.5, 3.0))


def test_counts():
    table = unstable_counts([8, 12, 24], [2, 3, 4])
    np.testing.assert_array_equal(table, [[math.nan] * 3, [1, 2, math.nan], [1, 2, 3]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: many_outlier_states(8, 1), "k must be at least 2"),
        (lambda: many_outlier_states(8, 7), "k must be 1 or a number of distinguished samples between 2 and n - 2"),
        (lambda: many_outlier_states(2, 2), "n must be a batch size of at least 3"),
        (lambda: many_outlier_saddle_node(1), "k must be a number of outliers of at least 2, got 1"),
        (lambda: many_outlier_saddle_node(math.inf), "k must be a number of outliers"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
