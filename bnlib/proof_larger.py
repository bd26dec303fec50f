"""Theorem 14' for all n >= 65 at once: e = 1/(n - 1) is an interval that contains 0 (chapter 7).

Three zones cover all norm ratios 0 < p < m = 1/e: near the symmetric state, p in [0, 4], F is concave; in the middle it
is negative, by boxes in (p/m, 1/p) and in (s, e/s), s = sqrt(1 - p^2/m^2); next to the collapsed cluster, where
z = m s <= 8, F falls with z, and its root, the outlier state, is enclosed for each box of e.
"""

from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from bnlib.proof_angles import BITS, ball, loss_per_angle, loss_rate, sinc

RATIO_SPLIT = Fraction(4)
DEFICIT_SPLIT = Fraction(8)
GAP = Fraction(19, 20)
_PARTS = 64  # boxes of e
_DEEPEST = 12


def _cluster(s: arb, e: arb) -> tuple[arb, arb]:
    """Theta and theta/s: sin(theta/2) = s/sqrt(2(1 - e))."""
    scale = 1 / (2 * (1 - e)).sqrt()
    theta = 2 * (s * scale).asin()
    return theta, 2 * scale / sinc(theta / 2)


def middle_by_ratio(q: arb, t: arb) -> arb:
    """A/(m cos phi)^2 in q = cos phi = p/m and t = 1/p; e = t q."""
    e, phi = t * q, q.acos()
    sine = phi.sin()
    theta, _ = _cluster(sine, e)
    return (
        2 * e
        + 2 / arb.pi() * (t * sine - e * phi)
        - theta * loss_per_angle(theta) * ((1 + e) ** 2 + t * sine * t * sine)
    )


def middle_by_deficit(s: arb, r: arb) -> arb:
    """A/(s (m cos phi)^2) in s = sin phi and r = e/s, regular at s = 0."""
    e, phi = r * s, s.asin()
    theta, per_s = _cluster(s, e)
    tangent = phi.tan()
    kept = loss_per_angle(theta) * per_s * ((1 + e) ** 2 + e * tangent * e * tangent)
    return 2 * r + 2 / arb.pi() * r * (tangent - phi) - kept


def outlier_balance(z: arb, e: arb) -> arb:
    """A/(e (m cos phi)^2) in z = sin(phi)/e, regular at e = 0.

    Example:
        >>> value = outlier_balance(3 * arb.pi() / arb(2).sqrt(), arb(0))  # n theta = 3 pi as n grows
        >>> bool(value.contains(0))
        True
    """
    phi = (e * z).asin()
    theta, per_s = _cluster(e * z, e)
    kept = loss_per_angle(theta) * per_s * z * ((1 + e) ** 2 + e * phi.tan() * e * phi.tan())
    return 2 + 2 / arb.pi() * (phi.tan() - phi) - kept


def _gaps(z: arb, e: arb) -> list[arb]:
    """(1 - multiplier)/e in the class and of the pairs at a root, and the standard block's polynomial at 1 - GAP e."""
    phi = (e * z).asin()
    cosine, tangent = phi.cos(), phi.tan()
    theta, per_s = _cluster(e * z, e)
    loss_per_e = loss_per_angle(theta) * per_s * z
    h = 1 - e * loss_per_e
    theta_rate = 2 / (2 * (1 - e)).sqrt() / (theta / 2).cos()  # d(theta)/d(z) without one factor e
    kept = loss_rate(theta) * theta_rate * ((1 + e) ** 2 + e * tangent * e * tangent)
    slope = 2 / arb.pi() * tangent * tangent * e / cosine - kept - loss_per_e * 2 * e * e * e * tangent / cosine**3
    along = -z * cosine**2 * slope / (2 * (1 + e) ** 2 * h)

    theta_per_e = per_s * z
    keep, keep_1 = 1 - theta / arb.pi(), phi / arb.pi()
    turn_1 = cosine * z / (2 * arb.pi())
    turn = (1 - 2 * e) * sinc(theta) * theta_per_e / (2 * arb.pi())
    row = 1 - keep + turn_1 + turn
    gap, nu = ball(GAP), e / (1 + e)
    y = loss_per_e + gap * h
    trace_less_1 = keep_1 + nu * (keep - keep_1 - 2 * row)
    polynomial = y * (trace_less_1 - 1 + e * y) + 2 / (1 + e) * (row * (1 - keep_1) - turn_1 * (keep - keep_1))
    return [along - gap, theta_per_e / arb.pi() - loss_per_e - gap * h, polynomial]


def _tile(function: Callable[[arb, arb], arb], box: list[Fraction], depth: int = 0) -> list[list[str]]:
    """Split a rectangle [x0, x1, y0, y1] until the function is negative on every box."""
    x0, x1, y0, y1 = box
    if function(ball(x0, x1), ball(y0, y1)) < 0:
        return [[str(end) for end in box]]
    if depth > _DEEPEST:
        raise ValueError(f"n >= 65: the middle box {[str(end) for end in box]} cannot be closed.")
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    halves = [[x0, x, y0, y1], [x, x1, y0, y1]] if depth % 2 == 0 else [[x0, x1, y0, y], [x0, x1, y, y1]]
    return [row for half in halves for row in _tile(function, half, depth + 1)]


def _enclose_root(e0: Fraction, e1: Fraction) -> tuple[Fraction, Fraction]:
    """Dyadic bounds of z at the outlier state for all e in a box."""
    e = ball(e0, e1)

    def edge(sign: int) -> Fraction:
        low, high = Fraction(0), DEFICIT_SPLIT
        for _ in range(14):
            middle = (low + high) / 2
            value = outlier_balance(ball(middle), e)
            below = value > 0 if sign > 0 else not value < 0
            low, high = (middle, high) if below else (low, middle)
        return low - Fraction(1, 2**9) if sign > 0 else high + Fraction(1, 2**9)

    return edge(+1), edge(-1)


def prove_larger(first_n: int = 65) -> dict[str, object]:
    """The certificate's part for all n >= first_n: exact numbers as text.

    Raises:
        ValueError: if a box cannot be closed; it is named.

    Example:
        >>> sorted(prove_larger(65))
        ['deficit_split', 'first_n', 'gap', 'middle_by_deficit', 'middle_by_ratio', 'outlier', 'ratio_split']
    """
    e_max = Fraction(1, first_n - 1)
    with ctx.workprec(BITS):
        outlier = []
        for part in range(_PARTS):
            e0, e1 = e_max * part / _PARTS, e_max * (part + 1) / _PARTS
            z0, z1 = _enclose_root(e0, e1)
            if not all(quantity > 0 for quantity in _gaps(ball(z0, z1), ball(e0, e1))):
                raise ValueError(f"n >= {first_n}: the multipliers for 1/(n - 1) in [{e0}, {e1}] are not bounded.")
            outlier.append([str(end) for end in (e0, e1, z0, z1)])
        half, most = Fraction(1, 2), Fraction(7, 8)
        return {
            "first_n": first_n,
            "ratio_split": str(RATIO_SPLIT),
            "deficit_split": str(DEFICIT_SPLIT),
            "gap": str(GAP),
            "middle_by_ratio": _tile(middle_by_ratio, [Fraction(0), half, Fraction(0), 1 / RATIO_SPLIT]),
            "middle_by_deficit": _tile(middle_by_deficit, [Fraction(0), most, Fraction(0), 1 / DEFICIT_SPLIT]),
            "outlier": outlier,
        }
