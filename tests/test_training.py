"""Training: step for step against torch's own layers and optimizer, independence of the networks, divergence."""

import math

import pytest
import torch
from torch import nn

from bnlib.layers import Stages, apply_stages
from bnlib.training import (
    Layer,
    accuracy,
    cross_entropy,
    forward,
    gradients,
    hidden_representations,
    initial_network,
    normalize,
    select_networks,
    sgd_step,
    shuffled_batches,
    train,
)

STAGES = ["NL", "RC+RS+NL", "RC+NL", "RMS+NL", "STD+NL", "RC+RS"]


def problem(generator, networks=2, steps=6, samples=12, dtype=torch.float64):
    """Random batches of samples in five dimensions with three classes."""
    x = torch.randn(steps, networks, samples, 5, generator=generator, dtype=dtype)
    labels = torch.randint(3, (steps, networks, samples), generator=generator)
    return list(zip(x, labels, strict=True))


def reference_model(network, index, stages):
    """The same network of torch modules."""
    modules = []
    for position, layer in enumerate(network):
        _, fan_in, fan_out = layer.weight.shape
        linear = nn.Linear(fan_in, fan_out, dtype=torch.float64)
        linear.weight.data, linear.bias.data = layer.weight[index].T.clone(), layer.bias[index, 0].clone()
        modules.append(linear)
        if position < len(network) - 1:
            if stages.recentering:
                modules.append(nn.BatchNorm1d(fan_out, dtype=torch.float64))
            modules.append(nn.ReLU())
    return nn.Sequential(*modules)


@pytest.mark.parametrize("name", ["torch default", "he"])
@pytest.mark.parametrize("text", ["NL", "RC+RS+NL"])
def test_step_for_step_as_torch(name, text, generator):
    stages = Stages.parse(text)
    network = initial_network(name, [5, 7, 7, 3], stages, generator=generator, networks=2)
    batches = problem(generator)
    probed = train(
        network, batches, stages, 0.2, probe=lambda step, one: [layer.weight for layer in one], probe_steps=range(7)
    ).probes
    model = reference_model(network, 1, stages)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for step, (x, labels) in enumerate(batches):
        weights = [module.weight.T for module in model if isinstance(module, nn.Linear)]
        for ours, theirs in zip(probed[step][1], weights, strict=True):
            torch.testing.assert_close(ours[1], theirs, rtol=1e-9, atol=1e-11)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[1]), labels[1]).backward()
        optimizer.step()
    assert [step for step, _ in probed] == list(range(7))
    # A wrong step is seen: one with another learning rate is far away after one step.
    assert (probed[1][1][0][1] - probed[0][1][0][1]).abs().max() > 1e-4


