"""How the angles of a batch evolve with depth, stage by stage: infinite-width theory, and simulation at finite width.

The stages are combinations of recentering, rescaling and ReLU (see `bnlib.layers`). Theory lives at infinite width,
where the Gram matrix of a batch follows a deterministic map; simulation draws fresh Gaussian weights, and a fresh
Gaussian batch, for every draw. Angles are radians.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bnlib import kernels, outlier_class
from bnlib.checks import checked_batch_size, checked_depth
from bnlib.data import gaussian_batch
from bnlib.ensembles import propagate
from bnlib.fixed_points import NotConvergedError
from bnlib.geometry import mean_pairwise_angle, outlier_summary, pairwise_angles
from bnlib.layers import Stages

# The five rows of the chapter on angles, in the order of its table.
STAGE_NAMES = ("NL", "RMS+NL", "STD+NL", "RC+NL", "RC+RS+NL")

_ENTRIES_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 28}  # of one representation, over the draws that run together


@dataclass(frozen=True)
class AngleCurves:
    """Angles of many independent random networks, at several depths.

    Attributes:
        depths: the depths that were measured, increasing; depth counts linear layers.
        mean_angle: mean over the n(n-1)/2 pairs of the angle between two samples, radians, shape (depths, draws); NaN
            in a draw with a zero sample, which has no direction.
        outlier_angle: angle between the sample of largest norm and the mean of the others, radians, shape (depths,
            draws).
        cluster_angle: mean angle over the pairs without the sample of largest norm, radians, shape (depths, draws);
            NaN for n = 2.
        top_over_second: largest norm over second-largest norm, shape (depths, draws).
    """

    depths: tuple[int, ...]
    mean_angle: Float[Tensor, "depths draws"]
    outlier_angle: Float[Tensor, "depths draws"]
    cluster_angle: Float[Tensor, "depths draws"]
    top_over_second: Float[Tensor, "depths draws"]


@dataclass(frozen=True)
class DrawStatistics:
    """Independent draws, summarized; draws that are not finite are left out and counted.

    Attributes:
        mean: mean over the draws, shape (...), unit of the values; NaN where no draw is finite.
        standard_error: standard deviation (divisor m - 1) over the root of the number m of finite draws, shape (...);
            NaN where m < 2.
        median: shape (...).
        q10: quantile of order 0.1, shape (...).
        q90: quantile of order 0.9, shape (...).
        undefined_share: share of the draws that are not finite, shape (...).
    """

    mean: Float[np.ndarray, "*shape"]
    standard_error: Float[np.ndarray, "*shape"]
    median: Float[np.ndarray, "*shape"]
    q10: Float[np.ndarray, "*shape"]
    q90: Float[np.ndarray, "*shape"]
    undefined_share: Float[np.ndarray, "*shape"]


@dataclass(frozen=True)
class EscapedState:
    """A batch with one distinguished sample, at rest under infinitely wide layers of recentering and ReLU.

    Attributes:
        norm_ratio: norm of the distinguished sample over the norm of each other sample.
        outlier_angle: angle between the distinguished sample and each other one, radians.
        cluster_angle: angle between two of the others, radians.
        mean_angle: mean angle over all pairs, radians.
        residual: |u' - u| / u of the one-dimensional map at the point returned.
        iterations: number of layers that were iterated.
    """

    norm_ratio: float
    outlier_angle: float
    cluster_angle: float
    mean_angle: float
    residual: float
    iterations: int


def depth_grid(depth: int, points: int = 32) -> tuple[int, ...]:
    """Depths to measure: about `points` whole numbers from 1 to depth, evenly spaced in their logarithm.

    Args:
        depth: the last depth, at least 1.
        points: how many to aim at, at least 2; rounding makes some of the small ones coincide.

    Returns:
        Increasing depths; 1 and `depth` are among them.

    Raises:
        ValueError: depth < 1 or points < 2.

    Example:
        >>> depth_grid(100, 8)
        (1, 2, 4, 7, 14, 27, 52, 100)
    """
    if checked_depth(depth) < 1:
        raise ValueError(f"depth must be a whole number of layers, 1 or more, got {depth}.")
    if points < 2:
        raise ValueError(f"points must be at least 2, got {points}.")
    return tuple(sorted({round(depth ** (i / (points - 1))) for i in range(points)}))


def angle_curves(
    n: int,
    width: int,
    depth: int,
    stages: Stages,
    *,
    draws: int,
    generator: torch.Generator,
    depths: Sequence[int] | None = None,
) -> AngleCurves:
    """Simulate random networks on Gaussian batches and measure the angles on the way.

    Each draw has a fresh batch, of the network's width, and fresh He weights; a representation is measured after the
    layer's last stage. Weights are drawn through the Gram root where that is cheaper, which leaves the law unchanged.

    Args:
        n: batch size.
        width: number of neurons of every layer, and dimension of the input.
        depth: number of linear layers.
        stages: the stages after each linear map.
        draws: number of independent draws.
        generator: source of randomness; the simulation runs on its device.
        depths: depths to measure, each from 1 to depth; `depth_grid(depth)` without it.

    Returns:
        The angles at these depths, on the generator's device, float64.

    Raises:
        ValueError: n < 2, width, depth or draws < 1, or a depth to measure that is not among the layers.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> curves = angle_curves(16, 256, 10, Stages.parse("RC+RS+NL"), draws=20, generator=g)
        >>> curves.depths[-1], round(math.degrees(curves.mean_angle[-1].mean()))
        (10, 73)
    """
    wanted = depth_grid(depth) if depths is None else tuple(sorted(set(depths)))
    if not wanted or not all(isinstance(d, int) and 1 <= d <= depth for d in wanted):
        raise ValueError(f"depths must be whole numbers from 1 to {depth}, got {depths}.")
    if draws < 1:
        raise ValueError(f"draws must be a whole number of at least 1, got {draws}.")
    group = max(1, _ENTRIES_AT_ONCE.get(generator.device.type, 1 << 22) // (max(n, 1) * max(width, 1)))
    parts = []
    for first in range(0, draws, group):
        batch = gaussian_batch(n, width, generator=generator, draws=min(group, draws - first))
        states = propagate(batch, width, depth, stages, generator=generator)
        parts.append(torch.stack([_measured_angles(s.x, s.gram) for s in states if s.depth in wanted]))
    return AngleCurves(wanted, *torch.cat(parts, dim=-1).unbind(dim=1))


def _measured_angles(x: Float[Tensor, "draws n d"], gram: Float[Tensor, "draws n n"]) -> Float[Tensor, "4 draws"]:
    """Mean, outlier and cluster angle, and top over second norm, of one representation."""
    n = x.shape[-2]
    angles = pairwise_angles(x, gram=gram)
    summary = outlier_summary(x)
    total = angles.sum(dim=(-2, -1))
    to_top = angles.gather(-2, summary.index[..., None, None].expand(*total.shape, 1, n)).sum(dim=(-2, -1))
    cluster = (total - 2 * to_top) / ((n - 1) * (n - 2)) if n > 2 else torch.full_like(total, math.nan)
    return torch.stack([total / (n * (n - 1)), summary.angle, cluster, summary.top_over_second])


def widened_angles(
    n: int,
    width: int,
    depth: int,
    stages: Stages,
    *,
    wider: int,
    more: int,
    draws: int,
    generator: torch.Generator,
) -> Float[Tensor, "layers draws"]:
    """Mean pairwise angles in networks of one width up to a depth, and of another, larger one from there on.

    At finite width a state can be kept up by fluctuations; in wider layers it then decays. Each draw has a fresh
    Gaussian batch of dimension `width`.

    Args:
        n: batch size.
        width: number of neurons of each of the first `depth` layers.
        depth: number of these layers.
        stages: the stages after each linear map.
        wider: number of neurons of each later layer.
        more: number of later layers.
        draws: number of independent draws.
        generator: source of randomness; the simulation runs on its device.

    Returns:
        Radians after layers 1, ..., depth + more; NaN in a draw with a zero sample.

    Raises:
        ValueError: n < 2, or a width, a depth or draws < 1.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> widened_angles(8, 16, 5, Stages.parse("NL"), wider=64, more=3, draws=2, generator=g).shape
        torch.Size([8, 2])
    """
    x = gaussian_batch(n, width, generator=generator, draws=draws)
    angles = []
    for layers, neurons in ((depth, width), (more, wider)):
        for state in propagate(x, neurons, layers, stages, generator=generator):
            x = state.x
            angles.append(mean_pairwise_angle(x, gram=state.gram))
    return torch.stack(angles)


def draw_statistics(values: Float[Tensor, "*shape draws"]) -> DrawStatistics:
    """Summarize independent draws along the last dimension.

    Args:
        values: one value a draw, shape (..., draws).

    Returns:
        Mean, standard error, median, quantiles, and the share of draws left out because they are not finite.

    Raises:
        ValueError: no draws.

    Example:
        >>> found = draw_statistics(torch.tensor([1.0, 2.0, 3.0, math.nan]))
        >>> float(found.mean), round(float(found.standard_error), 4), float(found.undefined_share)
        (2.0, 0.5774, 0.25)
    """
    if values.ndim < 1 or values.shape[-1] < 1:
        raise ValueError(f"values has shape {tuple(values.shape)}; valid is (..., draws) with at least one draw.")
    kept = torch.where(values.isfinite(), values, math.nan).double().cpu()
    count = kept.isfinite().sum(dim=-1)
    mean = kept.nanmean(dim=-1)
    variance = torch.nansum((kept - mean[..., None]) ** 2, dim=-1) / (count - 1)  # 0/0 is NaN, as it should be
    variance = torch.where(count > 1, variance, math.nan)
    quantiles = torch.nanquantile(kept, torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64), dim=-1)
    return DrawStatistics(
        mean=mean.numpy(),
        standard_error=(variance / count).sqrt().numpy(),
        median=quantiles[1].numpy(),
        q10=quantiles[0].numpy(),
        q90=quantiles[2].numpy(),
        undefined_share=(1 - count.double() / kept.shape[-1]).numpy(),
    )


def none_if_undefined(values: Float[np.ndarray, "*shape"] | float | None) -> object:
    """Numbers as a results file holds them: nested lists or a float, None in place of what is not finite.

    Args:
        values: an array, a number, or None.

    Returns:
        A float, None, or lists of them, nested as the array is.

    Example:
        >>> none_if_undefined(np.array([1.5, np.nan])), none_if_undefined(math.inf)
        ([1.5, None], None)
    """
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    if array.ndim == 0:
        return float(array) if math.isfinite(array) else None
    return [none_if_undefined(entry) for entry in array]


def limit_angle(stages: Stages, n: int | float) -> float | None:
    """Angle between every two samples at infinite width and, after that, infinite depth.

    NL: 0, since the angle falls like 3 pi / depth. STD+NL: 0 as well. RMS+NL: the fixed point of a one-dimensional
    integral. RC+RS+NL: arccos J(-1/(n-1)). RC+NL: None, since where the batch ends depends on where it starts.

    Args:
        stages: the stages; the last one must be ReLU.
        n: batch size, at least 2 (any real number); math.inf for the limit of large batches.

    Returns:
        The angle in radians, or None for RC+NL.

    Raises:
        ValueError: n < 2, or stages without ReLU.

    Example:
        >>> [round(math.degrees(limit_angle(Stages.parse(name), 8)), 2) for name in ("NL", "RMS+NL", "RC+RS+NL")]
        [0.0, 60.11, 75.51]
    """
    _check_relu(stages)
    n = checked_batch_size(n, 2)
    if stages.recentering:
        return kernels.batch_norm_angle(n) if stages.rescaling != "none" else None
    return kernels.rms_fixed_point_angle(n) if stages.rescaling == "rms" else 0.0


def wide_angle_path(
    stages: Stages, n: int | float, depth: int, theta0: float | int = math.pi / 2
) -> Float[np.ndarray, "layers"] | None:
    """Angles at depths 0, 1, ..., depth of an infinitely wide network, for a batch in which all pairs have one angle.

    With recentering every such batch has the angle arccos J(-1/(n-1)) from the first layer on, with rescaling and
    without: without it the state is not stable for n > 6, but a batch that starts symmetric stays so.

    Args:
        stages: the stages; the last one must be ReLU.
        n: batch size, at least 2; math.inf for the limit.
        depth: number of layers, 0 or more.
        theta0: angle of every pair of the input in radians, in (0, arccos(-1/(n-1))].

    Returns:
        Angles in radians, shape (depth + 1,); None for STD+NL with n < 4, where the Gram matrix of a layer does not
        converge as the width grows.

    Raises:
        ValueError: n < 2, a negative depth, an angle no such batch has, or stages without ReLU.

    Example:
        >>> np.degrees(wide_angle_path(Stages.parse("RC+NL"), 8, 2)).round(1)
        array([90. , 75.5, 75.5])
        >>> np.degrees(wide_angle_path(Stages.parse("NL"), 8, 2)).round(1)
        array([90. , 71.4, 60.4])
    """
    _check_relu(stages)
    n, depth = checked_batch_size(n, 2), checked_depth(depth)
    if stages.recentering:
        return np.array([theta0] + depth * [kernels.batch_norm_angle(n)])
    if stages.rescaling == "none":
        return kernels.relu_angle_path(depth, theta0)
    if stages.rescaling == "std":
        return kernels.std_relu_angle_path(depth, theta0, n) if n >= 4 else None
    angles = [theta0]
    for _ in range(depth):
        angles.append(float(kernels.rms_relu_angle(angles[-1], n)))
    return np.array(angles)


@cache
def escaped_state(n: int | float, *, tolerance: float = 1e-13, max_layers: int = 20_000) -> EscapedState | None:
    """The state with one escaped sample of an infinitely wide network with recentering and ReLU, if there is one.

    In the class of batches with one distinguished sample and n - 1 equivalent others the layer is a map of one
    number: u = (x_i.x_i - x_i.x_j) / |x_1 - nu|^2, with x_i, x_j two of the others and nu their mean. The map is
    iterated from a nearly collapsed cluster, which lies on the escaped side wherever there are two sides.

    Args:
        n: batch size, at least 3 (any real number).
        tolerance: relative change of u in one layer that counts as rest.
        max_layers: layers after which it gives up.

    Returns:
        The state; None where the batch returns to the symmetric state, in which all norms agree.

    Raises:
        ValueError: n < 3 or not finite.
        NotConvergedError: the map does not come to rest.

    Example:
        >>> state = escaped_state(32)
        >>> round(math.degrees(state.cluster_angle), 2), round(state.norm_ratio, 3)
        (15.88, 30.385)
        >>> escaped_state(6) is None
        True
    """
    n = checked_batch_size(n, 3)
    if math.isinf(n):
        raise ValueError("n must be finite, since the escaped sample's norm grows with it, got inf.")
    u, residual, layers = (3 * math.pi / n) ** 2 / (2 * n * n), math.inf, 0
    while residual > tolerance:
        if layers == max_layers:
            raise NotConvergedError(f"The escaped state is not reached: the residual is {residual:.3g} after {layers}.")
        after = outlier_class.next_state(u, n)
        residual, u, layers = abs(after - u) / u, after, layers + 1
    geometry = outlier_class.class_geometry(0.0, u, n)
    ratio = math.sqrt(geometry.outlier_square / geometry.cluster_square)
    if ratio < 1 + 1e-6:
        return None
    outlier = math.acos(kernels.relu_cosine(-math.cos(geometry.supplement)))
    cluster = outlier_class.cluster_angle_after(u, n)
    mean = (2 * outlier + (n - 2) * cluster) / n
    return EscapedState(ratio, outlier, cluster, mean, residual, layers)


def _check_relu(stages: Stages) -> None:
    if stages.nonlinearity != "relu" or stages.norm_after:
        raise ValueError(f"stages must end with NL (ReLU), got {stages.name!r}.")


def batch_sizes_with_angle(stages: Stages, low: float | int, high: float | int, candidates: Iterable[int]) -> list[int]:
    """Batch sizes whose infinite-width, infinite-depth angle lies in an interval.

    Args:
        stages: the stages; the last one must be ReLU.
        low: lower end in radians, included.
        high: upper end in radians, excluded.
        candidates: batch sizes to try, each at least 2.

    Returns:
        Those inside, in the order given; none for RC+NL, which has no such angle.

    Raises:
        ValueError: low >= high, a candidate below 2, or stages without ReLU.

    Example:
        >>> low, high = math.radians(72.5), math.radians(77.5)
        >>> found = batch_sizes_with_angle(Stages.parse("RC+RS+NL"), low, high, range(2, 99))
        >>> found[0], found[-1]
        (6, 29)
    """
    if not low < high:
        raise ValueError(f"low must be below high, got {low} and {high}.")
    angles = ((n, limit_angle(stages, n)) for n in candidates)
    return [n for n, angle in angles if angle is not None and low <= angle < high]
