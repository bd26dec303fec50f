"""Searches and choices of chapter 9's training runs: exponents, controls, ranges over layers, the first step."""

import math

import numpy as np
import pytest
import torch

from bnlib import depth_survey, seeds
from bnlib.data import digits
from bnlib.trainability import Deep, Outcome, Setting
from bnlib.trainability_survey import split_data


def streams(seed):
    return lambda *key: seeds.generator(seed, *key)


def searches_with(power, scales, rng, spread=0.0, networks=3):
    """Searches whose accuracy crosses one half at 10 scale^power, on a common grid of depths."""
    grid = [2, 4, 8, 16, 32, 64, 128]
    found = []
    for scale in scales:
        border = 10 * scale**power
        accuracies = [
            [
                float(np.clip(0.5 + (border - d) / (2 * border) + spread * rng.standard_normal(), 0, 1))
                for _ in range(networks)
            ]
            for d in grid
        ]
        found.append({"depths": grid, "accuracies": accuracies})
    return found


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_the_exponent_is_found_and_the_other_one_rejected(power, seed):
    rng = np.random.default_rng(seed)
    scales = [1.0, 2.0, 4.0]
    found = depth_survey.power_of_scale(scales, searches_with(power, scales, rng, 0.02), rng)
    assert abs(found["slope"] - power) < 0.1 + 5 * found["error"]
    assert abs(found["slope"] - (1 - power)) > 0.3 + 5 * found["error"]


def test_error_of_the_exponent(seed):
    rng, scales = np.random.default_rng(seed), [1.0, 2.0, 4.0]
    repeated = [
        depth_survey.power_of_scale(scales, searches_with(1, scales, rng, 0.03, networks=8), rng, samples=60)
        for _ in range(60)
    ]
    spread = np.std([one["slope"] for one in repeated], ddof=1)
    assert np.mean([one["bootstrap"] for one in repeated]) == pytest.approx(spread, rel=0.5)


def test_scatter_about_the_line_counts():
    """Depths 2, 6, 2 at scales 1, e, e^2 (a bump of log 3): a flat line that fits badly."""
    scales = [1.0, math.e, math.e**2]
    searches = [{"depths": [d // 2, 3 * d // 2], "accuracies": [[1.0] * 2, [0.0] * 2]} for d in (2, 6, 2)]
    found = depth_survey.power_of_scale(scales, searches, np.random.default_rng(0), samples=5)
    assert found["slope"] == pytest.approx(0, abs=1e-12)
    assert found["bootstrap"] == pytest.approx(0, abs=1e-12)
    assert found["error"] == pytest.approx(math.log(3) * math.sqrt(2 / 3) / math.sqrt(2))


def test_without_a_crossing_there_is_no_exponent():
    rng = np.random.default_rng(0)
    flat = {"depths": [2, 4], "accuracies": [[0.9, 0.9], [0.9, 0.9]]}
    found = depth_survey.power_of_scale([1.0, 2.0, 4.0], [flat] * 3, rng, samples=5)
    assert found == {"depths": [None] * 3, "slope": None, "bootstrap": None, "scatter": None, "error": None}
    with pytest.raises(ValueError, match="scales must be at least 3, one for each search, got 2 for 2"):
        depth_survey.power_of_scale([1.0, 2.0], [flat] * 2, rng)


def test_a_range_of_layers(seed):
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    logs = torch.tensor([0.0, 2.0, 1.0]).expand(200, -1) + 0.1 * torch.randn(200, 3, generator=generator)
    found = depth_survey.layer_range(logs.exp(), rng)
    assert found["error"] == pytest.approx(0.1 * math.sqrt(2 / 200), rel=0.4)
    assert abs(math.log(found["ratio"]) - 2) < 5 * 0.01
    assert depth_survey.layer_range(torch.ones(1, 4), rng) == {"ratio": 1.0, "error": None}
    with pytest.raises(ValueError, match="values must be positive, got 0"):
        depth_survey.layer_range(torch.zeros(2, 2), rng)


def test_first_step_facts_on_made_up_layers():
    """Ten layers whose gradients fall by a factor of e a layer, before and after a step of Pythagoras."""
    layers = torch.arange(10.0)
    jitter = torch.tensor([[-0.1], [0.0], [0.1]])
    gradient = (6 - layers + jitter).exp()
    norm = torch.ones_like(gradient)
    grown = (1 + gradient**2).sqrt()
    probes = (
        (0, {"weight": gradient, "weight_norm": norm, "weight_relative": gradient / norm}),
        (1, {"weight": gradient / grown, "weight_norm": grown, "weight_relative": gradient / grown**2}),
    )
    empty = Deep((), (), (), torch.zeros(3, 1, 1), torch.zeros(3, 1, 1))
    outcome = Outcome(empty, torch.zeros(1, 3), torch.zeros(3, dtype=torch.bool), probes)
    before, after = depth_survey.first_step_facts(outcome, 1.0, np.random.default_rng(0))
    assert before["range"] == pytest.approx(math.exp(9), rel=1e-4)
    assert before["moved"] == after["moved"] == 6
    assert after["hump"] == 7  # |g| = |w| there
    assert after["moved_range"] < 1.1
    assert after["lower_slope"] > 0.5
    assert after["grown_slope"] == pytest.approx(-1, abs=0.05)
    assert before["grown_slope"] is None


def test_shallow_networks_learn_where_deep_ones_do_not():
    split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
    rows = depth_survey.deep_and_shallow(
        split, [Setting()], [[0.1, 0.3]], (2, 40), [32], samples=32 * 40, width=32, generator=streams(0)
    )
    assert min(row["shallow"] for row in rows) > max(row["deep"] for row in rows) + 0.3
    assert [row["steps"] for row in rows] == [40, 40]


def test_the_choice_is_judged_on_new_networks():
    split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
    sizes = {"batch_size": 32, "width": 16, "steps": 20, "networks": 3}
    found = depth_survey.chosen_epsilon(split, Setting("tanh"), [0.5, 3.0], 2.0, 4, generator=streams(0), **sizes)
    accuracies = {row["fraction"]: row["accuracy"] for row in found["tried"]}
    assert found["fraction"] == max(accuracies, key=accuracies.get)
    assert found["epsilon"] == 2 * found["fraction"]
    tried = next(row for row in found["tried"] if row["fraction"] == found["fraction"])
    assert tried["accuracies"] != found["raised"]["accuracies"][:2]
    wins = sum(a > b for a in found["raised"]["accuracies"] for b in found["base"]["accuracies"])
    assert (found["p"] < 0.1) == (wins > 8)  # of 9: all of one kind above all of the other has p = 1 / 20


def test_search_stops_below_the_mark():
    split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
    sizes = {"batch_size": 64, "width": 32, "steps": 60, "networks": 2}
    found = depth_survey.depth_search(split, Setting("abs"), [2, 24, 48], generator=streams(0), **sizes)
    assert found["depths"] == [2, 24]
    assert min(found["accuracies"][0]) > 0.5


def test_parts_of_what_was_trained_together():
    empty = Deep((), (), (), torch.zeros(3, 1, 1), torch.zeros(3, 1, 1))
    probe = {"a": torch.arange(6.0).reshape(3, 2)}
    whole = Outcome(empty, torch.arange(3.0)[None], torch.tensor([False, True, False]), ((4, probe),))
    part = depth_survey.part_of(whole, slice(1, 3))
    assert part.losses.tolist() == [[1.0, 2.0]]
    assert part.diverged.tolist() == [True, False]
    assert part.probes[0][1]["a"].tolist() == [[2.0, 3.0], [4.0, 5.0]]
