"""Check a certificate of Theorem 14' (chapter 7) in ball arithmetic; shares no code with the prover.

The infinite-width map of one layer of recentering and ReLU takes a Gram matrix S to V(GSG), with
V(K)_ij = sqrt(K_ii K_jj) J(K_ij / sqrt(K_ii K_jj)). For one distinguished sample and m = n - 1 equivalent ones the
centered Gram matrix is, up to scale, a function of the norm ratio p = |x_1| / |x_i| of the images alone, 0 < p < m:

    K_11 = p^2,  K_ii = 1,  K_1i = -p^2/m,  K_ij = c(p) = (p^2/m - 1)/(m - 1).

p = 1 is the symmetric state, p = m the collapsed cluster (u = 0), p = 0 the end u -> infinity of the line of
u = (x_i.x_i - x_i.x_j)/|x_1 - mean of the others|^2 = m (m^2 - p^2) / ((m - 1) n^2 p^2). With h(c) = (1 - J)/(1 - c),

    F(p) = (n/m)^2 p^2 h(c) - p^2 + 2 p J(-p/m) - (1 + (m - 1) J(c))/m

has the sign of (next u)/u - 1: a state is a fixed ray where F = 0, and attracts within the class where F' > 0.
Enclosures rest on ball arithmetic and on monotonicities: J, its slope J', h and -kappa, kappa = (J - c)/(1 - c)^(3/2),
increase with c, and asin(x)/x with x. Chapter 7 proves them, and that the conditions tested here give the theorem.

Run: `python -m bnlib.proof_check results/proof/theorem_14.json` (exit status 0 or 1).
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from flint import arb, ctx

from bnlib.proof_check_enclosures import BITS, ball, relu_cosine, secant, slope
from bnlib.proof_check_larger import AllLarger, check_larger
from bnlib.proof_check_reading import (
    CertificateError,
    Interval,
    exact,
    field,
    interval,
    only_fields,
    require,
    unrepeated,
)

SCHEMA = "bnlib theorem-14 certificate 1"
STATEMENT = (
    "For every integer n >= 7 the infinite-width map of recentering and ReLU has, up to scale and apart from the "
    "collapsed cluster, exactly one stable fixed point with one distinguished sample of larger norm and n - 1 "
    "equivalent others; its spectral radius in all n(n + 1)/2 directions, scale removed, is below 1. For 3 <= n <= 6 "
    "it has no fixed point of this kind. The symmetric fixed point has a spectral radius below 1 for every n >= 3."
)
LAST_SINGLE = 64  # batch sizes 3 ... 64 are treated one by one, all larger ones at once
FIRST_WITH_OUTLIER = 7


@dataclass(frozen=True)
class Root:
    """A fixed point of the class: numbers are enclosures (lower, upper), rational; ratios without unit.

    Attributes:
        name: "symmetric", "separatrix" or "outlier".
        norm_ratio: distinguished sample to another one.
        multiplier: the map's derivative along the class, scale removed.
        standard: largest modulus of the multipliers that move the others' norms apart: a bound, below 1.
        pairs: the multiplier of the directions that change only angles among the others; None for n < 5.
        growth: factor of the squared scale in one layer, for weight variance 2/d.
        radius: verified bound on the spectral radius in all directions; None where the state is unstable.
    """

    name: str
    norm_ratio: Interval
    multiplier: Interval
    standard: Fraction
    pairs: Interval | None
    growth: Interval
    radius: Fraction | None


@dataclass(frozen=True)
class BatchSize:
    """What was verified for one n: all fixed points with 0 < p < n - 1, in rising order; `boxes` cover that line."""

    n: int
    boxes: int
    roots: tuple[Root, ...]


@dataclass(frozen=True)
class Verified:
    """The theorem, verified: `single` holds n = 3 ... 64, `larger` all n from 65 on."""

    single: tuple[BatchSize, ...]
    larger: AllLarger

    @property
    def boxes(self) -> int:
        """Number of boxes in the whole certificate."""
        return sum(case.boxes for case in self.single) + self.larger.boxes


# ------------------------------------------------------------------------------------------ one batch size


def _cosine(p: arb, m: int) -> arb:
    return (p * p / m - 1) / (m - 1)


def _value(p: arb, m: int) -> arb:
    """F(p), regular on all of [0, m]."""
    n, c = m + 1, _cosine(p, m)
    image = 2 * p * relu_cosine(-p / m) - (1 + (m - 1) * relu_cosine(c)) / m
    return p * p * (arb(n * n) / (m * m) * secant(c) - 1) + image


def _derivative(p: arb, m: int) -> arb:
    """F'(p), for 0 < p < m."""
    n, c, q = m + 1, _cosine(p, m), -p / m
    c_rate = 2 * p / (m * (m - 1))
    h, keep = secant(c), slope(c)
    first = arb(n * n) / (m * m) * (2 * p * h + p * p * c_rate * (h - keep) / (1 - c))
    return first - 2 * p + 2 * relu_cosine(q) + 2 * q * slope(q) - arb(m - 1) / m * keep * c_rate


