"""Evaluation mode: against torch's own batch norm with running statistics, on one batch, on samples alone."""

import pytest
import torch
from torch import nn

from bnlib.evaluation_mode import evaluation_outputs, evaluation_representations, population_statistics
from bnlib.layers import Stages
from bnlib.training import forward, hidden_representations, initial_network

ALL = ["NL", "RC+NL", "RMS+NL", "STD+NL", "RC+RS+NL", "RC+RS"]


def networks(text, generator, count=2):
    return initial_network("he", [5, 9, 9, 9, 3], Stages.parse(text), generator=generator, networks=count)


@pytest.mark.parametrize("text", ALL)
def test_on_the_only_batch_both_modes_are_one(text, generator):
    stages, network = Stages.parse(text), networks(text, generator)
    x = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64)
    statistics = population_statistics(network, [x, x, x], stages)
    torch.testing.assert_close(evaluation_outputs(network, x, statistics, stages), forward(network, x, stages))
    for one, two in zip(
        evaluation_representations(network, x, statistics, stages),
        hidden_representations(network, x, stages),
        strict=True,
    ):
        torch.testing.assert_close(one, two)
    # Another batch has other statistics, so that the two modes differ wherever the batch enters at all.
    other = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64)
    equal = torch.allclose(evaluation_outputs(network, other, statistics, stages), forward(network, other, stages))
    assert equal == (text == "NL")


@pytest.mark.parametrize("text", ALL)
def test_no_sample_sees_another(text, generator):
    stages, network = Stages.parse(text), networks(text, generator)
    x = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64)
    statistics = population_statistics(network, [x], stages)
    together = evaluation_outputs(network, x, statistics, stages)
    alone = torch.cat([evaluation_outputs(network, x[:, i : i + 1], statistics, stages) for i in range(7)], dim=1)
    torch.testing.assert_close(together, alone)


def test_as_torch_with_cumulative_averages(generator):
    stages, network = Stages.parse("RC+RS+NL"), networks("RC+RS+NL", generator, count=1)
    modules = []
    for layer in network[:-1]:
        linear = nn.Linear(*layer.weight.shape[1:], dtype=torch.float64)
        linear.weight.data, linear.bias.data = layer.weight[0].T.clone(), layer.bias[0, 0].clone()
        modules += [linear, nn.BatchNorm1d(layer.weight.shape[2], momentum=None, dtype=torch.float64), nn.ReLU()]
    model = nn.Sequential(*modules)
    batches = torch.randn(4, 1, 8, 5, generator=generator, dtype=torch.float64)
    for batch in batches:
        model(batch[0])
    found = population_statistics(network, batches, stages)
    for index, own in enumerate(found):
        torch.testing.assert_close(own.mean[0, 0], modules[3 * index + 1].running_mean)
        # torch keeps the unbiased variance.
        torch.testing.assert_close(own.variance[0, 0] * 8 / 7, modules[3 * index + 1].running_var)


def test_no_batch(generator):
    with pytest.raises(ValueError, match="batches is empty; valid is at least one batch"):
        population_statistics(networks("NL", generator), [], Stages.parse("NL"))
