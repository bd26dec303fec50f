r"""Rank at initialization against training, over depth: Figure 2 of arXiv 2412.02843 as the essay describes it.

The sources give the data of the figure only in words. Everything that they leave open is chosen here and named: the
data (scikit-learn's digits), the split, the preprocessing, plain SGD, the rule for its learning rate.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib import geometry
from bnlib.data import digits
from bnlib.initializations import nearest_of_rank
from bnlib.layers import Stages, recenter
from bnlib.rank_experiments import accuracy_summary, finite_or_none, mean_and_error
from bnlib.training import (
    Network,
    accuracy,
    hidden_representations,
    initial_network,
    select_networks,
    shuffled_batches,
    train,
)

CLASSES = 10
_TEST_REMAINDERS = (4, 5, 6)  # of the sample's number modulo 7


@dataclass(frozen=True)
class Configuration:
    """How a network starts and which stages its hidden layers have.

    Attributes:
        name: as on the page.
        initialization: the initial law, see `bnlib.initializations`.
        stages: the stages of each hidden layer.
        first_rank: rank to which the first weight matrix is cut, its norm kept; None for no cut.
    """

    name: str
    initialization: str
    stages: Stages
    first_rank: int | None = None


CONFIGURATIONS: dict[str, Configuration] = {
    one.name: one
    for one in (
        Configuration("PyTorch default", "torch default", Stages.parse("NL")),
        Configuration("He", "he", Stages.parse("NL")),
        Configuration("batch norm", "torch default", Stages.parse("RC+RS+NL")),
        Configuration("He with rank-one start", "he", Stages.parse("NL"), first_rank=1),
    )
}


@dataclass(frozen=True)
class Split:
    """The digits, split and standardized.

    Attributes:
        train_x: training samples, shape (training samples, 64), mean zero in each pixel, variance one over all pixels.
        train_y: their classes.
        test_x: test samples, shifted and scaled by the numbers of the training samples.
        test_y: their classes.
    """

    train_x: Float[Tensor, "train d"]
    train_y: Int[Tensor, "train"]
    test_x: Float[Tensor, "test d"]
    test_y: Int[Tensor, "test"]


def configuration(name: str) -> Configuration:
    """Return a configuration by name.

    Raises:
        ValueError: if the name is not known; the message lists the known ones.

    Example:
        >>> configuration("He").stages.name
        'NL'
    """
    if name not in CONFIGURATIONS:
        raise ValueError(f"name must be a configuration, one of {'; '.join(CONFIGURATIONS)}, got {name!r}.")
    return CONFIGURATIONS[name]


def standardized_digits(device: str = "cpu") -> Split:
    """Return the digits with our fixed split: of every seven samples the first four train, the last three test.

    Each pixel's training mean is subtracted, and one number, the standard deviation over all pixels of the training
    samples, divides everything: single pixels that are nearly always black are not blown up.

    Args:
        device: where the tensors lie.

    Returns:
        A `Split`, float64.

    Example:
        >>> found = standardized_digits()
        >>> len(found.train_x), len(found.test_x), round(found.train_x.square().mean().item(), 9)
        (1028, 769, 1.0)
    """
    features, labels = digits()
    tested = torch.isin(torch.arange(len(labels)) % 7, torch.tensor(_TEST_REMAINDERS))
    features = features - features[~tested].mean(dim=0)
    features = features / features[~tested].square().mean().sqrt()
    return Split(*(one.to(device) for one in (features[~tested], labels[~tested], features[tested], labels[tested])))


def draw_networks(
    chosen: Configuration, inputs: int, width: int, depth: int, *, networks: int, generator: torch.Generator
) -> Network:
    """Draw the initial parameters of a configuration in float64.

    Args:
        chosen: the configuration.
        inputs: number of input features.
        width: number of neurons of each hidden layer.
        depth: number of hidden layers, at least 1.
        networks: number of independent networks.
        generator: source of randomness.

    Returns:
        Networks with `depth` hidden layers and ten outputs.

    Raises:
        ValueError: if the depth is below 1.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = draw_networks(configuration("He"), 4, 8, 3, networks=2, generator=generator)
        >>> len(network), tuple(network[-1].weight.shape)
        (4, (2, 8, 10))
    """
    if depth < 1:
        raise ValueError(f"depth must be at least 1 hidden layer, got {depth}.")
    widths = [inputs, *[width] * depth, CLASSES]
    network = initial_network(chosen.initialization, widths, chosen.stages, generator=generator, networks=networks)
    if chosen.first_rank is None:
        return network
    return (network[0]._replace(weight=nearest_of_rank(network[0].weight, chosen.first_rank)), *network[1:])


def initial_geometry(
    network: Network, x: Float[Tensor, "networks n d"], stages: Stages, tolerances: Sequence[float | int]
) -> dict[str, Any]:
    r"""Return what the last hidden layer's representation is at initialization.

    `live_neurons` counts the neurons that are not zero on the whole batch, an upper bound of every rank.
    `deviation` is, for each hidden layer, the share $\lVert GX\rVert / \lVert X\rVert$ of the representation that
    differs between samples, and `deviation_norm` is $\lVert GX\rVert$ itself (Frobenius norms).

    Args:
        network: initial parameters, float64.
        x: one batch a network.
        stages: the stages of the hidden layers.
        tolerances: shares of the largest singular value above which one counts.

    Returns:
        Lists with one entry a network: `rank` (a dictionary by tolerance), `effective` (by definition, see
        `bnlib.geometry.effective_rank`), `live_neurons`; lists with one entry a hidden layer for each network:
        `deviation_norm`, `deviation`.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = draw_networks(configuration("He"), 4, 8, 2, networks=1, generator=generator)
        >>> x = torch.eye(4, dtype=torch.float64)[None]
        >>> found = initial_geometry(network, x, Stages.parse("NL"), [1e-3])
        >>> sorted(found), len(found["rank"]["0.001"])
        (['deviation', 'deviation_norm', 'effective', 'live_neurons', 'rank'], 1)
    """
    norms, shares = [], []
    last = x
    for last in hidden_representations(network, x, stages):
        deviation = torch.linalg.matrix_norm(recenter(last))
        norms.append(deviation)
        shares.append(deviation / torch.linalg.matrix_norm(last))
    singular = torch.linalg.svdvals(last)
    kinds = ("participation", "participation_singular", "entropy")
    return {
        "rank": {str(one): (singular > one * singular[:, :1]).sum(dim=1).tolist() for one in tolerances},
        "effective": {kind: geometry.effective_rank(last, kind).tolist() for kind in kinds},
        "live_neurons": (last != 0).any(dim=1).sum(dim=1).tolist(),
        "deviation_norm": torch.stack(norms, dim=1).tolist(),
        "deviation": torch.stack(shares, dim=1).tolist(),
    }


def rate_grid(
    network: Network,
    split: Split,
    stages: Stages,
    learning_rates: Sequence[float | int],
    *,
    batch_size: int,
    epochs: int,
    generator: torch.Generator,
) -> list[dict[str, float | None]]:
    """Train a few networks with each learning rate of a grid, from the same starts and on the same batches.

    Args:
        network: initial parameters of the networks.
        split: the data.
        stages: the stages of the hidden layers.
        learning_rates: the grid.
        batch_size: samples a step.
        epochs: passes through the training samples.
        generator: source of the order of the samples.

    Returns:
        For each rate `rate`, the largest `last_epoch_loss` of a network (mean over the last epoch's batches, nats) and
        the least and the largest training accuracy, `accuracy_min` and `accuracy_max`; a loss is None and an accuracy
        0 where training diverged.

    Example:
        >>> generator, stages = torch.Generator().manual_seed(0), Stages.parse("NL")
        >>> network = draw_networks(configuration("He"), 64, 8, 1, networks=1, generator=generator)
        >>> options = {"batch_size": 128, "epochs": 1, "generator": generator}
        >>> [one["rate"] for one in rate_grid(network, standardized_digits(), stages, [0.01, 0.1], **options)]
        [0.01, 0.1]
    """
    rates, networks = len(learning_rates), len(network[0].weight)
    x = split.train_x.float()
    orders = shuffled_batches(len(x), batch_size, epochs, networks=networks, generator=generator)
    batches = ((x[order].repeat(rates, 1, 1), split.train_y[order].repeat(rates, 1)) for order in orders)
    start = select_networks(network, [*range(networks)] * rates, dtype=torch.float32)
    each = torch.tensor(learning_rates, device=x.device).repeat_interleave(networks)
    found = train(start, batches, stages, each)
    shares = accuracy(found.network, x, split.train_y, stages, statistics_of=x).nan_to_num(0.0).view(rates, networks)
    # A loss that became infinite or NaN stays so in the mean and in the maximum.
    losses = found.losses[-(len(x) // batch_size) :].mean(dim=0).view(rates, networks).amax(dim=1)
    return [
        {
            "rate": rate,
            "last_epoch_loss": finite_or_none(loss) if steady else None,
            "accuracy_min": min(ones),
            "accuracy_max": max(ones),
        }
        for rate, loss, steady, ones in zip(
            learning_rates,
            losses.tolist(),
            (found.diverged_at < 0).view(rates, networks).all(dim=1).tolist(),
            shares.tolist(),
            strict=True,
        )
    ]


def best_rate(grid: Sequence[dict[str, float | None]]) -> float:
    """Return the learning rate whose worst network has the least loss in the last epoch; if all diverged, the smallest.

    Example:
        >>> best_rate([{"rate": 0.1, "last_epoch_loss": 0.5}, {"rate": 1.0, "last_epoch_loss": None}])
        0.1
    """
    usable = [one for one in grid if one["last_epoch_loss"] is not None]
    return min(usable, key=lambda one: one["last_epoch_loss"])["rate"] if usable else min(one["rate"] for one in grid)


def depth_cell(
    chosen: Configuration,
    depth: int,
    split: Split,
    *,
    width: int,
    batch_size: int,
    networks: int,
    rank_networks: int,
    epochs: int,
    selection_epochs: int,
    selection_networks: int,
    learning_rates: Sequence[float | int],
    tolerances: Sequence[float | int],
    generator: Callable[[str], torch.Generator],
) -> dict[str, Any]:
    """Measure one point of the figure: rank at initialization, learning rate, training and its accuracies.

    Ranks are measured in float64 on `rank_networks` networks, each with its own batch of training samples; the first
    `networks` of these are then trained, in float32. The learning rate is chosen on further networks that are
    not used otherwise. Accuracies take the normalization statistics of the whole training set.

    Args:
        chosen: the configuration.
        depth: number of hidden layers.
        split: the data.
        width: number of neurons of each hidden layer.
        batch_size: samples of a batch, for the rank and for training.
        networks: number of networks that are trained.
        rank_networks: number of networks whose rank is measured, at least `networks`.
        epochs: passes through the training samples.
        selection_epochs: passes for the choice of the learning rate.
        selection_networks: number of networks for it.
        learning_rates: the grid for it.
        tolerances: shares of the largest singular value above which one counts.
        generator: gives an independent stream for each label.

    Returns:
        JSON-able values: `configuration`, `depth`, the results of `initial_geometry` and `rate_grid` (as `grid`),
        `rate`, `train` and `test` (accuracies, one a network, None after divergence), `diverged` (how many), and their
        means and standard errors, see `accuracy_summary`.

    Raises:
        ValueError: if rank_networks is below networks.

    Example:
        >>> options = {"width": 16, "batch_size": 64, "networks": 2, "rank_networks": 3, "epochs": 2}
        >>> options |= {"tolerances": [1e-3], "selection_epochs": 1, "selection_networks": 1, "learning_rates": [0.1]}
        >>> streams = lambda label: torch.Generator().manual_seed(len(label))
        >>> cell = depth_cell(configuration("He"), 1, standardized_digits(), generator=streams, **options)
        >>> cell["rate"], len(cell["train"]), len(cell["rank"]["0.001"])
        (0.1, 2, 3)
    """
    if rank_networks < networks:
        raise ValueError(f"rank_networks must be at least networks = {networks}, got {rank_networks}.")
    inputs, stages = split.train_x.shape[1], chosen.stages
    start = draw_networks(chosen, inputs, width, depth, networks=rank_networks, generator=generator("networks"))
    which = torch.rand(
        rank_networks, len(split.train_x), generator=(stream := generator("rank batches")), device=stream.device
    ).argsort(dim=1)[:, :batch_size]
    found = initial_geometry(start, split.train_x[which], stages, tolerances)

    trial = draw_networks(
        chosen, inputs, width, depth, networks=selection_networks, generator=(stream := generator("rate"))
    )
    grid = rate_grid(
        trial, split, stages, learning_rates, batch_size=batch_size, epochs=selection_epochs, generator=stream
    )
    rate = best_rate(grid)
    outcome = train_networks(
        select_networks(start, slice(networks)),
        split,
        stages,
        rate,
        batch_size=batch_size,
        epochs=epochs,
        generator=generator("order"),
    )
    return {"configuration": chosen.name, "depth": depth, **found, "grid": grid, **outcome}


def train_networks(
    start: Network,
    split: Split,
    stages: Stages,
    rate: float | int,
    *,
    batch_size: int,
    epochs: int,
    generator: torch.Generator,
) -> dict[str, Any]:
    """Train networks on the digits with one learning rate and return their accuracies.

    Args:
        start: initial parameters; training runs in float32.
        split: the data.
        stages: the stages of the hidden layers.
        rate: the learning rate.
        batch_size: samples a step.
        epochs: passes through the training samples.
        generator: source of the order of the samples, one order a network.

    Returns:
        `rate`, `train`, `test`, `diverged` and the entries of `accuracy_summary` for both.

    Example:
        >>> generator, stages = torch.Generator().manual_seed(0), Stages.parse("NL")
        >>> start = draw_networks(configuration("He"), 64, 8, 1, networks=2, generator=generator)
        >>> options = {"batch_size": 128, "epochs": 1, "generator": generator}
        >>> len(train_networks(start, standardized_digits(), stages, 0.1, **options)["test"])
        2
    """
    count = len(start[0].weight)
    x = split.train_x.float()
    orders = shuffled_batches(len(x), batch_size, epochs, networks=count, generator=generator)
    found = train(
        select_networks(start, slice(None), dtype=torch.float32),
        ((x[order], split.train_y[order]) for order in orders),
        stages,
        rate,
    )
    shares = {
        "train": accuracy(found.network, x, split.train_y, stages, statistics_of=x),
        "test": accuracy(found.network, split.test_x.float(), split.test_y, stages, statistics_of=x),
    }
    values = {name: [finite_or_none(share) for share in one.tolist()] for name, one in shares.items()}
    return {
        "rate": rate,
        **values,
        "diverged": int((found.diverged_at >= 0).sum()),
        **accuracy_summary(values["train"], "train"),
        **accuracy_summary(values["test"], "test"),
    }


def cell_summary(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of `depth_cell` as the results file holds it: lists, and their means with standard errors.

    Args:
        cell: what `depth_cell` returned.

    Returns:
        The cell without the deviations of single layers, and for each tolerance `rank_mean`, `rank_error`, for each
        definition `effective_mean`, `effective_error`, further `live_mean`, `live_error`, `train_median` and
        `grid_max`, the best accuracy of the learning rate grid.

    Example:
        >>> lists = {"rank": {"0.1": [1, 3]}, "effective": {"entropy": [2.0, 2.0]}, "live_neurons": [4, 6]}
        >>> found = cell_summary({**lists, "train": [1.0, None, 0.5], "grid": [{"accuracy_max": 0.9}]})
        >>> found["rank_mean"], found["live_error"], found["train_median"]
        ({'0.1': 2.0}, 1.0, 0.5)
    """
    found = {key: value for key, value in cell.items() if not key.startswith("deviation")}
    for name in ("rank", "effective"):
        pairs = {key: mean_and_error(np.array(values)) for key, values in cell[name].items()}
        found[f"{name}_mean"] = {key: mean for key, (mean, _) in pairs.items()}
        found[f"{name}_error"] = {key: error for key, (_, error) in pairs.items()}
    found["live_mean"], found["live_error"] = mean_and_error(np.array(cell["live_neurons"]))
    found["grid_max"] = max(one["accuracy_max"] for one in cell["grid"])
    found["train_median"] = float(np.median([0.0 if share is None else share for share in cell["train"]]))
    return found


def contraction(cell: dict[str, Any]) -> dict[str, Any]:
    r"""Return the factor by which one layer changes what differs between the samples, in the deeper half of a network.

    With $D_\ell = \lVert GX_\ell\rVert$ and $L$ hidden layers it is $(D_L/D_h)^{1/(L - h)}$ with
    $h = \lceil L/2\rceil$, for each network; means and standard errors are over the networks.

    Args:
        cell: what `depth_cell` returned, with at least two hidden layers.

    Returns:
        `configuration`, `from_layer`, `to_layer`, `factor`, `factor_error`, `networks`, and `share_first`,
        `share_last`: the mean of $\lVert GX\rVert / \lVert X\rVert$ at layer h and at layer L.

    Raises:
        ValueError: if there is a single hidden layer.

    Example:
        >>> two = {"configuration": "He", "deviation_norm": [[2.0, 1.0], [2.0, 1.0]], "deviation": [[0.2, 0.1]] * 2}
        >>> found = contraction(two)
        >>> round(found["factor"], 12), found["from_layer"], found["to_layer"]
        (0.5, 1, 2)
    """
    norms, shares = np.array(cell["deviation_norm"]), np.array(cell["deviation"])
    depth = norms.shape[1]
    if depth < 2:
        raise ValueError(f"cell must have at least 2 hidden layers, got {depth}.")
    half = (depth + 1) // 2
    factor, error = mean_and_error((norms[:, -1] / norms[:, half - 1]) ** (1 / (depth - half)))
    return {
        "configuration": cell["configuration"],
        "from_layer": half,
        "to_layer": depth,
        "factor": factor,
        "factor_error": error,
        "networks": len(norms),
        "share_first": float(shares[:, half - 1].mean()),
        "share_last": float(shares[:, -1].mean()),
    }


def differences_in_test(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, depth by depth, how much higher the first configuration's mean test accuracy is than the second's.

    Args:
        first: cells of one configuration.
        second: cells of another, of the same depths.

    Returns:
        `depth`, `difference`, `error` (standard error of the difference of two independent means).

    Example:
        >>> one = {"depth": 1, "test_mean": 0.9, "test_error": 0.03}
        >>> two = {"depth": 1, "test_mean": 0.8, "test_error": 0.04}
        >>> [round(value, 9) for value in differences_in_test([one], [two])[0].values()]
        [1, 0.1, 0.05]
    """
    return [
        {
            "depth": one["depth"],
            "difference": one["test_mean"] - two["test_mean"],
            "error": math.hypot(one["test_error"], two["test_error"]),
        }
        for one, two in zip(first, second, strict=True)
    ]
