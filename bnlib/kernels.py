"""Gaussian expectations of ReLU: arc-cosine kernel, angle form, fixed points of normalized layers.

Everything here is about infinite width, where a layer is a deterministic map of the angles of the batch, and the
pre-activations h_1, ..., h_n of one neuron over a batch are jointly Gaussian. For unit variances and correlation c,
2 E[ReLU(h_i) ReLU(h_j)] = J(c) = (sqrt(1 - c^2) + (pi - arccos c) c) / pi. Cosines lose the digits of 1 - cos near
alignment, so the functions work in angles: with c = cos(theta) and s(x) = sin x - x cos x,

    J = s(pi - theta) / pi          and          1 - J = 2 sin^2(theta/2) - s(theta) / pi.

Angles are radians. NumPy float64 throughout; this module does not import torch.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from bnlib.checks import SLACK, Result, Values, checked_batch_size, checked_depth, checked_values, plain
from bnlib.fixed_points import FixedPoint, solve_fixed_point

# Trapezoidal rule in x = log t: the integrands are analytic in |Im x| < pi/2, so its error is about exp(-pi^2 / step),
# far below rounding; the ends are cut where the weight has fallen below exp(-45).
_STEP = 0.125
_CUT = 45.0
_TINY = 1e-150  # the square of a smaller angle underflows


def _checked_angle(theta: Values) -> np.ndarray:
    return checked_values("theta", theta, 0.0, math.pi, "an angle between 0 and pi radians")


def _checked_cosine(c: Values) -> np.ndarray:
    return checked_values("c", c, -1.0, 1.0, "a cosine between -1 and 1")


def _sine_minus_chord(x: Values) -> Result:
    """s(x) = sin x - x cos x for 0 <= x <= pi, to full relative precision (s is x^3/3 near 0)."""
    square = np.minimum(x, 1.0) ** 2
    series = np.zeros_like(square)
    for k in range(10, 0, -1):  # coefficient of x^(2k+1) is (-1)^(k+1) 2k/(2k+1)!
        series = series * square + (-1.0) ** (k + 1) * 2 * k / math.factorial(2 * k + 1)
    return np.where(x < 1.0, series * square * x, np.sin(x) - x * np.cos(x))


def _one_minus_j(theta: Values) -> Result:
    return 2.0 * np.sin(theta / 2.0) ** 2 - _sine_minus_chord(theta) / math.pi


def _angle_from_one_minus_cosine(y: Values) -> Result:
    """Angle from 1 - cos; used where cos >= 0, where arcsin is well conditioned."""
    return 2.0 * np.arcsin(np.sqrt(y / 2.0))


def relu_cosine(c: Values) -> Result:
    """Cosine between two samples after one infinitely wide ReLU layer.

    J(c) = (sqrt(1 - c^2) + (pi - arccos c) c) / pi, the arc-cosine kernel of order 1 (Cho & Saul 2009, eq. 6;
    also arXiv 2412.02843, eq. 111). Full relative precision at both ends: J(-1 + y) is about (2y)^(3/2) / (3
    pi).

    Args:
        c: cosines between the samples before the layer, any shape, in [-1, 1].

    Returns:
        J(c), same shape, in [0, 1].

    Raises:
        ValueError: a cosine is outside [-1, 1] or NaN.

    Example:
        >>> round(relu_cosine(0.0) * math.pi, 12), relu_cosine(1.0)
        (1.0, 1.0)
    """
    c = _checked_cosine(c)
    supplement = 2.0 * np.arctan2(np.sqrt(1.0 + c), np.sqrt(1.0 - c))  # pi - arccos c, accurate at both ends
    return plain(_sine_minus_chord(supplement) / math.pi)


def relu_cosine_derivative(c: Values) -> Result:
    """Derivative of `relu_cosine`.

    J'(c) = (pi - arccos c) / pi: the probability, times 2, that both pre-activations are positive.

    Args:
        c: cosines, any shape, in [-1, 1].

    Returns:
        J'(c), same shape, in [0, 1].

    Raises:
        ValueError: a cosine is outside [-1, 1] or NaN.

    Example:
        >>> relu_cosine_derivative(np.array([-1.0, 0.0, 1.0]))
        array([0. , 0.5, 1. ])
    """
    c = _checked_cosine(c)
    return plain(2.0 * np.arctan2(np.sqrt(1.0 + c), np.sqrt(1.0 - c)) / math.pi)


def one_minus_relu_cosine(theta: Values) -> Result:
    """1 - J(cos theta), without cancellation at small angles.

    1 - J = 2 sin^2(theta/2) - (sin theta - theta cos theta)/pi = theta^2/2 - theta^3/(3 pi) - theta^4/24 +
    ...

    Args:
        theta: angles in radians, any shape, in [0, pi].

    Returns:
        1 - J(cos theta), same shape, in [0, 1].

    Raises:
        ValueError: an angle is outside [0, pi] or NaN.

    Example:
        >>> one_minus_relu_cosine(1e-9) / (1e-18 / 2)  # the textbook form in cosines gives exactly 0 here
        0.9999999997877933
    """
    return plain(_one_minus_j(_checked_angle(theta)))


def relu_angle(theta: Values) -> Result:
    """Angle between two samples after one infinitely wide ReLU layer, without cancellation.

    arccos J(cos theta), computed as 2 arcsin(sqrt((1 - J)/2)): full relative precision from theta = 0, where
    it is theta - theta^2/(3 pi) + ..., to theta = pi, where it is pi/2.

    Args:
        theta: angles before the layer in radians, any shape, in [0, pi].

    Returns:
        Angles after the layer in radians, same shape, in [0, pi/2].

    Raises:
        ValueError: an angle is outside [0, pi] or NaN.

    Example:
        >>> math.cos(relu_angle(math.pi / 2)) * math.pi  # orthogonal samples: cosine 1/pi
        1.0
        >>> 1 - relu_angle(1e-6) / 1e-6 < 1.07e-7  # a small angle shrinks by the share theta/(3 pi) only
        True
    """
    return plain(_angle_from_one_minus_cosine(_one_minus_j(_checked_angle(theta))))


def relu_angle_path(depth: int | float, theta0: Values) -> Float[np.ndarray, "layers *shape"]:
    """Angles at depths 0, 1, ..., depth of an infinitely wide ReLU network without any normalization.

    Exact iteration of `relu_angle`. In the end 1/theta grows by 1/(3 pi) a layer: theta decays like 3 pi / depth.

    Args:
        depth: number of layers, 0 or more.
        theta0: input angles in radians, any shape, in [0, pi].

    Returns:
        Angles in radians, shape (depth + 1, *shape of theta0).

    Raises:
        ValueError: depth is not a whole number >= 0, or an angle is outside [0, pi].

    Example:
        >>> np.degrees(relu_angle_path(3, math.pi / 2)).round(2)
        array([90.  , 71.44, 60.41, 52.78])
    """
    return _path(relu_angle, checked_depth(depth), _checked_angle(theta0))


def relu_angle_after(depth: int | float, theta0: Values) -> Result:
    """Angle after `depth` infinitely wide ReLU layers without normalization: end of `relu_angle_path`.

    Args:
        depth: number of layers, 0 or more.
        theta0: input angles in radians, any shape, in [0, pi].

    Returns:
        Angles in radians, same shape.

    Raises:
        ValueError: as `relu_angle_path`.

    Example:
        >>> round(relu_angle_after(10000, math.pi / 2) * 10000 / (3 * math.pi), 2)  # 3 pi / depth in the end
        1.0
    """
    return plain(relu_angle_path(depth, theta0)[-1])


def _path(one_layer: Callable[[np.ndarray], Result], depth: int, theta0: np.ndarray) -> np.ndarray:
    angles = np.empty((depth + 1, *np.shape(theta0)))
    angles[0] = theta0
    for layer in range(depth):
        angles[layer + 1] = one_layer(angles[layer])
    return angles


def relu_kernel(k: Float[np.ndarray, "*draws n n"], weight_variance: float = 2.0) -> Float[np.ndarray, "*draws n n"]:
    """Gram matrix after one infinitely wide ReLU layer, from the Gram matrix before it.

    V(K)_ij = (weight_variance / 2) sqrt(K_ii K_jj) J(K_ij / sqrt(K_ii K_jj)): the limit, as the width d
    grows, of the Gram matrix of ReLU(X W) with W of entries N(0, weight_variance / d) and X X^T = K (Cho &
    Saul 2009). A sample whose K_ii is 0 stays 0.

    Args:
        k: Gram matrices (squared length), shape (*draws, n, n), positive semi-definite.
        weight_variance: variance of the weights times the width; 2 is He initialization.

    Returns:
        Gram matrices, same shape; for He weights the diagonal is that of k, exactly.

    Raises:
        ValueError: k is not finite, symmetric, with |K_ij| <= sqrt(K_ii K_jj); or weight_variance is not positive.

    Example:
        >>> relu_kernel(np.eye(2)) * math.pi
        array([[3.14159265, 1.        ],
               [1.        , 3.14159265]])
    """
    return _relu_kernel(_checked_gram(k), weight_variance)


def _relu_kernel(k: np.ndarray, weight_variance: float) -> np.ndarray:
    if not 0 < weight_variance < math.inf:
        raise ValueError(f"weight_variance must be positive and finite, got {weight_variance}.")
    diagonal = np.maximum(np.diagonal(k, axis1=-2, axis2=-1), 0.0)
    scale = np.sqrt(diagonal[..., :, None]) * np.sqrt(diagonal[..., None, :])
    cosine = np.divide(k, scale, out=np.zeros_like(k), where=scale > 0)
    mapped = scale * np.asarray(relu_cosine(np.clip(cosine, -1.0, 1.0)))
    index = np.arange(k.shape[-1])
    mapped[..., index, index] = diagonal  # J(1) = 1: the root and its square need not cancel exactly
    return (weight_variance / 2.0) * mapped


def recentered_relu_kernel(
    k: Float[np.ndarray, "*draws n n"], weight_variance: float = 2.0
) -> Float[np.ndarray, "*draws n n"]:
    """Gram matrix after one infinitely wide layer with recentering and ReLU: V(G K G), G = I - 11^T/n.

    Exact up to rounding relative to the largest entry of k: distances far below that are lost in the input already.

    Args:
        k: Gram matrices (squared length), shape (*draws, n, n), positive semi-definite, n >= 2.
        weight_variance: variance of the weights times the width; 2 is He initialization.

    Returns:
        Gram matrices, same shape.

    Raises:
        ValueError: as `relu_kernel`, or n < 2.

    Example:
        >>> k = recentered_relu_kernel(np.eye(8))  # a symmetric batch: every cosine becomes J(-1/7)
        >>> bool(np.isclose(k[0, 1] / k[0, 0], relu_cosine(-1 / 7)))
        True
    """
    k = _checked_gram(k)
    checked_batch_size(k.shape[-1], 2)
    centered = k - k.mean(axis=-1, keepdims=True)
    centered = centered - centered.mean(axis=-2, keepdims=True)
    return _relu_kernel((centered + np.swapaxes(centered, -1, -2)) / 2.0, weight_variance)


def _checked_gram(k: np.ndarray) -> np.ndarray:
    k = np.asarray(k, dtype=np.float64)
    if k.ndim < 2 or k.shape[-1] != k.shape[-2] or k.shape[-1] == 0:
        raise ValueError(f"k must be a stack of square Gram matrices, shape (..., n, n), got shape {k.shape}.")
    if not np.isfinite(k).all():
        raise ValueError("k must be finite, got NaN or infinity.")
    diagonal = np.diagonal(k, axis1=-2, axis2=-1)
    tolerance = SLACK * np.abs(diagonal).max(axis=-1)[..., None, None]
    if not (np.abs(k - np.swapaxes(k, -1, -2)) <= tolerance).all():
        raise ValueError("k must be symmetric, got a matrix that differs from its transpose.")
    bound = np.sqrt(np.maximum(diagonal[..., :, None] * diagonal[..., None, :], 0.0))
    if (diagonal < 0).any() or not (np.abs(k) <= bound + tolerance).all():
        raise ValueError("k must be a Gram matrix, got an entry larger than its two diagonal entries allow.")
    return k


def batch_norm_angle(n: float | int) -> float:
    """Angle between every two samples of a batch deep in an infinitely wide batch-norm ReLU network.

    arccos J(-1/(n - 1)), the fixed point with one cosine for all pairs (BSB1 of arXiv 1902.08129, for ReLU): after
    recentering an equicorrelated batch has the cosine -1/(n - 1), whatever it had before.

    Args:
        n: batch size, at least 2; math.inf gives arccos(1/pi).

    Returns:
        The angle in radians.

    Raises:
        ValueError: n < 2 or NaN.

    Example:
        >>> round(math.degrees(batch_norm_angle(8)), 2), round(math.degrees(batch_norm_angle(math.inf)), 2)
        (75.51, 71.44)
    """
    n = checked_batch_size(n, 2)
    return math.acos(relu_cosine(-1.0 / (n - 1.0)))  # J <= 1/pi here: arccos is well conditioned


def _tilted_average(theta: np.ndarray, n: float, recentered_scale: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of the Laplace integral for an equicorrelated batch: log weights, variances, 1 - J of a pair.

    With 1/q = integral of exp(-s q) ds, t = 2 s and q = |h|^2 (or |Gh|^2), the tilted Gaussian is again equicorrelated,
    with eigenvalue `across` on the vector of ones and `within` on its complement; dt = t dx for x = log t.
    """
    theta = theta[..., None]
    y = 2.0 * np.sin(theta / 2.0) ** 2  # 1 - c, the eigenvalue on the complement
    ones = np.maximum(n - (n - 1.0) * y, 0.0)  # 1 + (n-1) c, the eigenvalue on the vector of ones
    decay = (n - 3.0) / 2.0 if recentered_scale else n / 2.0
    spread = 0.0 if recentered_scale else math.log(max(1.0, float(np.max(ones / y, initial=1.0))))
    lower = -_CUT - math.log(n) - spread
    upper = _CUT / decay + 3.0
    x = lower + _STEP * np.arange(math.ceil((upper - lower) / _STEP) + 1)
    t_y = np.exp(x)  # t times y, so that the range does not depend on y
    within = y / (1.0 + t_y)
    log_weight = -0.5 * (n - 1.0) * np.log1p(t_y) + x
    if recentered_scale:
        across = ones * np.ones_like(t_y)
    else:
        across = ones / (1.0 + t_y * (ones / y))
        log_weight = log_weight - 0.5 * np.log1p(t_y * (ones / y))
    variance = (across + (n - 1.0) * within) / n
    total = np.maximum((2.0 * across + (n - 2.0) * within) / n, 0.0)  # variance + covariance
    pair_angle = 2.0 * np.arctan2(np.sqrt(within), np.sqrt(total))  # variance - covariance is `within`
    return log_weight, variance, _one_minus_j(pair_angle)


