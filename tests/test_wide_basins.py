"""Fates of whole batches: both sides of the separatrix, and small batches that cannot escape."""

import numpy as np
import pytest

from bnlib.outlier_fixed_points import outlier_state, separatrix
from bnlib.state_stability import class_distances
from bnlib.wide_basins import Fate, fate, fates, on_the_side, shares, thresholds
from bnlib.wide_batches import batch_from_distances


@pytest.mark.parametrize("n", [7, 8, 24])
def test_the_separatrix_separates(n):
    between = separatrix(n)
    inside = fate(batch_from_distances(class_distances(0.0, between.u * 1.01, n)), 4000)
    outside = fate(batch_from_distances(class_distances(0.0, between.u * 0.99, n)), 4000)
    assert (inside.end, outside.end) == ("symmetric", "outlier")
    assert outside.winner == outside.first == 0
    assert inside.start < between.norm_ratio < outside.start


def test_six_samples_always_return(seed):
    found = fates(np.random.default_rng(seed).standard_normal((3, 6, 3)), 1500)
    assert [f.end for f in found] == ["symmetric"] * 3


def test_too_short_a_path_stays_open():
    start = batch_from_distances(class_distances(0.0, separatrix(8).u, 8))
    assert fate(start, 20).end == "open"
    assert fate(start, 0).layers == 1


def test_thresholds_lie_between_the_states():
    for n in (7, 16, 200):
        low, high = thresholds(n)
        assert 1 < low < separatrix(n).norm_ratio < high < outlier_state(n).norm_ratio
    assert thresholds(5) == (1.001, float("inf"))


def test_summaries():
    found = [
        Fate("outlier", 20, 2.0, 1, 1, 0.0),
        Fate("outlier", 30, 1.2, 2, 0, 0.0),
        Fate("symmetric", 40, 1.1, 0, 0, 0.0),
        Fate("open", 50, 1.4, 0, 0, 0.0),
    ]
    summary = shares(found)
    assert (summary["draws"], summary["outlier"], summary["symmetric"], summary["open"]) == (4, 2, 1, 1)
    assert (summary["first_wins"], summary["layers"]) == (1, 35.0)
    assert on_the_side(found, 1.5) == 2
    with pytest.raises(ValueError, match="found must hold at least one fate"):
        shares([])
