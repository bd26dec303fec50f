r"""Exact numbers in, floats out: batches of rationals, and roots, logarithms, norms and angles of huge integers.

The exact tree works with integers of thousands of digits. Here they become floats, each by one rounding: a ratio is
formed from integers first, and only a number that is known to lie in the range of a float is converted.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from bnlib.parameters import ParameterError, rationals

# Batches come from outside, so the functions themselves say what is wrong with one.
Batch = Any

_LARGEST_EXPONENT = 10_000


@dataclass(frozen=True)
class SortedBatch:
    """A batch as integers, sorted and without repetitions.

    Attributes:
        exact: the n batch values, in the order in which they were given.
        values: the m distinct values, ascending, shifted and scaled to integers without a common factor; the
            first is 0.
        counts: how many samples have each of these values, shape (m,).
        groups: for each sample the index of its value, shape (n,).
        unit: length of 1 in `values`, in the unit of the batch.
    """

    exact: tuple[Fraction, ...]
    values: tuple[int, ...]
    counts: tuple[int, ...]
    groups: tuple[int, ...]
    unit: Fraction


@dataclass(frozen=True)
class Geometry:
    """Norms and angles of the n samples across the neurons of a layer.

    Attributes:
        norms: shape (n,), scaled so that the squares sum to 1.
        angles: shape (n, n), radians; nan where a sample is zero.
        norm_max: norm of the samples with the largest input value.
        norm_min: norm of the samples with the smallest input value.
        norm_interior: largest norm among all other samples; None if there are none.
        angle_extremes: angle between the largest and the smallest input value, radians.
        gap: largest distance to pi/2 (radians) of the angle between the escaped point and a non-zero interior
            sample; None if there is none. The escaped point is the extreme of larger norm, the maximum if equal.
    """

    norms: np.ndarray
    angles: np.ndarray
    norm_max: float
    norm_min: float
    norm_interior: float | None
    angle_extremes: float
    gap: float | None


def parse_batch(batch: Batch) -> tuple[Fraction, ...]:
    """Turn numbers or strings such as "7/2" into exact rationals.

    A float stands for the binary fraction that it is; write "0.1" for one tenth.

    Args:
        batch: at least two finite real numbers or strings, not all equal; a one-dimensional array will do.

    Returns:
        The n values as `fractions.Fraction`, in the given order.

    Raises:
        ValueError: if the batch is not a list, is empty, has one entry, has an entry that is not a finite number, or
            if all entries are equal.

    Example:
        >>> parse_batch([1, "7/2", 0.5])
        (Fraction(1, 1), Fraction(7, 2), Fraction(1, 2))
    """
    if hasattr(batch, "tolist"):
        batch = batch.tolist()
    if isinstance(batch, (str, bytes, dict)) or not isinstance(batch, Iterable):
        raise ValueError(f'batch is {batch!r:.60}; give a list of numbers or of strings such as "7/2".')
    exact = tuple(_parse_number(entry, index) for index, entry in enumerate(batch))
    if len(exact) < 2:
        entries = "is empty" if not exact else "has only one entry"
        raise ValueError(f"batch {entries}; recentering needs at least two samples.")
    if len(set(exact)) == 1:
        raise ValueError(f"batch has {len(exact)} equal entries; the tree needs at least two different values.")
    return exact


def batch_parameter(name: str, value: Any) -> list[Fraction]:
    """Check a notebook's parameter that holds a batch: at least two exact numbers, not all equal.

    A decimal is read as it is written (0.1 is one tenth), as in `bnlib.parameters.rationals`.

    Args:
        name: the parameter's name.
        value: what was given: a list, or a string that holds one in JSON.

    Returns:
        The values.

    Raises:
        ParameterError: if it is not such a list, in one sentence.

    Example:
        >>> batch_parameter("batch", '[0, 0.1, "7/2"]')
        [Fraction(0, 1), Fraction(1, 10), Fraction(7, 2)]
    """
    exact = rationals()(name, value)
    if len(set(exact)) == 1:
        raise ParameterError(f"parameter {name} is {value!r}, but it must hold at least two different numbers")
    return exact


def sort_batch(batch: Batch) -> SortedBatch:
    """Return the batch as distinct sorted integers: nothing here depends on where zero is or on the unit.

    Args:
        batch: n numbers or strings such as "7/2", see `parse_batch`.

    Returns:
        The `SortedBatch`.

    Raises:
        ValueError: if the batch is not valid.

    Example:
        >>> found = sort_batch(["7/2", 1, 1, 2])
        >>> found.values, found.counts, found.groups, found.unit
        ((0, 2, 5), (2, 1, 1), (2, 0, 0, 1), Fraction(1, 2))
    """
    exact = parse_batch(batch)
    distinct = sorted(set(exact))
    index = {value: g for g, value in enumerate(distinct)}
    groups = tuple(index[value] for value in exact)
    denominator = math.lcm(*(value.denominator for value in distinct))
    integers = [int((value - distinct[0]) * denominator) for value in distinct]
    factor = math.gcd(*integers)
    return SortedBatch(
        exact=exact,
        values=tuple(z // factor for z in integers),
        counts=tuple(np.bincount(groups).tolist()),
        groups=groups,
        unit=Fraction(factor, denominator),
    )


def _parse_number(entry, index: int) -> Fraction:
    """One exact rational; the ValueError names the entry."""
    if hasattr(entry, "item") and not isinstance(entry, (float, int)):
        entry = entry.item()
    try:
        if isinstance(entry, str):
            exponent = re.search(r"[eE]([+-]?\d+)\s*$", entry)
            # Fraction("1e999999999") would fill the memory before it fails.
            if exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT:
                raise ValueError
            return Fraction(entry)
        if isinstance(entry, bool) or not isinstance(entry, (int, float, Rational)):
            raise ValueError
        return Fraction(entry)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ValueError(
            f'batch[{index}] is {entry!r:.60}; each entry must be a finite number or a string such as "7/2".'
        ) from None


def geometry_from_gram(gram: list[list[int]], counts: tuple[int, ...], groups: tuple[int, ...]) -> Geometry:
    """Return norms and angles from an exact Gram matrix of classes of equal samples.

    Args:
        gram: m x m integers, in any unit; class 0 holds the smallest input value, class m - 1 the largest.
        counts: how many samples are in each class, shape (m,).
        groups: for each sample its class, shape (n,).

    Returns:
        The `Geometry` of the n samples; angles in radians, each number correct to a few units in the last place.

    Example:
        >>> geometry_from_gram([[4, 2, 0], [2, 1, 0], [0, 0, 9]], (1, 1, 1), (0, 1, 2)).norm_max ** 2 * 14
        9.0
    """
    m = len(gram)
    trace = sum(count * gram[g][g] for g, count in enumerate(counts))
    norms = np.array([sqrt_ratio(gram[g][g], trace) for g in range(m)])
    angles = np.zeros((m, m))
    for i in range(m):
        for j in range(i, m):
            angles[i, j] = angles[j, i] = _angle(gram[i][i], gram[j][j], gram[i][j])
    escaped = m - 1 if gram[-1][-1] >= gram[0][0] else 0
    interior = range(1, m - 1)
    gaps = [_gap(gram[escaped][escaped], gram[g][g], gram[escaped][g]) for g in interior if gram[g][g]]
    return Geometry(
        norms=norms[list(groups)],
        angles=angles[np.ix_(groups, groups)],
        norm_max=float(norms[-1]),
        norm_min=float(norms[0]),
        norm_interior=float(max(norms[1:-1])) if m > 2 else None,
        angle_extremes=float(angles[0, -1]),
        gap=max(gaps) if gaps else None,
    )


def _sine_cosine(a: int, b: int, dot: int) -> tuple[float, float]:
    """Sine and cosine of the angle between vectors of squared norms a, b: each to full relative accuracy."""
    return sqrt_ratio(a * b - dot * dot, a * b), sqrt_ratio(dot * dot, a * b)


def _angle(a: int, b: int, dot: int) -> float:
    if not (a and b):
        return math.nan
    return math.atan2(*_sine_cosine(a, b, dot))


def _gap(a: int, b: int, dot: int) -> float:
    return math.atan2(*reversed(_sine_cosine(a, b, dot)))


def sqrt_ratio(numerator: int, denominator: int) -> float:
    """Return sqrt(numerator / denominator) as a float, for integers of any size.

    Args:
        numerator: a non-negative integer.
        denominator: a positive integer.

    Returns:
        The root, with a relative error below 2 ** -52 where it is a normal float.

    Raises:
        ValueError: if the numerator is negative or the denominator is not positive.

    Example:
        >>> sqrt_ratio(10 ** 1000, 4 * 10 ** 1000)
        0.5
    """
    if numerator < 0 or denominator <= 0:
        raise ValueError("sqrt_ratio needs a non-negative numerator and a positive denominator.")
    if numerator == 0:
        return 0.0
    # The quotient gets at least 126 bits, so its integer root has at least 63: more than a float holds.
    shift = 128 - numerator.bit_length() + denominator.bit_length()
    shift += shift % 2
    quotient = (numerator << shift) // denominator if shift >= 0 else numerator // (denominator << -shift)
    return math.ldexp(math.isqrt(quotient), -shift // 2)


def log_ratio(numerator: int, denominator: int) -> float:
    """Return the natural logarithm of numerator / denominator, for positive integers of any size.

    Args:
        numerator: a positive integer.
        denominator: a positive integer.

    Returns:
        The logarithm; the integers are never turned into floats.

    Raises:
        ValueError: if either is not positive.

    Example:
        >>> round(log_ratio(10 ** 1000, 1) / 1000, 6)
        2.302585
    """
    if numerator <= 0 or denominator <= 0:
        raise ValueError("log_ratio needs two positive integers.")
    shift = numerator.bit_length() - denominator.bit_length()
    wide = max(0, -shift)
    return math.log((numerator << wide) / (denominator << (wide + shift))) + shift * math.log(2)