def _equicorrelated_layer(theta: Values, n: float, recentered_scale: bool) -> Result:
    theta = _checked_angle(theta)
    widest = math.acos(-1.0 / (n - 1.0))
    if (theta > widest + SLACK).any():
        raise ValueError(
            f"theta must be at most arccos(-1/(n-1)) = {widest:.6g} rad, the largest angle that all pairs of "
            f"{n:g} samples can have, got {float(np.max(theta)):.6g}."
        )
    positive = np.where(theta > _TINY, np.minimum(theta, widest), 1.0)
    log_weight, variance, one_minus_j = _tilted_average(positive, n, recentered_scale)
    weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True)) * variance
    after = _angle_from_one_minus_cosine((weight * one_minus_j).sum(axis=-1) / weight.sum(axis=-1))
    return plain(np.where(theta > _TINY, after, 0.0))


def rms_relu_angle(theta: Values, n: float | int) -> Result:
    """Angle after one infinitely wide layer of root-mean-square rescaling, no recentering, and ReLU.

    For a batch in which every pair has the angle theta. The Gram matrix after the layer is n E[ReLU(h_i) ReLU(h_j) /
    |h|^2]: 1/2 on the diagonal, by symmetry; off it, with 1/|h|^2 = integral of exp(-s |h|^2) ds, a one-dimensional
    integral of J. For n = inf, |h|^2/n given the common part z of h is c z^2 + 1 - c: an integral over z.

    Args:
        theta: angle of every pair in radians, any shape, in [0, arccos(-1/(n-1))]; below 1e-150 it counts as 0.
        n: batch size, at least 2 (any real number); math.inf for the limit.

    Returns:
        The angle of every pair after the layer in radians, same shape.

    Raises:
        ValueError: n < 2, or no batch of n samples has the angle theta between all pairs.

    Example:
        >>> round(math.degrees(rms_relu_angle(math.radians(60.107), 8)), 3)  # its fixed point
        60.107
    """
    n = checked_batch_size(n, 2)
    if math.isinf(n):
        return _rms_layer_of_infinite_batch(theta)
    return _equicorrelated_layer(theta, n, recentered_scale=False)


