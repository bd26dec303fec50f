"""Differences between two treatments of the same seeds, with intervals."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binomtest
from scipy.stats import t as student

from bnlib.estimates import CONFIDENCE, median_interval


def paired_difference(first: Sequence[float | int | None], second: Sequence[float | int | None]) -> dict:
    """Summarize second minus first, seed by seed.

    Args:
        first: a value a seed, None where there is none.
        second: the same seeds under another treatment.

    Returns:
        "pairs" (seeds with both values), "mean" with its "standard_error" and 95 percent interval "mean_low",
        "mean_high" (Student), "median" with the order-statistic interval "low", "high" (see
        `bnlib.estimates.median_interval`), "positive" and "negative" (pairs by the sign), all None or 0 where there are
        too few pairs.

    Raises:
        ValueError: lists of different lengths.

    Example:
        >>> found = paired_difference([1.0, 2.0, 3.0, None], [2.0, 4.0, 6.0, 1.0])
        >>> found["pairs"], found["mean"], found["median"], found["positive"]
        (3, 2.0, 2.0, 3)
    """
    if len(first) != len(second):
        raise ValueError(f"second has {len(second)} entries; valid is one for each of the {len(first)} in first.")
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if _known(a) and _known(b)]
    changes = np.array([b - a for a, b in pairs], dtype=float)
    count = len(changes)
    found = {
        "pairs": count,
        "positive": int((changes > 0).sum()),
        "negative": int((changes < 0).sum()),
        "mean": float(changes.mean()) if count else None,
        "median": float(np.median(changes)) if count else None,
    }
    low, high = median_interval(changes)
    error = float(changes.std(ddof=1) / math.sqrt(count)) if count > 1 else None
    half = error * float(student.ppf((1 + CONFIDENCE) / 2, count - 1)) if error is not None else None
    return found | {
        "low": low,
        "high": high,
        "standard_error": error,
        "mean_low": None if half is None else found["mean"] - half,
        "mean_high": None if half is None else found["mean"] + half,
    }


def paired_times(first: Sequence[float | int | None], second: Sequence[float | int | None]) -> dict:
    """Compare two times seed by seed, of which some are censored: None is later than every time that was seen.

    Args:
        first: times, None for "not within the run".
        second: the same seeds under another treatment, watched equally long.

    Returns:
        "sooner" (pairs in which the second is earlier), "later", "ties" (both censored, or equal), and the "p_value" of
        the two-sided sign test over the pairs that are not ties (1 without any).

    Raises:
        ValueError: lists of different lengths.

    Example:
        >>> paired_times([10, None, 20, None], [5, 30, 20, None])
        {'sooner': 2, 'later': 0, 'ties': 2, 'p_value': 0.5}
    """
    if len(first) != len(second):
        raise ValueError(f"second has {len(second)} entries; valid is one for each of the {len(first)} in first.")
    pairs = [(math.inf if a is None else a, math.inf if b is None else b) for a, b in zip(first, second, strict=True)]
    sooner, later = sum(b < a for a, b in pairs), sum(b > a for a, b in pairs)
    told = sooner + later
    return {"sooner": sooner, "later": later, "ties": len(pairs) - told, "p_value": sign_test(sooner, told)}


def sign_test(hits: int, told: int) -> float:
    """Two-sided p-value of the exact sign test.

    Args:
        hits: pairs that speak for one side.
        told: pairs that speak for either side, at least `hits`; pairs that are tied do not count.

    Returns:
        The p-value, 1 where no pair speaks.

    Raises:
        ValueError: a negative number, or more hits than pairs.

    Example:
        >>> sign_test(2, 2), sign_test(0, 0)
        (0.5, 1.0)
    """
    if not 0 <= hits <= told:
        raise ValueError(f"hits is {hits} of {told} pairs; valid is a number from 0 to the number of pairs.")
    return float(binomtest(hits, told, 0.5).pvalue) if told else 1.0


def _known(value: float | int | None) -> bool:
    return value is not None and math.isfinite(value)
