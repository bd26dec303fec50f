"""Check the part of a certificate of Theorem 14' that treats all n >= 65 at once (chapter 7): e = 1/(n - 1) is a ball.

Three zones cover 0 < p < m = 1/e. On [0, split] F is concave with F < 0 at both ends, so that the symmetric root p = 1,
where F' > 0, has exactly one companion, which lies above it. In the middle F < 0, by boxes. Next to the collapsed
cluster, z = sqrt(m^2 - p^2), F falls with z, so it has exactly one root there, the outlier state, whose multipliers are
bounded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from bnlib.proof_check_enclosures import BITS, ball, kappa, kappa_at, relu_cosine, secant, slope
from bnlib.proof_check_reading import Interval, exact, field, numbers, only_fields, require


@dataclass(frozen=True)
class AllLarger:
    """What was verified for every n >= first, m = n - 1.

    Attributes:
        first: smallest batch size.
        boxes: number of boxes.
        deficit: the outlier state's norm ratio is sqrt(m^2 - z^2) with z in this interval.
        gap: its spectral radius in all directions is at most 1 - gap/m.
        ratio_split: the only other fixed points are p = 1 and one in (1, ratio_split), which is unstable.
    """

    first: int
    boxes: int
    deficit: Interval
    gap: Fraction
    ratio_split: Fraction


FIELDS = ("first_n", "ratio_split", "deficit_split", "gap", "middle_by_ratio", "middle_by_deficit", "outlier")


def _covers(boxes: Sequence[list[Fraction]], width: Fraction, height: Fraction) -> bool:
    """Whether boxes [x0, x1, y0, y1] tile [0, width] x [0, height]: inside, disjoint, and of the right total area."""
    inside = all(0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height for x0, x1, y0, y1 in boxes)
    disjoint = all(
        a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2] for i, a in enumerate(boxes) for b in boxes[:i]
    )
    area = sum(((x1 - x0) * (y1 - y0) for x0, x1, y0, y1 in boxes), Fraction(0))
    return inside and disjoint and area == width * height


def _shared(e: arb, t: arb, q: arb, c: arb) -> arb:
    """The terms 2 t J(-q) - t^2 (e + (1 - e) J(c)) without one factor t; e = 1/m, t = 1/p, q = p/m."""
    return 2 * relu_cosine(-q) - t * (e + (1 - e) * relu_cosine(c))


def _middle_by_ratio(q: arb, t: arb) -> arb:
    """F/p^2 in terms of q = p/m and t = 1/p, e = t q."""
    e = t * q
    c = (q * q - e) / (1 - e)
    return (1 + e) ** 2 * secant(c) - 1 + t * _shared(e, t, q, c)


def _scaled(s: arb, r: arb, e: arb) -> arb:
    """F/(p^2 s) in terms of s = sqrt(1 - p^2/m^2) and r = e/s, without cancellation at s = 0."""
    q = (1 - s * s).sqrt()
    c = 1 - s * s / (1 - e)
    return (2 + e) * r - (1 + e) ** 2 * kappa(c) / (1 - e).sqrt() + r / q * _shared(e, e / q, q, c)


def _outlier_sign(z: arb, e: arb) -> arb:
    """F/(p^2 e) in terms of z = sqrt(m^2 - p^2)."""
    q, c = (1 - e * z * e * z).sqrt(), 1 - e * z * e * z / (1 - e)
    return 2 + e - (1 + e) ** 2 * kappa(c) * z / (1 - e).sqrt() + _shared(e, e / q, q, c) / q


def _arc(x: arb) -> arb:
    """Enclose asin(x)/x, which increases from 1, for x >= 0."""
    ends = (x.lower().max(arb(0)), x.upper())
    low, high = (arb(1) if end == 0 else end.asin() / end for end in ends)
    return low.union(high)


def _outlier_conditions(z: arb, e: arb, gap: arb) -> dict[str, arb]:
    """What must be positive at an outlier state with m^2 - p^2 = z^2 so that its spectral radius is below 1 - gap e."""
    q2 = 1 - e * z * e * z
    q, per_e = q2.sqrt(), z / (1 - e).sqrt()
    d = e * per_e  # d^2 = 1 - c = 2 sin^2(theta/2)
    c = 1 - d * d
    scaled_loss, arc = kappa(c), _arc(d / arb(2).sqrt())
    angle_per_e, deficit_per_e = arb(2).sqrt() * per_e * arc, scaled_loss * per_e
    h, keep = 1 - e * deficit_per_e, 1 - e * angle_per_e / arb.pi()
    keep_1, turn_1 = (e * z).asin() / arb.pi(), q * z / (2 * arb.pi())
    row = 1 - keep + turn_1 + (1 - 2 * e) * per_e * (2 - d * d).sqrt() / (2 * arb.pi())
    radius = 1 - gap * e

    rate = 2 * e * e * e * z * z * ((1 - keep) / q2 + (1 - e) * scaled_loss * d * d * d / q2**2 - z / (arb.pi() * q**3))
    along = q2 / h * (angle_per_e / arb.pi() - deficit_per_e + rate / (2 * (1 + e) ** 2))  # (1 - multiplier)/e

    nu = e / (1 + e)
    a_a, a_b = keep_1 + nu * (keep - keep_1), turn_1 - nu * row
    b_a_per_e, b_b = 2 * (keep - keep_1) / (1 + e), 1 - 2 * nu * row
    at_radius = (radius * h - a_a) * (2 * row / (1 + e) - deficit_per_e - gap * h) - a_b * b_a_per_e
    determinant = a_a * b_b - a_b * b_a_per_e * e
    return {
        "the class, upper bound": along - gap,
        "the class, lower bound": 1 - e * along,
        "the pairs": angle_per_e / arb.pi() - deficit_per_e - gap * h,
        "the standard block at the radius": at_radius,
        "the standard block at minus the radius": (radius * h + a_a) * (radius * h + b_b) - a_b * b_a_per_e * e,
        "the standard block's determinant": (radius * h) ** 2 - abs(determinant),
    }


def _near_symmetric(e: arb, split: arb) -> dict[str, arb]:
    """What must be positive so that F has exactly the roots 1 and one above on [0, split], for all e = 1/m."""

    def at(p: arb) -> tuple[arb, arb]:
        return p, e * (e * p * p - 1) / (1 - e)

    def value(p: arb) -> arb:
        p, c = at(p)
        image = 2 * p * relu_cosine(-e * p) - e - (1 - e) * relu_cosine(c)
        return p * p * ((1 + e) ** 2 * secant(c) - 1) + image

    p, c = at(arb(0).union(split))
    rate, bend = 2 * e * e * p / (1 - e), 2 * e * e / (1 - e)  # dc/dp and its derivative
    second = 1 / (arb.pi() * (1 - c * c).sqrt())  # J''(c)
    h_1 = (secant(c) - slope(c)) / (1 - c)
    h_2 = (2 * h_1 - second) / (1 - c)
    cosine = -e * p
    curvature = (
        (1 + e) ** 2 * (2 * secant(c) + 4 * p * h_1 * rate + p * p * (h_2 * rate * rate + h_1 * bend))
        - 2
        - 4 * e * slope(cosine)
        + 2 * p * e * e / (arb.pi() * (1 - cosine * cosine).sqrt())
        - (1 - e) * (second * rate * rate + slope(c) * bend)
    )
    loss = 1 - relu_cosine(-e)
    return {
        "F is concave": -curvature,
        "F < 0 at p = 0": -value(arb(0)),
        "F < 0 at the split": -value(split),
        "the symmetric state attracts": 1 - (1 + e) * slope(-e) / loss,
    }


def _bisected(function: Callable[[arb, arb], arb], box: Sequence[Fraction], depth: int) -> bool:
    """Whether a function of two variables is negative on a box [x0, x1, y0, y1]."""
    x0, x1, y0, y1 = box
    if bool(function(ball(x0, x1), ball(y0, y1)) < 0):
        return True
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    quarters = [[a, b, u, v] for a, b in ((x0, x), (x, x1)) for u, v in ((y0, y), (y, y1))]
    return depth > 0 and all(_bisected(function, quarter, depth - 1) for quarter in quarters)


def check_larger(entry: object, last_single: int) -> AllLarger:
    """Verify the uniform part of a certificate, for all n > last_single.

    Raises:
        CertificateError: in one sentence, the first thing that is wrong.

    Example:
        >>> check_larger({"first_n": 7}, 64)
        Traceback (most recent call last):
        ...
        bnlib.proof_check_reading.CertificateError: n >= 65: the uniform part must begin at n = 65, got 7.
    """
    with ctx.workprec(BITS):
        return _check_larger(entry, last_single)


def _check_larger(entry: object, last_single: int) -> AllLarger:
    where = f"n >= {last_single + 1}"
    only_fields(entry, FIELDS, where)
    first = field(entry, "first_n", int, where)
    require(first == last_single + 1, f"{where}: the uniform part must begin at n = {last_single + 1}, got {first}.")
    names = ("ratio_split", "deficit_split", "gap")
    split, z_max, gap = (exact(field(entry, name, str, where), f"{where}, {name}") for name in names)
    e_max = Fraction(1, first - 1)
    require(1 < split < first - 1 and 1 <= z_max <= first // 2, f"{where}: a split lies outside its range.")
    require(0 < gap < 1, f"{where}: the gap must lie between 0 and 1, got {gap}.")
    e = ball(Fraction(0), e_max)
    for name, quantity in _near_symmetric(e, ball(split)).items():
        require(bool(quantity > 0), f"{where}: '{name}' is not shown.")

    # p >= split and z >= z_max: p/m <= 1/2 or sqrt(1 - p^2/m^2) <= 7/8
    half, most = Fraction(1, 2), Fraction(7, 8)
    zones = {
        "middle_by_ratio": (half, 1 / split, _middle_by_ratio),
        "middle_by_deficit": (most, 1 / z_max, lambda s, r: _scaled(s, r, r * s)),
    }
    count = 0
    for name, (width, height, function) in zones.items():
        rows = field(entry, name, list, where)
        boxes = [numbers(row, 4, f"{where}, {name}, box {index + 1}") for index, row in enumerate(rows)]
        require(_covers(boxes, width, height), f"{where}, {name}: the boxes do not tile the region exactly.")
        for index, box in enumerate(boxes):
            require(_bisected(function, box, 3), f"{where}, {name}, box {index + 1}: F is not shown to be negative.")
        count += len(boxes)

    limit = ball(z_max)
    steepest = 2 * e * e * e * limit * limit / (arb.pi() * (1 - (e * limit) ** 2).sqrt() ** 3)
    falling = (1 + e) ** 2 * kappa_at(arb(1)) / (1 - e).sqrt() - steepest
    require(bool(falling > 0), f"{where}: F is not shown to fall with z next to the collapsed cluster.")
    rows, edge, zs = field(entry, "outlier", list, where), Fraction(0), []
    for index, row in enumerate(rows):
        here = f"{where}, outlier, box {index + 1}"
        e0, e1, z0, z1 = numbers(row, 4, here)
        require(e0 == edge < e1, f"{here}: it begins at {e0}, not where the one before ends, {edge}.")
        require(0 < z0 < z1 < z_max, f"{here}: the enclosure of z has its ends in the wrong order.")
        edge, part = e1, ball(e0, e1)
        change = bool(_outlier_sign(ball(z0), part) > 0) and bool(_outlier_sign(ball(z1), part) < 0)
        require(change, f"{here}: F does not change its sign between the ends of z.")
        for name, quantity in _outlier_conditions(ball(z0, z1), part, ball(gap)).items():
            require(bool(quantity > 0), f"{here}: the bound on the multipliers is not shown for {name}.")
        zs += [z0, z1]
    require(edge == e_max, f"{where}, outlier: the boxes end at {edge}, not at 1/(n - 1).")
    return AllLarger(first, count + len(rows) + 1, (min(zs), max(zs)), gap, split)