@pytest.mark.parametrize("text", STAGES)
def test_normalize_is_the_library_of_layers(text, generator):
    stages = Stages.parse(text)
    h = torch.randn(3, 8, 4, generator=generator, dtype=torch.float64) + 1
    plain = Layer(h, h)
    torch.testing.assert_close(normalize(h, plain, stages, eps=0.0), apply_stages(h, stages))
    # With gain and shift: the fast kernel and the single operations agree.
    gain, shift = (torch.randn(3, 1, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    learned = Layer(h, h, gain if stages.rescaling != "none" else None, shift if stages.recentering else None)
    whole = normalize(h, learned, stages, eps=0.1)
    torch.testing.assert_close(normalize(h, learned, stages, eps=0.1, reference=8), whole)
    # Statistics of the first rows only: the other rows do not influence them.
    part = normalize(h, learned, stages, eps=0.1, reference=5)
    other = normalize(torch.cat([h[:, :5], h[:, 5:6]], dim=1), learned, stages, eps=0.1, reference=5)
    torch.testing.assert_close(part[:, :6], other)
    torch.testing.assert_close(part[:, :5], normalize(h[:, :5], learned, stages, eps=0.1))


@pytest.mark.parametrize("text", STAGES)
def test_gradient_by_differences(text, generator):
    stages = Stages.parse(text)
    network = initial_network("torch default", [5, 4, 4, 3], stages, generator=generator, networks=2)
    x, labels = problem(generator, steps=1)[0]
    _, slope = gradients(network, x, labels, stages)
    direction = tuple(
        Layer(*(None if one is None else torch.randn(one.shape, generator=generator, dtype=one.dtype) for one in layer))
        for layer in network
    )
    step = 1e-6
    values = [cross_entropy(forward(sgd_step(network, direction, h), x, stages), labels) for h in (step, -step)]
    along = sum(
        (a * b).sum(dim=(1, 2))
        for one, two in zip(slope, direction, strict=True)
        for a, b in zip(one, two, strict=True)
        if a is not None
    )
    torch.testing.assert_close((values[1] - values[0]) / (2 * step), along, rtol=1e-4, atol=1e-6)


def test_networks_do_not_meet(generator):
    stages = Stages.parse("RC+RS+NL")
    network = initial_network("he", [5, 6, 3], stages, generator=generator, networks=3)
    batches = problem(generator, networks=3)
    rates = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    together = train(network, batches, stages, rates)
    for index in range(3):
        alone = train(
            select_networks(network, [index]),
            [(x[[index]], y[[index]]) for x, y in batches],
            stages,
            float(rates[index]),
        )
        torch.testing.assert_close(alone.losses[:, 0], together.losses[:, index])
        torch.testing.assert_close(alone.network[0].weight[0], together.network[0].weight[index])


def test_divergence_is_reported_and_stays_alone(generator):
    stages = Stages.parse("none")  # no ReLU: dead neurons would keep the loss finite
    network = initial_network("he", [5, 6, 6, 3], stages, generator=generator, networks=2, dtype=torch.float32)
    batches = [(1e3 * x, y) for x, y in problem(generator, steps=12, dtype=torch.float32)]
    found = train(network, batches, stages, torch.tensor([1e-8, 1e20]))
    assert found.diverged_at[0] == -1
    assert 0 < found.diverged_at[1] < 12
    assert found.losses.shape == (12, 2)
    assert found.losses[:, 0].isfinite().all()
    assert not found.losses[found.diverged_at[1], 1].isfinite()
    shares = accuracy(found.network, batches[0][0][0], batches[0][1][0], stages)
    assert 0 <= shares[0] <= 1
    assert shares[1].isnan()
    # All have diverged: training ends.
    assert len(train(network, batches, stages, 1e20).losses) < 12


def test_training_learns_and_chance_does_not(generator):
    stages = Stages.parse("NL")
    x = torch.randn(60, 5, generator=generator, dtype=torch.float64)
    labels = (x[:, 0] > 0).long()
    network = initial_network("he", [5, 20, 2], stages, generator=generator, networks=3)
    batches = [(x[index], labels[index]) for index in shuffled_batches(60, 20, 60, networks=3, generator=generator)]
    assert (accuracy(train(network, batches, stages, 0.3).network, x, labels, stages) > 0.95).all()
    shuffled = [(x, y[:, torch.randperm(20, generator=generator)]) for x, y in batches]
    assert (accuracy(train(network, shuffled, stages, 0.3).network, x, labels, stages) < 0.95).all()


def test_accuracy_with_the_statistics_of_the_training_set(generator):
    stages = Stages.parse("RC+RS+NL")
    network = initial_network("torch default", [5, 8, 3], stages, generator=generator)
    seen, x = (torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in (40, 9))
    labels = torch.randint(3, (9,), generator=generator)
    one_by_one = [accuracy(network, x[[i]], labels[[i]], stages, statistics_of=seen).item() for i in range(9)]
    together = accuracy(network, x, labels, stages, statistics_of=seen).item()
    assert math.isclose(sum(one_by_one) / 9, together)


def test_batches_cover_each_epoch_once(generator):
    found = list(shuffled_batches(10, 3, 2, networks=2, generator=generator))
    assert len(found) == 6
    for epoch in (found[:3], found[3:]):
        for indices in torch.cat(epoch, dim=1):
            assert len(set(indices.tolist())) == 9
    assert not torch.equal(torch.cat(found[:3], dim=1)[0], torch.cat(found[:3], dim=1)[1])


def test_hidden_representations_are_those_of_forward(generator):
    stages = Stages.parse("RC+NL")
    network = initial_network("he", [5, 6, 7, 3], stages, generator=generator, networks=2)
    x = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    *_, last = hidden_representations(network, x, stages)
    assert last.shape == (2, 4, 7)
    torch.testing.assert_close(last @ network[-1].weight + network[-1].bias, forward(network, x, stages))
    assert [(layer.gain is None, layer.shift is None) for layer in network] == [(True, False)] * 2 + [(True, True)]


def test_errors(generator, unchecked):
    stages = Stages.parse("NL")
    with pytest.raises(ValueError, match=r"widths must name the input, the hidden layers and the output, got \[5\]"):
        initial_network("he", [5], stages, generator=generator)
    with pytest.raises(ValueError, match="name must be an initialization, one of"):
        initial_network("He-like", [5, 3], stages, generator=generator)
    with pytest.raises(
        ValueError, match=r"stages are NL\+RC; valid are stages with the normalization before the activ"
    ):
        initial_network("he", [5, 3], Stages.parse("NL+RC"), generator=generator)
    with pytest.raises(ValueError, match="batch_size must be from 1 to the number of samples 4, got 5"):
        list(shuffled_batches(4, 5, 1, networks=1, generator=generator))
    network = initial_network("he", [5, 3], stages, generator=generator)
    for rate in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="learning_rate must be positive"):
            train(network, [], stages, rate)
    assert train(network, [], stages, 0.1).losses.shape == (0, 1)