def _rms_layer_of_infinite_batch(theta: Values) -> Result:
    """One layer for n = inf: 1 - c' = 2 E_z[v(z) / (c z^2 + 1 - c)], v the conditional variance of ReLU(h).

    The diagonal 1/2 is E_z[E(ReLU(h)^2 | z) / (c z^2 + 1 - c)], the off-diagonal has the squared conditional
    mean.
    """
    theta = _checked_angle(theta)
    if (theta > math.pi / 2 + SLACK).any():
        raise ValueError(
            "theta must be at most pi/2, the largest angle that all pairs of infinitely many samples can have, "
            f"got {float(np.max(theta)):.6g}."
        )
    positive = np.where(theta > _TINY, np.minimum(theta, math.pi / 2), 1.0)[..., None]
    sine, cosine = np.sqrt(2.0) * np.sin(positive / 2.0), np.sqrt(np.maximum(np.cos(positive), 0.0))
    # h = sine (r + xi) with r = z cosine/sine: for small angles v varies over |z| of order sine only, so the
    # nodes are spaced evenly in arcsinh r, which resolves both scales
    reach = np.arcsinh(10.0 * cosine / sine) + 1e-300
    x = np.linspace(-1.0, 1.0, 4001)
    r_nodes = np.sinh(x * reach)
    z = r_nodes * sine / np.maximum(cosine, 1e-300)
    dz = reach * np.cosh(x * reach) * sine / np.maximum(cosine, 1e-300)
    density = np.exp(-0.5 * r_nodes**2) / math.sqrt(2 * math.pi)
    upper = ndtr(r_nodes)
    second = (r_nodes**2 + 1.0) * upper + r_nodes * density
    first = r_nodes * upper + density
    # variance of ReLU(r + xi); for r far above 0 it is 1, and the difference of second and first^2 would cancel
    variance = np.where(r_nodes > 8.0, 1.0, second - first**2)
    weight = np.exp(-0.5 * z**2) * dz
    one_minus = (weight * 2.0 * variance / (r_nodes**2 + 1.0)).sum(axis=-1) / weight.sum(axis=-1)
    after = np.where(cosine[..., 0] > 0, one_minus, 1.0 - 1.0 / math.pi)
    return plain(np.where(theta > _TINY, _angle_from_one_minus_cosine(after), 0.0))


