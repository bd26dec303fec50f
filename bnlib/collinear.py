r"""Which samples lie on one line through the origin, decided exactly, and the rank that ReLU neurons can reach.

Two samples are *positively collinear* if one is a positive multiple of the other, and *antipodal* if it is a negative
one. A float is a binary fraction, so both questions have exact answers; no tolerance enters here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class Line:
    """A line through the origin with the samples on it.

    Attributes:
        direction: the line's direction, d rationals, the first that is not zero is 1.
        positive: indices of the samples that are positive multiples of the direction.
        negative: indices of the samples that are negative multiples of it.
        length: for each of these samples, by index, how many directions long it is (positive, no unit).
    """

    direction: Vector
    positive: tuple[int, ...]
    negative: tuple[int, ...]
    length: dict[int, Fraction]

    @property
    def sign(self) -> int:
        """1 or -1 if all samples of the line are on one side of the origin, 0 if they are on both."""
        return (not self.negative) - (not self.positive)


def checked_batch(x: np.ndarray, name: str = "x") -> np.ndarray:
    """Return a batch as a float64 array of shape (n, d).

    Raises:
        ValueError: if it is not a two-dimensional array of finite numbers with at least one row and one column.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"{name} must be a batch of shape (n, d) with n and d at least 1, got shape {x.shape}.")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} must hold finite numbers, got {x[~np.isfinite(x)].flat[0]}.")
    return x


def lines_through_origin(x: Float[np.ndarray, "n d"]) -> tuple[Line, ...]:
    """Return the distinct lines through the origin on which the non-zero samples lie.

    Args:
        x: a batch, rows are samples, no unit.

    Returns:
        The lines, in the order of their directions as rationals; zero samples are on none of them.

    Raises:
        ValueError: if x is not a batch of finite numbers.

    Example:
        >>> found = lines_through_origin(np.array([[1.0, 2.0], [-0.5, -1.0], [0.0, 3.0]]))
        >>> [(line.positive, line.negative) for line in found]
        [((2,), ()), ((0,), (1,))]
    """
    on_line: dict[Vector, dict[int, Fraction]] = {}
    for index, row in enumerate(checked_batch(x).tolist()):
        first = next((Fraction(entry) for entry in row if entry), None)
        if first is not None:
            direction = tuple(Fraction(entry) / first if entry else Fraction(0) for entry in row)
            on_line.setdefault(direction, {})[index] = first
    return tuple(
        Line(
            direction=direction,
            positive=tuple(index for index, first in members.items() if first > 0),
            negative=tuple(index for index, first in members.items() if first < 0),
            length={index: abs(first) for index, first in members.items()},
        )
        for direction, members in sorted(on_line.items())
    )


