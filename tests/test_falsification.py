"""The map's cells against naive loops, the rules against a table of cases."""

import json
import math

import numpy as np
import pytest
import torch

from bnlib.data import gaussian_batch
from bnlib.ensembles import propagate
from bnlib.falsification import (
    Thresholds,
    Trajectories,
    cell,
    cell_status,
    details,
    follow,
    growth_table,
    passages,
    run_cell,
    status,
    verdict_at,
)
from bnlib.layers import Stages

RC_NL, FULL = Stages.parse("RC+NL"), Stages.parse("RC+RS+NL")
CELL_KEYS = [
    "n",
    "width",
    "depth",
    "angle_deg",
    "angle_deg_q10",
    "angle_deg_q90",
    "norm_ratio",
    "top_over_second",
    "share_above_85",
    "n_seeds",
]


def torch_generator(seed):
    return torch.Generator().manual_seed(seed)


# --- trajectories -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [RC_NL, FULL])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_follow_agrees_with_loops_over_samples(seed, stages, n):
    x = gaussian_batch(n, 12, generator=torch_generator(seed), draws=3)
    paths = follow(x, 12, 6, stages, generator=torch_generator(seed + 1))
    for state in propagate(x, 12, 6, stages, generator=torch_generator(seed + 1)):
        for draw, batch in enumerate(state.x.numpy()):
            norms = [math.sqrt(sum(v * v for v in row)) for row in batch]
            order = sorted(range(n), key=lambda i: norms[i])
            top, others = order[-1], [batch[i] for i in order[:-1]]
            mean = sum(others) / (n - 1)
            cosine = float(batch[top] @ mean) / (norms[top] * math.sqrt(float(mean @ mean)))
            layer = state.depth - 1
            # Two samples under batch norm may tie exactly; then either may be called the largest.
            assert norms[paths.index[layer, draw]] == pytest.approx(norms[top], rel=1e-12)
            assert paths.angle[layer, draw].item() == pytest.approx(math.acos(min(1.0, cosine)), abs=1e-6)
            assert paths.norm_ratio[layer, draw].item() == pytest.approx(norms[top] / math.sqrt(float(mean @ mean)))
            assert paths.top_over_second[layer, draw].item() == pytest.approx(norms[top] / norms[order[-2]])
            middle = float(np.median([norms[i] for i in order[:-1]]))
            assert paths.top_over_median[layer, draw].item() == pytest.approx(norms[top] / middle)
            assert paths.norm_spread[layer, draw].item() == pytest.approx(norms[top] / norms[order[0]])


def test_two_samples_are_always_orthogonal(seed):
    x = gaussian_batch(2, 40, generator=torch_generator(seed), draws=20)
    paths = follow(x, 40, 5, RC_NL, generator=torch_generator(seed))
    assert (paths.angle - math.pi / 2).abs().max() < 1e-7


def test_a_deeper_run_repeats_the_shallow_one(seed):
    def cells_at(depths):
        found = run_cell(6, 16, depths, 8, RC_NL, thresholds=Thresholds(), generator=torch_generator(seed))
        return {c["depth"]: c for c in found["cells"]}

    assert cells_at([5])[5] == cells_at([20, 5])[5]


def test_draws_have_fresh_batches_and_fresh_weights(seed):
    found = run_cell(6, 16, [1], 8, RC_NL, thresholds=Thresholds(), generator=torch_generator(seed))
    assert len(set(found["norm_ratios"]["1"])) == 8
    x = gaussian_batch(6, 16, generator=torch_generator(seed))
    paths = follow(x.expand(8, 6, 16), 16, 1, RC_NL, generator=torch_generator(seed))
    assert len(set(paths.norm_ratio[0].tolist())) == 8


def test_the_outlier_emerges_without_rescaling_and_not_with_it(seed):
    found = {
        stages: run_cell(16, 48, [150], 24, stages, thresholds=Thresholds(), generator=torch_generator(seed))
        for stages in (RC_NL, FULL)
    }
    assert found[RC_NL]["cells"][0]["share_above_85"] > 0.5
    assert found[RC_NL]["cells"][0]["top_over_second"] > 2
    assert found[FULL]["cells"][0]["share_above_85"] == 0
    assert found[FULL]["cells"][0]["top_over_second"] < 2
    assert all(onset is None for onset in found[FULL]["onsets"])


# --- cells --------------------------------------------------------------------------------------------------------


def trajectories(angle_deg, norm_ratio=None, top=None):
    """One layer of given draws."""
    angle = torch.tensor([angle_deg], dtype=torch.float64).deg2rad()
    ratio = torch.tensor([norm_ratio or [3.0] * len(angle_deg)], dtype=torch.float64)
    second = torch.tensor([top or [2.0] * len(angle_deg)], dtype=torch.float64)
    return Trajectories(angle, ratio, second, second, ratio, torch.zeros(1, len(angle_deg), dtype=torch.long))


