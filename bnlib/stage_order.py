"""The normalization after the activation: what changes when a layer is NL, RC, RS in place of RC, RS, NL.

With the norm before the activation a representation is nonnegative; with the norm after it, it is recentered or
rescaled. So a layer is read at two points: behind ReLU, and behind the last stage. Everything here is about infinite
width and a batch in which all pairs have one angle. Angles are radians; no torch.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr

from bnlib import kernels
from bnlib.checks import SLACK, Result, Values, checked_batch_size, checked_values, plain
from bnlib.fixed_points import FixedPoint, solve_fixed_point

# The stage combinations with the norm after the activation, beside those with the norm before it.
PAIRED_NAMES = (("RC+NL", "NL+RC"), ("RC+RS+NL", "NL+RC+RS"), ("RMS+NL", "NL+RMS"), ("STD+NL", "NL+STD"))

_LOG_STEP, _LOG_RANGE = 0.2, (-50.0, 70.0)  # log s in the Laplace integral: integrand below 1e-20 at both ends
_REACH = 9.0  # shared part z of the pre-activations, in standard deviations


@dataclass(frozen=True)
class LayerPoints:
    """One angle, read at the two points of a layer whose norm comes after the activation.

    Attributes:
        after_norm: angle between every two rows of the representation that is handed on, radians.
        after_relu: angle between every two rows behind ReLU, before the norm of the same layer, radians.
    """

    after_norm: float
    after_relu: float


def simplex_angle(n: int | float) -> float:
    """Angle between every two corners of a regular simplex about its center, arccos(-1/(n-1)).

    Args:
        n: number of corners, at least 2; math.inf gives a right angle.

    Returns:
        The angle in radians.

    Raises:
        ValueError: n < 2 or NaN.

    Example:
        >>> [round(math.degrees(simplex_angle(n)), 2) for n in (2, 8, math.inf)]
        [180.0, 98.21, 90.0]
    """
    n = checked_batch_size(n, 2)
    return math.acos(-1.0 / (n - 1.0))


def relu_rms_angle(theta: Values, n: int | float) -> Result:
    """Angle after one infinitely wide layer of ReLU and then root-mean-square rescaling (NL+RMS).

    The Gram matrix is n E[f_i f_j / |f|^2] with f = ReLU(h), h Gaussian with unit variances and correlation
    c = cos(theta), and neurons that are silent on the whole batch left at zero. The diagonal is the share 1 - p of
    neurons that are not silent. Off it, 1/|f|^2 = integral of exp(-s |f|^2) ds, and given the part of h that the
    samples share they are independent: an integral over s and the shared part, both by the trapezoidal rule.
    For n = inf it is E[(E f)^2 / E f^2], inner means given the shared part.

    Args:
        theta: angle of every pair in radians, any shape, in (0.01, pi/2].
        n: batch size, at least 2 (any real number); math.inf for the limit.

    Returns:
        The angle of every pair after the layer in radians, same shape.

    Raises:
        ValueError: n < 2, or an angle outside (0.01, pi/2].

    Example:
        >>> round(math.cos(relu_rms_angle(math.pi / 2, 2)) * 3 * math.pi, 9)  # closed form 2 / (3 pi)
        2.0
    """
    n = checked_batch_size(n, 2)
    theta = checked_values("theta", theta, 0.01, math.pi / 2, "an angle of at least 0.01 rad and at most pi/2")
    one = _relu_rms_of_infinite_batch if math.isinf(n) else _relu_rms_of_finite_batch
    return plain(np.array([math.acos(one(float(t), n)) for t in theta.ravel()]).reshape(theta.shape))


def _shared_part(theta: float, nodes: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights and conditional means of h given its shared part, and its conditional standard deviation."""
    sine, cosine = math.sqrt(2.0) * math.sin(theta / 2.0), max(math.cos(theta), 0.0)
    z = np.linspace(-_REACH, _REACH, nodes)
    weight = np.exp(-0.5 * z * z)
    return weight / weight.sum(), math.sqrt(cosine) * z, sine


