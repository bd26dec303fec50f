"""Laws of growth: what was put in comes out, censored draws included, and the wrong law is rejected."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from bnlib.onset_laws import LAWS, compare_laws, fit_law, law_median, log_likelihoods

WIDTHS = [64, 256, 1024, 4096]


def onsets(seed, law, level, slope, *, draws=60, scale=0.1, last=10_000):
    generator = np.random.default_rng(seed)
    cells = []
    for median in law_median(law, level, slope, np.array(WIDTHS, dtype=float)):
        times = median * np.exp(scale * generator.standard_normal(draws))
        cells.append([float(t) if t <= last else None for t in times])
    return cells


TRUTH = {"logarithm": (90.0, 22.0), "power": (60.0, 0.35), "cube root": (60.0, 50.0)}


def test_log_likelihoods_agree_with_a_loop(seed):
    generator = np.random.default_rng(seed)
    cell = [None if t > 60 else int(t) for t in generator.integers(10, 90, size=20)]
    found = log_likelihoods(cell, 60, 45.0, 0.4)
    for onset, value in zip(cell, found, strict=True):
        z = (math.log(60 if onset is None else onset) - math.log(45)) / 0.4
        expected = math.log(norm.sf(z)) if onset is None else math.log(norm.pdf(z) / 0.4)
        assert value == pytest.approx(expected)


@pytest.mark.parametrize("law", LAWS)
def test_the_law_that_was_put_in_is_not_rejected_and_the_others_are(seed, law):
    found = compare_laws({16: onsets(seed, law, *TRUTH[law]), 32: onsets(seed + 1000, law, *TRUTH[law])}, WIDTHS, 9000)
    assert found["laws"][law]["degrees"] == 4
    assert found["laws"][law]["p_value"] > 1e-5
    assert max(LAWS, key=lambda name: found["laws"][name]["log_likelihood"]) == law
    wrong = "power" if law == "logarithm" else "logarithm"
    assert found["laws"][wrong]["p_value"] < 1e-5
    difference = found["against"]["power" if law == "logarithm" else law]
    assert (difference["z"] > 1.96) == (law == "logarithm")
    # The third pair: the difference of the two other laws, and it finds which of the two was put in.
    between = found["power_over_cube_root"]
    against = found["against"]
    assert between["difference"] == pytest.approx(against["cube root"]["difference"] - against["power"]["difference"])
    if law != "logarithm":
        assert (between["difference"] > 0) == (law == "power")


def test_censored_draws_do_not_bias_the_slope(seed):
    cells = onsets(seed, "logarithm", *TRUTH["logarithm"], last=130, draws=400)
    assert sum(onset is None for onset in cells[-1]) > 100
    level, slope = fit_law("logarithm", cells, WIDTHS, 130)["parameters"]
    assert abs(level - 90) < 5 * 90 * 0.1 / math.sqrt(400)
    assert abs(slope - 22) < 1
    # The same test rejects an analysis that takes the last layer for the onset of the censored draws.
    capped = [[130 if onset is None else onset for onset in cell] for cell in cells]
    assert abs(fit_law("logarithm", capped, WIDTHS, 130)["parameters"][1] - 22) > 1


def test_free_medians_are_at_least_as_good_as_every_law(seed):
    cells = onsets(seed, "power", *TRUTH["power"], draws=20)
    free = sum(part.sum() for part in fit_law("free", cells, WIDTHS, 9000)["log_likelihoods"])
    for law in LAWS:
        assert sum(part.sum() for part in fit_law(law, cells, WIDTHS, 9000)["log_likelihoods"]) <= free + 1e-6


def test_a_width_at_which_all_are_censored_takes_part(seed):
    cells = [*onsets(seed, "logarithm", *TRUTH["logarithm"])[:3], [None] * 60]
    found = compare_laws({16: cells}, WIDTHS, 140)
    assert found["censored"] == 60
    assert all(math.isfinite(row["log_likelihood"]) for row in found["laws"].values())


def test_too_little_to_compare_is_none():
    assert compare_laws({16: [[10] * 9, [20] * 9]}, [64, 256], 100) is None
    assert compare_laws({16: [[10] * 9, [20] * 9, [None] * 9]}, [64, 256, 1024], 100) is None


def test_errors():
    with pytest.raises(ValueError, match=r"law is 'cubic'; valid is one of logarithm, power, cube root\."):
        law_median("cubic", 1.0, 1.0, np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"widths is \[64, 256\]; valid is at least three\."):
        fit_law("power", [[10], [20]], [64, 256], 100)
    with pytest.raises(ValueError, match=r"cells has an empty list; valid is at least one draw at each width\."):
        fit_law("power", [[10], [20], []], [64, 256, 1024], 100)