def _signed(sign: str, lower: Fraction, upper: Fraction, m: int, derivative: bool, depth: int) -> bool:
    """Whether F (or F') has the given sign on all of [lower, upper]; bisects up to `depth` times."""
    box, middle = ball(lower, upper), (lower + upper) / 2
    factor = 1 if sign == "+" else -1
    if derivative:
        enclosures = [_derivative(box, m)]
    else:
        enclosures = [_value(box, m)]
        if 0 < lower < upper < m:
            enclosures.append(_value(ball(middle), m) + _derivative(box, m) * (box - ball(middle)))
    if any(factor * enclosure > 0 for enclosure in enclosures):
        return True
    halves = ((lower, middle), (middle, upper))
    return depth > 0 and all(_signed(sign, *half, m, derivative, depth - 1) for half in halves)


def _centered(entries: Sequence[arb], m: int) -> list[arb]:
    """Center a matrix of the class, given as (11, ii, ij, 1i)."""
    first, diagonal, pair, mixed = entries
    n = m + 1
    top, other = (first + m * mixed) / n, (mixed + diagonal + (m - 1) * pair) / n
    total = (top + m * other) / n
    return [
        first - 2 * top + total,
        diagonal - 2 * other + total,
        pair - 2 * other + total,
        mixed - top - other + total,
    ]


def _trace(columns: int, product: Callable[[list[arb]], list[arb]]) -> tuple[arb, arb]:
    """Trace, and sum of the principal 2-by-2 minors, of a linear map given as a function."""
    unit = [product([arb(int(i == j)) for i in range(columns)]) for j in range(columns)]
    trace = sum((unit[i][i] for i in range(columns)), arb(0))
    pairs = [(i, j) for i in range(columns) for j in range(i)]
    return trace, sum((unit[i][i] * unit[j][j] - unit[i][j] * unit[j][i] for i, j in pairs), arb(0))


