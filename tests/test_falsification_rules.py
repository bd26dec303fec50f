"""The rules of the falsification test against a table of cases."""

import numpy as np
import pytest

from bnlib.falsification_rules import (
    Thresholds,
    cell_status,
    growth_table,
    status,
    verdict_at,
    verdicts_by_width,
)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (85.0, 90.0, "holds"),
        (84.9, 85.0, "undecided"),
        (84.0, 84.9, "fails"),
        (None, 90.0, "undecided"),
        (None, 84.0, "fails"),
        (86.0, None, "holds"),
        (None, None, "undecided"),
    ],
)
def test_status(low, high, expected):
    assert status(low, high, 85.0) == expected


def detail(n, width=64, depth=30, angle=(88.0, 89.0), top=(5.0, 6.0)):
    low, high = angle
    return {"n": n, "width": width, "depth": depth, "angle_low": low, "angle_high": high} | {
        "top_low": top[0],
        "top_high": top[1],
    }


def row(from_n, low=0.97, high=1.1, width=64, depth=30):
    return {"depth": depth, "width": width, "from_n": from_n, "exponent": (low + high) / 2, "low": low, "high": high}


BAD, UNSURE = (60.0, 70.0), (80.0, 88.0)
CASES = {
    "everything holds": ([detail(n) for n in (8, 16, 32)], [row(8)], "confirmed", 8),
    "small batches fail": (
        [detail(4, angle=BAD), *(detail(n) for n in (8, 16, 32))],
        [row(4), row(8)],
        "confirmed under conditions",
        8,
    ),
    "the largest fails": ([detail(8), detail(16), detail(32, angle=BAD)], [row(8)], "refuted", None),
    "the largest fails at one width only": (
        [detail(n, width=w) for n in (8, 16) for w in (64, 256)] + [detail(32), detail(32, width=256, angle=BAD)],
        [row(8), row(8, width=256)],
        "refuted",
        None,
    ),
    "no single outlier": ([detail(n, top=(1.0, 1.5)) for n in (8, 16, 32)], [row(8)], "refuted", None),
    "the largest is undecided": ([detail(8), detail(16), detail(32, angle=UNSURE)], [row(8)], "inconclusive", None),
    "undecided below": (
        [detail(6, angle=UNSURE), *(detail(n) for n in (8, 16, 32))],
        [row(6), row(8)],
        "confirmed under conditions",
        8,
    ),
    "too few batch sizes for growth": ([detail(8), detail(16)], [], "inconclusive", None),
    "growth slower than linear": ([detail(n) for n in (8, 16, 32)], [row(8, 0.7, 0.95)], "refuted", None),
    "growth not known well enough": ([detail(n) for n in (8, 16, 32)], [row(8, 0.8, 1.2)], "inconclusive", None),
    "growth slower than linear at one width": (
        [detail(n, width=w) for n in (8, 16, 32) for w in (64, 256)],
        [row(8), row(8, 0.7, 0.95, width=256)],
        "refuted",
        None,
    ),
    "growth not measured at one width": (
        [detail(n, width=w) for n in (8, 16, 32) for w in (64, 256)],
        [row(8)],
        "inconclusive",
        None,
    ),
    "growth linear from a larger batch size on": (
        [detail(n) for n in (8, 16, 32, 64)],
        [row(8, 0.7, 0.95), row(16)],
        "confirmed under conditions",
        16,
    ),
    "growth perhaps linear from a larger batch size on": (
        [detail(n) for n in (8, 16, 32, 64)],
        [row(8, 0.7, 0.95), row(16, 0.8, 1.2)],
        "inconclusive",
        None,
    ),
    "slow growth where cells fail does not count": (
        [detail(4, angle=BAD), *(detail(n) for n in (8, 16, 32))],
        [row(4, 0.5, 0.6), row(8)],
        "confirmed under conditions",
        8,
    ),
    "a cell in the middle fails": (
        [detail(8), detail(16, angle=BAD), detail(32), detail(64)],
        [row(8), row(16)],
        "inconclusive",
        None,
    ),
    "growth of other sizes and depths does not count": (
        [detail(n) for n in (8, 16, 32)],
        [row(8), row(16, 0.5, 0.6), row(8, 0.5, 0.6, depth=10)],
        "confirmed",
        8,
    ),
    "growth at a width without cells does not count when it holds": (
        [detail(n) for n in (8, 16, 32)],
        [row(8), row(8, width=4096)],
        "confirmed",
        8,
    ),
    "growth at a width without cells does not count when it fails": (
        [detail(n) for n in (8, 16, 32)],
        [row(8), row(8, 0.5, 0.6, width=4096)],
        "confirmed",
        8,
    ),
    "one batch size": ([detail(8, angle=BAD)], [], "refuted", None),
    "too few draws": ([detail(8, angle=(None, None), top=(None, None))], [], "inconclusive", None),
}


