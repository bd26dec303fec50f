"""Singular values of the Jacobian of one and of many layers with batch normalization, in networks of finite width.

The Jacobian is that of a whole layer, of a representation (n x d) with respect to the one before: an nd x nd matrix, of
rank (n - 2) d at most, since batch normalization removes two directions a neuron.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.gradients import normalized, torch_activation

Generator = Callable[..., torch.Generator]


def singular_values(
    n: int, width: int, depths: Sequence[int], name: str, generator: torch.Generator, skip: int = 2
) -> dict[int, Float[Tensor, " k"]]:
    """Singular values of the Jacobian of the topmost layers of one network, from the top down.

    Args:
        n: batch size, at least 3.
        width: neurons a layer, d.
        depths: numbers of layers, ascending and at least 1.
        name: activation, see `bnlib.gradients.torch_activation`.
        generator: source of the weights, and the device.
        skip: layers before those that count, so that the batch is near the fixed point.

    Returns:
        For each depth all n d singular values, descending.

    Raises:
        ValueError: n is below 3, or depths are not ascending numbers of at least 1.

    Example:
        >>> found = singular_values(4, 8, [1, 2], "relu", torch.Generator().manual_seed(0))
        >>> len(found[1]), int((found[1] > 1e-12).sum()) <= 16
        (32, True)
    """
    if n < 3:
        raise ValueError(f"n must be a batch size of at least 3, got {n}.")
    if list(depths) != sorted(set(depths)) or min(depths) < 1:
        raise ValueError(f"depths must be ascending numbers of at least 1, got {list(depths)}.")
    options = {"generator": generator, "device": generator.device, "dtype": torch.float64}
    phi, x, layers = torch_activation(name), torch.randn(n, width, **options), []
    for _ in range(skip + max(depths)):
        weight = torch.randn(width, width, **options) * math.sqrt(2 / width)
        h = x @ weight
        b = normalized(h, "RC+RS").requires_grad_()
        x = phi(b)
        slope = torch.autograd.grad(x.sum(), b)[0]
        layers.append((weight, b.detach(), h.var(dim=0, correction=0).sqrt(), slope))
        x = x.detach()
    rows, found = torch.eye(n * width, dtype=torch.float64, device=generator.device).reshape(-1, n, width), {}
    for depth, (weight, b, deviation, slope) in enumerate(reversed(layers[skip:]), start=1):
        rows = rows * slope
        rows = rows - rows.mean(dim=1, keepdim=True) - b * (b * rows).mean(dim=1, keepdim=True)
        rows = (rows / deviation) @ weight.T
        if depth in depths:
            found[depth] = torch.linalg.svdvals(rows.reshape(n * width, n * width))
    return found


def spectrum_rows(
    names: Sequence[str], n: int, width: int, depths: Sequence[int], networks: int, generator: Generator
) -> list[dict[str, Any]]:
    """What products of Jacobians do: mean square, largest and typical singular value by depth.

    Args:
        names: activations.
        n: batch size, at least 3.
        width: neurons a layer.
        depths: numbers of layers, ascending; the first is the reference of the growth.
        networks: how many, at least 2.
        generator: makes a stream from labels, e.g. `Run.generator`.

    Returns:
        One row for each activation and depth: "mean_square" of the n d singular values, "largest", "median" (of those
        that are not zero, that is the first (n-2) d), and "near_one" (the share of those within a factor 1.1 of 1), all
        averaged over networks (the first three geometrically); "growth" of the mean square per layer beyond the first
        depth, with its standard "error" over networks (None at the first depth).

    Raises:
        ValueError: fewer than 2 networks.

    Example:
        >>> from bnlib import seeds
        >>> rows = spectrum_rows(["identity"], 6, 12, [1, 3], 2, lambda *key: seeds.generator(0, *key))
        >>> [row["depth"] for row in rows], rows[0]["growth"]
        ([1, 3], None)
    """
    if networks < 2:
        raise ValueError(f"networks must be at least 2, got {networks}.")
    rows = []
    for name in names:
        found = [singular_values(n, width, depths, name, generator("jacobian", name, i)) for i in range(networks)]
        first = torch.stack([one[depths[0]].square().mean() for one in found]).log()
        for depth in depths:
            values = torch.stack([one[depth] for one in found])
            kept = values[:, : (n - 2) * width]
            square = values.square().mean(dim=1).log()
            growth = error = None
            if depth > depths[0]:
                steps = (square - first) / (depth - depths[0])
                growth = math.exp(steps.mean().item())
                error = growth * steps.std().item() / math.sqrt(networks)
            rows.append(
                {
                    "activation": name,
                    "n": n,
                    "width": width,
                    "depth": depth,
                    "mean_square": math.exp(square.mean().item()),
                    "largest": math.exp(values[:, 0].log().mean().item()),
                    "median": math.exp(kept.median(dim=1).values.clamp_min(1e-300).log().mean().item()),
                    "near_one": ((kept > 1 / 1.1) & (kept < 1.1)).double().mean().item(),
                    "growth": growth,
                    "error": error,
                }
            )
    return rows
