"""Recentered ReLU networks at infinite width: the map, its states, their stability, under one roof.

Sigma -> V(G Sigma G) with V(K)_ij = (sigma^2/2) sqrt(K_ii K_jj) J(K_ij / sqrt(K_ii K_jj)) and G = I - 11^T/n is the
layer of recentering and ReLU as the width grows. The work is done in

    bnlib.wide_batches           the map on whole batches of n samples, O(n^2) a layer
    bnlib.outlier_class          the same on batches of k distinguished and n - k equivalent samples, n and k real
    bnlib.outlier_fixed_points   its fixed points for one distinguished sample, and the saddle-node
    bnlib.many_outliers          its fixed points for several
    bnlib.state_stability        multipliers in all directions, in closed form
    bnlib.outlier_asymptotics    large batches

and the main functions can be had from here. NumPy float64; angles are radians; no torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.kernels import recentered_relu_kernel
from bnlib.outlier_class import next_class_state, next_state, next_state_slope, scale_growth
from bnlib.outlier_fixed_points import (
    NoStateError,
    OutlierClassState,
    bifurcation_branches,
    collapsed_state,
    fixed_points,
    outlier_state,
    saddle_node,
    separatrix,
    symmetric_state,
)
from bnlib.state_stability import class_stability, symmetric_stability, whole_number
from bnlib.wide_batches import (
    Batch,
    activations,
    angles,
    batch_from_distances,
    batch_from_gram,
    batch_from_points,
    batches,
    checked_covariance,
    covariance,
    distances,
    next_batch,
    next_distances,
)

__all__ = [
    "Batch",
    "BatchView",
    "NoStateError",
    "OutlierClassState",
    "angles",
    "batch_from_distances",
    "batch_from_gram",
    "batch_from_points",
    "batches",
    "bifurcation_branches",
    "class_stability",
    "collapsed_state",
    "covariance",
    "distances",
    "fixed_points",
    "next_batch",
    "next_class_state",
    "next_covariance",
    "next_distances",
    "next_state",
    "next_state_slope",
    "outlier_state",
    "saddle_node",
    "scale_growth",
    "separatrix",
    "states_table",
    "symmetric_stability",
    "symmetric_state",
    "view",
    "whole_number",
]


@dataclass(frozen=True)
class BatchView:
    """What a batch looks like after the next ReLU: the sample of largest norm against the others.

    Attributes:
        index: the sample of largest norm (the first of several).
        norm_ratio: its norm over the median norm of the others.
        norm_ratio_mean: its norm over the norm of the mean of the others.
        outlier_angle: mean angle between it and each of the others, radians.
        outlier_mean_angle: angle between it and the mean of the others, radians.
        cluster_angle: mean angle among the others, radians.
        log_scale: logarithm of the mean squared norm of all samples.
    """

    index: int
    norm_ratio: float
    norm_ratio_mean: float
    outlier_angle: float
    outlier_mean_angle: float
    cluster_angle: float
    log_scale: float


def view(batch: Batch) -> BatchView:
    """The sample of largest norm against the others, after the next ReLU.

    Args:
        batch: any batch.

    Returns:
        Norm ratios, angles and scale.

    Raises:
        ValueError: every sample but one is zero.

    Example:
        >>> seen = view(batch_from_gram(np.diag([4.0, 1.0, 1.0, 1.0])))
        >>> seen.index, seen.norm_ratio > 1
        (0, True)
    """
    lengths, deficit = activations(batch)
    n = len(lengths)
    index = int(np.argmax(lengths))
    rest = np.arange(n) != index
    middle = float(np.median(lengths[rest]))
    if not middle > 0:
        raise ValueError("The batch must hold more than one sample that is not zero after recentering.")
    products = lengths[:, None] * lengths[None, :] * (1.0 - deficit)
    mean_square = float(products[np.ix_(rest, rest)].mean())
    cosine = float(products[index, rest].mean()) / (float(lengths[index]) * math.sqrt(mean_square))
    pair = 2.0 * np.arcsin(np.sqrt(np.maximum(deficit, 0.0) / 2.0))
    return BatchView(
        index=index,
        norm_ratio=float(lengths[index]) / middle,
        norm_ratio_mean=float(lengths[index]) / math.sqrt(mean_square),
        outlier_angle=float(pair[index, rest].mean()),
        outlier_mean_angle=math.acos(min(1.0, cosine)),
        cluster_angle=float(pair[np.ix_(rest, rest)].sum()) / ((n - 1) * (n - 2)),
        log_scale=batch.log_scale + math.log(float((lengths**2).mean())),
    )


def next_covariance(sigma: Float[np.ndarray, "n n"], weight_variance: float | int = 2.0) -> Float[np.ndarray, "n n"]:
    """One layer in the textbook form, Sigma -> V(G Sigma G): in cosines, for comparison and for one-off use.

    Args:
        sigma: covariance of the samples, shape (n, n), symmetric, positive semi-definite, n >= 3.
        weight_variance: sigma^2, the variance of a weight times the width of the layer below.

    Returns:
        Shape (n, n). Angles below about 1e-8 are lost; `next_batch` keeps them.

    Raises:
        ValueError: as `batch_from_gram` (equal samples are allowed here), or weight_variance is not positive.

    Example:
        >>> next_covariance(np.eye(3)).round(4)
        array([[0.6667, 0.0727, 0.0727],
               [0.0727, 0.6667, 0.0727],
               [0.0727, 0.0727, 0.6667]])
    """
    return recentered_relu_kernel(checked_covariance(sigma), float(weight_variance))


def states_table(batch_sizes: Sequence[float | int]) -> dict[str, dict[int, object]]:
    """The states of each batch size, under the names that the book's results file keeps.

    Args:
        batch_sizes: whole numbers of at least 3.

    Returns:
        `outlier_state`: n to `exists`, `norm_ratio` (outlier to a cluster point), `norm_ratio_mean` (outlier to the
        cluster's mean), `outlier_angle_deg` (to a cluster point), `cluster_angle_deg`, `spectral_radius` (all
        directions, scale removed), `residual`, `iterations`, the numbers None where `exists` is false;
        `symmetric_state`: n to `cosine`, `leading_multiplier`; `separatrix_norm_ratio`: n to the norm ratio or None.

    Raises:
        ValueError: an empty list, a batch size below 3 or one that is not a whole number.

    Example:
        >>> table = states_table([6, 8])
        >>> table["outlier_state"][6]["exists"], round(table["outlier_state"][8]["spectral_radius"], 3)
        (False, 0.931)
    """
    if not batch_sizes:
        raise ValueError("batch_sizes must hold at least one batch size, got none.")
    numbers = ("norm_ratio", "norm_ratio_mean", "outlier_angle_deg", "cluster_angle_deg", "spectral_radius")
    outlier, symmetric, between = {}, {}, {}
    for n in batch_sizes:
        n = whole_number("n", n)
        cosine = math.cos(symmetric_state(n).cluster_angle)
        symmetric[n] = {"cosine": cosine, "leading_multiplier": symmetric_stability(n).spectral_radius}
        try:
            state = outlier_state(n)
        except NoStateError:
            outlier[n] = {"exists": False, **dict.fromkeys((*numbers, "residual", "iterations"))}
            between[n] = None
            continue
        values = (
            state.norm_ratio,
            state.norm_ratio_mean,
            math.degrees(state.outlier_angle),
            math.degrees(state.cluster_angle),
            class_stability(0.0, state.u, n).spectral_radius,
        )
        found = dict(zip(numbers, values, strict=True))
        outlier[n] = {"exists": True, **found, "residual": state.residual, "iterations": state.iterations}
        between[n] = separatrix(n).norm_ratio
    return {"outlier_state": outlier, "symmetric_state": symmetric, "separatrix_norm_ratio": between}
