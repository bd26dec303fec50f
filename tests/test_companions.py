"""Companions: networks in which the answer is known, fresh samples, the two modes."""

import math

import pytest
import torch

from bnlib.companions import companions, evaluation, is_outlier, newcomers
from bnlib.layers import Stages
from bnlib.training import Layer, initial_network
from bnlib.training_data import TrainingSet, cross_entropy


def test_thresholds():
    degrees = torch.tensor([84.9, 85.1, 85.1, math.nan]).deg2rad()
    assert is_outlier(degrees, torch.tensor([9.0, 2.1, 1.9, 9.0])).tolist() == [False, True, False, False]


def test_newcomers_are_new_and_different(generator):
    pool = torch.randn(12, 3, generator=generator)
    x = torch.stack([pool[:4], pool[8:]])
    found = newcomers(x, pool, 8, generator=generator)
    for new, old in zip(found, x, strict=True):
        rows = {tuple(row) for row in new.tolist()}
        assert len(rows) == 8
        assert not rows & {tuple(row) for row in old.tolist()}
    with pytest.raises(ValueError, match="pool has 12 samples; valid are at least 9 that are not in the batch"):
        newcomers(x, pool, 9, generator=generator)


def identity_network(dimension):
    """One hidden layer that copies its input through a ReLU, without any normalization."""
    eye = torch.eye(dimension)[None]
    zero = torch.zeros(1, 1, dimension)
    return (Layer(eye, zero), Layer(eye, zero))


def test_a_sample_that_is_out_by_itself_stays_out(generator):
    # Without normalization a sample's representation is its own: the large one is the outlier in any company.
    pool = torch.zeros(20, 6)
    pool[:, 1:] = torch.rand(20, 5, generator=generator) + 1
    x = pool[None, :4].clone()
    x[0, 2] = torch.tensor([50.0, 0, 0, 0, 0, 0])
    found = companions(
        identity_network(6), x, pool, Stages.parse("NL"), torch.tensor([True]), generator=generator, repeats=5
    )
    assert found["started"] == 1
    assert [row["count"] for row in found["replaced"]] == [1, 2, 3]
    assert all(row["same"] == row["present"] == 1 for row in found["replaced"])
    assert (found["removed"]["newcomer"], found["removed"]["other"], found["removed"]["none"]) == (0, 0, 1)


def test_shares_add_up_and_dead_networks_do_not_count(generator):
    stages = Stages.parse("RC+NL")
    network = initial_network("he", [8] + [16] * 40 + [3], stages, generator=generator, networks=6, dtype=torch.float32)
    network = tuple(layer._replace(shift=None, weight=layer.weight * 1.05) for layer in network)
    pool = torch.randn(60, 8, generator=generator)
    x = pool[torch.rand(6, 60, generator=generator).argsort(dim=1)[:, :12]]
    alive = torch.tensor([True] * 5 + [False])
    found = companions(network, x, pool, stages, alive, generator=generator, repeats=3)
    assert found["started"] <= 5
    if found["started"]:
        removed = found["removed"]
        assert removed["newcomer"] + removed["other"] + removed["none"] == pytest.approx(1)
        assert all(row["same"] <= row["present"] for row in found["replaced"])
    none = companions(network, x, pool, stages, torch.zeros(6, dtype=torch.bool), generator=generator, repeats=1)
    assert none["started"] == 0
    assert none["replaced"][0]["same"] is None


def test_evaluation_finds_the_targets_of_the_own_batch(generator):
    # Outputs equal the one-hot inputs times ten: every prediction is right, but only with each sample's own target.
    pool = 10 * torch.eye(6)
    data = TrainingSet(pool, torch.arange(6), cross_entropy)
    network = identity_network(6)
    x = pool[None, [4, 1, 3]]
    found = evaluation(network, x, data, [x], Stages.parse("NL"), torch.tensor([True]), generator=generator, repeats=2)
    for kind in ("own", "fresh"):
        assert found[kind]["train_accuracy"] == found[kind]["evaluation_accuracy"] == [1.0]
    wrong = TrainingSet(pool, (torch.arange(6) + 1) % 6, cross_entropy)
    found = evaluation(network, x, wrong, [x], Stages.parse("NL"), torch.tensor([True]), generator=generator, repeats=2)
    assert found["own"]["train_accuracy"] == [0.0]
