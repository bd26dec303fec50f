"""Gradients in networks with max(x, 0)^alpha and batch normalization, in single, double and exact arithmetic.

For a large alpha such networks run into winner-take-all states. What their gradients do there is a matter of the state
(one winner, or several) and of the arithmetic: the same networks are differentiated by torch in float32 and float64,
with batch normalization written out and with torch's own, and in ball arithmetic without rounding
(`bnlib.rank_one_gradients`). Weights are rounded to float32 before use, so that all arithmetics see the same numbers.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.gradients import normalized
from bnlib.rank_one_gradients import LayerNorms, exact_network, layer_factors, median_and_error, median_growth

Generator = Callable[..., torch.Generator]
Arithmetic = Literal["float64", "float32", "float64, torch", "float32, torch"]
ARITHMETICS: tuple[Arithmetic, ...] = ("float64", "float64, torch", "float32", "float32, torch")
RANK_ONE = 1e-6  # cluster size below which a state counts as rank one: float32 resolves 1e-7
_TINY = 1e-12  # epsilon of torch's own batch normalization, which refuses 0; pre-activations have the size of 3^alpha
_DECADES = math.log(10)


def drawn_network(
    n: int, width: int, depth: int, near: float | None, generator: torch.Generator
) -> tuple[Tensor, list[Tensor], Tensor]:
    """A batch, weights and the coefficients of a linear loss, all of which are float32 numbers in float64 tensors.

    Args:
        n: batch size.
        width: neurons a layer, and features of the batch.
        depth: layers.
        near: length of the samples other than the first in units of the first; None for equal lengths.
        generator: source of the randomness, and the device.

    Returns:
        Batch (n, width), weights of variance 2/width, coefficients (n, width).

    Example:
        >>> x, weights, readout = drawn_network(4, 8, 3, None, torch.Generator().manual_seed(0))
        >>> len(weights), bool((x == x.float().double()).all())
        (3, True)
    """
    options = {"generator": generator, "device": generator.device, "dtype": torch.float64}
    x = torch.randn(n, width, **options)
    if near is not None:
        x[1:] *= near
    weights = [torch.randn(width, width, **options) * math.sqrt(2 / width) for _ in range(depth)]
    readout = torch.randn(n, width, **options)
    return x.float().double(), [one.float().double() for one in weights], readout.float().double()


def power_network(
    x: Float[Tensor, "n d"],
    weights: Sequence[Float[Tensor, "d d"]],
    readout: Float[Tensor, "n d"],
    alpha: float | int,
    arithmetic: Arithmetic,
) -> list[LayerNorms]:
    """Forward and backward through one network, differentiated by torch.

    Args:
        x: the batch.
        weights: of the layers, already scaled.
        readout: coefficients of the loss.
        alpha: degree, positive.
        arithmetic: precision; "torch" for `torch.nn.functional.batch_norm` in place of the written-out one.

    Returns:
        Layers from the input; a norm that overflowed is nan.

    Raises:
        ValueError: an unknown arithmetic.

    Example:
        >>> found = power_network(*drawn_network(4, 8, 3, None, torch.Generator().manual_seed(0)), 2, "float32")
        >>> len(found)
        3
    """
    if arithmetic not in ARITHMETICS:
        raise ValueError(f"arithmetic must be one of {', '.join(ARITHMETICS)}, got {arithmetic!r}.")
    dtype = torch.float32 if arithmetic.startswith("float32") else torch.float64
    rep, pre = x.to(dtype), []
    for weight in weights:
        h = rep @ weight.to(dtype)
        if not h.requires_grad:
            h.requires_grad_()
        pre.append(h)
        if arithmetic.endswith("torch"):
            b = torch.nn.functional.batch_norm(h, None, None, training=True, eps=_TINY)
        else:
            b = normalized(h, "RC+RS")
        rep = torch.relu(b) ** alpha
    deltas = torch.autograd.grad((readout.to(dtype) * rep).sum(), pre)
    return [LayerNorms(_cluster(h.detach()), _log_square(delta)) for h, delta in zip(pre, deltas, strict=True)]


def _cluster(h: Tensor) -> float:
    h = h.double()
    h = h - h.mean(dim=0)
    squares = h.square().sum(dim=1)
    if not bool(squares.isfinite().all()) or not squares.sum() > 0:
        return math.nan
    others = torch.cat([h[: squares.argmax()], h[squares.argmax() + 1 :]])
    return math.sqrt(((others - others.mean(dim=0)).square().sum() / squares.sum()).item())


def _log_square(delta: Tensor) -> float:
    largest = delta.double().abs().max()
    if not bool(largest.isfinite()):
        return math.nan
    if largest == 0:
        return -math.inf
    return 2 * math.log(largest.item()) + math.log((delta.double() / largest).square().sum().item())


def state_of(layers: Sequence[LayerNorms]) -> str:
    """What a network ended in: "one winner", "several winners", or "not finite" (an overflow forwards or backwards).

    Args:
        layers: of one network.

    Example:
        >>> state_of([LayerNorms(0.5, 0.0), LayerNorms(1e-9, 0.0)])
        'one winner'
    """
    if layers[-1].cluster < RANK_ONE:
        return "one winner"
    if any(math.isnan(layer.log_square) or math.isnan(layer.cluster) for layer in layers):
        return "not finite"
    return "several winners"


def decades_per_layer(layers: Sequence[LayerNorms], most: int = 4) -> float | None:
    """Growth of the squared gradient per layer going down, as a decimal logarithm, over the topmost layers.

    Only layers in the network's last state count: all of cluster size below `RANK_ONE`, or all above it.

    Args:
        layers: of one network.
        most: at most so many steps, so that nothing underflows.

    Returns:
        The mean; None where two finite norms are not there.

    Example:
        >>> decades_per_layer([LayerNorms(1e-9, -40.0), LayerNorms(1e-9, -20.0), LayerNorms(1e-9, 0.0)]) < -8
        True
    """
    one = layers[-1].cluster < RANK_ONE
    kept = []
    for layer in reversed(layers):
        if (layer.cluster < RANK_ONE) != one or not math.isfinite(layer.log_square) or len(kept) > most:
            break
        kept.append(layer.log_square)
    return (kept[-1] - kept[0]) / (len(kept) - 1) / _DECADES if len(kept) > 1 else None


def relative_path(layers: Sequence[LayerNorms]) -> list[float | None]:
    """Decimal logarithms of squared gradients from the top layer down, relative to the top; None where not finite.

    Args:
        layers: of one network.

    Example:
        >>> relative_path([LayerNorms(0.5, -math.inf), LayerNorms(0.5, math.log(10)), LayerNorms(0.5, 0.0)])
        [0.0, 1.0, None]
    """
    top = layers[-1].log_square
    logs = [(layer.log_square - top) / _DECADES for layer in reversed(layers)]
    return [one if math.isfinite(one) else None for one in logs]


def fates(
    n: int, alpha: float | int, widths: Sequence[int], depth: int, networks: int, generator: Generator
) -> list[dict[str, Any]]:
    """Networks from Gaussian batches: which state they end in, and what gradients do there.

    Args:
        n: batch size.
        alpha: degree.
        widths: neurons a layer.
        depth: layers.
        networks: of each width, the same for each arithmetic.
        generator: makes a stream from labels, e.g. `Run.generator`.

    Returns:
        One row for each width, arithmetic (written-out batch normalization) and network: "state" and "decades".

    Example:
        >>> from bnlib import seeds
        >>> rows = fates(6, 2, [8], 4, 2, lambda *key: seeds.generator(0, *key))
        >>> [row["arithmetic"] for row in rows]
        ['float64', 'float32', 'float64', 'float32']
    """
    rows = []
    for width in widths:
        for index in range(networks):
            drawn = drawn_network(n, width, depth, None, generator("power", width, index))
            for arithmetic in ("float64", "float32"):
                layers = power_network(*drawn, alpha, arithmetic)
                rows.append(
                    {
                        "width": width,
                        "network": index,
                        "arithmetic": arithmetic,
                        "state": state_of(layers),
                        "decades": decades_per_layer(layers),
                    }
                )
    return rows


def arithmetic_rows(
    n: int,
    alpha: int,
    widths: Sequence[int],
    exact_width: int,
    depth: int,
    networks: int,
    near: float,
    generator: Generator,
) -> list[dict[str, Any]]:
    """Networks that start near the state of rank one: the decline of gradients in five arithmetics.

    Args:
        n: batch size.
        alpha: a whole degree.
        widths: neurons a layer.
        exact_width: ball arithmetic is run up to this width.
        depth: layers.
        networks: of each width, the same for all arithmetics.
        near: length of the cluster's samples at the start, in units of the winner's.
        generator: makes a stream from labels.

    Returns:
        One row for each width and arithmetic: the "median" of `decades_per_layer` over networks in the state of rank
        one, "least", "greatest", "networks" (how many), "theory", the median law of exact arithmetic, in decades, and
        the "path" of the first network: decimal logarithms of its squared gradients from the top layer down, relative
        to the top layer's, None where nothing finite is left. For exact arithmetic also "cluster", the median over
        networks and layers of the decades per layer by which the cluster's squared relative size changes going up.

    Example:
        >>> from bnlib import seeds
        >>> rows = arithmetic_rows(6, 12, [16], 16, 4, 2, 1e-4, lambda *key: seeds.generator(0, *key))
        >>> rows[0]["arithmetic"], rows[0]["median"] < 0
        ('exact', True)
    """
    rows = []
    for width in widths:
        found: dict[str, list[float]] = {}
        paths: dict[str, list[float | None]] = {}
        clusters: list[float] = []
        for index in range(networks):
            drawn = drawn_network(n, width, depth, near, generator("near", width, index))
            runs = {name: power_network(*drawn, alpha, name) for name in ARITHMETICS}
            if width <= exact_width:
                x, weights, readout = drawn
                arrays = [one.numpy(force=True) for one in weights]
                runs = {"exact": exact_network(x.numpy(force=True), arrays, readout.numpy(force=True), alpha)} | runs
            for name, layers in runs.items():
                values = found.setdefault(name, [])
                paths.setdefault(name, relative_path(layers))
                if name == "exact":
                    sizes = [layer.cluster for layer in layers if layer.cluster < RANK_ONE]
                    clusters += [2 * math.log10(after / before) for before, after in pairwise(sizes)]
                if state_of(layers) == "one winner" and (decades := decades_per_layer(layers)) is not None:
                    values.append(decades)
        rows += [
            {
                "width": width,
                "arithmetic": name,
                "networks": len(values),
                "median": float(np.median(values)) if values else None,
                "least": min(values) if values else None,
                "greatest": max(values) if values else None,
                "theory": math.log10(median_growth(n, alpha, width)),
                "path": paths[name],
                "cluster": float(np.median(clusters)) if name == "exact" and clusters else None,
            }
            for name, values in found.items()
        ]
    return rows


def rank_one_rows(
    n: int, alphas: Sequence[float | int], widths: Sequence[int], draws: int, generator: np.random.Generator
) -> list[dict[str, Any]]:
    """The dichotomy at the state of rank one: gradients constant over the cluster, and gradients of zero sum there.

    Args:
        n: batch size.
        alphas: degrees.
        widths: neurons.
        draws: layers of each.
        generator: source of the randomness.

    Returns:
        Rows with "constant" (median factor, of rounding alone), the median logarithm of the other factor "log_median"
        with its "error", "theory" and "z".

    Example:
        >>> rank_one_rows(10, [2], [50], 50, np.random.default_rng(0))[0]["constant"] < 1e-25
        True
    """
    rows = []
    for alpha in alphas:
        for width in widths:
            # A residue of rounding, times the factor's heavy tail: the median is what tells it from a true factor.
            constant = np.median(layer_factors(n, alpha, width, 21, generator, constant=True))
            median, error = median_and_error(layer_factors(n, alpha, width, draws, generator))
            theory = math.log(median_growth(n, alpha, width))
            rows.append(
                {
                    "alpha": alpha,
                    "width": width,
                    "constant": float(constant),
                    "log_median": median,
                    "error": error,
                    "theory": theory,
                    "z": (median - theory) / error,
                }
            )
    return rows
