"""States of a batch with one distinguished sample: at infinite width, and by pushing one sample of a finite network."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.data import symmetric_batch
from bnlib.ensembles import propagate
from bnlib.estimates import median_interval, quantile
from bnlib.kernels import relu_cosine
from bnlib.layers import Stages


@dataclass(frozen=True)
class State:
    """A state of a batch with one distinguished sample and n - 1 equivalent ones, at infinite width.

    Attributes:
        angle: angle between the distinguished sample and the mean of the others, radians.
        norm_ratio: its norm over the norm of that mean.
        top_over_second: its norm over the norm of each other sample.
        cluster_angle: angle between two of the others, radians.
    """

    angle: float
    norm_ratio: float
    top_over_second: float
    cluster_angle: float


def symmetric_state(n: int) -> State:
    """Where recentered ReLU layers with or without rescaling keep a batch whose samples are all equivalent.

    All norms are equal and all cosines are J(-1/(n-1)): recentering equivalent samples gives the cosine
    -1/(n-1), and J is what an infinitely wide ReLU layer makes of it.

    Args:
        n: batch size, at least 3.

    Returns:
        The state; angles in radians.

    Raises:
        ValueError: n < 3.

    Example:
        >>> round(math.degrees(symmetric_state(8).angle), 2)
        65.26
    """
    _check_size(n)
    cosine = float(relu_cosine(-1 / (n - 1)))
    return _state(1.0, 1.0, cosine, cosine, n)


def outlier_state(n: int) -> State | None:
    """The stable state with one outlier of recentered ReLU layers without rescaling, at infinite width.

    Iterates the map of the four inner products (outlier with itself, other sample with itself, two others,
    outlier with another): recentering, then the arc-cosine kernel (Cho & Saul 2009). It starts near the
    collapsed cluster.

    Args:
        n: batch size, at least 3.

    Returns:
        The state, or None if the outlier dissolves (it does for n <= 6).

    Raises:
        ValueError: n < 3, or no convergence within 100 000 layers.

    Example:
        >>> state = outlier_state(16)
        >>> round(state.top_over_second, 3), round(math.degrees(state.cluster_angle), 2)
        (13.896, 30.0)
        >>> outlier_state(6) is None
        True
    """
    _check_size(n)
    m = n - 1
    angle = min(3 * math.pi / n, 1.0)
    products = np.array([1.0, 1.0 / m**2, math.cos(angle) / m**2, 0.0])
    for _ in range(100_000):
        after = _recentered_layer(products, n)
        after = after / after[0]
        # Each product in units of the norms that it is made of: the cluster's are n times smaller than the outlier's.
        other = after[1]
        if (np.abs(after - products) < 1e-14 * np.array([1.0, other, other, math.sqrt(other)])).all():
            break
        products = after
    else:
        raise ValueError(f"n is {n}: the map has not converged after 100000 layers.")
    state = _state(*after, n)
    return state if state.top_over_second > 1.01 else None


def _check_size(n: int) -> None:
    if n < 3:
        raise ValueError(f"n is {n}; valid is a batch size of at least 3.")


def _recentered_layer(products: np.ndarray, n: int) -> np.ndarray:
    """One layer of RC and ReLU (He weights) on the four inner products."""
    top, other, pair, cross = products
    m = n - 1
    top_mean = (top + m * cross) / n
    other_mean = (cross + other + (m - 1) * pair) / n
    mean = (top_mean + m * other_mean) / n
    top, other = top - 2 * top_mean + mean, other - 2 * other_mean + mean
    pair, cross = pair - 2 * other_mean + mean, cross - top_mean - other_mean + mean
    scale = math.sqrt(top * other)
    # Rounding may leave a cosine just outside its interval.
    new_pair = other * float(relu_cosine(np.clip(pair / other, -1, 1)))
    return np.array([top, other, new_pair, scale * float(relu_cosine(np.clip(cross / scale, -1, 1)))])


def _state(top: float, other: float, pair: float, cross: float, n: int) -> State:
    mean_square = (other + (n - 2) * pair) / (n - 1)
    return State(
        angle=math.acos(min(1.0, cross / math.sqrt(top * mean_square))),
        norm_ratio=math.sqrt(top / mean_square),
        top_over_second=math.sqrt(top / other),
        cluster_angle=math.acos(min(1.0, pair / other)),
    )


def pushed(
    n: int, width: int, depth: int, stages: Stages, *, factor: float, draws: int, generator: torch.Generator
) -> dict[str, Any]:
    """Start from orthogonal samples of which one is longer than the others, and see whether it stays so.

    Args:
        n: batch size, at least 3.
        width: neurons in every layer.
        depth: number of linear layers.
        stages: what follows each linear map.
        factor: length of that sample; the others have length 1.
        draws: number of independent networks.
        generator: source of the weights.

    Returns:
        `curves`: norm of that sample over the median norm of the others, its quantiles 0.1, 0.5 and 0.9 over
        the draws at every layer, a list of three lists, None where all the others are zero. After the last
        layer, `end` and `angle_deg`: median over the draws of that ratio, and of the angle between the sample
        and the mean of the others, degrees; with `end_low`, `end_high`, `angle_low`, `angle_high`, the ends
        of their 95 percent intervals, None with fewer than six draws.

    Raises:
        ValueError: n < 3, a factor that is not positive, fewer than one draw, or as
        `bnlib.ensembles.propagate`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> found = pushed(8, 256, 20, Stages.parse("RC+RS+NL"), factor=3.0, draws=9, generator=g)
        >>> found["curves"][1][0] > 1.5 > found["end_high"]
        True
    """
    if n < 3 or draws < 1:
        raise ValueError(f"n is {n} and draws is {draws}; valid is n >= 3 with at least 1 draw.")
    if not factor > 0:
        raise ValueError(f"factor is {factor}; valid is a positive number.")
    x = symmetric_batch(n, n, draws=draws).to(generator.device)
    x[:, 0] *= factor
    curves = []
    for state in propagate(x, width, depth, stages, generator=generator):
        norms = state.gram.diagonal(dim1=-2, dim2=-1).sqrt()
        ordered = norms[:, 1:].sort(dim=-1).values
        middle = (ordered[:, (n - 2) // 2] + ordered[:, (n - 1) // 2]) / 2
        curves.append((norms[:, 0] / middle).double().cpu().numpy())
    angles = _angle_of_first(state.gram)
    end_low, end_high = median_interval(curves[-1])
    angle_low, angle_high = median_interval(angles)
    return {
        "curves": [[quantile(layer, level) for layer in curves] for level in (0.1, 0.5, 0.9)],
        "end": quantile(curves[-1], 0.5),
        "end_low": end_low,
        "end_high": end_high,
        "angle_deg": quantile(angles, 0.5),
        "angle_low": angle_low,
        "angle_high": angle_high,
    }


def _angle_of_first(k: Float[Tensor, "draws n n"]) -> np.ndarray:
    """Angle between the first sample and the mean of the others, degrees; NaN where one of them is zero."""
    cross, square = k[:, 0, 1:].mean(dim=-1), k[:, 1:, 1:].mean(dim=(-2, -1))
    cosine = cross / (k[:, 0, 0] * square).sqrt()
    return cosine.clamp(-1, 1).arccos().rad2deg().double().cpu().numpy()
