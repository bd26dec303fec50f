"""Linear networks with and without recentering and rescaling, measured; theory is in `bnlib.linear_theory`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib import linear_theory
from bnlib.data import gaussian_batch
from bnlib.ensembles import LayerState, propagate
from bnlib.geometry import mean_pairwise_angle, numerical_rank, orthogonality_gap
from bnlib.layers import Stages, apply_stages, check_batch

_ENTRIES_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 28}  # of one representation, over the draws that run together


@dataclass(frozen=True)
class LinearCurves:
    """Random networks without a non-linearity, measured on the way.

    Attributes:
        depths: the depths that were measured, increasing.
        gap: orthogonality gap, shape (depths, draws).
        mean_angle: mean pairwise angle, radians, shape (depths, draws).
        spread: log of the ratio of the largest to the n-th singular value, shape (depths, draws); infinite where the
            rank is below n.
        rank: number of singular values above the tolerance, shape (depths, draws).
    """

    depths: tuple[int, ...]
    gap: Float[Tensor, "depths draws"]
    mean_angle: Float[Tensor, "depths draws"]
    spread: Float[Tensor, "depths draws"]
    rank: Int[Tensor, "depths draws"]


def linear_curves(
    x: Float[Tensor, "draws n d"],
    width: int,
    depths: list[int] | tuple[int, ...],
    stages: Stages,
    *,
    relative_tolerance: float,
    generator: torch.Generator,
) -> LinearCurves:
    """Send a batch through random networks without a non-linearity and measure it at several depths.

    Args:
        x: one input batch a draw, shape (draws, n, d).
        width: number of neurons of every layer.
        depths: the depths to measure, each at least 1.
        stages: recentering and rescaling, without a non-linearity.
        relative_tolerance: of the numerical rank, as a share of the largest singular value.
        generator: source of randomness.

    Returns:
        The measurements.

    Raises:
        ValueError: a stage with a non-linearity, no depth or one below 1, or as :func:`bnlib.ensembles.propagate`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x = gaussian_batch(4, 64, generator=g, draws=20)
        >>> curves = linear_curves(x, 64, [1, 5], Stages.parse("RMS"), relative_tolerance=1e-6, generator=g)
        >>> curves.gap.shape, curves.rank.min().item()
        (torch.Size([2, 20]), 4)
    """
    check_batch(x)
    if stages.nonlinearity != "identity":
        raise ValueError(f"stages are {stages.name}; valid are those of a linear network, without NL.")
    wanted = tuple(sorted(set(depths)))
    if not wanted or wanted[0] < 1:
        raise ValueError(f"depths are {list(depths)}; valid is a list of whole numbers >= 1.")
    states = propagate(x, width, wanted[-1], stages, generator=generator)
    rows = [_measured(state, relative_tolerance) for state in states if state.depth in wanted]
    gap, angle, spread, rank = (torch.stack(column) for column in zip(*rows, strict=True))
    return LinearCurves(wanted, gap, angle, spread, rank)


def _measured(state: LayerState, relative_tolerance: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gap, mean angle, spread and rank of one representation."""
    n = state.x.shape[-2]
    s = torch.linalg.svdvals(state.x)
    full = s.shape[-1] >= n
    return (
        orthogonality_gap(state.x, gram=state.gram),
        mean_pairwise_angle(state.x, gram=state.gram),
        (s[..., 0] / s[..., n - 1]).log() if full else torch.full_like(s[..., 0], math.inf),
        numerical_rank(state.x, relative_tolerance),
    )