def std_relu_angle(theta: Values, n: float | int) -> Result:
    """Angle after one infinitely wide layer of standard-deviation rescaling, no recentering, and ReLU.

    For a batch in which every pair has the angle theta. The Gram matrix after the layer is n E[ReLU(h_i) ReLU(h_j) /
    |Gh|^2], a one-dimensional integral of J by 1/|Gh|^2 = integral of exp(-s |Gh|^2) ds; its diagonal is
    (1 + (1 + (n-1) c) / ((n-3)(1 - c))) / 2. It is finite for n >= 4 only: at n = 2 and 3 the expectation of 1/|Gh|^2
    is infinite, and rare neurons with almost equal pre-activations rule. For small angles 1 - cos shrinks by the factor
    (n-3)/(n-1) a layer; for n = inf the standard deviation is a constant, and the map is `relu_angle`.

    Args:
        theta: angle of every pair in radians, any shape, in [0, arccos(-1/(n-1))]; below 1e-150 it counts as 0.
        n: batch size, at least 4 (any real number); math.inf for the limit.

    Returns:
        The angle of every pair after the layer in radians, same shape.

    Raises:
        ValueError: n < 4, or no batch of n samples has the angle theta between all pairs.

    Example:
        >>> round((std_relu_angle(1e-5, 8) / 1e-5) ** 2 * 7, 3)  # (n-3)/(n-1) = 5/7
        5.0
    """
    n = checked_batch_size(n, 4, " (below, the mean of 1/variance is infinite)")
    if math.isinf(n):
        return relu_angle(theta)
    return _equicorrelated_layer(theta, n, recentered_scale=True)


