"""Prove Theorem 14' in ball arithmetic and write the certificate that `bnlib.proof_check` verifies (chapter 7).

For n = 3 to 64 the line of norm ratios 0 < p < n - 1 is covered by boxes on which A has one sign, or one root. All
n >= 65 are treated at once, `bnlib.proof_larger`. Every end point is a dyadic or decimal number, written exactly.

Run: `python -m bnlib.proof --output results/proof/theorem_14.json`.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from flint import arb, ctx

from bnlib import proof_angles, proof_larger
from bnlib.progress import progress
from bnlib.proof_angles import BITS, ball

SCHEMA = "bnlib theorem-14 certificate 1"
STATEMENT = (
    "For every integer n >= 7 the infinite-width map of recentering and ReLU has, up to scale and apart from the "
    "collapsed cluster, exactly one stable fixed point with one distinguished sample of larger norm and n - 1 "
    "equivalent others; its spectral radius in all n(n + 1)/2 directions, scale removed, is below 1. For 3 <= n <= 6 "
    "it has no fixed point of this kind. The symmetric fixed point has a spectral radius below 1 for every n >= 3."
)
LAST_SINGLE = 64

_ROOT_BITS = 48  # a root's enclosure has the width 2^-47
_SLACK = Fraction(1, 10**9)  # claimed intervals leave this much room for the checker's other arithmetic
_DEEPEST = 40

Interval = tuple[Fraction, Fraction]


class ProofError(ValueError):
    """A box cannot be closed."""


def _angle(box: Interval, m: int) -> arb:
    """The angles phi of a box of norm ratios."""
    low, high = ((ball(end) / m).acos() if end < m else arb(0) for end in reversed(box))
    return low.union(high)


def _sign(box: Interval, m: int, depth: int, rate: bool = False) -> str | None:
    """The sign of F (or of F') on a box, "+" or "-", or None; F' has the opposite sign of A'."""
    phi = _angle(box, m)
    if rate:
        values = [-proof_angles.balance_rate(phi, m)]
    else:
        values = [proof_angles.balance(phi, m)]
        if box[0] > 0 and box[1] < m:
            middle = arb(phi.mid())
            values.append(proof_angles.balance(middle, m) + proof_angles.balance_rate(phi, m) * (phi - middle))
    for value in values:
        if value > 0:
            return "+"
        if value < 0:
            return "-"
    if depth == 0:
        return None
    middle = sum(box) / 2
    first = _sign((box[0], middle), m, depth - 1, rate)
    return first if first and first == _sign((middle, box[1]), m, depth - 1, rate) else None


def _dyadic(x: float | Fraction, bits: int) -> Fraction:
    return Fraction(round(x * 2**bits), 2**bits)


def _refine(low: Fraction, high: Fraction, m: int) -> Interval:
    """Bisect a sign change of F down to an enclosure of width 2^(1 - _ROOT_BITS)."""
    before = _sign((low, low), m, 0)
    while high - low > Fraction(1, 2**_ROOT_BITS):
        middle = (low + high) / 2
        if before == _sign((middle, middle), m, 0):
            low = middle
        else:
            high = middle
    center, reach = _dyadic((low + high) / 2, _ROOT_BITS), Fraction(1, 2**_ROOT_BITS)
    return center - reach, center + reach


def _guess(p: float, m: int) -> float:
    """A in floating point, to find where to look; nothing rests on it."""
    phi = math.acos(p / m)
    theta = 2 * math.asin(min(1.0, math.sqrt(m / (2 * (m - 1))) * math.sin(phi)))
    loss = (math.sin(theta) - theta * math.cos(theta)) / (math.pi * (1 - math.cos(theta)))
    cosine, sine = math.cos(phi), math.sin(phi)
    image = 2 * m * cosine * (cosine + (sine - phi * cosine) / math.pi)
    return image - loss * ((m + 1) ** 2 * cosine**2 + sine**2)


def _sign_changes(m: int) -> list[Interval]:
    """Where A changes its sign on a grid: only a guess, which the boxes confirm or refuse."""
    coarse = [Fraction(2 * i + 1, 256) for i in range(128 * m - 1)]
    fine = [1 + Fraction(2 * i + 1, 64 * m) for i in range(-32, 256)]  # the separatrix lies near 1 + 1.2/n
    grid = sorted({p for p in coarse + fine if p < m})  # never hits p = 1
    positive = [_guess(float(p), m) > 0 for p in grid]
    return [(grid[i], grid[i + 1]) for i in range(len(grid) - 1) if positive[i] != positive[i + 1]]


def _root_box(root: Interval, others: list[Interval], m: int) -> Interval:
    """A box around a root on which F' keeps its sign, as wide as halving finds it."""
    center = sum(root) / 2
    nearest = min([abs(center - sum(other) / 2) for other in others] + [center, m - center])
    width = nearest / 2
    for _ in range(_DEEPEST):
        box = _dyadic(center - width, 20), _dyadic(center + width, 20)
        if box[0] < root[0] and root[1] < box[1] and _sign(box, m, 3, rate=True):
            return box
        width /= 2
    raise ProofError(f"n = {m + 1}: no box around the root near {float(center):.6f} has a derivative of one sign.")


def _local_zones(m: int) -> Interval:
    """Ends of the two local zones: p from 0, where u is large, and up to m, where the cluster collapses."""
    n = m + 1
    outer = arb.pi() - (arb(-1) / (m - 1)).acos()
    least = 1 / arb(m) + (m - 1) * proof_angles.hump(outer) / (m * arb.pi())  # J(-cos x) = S(x)/pi
    first = Fraction(1)
    while not (arb(n * n) / (m * m)) * ball(first) ** 2 + 2 * ball(first) / arb.pi() < least:
        first -= Fraction(1, 64)
    width = Fraction(m)
    while True:
        last = m - width
        if last > 1:
            theta, _ = proof_angles.cluster_angle((ball(last) / m).acos(), m)
            if 1 - theta / arb.pi() > arb(m * m) / (n * n) * (1 + 1 / ball(last) ** 2):
                return first, last
        width *= Fraction(7, 8) if width.denominator < 2**20 else Fraction(1, 2)


def _cover(low: Fraction, high: Fraction, m: int, boxes: list[list[str]], depth: int = 0) -> None:
    sign = _sign((low, high), m, 2)
    if sign:
        boxes.append([str(low), str(high), sign])
        return
    if depth > _DEEPEST:
        raise ProofError(f"n = {m + 1}: the box from {float(low)} to {float(high)} cannot be closed.")
    middle = _dyadic((low + high) / 2, 24)
    _cover(low, middle, m, boxes, depth + 1)
    _cover(middle, high, m, boxes, depth + 1)


def _decimal(x: arb, up: bool, digits: int = 12) -> str:
    """A decimal bound of x, `_SLACK` beyond it."""
    end = x.upper() if up else x.lower()
    exact = end.fmpq()
    value = (Fraction(int(exact.p), int(exact.q)) + (_SLACK if up else -_SLACK)) * 10**digits
    whole = math.ceil(value) if up else math.floor(value)
    return f"{'-' if whole < 0 else ''}{abs(whole) // 10**digits}.{abs(whole) % 10**digits:0{digits}d}"


def _claims(name: str, root: Interval, m: int) -> dict[str, object]:
    growth, along, standard, pairs = proof_angles.multipliers(_angle(root, m), m)
    entry = {
        "name": name,
        "norm_ratio": [str(end) for end in root],
        "multiplier": [_decimal(along, False), _decimal(along, True)],
        "growth": [_decimal(growth, False), _decimal(growth, True)],
        "standard": _decimal(standard, True),
    }
    if m > 3:
        entry["pairs"] = [_decimal(pairs, False), _decimal(pairs, True)]
    if name != "separatrix":
        bounds = [entry["multiplier"][1], entry["standard"], entry.get("pairs", ["0", "0"])[1]]
        entry["spectral_radius"] = max(bounds, key=Fraction)
    return entry


def prove_single(n: int) -> dict[str, object]:
    """Count and enclose all fixed points of the class for one batch size n from 3 on, and bound their multipliers.

    Args:
        n: batch size, 3 or more.

    Returns:
        The certificate's entry: exact numbers as text.

    Raises:
        ProofError: (a ValueError) if a box cannot be closed; it is named.
        ValueError: if n is not a whole number from 3 on.

    Example:
        >>> [root["name"] for root in prove_single(7)["roots"]]
        ['symmetric', 'separatrix', 'outlier']
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 3:
        raise ValueError(f"n must be a whole number of samples, 3 or more, got {n}.")
    with ctx.workprec(BITS):
        m = n - 1
        roots = []
        for low, high in _sign_changes(m):
            roots.append((Fraction(1), Fraction(1)) if low < 1 < high else _refine(low, high, m))
        names = ["symmetric"] if len(roots) == 1 else ["symmetric", "separatrix", "outlier"]
        if len(roots) != len(names):
            raise ProofError(f"n = {n}: {len(roots)} sign changes were found, but 1 or 3 were expected.")
        first, last = _local_zones(m)
        boxes: list[list[str]] = [["0", str(first), "-"]]
        edge = first
        for root in roots:
            left, right = _root_box(root, [other for other in roots if other is not root], m)
            _cover(edge, max(left, edge), m, boxes)
            boxes.append([str(left), str(right), "root"])
            edge = right
        _cover(edge, last, m, boxes)
        boxes.append([str(last), str(m), "+"])
        claims = [_claims(name, root, m) for name, root in zip(names, roots, strict=True)]
        return {"n": n, "boxes": boxes, "roots": claims}


def prove(last_single: int = LAST_SINGLE) -> dict[str, object]:
    """The whole certificate: n = 3 to `last_single` one by one, all larger n at once."""
    single = [prove_single(n) for n in progress(range(3, last_single + 1), "batch sizes")]
    return {
        "schema": SCHEMA,
        "statement": STATEMENT,
        "single": single,
        "larger": proof_larger.prove_larger(last_single + 1),
    }


def certificate_text(certificate: dict[str, object]) -> str:
    """The certificate as JSON: one box or root a line, the same text for the same proof on every machine."""
    larger = certificate["larger"]

    def rows(items: Iterable[object], indent: int) -> str:
        return ",\n".join(" " * indent + json.dumps(item) for item in items)

    lines = [
        f'{{"schema": {json.dumps(certificate["schema"])},',
        f' "statement": {json.dumps(certificate["statement"])},',
    ]
    entries = []
    for entry in certificate["single"]:
        boxes, roots = rows(entry["boxes"], 3), rows(entry["roots"], 3)
        entries.append(f'  {{"n": {entry["n"]}, "boxes": [\n{boxes}],\n   "roots": [\n{roots}]}}')
    lines.append(' "single": [\n' + ",\n".join(entries) + "],")
    fields = [
        f'  "{key}": [\n{rows(value, 3)}]' if isinstance(value, list) else f'  "{key}": {json.dumps(value)}'
        for key, value in larger.items()
    ]
    lines.append(' "larger": {\n' + ",\n".join(fields) + "}}")
    return "\n".join(lines) + "\n"


def main(arguments: Iterable[str] | None = None) -> int:
    """Write the certificate; 0 if every box closed, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Prove Theorem 14' in ball arithmetic and write its certificate.")
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args(None if arguments is None else list(arguments)).output
    started = time.monotonic()
    try:
        text = certificate_text(prove())
    except ProofError as error:
        print(f"NOT PROVED. {error}", file=sys.stderr)
        return 1
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    print(f"{output}: {len(text) / 1000:.0f} kB, {time.monotonic() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
