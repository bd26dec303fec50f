"""What chapter 7 shows of the proof of Theorem 14': the checker's verdict, tampering, a second opinion, the table."""

import copy
import json
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from bnlib.outlier_fixed_points import NoStateError, outlier_state, separatrix
from bnlib.proof_check import BITS, LAST_SINGLE, STATEMENT, CertificateError, Root, check
from bnlib.repository import repository_root
from bnlib.state_stability import class_stability, symmetric_stability

Certificate = dict[str, Any]


def load_certificate(path: Path | None = None) -> Certificate:
    """The certificate of record, or the one at `path`, unchecked.

    Example:
        >>> len(load_certificate()["single"])
        62
    """
    path = path or repository_root() / "results" / "proof" / "theorem_14.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _above(x: Fraction) -> float:
    """The smallest float that is not below x."""
    value = float(x)
    return value if Fraction(value) >= x else math.nextafter(value, math.inf)


def _below(x: Fraction) -> float:
    """The largest float that is not above x."""
    return -_above(-x)


def _up(x: Fraction | float, digits: int = 6) -> float:
    """A bound rounded up to some decimals, as it is shown."""
    return math.ceil(Fraction(x) * 10**digits) / 10**digits


def _root(root: Root) -> dict[str, Any]:
    return {
        "norm_ratio": float(sum(root.norm_ratio) / 2),
        "norm_ratio_error": _above((root.norm_ratio[1] - root.norm_ratio[0]) / 2),
        "multiplier": [_below(root.multiplier[0]), _above(root.multiplier[1])],
        "standard": _above(root.standard),
        "pairs": None if root.pairs is None else _above(root.pairs[1]),
        "growth": float(sum(root.growth) / 2),
        "spectral_radius": None if root.radius is None else _above(root.radius),
        "shown_radius": None if root.radius is None else _up(root.radius),
    }


def outcome(certificate: Certificate) -> dict[str, Any]:
    """Run the checker; plain values for a results file.

    Args:
        certificate: the parsed file.

    Returns:
        `verified`, the `refusal` (None if verified), and when verified: `statement`, `roots` (n -> name -> numbers; the
        bounds are rounded up), `larger` (`first`, `gap`, `deficit`, `ratio_split`), `boxes`, `bits`.

    Example:
        >>> outcome({})["refusal"]
        "The certificate: the field 'schema' is missing."
    """
    try:
        verified = check(certificate)
    except CertificateError as error:
        return {"verified": False, "refusal": str(error)}
    larger = verified.larger
    return {
        "verified": True,
        "refusal": None,
        "statement": STATEMENT,
        "roots": {str(case.n): {root.name: _root(root) for root in case.roots} for case in verified.single},
        "larger": {
            "first": larger.first,
            "gap": _below(larger.gap),
            "deficit": [_below(larger.deficit[0]), _above(larger.deficit[1])],
            "ratio_split": float(larger.ratio_split),
        },
        "boxes": verified.boxes,
        "bits": BITS,
    }


def _entry(certificate: Certificate, n: int) -> Certificate:
    return certificate["single"][n - 3]


def _outlier(certificate: Certificate, n: int) -> Certificate:
    return _entry(certificate, n)["roots"][2]


def _deny(certificate: Certificate) -> None:
    """Delete the outlier state of n = 7, and call everything beyond the separatrix negative."""
    entry = _entry(certificate, 7)
    last = max(index for index, box in enumerate(entry["boxes"]) if box[2] == "root")
    for box in entry["boxes"][last:]:
        box[2] = "-"
    del entry["roots"][2]


def _relabel(certificate: Certificate) -> None:
    certificate["single"][6 - 3] = {**_entry(certificate, 7), "n": 6}


def _remove(certificate: Certificate) -> None:
    del _entry(certificate, 7)["boxes"][5]


def _shrink(certificate: Certificate) -> None:
    root = _outlier(certificate, 7)
    low, high = (Fraction(end) for end in root["norm_ratio"])
    root["norm_ratio"] = [str(high - (high - low) / 1000), str(high)]


def _move(certificate: Certificate) -> None:
    box = _entry(certificate, 7)["boxes"][3]
    box[1] = str(Fraction(box[1]) + Fraction(1, 2**20))


_DAMAGES: dict[str, Callable[[Certificate], None]] = {
    "one end point moved by a millionth (n = 7)": _move,
    "one box removed (n = 7)": _remove,
    "the outlier state denied (n = 7)": _deny,
    "an outlier state claimed for n = 6": _relabel,
    "a root's radius shrunk (n = 7)": _shrink,
    "a smaller spectral radius claimed (n = 7)": lambda c: _outlier(c, 7).update(spectral_radius="0.94"),
    "a larger gap claimed for all n from 65 on": lambda c: c["larger"].update(gap="0.98"),
    "one box of the uniform part removed": lambda c: c["larger"]["middle_by_ratio"].pop(),
    "not a number": lambda c: _outlier(c, 7).update(standard="nan"),
    "another theorem": lambda c: c.update(statement=STATEMENT.replace("n >= 7", "n >= 6")),
    "another schema": lambda c: c.update(schema="2"),
}


