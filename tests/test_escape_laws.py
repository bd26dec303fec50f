"""Tests of bnlib.escape_laws: laws told apart, intervals that cover, rare escapes, censoring, messages."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from bnlib import escape_laws

WIDTHS = (64, 256, 1024, 4096)
LAWS = [
    ("logarithm", lambda d: -40 + 20 * np.log(d)),
    ("power", lambda d: 3 * d**0.4),
    ("exponential", lambda d: 20 * np.exp(d / 1500)),
]


def drawn_times(median, random, *, draws=200, depth=500, spread=0.2, widths=WIDTHS):
    times = {}
    for width in widths:
        drawn = np.exp(np.log(median(width)) + spread * random.standard_normal(draws))
        times[width] = [0 if t > depth else max(1, round(float(t))) for t in drawn]
    return times, dict.fromkeys(widths, depth)


@pytest.mark.parametrize(("name", "median"), LAWS)
def test_laws_are_told_apart(name, median, seed):
    times, depths = drawn_times(median, np.random.default_rng(seed))
    found = escape_laws.compared_laws(times, depths)
    assert json.loads(json.dumps(found)) is not None
    totals = {law: entry["log_likelihood"] for law, entry in found["laws"].items()}
    assert max(totals, key=totals.get) == name
    for other in set(escape_laws.LAWS) - {name}:
        ahead, behind = found["against"][f"{name} over {other}"], found["against"][f"{other} over {name}"]
        assert ahead["z"] > 2
        assert ahead["difference"] > 3
        assert behind["difference"] == pytest.approx(-ahead["difference"])
        assert ahead["difference"] == pytest.approx(totals[name] - totals[other])
    assert found["laws"][name]["p_value"] > 1e-6
    assert min(entry["p_value"] for entry in found["laws"].values()) < 1e-6  # a wrong law is seen not to fit


def test_log_likelihood_is_that_of_a_naive_sum(seed):
    times, depths = drawn_times(LAWS[1][1], np.random.default_rng(seed), draws=12, depth=60)
    fit = escape_laws.growth_laws(times, depths)["power"]
    assert fit.log_likelihood == pytest.approx(fit.draw_log_likelihoods.sum(), rel=1e-9)
    best = 0.0
    for width, found in times.items():
        mean = math.log(fit.medians[width])

        def total(scale, found=found, mean=mean):
            parts = [
                norm.logpdf(math.log(t), mean, scale) if t else norm.logsf(math.log(60), mean, scale) for t in found
            ]
            return float(sum(parts))

        best += max(total(scale) for scale in np.geomspace(0.03, 1.5, 400))
    assert fit.log_likelihood == pytest.approx(best, abs=0.02)


def test_interval_covers_the_exponent_and_not_another(seed):
    random = np.random.default_rng(seed)
    covered = wrong = 0
    for _ in range(20):
        times, depths = drawn_times(lambda d: 4 * d**0.3, random, draws=25, widths=(64, 512, 4096))
        low, high = escape_laws.slope_interval("power", times, depths)
        covered += low < 0.3 < high
        wrong += low < 0.4 < high
    assert covered >= 13  # of 20 at 95 percent: fewer have a probability below 1e-5
    assert wrong <= 3


def test_rare_escapes_have_exponential_waiting_times(seed):
    random = np.random.default_rng(seed)
    mean = {d: 30 * math.exp(d / 600) for d in (256, 1024, 2048, 3072)}
    depth = 3000
    drawn = {d: random.exponential(m, 400) for d, m in mean.items()}
    times = {d: [0 if t > depth else max(1, math.ceil(t)) for t in found] for d, found in drawn.items()}
    found = escape_laws.compared_laws(times, dict.fromkeys(mean, depth), waiting="exponential")
    assert 1 / found["laws"]["exponential"]["parameters"][1] == pytest.approx(600, rel=0.15)
    assert found["slope_low"]["exponential"] < found["slope_high"]["exponential"]
    assert found["against"]["exponential over power"]["z"] > 2
    # The likelihood itself: at a constant rate, escapes over layers watched; the density is that of log time.
    a, b = found["laws"]["exponential"]["parameters"]
    expected = sum(
        sum(math.log(t) - math.log(a) - b * d for t in each if t)
        - sum(t or depth for t in each) / (a * math.exp(b * d))
        for d, each in times.items()
    )
    assert found["laws"]["exponential"]["log_likelihood"] == pytest.approx(expected, rel=1e-6)


def test_a_narrow_range_of_widths_leaves_it_open(seed):
    random = np.random.default_rng(seed)
    times, depths = drawn_times(lambda d: 3 * d**0.4, random, draws=50, spread=0.3, widths=(64, 96, 128))
    found = escape_laws.compared_laws(times, depths)
    assert abs(found["against"]["power over logarithm"]["difference"]) < 3
    assert found["draws"] == 150
    times, depths = drawn_times(lambda d: 3 * d**0.4, random, draws=50, spread=0.3, widths=(64, 1024, 16384))
    assert escape_laws.compared_laws(times, depths)["against"]["power over logarithm"]["difference"] > 3


def test_censored_times_count_as_late(seed):
    random = np.random.default_rng(seed)
    widths = (100, 200, 400, 800)
    cut, depths = drawn_times(lambda d: 10 * d**0.5, random, draws=400, depth=200, spread=0.3, widths=widths)
    fits = escape_laws.growth_laws(cut, depths)
    assert fits["power"].parameters[1] == pytest.approx(0.5, abs=0.1)
    dropped = {d: [t for t in drawn if t > 0] for d, drawn in cut.items()}
    biased = escape_laws.growth_laws(dropped, depths)
    assert biased["power"].parameters[1] < fits["power"].parameters[1]


def test_a_width_without_any_escape():
    times = {64: [20, 25, 30], 256: [40, 50, 60], 1024: [0, 0, 0]}
    found = escape_laws.compared_laws(times, dict.fromkeys(times, 100))
    assert found["censored"] == 3
    assert all(math.isfinite(entry["log_likelihood"]) for entry in found["laws"].values())
    assert all(0 <= entry["p_value"] <= 1 for entry in found["laws"].values())


def test_messages(unchecked):
    three = {1: [1], 2: [1], 3: [1]}
    with pytest.raises(ValueError, match="times has 2 widths; valid is at least three"):
        escape_laws.growth_laws({1: [1], 2: [1]}, {1: 5, 2: 5})
    with pytest.raises(ValueError, match="waiting is 'long'; valid is 'lognormal' or 'exponential'"):
        escape_laws.growth_laws(three, dict.fromkeys(three, 5), waiting="long")
    with pytest.raises(ValueError, match="times has a width without draws"):
        escape_laws.growth_laws({**three, 3: []}, dict.fromkeys(three, 5))
    with pytest.raises(ValueError, match="name is 'root'; valid is one of logarithm, power, exponential"):
        escape_laws.slope_interval("root", three, dict.fromkeys(three, 5))
