"""Recentered networks with a positively homogeneous activation, phi(x) = a relu(x) - b relu(-x), at infinite width.

With He's variance for phi, 2/(a^2 + b^2), an infinitely wide layer keeps norms and maps cosines by

    J_w(c) = (1 - w) J(c) + w c,        w = 2 a b / (a^2 + b^2),

J the map of ReLU: half the square of phi is a mixture, because relu(x) relu(y) has the mean J(c)/2, relu(x) relu(-y)
the mean J(-c)/2, and J(-c) = J(c) - c. So one number w in [-1, 1] stands for the activation: 0 is ReLU, 1 linear, -1
the absolute value, and the slopes s = b/a and 1/s are the same network. Everything of `bnlib.outlier_class` carries
over with J_w for J. NumPy float64; angles are radians; s is the leaky slope b/a.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from bnlib.checks import Result, Values, checked_batch_size, checked_values, plain
from bnlib.fixed_points import NotConvergedError
from bnlib.kernels import one_minus_relu_cosine, relu_cosine, relu_cosine_derivative

_GRID = 2000  # points of a scan over the states, even in log u
_LARGEST = 1e6  # batch size up to which a saddle-node is looked for


@dataclass(frozen=True)
class LeakyState:
    """A fixed point with one distinguished sample at infinite width.

    Attributes:
        u: half the squared distance inside the cluster over the squared distance to the odd sample.
        norm_ratio: norm of the odd sample over that of a cluster sample.
        outlier_angle: angle between the odd sample and a cluster sample, radians.
        norm_ratio_to_mean: norm of the odd sample over that of the mean of the cluster.
        angle_to_mean: angle between the odd sample and that mean, radians.
        cluster_angle: angle between two cluster samples, radians.
        multiplier: derivative of the one-dimensional map at u; stable in the class where it is below 1.
    """

    u: float
    norm_ratio: float
    outlier_angle: float
    norm_ratio_to_mean: float
    angle_to_mean: float
    cluster_angle: float
    multiplier: float


@dataclass(frozen=True)
class CriticalSize:
    """The saddle-node at which an outlier state is born, as the real batch size grows.

    Attributes:
        n: batch size of the saddle-node, a real number.
        u: the state born there.
        residual: |u' - u| / u at the saddle-node.
        slope_residual: |du'/du - 1| there, by a central difference.
    """

    n: float
    u: float
    residual: float
    slope_residual: float


def mixing(slope: Values) -> Result:
    """The number w that stands for the activation: w = 2 s / (1 + s^2).

    Args:
        slope: leaky slope s = b/a, any shape, finite.

    Returns:
        w in [-1, 1], same shape.

    Raises:
        ValueError: a slope that is not finite.

    Example:
        >>> mixing(0.0), mixing(1.0), mixing(-1.0), mixing(0.5) == mixing(2.0)
        (0.0, 1.0, -1.0, True)
    """
    s = checked_values("slope", slope, -1e100, 1e100, "a finite leaky slope")
    return plain(
        np.asarray(
            2.0
            / np.where(np.abs(s) > 1, s + 1 / np.where(s == 0, 1.0, s), 1.0)
            * np.where(np.abs(s) > 1, 1.0, s / (1.0 + s * s))
        )
    )


def leaky_cosine(c: Values, slope: float | int) -> Result:
    """Cosine after one infinitely wide layer of the activation: J_w(c) = (1 - w) J(c) + w c.

    Args:
        c: cosines, any shape, in [-1, 1].
        slope: leaky slope s = b/a.

    Returns:
        Cosines, same shape.

    Raises:
        ValueError: a cosine outside [-1, 1] or a slope that is not finite.

    Example:
        >>> round(leaky_cosine(0.5, -1), 6), leaky_cosine(0.5, 1)  # 2 (sqrt(1-c^2) + c arcsin c) / pi, and c
        (0.717996, 0.5)
    """
    w = mixing(slope)
    return plain((1.0 - w) * np.asarray(relu_cosine(c)) + w * np.asarray(c, dtype=float))


def symmetric_multiplier(n: float | int, slope: float | int = 0.0) -> float:
    """Multiplier of a spread of the norms at the symmetric state; below 1 the state is stable against it.

    (n-2)/(n-1) + n J_w' / ((n-1)^2 (1 - J_w)), both at -1/(n-1); n (1 - multiplier) tends to
    1 - J_w'(0)/(1 - J_w(0)) = (1 - w)(pi - 2)/(2 (pi - 1 + w)).

    Args:
        n: batch size, at least 3; any real number.
        slope: leaky slope s = b/a; 1 is linear and has the multiplier 1.

    Returns:
        The multiplier of one layer, the scale divided out.

    Raises:
        ValueError: n < 3, or a slope that is not finite.

    Example:
        >>> round(symmetric_multiplier(8), 4), round(symmetric_multiplier(64), 4), round(symmetric_multiplier(8, 1), 12)
        (0.9561, 0.9957, 1.0)
    """
    n = checked_batch_size(n, 3)
    w = mixing(slope)
    c = -1.0 / (n - 1.0)
    derivative = (1.0 - w) * relu_cosine_derivative(c) + w
    return (n - 2.0) / (n - 1.0) + n * derivative / ((n - 1.0) ** 2 * (1.0 - leaky_cosine(c, slope)))


def transferred_multiplier(multiplier: float | int, growth: float | int, slope: float | int) -> float:
    """Multiplier of a fixed point in a leaky network, from the same point's multiplier in the ReLU network.

    G V_w(C) G = (1 - w) G V(C) G + w C for a centered C: the identity is added to the map of ReLU, so both have the
    same fixed points up to scale, in all n(n+1)/2 dimensions. Where ReLU multiplies the scale by mu and a direction
    by lambda mu, the leaky network multiplies them by (1 - w) mu + w and (1 - w) lambda mu + w.

    Args:
        multiplier: lambda, of the ReLU network, the scale divided out.
        growth: mu, the factor of the squared scale in the ReLU network, positive.
        slope: leaky slope s = b/a.

    Returns:
        ((1 - w) lambda mu + w) / ((1 - w) mu + w): below 1 exactly where lambda is, if the divisor is positive.

    Raises:
        ValueError: growth is not positive, a slope that is not finite, or a divisor that is not positive.

    Example:
        >>> growth = (1 - relu_cosine(-1 / 7)) * 7 / 8
        >>> abs(transferred_multiplier(symmetric_multiplier(8), growth, 0.3) - symmetric_multiplier(8, 0.3)) < 1e-12
        True
    """
    if not 0 < growth < math.inf:
        raise ValueError(f"growth is {growth}; valid is a positive factor of the squared scale.")
    w = float(mixing(slope))
    divisor = (1.0 - w) * growth + w
    if not divisor > 0:
        raise ValueError(f"growth is {growth}; valid for slope {slope} is a growth above {-w / (1.0 - w):.6g}.")
    return ((1.0 - w) * multiplier * growth + w) / divisor


def flip_slope(multiplier: float | int, growth: float | int) -> float | None:
    """Negative leaky slope at which a direction of a fixed point loses stability by changing sign every layer.

    The carried multiplier falls to -1 where (1 - w) mu (1 + lambda) = -2 w: at w = -q/(2 - q), q = mu (1 + lambda).
    Slopes between this one and its inverse, the absolute value -1 among them, are unstable in that direction.

    Args:
        multiplier: lambda, of the ReLU network, the scale divided out; between -1 and 1.
        growth: mu, the factor of the squared scale in the ReLU network, above 1/2.

    Returns:
        The slope, in (-1, 0), or None where the direction is stable down to slope -1 (q at least 1).

    Raises:
        ValueError: a multiplier outside (-1, 1), or a growth that is not above 1/2.

    Example:
        >>> found = flip_slope(0.084, 0.8821)
        >>> round(found, 2), round(transferred_multiplier(0.084, 0.8821, found), 9), flip_slope(0.9, 0.9)
        (-0.65, -1.0, None)
    """
    if not -1 < multiplier < 1:
        raise ValueError(f"multiplier is {multiplier}; valid is a number between -1 and 1.")
    if not 0.5 < growth < math.inf:
        raise ValueError(f"growth is {growth}; valid is a factor of the squared scale above 1/2.")
    q = growth * (1.0 + multiplier)
    if q >= 1.0:
        return None
    w = -q / (2.0 - q)
    return (1.0 - math.sqrt(1.0 - w * w)) / w


def _step(u: Values, n: float, w: float) -> tuple:
    """State after a layer, and before it Q, the cosine to the odd sample and the angle of a pair, all recentered."""
    m = n - 1.0
    p = m * m / (n * n)
    q = u * (m - 1.0) / m + 1.0 / (n * n)
    pair_angle = 2.0 * np.arctan2(np.sqrt(u), np.sqrt(u * (m - 2.0) / m + 2.0 / (n * n)))
    odd = -1.0 / np.sqrt(1.0 + n * n * u * (m - 1.0) / m)
    deficit = (1.0 - w) * one_minus_relu_cosine(pair_angle) + w * u / q  # 1 - J_w(c), without cancellation
    j_odd = (1.0 - w) * relu_cosine(odd) + w * odd
    scale = p - 2.0 * np.sqrt(p * q) * j_odd + q * (1.0 - deficit * (m - 1.0) / m)
    return q * deficit / scale, q, j_odd, deficit


def next_state(u: Values, n: float | int, slope: float | int = 0.0) -> Result:
    """One infinitely wide layer of recentering and the activation, as a map of u (see `bnlib.outlier_class`).

    Args:
        u: state of the cluster, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.
        slope: leaky slope s = b/a.

    Returns:
        u after the layer, same shape. Near 0 it is u n^2 / (m^2 + 1 + 2 w m), m = n - 1.

    Raises:
        ValueError: u is outside [0, 1e100], n < 3, or a slope that is not finite.

    Example:
        >>> round(next_state(7 / 8, 8, 0.3) / (7 / 8), 12)  # the symmetric batch is a fixed point for every slope
        1.0
    """
    n = checked_batch_size(n, 3)
    u = checked_values("u", u, 0.0, 1e100, "a ratio of squared distances, between 0 and 1e100")
    return plain(np.asarray(_step(u, n, mixing(slope))[0]))


def cluster_angle(u: Values, n: float | int, slope: float | int = 0.0) -> Result:
    """Angle between two cluster samples after one infinitely wide layer from state u.

    Args:
        u: state of the cluster before the layer, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.
        slope: leaky slope s = b/a.

    Returns:
        Radians, same shape.

    Raises:
        ValueError: u is outside [0, 1e100], n < 3, or a slope that is not finite.

    Example:
        >>> round(math.degrees(cluster_angle(7 / 8, 8)), 2)  # arccos J(-1/7)
        75.51
    """
    n = checked_batch_size(n, 3)
    u = checked_values("u", u, 0.0, 1e100, "a ratio of squared distances, between 0 and 1e100")
    return plain(2.0 * np.arcsin(np.sqrt(_step(u, n, mixing(slope))[3] / 2.0)))


def _gap(log_u: Values, n: float, w: float) -> Values:
    """log(u'/u) over the distance from the symmetric state and over 1 - w: positive where u moves towards it.

    The two divisions take out the zero at the symmetric state, where the limit is (1 - multiplier)/(1 - w), and the
    trivial one at w = 1.
    """
    u = np.exp(np.asarray(log_u, dtype=float))
    return np.log(_step(u, n, w)[0] / u) / ((math.log((n - 1.0) / n) - log_u) * (1.0 - w))


def _scan(n: float) -> np.ndarray:
    return np.linspace(math.log(1e-3 / n**4), math.log((n - 1.0) / n) - 1e-4, _GRID)


def _least_gap(n: float, w: float) -> tuple[float, float]:
    """The least gap below the symmetric state, and log u there."""
    grid = _scan(n)
    values = _gap(grid, n, w)
    # The end next to the symmetric state is not an interior minimum: it belongs to that state's own stability.
    inside = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])) + 1
    if len(inside) == 0:
        return float(values[-1]), float(grid[-1])
    best = int(inside[np.argmin(values[inside])])
    found = minimize_scalar(
        lambda x: float(_gap(x, n, w)),
        bounds=(grid[best - 1], grid[best + 1]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(found.fun), float(found.x)


def outlier_state(n: float | int, slope: float | int = 0.0) -> LeakyState | None:
    """The state in which a slightly opened cluster settles beside one odd sample.

    Args:
        n: batch size, at least 3; any real number.
        slope: leaky slope s = b/a, not 1.

    Returns:
        The state, or None where an opened cluster runs to the symmetric state.

    Raises:
        ValueError: n < 3, a slope that is not finite, or slope 1, where every state is fixed.

    Example:
        >>> round(outlier_state(8).norm_ratio, 3), outlier_state(6)
        (5.105, None)
        >>> round(math.degrees(outlier_state(32, 0.1).outlier_angle), 2)  # arccos(-w) for large batches
        101.15
    """
    n, w = _checked_finite(n), _checked_mixing(slope)
    grid = _scan(n)
    values = _gap(grid, n, w)
    if (values > 0).all():
        return None
    first = int(np.argmax(values <= 0))
    log_u = brentq(lambda x: float(_gap(x, n, w)), grid[first - 1], grid[first], xtol=1e-14)
    return _state(math.exp(log_u), n, w)


def separatrix(n: float | int, slope: float | int = 0.0) -> LeakyState | None:
    """The unstable state between the outlier state and the symmetric one.

    Args:
        n: batch size, at least 3; any real number.
        slope: leaky slope s = b/a, not 1.

    Returns:
        The state, or None where there is no outlier state.

    Raises:
        ValueError: as `outlier_state`.

    Example:
        >>> found = separatrix(64)
        >>> round(found.norm_ratio, 4), found.multiplier > 1
        (1.0191, True)
    """
    n, w = _checked_finite(n), _checked_mixing(slope)
    grid = _scan(n)
    values = _gap(grid, n, w)
    if (values > 0).all():
        return None
    last = len(values) - 1 - int(np.argmax(values[::-1] <= 0))
    if last == len(values) - 1:
        return None
    log_u = brentq(lambda x: float(_gap(x, n, w)), grid[last], grid[last + 1], xtol=1e-14)
    return _state(math.exp(log_u), n, w)


def _checked_finite(n: float | int) -> float:
    n = checked_batch_size(n, 3)
    if n == math.inf:
        raise ValueError("n must be a finite batch size of at least 3, got inf.")
    return n


def _checked_mixing(slope: float | int) -> float:
    w = float(mixing(slope))
    if w == 1.0:
        raise ValueError(f"slope is {slope}; valid is any leaky slope but 1, where the network is linear.")
    return w


def _state(u: float, n: float, w: float) -> LeakyState:
    _, q, j_odd, deficit = (float(part) for part in _step(np.asarray(u), n, w))
    mean_square = 1.0 - deficit * (n - 2.0) / (n - 1.0)  # of the cluster's mean, in units of a cluster sample
    h = 1e-5
    up, down = (float(_step(np.asarray(u * math.exp(x)), n, w)[0]) for x in (h, -h))
    return LeakyState(
        u=u,
        norm_ratio=(n - 1.0) / n / math.sqrt(q),
        outlier_angle=math.acos(j_odd),
        norm_ratio_to_mean=(n - 1.0) / n / math.sqrt(q * mean_square),
        angle_to_mean=math.acos(min(1.0, max(-1.0, j_odd / math.sqrt(mean_square)))),
        cluster_angle=2.0 * math.asin(math.sqrt(deficit / 2.0)),
        multiplier=math.log(up / down) / (2.0 * h),
    )


def critical_batch_size(slope: float | int = 0.0) -> CriticalSize:
    """Batch size, as a real number, from which on an outlier state exists: the saddle-node of the map of u.

    Solved as: the least value over u of log(u'/u), the zero at the symmetric state divided out, is zero. At the
    solution the map touches the diagonal. A state of touching is an error of second order in u only, so n comes out far
    more accurately than u.

    Args:
        slope: leaky slope s = b/a, not 1.

    Returns:
        The saddle-node.

    Raises:
        ValueError: a slope that is not finite, or 1.
        NotConvergedError: no saddle-node between 3 and 1e6 samples.

    Example:
        >>> round(critical_batch_size().n, 6)
        6.107075
    """
    w = _checked_mixing(slope)
    sizes = np.concatenate([np.arange(3.0, 40.0, 0.5), np.geomspace(40.0, _LARGEST, 60)])
    before = None
    for n in sizes:
        if _least_gap(n, w)[0] < 0:
            break
        before = n
    else:
        raise NotConvergedError(f"No saddle-node for slope {slope} between 3 and {_LARGEST:g} samples.")
    if before is None:
        raise NotConvergedError(f"The outlier state for slope {slope} exists at 3 samples already.")
    n = brentq(lambda x: _least_gap(x, w)[0], before, n, xtol=1e-12)
    u = math.exp(_least_gap(n, w)[1])
    found = _state(u, n, w)
    return CriticalSize(
        n=float(n),
        u=u,
        residual=abs(float(_step(np.asarray(u), n, w)[0]) / u - 1.0),
        slope_residual=abs(found.multiplier - 1.0),
    )