def _blocks(p: arb, m: int) -> tuple[arb, arb, tuple[arb, arb], arb | None]:
    """Growth, multiplier in the class, (trace, determinant) of the standard block, multiplier of the pairs.

    The Jacobian of S -> V(GSG) on symmetric matrices invariant under permutations of the others (4 numbers; rank 2,
    one multiplier is the scale's) and on those of the standard type: 11: 0, 1i: a w_i, ii: b w_i, ij: g (w_i + w_j).
    """
    n, c, q = m + 1, _cosine(p, m), p / m
    keep, turn = slope(c), (1 - c * c).sqrt() / (2 * arb.pi())
    keep_1, turn_1 = slope(-q), (1 - q * q).sqrt() / (2 * arb.pi())
    growth = _centered([p * p, arb(1), relu_cosine(c), p * relu_cosine(-q)], m)[1]

    def invariant(entries: list[arb]) -> list[arb]:
        first, diagonal, pair, mixed = _centered(entries, m)
        return [
            first,
            diagonal,
            keep * pair + 2 * turn * diagonal,
            keep_1 * mixed + turn_1 * (p * diagonal + first / p),
        ]

    def standard(entries: list[arb]) -> list[arb]:
        a, b, g = [*entries, arb(0)][:3]  # two others have no g: w_2 + w_3 = 0
        row = (a + b + (m - 2) * g) / n
        a, b, g = a - row, b - 2 * row, g - row
        image = [keep_1 * a + turn_1 * p * b, b, keep * g + turn * b]
        return image if m > 2 else image[:2]

    trace = _trace(4, invariant)[0]
    standard_trace, minors = _trace(3 if m > 2 else 2, standard)
    block = (standard_trace / growth, minors / (growth * growth))
    return growth, trace / growth - 1, block, keep / growth if m > 3 else None


def _inside(enclosure: arb, claim: Interval, where: str) -> None:
    inside = bool(enclosure >= ball(claim[0])) and bool(enclosure <= ball(claim[1]))
    require(inside, f"{where}: the claimed interval does not contain the checker's enclosure {enclosure.str(8)}.")


def _within_radius(trace: arb, determinant: arb, radius: Fraction) -> bool:
    """Whether both roots of x^2 - trace x + determinant have modulus at most radius."""
    r = ball(radius)
    return bool(abs(determinant) <= r * r) and bool(abs(trace) * r <= r * r + determinant)


def _root(entry: object, box: Interval, m: int, where: str) -> Root:
    name = field(entry, "name", str, where)
    where = f"{where}, {name} state"
    slope = "-" if name == "separatrix" else "+"
    low, high = interval(field(entry, "norm_ratio", list, where), f"{where}, norm_ratio")
    require(box[0] <= low <= high <= box[1], f"{where}: the root's enclosure lies outside its box.")
    unique = _signed(slope, *box, m, True, 12)
    require(unique, f"{where}: F' does not keep its sign on the root's box, so the root may not be the only one.")
    point = ball(low, high)
    if name == "symmetric":
        require(low == high == 1, f"{where}: the symmetric state has norm ratio 1 exactly.")
    else:
        before, after = ("-", "+") if slope == "+" else ("+", "-")
        change = _signed(before, low, low, m, False, 0) and _signed(after, high, high, m, False, 0)
        require(change, f"{where}: F does not change its sign between the ends of the root's enclosure.")
    growth, multiplier, block, pairs = _blocks(point, m)
    read = ("name", "norm_ratio", "multiplier", "growth", "standard")
    read += () if pairs is None else ("pairs",)
    only_fields(entry, read if name == "separatrix" else (*read, "spectral_radius"), where)
    claims = {key: interval(field(entry, key, list, where), f"{where}, {key}") for key in ("multiplier", "growth")}
    _inside(multiplier, claims["multiplier"], f"{where}, multiplier")
    _inside(growth, claims["growth"], f"{where}, growth")
    if pairs is not None:
        claims["pairs"] = interval(field(entry, "pairs", list, where), f"{where}, pairs")
        _inside(pairs, claims["pairs"], f"{where}, pairs")
    standard = exact(field(entry, "standard", str, where), f"{where}, standard")
    bounded = 0 < standard < 1 and _within_radius(*block, standard)
    require(bounded, f"{where}: the standard block's multipliers are not within the claimed bound {standard}.")
    radius = None
    if name == "separatrix":
        require(claims["multiplier"][0] > 1, f"{where}: the multiplier is not shown to exceed 1.")
    else:
        radius = exact(field(entry, "spectral_radius", str, where), f"{where}, spectral_radius")
        ends = [*claims["multiplier"], *claims.get("pairs", ()), standard]
        bounded = radius < 1 and all(abs(end) <= radius for end in ends)
        require(bounded, f"{where}: the spectral radius is not shown to be at most {radius} and below 1.")
    return Root(name, (low, high), claims["multiplier"], standard, claims.get("pairs"), claims["growth"], radius)


