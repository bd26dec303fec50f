"""Summaries of Figure 2's cells: counts with intervals, Welch's interval, what is left out."""

import math

import numpy as np
import pytest
from scipy.stats import binom, ttest_ind

from bnlib.rank_summaries import (
    cell_summary,
    contraction,
    count_interval,
    counted,
    differences_in_test,
    mean_difference,
)


def cell(**changed):
    return {
        "rank": {"0.01": [1, 2, 1], "1e-05": [1, 9, 3]},
        "effective": {"entropy": [1.0, 2.0, 3.0]},
        "live_neurons": [10, 10, 4],
        "train": [1.0, None, 0.99],
        "grid": [{"accuracy_max": 0.5}, {"accuracy_max": 0.7}],
        "deviation": [[1.0]],
        "deviation_norm": [[1.0]],
        **changed,
    }


def test_summary_by_hand():
    found = cell_summary(cell())
    assert found["rank_mean"] == {"0.01": 4 / 3, "1e-05": 13 / 3}
    lost = [0.9, 0.1, 0.25]  # the finest tolerance, network by network
    assert found["lost_mean"] == pytest.approx(np.mean(lost))
    assert found["lost_error"] == pytest.approx(np.std(lost, ddof=1) / math.sqrt(3))
    assert found["lost_max"] == pytest.approx(0.9)
    assert (found["trained_count"], found["networks"], found["train_median"]) == (2, 3, 0.99)
    assert found["rank_one_count"] == 1  # the third network has rank one at the coarse tolerance only
    assert found["grid_max"] == 0.7
    assert not any(key.startswith("deviation") for key in found)


def test_a_network_of_silent_neurons_has_lost_everything():
    found = cell_summary(cell(rank={"0.01": [0, 0, 0]}, live_neurons=[0, 0, 0]))
    assert (found["lost_mean"], found["rank_one_count"]) == (1.0, 0)


@pytest.mark.parametrize(("count", "networks"), [(0, 5), (3, 5), (5, 5), (8, 20), (20, 20)])
def test_count_interval_has_its_error_on_each_side(count, networks):
    found = count_interval(count, networks, "x")
    if count > 0:
        assert binom.sf(count - 1, networks, found["x_low"]) == pytest.approx(0.05)
    else:
        assert found["x_low"] == 0
    if count < networks:
        assert binom.cdf(count, networks, found["x_high"]) == pytest.approx(0.05)
    else:
        assert found["x_high"] == 1


def test_difference_is_welchs(seed):
    source = np.random.default_rng(seed)
    one, two = source.normal(1, 0.1, 5), source.normal(0.5, 0.5, 8)
    found = mean_difference(one.tolist(), two.tolist())
    wanted = ttest_ind(one, two, equal_var=False).confidence_interval(0.99)
    assert (found["low"], found["high"]) == pytest.approx((wanted.low, wanted.high))
    pooled = ttest_ind(one, two).confidence_interval(0.99)
    assert found["high"] != pytest.approx(pooled.high)  # equal variances would be another interval


def test_difference_of_constants_and_of_too_few():
    found = mean_difference([1.0] * 3, [0.5] * 4)
    assert (found["difference"], found["low"], found["high"]) == (0.5, 0.5, 0.5)
    assert mean_difference([1.0, 1.0], [0.5] * 4) == {
        "first": 2,
        "second": 4,
        "judged": False,
        "difference": None,
        "error": None,
        "low": None,
        "high": None,
    }


def test_only_trained_networks_count_where_asked():
    one = {"depth": 16, "train": [1.0, 0.99, 1.0, 1.0], "test": [0.9, 0.92, 0.94, 0.96]}
    two = {"depth": 16, "train": [1.0, 1.0, 0.995, None, 0.98], "test": [0.9, 0.91, 0.92, None, 0.5]}
    (every,) = differences_in_test([one], [two], trained_only=False)
    (trained,) = differences_in_test([one], [two], trained_only=True)
    assert (every["first"], every["second"], trained["first"], trained["second"]) == (4, 5, 4, 3)
    assert every["difference"] == pytest.approx(0.93 - 0.646)
    assert trained["difference"] == pytest.approx(0.93 - 0.91)
    assert every["depth"] == 16


def test_divergence_counts_as_zero():
    assert counted([None, 0.5]) == [0.0, 0.5]


def test_errors():
    with pytest.raises(ValueError, match="cell must have at least 2 hidden layers, got 1"):
        contraction({"configuration": "He", "deviation_norm": [[1.0], [1.0]], "deviation": [[1.0], [1.0]]})
    with pytest.raises(ValueError, match="count must be from 0 to draws, got 6 of 5"):
        count_interval(6, 5, "x")