def test_cell_has_exactly_the_names_of_the_interface():
    found = cell(trajectories([80.0, 86.0, 90.0]), 8, 64, 1)
    assert list(found) == CELL_KEYS
    assert found["angle_deg"] == pytest.approx(86.0)
    assert found["share_above_85"] == pytest.approx(2 / 3)
    assert found["n_seeds"] == 3


def test_cell_counts_an_undefined_angle_as_not_above():
    found = cell(trajectories([86.0, math.nan, 88.0, math.nan], norm_ratio=[2.0, math.inf, 4.0, math.inf]), 8, 64, 1)
    assert found["angle_deg"] == pytest.approx(87.0)
    assert found["share_above_85"] == 0.5
    assert found["norm_ratio"] == 3.0


def test_cell_of_nothing_is_null_and_not_nan():
    paths = trajectories([math.nan] * 8, norm_ratio=[math.inf] * 8)
    found = cell(paths, 8, 64, 1) | details(paths, 8, 64, 1)
    assert found["angle_deg"] is None
    assert found["norm_ratio"] is None
    assert found["angle_low"] is None


@pytest.mark.parametrize("depth", [0, 2, -1])
def test_cell_refuses_a_depth_that_was_not_run(depth):
    with pytest.raises(ValueError, match=rf"depth is {depth}; valid is a layer from 1 to 1\."):
        cell(trajectories([80.0]), 8, 64, depth)


@pytest.mark.parametrize(("n", "width"), [(2, 1), (8, 1), (3, 2), (64, 4)])
def test_run_cell_fits_into_json_even_where_samples_vanish(seed, n, width):
    found = run_cell(n, width, [3, 12], 7, RC_NL, thresholds=Thresholds(), generator=torch_generator(seed))
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, 16, [], 4), r"depths is \[\]; valid is at least one depth, each of at least 1 layer\."),
        ((8, 16, [0, 3], 4), r"depths is \[0, 3\]; valid is at least one depth"),
        ((8, 16, [3], 0), r"draws"),
        ((1, 16, [3], 4), r"n is 1"),
        ((8, 0, [3], 4), r"d is 0|width is 0"),
    ],
)
def test_run_cell_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        run_cell(*arguments, RC_NL, thresholds=Thresholds(), generator=torch_generator(0))


# --- passages -----------------------------------------------------------------------------------------------------


def naive_passage(angles, threshold, hold):
    onset, run = 0, 0
    for layer, angle in enumerate(angles, start=1):
        run = run + 1 if angle > threshold else 0
        if run == hold:
            onset = layer - hold + 1
            break
    if not onset:
        return 0, False
    run = 0
    for angle in angles[onset:]:
        run = run + 1 if not angle > threshold else 0
        if run == hold:
            return onset, True
    return onset, False


@pytest.mark.parametrize("hold", [1, 2, 3, 7])
def test_passages_agree_with_a_loop(seed, hold):
    generator = np.random.default_rng(seed)
    angles = np.cumsum(generator.standard_normal((40, 60)), axis=0) + 85
    angles[generator.random(angles.shape) < 0.02] = math.nan
    found = passages(angles, 85.0, hold)
    expected = [naive_passage(column, 85.0, hold) for column in angles.T]
    assert list(zip(found.onset.tolist(), found.returned.tolist(), strict=True)) == expected


def test_passages_need_as_many_layers_as_they_must_hold():
    assert passages(np.full((3, 1), 89.0), 85.0, 4).onset.tolist() == [0]
    assert passages(np.full((4, 1), 89.0), 85.0, 4).onset.tolist() == [1]


def test_passages_exactly_at_the_threshold_are_not_above():
    assert passages(np.full((5, 1), 85.0), 85.0, 1).onset.tolist() == [0]


def test_passages_errors():
    with pytest.raises(ValueError, match=r"hold is 0; valid is at least 1 layer\."):
        passages(np.zeros((3, 1)), 85.0, 0)


# --- rules --------------------------------------------------------------------------------------------------------


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


@pytest.mark.gpu
def test_a_gpu_gives_the_same_medians():
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    # Other generators, other draws: medians of 64 draws at depth 40 are compared through their 95 percent intervals.
    found = {
        device: run_cell(
            16, 64, [40], 64, RC_NL, thresholds=Thresholds(), generator=torch.Generator(device).manual_seed(0)
        )["details"][0]
        for device in ("cpu", "cuda")
    }
    for name in ("angle", "ratio", "top"):
        assert found["cpu"][f"{name}_low"] <= found["cuda"][f"{name}_high"]
        assert found["cuda"][f"{name}_low"] <= found["cpu"][f"{name}_high"]
