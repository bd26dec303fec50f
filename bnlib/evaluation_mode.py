"""Evaluation mode: the statistics of a batch are replaced by constants, averaged over the batches of training."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.layers import Stages
from bnlib.training import TORCH_EPS, Layer, Network


class LayerStatistics(NamedTuple):
    """Statistics of the pre-activations of one layer over batches, averaged over batches.

    Attributes:
        mean: mean over a batch, shape (networks, 1, width).
        variance: mean squared deviation from the batch's own mean (divisor n), same shape.
        mean_square: same shape.
    """

    mean: Float[Tensor, "networks 1 width"]
    variance: Float[Tensor, "networks 1 width"]
    mean_square: Float[Tensor, "networks 1 width"]


def population_statistics(
    network: Network, batches: Iterable[Float[Tensor, "networks n d"]], stages: Stages, *, eps: float | int = TORCH_EPS
) -> tuple[LayerStatistics, ...]:
    """Average the statistics of each hidden layer over batches that go through in training mode.

    Ioffe and Szegedy (arXiv 1502.03167, algorithm 2) prescribe this average after training; running averages with a
    momentum, as libraries keep them, estimate it.

    Args:
        network: parameters of several networks.
        batches: one batch a network each; at least one.
        stages: the stages of the hidden layers.
        eps: added to the variance or mean square.

    Returns:
        One entry a hidden layer.

    Raises:
        ValueError: no batch.

    Example:
        >>> from bnlib.training import initial_network
        >>> stages, generator = Stages.parse("RC+NL"), torch.Generator().manual_seed(0)
        >>> net = initial_network("he", [3, 5, 2], stages, generator=generator)
        >>> found = population_statistics(net, [torch.ones(1, 4, 3, dtype=torch.float64)], stages)
        >>> len(found), bool(found[0].variance.abs().max() < 1e-12)
        (1, True)
    """
    totals: list[LayerStatistics] = []
    count = 0
    with torch.no_grad():
        for x in batches:
            count += 1
            for index, layer in enumerate(network[:-1]):
                h = x @ layer.weight + layer.bias
                mean = h.mean(dim=-2, keepdim=True)
                square = h.square().mean(dim=-2, keepdim=True)
                own = LayerStatistics(mean, (h - mean).square().mean(dim=-2, keepdim=True), square)
                if len(totals) <= index:
                    totals.append(own)
                else:
                    totals[index] = LayerStatistics(*(a + b for a, b in zip(totals[index], own, strict=True)))
                x = _normalized(h, layer, own, stages, eps)
    if count == 0:
        raise ValueError("batches is empty; valid is at least one batch.")
    return tuple(LayerStatistics(*(one / count for one in total)) for total in totals)


def evaluation_representations(
    network: Network,
    x: Float[Tensor, "networks n d"],
    statistics: Sequence[LayerStatistics],
    stages: Stages,
    *,
    eps: float | int = TORCH_EPS,
) -> Iterator[Float[Tensor, "networks n width"]]:
    """Yield the hidden representations with given statistics: no sample sees its companions.

    Args:
        network: parameters of several networks.
        x: one batch a network.
        statistics: of `population_statistics`.
        stages: the stages of the hidden layers.
        eps: added to the variance or mean square.

    Yields:
        One representation a hidden layer.

    Example:
        >>> from bnlib.training import hidden_representations, initial_network
        >>> stages, generator = Stages.parse("RC+RS+NL"), torch.Generator().manual_seed(0)
        >>> net = initial_network("he", [3, 5, 5, 2], stages, generator=generator)
        >>> x = torch.randn(1, 4, 3, generator=generator, dtype=torch.float64)
        >>> frozen = list(evaluation_representations(net, x, population_statistics(net, [x], stages), stages))
        >>> torch.allclose(frozen[-1], list(hidden_representations(net, x, stages))[-1])
        True
    """
    for layer, own in zip(network[:-1], statistics, strict=True):
        x = _normalized(x @ layer.weight + layer.bias, layer, own, stages, eps)
        yield x


def evaluation_outputs(
    network: Network,
    x: Float[Tensor, "networks n d"],
    statistics: Sequence[LayerStatistics],
    stages: Stages,
    *,
    eps: float | int = TORCH_EPS,
) -> Float[Tensor, "networks n outputs"]:
    """Return the outputs with given statistics.

    Args:
        network: parameters of several networks.
        x: one batch a network.
        statistics: of `population_statistics`.
        stages: the stages of the hidden layers.
        eps: added to the variance or mean square.

    Returns:
        The last layer's outputs.

    Example:
        >>> from bnlib.training import initial_network
        >>> stages, generator = Stages.parse("NL"), torch.Generator().manual_seed(0)
        >>> net = initial_network("he", [3, 5, 2], stages, generator=generator)
        >>> x = torch.randn(1, 4, 3, generator=generator, dtype=torch.float64)
        >>> evaluation_outputs(net, x, population_statistics(net, [x], stages), stages).shape
        torch.Size([1, 4, 2])
    """
    for representation in evaluation_representations(network, x, statistics, stages, eps=eps):
        x = representation
    return x @ network[-1].weight + network[-1].bias


def _normalized(h: Tensor, layer: Layer, own: LayerStatistics, stages: Stages, eps: float | int) -> Tensor:
    if stages.recentering:
        h = h - own.mean
    if stages.rescaling != "none":
        spread = own.mean_square if stages.rescaling == "rms" else own.variance
        h = h * (spread + eps).rsqrt()
        if layer.gain is not None:
            h = h * layer.gain
    if layer.shift is not None:
        h = h + layer.shift
    return torch.relu(h) if stages.nonlinearity == "relu" else h