def tampering(certificate: Certificate, damages: Iterable[str] | None = None) -> dict[str, str]:
    """What the checker says of damaged copies of a certificate.

    Args:
        certificate: the parsed file.
        damages: which ones, by name; all if None.

    Returns:
        Damage -> the sentence with which the copy is refused, or `accepted`.

    Example:
        >>> said = tampering(load_certificate(), ["another theorem"])
        >>> said["another theorem"]
        "The certificate's statement is not the theorem that this checker verifies."
    """
    said = {}
    for name in _DAMAGES if damages is None else damages:
        damaged = copy.deepcopy(certificate)
        _DAMAGES[name](damaged)
        try:
            check(damaged)
            said[name] = "accepted"
        except CertificateError as error:
            said[name] = str(error)
    return said


def second_opinion(
    roots: Mapping[str, Mapping[str, Mapping[str, Any]]], sizes: Iterable[int] | None = None
) -> dict[str, Any]:
    """Compare the verified numbers with the floating-point solvers of this chapter, which know nothing of the proof.

    Args:
        roots: as in `outcome`; nothing is compared where it is empty.
        sizes: the batch sizes that are solved; 3 to the last one of the certificate if None.

    Returns:
        `sizes_with_outlier` (the n for which the solver finds an outlier state, whatever the roots say), `compared`
        (how many of them stand among the roots), and over these `largest_ratio_difference` (relative, outlier and
        separatrix) and `largest_multiplier_difference` (the outlier state's spectral radius), None if there are none.

    Example:
        >>> found = second_opinion({}, [6, 7])
        >>> found["sizes_with_outlier"], found["compared"], found["largest_ratio_difference"]
        ([7], 0, None)
    """
    ratios, multipliers, found = [], [], []
    for n in range(3, LAST_SINGLE + 1) if sizes is None else sizes:
        try:
            state = outlier_state(n)
        except NoStateError:
            continue
        found.append(n)
        states = roots.get(str(n), {})
        if "outlier" not in states:
            continue
        between = separatrix(n).norm_ratio
        ratios.append(abs(state.norm_ratio / states["outlier"]["norm_ratio"] - 1))
        ratios.append(abs(between / states["separatrix"]["norm_ratio"] - 1))
        radius = class_stability(0.0, state.u, n).spectral_radius
        multipliers.append(abs(radius - states["outlier"]["spectral_radius"]))
    return {
        "sizes_with_outlier": found,
        "compared": len(multipliers),
        "largest_ratio_difference": max(ratios, default=None),
        "largest_multiplier_difference": max(multipliers, default=None),
    }


def larger_opinion(sizes: Iterable[int]) -> list[dict[str, Any]]:
    """What the floating-point solvers say of batches beyond the single ones of the certificate.

    Args:
        sizes: batch sizes.

    Returns:
        For each: `n`; `exists`; of the outlier state `gap`, (n - 1)(1 - spectral radius), and `deficit`,
        z = sqrt((n - 1)^2 - norm ratio^2), None where it does not exist; `symmetric_radius`.

    Raises:
        ValueError: a batch size below 3.

    Example:
        >>> [entry] = larger_opinion([65])
        >>> entry["gap"] > 0.95, 6.40 < entry["deficit"] < 6.67, entry["symmetric_radius"] < 1
        (True, True, True)
    """
    told = []
    for n in sizes:
        entry: dict[str, Any] = {"n": n, "exists": False, "gap": None, "deficit": None}
        entry["symmetric_radius"] = symmetric_stability(n).spectral_radius
        try:
            state = outlier_state(n)
        except NoStateError:
            told.append(entry)
            continue
        radius = class_stability(0.0, state.u, n).spectral_radius
        square = (n - 1.0) ** 2 - state.norm_ratio**2
        told.append(entry | {"exists": True, "gap": (n - 1) * (1 - radius), "deficit": math.sqrt(max(square, 0.0))})
    return told


def rows(roots: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[list[object]]:
    """Rows of the table of all batch sizes, as text; bounds are rounded up.

    Args:
        roots: as in `outcome`.

    Returns:
        Per n: n, the separatrix's and the outlier state's norm ratio, bounds on the outlier state's multipliers (class,
        cluster, pairs; the largest one bounds its spectral radius), bound on the symmetric state's spectral radius.

    Example:
        >>> rows({})
        []
    """
    table: list[list[object]] = []
    for n, states in roots.items():
        outlier, between = states.get("outlier"), states.get("separatrix")
        shown: list[object] = [None] * 5
        if outlier is not None and between is not None:
            ratios = (between["norm_ratio"], outlier["norm_ratio"])
            bounds = (outlier["multiplier"][1], outlier["standard"], outlier["pairs"])
            shown = [*(f"{ratio:.5f}" for ratio in ratios), *(f"{_up(bound, 5):.5f}" for bound in bounds)]
        table.append([int(n), *shown, f"{_up(states['symmetric']['spectral_radius'], 5):.5f}"])
    return table
