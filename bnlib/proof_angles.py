"""The angle form of the fixed-point equation of chapter 7, in ball arithmetic: what the prover evaluates.

With cos(phi) = p/m, p the norm ratio and m = n - 1, and sin(theta/2) = sqrt(m/(2(m - 1))) sin(phi), the angle between
two equivalent samples after centering is theta, that between one of them and the distinguished one is pi - phi, and

    A(phi) = 2 m cos(phi)^2 + (2 m/pi) cos(phi) S(phi) - k(theta) (n^2 cos(phi)^2 + sin(phi)^2)

has the sign of (next u)/u - 1; S(x) = sin x - x cos x and k(theta) = S(theta)/(pi (1 - cos theta)) = 1 - h. All
functions are written with power series of even entire functions, so nothing is singular at phi = 0 or pi/2.
"""

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

BITS = 128


def ball(lower: Fraction, upper: Fraction | None = None) -> arb:
    """A ball that contains the interval from lower to upper.

    Example:
        >>> bool(ball(Fraction(1, 3)).contains(arb(1) / 3))
        True
    """
    left = arb(fmpq(lower.numerator, lower.denominator))
    return left if upper is None else left.union(arb(fmpq(upper.numerator, upper.denominator)))


_TERMS = 34  # for |x| <= pi the first omitted term is below 2^-128 in each of the three series
with ctx.workprec(2 * BITS):
    _SINC = [ball(Fraction((-1) ** j, math.factorial(2 * j + 1))) for j in range(_TERMS)]
    _HUMP = [ball(Fraction((-1) ** j * (2 * j + 2), math.factorial(2 * j + 3))) for j in range(_TERMS)]
    _DELAY = [ball(Fraction((-1) ** j, math.factorial(2 * j + 3))) for j in range(_TERMS)]


def even_series(x: arb, coefficients: list[arb]) -> arb:
    """Sum of c_j x^(2j) for |x| <= pi, where the signs alternate and the omitted terms decrease.

    The remainder is at most the last term kept (Leibniz), which is added as a radius. A ball without a number is
    returned outside |x| <= 4.

    Example:
        >>> cosine = even_series(arb(1), [arb((-1) ** j) / math.factorial(2 * j) for j in range(34)])
        >>> bool(cosine.overlaps(arb(1).cos()))
        True
    """
    if not abs(x) <= 4:
        return arb.nan()
    square, total, power = x * x, arb(0), arb(1)  # no `**`: it gives no number for balls about 0
    for coefficient in reversed(coefficients):
        total = total * square + coefficient
    for _ in coefficients[1:]:
        power *= square
    remainder = coefficients[-1] * power
    return total + remainder.union(-remainder)


def sinc(x: arb) -> arb:
    """sin(x)/x."""
    return even_series(x, _SINC)


def hump(x: arb) -> arb:
    """S(x) = sin x - x cos x = x^3 (1/3 - x^2/30 + ...).

    Example:
        >>> round(float(hump(arb.pi())) - 3.141592653589793, 12)
        0.0
    """
    return x * x * x * even_series(x, _HUMP)


def loss_per_angle(theta: arb) -> arb:
    """k(theta)/theta, which is 2/(3 pi) at theta = 0.

    Example:
        >>> round(float(loss_per_angle(arb(0)) * arb.pi()), 6)
        0.666667
    """
    return 2 / arb.pi() * even_series(theta, _HUMP) / sinc(theta / 2) ** 2


def loss_rate(theta: arb) -> arb:
    """k'(theta) = sin(theta)(theta - sin theta)/(pi (1 - cos theta)^2), regular at theta = 0.

    Example:
        >>> round(float(loss_rate(arb(0)) * arb.pi()), 6)
        0.666667
    """
    return 4 / arb.pi() * sinc(theta) * even_series(theta, _DELAY) / sinc(theta / 2) ** 4


def cluster_angle(phi: arb, m: int) -> tuple[arb, arb]:
    """Theta and d(theta)/d(phi), radians; for three samples theta = 2 phi."""
    if m == 2:
        return 2 * phi, arb(2)
    scale = (arb(m) / (2 * (m - 1))).sqrt()
    half = (scale * phi.sin()).asin()
    return 2 * half, 2 * scale * phi.cos() / half.cos()


def balance(phi: arb, m: int) -> arb:
    """A(phi), on all of [0, pi/2].

    Example:
        >>> bool(balance((arb(1) / 7).acos(), 7).contains(0))  # the symmetric state of eight samples
        True
    """
    theta, _ = cluster_angle(phi, m)
    cosine, sine = phi.cos(), phi.sin()
    image = 2 * m * cosine**2 + 2 * m / arb.pi() * cosine * hump(phi)
    return image - theta * loss_per_angle(theta) * ((m + 1) ** 2 * cosine**2 + sine**2)


def balance_rate(phi: arb, m: int) -> arb:
    """A'(phi)."""
    theta, rate = cluster_angle(phi, m)
    cosine, sine, square = phi.cos(), phi.sin(), (m + 1) ** 2
    image = -4 * m * cosine * sine + 2 * m / arb.pi() * sine * (cosine * phi - hump(phi))
    kept = loss_rate(theta) * rate * (square * cosine**2 + sine**2)
    return image - kept + 2 * theta * loss_per_angle(theta) * (square - 1) * sine * cosine


def multipliers(phi: arb, m: int) -> tuple[arb, arb, arb, arb]:
    """Growth factor h, and the multipliers at a root of A: in the class, largest modulus of the standard block, pairs.

    The standard block's trace and determinant are taken in closed form (chapter 7); for m = 2 it has one more
    multiplier, pairs, that belongs to no direction and only weakens the bound.
    """
    n = m + 1
    theta, _ = cluster_angle(phi, m)
    growth = 1 - theta * loss_per_angle(theta)
    along = 1 + balance_rate(phi, m) * phi.tan() / (2 * n * n * growth)
    keep, keep_1 = 1 - theta / arb.pi(), phi / arb.pi()
    turn_1, turn = m * phi.cos() * phi.sin() / (2 * arb.pi()), (m - 2) * theta.sin() / (2 * arb.pi())
    row = 1 - keep + turn_1 + turn
    trace = 1 + keep_1 + (keep - keep_1 - 2 * row) / n
    determinant = keep_1 * (1 - 2 * row / n) + (keep - keep_1) * (1 - 2 * turn_1) / n
    root = (trace**2 - 4 * determinant).sqrt()  # not a number unless the multipliers are real: then nothing is claimed
    standard = abs((trace + root) / (2 * growth)).max(abs((trace - root) / (2 * growth)))
    return growth, along, standard, keep / growth
