"""Figure 2's experiment: the data, the configurations, ranks known in advance, the choice of the learning rate."""

import math

import numpy as np
import pytest
import torch

from bnlib.layers import Stages, recenter
from bnlib.rank_summaries import cell_summary, contraction
from bnlib.rank_training import (
    CONFIGURATIONS,
    configuration,
    depth_cell,
    draw_networks,
    first_step,
    initial_geometry,
    standardized_digits,
    train_networks,
)
from bnlib.training import hidden_representations

NL = Stages.parse("NL")


@pytest.fixture(scope="module")
def split():
    return standardized_digits()


def batches(split, networks, size, generator):
    order = torch.rand(networks, len(split.train_x), generator=generator).argsort(dim=1)[:, :size]
    return split.train_x[order]


def test_split_is_fixed_and_standardized(split):
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    tested = np.isin(np.arange(len(labels)) % 7, [4, 5, 6])
    assert split.train_y.tolist() == labels[~tested].tolist()
    assert split.test_y.tolist() == labels[tested].tolist()
    reference = (pixels - pixels[~tested].mean(axis=0)) / np.sqrt(
        ((pixels - pixels[~tested].mean(0))[~tested] ** 2).mean()
    )
    np.testing.assert_allclose(split.test_x, reference[tested], atol=1e-12)
    np.testing.assert_allclose(split.train_x.mean(dim=0), 0, atol=1e-12)


def test_rank_one_start_has_rank_two_everywhere(split, generator):
    chosen = configuration("He with rank-one start")
    network = draw_networks(chosen, 64, 20, 4, networks=3, generator=generator)
    for representation in hidden_representations(network, batches(split, 3, 30, generator), chosen.stages):
        singular = torch.linalg.svdvals(representation)
        assert (singular[:, 2] < 1e-13 * singular[:, 0]).all()
        assert (singular[:, 1] > 1e-3 * singular[:, 0]).all()


def test_geometry_by_hand(split, generator):
    network = draw_networks(configuration("He"), 64, 12, 3, networks=2, generator=generator)
    x = batches(split, 2, 10, generator)
    found = initial_geometry(network, x, NL, [0.1, 1e-6])
    for k in range(2):
        h = x[k]
        for depth, layer in enumerate(network[:-1]):
            h = torch.relu(h @ layer.weight[k] + layer.bias[k])
            assert math.isclose(found["deviation_norm"][k][depth], float(recenter(h).norm()), rel_tol=1e-9)
            assert math.isclose(found["deviation"][k][depth], float(recenter(h).norm() / h.norm()), rel_tol=1e-9)
        assert found["rank"]["1e-06"][k] == int(torch.linalg.matrix_rank(h, rtol=1e-6))
        assert found["live_neurons"][k] == int((h.abs().sum(dim=0) > 0).sum())
        assert found["rank"]["0.1"][k] <= found["rank"]["1e-06"][k] <= found["live_neurons"][k]
        share = torch.linalg.svdvals(h) / torch.linalg.svdvals(h).sum()
        share = share[share > 0]
        assert math.isclose(found["effective"]["entropy"][k], float(torch.exp(-(share * share.log()).sum())))


def test_distances_contract_as_the_proposition_says(generator):
    # One layer at a time and many neurons: mean squared distance at most the factor times the old one, and close to it
    # for near samples; the factor of the other law is rejected.
    x = torch.randn(1, 30, generator=generator, dtype=torch.float64)
    y = x + 0.01 * torch.randn(1, 30, generator=generator, dtype=torch.float64)
    for name, factor, wrong in (("PyTorch default", 1 / 6, 1.0), ("He", 1.0, 1 / 6)):
        network = draw_networks(configuration(name), 30, 30, 1, networks=4000, generator=generator)
        (h,) = hidden_representations(network, torch.cat([x, y]), NL)
        ratio = (h[:, 0] - h[:, 1]).square().sum(dim=1) / (x - y).square().sum()
        error = float(ratio.std()) / math.sqrt(len(ratio))
        assert abs(float(ratio.mean()) - factor) < 5 * error + 0.01 * factor
        assert abs(float(ratio.mean()) - wrong) > 5 * error + 0.01


def test_default_collapses_to_the_biases(split, generator):
    network = draw_networks(configuration("PyTorch default"), 64, 64, 24, networks=3, generator=generator)
    found = initial_geometry(network, batches(split, 3, 40, generator), NL, [1e-3])
    assert found["rank"]["0.001"] == [1, 1, 1]
    cell = {"configuration": "PyTorch default", **found}
    assert abs(contraction(cell)["factor"] * math.sqrt(6) - 1) < 0.25
    he = initial_geometry(
        draw_networks(configuration("He"), 64, 64, 24, networks=3, generator=generator),
        batches(split, 3, 40, generator),
        NL,
        [1e-3],
    )
    assert abs(contraction({"configuration": "He", **he})["factor"] - 1) < 0.25
    assert min(he["rank"]["0.001"]) > 1


