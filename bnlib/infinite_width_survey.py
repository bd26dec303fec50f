"""The surveys of chapter 7's first half: every batch size, every direction, several outliers, digits kept.

Each function returns plain numbers, ready for a results file. NumPy float64 and mpmath; no torch.
"""

import math
from collections.abc import Iterable
from typing import Any

import mpmath
import numpy as np
from jaxtyping import Float

from bnlib import infinite_width, state_stability
from bnlib.many_outliers import many_outlier_states
from bnlib.progress import progress
from bnlib.wide_batches import batch_from_points, distances, next_batch


def every_batch_size(largest: int) -> dict[str, Any]:
    """Fixed points and stability of all batch sizes from 3 on, summarized.

    Args:
        largest: the last batch size, at least 7.

    Returns:
        `sizes` and `with_outlier` (counts), `first_with_outlier`, `largest`, `largest_residual`, `most_iterations`;
        `largest_radius_outlier` and `largest_radius_symmetric` (spectral radii in all directions);
        `separatrix_unstable_directions` and `collapsed_stable` (the different counts seen; how many collapsed clusters
        had no multiplier above 1).

    Raises:
        ValueError: largest is below 7.

    Example:
        >>> found = every_batch_size(9)
        >>> found["first_with_outlier"], found["with_outlier"], found["separatrix_unstable_directions"]
        (7, 3, [1])
    """
    if largest < 7:
        raise ValueError(f"largest must be a batch size of at least 7, got {largest}.")
    residuals, iterations, outlier, symmetric, ways, with_outlier, collapsed = [], [], [], [], set(), [], 0
    for n in progress(range(3, largest + 1), "batch sizes"):
        states = infinite_width.fixed_points(n)
        residuals += [state.residual for state in states]
        iterations += [state.iterations for state in states]
        symmetric.append(infinite_width.symmetric_stability(n).spectral_radius)
        collapsed += infinite_width.class_stability(0.0, 0.0, n).unstable_directions == 0
        if len(states) == 4:
            with_outlier.append(n)
            outlier.append(infinite_width.class_stability(0.0, states[1].u, n).spectral_radius)
            ways.add(int(infinite_width.class_stability(0.0, states[2].u, n).unstable_directions))
    return {
        "sizes": largest - 2,
        "largest": largest,
        "with_outlier": len(with_outlier),
        "first_with_outlier": min(with_outlier),
        "largest_residual": max(residuals),
        "most_iterations": max(iterations),
        "largest_radius_outlier": max(outlier),
        "largest_radius_symmetric": max(symmetric),
        "separatrix_unstable_directions": sorted(ways),
        "collapsed_stable": collapsed,
    }


def compared_jacobians(batch_sizes: Iterable[int]) -> list[dict[str, Any]]:
    """Closed forms of all multipliers beside those of the numerical Jacobian of the full map.

    Args:
        batch_sizes: whole numbers of at least 3; the Jacobian has n(n-1)/2 rows.

    Returns:
        For each batch size and each opened state: `n`, `state`, `directions`, `error` (the largest difference of an
        eigenvalue, imaginary parts included). The symmetric state is compared twice: as one distinguished sample among
        others, and by its own two multipliers.

    Raises:
        ValueError: a batch size below 3.

    Example:
        >>> [(row["state"], row["directions"]) for row in compared_jacobians([7])]
        [('outlier', 21), ('separatrix', 21), ('symmetric', 21)]
        >>> max(row["error"] for row in compared_jacobians([5])) < 1e-9
        True
    """
    rows = []
    for n in progress(list(batch_sizes), "Jacobians"):
        for state in infinite_width.fixed_points(n)[1:]:
            closed = [infinite_width.class_stability(0.0, state.u, n)]
            if state.kind == "symmetric":
                closed.append(infinite_width.symmetric_stability(n))
            brute = state_stability.brute_force_multipliers(
                infinite_width.next_distances, state_stability.class_distances(0.0, state.u, n)
            )
            errors = [np.abs(np.sort(state_stability.all_multipliers(c)) - np.sort(brute.real)).max() for c in closed]
            error = float(max(errors) + np.abs(brute.imag).max())
            rows.append({"n": n, "state": state.kind, "directions": len(brute), "error": error})
    return rows


