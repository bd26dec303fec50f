"""Every criterion of chapter 6 can come out confirmed, refuted and inconclusive: made-up values for all three."""

import pytest

from bnlib.criteria import decide
from bnlib.records import load_claims

CLAIMS = {key: c for key, c in load_claims().items() if c.get("notebook") == "06_falsification_test"}
THRESHOLDS = CLAIMS["review-test-depth-30"]["thresholds"]


def verdicts(name, depth):
    return {
        verdict: {name: {depth: verdict}}
        for verdict in ("confirmed", "confirmed under conditions", "refuted", "inconclusive")
    }


def details(name, n, angle, top=(5.0, 6.0), share=(0.9, 1.0), ratio=None, depth=200):
    ratio = ratio or (n - 1.0, n - 1.0)
    ends = {"angle": angle, "top": top, "share": share, "ratio": ratio, "spread": (1.0, 1.0)}
    row = {"n": n, "depth": depth}
    for key, (low, high) in ends.items():
        row |= {f"{key}_low": low, f"{key}_high": high}
    return {name: [row], "thresholds": THRESHOLDS}


def spread(low, high):
    return {"details_with_rescaling": [{"depth": 200, "spread_low": low, "spread_high": high}]}


def state(n, ratio, angle):
    low_ratio, high_ratio = ratio
    row = {"n": n, "depth": 200, "width": 256, "prediction": True, "state_norm_ratio": 20.0, "state_angle_deg": 89.0}
    row |= {"ratio_low": low_ratio, "ratio_high": high_ratio, "angle_low": angle[0], "angle_high": angle[1]}
    return {"against_infinite_width": [row]}


def kept(low, high, wide_low=None, wide_high=None):
    both = {0: (low, high), 256: (wide_low or low, wide_high or high)}
    rows = [
        {"n": 16, "horizon": 100, "from_width": w, "followed": 200, "lost_low": a, "lost_high": b}
        for w, (a, b) in both.items()
    ]
    return {"kept_pooled": rows, "kept_by_size": rows}


def laws(best, z=5.0, p_value=0.5):
    """Likelihoods in which one law beats the others by z standard errors (of 2), or none does."""
    gain = {law: 2.0 * z * (law == best) for law in ("logarithm", "power", "cube root")}
    difference = {
        pair: {"difference": gain[pair[0]] - gain[pair[1]], "z": (gain[pair[0]] - gain[pair[1]]) / 2}
        for pair in (("logarithm", "power"), ("logarithm", "cube root"), ("power", "cube root"))
    }
    return {
        "onset_laws": {
            "laws": {law: {"p_value": p_value} for law in gain},
            "against": {law: difference["logarithm", law] for law in ("power", "cube root")},
            "power_over_cube_root": difference["power", "cube root"],
        }
    }


def two(gap=0.0, **changes):
    row = {"ks_distance": 0.01, "ks_p": 0.4, "layers_p": 0.4, "lag_z": 1.0, "lag_size_z": -1.0} | changes
    return {"two_samples": {"largest_gap_deg": gap, "by_width": [row]}}


def pushed(small, large):
    rows = zip((32, 64), (small, large), strict=True)
    return {
        "pushed": [{"n": n, "width": 1024, "depth": 200, "end_low": low, "end_high": high} for n, (low, high) in rows]
    }


def identity(kind, **numbers):
    return {"identity": [{"kind": kind, "n": 16, "width": 256, "depth": 200, "chance": 0.0625} | numbers]}


def symmetric(outlier, agreement=0.0625, uniform_p=0.5):
    low, high = outlier
    return identity(
        "symmetric",
        outlier_low=low,
        outlier_high=high,
        agreement=agreement,
        standard_error=0.01,
        uniform_p=uniform_p,
    )


def line(low, high, misses):
    return identity("line", extreme_low=low, extreme_high=high, extreme_misses=misses)


def agreement(kind, low, high):
    return identity(kind, agreement_low=low, agreement_high=high)


def dose(low, high):
    return {"dose": [{"factor": 2.0, "low": low, "high": high}]}