def test_a_diverged_network_is_reported_and_counts_as_zero(split, generator):
    network = draw_networks(configuration("He"), 64, 16, 3, networks=2, generator=generator)
    found = train_networks(network, split, NL, 1e12, batch_size=128, epochs=1, generator=generator)
    assert found["diverged"] == 2
    assert found["train"] == [None, None]
    assert found["train_mean"] == 0.0


def test_cell_is_reproducible_and_summarized(split, seed):
    def cell():
        return depth_cell(
            configuration("batch norm"),
            2,
            split,
            width=16,
            batch_size=64,
            networks=2,
            rank_networks=3,
            epochs=1,
            selection_rounds=[1],
            selection_networks=1,
            learning_rates=[0.1],
            tolerances=[1e-2],
            generator=lambda label: torch.Generator().manual_seed(seed + 1000 * len(label)),
        )

    first = cell()
    assert first == cell()
    found = cell_summary(first)
    assert found["rank_mean"]["0.01"] == np.mean(first["rank"]["0.01"])
    assert math.isclose(found["live_error"], np.std(first["live_neurons"], ddof=1) / math.sqrt(3), abs_tol=1e-12)
    assert "deviation" not in found
    assert first["rate"] == 0.1
    assert first["edge"] == "only"
    assert [len(first[name]) for name in ("first_gradient", "train", "test")] == [2, 2, 2]
    assert len(first["rank_after"]["0.01"]) == 2


def test_first_step_against_autograd(split, generator):
    network = draw_networks(configuration("He"), 64, 12, 2, networks=2, generator=generator)
    order = torch.rand(2, len(split.train_x), generator=generator).argsort(dim=1)[:, :10]
    x, y = split.train_x[order], split.train_y[order]
    found = first_step(network, x, y, NL, 0.1, [1e-6])
    for k in range(2):
        layers = [
            (layer.weight[k].clone().requires_grad_(), layer.bias[k].clone().requires_grad_()) for layer in network
        ]

        def hidden(layers=layers, k=k):
            h = x[k]
            for weight, bias in layers[:-1]:
                h = torch.relu(h @ weight + bias)
            return h

        torch.nn.functional.cross_entropy(hidden() @ layers[-1][0] + layers[-1][1], y[k]).backward()
        output = torch.cat([layers[-1][0].grad.flatten(), layers[-1][1].grad.flatten()]).norm()
        assert math.isclose(found["first_gradient"][k], float(layers[0][0].grad.norm() / output), rel_tol=1e-9)
        with torch.no_grad():
            for one in (one for layer in layers for one in layer):
                one -= 0.1 * one.grad
            assert found["rank_after"]["1e-06"][k] == int(torch.linalg.matrix_rank(hidden(), rtol=1e-6))


def test_one_step_lifts_a_rank_one_start(split, generator):
    # The gradient of the first weights is a sum over samples of x_i g_i^T: its rank is not that of the weights.
    chosen = configuration("He with rank-one start")
    network = draw_networks(chosen, 64, 20, 3, networks=2, generator=generator)
    order = torch.rand(2, len(split.train_x), generator=generator).argsort(dim=1)[:, :30]
    x, y = split.train_x[order], split.train_y[order]
    assert max(initial_geometry(network, x, NL, [1e-8])["rank"]["1e-08"]) <= 2
    assert min(first_step(network, x, y, NL, 0.1, [1e-8])["rank_after"]["1e-08"]) > 2


def test_errors(split, generator, unchecked):
    known = "; ".join(CONFIGURATIONS)
    with pytest.raises(ValueError, match=f"name must be a configuration, one of {known}, got 'LeCun'"):
        configuration("LeCun")
    with pytest.raises(ValueError, match="depth must be at least 1 hidden layer, got 0"):
        draw_networks(configuration("He"), 4, 4, 0, networks=1, generator=generator)
    with pytest.raises(ValueError, match="rank_networks must be at least networks = 3, got 2"):
        depth_cell(
            configuration("He"),
            1,
            split,
            width=4,
            batch_size=8,
            networks=3,
            rank_networks=2,
            epochs=1,
            selection_rounds=[1],
            selection_networks=1,
            learning_rates=[0.1],
            tolerances=[0.1],
            generator=lambda _: generator,
        )