def std_relu_angle_path(depth: int | float, theta0: Values, n: float | int) -> Float[np.ndarray, "layers *shape"]:
    """Angles at depths 0, 1, ..., depth of a wide ReLU network that rescales by the standard deviation only.

    Args:
        depth: number of layers, 0 or more.
        theta0: input angle of every pair in radians, any shape, in [0, arccos(-1/(n-1))].
        n: batch size, at least 4; math.inf for the limit.

    Returns:
        Angles in radians, shape (depth + 1, *shape of theta0).

    Raises:
        ValueError: as `std_relu_angle`, or depth is not a whole number >= 0.

    Example:
        >>> np.degrees(std_relu_angle_path(3, math.pi / 2, 8)).round(1)
        array([90. , 69.9, 55.2, 44. ])
    """
    return _path(lambda theta: std_relu_angle(theta, n), checked_depth(depth), _checked_angle(theta0))


def rms_fixed_point(n: float | int) -> FixedPoint:
    """Angle at which a batch settles under infinitely wide layers of root-mean-square rescaling and ReLU.

    The only root of `rms_relu_angle(theta, n) = theta` other than 0 (a theorem in the chapter on angles), by Brent's
    method. The angle 0 is a fixed point too, but unstable: one layer takes a small angle to the order of its root.

    Args:
        n: batch size, at least 2 (any real number); math.inf for the limit of large batches.

    Returns:
        The angle in radians, with the residual of the map and the number of iterations.

    Raises:
        ValueError: n < 2 or NaN.
        NotConvergedError: the residual is above 1e-12 rad.

    Example:
        >>> found = rms_fixed_point(8)
        >>> round(math.degrees(found.value), 3), found.residual < 1e-12
        (60.107, True)
    """
    n = checked_batch_size(n, 2)
    return solve_fixed_point(lambda theta: float(rms_relu_angle(theta, n)), 0.05, math.pi / 2)


def rms_fixed_point_angle(n: float | int) -> float:
    """The angle of `rms_fixed_point` alone.

    Args:
        n: batch size, at least 2; math.inf for the limit of large batches.

    Returns:
        The angle in radians.

    Raises:
        ValueError: n < 2 or NaN.
        NotConvergedError: the residual is above 1e-12 rad.

    Example:
        >>> round(math.degrees(rms_fixed_point_angle(math.inf)), 4)
        58.7525
    """
    return rms_fixed_point(n).value