CASES = {
    "review-test-depth-30": verdicts("verdict_at_depth", "30"),
    "review-test-depth-200": verdicts("verdict_at_depth", "200"),
    "review-test-digits-depth-30": verdicts("verdict_on_digits_at_depth", "30"),
    "review-test-digits-depth-200": verdicts("verdict_on_digits_at_depth", "200"),
    "test-batches-up-to-six": {
        "confirmed": details("details", 6, (60.0, 70.0), (1.0, 1.2)),
        "refuted": details("details", 6, (86.0, 87.0), (2.5, 3.0)),
        "inconclusive": details("details", 6, (80.0, 87.0), (1.5, 3.0)),
    },
    "essay-not-an-artifact": {
        "confirmed": details("details", 16, (88.0, 89.0)),
        "confirmed under conditions": {
            "details": details("details", 8, (60.0, 62.0), share=(0.1, 0.3))["details"]
            + details("details", 16, (88.0, 89.0))["details"]
        },
        "refuted": details("details", 16, (70.0, 75.0), share=(0.1, 0.3)),
        "inconclusive": details("details", 16, (88.0, 89.0), share=(0.4, 0.6)),
    },
    "theorem-11-bounds-in-gaussian-networks": {
        "confirmed": details("details", 16, (88.0, 89.0)),
        "confirmed under conditions": {
            "details": details("details", 8, (60.0, 62.0))["details"] + details("details", 16, (88.0, 89.0))["details"]
        },
        "refuted": details("details", 16, (70.0, 75.0)),
        "inconclusive": details("details", 16, (70.0, 89.0)),
    },
    **{
        f"prediction-batch-of-{n}": {
            "confirmed": state(n, (19.5, 20.5), (88.9, 89.1)),
            "refuted": state(n, (19.5, 20.5), (90.1, 90.2)),  # above the state as well as below
            "inconclusive": state(n, (17.0, 20.5), (88.9, 89.1)),
        }
        for n in (24, 128)
    },
    "outlier-stays": {
        "confirmed": kept(0.001, 0.03),
        "confirmed under conditions": kept(0.1, 0.2, 0.001, 0.03),
        "refuted": kept(0.1, 0.2),
        "inconclusive": kept(0.02, 0.2),
    },
    **{
        f"onset-{words}-{'in' if law == 'logarithm' else 'of'}-width": {
            "confirmed": laws(law),
            "refuted": laws(next(other for other in ("power", "cube root") if other != law)),
            "inconclusive": laws(law, z=1.0),
        }
        for law, words in (("logarithm", "logarithmic"), ("power", "power"), ("cube root", "cube-root"))
    },
    "two-samples-exact": {
        "confirmed": two(),
        "refuted": two(layers_p=1e-9),
        "inconclusive": two(lag_z=-4.0),
    },
    "full-batch-norm-escaped-point": {
        "confirmed": details("details_with_rescaling", 16, (88.0, 89.0)),
        "refuted": details("details_with_rescaling", 16, (55.0, 60.0), (1.0, 1.1), (0.0, 0.15)),
        "inconclusive": details("details_with_rescaling", 16, (55.0, 60.0), (1.0, 1.1), (0.2, 0.6)),
    },
    "full-batch-norm-escaped-point-digits": {
        "confirmed": details("details_on_digits_with_rescaling", 16, (88.0, 89.0)),
        "refuted": details("details_on_digits_with_rescaling", 16, (55.0, 60.0), share=(0.0, 0.15)),
        "inconclusive": details("details_on_digits_with_rescaling", 16, (55.0, 60.0), share=(0.2, 0.6)),
    },
    "full-batch-norm-norms-within-a-fifth": {
        "confirmed": spread(1.05, 1.1),
        "refuted": spread(1.3, 1.4),
        "inconclusive": spread(1.1, 1.3),
    },
    "full-batch-norm-heavy-sample": {
        "confirmed": pushed((1.0, 1.1), (2.0, 3.0)),
        "refuted": pushed((1.0, 1.1), (1.1, 1.2)),
        "inconclusive": pushed((1.0, 1.1), (1.4, 1.6)),
    },
    "outlier-in-symmetric-batches": {
        "confirmed": symmetric((0.95, 1.0)),
        "refuted": symmetric((0.95, 1.0), uniform_p=1e-9),
        "inconclusive": symmetric((0.7, 0.85)),
    },
    "outlier-identity-unstable": {
        "confirmed": agreement("gaussian", 0.05, 0.1),
        "refuted": agreement("gaussian", 0.2, 0.3),
        "inconclusive": agreement("gaussian", 0.1, 0.2),
    },
    "outlier-identity-unstable-digits": {
        "confirmed": agreement("digits", 0.05, 0.1),
        "refuted": agreement("digits", 0.2, 0.3),
        "inconclusive": agreement("digits", 0.1, 0.2),
    },
    "outlier-follows-input-norm": {
        "confirmed": dose(0.8, 0.95),
        "refuted": dose(0.5, 0.7),
        "inconclusive": dose(0.7, 0.9),
    },
    "outlier-of-a-line-is-an-extreme": {
        "confirmed": line(0.98, 1.0, 0),
        "confirmed under conditions": line(0.96, 1.0, 1),
        "refuted": line(0.7, 0.9, 30),
        "inconclusive": line(0.9, 1.0, 0),
    },
}


def test_every_claim_of_the_chapter_has_cases():
    assert set(CASES) == set(CLAIMS)
    assert all({"confirmed", "refuted", "inconclusive"} <= set(cases) for cases in CASES.values())


@pytest.mark.parametrize(
    ("name", "verdict"), [(name, verdict) for name, cases in CASES.items() for verdict in cases], ids=str
)
def test_the_criterion_can_come_out_so(name, verdict):
    assert decide(CLAIMS[name]["criterion"], CASES[name][verdict]) == verdict


@pytest.mark.parametrize("name", CASES)
def test_nothing_measured_decides_nothing(name):
    assert decide(CLAIMS[name]["criterion"], {}) == "inconclusive"


@pytest.mark.parametrize("best", ["logarithm", "power", "cube root", None])
def test_at_most_one_law_is_confirmed(best):
    names = [name for name in CASES if name.startswith("onset-")]
    found = [decide(CLAIMS[name]["criterion"], laws(best)) for name in names]
    assert found.count("confirmed") == (best is not None)
    assert found.count("refuted") == (2 if best else 0)
