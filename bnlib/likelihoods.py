"""Likelihoods of times of which some are censored, and how two fitted laws compare. NumPy float64."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import log_ndtr


def lognormal_log_density(
    log_time: np.ndarray, seen: np.ndarray, log_median: np.ndarray | float, log_scale: np.ndarray | float
) -> np.ndarray:
    """Log density of the logarithm of a log-normal time, or log probability of a later one where it was not seen.

    Args:
        log_time: logarithm of the time, of the last moment watched where censored; any shape.
        seen: whether the time was seen, same shape.
        log_median: logarithm of the median, broadcast to that shape.
        log_scale: logarithm of the standard deviation of the log time, broadcast to that shape.

    Returns:
        Natural logarithms, same shape.

    Example:
        >>> lognormal_log_density(np.zeros(2), np.array([True, False]), 0.0, 0.0).round(4).tolist()
        [-0.9189, -0.6931]
    """
    score = (log_time - log_median) / np.exp(log_scale)
    density = -0.5 * score * score - log_scale - 0.5 * math.log(2.0 * math.pi)
    return np.where(seen, density, log_ndtr(-score))


def likelihood_difference(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> dict[str, float]:
    """Difference of two log-likelihoods of the same draws, with its standard error (Vuong 1989).

    Args:
        first: log-likelihood of each draw under one law, one array for each cell of draws alike.
        second: the same under another law.

    Returns:
        `difference`: first minus second, summed; its `standard_error`, that of a sum of independent draws, its variance
        taken within each cell; `z`, 0 where the error is 0.

    Example:
        >>> likelihood_difference([np.array([0.0, 2.0])], [np.zeros(2)])
        {'difference': 2.0, 'standard_error': 2.0, 'z': 1.0}
    """
    parts = [a - b for a, b in zip(first, second, strict=True)]
    total = float(sum(part.sum() for part in parts))
    error = math.sqrt(sum(len(part) * float(part.var(ddof=1)) for part in parts if len(part) > 1))
    return {"difference": total, "standard_error": error, "z": total / error if error > 0 else 0.0}
