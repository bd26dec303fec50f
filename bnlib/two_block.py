"""Broken symmetry under batch normalization: winner-take-all states with one distinguished sample (BSB2, 1 x 1 block).

arXiv 1902.08129 calls a covariance with a distinguished diagonal block BSB2. With a block of one sample the centered
covariance has two eigenvalues, one along q = (1, -1/(n-1), ...) and one on the n - 2 directions inside the cluster of
the others; batch normalization forgets the scale, so the state is the single number

    ratio = (eigenvalue inside the cluster) / (eigenvalue along q):   1 is BSB1, 0 a covariance of rank one,

and a layer of infinite width is a map of it. For phi = max(x, 0)^alpha the map is the Laplace integral of
`bnlib.homogeneous_layer` with two eigenvalues. NumPy float64; this module does not import torch.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from bnlib.homogeneous import Homogeneous, homogeneous, homogeneous_multipliers, kernel_cosine
from bnlib.homogeneous_layer import log_laplace_rule, power_mean_square
from bnlib.outlier_fixed_points import outlier_state
from bnlib.sphere import checked_integer_batch

_SMALLEST = 5  # with fewer samples symmetry does not break in any degree


@dataclass(frozen=True)
class TwoBlockState:
    """A fixed point with one distinguished sample.

    Attributes:
        ratio: of the eigenvalue inside the cluster to the one along q.
        slope: d log(ratio') / d log(ratio) there; the state is stable inside its class if it is below 1.
        share: of the distinguished sample in the trace of the centered covariance; 1/n at BSB1.
    """

    ratio: float
    slope: float
    share: float


def distinguished_share(ratio: float | int, n: int | float) -> float:
    """Share of the distinguished sample in the trace of the centered covariance.

    Args:
        ratio: of the two eigenvalues, at least 0.
        n: batch size, at least 3; any real number.

    Raises:
        ValueError: ratio is negative or NaN, or n < 3.

    Example:
        >>> distinguished_share(1, 8), distinguished_share(0, 8)
        (0.125, 0.875)
    """
    if not ratio >= 0:
        raise ValueError(f"ratio must be at least 0, got {ratio}.")
    if not n >= 3:
        raise ValueError(f"n must be a batch size of at least 3, got {n}.")
    return (n - 1) / n / (1 + (n - 2) * ratio)


def covariance_of_ratio(ratio: float | int, n: int | float) -> Float[np.ndarray, "n n"]:
    """The centered covariance with eigenvalue 1 along q and `ratio` inside the cluster; sample 0 is distinguished.

    Args:
        ratio: at least 0.
        n: batch size, at least 3.

    Raises:
        ValueError: n is not a whole number of at least 3, or ratio is negative or NaN.

    Example:
        >>> np.round(covariance_of_ratio(1, 3), 3)[0].tolist()  # the centering projection
        [0.667, -0.333, -0.333]
    """
    n = checked_integer_batch(n, 3)
    if not ratio >= 0:
        raise ValueError(f"ratio must be at least 0, got {ratio}.")
    q = np.full(n, -1.0 / (n - 1))
    q[0] = 1.0
    along = np.outer(q, q) * (n - 1) / n
    return along + ratio * (np.eye(n) - 1 / n - along)


def next_ratio(ratio: float | int, n: int | float, phi: Homogeneous) -> float:
    """One layer of batch normalization and a homogeneous activation on the class with one distinguished sample.

    Args:
        ratio: positive.
        n: batch size, at least 3; any real number.
        phi: activation, of positive degree.

    Returns:
        The ratio after the layer.

    Raises:
        ValueError: ratio is not positive and finite, n < 3, or the degree is not positive.

    Example:
        >>> relu = homogeneous(1)
        >>> round(next_ratio(1, 8, relu), 12), 0.01 < next_ratio(0.01, 8, relu) < 1
        (1.0, True)
    """
    if not 0 < ratio < math.inf:
        raise ValueError(f"ratio must be positive and finite, got {ratio}.")
    if not n >= 3:
        raise ValueError(f"n must be a batch size of at least 3, got {n}.")
    m = n - 1
    s, weights = log_laplace_rule(np.array([ratio, 1.0]), np.array([n - 2.0, 1.0]), phi.alpha)
    along, inside = s / (1 + 2 * s), s * ratio / (1 + 2 * s * ratio)  # both with the factor s
    first, other = m / n * along, along / (n * m) + inside * (1 - 1 / m)
    across, within = -along / n, along / (n * m) - inside / m
    top = float(kernel_cosine(1.0, phi))
    mixed = kernel_cosine(np.clip(across / np.sqrt(first * other), -1, 1), phi)
    inner = kernel_cosine(np.clip(within / other, -1, 1), phi)
    scale = power_mean_square(phi.alpha)
    d_first, d_other = (scale * top * float(weights @ k**phi.alpha) for k in (first, other))
    off_first = scale * float(weights @ ((first * other) ** (phi.alpha / 2) * mixed))
    spread = scale * float(weights @ (other**phi.alpha * (top - inner)))
    off_other = d_other - spread
    return spread / (m / n * (d_first - 2 * off_first + (d_other + (m - 1) * off_other) / m))


def log_drift(ratio: float | int, n: int | float, phi: Homogeneous) -> float:
    """log(next ratio / ratio): zero at fixed points, positive where a layer brings the samples closer to equality.

    Args:
        ratio: positive; below 1 the distinguished sample is the large one.
        n: batch size, at least 3.
        phi: activation, of positive degree.

    Raises:
        ValueError: as `next_ratio`.

    Example:
        >>> log_drift(1e-6, 10, homogeneous(1)) > 0
        True
    """
    return math.log(next_ratio(ratio, n, phi) / ratio)


def two_block_states(
    n: int | float, phi: Homogeneous, lowest: float | int = -30.0, points: int = 60
) -> list[TwoBlockState]:
    """All fixed points with one larger sample, 0 < ratio < 1, found by a scan in the logarithm of the ratio.

    Args:
        n: batch size, at least 5.
        phi: activation, of positive degree.
        lowest: logarithm at which the scan begins.
        points: of the scan.

    Returns:
        The states, smallest ratio first. The rank-one covariance, ratio 0, is a fixed point for every phi and is
        not listed; neither is BSB1, ratio 1.

    Raises:
        ValueError: n < 5, points is below 4 or lowest is not negative.

    Example:
        >>> two_block_states(10, homogeneous(1))  # ReLU: nothing besides BSB1
        []
        >>> state, = two_block_states(10, homogeneous(2))
        >>> state.slope < 1 and state.share > 0.5
        True
    """
    if not n >= _SMALLEST:
        raise ValueError(f"n must be a batch size of at least {_SMALLEST}, got {n}.")
    if points < 4 or not lowest < -1:
        raise ValueError(f"points must be at least 4 and lowest below -1, got {points} and {lowest}.")

    # log(next/ratio) vanishes at ratio 1 for every phi; divided by log(ratio) it keeps only the other zeros.
    def pull(x: float) -> float:
        return log_drift(math.exp(x), n, phi) / -x

    grid = -np.geomspace(-float(lowest), 1e-3, points)
    values = [pull(x) for x in grid]
    found = []
    for left, right, low, high in zip(grid, grid[1:], values, values[1:], strict=False):
        if low * high < 0:
            x = float(brentq(pull, left, right, xtol=1e-12))
            step = 1e-4
            slope = (log_drift(math.exp(x + step), n, phi) - log_drift(math.exp(x - step), n, phi)) / (2 * step)
            found.append(TwoBlockState(math.exp(x), 1 + slope, distinguished_share(math.exp(x), n)))
    return found


def onset_degree(n: int | float, tolerance: float | int = 1e-3) -> float:
    """Least degree alpha at which max(x, 0)^alpha has a winner-take-all state, by bisection.

    It lies below the degree at which BSB1 turns unstable (`homogeneous.instability_degree`): between the two both
    are stable, and what a network does depends on its width and its input.

    Args:
        n: batch size, at least 5.
        tolerance: in alpha.

    Raises:
        ValueError: n < 5, or tolerance is not positive.

    Example:
        >>> 1 < onset_degree(10, tolerance=0.05) < 1.4
        True
    """
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}.")
    low, high = 1.0, 2.0
    while not two_block_states(n, homogeneous(high)):
        low, high = high, 2 * high
    while high - low > tolerance:
        middle = (low + high) / 2
        if two_block_states(n, homogeneous(middle), points=120):
            high = middle
        else:
            low = middle
    return (low + high) / 2


def recentered_outlier_ratio(n: int | float) -> float:
    """The paper's odd point in these terms: ratio of the outlier state of recentered ReLU networks without rescaling.

    Args:
        n: batch size, at least 7.

    Raises:
        NoStateError: n is below the saddle-node between 6 and 7.

    Example:
        >>> 0 < recentered_outlier_ratio(10) < 0.1
        True
    """
    # There u is the cluster's eigenvalue in units of |x_1 - nu|^2, and the eigenvalue along q is (n-1)/n of the same.
    return outlier_state(n).u * n / (n - 1)


def symmetric_slope(n: int | float, alpha: float | int) -> float:
    """Slope of log(ratio') at BSB1: the multiplier lambda_L of max(x, 0)^alpha, which these states bifurcate from.

    Args:
        n: batch size, at least 4.
        alpha: degree, above 1/2.

    Raises:
        ValueError: as `homogeneous.homogeneous_multipliers`.

    Example:
        >>> round(symmetric_slope(8, 1), 4)
        0.7436
    """
    return homogeneous_multipliers(homogeneous(alpha), n).norms