def several_outliers(up_to: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Fixed points with k equal outliers for all n up to a size and all k from 2 to n/2.

    Args:
        up_to: the last batch size, at least 9.

    Returns:
        One dictionary a pair (`n`, `k`): `states` (how many), `unstable` (directions, for each), `only_outliers_race`
        (whether the unstable directions of the first are exactly those with one weight an outlier), `ratios`,
        `least_radius`, `residual`. And a summary: `cells`, `with_states`, `states`, `stable` (counts), `upper_minus_k`
        and `lower_minus_k` (unstable directions less k, the different values), `least_radius`, `pairs` (whether there
        were always none or two), `races`.

    Raises:
        ValueError: up_to is below 9, where nothing is to be found.

    Example:
        >>> cells, summary = several_outliers(10)
        >>> [(c["n"], c["k"], c["unstable"]) for c in cells if c["states"]], summary["stable"]
        ([(9, 2, [1, 2]), (10, 2, [1, 2])], 0)
    """
    if up_to < 9:
        raise ValueError(f"up_to must be a batch size of at least 9, got {up_to}.")
    cells = []
    for n in progress(range(4, up_to + 1), "several outliers"):
        for k in range(2, n // 2 + 1):
            states = [state for state in many_outlier_states(n, k) if state.norm_ratio > 1]
            cells.append(
                {
                    "n": n,
                    "k": k,
                    "states": len(states),
                    "unstable": [round(state.unstable_directions) for state in states],
                    "only_outliers_race": bool(states) and states[0].unstable_blocks == {"outliers": k - 1},
                    "ratios": [state.norm_ratio for state in states],
                    "least_radius": min((state.spectral_radius for state in states), default=None),
                    "residual": max((state.residual for state in states), default=0.0),
                }
            )
    found = [cell for cell in cells if cell["states"]]
    return cells, {
        "cells": len(cells),
        "with_states": len(found),
        "states": sum(cell["states"] for cell in found),
        "stable": sum(count == 0 for cell in found for count in cell["unstable"]),
        "upper_minus_k": sorted({cell["unstable"][0] - cell["k"] for cell in found}),
        "lower_minus_k": sorted({cell["unstable"][-1] - cell["k"] for cell in found}),
        "least_radius": min(cell["least_radius"] for cell in found),
        "pairs": all(cell["states"] in (0, 2) for cell in cells),
        "races": all(cell["only_outliers_race"] for cell in found),
    }


def narrow_cluster(noise: Float[np.ndarray, "n d"], spread: float | int) -> Float[np.ndarray, "n d"]:
    """Definition 12 with its cluster opened: one sample at distance 1, the others within `spread` of one point.

    Args:
        noise: standard Gaussian numbers, shape (n, d), n >= 3, d >= 2.
        spread: size of the cluster, in units of its distance from the origin.

    Returns:
        Samples as rows, shape (n, d).

    Raises:
        ValueError: fewer than 3 rows or 2 columns.

    Example:
        >>> narrow_cluster(np.zeros((3, 2)), 1e-9)
        array([[1. , 0. ],
               [0. , 0.5],
               [0. , 0.5]])
    """
    if noise.ndim != 2 or noise.shape[0] < 3 or noise.shape[1] < 2:
        raise ValueError(f"noise must have at least 3 rows and 2 columns, got shape {noise.shape}.")
    n, d = noise.shape
    x = spread / (n - 1) * np.asarray(noise, dtype=np.float64) / math.sqrt(d)
    x[:, 1] += 1.0 / (n - 1)
    x[0] = np.eye(1, d)[0]
    return x


def accuracy_against_high_precision(x: Float[np.ndarray, "n d"], depth: int, digits: int = 60) -> float:
    """Largest relative error of a squared distance over some layers, against Gram matrices in cosines and many digits.

    Args:
        x: samples are rows, shape (n, d).
        depth: number of layers.
        digits: decimal digits of the comparison.

    Returns:
        The largest |D / D_exact - 1| over layers and pairs.

    Raises:
        ValueError: as `bnlib.wide_batches.batch_from_points`.

    Example:
        >>> noise = np.random.default_rng(0).standard_normal((5, 5))
        >>> accuracy_against_high_precision(narrow_cluster(noise, 1e-9), 3) < 1e-13
        True
    """
    batch, n, worst = batch_from_points(x), len(x), 0.0
    with mpmath.workdps(digits):
        rows = [[mpmath.mpf(float(value)) for value in row] for row in x]
        k = mpmath.matrix([[mpmath.fdot(a, b) for b in rows] for a in rows])
        for _ in range(depth):
            k, batch = _precise_layer(k), next_batch(batch)
            found, scale = distances(batch), mpmath.exp(mpmath.mpf(batch.log_scale))
            for i in range(n):
                for j in range(i):
                    exact = k[i, i] + k[j, j] - 2 * k[i, j]
                    worst = max(worst, abs(float(mpmath.mpf(float(found[i, j])) * scale / exact - 1)))
    return worst


def _precise_layer(k: mpmath.matrix) -> mpmath.matrix:
    n = k.rows
    means = [mpmath.fsum(k[i, j] for j in range(n)) / n for i in range(n)]
    total = mpmath.fsum(means) / n
    centered = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(n):
            centered[i, j] = k[i, j] - means[i] - means[j] + total
    after = mpmath.matrix(n, n)
    for i in range(n):
        after[i, i] = centered[i, i]
        for j in range(i):
            scale = mpmath.sqrt(centered[i, i] * centered[j, j])
            c = centered[i, j] / scale
            after[i, j] = scale * (mpmath.sqrt(1 - c * c) + (mpmath.pi - mpmath.acos(c)) * c) / mpmath.pi
            after[j, i] = after[i, j]
    return after
