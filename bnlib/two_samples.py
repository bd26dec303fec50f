"""Batches of two samples under recentering and ReLU: everything in closed form, nothing to learn about outliers."""

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, binom


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
    counts = np.arange(width + 1)
    weights = binom.pmf(counts, width, 0.5)
    if rescaling:
        larger, smaller = np.maximum(counts, width - counts), np.minimum(counts, width - counts)
        return float(weights[larger >= ratio**2 * smaller].sum())
    share = ratio**2 / (1 + ratio**2)
    inner = beta.sf(share, counts[1:-1] / 2, (width - counts[1:-1]) / 2)
    # The first sample is the longer one in half of all cases, and a sample with no active neuron is zero.
    return float(min(1.0, 2 * (weights[1:-1] @ inner + weights[-1])))


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
