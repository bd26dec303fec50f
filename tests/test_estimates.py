"""Intervals that assume no distribution: exact coverage, censoring, growth laws with known answers."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from bnlib.estimates import (
    censored_quantile,
    growth,
    kept_summary,
    median_interval,
    onset_per_doubling,
    onset_summary,
    quantile,
    share_interval,
    survival,
    survival_median,
)


def rng(seed):
    return np.random.default_rng(seed)


# --- medians ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [6, 7, 8, 9, 10, 31, 32, 48, 64, 199, 200])
def test_median_interval_has_the_largest_rank_that_keeps_the_coverage(count):
    low, high = median_interval(np.arange(1.0, count + 1))
    rank = int(low)
    assert high == count + 1 - rank
    tail = [sum(math.comb(count, j) for j in range(k)) / 2**count for k in (rank, rank + 1)]
    assert tail[0] <= 0.025 < tail[1]


def test_median_interval_covers_the_median_of_a_skewed_law(seed):
    trials, count = 4000, 20
    values = rng(seed).exponential(size=(trials, count))
    intervals = [median_interval(row) for row in values]
    covered = np.mean([low <= math.log(2) <= high for low, high in intervals])
    exact = 1 - 2 * binom.cdf(5, count, 0.5)
    error = math.sqrt(exact * (1 - exact) / trials)
    assert abs(covered - exact) < 5 * error
    # The same test rejects an interval that takes one rank too many off each end.
    narrower = np.mean([low <= math.log(2) <= high for low, high in np.sort(values)[:, [6, 13]]])
    assert abs(narrower - exact) > 5 * error


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0, 4.0, 5.0], [math.nan] * 30])
def test_median_interval_of_too_few_values_is_unknown(values):
    assert median_interval(values) == (None, None)


def test_median_interval_keeps_infinities_as_late_and_drops_nan():
    assert median_interval([1.0, 2.0, 3.0, math.inf, math.inf, math.inf, math.nan]) == (1.0, None)


def test_median_interval_of_ties():
    assert median_interval([5.0] * 40) == (5.0, 5.0)


def test_quantile_leaves_out_what_is_not_finite():
    assert quantile([1.0, math.nan, 3.0, math.inf, -math.inf], 0.5) == 2.0
    assert quantile([], 0.5) is None
    assert quantile([math.nan], 0.1) is None


def test_quantile_refuses_a_level_outside():
    with pytest.raises(ValueError, match=r"level is 1\.5; valid is a number from 0 to 1\."):
        quantile([1.0], 1.5)


# --- censored times -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_censored_quantile_is_the_first_time_by_which_the_share_has_passed(seed, level):
    generator = rng(seed)
    times = [None if t > 70 else int(t) for t in generator.integers(1, 100, size=37)]
    observed = sorted(t for t in times if t is not None)
    naive = next((float(t) for t in observed if sum(s <= t for s in observed) >= level * len(times)), None)
    assert censored_quantile(times, level) == naive


def test_censored_quantile_does_not_drop_the_censored():
    times = [10, 20, None, None, None]
    assert censored_quantile(times, 0.5) is None
    assert censored_quantile([10, 20], 0.5) == 10.0  # what dropping them would give


def test_censored_quantile_errors():
    with pytest.raises(ValueError, match=r"times is empty; valid is at least one draw\."):
        censored_quantile([], 0.5)
    with pytest.raises(ValueError, match=r"level is 1\.0; valid is a number between 0 and 1\."):
        censored_quantile([1], 1.0)


def test_onset_summary_counts():
    found = onset_summary([12, None, 14, 15, None, 17, 18, 19], [True] + [False] * 6 + [True], latest=17)
    assert found["draws"] == 8
    assert found["censored"] == 2
    assert found["settled"] == 4
    assert found["returned"] == 1  # the return after the onset at 19 does not count
    assert (found["returned_low"], found["returned_high"]) == share_interval(1, 4)
    assert found["median"] == 17.0
    assert (found["low"], found["high"]) == (12.0, None)
    assert found["quartile_3"] == 19.0


def test_onset_summary_refuses_lists_of_different_lengths():
    with pytest.raises(ValueError, match=r"returned has 1 entries; valid is one for each of the 2 onsets\."):
        onset_summary([1, 2], [False], latest=5)


def test_onset_summary_says_nothing_about_returns_that_could_not_be_seen():
    found = onset_summary([190, None], [False, False], latest=150)
    assert (found["settled"], found["returned"]) == (0, 0)
    assert (found["returned_low"], found["returned_high"]) == (None, None)


@pytest.mark.parametrize(("hits", "draws"), [(0, 64), (1, 64), (3, 20), (19, 20), (20, 20)])
def test_share_interval_is_where_the_binomial_tails_are(hits, draws):
    low, high = share_interval(hits, draws)
    assert low == 0 if hits == 0 else binom.sf(hits - 1, draws, low) == pytest.approx(0.025)
    assert high == 1 if hits == draws else binom.cdf(hits, draws, high) == pytest.approx(0.025)


def test_share_interval_of_none_in_64():
    assert share_interval(0, 64)[1] == pytest.approx(1 - 0.025 ** (1 / 64))
    assert share_interval(0, 64)[1] <= 0.06 < share_interval(1, 64)[1]


def test_share_interval_without_draws_and_errors():
    assert share_interval(0, 0) == (None, None)
    for hits, draws in ((3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=rf"hits is {hits} of 2 draws; valid is a number from 0 to the number"):
            share_interval(hits, draws)


# --- growth laws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.7])
def test_growth_of_an_exact_power(seed, exponent):
    samples = {n: [3.0 * n**exponent] * 7 for n in (8, 16, 24, 64)}
    found = growth(samples, generator=rng(seed))
    assert found.value == pytest.approx(exponent, abs=1e-12)
    assert found.low == pytest.approx(exponent, abs=1e-12)
    assert found.high == pytest.approx(exponent, abs=1e-12)


def test_growth_interval_separates_linear_from_slower(seed):
    generator = rng(seed)
    noise = {n: np.exp(0.2 * generator.standard_normal(48)) for n in (12, 16, 24, 32, 64)}
    linear = growth({n: (n * values).tolist() for n, values in noise.items()}, generator=generator)
    slower = growth({n: (n**0.7 * values).tolist() for n, values in noise.items()}, generator=generator)
    spread = (linear.high - linear.low) / 3.92
    assert abs(linear.value - 1) < 5 * spread
    assert abs(slower.value - 1) > 5 * spread
    assert slower.high < 1


def test_growth_interval_has_about_its_coverage(seed):
    generator = rng(seed)
    trials, covered = 200, 0
    for _ in range(trials):
        samples = {n: (n * np.exp(0.3 * generator.standard_normal(24))).tolist() for n in (8, 16, 32)}
        found = growth(samples, generator=generator, resamples=300)
        covered += found.low <= 1 <= found.high
    # The bootstrap of a median is slightly off at 24 draws: a stated tolerance of 5 points, and 5 standard errors.
    assert abs(covered / trials - 0.95) < 0.05 + 5 * math.sqrt(0.95 * 0.05 / trials)


def test_growth_needs_three_batch_sizes_and_draws():
    assert growth({8: [1.0], 16: [2.0]}, generator=rng(0)) is None
    assert growth({8: [1.0], 16: [2.0], 32: [math.inf]}, generator=rng(0)) is None


def lists(law, widths, draws=21):
    return [[round(law(width)) + shift for shift in range(-(draws // 2), draws // 2 + 1)] for width in widths]


def test_onset_per_doubling_of_a_logarithm_and_of_a_power(seed):
    widths = [64, 256, 1024]
    logarithm = onset_per_doubling({16: lists(lambda d: 8 * math.log2(d), widths)}, widths, 300, generator=rng(seed))
    assert logarithm["narrow"].value == logarithm["wide"].value == 8.0
    assert logarithm["difference"].low <= 0 <= logarithm["difference"].high
    power = onset_per_doubling({16: lists(lambda d: 4 * d**0.5, widths)}, widths, 300, generator=rng(seed))
    assert power["narrow"].value == 16.0
    assert power["wide"].value == 32.0
    assert power["difference"].low > 0


def test_onset_per_doubling_takes_first_middle_and_last_width():
    widths = [32, 64, 128, 256, 512]
    found = onset_per_doubling({16: lists(lambda d: 5 * math.log2(d), widths)}, widths, 300, generator=rng(0))
    assert found["widths"] == [32, 128, 512]


def test_onset_per_doubling_leaves_out_sizes_that_are_mostly_censored():
    widths = [64, 256, 1024]
    late = [[40] * 9, [50] * 9, [60] * 4 + [None] * 5]
    on_time = [[40] * 9, [50] * 9, [60] * 5 + [None] * 4]
    assert onset_per_doubling({8: late}, widths, 200, generator=rng(0)) is None
    assert onset_per_doubling({8: late, 16: on_time}, widths, 200, generator=rng(0))["batch_sizes"] == [16]


def test_onset_per_doubling_needs_three_widths():
    assert onset_per_doubling({8: [[40], [50]]}, [64, 256], 200, generator=rng(0)) is None


# --- survival -----------------------------------------------------------------------------------------------------


def naive_survival(durations, observed, time):
    """Product over the ends up to a time of one minus ends over draws still watched."""
    share = 1.0
    for end in sorted({d for d, seen in zip(durations, observed, strict=True) if seen and d <= time}):
        ends = sum(d == end and seen for d, seen in zip(durations, observed, strict=True))
        share *= 1 - ends / sum(d >= end for d in durations)
    return share


def test_survival_is_the_product_of_kaplan_and_meier(seed):
    generator = rng(seed)
    durations = generator.integers(1, 30, size=40).tolist()
    observed = (generator.random(40) < 0.6).tolist()
    found = survival(durations, observed)
    for time, share in zip(found["times"], found["share"], strict=True):
        assert share == pytest.approx(naive_survival(durations, observed, time))


def test_survival_covers_the_truth_and_dropping_the_censored_does_not(seed):
    generator = rng(seed)
    trials, draws, time = 400, 60, 1.0
    covered = biased = known = 0
    for _ in range(trials):
        life, watched = generator.exponential(size=draws), generator.exponential(size=draws)
        durations, observed = np.minimum(life, watched), life <= watched
        found = survival(durations.tolist(), observed.tolist())
        at = int(np.searchsorted(found["times"], time, side="right")) - 1
        if found["low"][at] is None:
            continue
        known += 1
        covered += found["low"][at] <= math.exp(-time) <= found["high"][at]
        biased += abs(np.mean(durations[observed] > time) - math.exp(-time)) < 0.12
    assert covered / known > 0.95 - 5 * math.sqrt(0.05 * 0.95 / known)
    assert biased / known < 0.5


def test_survival_without_any_end_has_no_interval():
    found = survival([3, 4], [False, False])
    assert found["share"] == [1.0, 1.0]
    assert found["low"] == [None, None]
    assert survival_median([], []) == {"median": None, "low": None, "high": None}


def test_survival_median_and_its_interval(seed):
    durations = rng(seed).exponential(size=400).tolist()
    found = survival_median(durations, [True] * 400)
    assert found["low"] <= found["median"] <= found["high"]
    assert abs(found["median"] - math.log(2)) < 5 / math.sqrt(400)
    assert found["median"] == pytest.approx(np.sort(durations)[199])


def test_survival_errors():
    with pytest.raises(ValueError, match=r"observed has 1 entries; valid is one for each of the 2 durations\."):
        survival([1, 2], [True])
    with pytest.raises(ValueError, match=r"durations is empty; valid is at least one draw\."):
        survival([], [])


def test_kept_summary_counts_only_those_that_could_be_followed():
    onsets = [10, 10, 60, 85, None, 99]
    losses = [30, None, 80, 90, None, None]
    found = kept_summary(onsets, losses, watched=100, hold=10, horizon=40)
    assert found["followed"] == 2  # a loss that begins after layer 91 cannot be seen
    assert found["lost"] == 1
    assert (found["lost_low"], found["lost_high"]) == share_interval(1, 2)
    assert found["durations"] == [20, 81, 20, 5, 0]
    assert found["ended"] == [True, False, True, True, False]


def test_kept_summary_errors():
    with pytest.raises(ValueError, match=r"return_layers has 0 entries; valid is one for each of the 1 onsets\."):
        kept_summary([1], [], watched=9, hold=2, horizon=3)
    with pytest.raises(ValueError, match=r"hold is 0 and horizon is 3; valid is at least 1 layer each\."):
        kept_summary([1], [None], watched=9, hold=0, horizon=3)
