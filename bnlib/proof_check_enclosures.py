"""Enclosures in ball arithmetic by which a certificate of Theorem 14' is checked (chapter 7).

J, its slope J' and h(c) = (1 - J)/(1 - c) increase with the cosine c, kappa(c) = (J - c)/(1 - c)^(3/2) decreases: so
the values at the two ends of an interval enclose all values on it. Chapter 7 proves these monotonicities.
"""

from collections.abc import Callable
from fractions import Fraction

from flint import arb, fmpq

BITS = 128  # working precision of the checker


def ball(lower: Fraction, upper: Fraction | None = None) -> arb:
    """A ball that contains the exact interval from lower to upper (or the one number `lower`).

    Example:
        >>> bool(ball(Fraction(1, 3), Fraction(1, 2)).contains(arb(2) / 5))
        True
    """
    ends = [arb(fmpq(end.numerator, end.denominator)) for end in (lower, lower if upper is None else upper)]
    return ends[0] if upper is None else ends[0].union(ends[1])


def monotone(function: Callable[[arb], arb], x: arb) -> arb:
    """Enclose a monotone function by its values at the ends of x, which are cut back to [-1, 1].

    Args:
        function: from an exact number to a ball.
        x: a ball of cosines; a ball without a number gives one.

    Example:
        >>> bool(monotone(arb.acos, arb(0).union(arb(1))).contains(1))
        True
    """
    lower, upper = x.lower().max(arb(-1)), x.upper().min(arb(1))
    return function(lower).union(function(upper))


def angle(c: arb) -> arb:
    """Arccos of a ball of cosines, radians.

    Example:
        >>> bool((angle(arb(0)) - arb.pi() / 2).contains(0))
        True
    """
    return monotone(arb.acos, c)


def relu_cosine(c: arb) -> arb:
    """J(c) = (sqrt(1 - c^2) + (pi - arccos c) c)/pi, increasing.

    Example:
        >>> bool((relu_cosine(arb(0)) * arb.pi()).contains(1))
        True
    """
    return monotone(lambda x: ((1 - x * x).sqrt() + (arb.pi() - x.acos()) * x) / arb.pi(), c)


def slope(c: arb) -> arb:
    """The derivative J'(c) = 1 - arccos(c)/pi, increasing.

    Example:
        >>> bool(slope(arb(0)).contains(arb(1) / 2))
        True
    """
    return 1 - angle(c) / arb.pi()


def _secant_at(x: arb) -> arb:
    return arb(1) if x == 1 else (1 - relu_cosine(x)) / (1 - x)


def secant(c: arb) -> arb:
    """The secant's slope h(c) = (1 - J(c))/(1 - c), increasing because J is convex; h(1) = J'(1) = 1.

    Example:
        >>> bool(secant(arb(-1)).contains(arb(1) / 2)), bool(secant(arb(1)).contains(1))
        (True, True)
    """
    return monotone(_secant_at, c)


def kappa_at(x: arb) -> arb:
    """Kappa at one exact cosine, cut back to its range.

    Example:
        >>> round(float(kappa_at(arb(1))), 6)
        0.300105
    """
    limit, end = 2 * arb(2).sqrt() / (3 * arb.pi()), 1 / (2 * arb(2).sqrt())  # at c = 1 and at c = -1
    if x == 1:
        return limit
    return ((relu_cosine(x) - x) / ((1 - x) * (1 - x).sqrt())).max(limit.lower()).min(end.upper())


def kappa(c: arb) -> arb:
    """Enclose (J(c) - c)/(1 - c)^(3/2), which decreases: from 1/(2 sqrt 2) to 2 sqrt 2/(3 pi).

    Example:
        >>> bool(kappa(arb(-1).union(arb(1))) < 0.36)
        True
    """
    return monotone(kappa_at, c)
