"""Paired differences: naive references, coverage, missing values, sign test, errors."""

import math
import statistics

import numpy as np
import pytest

from bnlib.paired import paired_difference, paired_times, sign_test


def test_against_plain_statistics():
    first, second = [1.0, 4.0, 2.0, 8.0, 5.0, 7.0, 1.0], [2.0, 3.0, 5.0, 9.0, 9.0, 7.0, 0.5]
    changes = [b - a for a, b in zip(first, second, strict=True)]
    found = paired_difference(first, second)
    assert found["mean"] == pytest.approx(statistics.mean(changes))
    assert found["median"] == statistics.median(changes)
    assert found["standard_error"] == pytest.approx(statistics.stdev(changes) / math.sqrt(7))
    # Student's 97.5 percent point at six degrees of freedom is in every table.
    assert found["mean_high"] - found["mean"] == pytest.approx(2.446912 * found["standard_error"], rel=1e-6)
    assert (found["positive"], found["negative"], found["pairs"]) == (4, 2, 7)
    assert (found["low"], found["high"]) == (min(changes), max(changes))


def test_missing_values_drop_their_pair_only():
    found = paired_difference([1.0, None, 3.0, math.nan], [2.0, 9.0, None, 1.0])
    assert (found["pairs"], found["mean"], found["standard_error"], found["mean_low"]) == (1, 1.0, None, None)
    empty = paired_difference([], [])
    assert (empty["pairs"], empty["mean"], empty["median"], empty["low"]) == (0, None, None, None)


def test_coverage(seed):
    generator = np.random.default_rng(seed)
    runs, hits, wrong = 400, 0, 0
    for _ in range(runs):
        base = 10 * generator.normal(size=12)
        found = paired_difference(base.tolist(), (base + 1 + generator.normal(size=12)).tolist())
        hits += found["mean_low"] <= 1 <= found["mean_high"]
        wrong += found["mean_low"] <= 0 <= found["mean_high"]
    error = math.sqrt(0.95 * 0.05 / runs)
    assert abs(hits / runs - 0.95) < 5 * error
    assert abs(wrong / runs - 0.95) > 5 * error  # a difference that is not there is told


def test_times():
    found = paired_times([5, 5, None, None, 7], [4, 6, 9, None, None])
    assert (found["sooner"], found["later"], found["ties"]) == (2, 2, 1)
    assert found["p_value"] == 1.0
    assert paired_times([2] * 8, [1] * 8)["p_value"] == pytest.approx(2 / 2**8)
    assert paired_times([None], [None])["p_value"] == 1.0


def test_errors():
    with pytest.raises(ValueError, match="second has 1 entries; valid is one for each of the 2 in first"):
        paired_difference([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="second has 0 entries"):
        paired_times([1], [])


def test_sign_test_is_the_binomial_tail_on_both_sides():
    for told in (1, 5, 12):
        for hits in range(told + 1):
            tail = sum(math.comb(told, k) for k in range(min(hits, told - hits) + 1)) / 2**told
            assert sign_test(hits, told) == pytest.approx(min(1.0, 2 * tail))
    assert sign_test(0, 0) == 1.0
    for hits in (-1, 3):
        with pytest.raises(ValueError, match=f"hits is {hits} of 2 pairs; valid is a number from 0"):
            sign_test(hits, 2)
