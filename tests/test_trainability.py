"""Training of deep networks: against torch's own modules and optimizers; surveys; figures; messages."""

import math

import pytest
import torch

from bnlib import trainability, trainability_survey
from bnlib.trainability import Setting


def reference_losses(network, batches, setting):
    """One network by torch's Linear, BatchNorm1d and optimizers."""
    blocks = []
    for weight, gain, shift in zip(network.weights, network.gains, network.shifts, strict=True):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[2], bias=False, dtype=weight.dtype)
        norm = torch.nn.BatchNorm1d(weight.shape[2], eps=setting.epsilon, dtype=weight.dtype)
        linear.weight.data, norm.weight.data, norm.bias.data = (
            weight[0].T.clone(),
            gain[0, 0].clone(),
            shift[0, 0].clone(),
        )
        blocks += [linear, norm, torch.nn.ReLU()]
    last = torch.nn.Linear(*network.readout.shape[1:], dtype=network.readout.dtype)
    last.weight.data, last.bias.data = network.readout[0].T.clone(), network.bias[0, 0].clone()
    model = torch.nn.Sequential(*blocks, last).train()
    kind = torch.optim.SGD if setting.optimizer == "sgd" else torch.optim.Adam
    optimizer, losses = kind(model.parameters(), lr=setting.learning_rate), []
    for x, labels in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[0]), labels[0])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_is_that_of_torch(optimizer, generator):
    setting = Setting(optimizer=optimizer, learning_rate=0.01, shift=0.3, gain=0.8, epsilon=0.1)
    network = trainability.deep_networks(5, 7, 3, 4, setting, networks=2, generator=generator, dtype=torch.float64)
    x = torch.randn(40, 5, generator=generator, dtype=torch.float64)
    labels = torch.arange(40) % 4
    batches = trainability.drawn_batches(x, labels, 10, 8, networks=2, generator=generator)
    outcome = trainability.train_deep(network, batches, setting)
    for index in range(2):  # each network as if it were alone
        one = trainability.Deep(
            *(tuple(t[index : index + 1] for t in group) for group in network[:3]),
            *(t[index : index + 1] for t in network[3:]),
        )
        alone = [(a[index : index + 1], b[index : index + 1]) for a, b in batches]
        assert outcome.losses[:, index].tolist() == pytest.approx(reference_losses(one, alone, setting), rel=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_rate_for_each_network(optimizer, generator):
    rates = (0.003, 0.05)
    setting = Setting(optimizer=optimizer, learning_rate=rates)
    network = trainability.deep_networks(5, 7, 3, 4, setting, networks=2, generator=generator, dtype=torch.float64)
    x, labels = torch.randn(40, 5, generator=generator, dtype=torch.float64), torch.arange(40) % 4
    batches = trainability.drawn_batches(x, labels, 10, 6, networks=2, generator=generator)
    both = trainability.train_deep(network, batches, setting)
    for index, rate in enumerate(rates):
        alone = trainability.train_deep(network, batches, Setting(optimizer=optimizer, learning_rate=rate))
        assert torch.allclose(both.losses[:, index], alone.losses[:, index], rtol=1e-10)
    with pytest.raises(ValueError, match="learning_rate must hold one rate for each of 2 networks, got 3"):
        trainability.train_deep(network, batches, Setting(learning_rate=(0.1, 0.1, 0.1)))


def test_batch_norm_is_the_formula(generator):
    setting = Setting(activation="tanh", epsilon=0.3, gain=0.7, shift=0.2)
    network = trainability.deep_networks(5, 6, 1, 3, setting, networks=3, generator=generator, dtype=torch.float64)
    x = torch.randn(3, 9, 5, generator=generator, dtype=torch.float64)
    h = x @ network.weights[0]
    b = (h - h.mean(dim=1, keepdim=True)) / (h.var(dim=1, correction=0, keepdim=True) + 0.3).sqrt()
    expected = torch.tanh(0.7 * b + 0.2) @ network.readout + network.bias
    assert torch.allclose(trainability.outputs(network, x, setting), expected, rtol=1e-12, atol=1e-12)


def test_a_diverging_network_does_not_touch_the_others(generator):
    network = trainability.deep_networks(3, 6, 2, 2, Setting(), networks=2, generator=generator)
    network.readout[0] = math.inf
    x, labels = torch.randn(20, 3, generator=generator), torch.arange(20) % 2
    batches = trainability.drawn_batches(x, labels, 5, 4, networks=2, generator=generator)
    outcome = trainability.train_deep(network, batches, Setting())
    assert outcome.diverged.tolist() == [True, False]
    shares = trainability.batch_accuracy(outcome.network, x, labels, 5, Setting())
    found = trainability_survey.summary(outcome, shares)
    assert found["diverged"] == 1
    assert found["accuracies"][0] is None
    assert found["accuracies"][1] is not None


def test_first_step_is_pythagoras(generator):
    setting = Setting(epsilon=1e-9, learning_rate=0.5)
    network = trainability.deep_networks(6, 8, 4, 3, setting, networks=1, generator=generator, dtype=torch.float64)
    x, labels = torch.randn(1, 12, 6, generator=generator, dtype=torch.float64), (torch.arange(12) % 3)[None]
    after = trainability.train_deep(network, [(x, labels)], setting).network
    for before, now in zip(network.weights, after.weights, strict=True):
        longer = now.square().sum(dim=1) - before.square().sum(dim=1)
        assert torch.allclose(longer, (now - before).square().sum(dim=1), rtol=1e-5, atol=1e-9)


def test_layer_gradients_explode_towards_the_input(generator):
    network = trainability.deep_networks(16, 64, 16, 4, Setting(), networks=3, generator=generator)
    x, labels = torch.randn(3, 32, 16, generator=generator), (torch.arange(32) % 4).expand(3, -1)
    found = trainability.layer_gradients(network, x, labels, Setting())
    assert bool((found["weight"][:, 1] > 4 * found["weight"][:, -2]).all())
    assert torch.allclose(found["gain_norm"], torch.full((3, 16), 8.0, dtype=torch.float64))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: Setting(optimizer="lion"), "optimizer must be sgd or adam, got 'lion'"),
        (lambda g: Setting(learning_rate=0), "learning_rate must be positive and finite, got 0"),
        (lambda g: Setting(learning_rate=(0.1, 0.0)), "learning_rate must be positive and finite, got"),
        (lambda g: Setting(epsilon=-1.0), "epsilon must be at least 0 and finite, got -1.0"),
        (lambda g: Setting(activation="sigh"), "name must be one of"),
        (
            lambda g: trainability.deep_networks(3, 0, 1, 2, Setting(), networks=1, generator=g),
            "width must be at least 1",
        ),
        (lambda g: trainability_survey.split_data(None, 1.0, g), "share must be above 0 and below 1, got 1.0"),
        (
            lambda g: trainability.drawn_batches(torch.zeros(4, 1), torch.zeros(4), 5, 1, networks=1, generator=g),
            "batch_size must be from 2 to the number of samples 4, got 5",
        ),
        (
            lambda g: trainability.drawn_batches(torch.zeros(4, 1), torch.zeros(4), 2, 0, networks=1, generator=g),
            "steps must be at least 1, got 0",
        ),
    ],
)
def test_messages(call, message, generator, unchecked):
    with pytest.raises(ValueError, match=message):
        call(generator)


def test_without_batch_norm_a_network_is_plain(generator):
    setting = Setting("tanh", batch_norm=False, gain=0.5, shift=0.1)
    network = trainability.deep_networks(3, 4, 2, 2, setting, networks=1, generator=generator, dtype=torch.float64)
    x = torch.randn(1, 5, 3, generator=generator, dtype=torch.float64)
    hidden = torch.tanh(0.5 * x @ network.weights[0] + 0.1)
    hidden = torch.tanh(0.5 * hidden @ network.weights[1] + 0.1)
    assert torch.allclose(trainability.outputs(network, x, setting), hidden @ network.readout)
    # Samples do not see each other.
    assert torch.allclose(trainability.outputs(network, x[:, :2], setting), (hidden @ network.readout)[:, :2])