def _ends_by_hand(first: Interval, last: Interval, m: int, where: str) -> None:
    """The two local zones: next to u = infinity (p = 0) and to the collapsed cluster (p = m), by monotone bounds."""
    n, a, b = m + 1, ball(first[1]), ball(last[0])
    least = (1 + (m - 1) * relu_cosine(arb(-1) / (m - 1))) / m
    far = (arb(n * n) / (m * m)) * a * a + 2 * a / arb.pi() - least
    require(bool(far < 0), f"{where}: the inequality of the local zone at p = 0 does not hold up to {first[1]}.")
    near = slope(_cosine(b, m)) - arb(m * m) / (n * n) * (1 + 1 / (b * b))
    require(bool(near > 0), f"{where}: the inequality of the local zone at p = m does not hold from {last[0]}.")


def check_single(entry: object, n: int) -> BatchSize:
    """Verify the certificate's entry for one batch size n.

    Raises:
        CertificateError: in one sentence, the first thing that is wrong.

    Example:
        >>> check_single({"n": 8}, 7)
        Traceback (most recent call last):
        ...
        bnlib.proof_check_reading.CertificateError: n = 7: the entry is for n = 8 instead.
    """
    with ctx.workprec(BITS):
        return _check_single(entry, n)


def _check_single(entry: object, n: int) -> BatchSize:
    where = f"n = {n}"
    require(field(entry, "n", int, where) == n, f"{where}: the entry is for n = {entry['n']} instead.")
    only_fields(entry, ("n", "boxes", "roots"), where)
    m, edge, roots = n - 1, Fraction(0), []
    boxes, claimed = field(entry, "boxes", list, where), field(entry, "roots", list, where)
    require(len(boxes) >= 3, f"{where}: fewer than three boxes cannot cover the line.")
    previous = "-"
    for index, box in enumerate(boxes):
        here = f"{where}, box {index + 1}"
        require(isinstance(box, list) and len(box) == 3, f"{here}: expected [left, right, kind], got {box!r}.")
        left, right = interval(box[:2], here)
        require(left == edge and left < right, f"{here}: it begins at {left}, not where the one before ends, {edge}.")
        edge, kind = right, box[2]
        if kind == "root":
            require(len(roots) < len(claimed), f"{here}: there are more root boxes than roots.")
            roots.append(_root(claimed[len(roots)], (left, right), m, where))
            after = "-" if roots[-1].name == "separatrix" else "+"
            require(previous != after, f"{here}: a root's box must lie between boxes of opposite signs.")
            previous = after
            continue
        require(kind in ("+", "-"), f"{here}: the kind must be '+', '-' or 'root', got {kind!r}.")
        require(kind == previous, f"{here}: the sign changes without a root's box.")
        if 0 < index < len(boxes) - 1:
            require(_signed(kind, left, right, m, False, 6), f"{here}: F does not have the claimed sign '{kind}'.")
    require(edge == m, f"{where}: the boxes end at {edge}, not at n - 1.")
    require(boxes[0][2] == "-" and boxes[-1][2] == "+", f"{where}: the end boxes must have the signs '-' and '+'.")
    _ends_by_hand(interval(boxes[0][:2], where), interval(boxes[-1][:2], where), m, where)
    names = ["symmetric"] if n < FIRST_WITH_OUTLIER else ["symmetric", "separatrix", "outlier"]
    found = [root.name for root in roots]
    require(found == names and len(claimed) == len(names), f"{where}: the roots must be {names}, got {found}.")
    return BatchSize(n, len(boxes), tuple(roots))


# ------------------------------------------------------------------------------------------ the whole certificate


