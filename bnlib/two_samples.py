"""Batches of two samples under recentering and ReLU: everything in closed form, nothing to learn about outliers."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import betaincc
from scipy.stats import binom, chi2, kstest


def norm_ratio_tail(ratio: int | float, width: int, *, rescaling: bool = False) -> float:
    """Probability that the longer of two samples is at least a given number of times as long as the other.

    After recentering the two samples are h and -h with h Gaussian of independent equal entries, in every layer,
    so after ReLU they have the norms of the positive and of the negative part of h. Given the number K of positive
    entries, Binomial(width, 1/2), the squares are independent and chi-squared with K and width - K degrees of
    freedom, and the share of the first is Beta(K/2, (width - K)/2). Rescaling makes every entry +1 or -1, and the
    squares K and width - K.

    Args:
        ratio: at least 1.
        width: number of neurons, at least 1.
        rescaling: whether each neuron is rescaled after recentering.

    Returns:
        The probability; a ratio to a zero sample is infinite and counts.

    Raises:
        ValueError: a ratio below 1, or a width below 1.

    Example:
        >>> norm_ratio_tail(1.0, 8)
        1.0
        >>> norm_ratio_tail(2.0, 64) < 0.01
        True
    """
    if not ratio >= 1:
        raise ValueError(f"ratio is {ratio}; valid is a number of at least 1.")
    if width < 1:
        raise ValueError(f"width is {width}; valid is at least 1.")
    if ratio == 1:
        return 1.0
    # Twenty standard deviations of the count hold all of it that a number can show, and both ends where they matter.
    reach = math.ceil(10 * math.sqrt(width))
    counts = np.arange(max(0, width // 2 - reach), min(width, (width + 1) // 2 + reach) + 1)
    weights = binom.pmf(counts, width, 0.5)
    if rescaling:
        larger, smaller = np.maximum(counts, width - counts), np.minimum(counts, width - counts)
        return float(weights[larger >= ratio**2 * smaller].sum())
    share = ratio**2 / (1 + ratio**2)
    inside = (counts > 0) & (counts < width)
    inner = betaincc(counts[inside] / 2, (width - counts[inside]) / 2, share)
    # The first sample is the longer one in half of all cases, and a sample with no active neuron is zero.
    return float(min(1.0, 2 * (weights[inside] @ inner + weights[counts == width].sum())))


def norm_ratio_median(width: int) -> float:
    """Median of the longer over the shorter norm of two samples, without rescaling, in every layer.

    Args:
        width: number of neurons, at least 3.

    Returns:
        The median, about 1 + 1.17 / sqrt(width) in wide networks.

    Raises:
        ValueError: width < 3: with one or two neurons one sample is zero in half of all cases or more.

    Example:
        >>> round(norm_ratio_median(1024), 4)
        1.0372
    """
    if width < 3:
        raise ValueError(f"width is {width}; valid is at least 3.")
    return float(brentq(lambda ratio: norm_ratio_tail(ratio, width) - 0.5, 1.0 + 1e-12, 1e6, xtol=1e-12))


def uniform_ranks(log_ratio: Float[np.ndarray, "..."], width: int) -> Float[np.ndarray, "..."]:
    """Distribution function of the logarithm of the first over the second norm, at given values, without rescaling.

    For values from this law the result is uniform on [0, 1]. The tail of `norm_ratio_tail` is computed on a grid and
    interpolated; the error is below 0.0001.

    Args:
        log_ratio: logarithms of the ratio, infinite where a sample is zero; any shape.
        width: number of neurons, at least 3.

    Returns:
        Probabilities, the shape of the argument.

    Raises:
        ValueError: width < 3.

    Example:
        >>> uniform_ranks(np.array([0.0, np.inf]), 64).tolist()
        [0.5, 1.0]
    """
    middle = math.log(norm_ratio_median(width))
    # The logarithm has a standard deviation of about 1.5 times its median; beyond 10 medians little is left.
    grid = np.concatenate([np.linspace(0.0, 10 * middle, 250), np.linspace(10 * middle, 60 * middle, 40)[1:]])
    tail = np.array([norm_ratio_tail(math.exp(min(step, 300.0)), width) for step in grid])
    upper = np.interp(np.abs(log_ratio), grid, tail, right=tail[-1]) / 2
    upper = np.where(np.isinf(log_ratio), 0.0, upper)
    return np.where(log_ratio >= 0, 1 - upper, upper)


def check_two_samples(
    angle_deg: Float[np.ndarray, "..."],
    norm_ratio: Float[np.ndarray, "..."],
    longer: Int[np.ndarray, "..."],
    width: int,
) -> dict[str, Any]:
    """Hold networks with batches of two against the theorem of chapter 6: every layer and draw, without rescaling.

    With R the first over the second norm, ranks u = F(log R) of all layers and draws are independent and uniform, says
    the theorem. Equal laws: Kolmogorov and Smirnov's test of all ranks, and the means of |2u - 1| layer by layer.
    Independence: the lag-1 correlations of u and of |2u - 1| along the depth; under independence the products are
    uncorrelated with known variance, so z is a correlation times the square root of the number of pairs.

    Args:
        angle_deg: angle between the two samples, degrees, NaN where one is zero; shape (depth, draws), as the others.
        norm_ratio: longer over shorter norm, infinite where one is zero.
        longer: which of the two is the longer one, 0 or 1.
        width: number of neurons, at least 3.

    Returns:
        `width`, `layers`, `draws`, `ratios` (layers times draws); `least_angle_deg`, `largest_angle_deg`, None where no
        angle is defined; `zero_samples`: number of layers and draws in which a sample is zero; `ks_distance`, `ks_p`;
        `layers_p`: p-value of the layers' means, chi-squared with one degree of freedom for each layer; `lag_z` (of u)
        and `lag_size_z` (of |2u - 1|), 0 with a single layer.

    Raises:
        ValueError: shapes that differ, or width < 3.

    Example:
        >>> angles, ratios = np.full((3, 4), 90.0), np.full((3, 4), 1.1)
        >>> found = check_two_samples(angles, ratios, np.zeros((3, 4), dtype=int), 64)
        >>> found["ratios"], found["largest_angle_deg"], round(found["ks_distance"], 2)
        (12, 90.0, 0.67)
    """
    if not np.shape(angle_deg) == np.shape(norm_ratio) == np.shape(longer) or np.ndim(angle_deg) != 2:
        shapes = [np.shape(values) for values in (angle_deg, norm_ratio, longer)]
        raise ValueError(f"angle_deg, norm_ratio and longer have shapes {shapes}; valid is one shape (depth, draws).")
    layers, draws = np.shape(angle_deg)
    known = angle_deg[~np.isnan(angle_deg)]
    ranks = uniform_ranks(np.where(np.asarray(longer) == 0, 1.0, -1.0) * np.log(norm_ratio), width)
    sizes = np.abs(2 * ranks - 1)
    test = kstest(ranks.ravel(), "uniform")
    of_layers = 12 * draws * np.sum((sizes.mean(axis=1) - 0.5) ** 2)
    return {
        "width": width,
        "layers": layers,
        "draws": draws,
        "ratios": layers * draws,
        "least_angle_deg": float(known.min()) if len(known) else None,
        "largest_angle_deg": float(known.max()) if len(known) else None,
        "zero_samples": int(np.isinf(norm_ratio).sum()),
        "ks_distance": float(test.statistic),
        "ks_p": float(test.pvalue),
        "layers_p": float(chi2.sf(of_layers, layers)),
        "lag_z": _lag_z(ranks),
        "lag_size_z": _lag_z(sizes),
    }


def _lag_z(ranks: Float[np.ndarray, "depth draws"]) -> float:
    """Lag-1 correlation of uniform ranks along the depth, in its own standard errors under independence."""
    centered = ranks - 0.5
    products = 12 * centered[1:] * centered[:-1]
    return float(products.sum() / math.sqrt(products.size)) if products.size else 0.0
