"""Families of batches summed up, the smallest counterexamples, and the dimension at which Theorem 11 fails."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from sympy import isprime

from bnlib.tree import layers
from bnlib.tree_families import BOUNDS, bound_squares, first_batch, integer_batches, limit_decisions, verify
from bnlib.tree_forest import equal_ratio_square
from bnlib.tree_limit import limit
from bnlib.tree_survey import KINDS, make_batch

# Each of these counts is 0 if the chapter's lemmas are true.
CONTRADICTIONS = (
    "definition",
    "directions_beyond",
    "directions_off",
    "inside_grows",
    "four_values",
    "isolated_late",
    "isolated_lost",
    "energy_falls",
    "not_nested",
    "asymmetric",
    "disagree",
)


def family_rows(n: int, largest: int) -> list[dict]:
    """Verify every batch of n integers up to a largest value (see `bnlib.tree_families.verify`).

    Args:
        n: batch size, at least 3.
        largest: the largest value, at least 2.

    Returns:
        One row a batch.

    Raises:
        ValueError: n < 3 or `largest` < 2.

    Example:
        >>> len(family_rows(3, 4)), len(family_rows(4, 2))
        (5, 3)
    """
    return [verify(batch) for top in range(2, largest + 1) for batch in integer_batches(n, top)]


def random_rows(n: int, draws: int, *, rng: np.random.Generator) -> list[dict]:
    """Verify random batches of every kind of the survey.

    Args:
        n: batch size, at least 4.
        draws: batches a kind, at least 1.
        rng: source of randomness.

    Returns:
        One row a batch.

    Raises:
        ValueError: n < 4 or `draws` < 1.

    Example:
        >>> len(random_rows(5, 1, rng=np.random.default_rng(0)))
        5
    """
    if draws < 1:
        raise ValueError(f"draws is {draws}; at least one batch a kind is needed.")
    rows = []
    for kind in KINDS:
        for _ in range(draws):
            batch = make_batch(kind, n, rng=rng)
            while len(set(batch)) < 3:
                batch = make_batch(kind, n, rng=rng)
            rows.append(verify(batch))
    return rows


def family_cell(rows: Sequence[dict]) -> dict[str, float | int | None]:
    """Sum up what `verify` found for batches of one size.

    Args:
        rows: what `family_rows` or `random_rows` returns; not empty.

    Returns:
        `n`, `batches`, `largest` (integer); the sums of `CONTRADICTIONS`, and `contradictions`, the sum of all of
        them; `symmetric` (symmetric batches); `inside_lost` (batches in which some cut hit a value), `extinct` (batches
        without any value left inside an interval), `prime_cases` and `prime_hits` (batches for which n is prime and
        does not divide the sum, and those of them with a hit); the largest `ratio_width`, `others`, and, over batches
        with unique extremes, `sharp_ratio` and `sharp_gap` (None without any); the number `unique` of those; over them
        `<bound>_fails` for each of `BOUNDS`, and the same over all others, `<bound>_tied`.

    Raises:
        ValueError: no rows.

    Example:
        >>> cell = family_cell(family_rows(4, 3))
        >>> cell["batches"], cell["isolated_late"], cell["ratio_larger_fails"]
        (10, 0, 0)
    """
    if not rows:
        raise ValueError("rows is empty; there is nothing to sum up.")
    unique = [row for row in rows if row["ties_low"] == row["ties_high"] == 1]
    tied = [row for row in rows if not row["ties_low"] == row["ties_high"] == 1]
    lost = [row for row in rows if row["inside_left"] < row["inside_start"]]
    n = rows[0]["n"]
    sizes = [float(row["largest"]) for row in rows]
    return {
        "n": n,
        "batches": len(rows),
        "largest": max(sizes),
        **{name: sum(row[name] or 0 for row in rows) for name in CONTRADICTIONS},
        "symmetric": sum(row["asymmetric"] is not None for row in rows),
        "inside_lost": len(lost),
        "extinct": sum(row["inside_left"] == 0 for row in rows),
        "contradictions": sum(row[name] or 0 for row in rows for name in CONTRADICTIONS),
        "prime_cases": sum(row["sum_modulo_n"] != 0 for row in rows) if isprime(n) else 0,
        "prime_hits": sum(row["sum_modulo_n"] != 0 for row in lost) if isprime(n) else 0,
        "ratio_width": max((row["ratio_width"] for row in rows if row["ratio_width"] is not None), default=None),
        "others": max(row["others"] for row in rows),
        "unique": len(unique),
        "sharp_ratio": max((row["sharp_ratio"] for row in unique), default=None),
        "sharp_gap": max((row["sharp_gap"] for row in unique), default=None),
        **{f"{name}_fails": sum(row[name] is False for row in unique) for name in BOUNDS},
        **{f"{name}_tied": sum(row[name] is False for row in tied) for name in BOUNDS},
    }


def _unique(batch: tuple[int, ...]) -> bool:
    return batch[0] < batch[1] and batch[-2] < batch[-1]


def _isolation_comes_late(batch: tuple[int, ...]) -> bool:
    """At the first layer with at most three values a neuron, no neuron isolates an extreme."""
    state = next(state for state in layers(batch, 40 * len(batch)) if state.max_distinct_values <= 3)
    return not (state.upper[-1] or state.lower[0])


def _fails(name: str) -> Callable[[tuple[int, ...]], bool]:
    return lambda batch: not limit_decisions(batch)[name]


# Name, sentence, least n and why nothing smaller will do, property, largest integer to try, distinct only, bound.
_SEARCHES = (
    ("meets_mean", "a cut meets a value", 3, "least n", lambda b: sum(b) == len(b) * b[1], 9, False, None),
    (
        "late_isolation",
        "at most three values, but no isolating neuron: L(t) is empty",
        4,
        "n = 3: the first cut isolates an extreme",
        _isolation_comes_late,
        9,
        False,
        None,
    ),
    (
        "one_end_tied",
        "(A+C)/(B+D) tends to 0 or infinity; one extreme joins the cluster",
        4,
        "n = 3: no interior with a tie",
        lambda b: (b[0] == b[1]) != (b[-2] == b[-1]),
        9,
        False,
        None,
    ),
    (
        "tied_ratio",
        "ratio beyond 3/(n-2), larger extreme, ties",
        7,
        "three ties at both ends are needed",
        _fails("ratio_larger"),
        9,
        False,
        "ratio_larger",
    ),
    (
        "tied_gap",
        "gap beyond sqrt(2 pi)/(n-2), larger extreme, ties",
        9,
        "four ties at both ends are needed",
        _fails("gap_larger"),
        9,
        False,
        "gap_larger",
    ),
    (
        "smaller_gap",
        "gap beyond sqrt(2 pi)/(n-2), smaller extreme, unique extremes",
        4,
        "n = 3: the bound exceeds 90 degrees",
        lambda b: _unique(b) and not limit_decisions(b)["gap_smaller"],
        40,
        False,
        "gap_smaller",
    ),
    (
        "smaller_gap_distinct",
        "the same, all values different",
        4,
        "n = 3: the bound exceeds 90 degrees",
        _fails("gap_smaller"),
        40,
        True,
        "gap_smaller",
    ),
    (
        "smaller_ratio",
        "ratio beyond 3/(n-2), smaller extreme, unique extremes",
        6,
        "n < 6: the bound is 1 or more",
        lambda b: _unique(b) and not limit_decisions(b)["ratio_smaller"],
        30,
        False,
        "ratio_smaller",
    ),
    (
        "smaller_ratio_distinct",
        "the same, all values different",
        6,
        "n < 6: the bound is 1 or more",
        _fails("ratio_smaller"),
        30,
        True,
        "ratio_smaller",
    ),
)


def smallest_counterexamples(names: Sequence[str] | None = None) -> dict[str, dict]:
    """Find the smallest integer batches for which a statement about the tree fails.

    Smallest in n, where a proof excludes smaller n (`reason`); then in the largest integer, by trying all; then the
    first in order. The limit decides, rigorously; `fails_at_depth` decides again, exactly, at depth 20 n.

    Args:
        names: which statements; by default all of them.

    Returns:
        For each statement: `says`, `n`, `reason`, `batch`, `tried` (batches examined), `bound` (a name of
        `bnlib.tree_families.BOUNDS`, or None) and `fails_at_depth` (None without a bound).

    Example:
        >>> smallest_counterexamples(["late_isolation"])["late_isolation"]["batch"]
        [0, 1, 2, 3]
    """
    found = {}
    for name, says, n, reason, wanted, largest, distinct, bound in _SEARCHES:
        if names is not None and name not in names:
            continue
        batch, tried = first_batch(n, wanted, largest, distinct=distinct)
        found[name] = {
            "says": says,
            "n": n,
            "reason": reason,
            "batch": list(batch),
            "tried": tried,
            "bound": bound,
            "fails_at_depth": verify(batch)[bound] is False if bound else None,
        }
    return found


def vanishing_extreme(n: int, powers: Sequence[int]) -> list[dict[str, float | int]]:
    """Follow the batches 0, 1, ..., 1, 10**p: their minimum joins the cluster as p grows.

    Args:
        n: batch size, at least 3.
        powers: the exponents p, each at least 1.

    Returns:
        One row a batch: `power`; `ratio` and `gap_deg`, interior sample against smaller extreme; `energy_ratio`.

    Example:
        >>> rows = vanishing_extreme(8, [1, 2])
        >>> rows[0]["ratio"] < rows[1]["ratio"] < 1
        True
    """
    rows = []
    for power in powers:
        found = limit([0, *[1] * (n - 2), 10**power])
        shape = found.geometry
        angle = float(shape.angles[0, 1])
        rows.append(
            {
                "power": power,
                "ratio": float(shape.norm_interior / shape.norm_min),
                "gap_deg": 90 - math.degrees(angle),
                "energy_ratio": found.energy_min / found.energy_max,
            }
        )
    return rows


def equal_gap_square(n: int, escaped: int) -> Fraction:
    """Return the squared sine of the gap, escaped point against cluster, when m points escape with equal energies.

    It is (m-1)**2 / (m ((n-1)**2 - 1 + m)), the largest for m escaped points, relative to the largest sample.

    Args:
        n: batch size, at least 3.
        escaped: m, from 1 to n - 1.

    Returns:
        A fraction.

    Example:
        >>> equal_gap_square(8, 2)
        Fraction(1, 100)
    """
    return equal_ratio_square(n, escaped) * Fraction((escaped - 1) ** 2, escaped**2)


def escaping_thresholds(n: int) -> dict[str, int | None]:
    """Return how many equal escaped points break Theorem 11's bounds, relative to the largest sample.

    Args:
        n: batch size, at least 3.

    Returns:
        `n`; `ratio` and `gap`, the least number m <= n - 1 of equal escaped points at which that bound fails in the
        limit; None if there is no such m.

    Raises:
        ValueError: n < 3.

    Example:
        >>> escaping_thresholds(13), escaping_thresholds(25)["ratio"]
        ({'n': 13, 'ratio': 12, 'gap': 10}, 10)
    """
    ratio, _, gap = bound_squares(n)
    found: dict[str, int | None] = {"n": n, "ratio": None, "gap": None}
    for m in range(n - 1, 0, -1):
        if equal_ratio_square(n, m) > ratio:
            found["ratio"] = m
        if equal_gap_square(n, m) > gap:
            found["gap"] = m
    return found


def sharp_constants(n: int) -> dict[str, float | int]:
    """Return the best bounds for unique extremes, relative to the larger one, as constants over n - 2.

    Args:
        n: batch size, at least 3.

    Returns:
        `n`; `ratio` and `gap` (radians), attained by every symmetric batch; both times n - 2: `ratio_constant`, below
        sqrt(2), and `gap_constant`, below 1 / sqrt(2).

    Raises:
        ValueError: n < 3.

    Example:
        >>> found = sharp_constants(8)
        >>> round(found["ratio"], 6), round(found["ratio_constant"], 6)
        (0.2, 1.2)
    """
    if n < 3:
        raise ValueError(f"n is {n}; an interior sample needs n of at least 3.")
    ratio, gap = math.sqrt(2 / ((n - 1) ** 2 + 1)), math.atan(1 / math.sqrt(2 * (n - 1) ** 2 + 1))
    return {"n": n, "ratio": ratio, "gap": gap, "ratio_constant": (n - 2) * ratio, "gap_constant": (n - 2) * gap}