def pairwise_angles(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    r"""Return the angles between all pairs of samples, $2\,\mathrm{atan2}(\lvert u - v\rvert, \lvert u + v\rvert)$.

    Args:
        x: a batch without zero samples, no unit.

    Returns:
        Radians, each correct to a few units of 1e-16.

    Raises:
        ValueError: if x is not a batch of finite numbers or has a zero sample.

    Example:
        >>> pairwise_angles(np.array([[1.0, 0.0], [0.0, 2.0]])).round(6).tolist()
        [[0.0, 1.570796], [1.570796, 0.0]]
    """
    x = checked_batch(x)
    largest = np.abs(x).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError(f"x must have no zero sample, got one in row {int(np.argmin(largest))}.")
    unit = x / largest
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    difference = np.stack([np.linalg.norm(unit - row, axis=1) for row in unit])
    total = np.stack([np.linalg.norm(unit + row, axis=1) for row in unit])
    return 2 * np.arctan2(difference, total)


def clearly_on_different_lines(x: Float[np.ndarray, "n d"]) -> bool:
    """Return True only if rounding cannot hide that all samples are non-zero and on different lines.

    False decides nothing: then `lines_through_origin` does, exactly and more slowly.

    Args:
        x: a batch, rows are samples, no unit.

    Returns:
        Whether floating-point angles prove it.

    Raises:
        ValueError: if x is not a batch of finite numbers.

    Example:
        >>> clearly_on_different_lines(np.array([[1.0, 0.0], [1.0, 1e-300]]))
        False
    """
    x = checked_batch(x)
    if not x.any(axis=1).all():
        return False
    angles = pairwise_angles(x)[np.triu_indices(len(x), 1)]
    return bool((np.minimum(angles, np.pi - angles) > 1e-12).all())


def null_vector(rows: Sequence[Sequence[Fraction]], unknowns: int) -> Vector | None:
    """Return a non-zero exact solution of a homogeneous linear system, None if there is none.

    Args:
        rows: the equations' coefficients, each of length `unknowns`.
        unknowns: how many unknowns there are.

    Returns:
        One solution, the entry of the first free unknown is 1.

    Example:
        >>> null_vector([[Fraction(1), Fraction(2)]], 2)
        (Fraction(-2, 1), Fraction(1, 1))
    """
    reduced, pivots = _row_reduced(rows, unknowns)
    free = next((column for column in range(unknowns) if column not in pivots), None)
    if free is None:
        return None
    solution = [Fraction(0)] * unknowns
    solution[free] = Fraction(1)
    for row, pivot in zip(reduced, pivots, strict=True):
        solution[pivot] = -row[free]
    return tuple(solution)


def _row_reduced(rows: Sequence[Sequence[Fraction]], columns: int) -> tuple[list[list[Fraction]], list[int]]:
    """Reduced row echelon form over the rationals: the non-zero rows and their pivot columns."""
    reduced: list[list[Fraction]] = []
    pivots: list[int] = []
    for row in rows:
        row = list(row)
        for other, pivot in zip(reduced, pivots, strict=True):
            if row[pivot]:
                factor = row[pivot]
                row = [a - factor * b for a, b in zip(row, other, strict=True)]
        lead = next((column for column in range(columns) if row[column]), None)
        if lead is None:
            continue
        row = [entry / row[lead] for entry in row]
        for index, other in enumerate(reduced):
            if other[lead]:
                factor = other[lead]
                reduced[index] = [a - factor * b for a, b in zip(other, row, strict=True)]
        reduced.append(row)
        pivots.append(lead)
    return reduced, pivots


def exact_rank(x: Float[np.ndarray, "n d"]) -> int:
    """Return the rank of a matrix of floats, as exact binary fractions.

    Singular values that stand clear of rounding count at once (they prove a lower bound); only if fewer than min(n, d)
    of them do, the rank is found by elimination over the rationals.

    Args:
        x: a matrix, no unit.

    Returns:
        The rank, no tolerance.

    Raises:
        ValueError: if x is not a matrix of finite numbers.

    Example:
        >>> exact_rank(np.array([[1.0, 0.0], [1.0, 1e-300]]))
        2
    """
    x = checked_batch(x)
    scale = np.abs(x).max()
    if scale == 0:
        return 0
    singular = np.linalg.svd(x / scale, compute_uv=False)
    # The computed values are off by a modest multiple of eps times the largest; 64 (n + d) covers it amply.
    certain = int((singular > 64 * sum(x.shape) * np.finfo(float).eps * singular[0]).sum())
    if certain == min(x.shape):
        return certain
    return len(_row_reduced([[Fraction(entry) for entry in row] for row in x.tolist()], x.shape[1])[1])


def attainable_rank(x: Float[np.ndarray, "n d"]) -> int:
    r"""Return the rank that any number of ReLU neurons can give a batch, and that random ones reach.

    The functions $w \mapsto \mathrm{ReLU}(w \cdot x_j)$ of the $n$ samples span a space of dimension (number of
    distinct lines through the origin that carry a sample) + (rank of those lines that carry samples on both sides of
    the origin). Even parts $\lvert w \cdot x_j\rvert$ of different lines are independent, since each has a kink of its
    own; odd parts are linear functions. So the batch reaches full rank if and only if no sample is zero, no two are
    positively collinear, and the lines of the antipodal pairs are linearly independent. Our derivation; Theorem 3 of
    arXiv 2412.02843 assumes that no two samples are collinear at all.

    Args:
        x: a batch, rows are samples, no unit.

    Returns:
        The attainable rank, from 0 to n; exact.

    Raises:
        ValueError: if x is not a batch of finite numbers.

    Example:
        >>> half = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> attainable_rank(np.vstack([half, -half]))
        5
    """
    if clearly_on_different_lines(x):
        return len(x)
    lines = lines_through_origin(x)
    doubled = [line.direction for line in lines if not line.sign]
    if not doubled:
        return len(lines)
    return len(lines) + len(_row_reduced(doubled, len(doubled[0]))[1])
