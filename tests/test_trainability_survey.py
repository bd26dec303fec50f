"""Surveys of training: the depth that trains, the split of the data, paired seeds."""

import math

import numpy as np
import pytest
import torch

from bnlib import seeds, trainability_survey
from bnlib.data import LabeledData, digits


def test_trainable_depth():
    assert trainability_survey.trainable_depth([4, 8, 16], [0.9, 0.9, 0.9]) is None
    assert trainability_survey.trainable_depth([4, 8], [0.2, 0.1]) is None  # the shallowest did not learn
    assert trainability_survey.trainable_depth([4, 8, 16], [0.9, 0.5, 0.1]) == 8.0


def test_split_and_seed(seed):
    data = digits()
    train, test = trainability_survey.split_data(data, 0.5, torch.Generator().manual_seed(seed))
    assert len(train[0]) + len(test[0]) == len(data[0])
    assert abs(float(train[0].std()) - 1) < 1e-5
    assert float(train[0].mean(dim=0).abs().max()) < 1e-5
    again, _ = trainability_survey.split_data(data, 0.5, torch.Generator().manual_seed(seed))
    assert torch.equal(train[0], again[0])


def test_faster_seeds_compares_pairs():
    base = {"rate": 1.0, "shift": 0.0, "epsilon": 0.0, "early_losses": [2.0, None, 1.0]}
    other = base | {"epsilon": 0.5, "early_losses": [1.0, 1.0, 2.0]}
    found = trainability_survey.faster_seeds([base, other], 1.0, {"epsilon": 0.5})
    assert (found["faster"], found["seeds"], found["gain"]) == (1, 2, 0.0)


def test_nothing_of_the_held_out_samples_enters_the_scaling(seed):
    data = digits()
    train, test = trainability_survey.split_data(data, 0.8, torch.Generator().manual_seed(seed))
    order = torch.randperm(len(data[0]), generator=torch.Generator().manual_seed(seed))
    spoiled = data[0].flatten(1).clone()
    spoiled[order[len(train[0]) :]] = 1e3
    again, other = trainability_survey.split_data(
        LabeledData(spoiled, data[1]), 0.8, torch.Generator().manual_seed(seed)
    )
    assert torch.equal(train[0], again[0])
    assert not torch.equal(test[0], other[0])


def test_error_of_the_trainable_depth(seed):
    rng = np.random.default_rng(seed)
    # Two depths, the mark at 0.5: depth = 4 + 4 (0.9 - 0.5) / (0.9 - a), a = mean of m accuracies around 0.2.
    spread, m = 0.02, 40
    errors = []
    for _ in range(30):
        accuracies = [[0.9] * m, (0.2 + spread * rng.standard_normal(m)).tolist()]
        errors.append(trainability_survey.trainable_depth_error([4, 8], accuracies, rng, samples=100))
    expected = 4 * 0.4 / 0.7**2 * spread / math.sqrt(m)
    assert np.mean(errors) == pytest.approx(expected, rel=0.15)
    assert trainability_survey.trainable_depth_error([4, 8], [[0.9] * 3, [0.9] * 3], rng) is None
    assert trainability_survey.trainable_depth_error([4, 8], [[0.9, 0.9], [None, None]], rng) < 1e-12
    with pytest.raises(ValueError, match="at least two networks at each depth, got 1"):
        trainability_survey.trainable_depth_error([4, 8], [[0.9], [0.2]], rng)


def test_trainable_depth_at_a_mark_of_its_own():
    assert trainability_survey.trainable_depth([4, 8], [0.9, 0.1], mark=0.5) == 6.0
    assert trainability_survey.trainable_depth([4, 8], [0.4, 0.1], mark=0.5) is None


def test_sign_tests_are_two_sided_and_corrected():
    cells = [{"faster": 12, "seeds": 12}, {"faster": 0, "seeds": 12}, {"faster": 10, "seeds": 12}]
    rows = trainability_survey.sign_tests(cells)
    assert rows[0]["p"] == pytest.approx(2 * 0.5**12)
    assert [row["holm"] for row in rows] == pytest.approx([6 * 0.5**12, 6 * 0.5**12, rows[2]["p"]])
    assert [row["direction"] for row in rows] == [1, -1, 1]
    # Beside many cells a single ten of twelve is what chance gives.
    assert trainability_survey.sign_tests([{"faster": 10, "seeds": 12}] * 6)[0]["direction"] == 0
    assert trainability_survey.sign_tests([{"faster": 2, "seeds": 2}, {"faster": 0, "seeds": 0}])[0]["direction"] == 0


def test_acceleration_changes_one_thing_at_a_time():
    split = trainability_survey.split_data(digits(), 0.8, torch.Generator().manual_seed(0))
    sizes = {"depth": 2, "batch_size": 32, "width": 8, "steps": 2, "networks": 2}
    rows = trainability_survey.acceleration(
        split, [0.1], [0.0, 0.5], [1e-5, 0.1], generator=lambda *key: seeds.generator(0, *key), **sizes
    )
    assert [(row["shift"], row["epsilon"]) for row in rows] == [(0.0, 1e-5), (0.5, 1e-5), (0.0, 0.1)]


def test_plain_networks_train_at_the_critical_variance_only():
    split = trainability_survey.split_data(digits(), 0.8, torch.Generator().manual_seed(0))
    sizes = {"batch_size": 64, "width": 48, "steps": 60, "networks": 2}
    rows = trainability_survey.plain_rows(
        split, [0.3, 1.0], 20, generator=lambda *key: seeds.generator(0, *key), **sizes
    )
    assert rows[1]["worst"] > rows[0]["best"]
