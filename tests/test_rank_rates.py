"""The search for a learning rate: against separate training, thinning, divergence, errors."""

import pytest
import torch

from bnlib.layers import Stages
from bnlib.rank_rates import best_rate, edge_of_grid, rate_search
from bnlib.rank_training import configuration, draw_networks, standardized_digits
from bnlib.training import accuracy, shuffled_batches, train

NL = Stages.parse("NL")


@pytest.fixture(scope="module")
def split():
    return standardized_digits()


def start(generator, networks=2, depth=2):
    return draw_networks(configuration("He"), 64, 16, depth, networks=networks, generator=generator)


def test_each_rate_trains_as_if_it_were_alone(split, generator):
    # Float64, so that training alone and training beside others differ by rounding only. The loss of a rate that
    # stays through both rounds comes from one uninterrupted training on the same batches.
    network, x = start(generator), split.train_x[:256]
    labels = split.train_y[:256]
    state = generator.get_state()
    options = {"batch_size": 64, "rounds": [2, 3]}
    found = rate_search(network, x, labels, NL, [0.01, 1e-9, 0.1, 1e-8], generator=generator, **options)
    generator.set_state(state)
    orders = list(shuffled_batches(256, 64, 2, networks=2, generator=generator))
    orders += list(shuffled_batches(256, 64, 1, networks=2, generator=generator))
    for one in found:
        steps = orders[: 4 * one["epochs"]]
        alone = train(network, ((x[order], labels[order]) for order in steps), NL, one["rate"])
        assert one["loss"] == pytest.approx(float(alone.losses[-4:].mean()), rel=1e-6)
        shares = accuracy(alone.network, x, labels, NL)
        assert (one["accuracy_min"], one["accuracy_max"]) == pytest.approx((float(shares.min()), float(shares.max())))
    assert [one["rate"] for one in found] == [0.01, 1e-9, 0.1, 1e-8]
    assert sorted(one["epochs"] for one in found) == [2, 2, 3, 3]
    assert found[2]["epochs"] == 3  # four rates of which two learn nothing: the largest stays in the race
    assert best_rate(found) == 0.1


def test_thinning_halves_upwards_until_one_is_left(split, generator):
    network = start(generator, networks=1, depth=1)
    options = {"batch_size": 64, "generator": generator}
    x, y = split.train_x[:128].float(), split.train_y[:128]
    found = rate_search(network, x, y, NL, [0.1, 0.01, 0.003, 0.001, 0.0001], rounds=[1, 2, 3, 9], **options)
    assert sorted(one["epochs"] for one in found) == [1, 1, 2, 3, 3]
    assert [one["epochs"] for one in rate_search(network, x, y, NL, [0.1], rounds=[1, 5], **options)] == [1]


def test_divergence_comes_last(split, generator):
    options = {"batch_size": 128, "rounds": [1, 2], "generator": generator}
    x, y = split.train_x.float(), split.train_y
    found = rate_search(start(generator, depth=3), x, y, NL, [1e12, 1e-3, 1e13], **options)
    assert [one["loss"] is None for one in found] == [True, False, True]
    assert (found[0]["accuracy_min"], found[0]["accuracy_max"]) == (0.0, 0.0)
    assert best_rate(found) == 1e-3
    assert found[0]["epochs"] == 2  # of the two that diverged the smaller one comes first
    nothing = rate_search(start(generator, depth=3), x, y, NL, [1e13, 1e12], **options)
    assert best_rate(nothing) == 1e12


def test_a_worse_late_loss_loses_to_a_better_one_only_among_the_last():
    # A rate that left early does not come back, however small its loss was then.
    early = {"rate": 1.0, "epochs": 1, "loss": 0.01}
    assert best_rate([early, {"rate": 0.1, "epochs": 2, "loss": 0.5}, {"rate": 0.2, "epochs": 2, "loss": 0.4}]) == 0.2


def test_edges():
    assert [edge_of_grid(rate, [0.3, 0.1, 0.03]) for rate in (0.3, 0.1, 0.03)] == ["upper", "inside", "lower"]
    assert edge_of_grid(0.1, [0.1]) == "only"


def test_errors(split, generator):
    network, x, y = start(generator), split.train_x, split.train_y
    options = {"batch_size": 64, "generator": generator}
    with pytest.raises(ValueError, match="learning_rates must hold at least one rate, got an empty list"):
        rate_search(network, x, y, NL, [], rounds=[1], **options)
    for rounds in ([], [0, 1], [2, 2]):
        with pytest.raises(ValueError, match="rounds must increase from at least 1 epoch, got"):
            rate_search(network, x, y, NL, [0.1], rounds=rounds, **options)


def test_stays_on_torch(split, generator):
    before = torch.get_rng_state()
    rate_search(
        start(generator), split.train_x, split.train_y, NL, [0.1], batch_size=512, rounds=[1], generator=generator
    )
    assert torch.equal(before, torch.get_rng_state())  # no global randomness
