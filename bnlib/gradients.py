"""Squared gradient norms in networks at initialization, layer by layer, by automatic differentiation.

A layer is H = X W, then the chosen half (or all, or none) of batch normalization, then the activation; weights are
Gaussian of variance weight_variance / inputs. The loss is linear in the last representation with Gaussian
coefficients, so that the gradient at the top has independent entries. Nothing here assumes independence of the
gradient's weights: these are the networks that the theory in `bnlib.mean_field` and `bnlib.gradient_theory` speaks of.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Normalization = Literal["RC+RS", "RC", "RMS", "none"]

_NAMED: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": torch.relu,
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "sin": torch.sin,
}


@dataclass(frozen=True)
class NetworkGradients:
    """Squared norms in independent networks, layers from the input.

    Attributes:
        hidden: of the gradient with respect to the pre-activations H, shape (draws, layers).
        weights: of the gradient with respect to the weights, shape (draws, layers).
        forward: mean square of an entry of the pre-activations, after recentering where there is one, (draws, layers).
    """

    hidden: Float[Tensor, "draws layers"]
    weights: Float[Tensor, "draws layers"]
    forward: Float[Tensor, "draws layers"]


@dataclass(frozen=True)
class Growth:
    """A growth factor per layer.

    Attributes:
        mean: the estimate.
        standard_error: its standard error, over networks.
    """

    mean: float
    standard_error: float


def torch_activation(name: str) -> Callable[[Tensor], Tensor]:
    """The torch counterpart of `bnlib.gradient_theory.parsed_activation`.

    Args:
        name: identity, relu, abs, tanh, sigmoid, gelu, silu or sin; "leaky" and a slope; "power" and a degree of
            max(x, 0)^degree; or a name and a gain.

    Raises:
        ValueError: an unknown name, or a number that is none.

    Example:
        >>> torch_activation("leaky 0.5")(torch.tensor([-2.0, 3.0])).tolist()
        [-1.0, 3.0]
    """
    word, _, rest = name.partition(" ")
    if word not in _NAMED and word not in ("leaky", "power"):
        raise ValueError(f"name must be one of {', '.join(_NAMED)} or leaky and a slope, got {name!r}.")
    try:
        value = float(rest) if rest or word in ("leaky", "power") else 1.0
    except ValueError:
        raise ValueError(f"name must end in a number after {word!r}, got {name!r}.") from None
    if word == "leaky":
        return lambda x: torch.where(x > 0, x, value * x)
    if word == "power":
        return lambda x: torch.relu(x) ** value
    phi = _NAMED[word]
    return phi if not rest else lambda x: phi(value * x)


def normalized(
    h: Float[Tensor, "*draws n d"], normalization: Normalization, epsilon: float | int = 0.0
) -> Float[Tensor, "*draws n d"]:
    """Recentering and rescaling over the batch, both, one, or none, in operations that torch differentiates.

    Args:
        h: pre-activations, samples in rows.
        normalization: "RC+RS" (batch normalization), "RC", "RMS" (rescaling without recentering) or "none".
        epsilon: added to the variance or mean square, at least 0.

    Returns:
        The normalized pre-activations.

    Raises:
        ValueError: an unknown normalization, or a negative epsilon.

    Example:
        >>> normalized(torch.tensor([[1.0], [3.0]]), "RC+RS").tolist()
        [[-1.0], [1.0]]
    """
    if normalization not in ("RC+RS", "RC", "RMS", "none"):
        raise ValueError(f"normalization must be RC+RS, RC, RMS or none, got {normalization!r}.")
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon}.")
    if normalization.startswith("RC"):
        h = h - h.mean(dim=-2, keepdim=True)
    if normalization in ("RC+RS", "RMS"):
        h = h * (h.square().mean(dim=-2, keepdim=True) + epsilon).rsqrt()
    return h


def network_gradients(
    x: Float[Tensor, "draws n d"],
    width: int,
    layers: int,
    name: str,
    *,
    generator: torch.Generator,
    normalization: Normalization = "RC+RS",
    epsilon: float | int = 0.0,
    weight_variance: float | int = 2.0,
) -> NetworkGradients:
    """Measure squared gradient norms in random networks by automatic differentiation.

    Args:
        x: one batch a network, float64 as a rule.
        width: neurons a layer, at least 1.
        layers: at least 2.
        name: the activation, see `torch_activation`.
        generator: source of the weights, on the device of x.
        normalization: see `normalized`.
        epsilon: see `normalized`.
        weight_variance: sigma^2 > 0.

    Returns:
        One `NetworkGradients`. The weights' gradient X^T D has the squared norm sum (X X^T) * (D D^T).

    Raises:
        ValueError: a batch of one sample, fewer than two layers, a width below 1, or an unknown name.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(2, 8, 32, generator=generator, dtype=torch.float64)
        >>> network_gradients(x, 32, 3, "relu", generator=generator).hidden.shape
        torch.Size([2, 3])
    """
    if x.shape[-2] < 2:
        raise ValueError(f"x must hold a batch of at least two samples, got shape {tuple(x.shape)}.")
    if width < 1 or layers < 2:
        raise ValueError(f"width must be at least 1 and layers at least 2, got {width} and {layers}.")
    if not weight_variance > 0:
        raise ValueError(f"weight_variance must be positive, got {weight_variance}.")
    phi = torch_activation(name)
    rows = []
    for one in x:  # one network at a time: its weights are the memory
        inputs, pre, representation = [], [], one
        for _ in range(layers):
            fan_in = representation.shape[-1]
            weight = torch.randn(fan_in, width, generator=generator, device=x.device, dtype=x.dtype)
            h = representation @ (weight * math.sqrt(weight_variance / fan_in))
            if not h.requires_grad:
                h.requires_grad_()
            inputs.append(representation.detach())
            pre.append(h)
            representation = phi(normalized(h, normalization, epsilon))
        loss = (
            torch.randn(representation.shape, generator=generator, device=x.device, dtype=x.dtype) * representation
        ).sum()
        deltas = torch.autograd.grad(loss, pre)
        hidden = torch.stack([delta.square().sum() for delta in deltas])
        weights = torch.stack([((a @ a.T) * (d @ d.T)).sum() for a, d in zip(inputs, deltas, strict=True)])
        kept = [h.detach() - h.detach().mean(dim=0) if normalization.startswith("RC") else h.detach() for h in pre]
        rows.append((hidden, weights, torch.stack([h.square().mean() for h in kept])))
    return NetworkGradients(*(torch.stack(part) for part in zip(*rows, strict=True)))


def growth_per_layer(squares: Float[Tensor, "draws layers"], *, skip: int = 1) -> Growth:
    """Growth going down: the ratio of the mean squared norms at the lowest and the highest layer, per layer.

    Args:
        squares: squared norms of independent networks, layers from the input.
        skip: layers left out at the input; the first has another scale of pre-activations than the others.

    Returns:
        (mean lowest / mean highest)^(1/steps), with a standard error by the delta method, the two being paired.

    Raises:
        ValueError: fewer than two networks, fewer than two layers left, or norms that are not positive and finite.

    Example:
        >>> growth_per_layer(torch.tensor([[9.0, 8.0, 4.0, 2.0], [9.0, 8.0, 4.0, 2.0]])).mean
        2.0
    """
    used = squares[:, skip:]
    if len(used) < 2 or used.shape[1] < 2:
        raise ValueError(
            f"squares must hold two networks and two layers beyond skip, got shape {tuple(squares.shape)}."
        )
    if not bool((used.isfinite() & (used > 0)).all()):
        raise ValueError("squares must be positive and finite, but some norm is zero or not a number.")
    low, high = used[:, 0] / used[:, 0].mean(), used[:, -1] / used[:, -1].mean()
    steps = used.shape[1] - 1
    mean = (used[:, 0].mean() / used[:, -1].mean()).item() ** (1 / steps)
    return Growth(mean, mean * ((low - high).std() / math.sqrt(len(used))).item() / steps)


def typical_growth(squares: Float[Tensor, "draws layers"], *, skip: int = 1) -> Growth:
    """Growth of a typical network going down: exp of the mean logarithm, which exists for heavy tails as well.

    Args:
        squares: squared norms of independent networks, layers from the input.
        skip: layers left out at the input.

    Returns:
        exp(mean over networks of log(lowest / highest) / steps) and its standard error.

    Raises:
        ValueError: fewer than two networks, fewer than two layers left, or norms that are not positive and finite.

    Example:
        >>> round(typical_growth(torch.tensor([[9.0, 8.0, 4.0, 2.0], [9.0, 8.0, 4.0, 2.0]])).mean, 5)
        2.0
    """
    growth_per_layer(squares, skip=skip)  # the same conditions
    used = squares[:, skip:].log()
    logs = (used[:, 0] - used[:, -1]) / (used.shape[1] - 1)
    mean = math.exp(logs.mean().item())
    return Growth(mean, mean * (logs.std() / math.sqrt(len(logs))).item())


def extrapolated(narrow: Growth, wide: Growth, ratio: float | int = 2.0) -> Growth:
    """Remove a bias proportional to 1/width from two independent measurements.

    Args:
        narrow: at one width.
        wide: at `ratio` times that width.
        ratio: above 1.

    Returns:
        (ratio * wide - narrow) / (ratio - 1) with its standard error.

    Raises:
        ValueError: ratio is not above 1.

    Example:
        >>> extrapolated(Growth(1.2, 0.1), Growth(1.1, 0.1)).mean
        1.0
    """
    if not ratio > 1:
        raise ValueError(f"ratio must be above 1, got {ratio}.")
    mean = (ratio * wide.mean - narrow.mean) / (ratio - 1)
    error = math.hypot(ratio * wide.standard_error, narrow.standard_error) / (ratio - 1)
    return Growth(round(mean, 15), error)
