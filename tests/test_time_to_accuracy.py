"""Time to accuracy: what each arm starts with, pairing, the choice of the rate, censoring, divergence, errors."""

from dataclasses import replace

import pytest
import torch

from bnlib.layers import Stages
from bnlib.time_to_accuracy import ARMS, ArmSpec, reference_batches, run_arm, start, train_arm
from bnlib.training import hidden_representations
from bnlib.training_data import training_set


def small(seed, arm="he", **changes):
    options = dict(samples=32, batch_size=8, width=24, depth=3, steps=20, networks=3, selection=2, seed=seed)
    return ArmSpec(f"{arm} {seed}", arm, **options | changes)


def data_of(seed, samples=32):
    return training_set("digits", samples, generator=torch.Generator().manual_seed(seed))


def last(network, x, stages):
    *_, h = hidden_representations(network, x, stages)
    return h


def test_what_an_arm_starts_with(seed):
    data = data_of(seed)
    he, stages = start(small(seed), data, 3, part="comparison")
    assert stages.name == "NL"
    assert he[0].gain is None
    batch, stages = start(small(seed, "batch norm"), data, 3, part="comparison")
    assert stages.name == "RC+RS+NL"
    assert batch[0].gain is not None
    assert batch[0].shift is not None
    recentered, _ = start(small(seed, "recentering"), data, 3, part="comparison")
    # The same Gaussian weights, up to the factor of Theorem 13.
    factor = (64 / (64 - 16 + 2)) ** 0.5
    torch.testing.assert_close(recentered[1].weight, factor * he[1].weight)
    dedicated, _ = start(small(seed, "dedicated neurons"), data, 3, part="comparison")
    torch.testing.assert_close(dedicated[1].weight, he[1].weight)
    first = torch.relu(data.x[None] @ dedicated[0].weight + dedicated[0].bias)
    assert int((first[0] > 0).sum()) == 24  # 24 neurons, each for one of the 32 samples
    # Their scale is that of the input, as under He's weights.
    norms = first[0].square().sum(dim=1)
    torch.testing.assert_close(norms[norms > 0].mean(), data.x.square().sum(dim=1).mean(), rtol=1e-3, atol=0)


def test_imposed_network_is_the_recentered_one_on_its_reference_batch(seed):
    data = data_of(seed)
    spec = small(seed, "cluster and outlier", depth=4)
    network, stages = start(spec, data, 3, part="comparison")
    x = data.x[reference_batches(spec, 3, part="comparison")]
    frozen = last(network, x, stages)
    # From the second layer on, recentering with the same weights gives the same representation.
    second = next(iter(hidden_representations(network, x, stages)))
    recentered = last(network[1:], second, Stages.parse("RC+NL"))
    torch.testing.assert_close(frozen, recentered, rtol=1e-3, atol=1e-3 * float(frozen.abs().max()))
    other = data.x[:8].expand(3, -1, -1)
    second = next(iter(hidden_representations(network, other, stages)))
    wrong = last(network[1:], second, Stages.parse("RC+NL"))
    assert not torch.allclose(last(network, other, stages), wrong, rtol=1e-2, atol=1e-2 * float(wrong.abs().max()))


def test_networks_are_trained_as_if_alone(seed):
    data, spec = data_of(seed), small(seed)
    together = train_arm(spec, data, 3, torch.tensor([0.01, 0.1]), part="comparison")
    alone = train_arm(spec, data, 3, torch.tensor([0.1]), part="comparison")
    torch.testing.assert_close(together["loss"][1], alone["loss"][0])
    assert torch.equal(together["reached"][1], alone["reached"][0])


def test_rate_is_chosen_and_times_are_censored(seed):
    spec = small(seed, learning_rates=(1e-6, 0.1, 1e5), steps=60, samples=8, target=1.0)
    found = run_arm(spec)
    assert found["rate"] == 0.1
    assert not found["at_edge"]
    assert found["reached"] == 3
    assert all(time % 5 == 0 and 0 < time <= 60 for time in found["times"])
    assert found["grid"][0]["time"] is None
    assert found["grid"][2]["time"] is None
    slow = run_arm(replace(spec, learning_rates=(1e-6,)))
    assert slow["times"] == [None] * 3
    assert slow["median"] is None
    assert not slow["at_edge"]
    dead = run_arm(replace(spec, learning_rates=(1e5,)))
    assert dead["diverged"] == 3
    assert dead["reached"] == 0


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_runs_twice_the_same(arm):
    found = run_arm(small(0, arm, steps=5))
    assert found == run_arm(small(0, arm, steps=5))
    assert set(found["start"]) == {"reference", "others"}


def test_errors(unchecked):
    known = "he, batch norm, recentering, dedicated neurons, cluster and outlier"
    with pytest.raises(ValueError, match=f"arm must be an initialization, one of {known}, got 'glorot'"):
        ArmSpec("x", "glorot")
    with pytest.raises(ValueError, match="data must be one of random labels, digits"):
        ArmSpec("x", "he", data="gaussian")
    with pytest.raises(ValueError, match="samples must be at least batch_size = 32, got 16"):
        ArmSpec("x", "he", samples=16)
    with pytest.raises(ValueError, match="learning_rates must be positive numbers"):
        ArmSpec("x", "he", learning_rates=())