def stationary_gaps(
    n: int, width: int, *, draws: int, generator: torch.Generator, settle: float = 8.0, measured: int = 10
) -> Float[Tensor, " draws"]:
    """Orthogonality gap deep in rescaled linear networks, one mean over several depths a draw.

    Args:
        n: batch size.
        width: number of neurons of every layer, and dimension of the Gaussian input.
        draws: number of independent networks.
        generator: source of randomness.
        settle: depth before the first measurement, in units of the depth in which a small gap shrinks by a factor e.
        measured: number of measurements, one such unit apart.

    Returns:
        For each draw the mean of its measurements, after rescaling by the root mean square, shape (draws,).

    Raises:
        ValueError: n < 2, or width, draws or measured below 1.

    Example:
        >>> gaps = stationary_gaps(4, 256, draws=50, generator=torch.Generator().manual_seed(0))
        >>> abs(gaps.mean().item() / linear_theory.stationary_gap(4, 256)[0] - 1) < 0.05
        True
    """
    if draws < 1 or measured < 1:
        raise ValueError(f"draws and measured are {draws} and {measured}; valid are whole numbers >= 1.")
    unit = max(1, round(-1 / math.log(linear_theory.gap_multiplier(n))))
    wanted = [math.ceil(settle * unit) + k * unit for k in range(measured)]
    group = max(1, _ENTRIES_AT_ONCE.get(generator.device.type, 1 << 22) // (n * width))
    parts = []
    for first in range(0, draws, group):
        x = gaussian_batch(n, width, generator=generator, draws=min(group, draws - first))
        states = propagate(x, width, wanted[-1], Stages.parse("RMS"), generator=generator)
        gaps = [orthogonality_gap(state.x, gram=state.gram) for state in states if state.depth in wanted]
        parts.append(torch.stack(gaps).mean(dim=0))
    return torch.cat(parts)


def power_law(widths: Sequence[int], means: Sequence[float], standard_errors: Sequence[float]) -> tuple[float, float]:
    """Exponent p of ``mean ~ width^p``, by weighted least squares of the logs.

    Args:
        widths: at least two different widths.
        means: positive measurements, one a width.
        standard_errors: their standard errors, positive.

    Returns:
        The exponent and its standard error, as it follows from the measurements' own.

    Raises:
        ValueError: fewer than two different widths, lists of different lengths, or numbers that are not positive.

    Example:
        >>> exponent, error = power_law([10, 100, 1000], [1.0, 0.1, 0.01], [0.01, 0.001, 0.0001])
        >>> round(exponent, 9), round(error, 6)
        (-1.0, 0.003071)
    """
    if len(set(widths)) < 2 or not len(widths) == len(means) == len(standard_errors):
        raise ValueError(f"widths are {list(widths)}; valid are two different widths or more, with a measurement each.")
    if not all(value > 0 for value in [*widths, *means, *standard_errors]):
        raise ValueError(f"means are {list(means)} with errors {list(standard_errors)}; valid are numbers > 0.")
    x, y = np.log(widths), np.log(means)
    weight = (np.asarray(means) / np.asarray(standard_errors)) ** 2
    centered = x - np.average(x, weights=weight)
    information = (weight * centered**2).sum()
    return float((weight * centered * y).sum() / information), float(information**-0.5)


def recentering_once_or_always(
    x: Float[Tensor, "*draws n d"], width: int, depth: int, stages: Stages, *, generator: torch.Generator
) -> Float[Tensor, "layers *draws"]:
    """Distance between networks of the same weights that recenter in every layer, and in the first layer only.

    Args:
        x: input batch, shape (..., n, d).
        width: number of neurons of every layer.
        depth: number of layers, at least 2.
        stages: the stages of every layer, with recentering.
        generator: source of randomness.

    Returns:
        ``|X - X'|_F / |X|_F`` after layers 1, ..., depth, both scaled to mean squared row norm 1, shape (depth, ...).

    Raises:
        ValueError: stages without recentering, depth < 2, or as :func:`bnlib.ensembles.propagate`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x = gaussian_batch(4, 16, generator=g)
        >>> distance = recentering_once_or_always(x, 16, 5, Stages.parse("RC"), generator=g)
        >>> bool((distance < 1e-10).all())
        True
    """
    if not stages.recentering:
        raise ValueError(f"stages are {stages.name}; valid are stages with RC.")
    if depth < 2:
        raise ValueError(f"depth is {depth}; valid is an integer >= 2.")
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    without = Stages(False, stages.rescaling, stages.nonlinearity)

    def weights() -> torch.Generator:
        return torch.Generator(generator.device).manual_seed(seed)

    options = {"draw": "dense"}  # the only draw in which equal seeds mean equal weights
    always = propagate(x, width, depth, stages, generator=weights(), **options)
    stream = weights()
    first = next(propagate(x, width, 1, stages, generator=stream, **options))
    rest = propagate(first.x, width, depth - 1, without, generator=stream, **options)
    once = (state.x for part in ([first], rest) for state in part)
    return torch.stack(
        [torch.linalg.matrix_norm(a.x - b) / torch.linalg.matrix_norm(a.x) for a, b in zip(always, once, strict=True)]
    )


def batch_norm_difference(x: Float[Tensor, "n d"], *, epsilon: float | None = None) -> float:
    """Largest difference between torch's own BatchNorm1d in training mode and RC then RS.

    Args:
        x: preactivations, shape (n, d).
        epsilon: torch's eps. Without it the smallest normal number of x's type: torch from 2.13 on refuses zero in
            training mode, and this adds nothing to any variance above it by a factor of 1/rounding.

    Returns:
        The largest absolute difference of two entries; entries are of order one.

    Raises:
        ValueError: n < 2, or an epsilon that is not positive.

    Example:
        >>> x = gaussian_batch(8, 5, generator=torch.Generator().manual_seed(0))
        >>> batch_norm_difference(x) < 1e-14 < batch_norm_difference(x, epsilon=1e-5)
        True
    """
    check_batch(x)
    epsilon = torch.finfo(x.dtype).tiny if epsilon is None else epsilon
    if not epsilon > 0:
        raise ValueError(f"epsilon is {epsilon}; valid is a number > 0.")
    layer = torch.nn.BatchNorm1d(x.shape[1], eps=epsilon, affine=False, dtype=x.dtype, device=x.device).train()
    return float((layer(x) - apply_stages(x, Stages.parse("RC+RS"))).abs().max())
