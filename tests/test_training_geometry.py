"""Training and geometry: pairing of specs, choice of networks, summaries, the control, divergence, errors."""

import math
from dataclasses import replace

import pytest
import torch

from bnlib.training_geometry import (
    RECENTERED,
    GeometrySpec,
    Seen,
    look,
    perturbed,
    plain_numbers,
    probe_steps,
    run_geometry,
    start_networks,
    summarize,
)


def small(seed, **changes):
    options = dict(depth=12, width=16, networks=4, batch_size=8, samples=24, steps=4, seed=seed)
    return GeometrySpec("small", **options | changes)


def test_specs_are_paired(seed):
    one = start_networks(small(seed, start="any"))
    for changes in ({"stages": "NL"}, {"learning_rate": 0.5}, {"batches": "resampled"}, {"stages": "RC+RS+NL"}):
        other = start_networks(small(seed, start="any", **changes))
        assert torch.equal(one[1], other[1])
        assert all(torch.equal(a.weight, b.weight) for a, b in zip(one[0], other[0], strict=True))
    assert not torch.equal(one[1], start_networks(small(seed + 1, start="any"))[1])


def test_networks_are_chosen_by_their_start(seed):
    spec = small(seed, depth=40, width=24, batch_size=10)
    network, x, targets, data, _ = start_networks(spec)
    assert bool(look(network, x, targets, data, RECENTERED).present.all())
    network, x, targets, data, _ = start_networks(replace(spec, start="no outlier"))
    assert not bool(look(network, x, targets, data, RECENTERED).present.any())
    # The same networks, but trained with full batch normalization: the choice was made under recentering alone.
    network, x, targets, data, _stages = start_networks(replace(spec, stages="RC+RS+NL"))
    assert bool(look(network, x, targets, data, RECENTERED).present.all())
    assert network[0].gain is not None
    assert network[-1].gain is None
    assert network[0].shift is None
    assert start_networks(replace(spec, shift=True))[0][0].shift is not None


def test_theorem_13_keeps_the_norm_of_the_outlier(seed):
    # In the outlier state one recentered layer keeps the outlier's mean squared norm; He's variance loses 1/alpha.
    spec = small(seed, depth=1, width=4000, batch_size=16, samples=16, networks=1, start="any")
    state = torch.zeros(1, 16, 64)
    state[0, 0, 0] = 1
    state[0, 1:, 1] = 1 / 15
    for variance, expected in (("theorem 13", 1.0), ("as drawn", 226 / 256)):
        network = start_networks(replace(spec, variance=variance))[0]
        h = state @ network[0].weight
        top = torch.relu(h - h.mean(dim=1, keepdim=True))[0, 0].square()
        # Entries of variance 2 alpha / 64: the sum over 4000 neurons is 4000/64 times the squared norm.
        total, error = float(top.sum()), float(top.std()) * math.sqrt(4000)
        assert abs(total - expected * 4000 / 64) < 5 * error
        assert abs(total - 1.5 * expected * 4000 / 64) > 5 * error


def fake(present, index, cluster=0.5, loss=1.0):
    count = len(present)
    ones = torch.ones(count, dtype=torch.float64)
    return Seen(
        torch.tensor(index), ones, ones, ones * cluster, ones, torch.tensor(present), ones * loss, ones * math.nan
    )


def test_summary_counts():
    first = fake([True, True, True, False, False], [0, 1, 2, 3, 4])
    now = fake([True, True, False, True, False], [0, 5, 2, 3, 4], cluster=0.6)
    found = summarize(7, first, now, 8)
    assert (found["started"], found["present"], found["kept"], found["same"], found["born"]) == (3, 3, 2, 1, 1)
    assert found["chance"] == 1 / 8
    assert found["accuracy"] is None
    assert found["cluster_change_deg"]["pairs"] == 2
    assert found["cluster_change_deg"]["mean"] == pytest.approx(math.degrees(0.1))
    # A network whose loss is NaN has lost its outlier.
    dead = now._replace(loss=torch.tensor([math.nan, 1, 1, 1, 1], dtype=torch.float64))
    assert (summarize(7, first, dead, 8)["kept"], summarize(7, first, dead, 8)["finite"]) == (1, 4)
    assert plain_numbers(dead)["loss"][0] is None


def test_control_has_the_size_of_the_change(seed):
    network, x, targets, data, stages = start_networks(small(seed, start="any"))
    moved = tuple(layer._replace(weight=1.5 * layer.weight) for layer in network)
    alive = torch.ones(4, dtype=torch.bool)
    generator = torch.Generator().manual_seed(seed)
    found = perturbed(network, moved, x, targets, data, stages, alive, generator)
    assert found["relative_change"] == pytest.approx(0.5, abs=1e-5)
    # Scaling every layer changes no angle: training of this kind keeps every outlier.
    assert found["trained_same"] == found["started"]
    assert found["only_noise"] == 0
    assert found["only_trained"] == found["started"] - found["same"]
    still = perturbed(network, network, x, targets, data, stages, alive, generator)
    assert still["same"] == still["started"]
    assert still["relative_change"] == 0


def test_run(seed):
    spec = small(seed, depth=3, steps=40, learning_rate=0.05, start="any", width=32)
    found = run_geometry(spec)
    assert [row["step"] for row in found["rows"]] == probe_steps(40) == [0, 1, 3, 10, 30, 40]
    assert found["rows"][-1]["loss"] < found["rows"][0]["loss"]
    assert run_geometry(spec) == found
    assert set(found["evaluation"]["end"]) == {"own", "fresh"}
    resampled = run_geometry(replace(spec, batches="resampled"))
    assert resampled["rows"][0] == found["rows"][0]
    assert resampled["rows"][-1] != found["rows"][-1]
    assert run_geometry(replace(spec, data="gaussian"))["rows"][0]["accuracy"] is None


def test_a_diverging_run_ends_itself_alone(seed):
    found = run_geometry(small(seed, depth=3, steps=60, learning_rate=1e4, start="any"))
    assert found["diverged"] == 4
    assert found["rows"][-1]["finite"] == 0
    assert found["rows"][-1]["loss"] is None
    assert found["companions"]["end"]["started"] == 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"stages": "RC+XX"}, "stages contain 'XX'"),
        ({"initialization": "kaiming"}, "name must be an initialization, one of torch default, he"),
        ({"data": "imagenet"}, "data must be one of gaussian, random labels, digits, mnist"),
        ({"batches": "all"}, "batches must be one of fixed, resampled, got 'all'"),
        ({"start": "x"}, "start must be one of outlier, no outlier, any"),
        ({"variance": "x"}, "variance must be one of as drawn, theorem 13"),
        ({"batch_size": 2}, "batch_size must be at least 3, got 2"),
        ({"samples": 4}, "samples must be at least batch_size = 8, got 4"),
        ({"learning_rate": 0.0}, "learning_rate must be positive and finite"),
    ],
)
def test_errors(changes, sentence, unchecked):
    with pytest.raises(ValueError, match=sentence):
        small(0, **changes)
