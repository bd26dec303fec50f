"""The map's cells against naive loops, the rules against a table of cases."""

import json
import math

import numpy as np
import pytest
import torch

from bnlib.data import digits, gaussian_batch
from bnlib.ensembles import propagate
from bnlib.estimates import share_interval
from bnlib.falsification import (
    Trajectories,
    cell,
    details,
    digits_batch,
    follow,
    layer_cost,
    passages,
    plan_cell,
    run_cell,
)
from bnlib.falsification_rules import Thresholds
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


def test_run_cell_checks_two_samples_in_every_layer_and_only_them(seed):
    def checked(n, width, stages):
        found = run_cell(n, width, [3, 12], 40, stages, thresholds=Thresholds(), generator=torch_generator(seed))
        return found["two_samples"]

    found = checked(2, 16, RC_NL)
    assert (found["layers"], found["draws"], found["ratios"]) == (12, 40, 480)
    assert abs(found["largest_angle_deg"] - 90) < 1e-6
    assert found["ks_p"] > 1e-6
    assert checked(3, 16, RC_NL) is checked(2, 16, FULL) is checked(2, 2, RC_NL) is None


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


# --- plans, digits, counts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 16, 128])
@pytest.mark.parametrize("width", [64, 4096])
@pytest.mark.parametrize("budget", [1e8, 7e10, 1e15])
def test_a_plan_stays_within_its_budget_or_is_the_least_that_was_asked_for(n, width, budget):
    plan = plan_cell(n, width, [200, 10, 30, 100], draws=(24, 64), budget=budget, reach=30)
    spent = plan.draws * plan.depths[-1] * layer_cost(n, width)
    assert 24 <= plan.draws <= 64
    assert plan.depths == (10, 30, 100, 200)[: len(plan.depths)]
    assert 30 in plan.depths
    if plan.depths[-1] > 30:
        assert spent <= budget
    if len(plan.depths) < 4:
        following = (10, 30, 100, 200)[len(plan.depths)]
        assert 24 * following * layer_cost(n, width) > budget


def test_plan_errors():
    with pytest.raises(ValueError, match=r"depths is \[\]; valid is at least one depth"):
        plan_cell(8, 64, [], draws=(24, 64), budget=1e9, reach=30)
    with pytest.raises(ValueError, match=r"budget is 1\.0; valid is at least 1\.33e\+07 at n = 8, width 64\."):
        plan_cell(8, 64, [10], draws=(24, 64), budget=1.0, reach=0)


def test_digits_batches_have_different_digits(seed):
    x = digits_batch(40, 5, generator=torch_generator(seed))
    assert x.shape == (5, 40, 64)
    for batch in x:
        assert len(torch.unique(batch, dim=0)) >= 39  # the data set itself may repeat an image
    assert not torch.equal(x[0], x[1])
    with pytest.raises(ValueError, match=r"n is 1 and draws is 5; valid is 2 <= n <= 1797"):
        digits_batch(1, 5, generator=torch_generator(seed))


def test_digits_are_drawn_uniformly(seed):
    features = digits().features
    marked = features[:898]
    x = digits_batch(10, 400, generator=torch_generator(seed)).reshape(-1, 64)
    hits = int((torch.cdist(x, marked).amin(dim=1) == 0).sum())
    share, draws = 898 / 1797, 4000
    assert abs(hits - draws * share) < 5 * math.sqrt(draws * share * (1 - share))
    assert abs(hits - draws * 0.4) > 5 * math.sqrt(draws * 0.4 * 0.6)


def test_run_cell_on_digits_says_so_and_refuses_other_data(seed, unchecked):
    found = run_cell(6, 16, [3], 7, RC_NL, thresholds=Thresholds(), generator=torch_generator(seed), data="digits")
    assert (found["cells"][0]["data"], found["cells"][0]["stages"]) == ("digits", "RC+NL")
    assert list(found["cells"][0])[: len(CELL_KEYS)] == CELL_KEYS
    assert found["watched"] == 3
    with pytest.raises(ValueError, match=r"data is 'faces'; valid is \"gaussian\" or \"digits\"\."):
        run_cell(6, 16, [3], 7, RC_NL, thresholds=Thresholds(), generator=torch_generator(seed), data="faces")


def test_details_count_the_draws_in_which_both_rules_hold():
    found = details(trajectories([79.0, 81.0, 86.0, 89.0, math.nan], top=[3.0, 1.5, 3.0, 1.9, 3.0]), 8, 64, 1)
    assert found["joint"] == {"80": 1, "85": 1, "88": 0}
    assert (found["draws"], found["share"]) == (5, 0.2)
    assert (found["share_low"], found["share_high"]) == share_interval(1, 5)
    asked = details(trajectories([79.0, 86.0], top=[3.0, 3.0]), 8, 64, 1, Thresholds(angle_deg=75.5))
    assert asked["joint"]["75.5"] == 2
    assert asked["share"] == 1.0


def test_return_layers_are_where_the_loss_begins(seed):
    generator = np.random.default_rng(seed)
    angles = np.cumsum(generator.standard_normal((60, 40)), axis=0) + 85
    found = passages(angles, 85.0, 3)
    assert np.array_equal(found.return_layer > 0, found.returned)
    for draw in np.flatnonzero(found.returned):
        layer = found.return_layer[draw]
        assert layer > found.onset[draw]
        assert (angles[layer - 1 : layer + 2, draw] <= 85).all()
