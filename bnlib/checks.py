"""Checks of numerical arguments, shared by the theory modules."""

from numbers import Integral

import numpy as np
from jaxtyping import Float

Values = float | int | Float[np.ndarray, "*shape"]
Result = float | Float[np.ndarray, "*shape"]

# A cosine or an angle may leave its interval by rounding in the caller's arithmetic, and by no more than
# this.
SLACK = 1e-9


def checked_values(name: str, values: Values, lower: float, upper: float, valid: str) -> np.ndarray:
    """Return values as float64 inside [lower, upper]; tiny excursions by rounding go to the ends."""
    array = np.asarray(values, dtype=np.float64)
    inside = (array >= lower - SLACK) & (array <= upper + SLACK)
    if not inside.all():
        worst = array[~inside].flat[0]
        raise ValueError(f"{name} must be {valid}, got {worst}.")
    return np.asarray(np.clip(array, lower, upper))  # a copy: the caller's array is never written to


def checked_batch_size(n: float | int, smallest: float | int, why: str = "") -> float:
    """Return n as a float, refusing anything below `smallest` (and NaN)."""
    if not n >= smallest:
        raise ValueError(f"n must be a batch size of at least {smallest:g}{why}, got {n}.")
    return float(n)


def checked_integer_batch(n: int | float, smallest: int) -> int:
    """Return n as an int, refusing fractions and anything below `smallest`.

    Raises:
        ValueError: n is not a whole number of at least `smallest`.
    """
    whole = isinstance(n, Integral) or (isinstance(n, float) and n.is_integer())
    if isinstance(n, bool) or not whole or n < smallest:
        raise ValueError(f"n must be a whole batch size of at least {smallest}, got {n}.")
    return int(n)


def checked_width(width: int | float, smallest: int) -> int:
    """Return width as an int, refusing fractions and anything below `smallest`."""
    if isinstance(width, bool) or not isinstance(width, Integral) or width < smallest:
        raise ValueError(f"width must be a whole number of neurons of at least {smallest}, got {width}.")
    return int(width)


def checked_depth(depth: int | float) -> int:
    """Return depth as an int, refusing fractions and negative numbers."""
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 0:
        raise ValueError(f"depth must be a whole number of layers, 0 or more, got {depth}.")
    return int(depth)


def plain(array: np.ndarray | float) -> Result:
    """Turn a 0-d array into a float, leave other arrays."""
    return float(array) if np.ndim(array) == 0 else array