def _relu_rms_of_finite_batch(theta: float, n: float) -> float:
    # Phi(z sqrt(c) / deviation) changes over |z| of order deviation
    nodes = 2 * math.ceil(_REACH / min(0.06, 0.15 * math.sin(theta / 2.0))) + 1
    weight, mean, deviation = _shared_part(theta, nodes)
    silent = ndtr(-mean / deviation)
    log_s = np.arange(_LOG_RANGE[0], _LOG_RANGE[1], _LOG_STEP)
    s = np.exp(log_s)[:, None]
    spread = 1.0 + 2.0 * s * deviation**2
    argument = mean / (deviation * np.sqrt(spread))
    factor = np.exp(-s * mean**2 / spread) / np.sqrt(spread)
    positive = ndtr(argument)
    density = np.exp(-0.5 * argument**2) / math.sqrt(2.0 * math.pi)
    zeroth = silent + factor * positive  # E exp(-s f^2) given the shared part
    first = factor * (mean / spread * positive + deviation / np.sqrt(spread) * density)  # E f exp(-s f^2)
    off = n * _LOG_STEP * float((s * first**2 * zeroth ** (n - 2.0) @ weight).sum())
    return off / (1.0 - float(weight @ silent**n))


def _conditional_moments(theta: float, nodes: int = 20_001) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights, ratio r of mean to deviation, and the first two moments of ReLU(r + xi), for n = inf."""
    weight, mean, deviation = _shared_part(theta, nodes)
    r = mean / deviation
    density = np.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
    return weight, r, r * ndtr(r) + density, (r * r + 1.0) * ndtr(r) + r * density


def _relu_rms_of_infinite_batch(theta: float, n: float) -> float:
    weight, r, first, second = _conditional_moments(theta)
    # below -6 the moments cancel; the ratio falls to zero like a Gaussian density there
    usable = r > -6.0
    return float(weight @ np.where(usable, first**2 / np.where(usable, second, 1.0), 0.0))


def relu_std_angle_of_large_batch(theta: Values) -> Result:
    """Angle after one infinitely wide layer of ReLU and then division by the standard deviation, for n = inf.

    1 - cos theta' = 1 / E[m / v], with m and v second moment and variance of ReLU(h) given the part of h that the
    samples share. For small angles 1 - cos doubles in a layer: half of the neurons have a negative shared part and see
    nothing but differences. For finite n these neurons are silent on the whole batch when the angle is small enough,
    and 1 - cos shrinks by the factor (n-3)/(n-1) as with the norm before the activation.

    Args:
        theta: angle of every pair in radians, any shape, in (0.01, pi/2].

    Returns:
        The angle of every pair after the layer in radians, same shape.

    Raises:
        ValueError: an angle outside (0.01, pi/2].

    Example:
        >>> small = relu_std_angle_of_large_batch(0.02)
        >>> round((1 - math.cos(small)) / (1 - math.cos(0.02)), 2)
        2.0
    """
    theta = checked_values("theta", theta, 0.01, math.pi / 2, "an angle of at least 0.01 rad and at most pi/2")
    found = []
    for t in theta.ravel():
        weight, r, first, second = _conditional_moments(float(t))
        variance = np.where(r > 8.0, 1.0, second - first**2)  # for r far above 0 the difference cancels
        usable = r > -6.0  # below, mean^2 is negligible against the second moment, and the ratio is 1
        share = 1.0 / float(weight @ np.where(usable, second / np.where(usable, variance, 1.0), 1.0))
        found.append(2.0 * math.asin(math.sqrt(share / 2.0)))
    return plain(np.array(found).reshape(theta.shape))


@cache
def relu_rms_fixed_point(n: int | float) -> FixedPoint:
    """Angle at which a batch rests under infinitely wide layers of ReLU and then root-mean-square rescaling.

    Args:
        n: batch size, at least 2 (any real number); math.inf for the limit of large batches.

    Returns:
        The angle behind the norm in radians, with the residual of the map and the number of iterations.

    Raises:
        ValueError: n < 2 or NaN.
        NotConvergedError: the residual is above 1e-12 rad.

    Example:
        >>> found = relu_rms_fixed_point(8)
        >>> round(math.degrees(found.value), 3), round(math.degrees(kernels.relu_angle(found.value)), 3)
        (72.035, 60.804)
    """
    n = checked_batch_size(n, 2)
    return solve_fixed_point(lambda theta: float(relu_rms_angle(theta, n)), 0.2, math.pi / 2)


def relu_std_fixed_point_of_large_batch() -> FixedPoint:
    """Angle at rest under ReLU and then division by the standard deviation, infinite width, n = inf.

    Returns:
        The angle behind the norm in radians, with the residual of the map and the number of iterations.

    Raises:
        NotConvergedError: the residual is above 1e-12 rad.

    Example:
        >>> round(math.degrees(relu_std_fixed_point_of_large_batch().value), 2)
        64.48
    """
    return solve_fixed_point(lambda theta: float(relu_std_angle_of_large_batch(theta)), 0.2, math.pi / 2)


def resting_points(name: str, n: int | float) -> LayerPoints | None:
    """The resting angle of a combination with the norm after the activation, at both points of a layer.

    Args:
        name: NL+RC or NL+RC+RS (the symmetric state), or NL+RMS; for NL+STD the limit of large batches only.
        n: batch size, at least 2; math.inf for the limit.

    Returns:
        Both angles in radians; None for NL+STD with finite n, which has no closed form or quadrature here.

    Raises:
        ValueError: n < 2, or another name.

    Example:
        >>> points = resting_points("NL+RC+RS", 8)
        >>> round(math.degrees(points.after_norm), 2), round(math.degrees(points.after_relu), 2)
        (98.21, 75.51)
    """
    if name in ("NL+RC", "NL+RC+RS"):
        return LayerPoints(simplex_angle(n), kernels.batch_norm_angle(n))
    if name == "NL+RMS":
        theta = relu_rms_fixed_point(n).value
    elif name == "NL+STD":
        if not math.isinf(checked_batch_size(n, 2)):
            return None
        theta = relu_std_fixed_point_of_large_batch().value
    else:
        raise ValueError(f"name is {name!r}; valid is NL+RC, NL+RC+RS, NL+RMS or NL+STD.")
    return LayerPoints(theta, float(kernels.relu_angle(theta)))


def sampled_relu_std_angle(
    theta: float | int, n: int, *, neurons: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Angle after one infinitely wide layer NL+STD, by sampling neurons: an estimate with its standard error.

    1 - cos theta' = (n/(n-1)) / E[|f|^2 / |Gf|^2 given that f is not zero], f = ReLU(h): the differences are exact, by
    symmetry over the samples, and only the second moment is sampled.

    Args:
        theta: angle of every pair in radians, in (0, pi/2].
        n: batch size, at least 6 (below, the sampled ratio has no variance).
        neurons: how many to sample, at least 2.
        generator: NumPy generator.

    Returns:
        The angle in radians, and its standard error by the delta method.

    Raises:
        ValueError: n < 6, neurons < 2, or an angle outside (0, pi/2].

    Example:
        >>> angle, error = sampled_relu_std_angle(1.0, 64, neurons=20_000, generator=np.random.default_rng(0))
        >>> abs(math.degrees(angle) - 60) < 2, error < 0.01
        (True, True)
    """
    n = int(checked_batch_size(n, 6, " (below, the sampled ratio has no variance)"))
    if not 0 < theta <= math.pi / 2 + SLACK:
        raise ValueError(f"theta must be an angle in (0, pi/2], got {theta}.")
    if neurons < 2:
        raise ValueError(f"neurons must be at least 2, got {neurons}.")
    deviation, cosine = math.sqrt(2.0) * math.sin(theta / 2.0), max(math.cos(theta), 0.0)
    total, squares, count = 0.0, 0.0, 0
    for first in range(0, neurons, 20_000):
        size = min(20_000, neurons - first)
        shared = math.sqrt(cosine) * generator.standard_normal((size, 1))
        f = np.maximum(shared + deviation * generator.standard_normal((size, n)), 0.0)
        centered = f - f.mean(axis=1, keepdims=True)
        within = (centered**2).sum(axis=1)
        ratio = (f**2).sum(axis=1)[within > 0] / within[within > 0]
        total, squares, count = total + ratio.sum(), squares + (ratio**2).sum(), count + len(ratio)
    mean = total / count
    y = n / (n - 1) / mean
    error = y / mean * math.sqrt(max(squares / count - mean**2, 0.0) / count)
    angle = 2.0 * math.asin(math.sqrt(y / 2.0))
    return angle, float(error / math.sin(angle))
