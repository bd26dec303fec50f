r"""Rank at initialization against training, over depth: Figure 2 of arXiv 2412.02843 as the essay describes it.

The sources give the data of the figure only in words. Everything that they leave open is chosen here and named: the
data (scikit-learn's digits), the split, the preprocessing, plain SGD, the rule for its learning rate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib import geometry
from bnlib.data import digits
from bnlib.initialisations import nearest_of_rank
from bnlib.layers import Stages, recenter
from bnlib.rank_experiments import accuracy_summary, finite_or_none
from bnlib.rank_rates import best_rate, edge_of_grid, rate_search
from bnlib.training import (
    Network,
    accuracy,
    gradients,
    hidden_representations,
    initial_network,
    select_networks,
    sgd_step,
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
        initialization: the initial law, see `bnlib.initialisations`.
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
    selection_rounds: Sequence[int],
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
        selection_rounds: after how many passes the grid of learning rates is thinned, see `rate_search`.
        selection_networks: number of networks for it.
        learning_rates: the grid.
        tolerances: shares of the largest singular value above which one counts.
        generator: gives an independent stream for each label.

    Returns:
        JSON-able values: `configuration`, `depth`, the results of `initial_geometry`, `rate_search` (as `grid`),
        `first_step` and `train_networks`, and `edge` (see `edge_of_grid`).

    Raises:
        ValueError: if rank_networks is below networks.

    Example:
        >>> options = {"width": 16, "batch_size": 64, "networks": 2, "rank_networks": 3, "epochs": 2}
        >>> options |= {"tolerances": [1e-3], "selection_rounds": [1], "selection_networks": 1, "learning_rates": [0.1]}
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
    grid = rate_search(
        trial,
        split.train_x.float(),
        split.train_y,
        stages,
        learning_rates,
        batch_size=batch_size,
        rounds=selection_rounds,
        generator=stream,
    )
    rate = best_rate(grid)
    trained = select_networks(start, slice(networks))
    which = which[:networks]
    step = first_step(trained, split.train_x[which], split.train_y[which], stages, rate, tolerances)
    outcome = train_networks(
        trained,
        split,
        stages,
        rate,
        batch_size=batch_size,
        epochs=epochs,
        generator=generator("order"),
    )
    edge = edge_of_grid(rate, learning_rates)
    return {"configuration": chosen.name, "depth": depth, **found, "grid": grid, "edge": edge, **step, **outcome}


def first_step(
    network: Network,
    x: Float[Tensor, "networks n d"],
    y: Int[Tensor, "networks n"],
    stages: Stages,
    rate: float | int,
    tolerances: Sequence[float | int],
) -> dict[str, Any]:
    """Return what the first step of training sees and does: the gradient at the start, and the rank after it.

    Args:
        network: initial parameters, float64.
        x: one batch a network.
        y: the classes of its samples.
        stages: the stages of the hidden layers.
        rate: the learning rate of the step.
        tolerances: shares of the largest singular value above which one counts.

    Returns:
        Lists with one entry a network: `first_gradient`, the Frobenius norm of the gradient with respect to the first
        weight matrix over that with respect to the output layer's weights and biases together; `rank_after`, by
        tolerance, the rank of the last hidden layer on the same batch after one step.

    Example:
        >>> generator, stages = torch.Generator().manual_seed(0), Stages.parse("NL")
        >>> network = draw_networks(configuration("He"), 4, 8, 2, networks=1, generator=generator)
        >>> x, y = torch.eye(4, dtype=torch.float64)[None], torch.tensor([[0, 1, 2, 3]])
        >>> sorted(first_step(network, x, y, stages, 0.1, [1e-3]))
        ['first_gradient', 'rank_after']
    """
    _, slope = gradients(network, x, y, stages)
    first = torch.linalg.matrix_norm(slope[0].weight)
    output = (slope[-1].weight.square().sum(dim=(1, 2)) + slope[-1].bias.square().sum(dim=(1, 2))).sqrt()
    after = initial_geometry(sgd_step(network, slope, rate), x, stages, tolerances)
    return {"first_gradient": (first / output).tolist(), "rank_after": after["rank"]}


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
