"""The fixed point of root-mean-square rescaling and ReLU: a second formula, rigorous digits, and uniqueness.

For a symmetric batch of n unit vectors with common cosine c put k = (1 + (n-1) c)/(1 - c). After one infinitely wide
layer RMS+NL the common cosine is an integral over [0, 1] of an analytic function,

    c' = integral of (k/a + n - 1) J((k - a)/(k + (n-1) a)) u^(n-1) / sqrt(a) du,   a = u^2 + k (1 - u^2),

and for n = inf, with k = c/(1 - c), one over [0, inf): (k/a + 1) J(k/(k + a)) exp(-t)/sqrt(a) dt, a = 1 + 2 k t.
Here it is evaluated in ball arithmetic, which encloses the value; `bnlib.kernels` uses another substitution and the
trapezoidal rule in floating point, so that the two check each other. Angles are radians; no torch.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import flint
import numpy as np

from bnlib.checks import checked_batch_size
from bnlib.kernels import relu_cosine, rms_fixed_point_angle

_BITS = 100
_CUT = Fraction(1, 10**22)  # of the unit interval, for n = inf: the integrand is at most k + 1 there


@cache
def _nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(count)


@dataclass(frozen=True)
class Enclosure:
    """A fixed point between two angles that are proved to lie on its two sides.

    Attributes:
        lower: the map moves this angle up, radians.
        upper: the map moves this angle down, radians.
        margin: smallest proved |cos theta' - cos theta| at the two ends.
    """

    lower: float
    upper: float
    margin: float


def rms_cosine_ball(c: "flint.arb", n: int | float) -> "flint.arb":
    """Common cosine after one infinitely wide layer RMS+NL, as a ball that contains it.

    Args:
        c: common cosine before the layer, a ball inside [0, 1).
        n: batch size, a whole number of at least 2, or math.inf.

    Returns:
        A ball with the cosine after the layer (formula in the module's head).

    Raises:
        ValueError: n is not a whole number >= 2 or inf, or c is not inside [0, 1).

    Example:
        >>> import flint
        >>> value = rms_cosine_ball(flint.arb(0), 8)  # orthogonal samples: 1/pi
        >>> (value - 1 / flint.arb.pi()).contains(0), bool(value.rad() < 1e-15)
        (True, True)
    """
    n = checked_batch_size(n, 2)
    if not math.isinf(n) and n != int(n):
        raise ValueError(f"n must be a whole number or inf, got {n}.")
    c = flint.arb(c)
    if not (c >= 0 and c < 1):
        raise ValueError(f"c must be a cosine in [0, 1), got {c}.")
    before, flint.ctx.prec = flint.ctx.prec, _BITS
    try:
        return _limit_ball(c) if math.isinf(n) else _finite_ball(c, int(n))
    finally:
        flint.ctx.prec = before


def _j(c: "flint.acb", analytic: bool) -> "flint.acb":
    # pi - arccos c = pi/2 + arcsin c, and arcsin c = atan(c / root); the root tells the integrator where it is analytic
    root = (1 - c * c).sqrt(analytic=analytic)
    return (root + (flint.acb.pi() / 2 + (c / root).atan()) * c) / flint.acb.pi()


def _finite_ball(c: "flint.arb", n: int) -> "flint.arb":
    k = flint.acb((1 + (n - 1) * c) / (1 - c))

    def integrand(u, analytic):
        a = u * u + k * (1 - u * u)
        return (k / a + n - 1) * _j((k - a) / (k + (n - 1) * a), analytic) * u ** (n - 1) / a.sqrt(analytic=analytic)

    return flint.acb.integral(integrand, 0, 1).real


def _limit_ball(c: "flint.arb") -> "flint.arb":
    k = flint.acb(c / (1 - c))

    def integrand(x, analytic):  # exp(-t) = x
        a = 1 - 2 * k * x.log(analytic=analytic)
        return (k / a + 1) * _j(k / (k + a), analytic) / a.sqrt(analytic=analytic)

    cut = flint.arb(flint.fmpq(_CUT.numerator, _CUT.denominator))
    rest = cut * (k.real + 1)  # 0 <= J <= 1 and a >= 1
    return flint.acb.integral(integrand, flint.acb(cut), 1).real + (rest / 2).union(flint.arb(0)).union(rest)


def enclose_rms_fixed_point(n: int | float, radius: float | int = 1e-9) -> Enclosure:
    """Two angles, `radius` on each side of the computed fixed point, that are proved to bracket it.

    By the chapter's theorem the map of RMS+NL has one fixed point other than 0, and moves smaller angles up and larger
    ones down. So the signs of c' - c at the two ends, decided in ball arithmetic, enclose that fixed point.

    Args:
        n: batch size, a whole number of at least 2, or math.inf.
        radius: half the width of the bracket in radians, above 1e-14.

    Returns:
        The bracket, and the smaller of the two proved differences.

    Raises:
        ValueError: n is not a whole number >= 2 or inf, or a sign is not decided or is the wrong one.

    Example:
        >>> found = enclose_rms_fixed_point(8)
        >>> round(math.degrees(found.lower), 6), round(math.degrees(found.upper), 6)
        (60.106614, 60.106614)
    """
    if not radius >= 1e-14:
        raise ValueError(f"radius must be at least 1e-14, got {radius}.")
    center = rms_fixed_point_angle(n)
    lower, upper = center - radius, center + radius
    moves = []
    for theta in (lower, upper):
        c = flint.arb(theta).cos()  # of the floating-point number itself
        moves.append(rms_cosine_ball(c, n) - c)
    # a smaller angle is moved up: its cosine falls
    if not (moves[0] < 0 and moves[1] > 0):
        raise ValueError(f"radius {radius} does not enclose the fixed point for n = {n}: c' - c is {moves}.")
    return Enclosure(lower, upper, min(float((-moves[0]).lower()), float(moves[1].lower())))


def rms_growth(k: float | int, n: int, nodes: int = 400) -> float:
    """Factor R by which one layer RMS+NL multiplies 1 - cos of the common angle.

    Strictly increasing in k on k >= 1 (cos >= 0), for every n: that is the uniqueness of the fixed point, R = 1.

    Args:
        k: (1 + (n-1) c)/(1 - c) for the common cosine c, at least 1.
        n: batch size, at least 2.
        nodes: Gauss-Legendre nodes on the unit interval.

    Returns:
        (1 - c')/(1 - c).

    Raises:
        ValueError: k < 1 or n < 2.

    Example:
        >>> round(rms_growth(1, 8), 9) == round(1 - 1 / math.pi, 9)  # orthogonal samples
        True
    """
    n = int(checked_batch_size(n, 2))
    if not k >= 1:
        raise ValueError(f"k must be at least 1, got {k}.")
    x, weight = _nodes(nodes)
    u = (x + 1) / 2
    a = u * u + k * (1 - u * u)
    integrand = (k / a + n - 1) * relu_cosine((k - a) / (k + (n - 1) * a)) * u ** (n - 1) / np.sqrt(a)
    after = float(weight @ integrand) / 2
    return (1 - after) * (k + n - 1) / n


def difference_kept(t: float | int, n: int, *, points: int, generator: np.random.Generator) -> tuple[float, float]:
    """The function D of the uniqueness proof, by sampling: an estimate with its standard error.

    D(x) = n/(n-1) - n E[((t + s_1)(t + s_2))^-] with x = sqrt(n) t and s uniform on the unit sphere of the vectors of
    length n that sum to zero: the squared difference that ReLU leaves, averaged over h and -h. It does not
    decrease in t >= 0 and reaches n/(n-1) at t = sqrt((n-1)/n).

    Args:
        t: shared part, at least 0, in units of the norm of the differences.
        n: batch size, at least 2.
        points: how many points of the sphere to sample, at least 2.
        generator: NumPy generator.

    Returns:
        The estimate and its standard error.

    Raises:
        ValueError: t < 0, n < 2 or points < 2.

    Example:
        >>> difference_kept(1, 8, points=100, generator=np.random.default_rng(0))[0] == 8 / 7
        True
    """
    n = int(checked_batch_size(n, 2))
    if not t >= 0 or points < 2:
        raise ValueError(f"t must be at least 0 and points at least 2, got {t} and {points}.")
    g = generator.standard_normal((points, n))
    s = g - g.mean(axis=1, keepdims=True)
    s /= np.linalg.norm(s, axis=1, keepdims=True)
    lost = n * np.maximum(-(t + s[:, 0]) * (t + s[:, 1]), 0.0)
    return n / (n - 1) - float(lost.mean()), float(lost.std(ddof=1) / math.sqrt(points))