def check(certificate: object) -> Verified:
    """Verify Theorem 14' from a certificate.

    Args:
        certificate: the parsed JSON file, numbers as text ("13/8", "0.75").

    Returns:
        What was verified.

    Raises:
        CertificateError: in one sentence, the first thing that is wrong.

    Example:
        >>> check({"schema": SCHEMA})
        Traceback (most recent call last):
        ...
        bnlib.proof_check_reading.CertificateError: The certificate: the field 'statement' is missing.
    """
    schema = field(certificate, "schema", str, "The certificate")
    require(schema == SCHEMA, f"The certificate's schema must be '{SCHEMA}', got {schema!r}.")
    statement = field(certificate, "statement", str, "The certificate")
    require(statement == STATEMENT, "The certificate's statement is not the theorem that this checker verifies.")
    only_fields(certificate, ("schema", "statement", "single", "larger"), "The certificate")
    single = field(certificate, "single", list, "The certificate")
    sizes = range(3, LAST_SINGLE + 1)
    whole = len(single) == len(sizes)
    require(whole, f"The certificate must treat n = 3 to {LAST_SINGLE} one by one, got {len(single)} entries.")
    larger = check_larger(field(certificate, "larger", dict, "The certificate"), LAST_SINGLE)
    return Verified(tuple(check_single(entry, n) for entry, n in zip(single, sizes, strict=True)), larger)


def _no_constant(name: str) -> None:
    raise CertificateError(f"The certificate holds {name}, which is not an exact number.")


def check_file(path: Path | str) -> Verified:
    """Read a certificate and verify it, as `check`.

    Args:
        path: the JSON file.

    Returns:
        What was verified.

    Raises:
        CertificateError: also if the file is missing or not complete JSON.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CertificateError(f"The certificate {path} cannot be read: {error}.") from None
    try:
        certificate = json.loads(text, parse_constant=_no_constant, object_pairs_hook=unrepeated)
    except CertificateError:
        raise
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"The certificate {path} is not complete JSON: {error}.") from None
    return check(certificate)


def _shown(bound: Fraction, digits: int, down: bool = False) -> str:
    """A bound as a decimal, rounded away from what it bounds: up, or down for a lower bound."""
    scaled = bound * 10**digits
    whole = math.floor(scaled) if down else math.ceil(scaled)
    text = f"{abs(whole) // 10**digits}.{abs(whole) % 10**digits:0{digits}d}"
    return f"-{text}" if whole < 0 else text


def summary(verified: Verified) -> str:
    """A few lines on what was verified, for a terminal."""
    outliers = [(case.n, root) for case in verified.single for root in case.roots if root.name == "outlier"]
    n, worst = max(outliers, key=lambda pair: pair[1].radius)
    larger = verified.larger
    low, high = _shown(larger.deficit[0], 3, down=True), _shown(larger.deficit[1], 3)
    lines = [
        f"n = 3 to {LAST_SINGLE}: all fixed points of the class on the whole line are enclosed. An outlier state",
        f"  exists from n = {outliers[0][0]} on; it is the only one, and its spectral radius in all directions is",
        f"  at most {_shown(worst.radius, 6)} (at n = {n}).",
        f"n >= {larger.first}: exactly one outlier state, of norm ratio sqrt((n-1)^2 - z^2) with z from {low} to",
        f"  {high}, and of spectral radius at most 1 - {_shown(larger.gap, 4, down=True)}/(n - 1).",
    ]
    return "\n".join(lines)


def main(arguments: Iterable[str] | None = None) -> int:
    """Check a file; 0 if the theorem is verified, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Verify a certificate of Theorem 14' in ball arithmetic.")
    parser.add_argument("certificate", type=Path)
    path = parser.parse_args(None if arguments is None else list(arguments)).certificate
    started = time.monotonic()
    try:
        verified = check_file(path)
    except CertificateError as error:
        print(f"NOT VERIFIED. {error}", file=sys.stderr)
        return 1
    print(f"VERIFIED: {STATEMENT}")
    print(summary(verified))
    print(f"{verified.boxes} boxes, {BITS} bits, {time.monotonic() - started:.1f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
