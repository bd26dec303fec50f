"""Surveys of training: the depth that trains, the split of the data, paired seeds."""

import torch

from bnlib import trainability_survey


def test_trainable_depth():
    assert trainability_survey.trainable_depth([4, 8, 16], [0.9, 0.9, 0.9]) is None
    assert trainability_survey.trainable_depth([4, 8], [0.2, 0.1]) is None  # the shallowest did not learn
    assert trainability_survey.trainable_depth([4, 8, 16], [0.9, 0.5, 0.1]) == 8.0


def test_split_and_seed(seed):
    from bnlib.data import digits

    data = digits()
    train, test = trainability_survey.split_data(data, 0.5, torch.Generator().manual_seed(seed))
    assert len(train[0]) + len(test[0]) == len(data[0])
    assert abs(float(torch.cat([train[0], test[0]]).std()) - 1) < 1e-3
    again, _ = trainability_survey.split_data(data, 0.5, torch.Generator().manual_seed(seed))
    assert torch.equal(train[0], again[0])


def test_faster_seeds_compares_pairs():
    base = {"rate": 1.0, "shift": 0.0, "epsilon": 0.0, "early_losses": [2.0, None, 1.0]}
    other = base | {"epsilon": 0.5, "early_losses": [1.0, 1.0, 2.0]}
    found = trainability_survey.faster_seeds([base, other], 1.0, {"epsilon": 0.5})
    assert (found["faster"], found["seeds"], found["gain"]) == (1, 2, 0.0)