@pytest.mark.parametrize("case", CASES)
def test_verdict_at(case):
    all_details, rows, verdict, from_n = CASES[case]
    found = verdict_at([*all_details, detail(64, depth=10, angle=BAD)], rows, 30, Thresholds())
    assert (found["verdict"], found["from_n"]) == (verdict, from_n)
    assert found["holding"] + found["undecided"] + found["failing"] == len(all_details)


def test_verdict_at_refuses_a_depth_without_cells():
    with pytest.raises(ValueError, match=r"depth is 99; valid is a depth for which there are cells\."):
        verdict_at([detail(8)], [], 99, Thresholds())


def test_verdicts_by_width_judge_each_width_alone():
    cells = [detail(n, width=w) for n in (8, 16, 32, 64) for w in (64, 256) if (n, w) != (8, 256)]
    cells.append(detail(8, width=256, angle=BAD))
    rows = [row(8), row(16), row(16, width=256)]
    found = verdicts_by_width(cells, rows, 30, Thresholds())
    assert [(w, v["verdict"], v["from_n"]) for w, v in found.items()] == [
        (64, "confirmed", 8),
        (256, "confirmed under conditions", 16),
    ]
    together = verdict_at(cells, rows, 30, Thresholds())
    assert (together["verdict"], together["from_n"]) == ("confirmed under conditions", 16)
    with pytest.raises(ValueError, match=r"depth is 99; valid is a depth for which there are cells\."):
        verdicts_by_width(cells, rows, 99, Thresholds())


def test_cell_status_is_the_worse_of_the_two_rules():
    assert cell_status(detail(8), Thresholds()) == "holds"
    assert cell_status(detail(8, angle=UNSURE), Thresholds()) == "undecided"
    assert cell_status(detail(8, angle=UNSURE, top=(1.0, 1.5)), Thresholds()) == "fails"


def test_growth_table_fits_every_tail_of_at_least_three():
    parts = {
        (n, width): {"norm_ratios": {"30": [width * n**1.5] * 5}} for n in (4, 8, 16, 32, 64) for width in (16, 32)
    }
    rows = growth_table(parts, 30, generator=np.random.default_rng(0))
    assert [(r["width"], r["from_n"]) for r in rows] == [(w, n) for w in (16, 32) for n in (4, 8, 16)]
    assert all(r["exponent"] == pytest.approx(1.5) for r in rows)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"angle_deg": 0.0}, r"angle_deg is 0\.0; valid is an angle between 0 and 180 degrees\."),
        ({"hold": 0}, r"hold is 0; valid is a whole number of layers, at least 1\."),
        ({"hold": True}, r"hold is True; valid is a whole number"),
    ],
)
def test_thresholds_refuse(bad, message):
    with pytest.raises(ValueError, match=message):
        Thresholds(**bad)


@pytest.mark.parametrize(
    ("hits", "share", "expected"), [(30, 0.5, "holds"), (16, 0.5, "undecided"), (5, 0.5, "fails"), (24, 0.9, "fails")]
)
def test_cell_status_asks_for_enough_draws_that_pass_both_rules(hits, share, expected):
    counted = detail(8) | {"draws": 32, "joint": {"85": hits}}
    assert cell_status(counted, Thresholds(share=share)) == expected


def test_cell_status_skips_the_share_where_it_was_not_counted_at_this_angle():
    assert cell_status(detail(8) | {"draws": 32, "joint": {"80": 0}}, Thresholds()) == "holds"


@pytest.mark.parametrize("share", [0.0, 1.0, 2.0])
def test_thresholds_refuse_a_share_that_is_none(share):
    with pytest.raises(ValueError, match=rf"share is {share}; valid is a share of the draws between 0 and 1\."):
        Thresholds(share=share)


def test_growth_table_fits_the_batch_sizes_that_a_width_has():
    parts = {(n, 16): {"norm_ratios": {"30": [float(n)] * 5}} for n in (4, 8, 16, 32)}
    parts |= {(n, 32): {"norm_ratios": {"30": [float(n)] * 5}} for n in (4, 8, 16)}
    rows = growth_table(parts, 30, generator=np.random.default_rng(0))
    assert [(r["width"], r["from_n"]) for r in rows] == [(16, 4), (16, 8), (32, 4)]
