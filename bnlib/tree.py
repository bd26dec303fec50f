r"""The simplified tree of arXiv 2412.02843 (Definition 5, Theorems 10 and 11), in exact rationals.

A batch of n real numbers y runs through layers in which every neuron v has two children, ReLU(v - mean v) and
ReLU(mean v - v): a binary tree with 2^T neurons at depth T. Nobody has to grow it, for a reason that carries
this whole module: **every neuron is the batch clipped to an interval**. With c the mean of clip(y, low, high),
the two children of the neuron on [low, high] are the neurons on [c, high] and on [low, c], so each layer cuts
every interval at the mean of the clipped batch, and the neurons at depth T are a partition of [min y, max y].
A neuron on [low, high] is clip(y) - low ("upward") if it was the upper piece of its parent and high - clip(y)
("downward") if it was the lower one; its number of distinct values is two more than the number of distinct
batch values strictly inside its interval.

* An interval with no batch value inside lies in one of the gaps between neighbors, and the neuron has one of two
  directions, the indicator of the samples above or below that gap. Its descendants have the same two: such
  neurons are merged, and only the sum of their squared lengths (their *energy*) is kept, by the 2 x 2
  `transfer_matrix`.
* There are never more than n - 2 other intervals, since each owns a batch value. So no layer has more than
  2(n - 1) + (n - 2) = 3n - 4 directions.

All lengths are integers in one common unit that shrinks by a factor n a layer, so no fraction is ever reduced.
Everything below is exact until the moment it is turned into a float, and that is done from integers of any size.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Float

from bnlib.exact import Batch, Geometry, geometry_from_gram, parse_batch, sort_batch, sqrt_ratio
from bnlib.tree_limit import Limit, limit, outlier_bounds

# The whole of the tree is to be had from this module, whichever of the three files a name is defined in.
__all__ = [
    "Direction",
    "Geometry",
    "Interval",
    "Limit",
    "TreeState",
    "directions",
    "energy_shares",
    "geometry",
    "gram",
    "grow",
    "isolation_depth",
    "layers",
    "limit",
    "norms",
    "outlier_bounds",
    "parse_batch",
    "partition",
    "split",
    "transfer_matrix",
]


@dataclass(frozen=True)
class Interval:
    """A neuron with at least three distinct values: the batch clipped to [low, high].

    Attributes:
        low: lower end, an integer in the unit of the state that holds the interval.
        high: upper end, in the same unit.
        first: index of the smallest distinct batch value strictly inside.
        last: index of the largest distinct batch value strictly inside.
        upward: True for clip(y) - low, False for high - clip(y).
    """

    low: int
    high: int
    first: int
    last: int
    upward: bool


@dataclass(frozen=True)
class TreeState:
    """One layer of the tree, merged: all neurons at one depth.

    Attributes:
        batch: the n batch values, in the order in which they were given.
        depth: number of layers so far; 1 is one split.
        values: the m distinct values, ascending, shifted and scaled to integers without a common factor; the
            first is 0.
        counts: how many samples have each of these values, shape (m,).
        groups: for each sample the index of its value, shape (n,).
        unit: length of 1 in `values`, in the unit of the batch.
        scale: n ** depth; an integer length in this state is that many `unit / scale`.
        upper: energy of the two-valued neuron that is on above gap g, g = 0..m-2, in units of (unit / scale)**2.
        lower: energy of the two-valued neuron that is on below gap g, in the same unit.
        intervals: the neurons with three distinct values or more.
    """

    batch: tuple[Fraction, ...]
    depth: int
    values: tuple[int, ...]
    counts: tuple[int, ...]
    groups: tuple[int, ...]
    unit: Fraction
    scale: int
    upper: tuple[int, ...]
    lower: tuple[int, ...]
    intervals: tuple[Interval, ...]

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.batch)

    @property
    def distinct_directions(self) -> int:
        """Number of different directions among the 2 ** depth neurons; neurons that are zero have none."""
        return sum(e > 0 for e in self.upper) + sum(e > 0 for e in self.lower) + len(self.intervals)

    @property
    def max_distinct_values(self) -> int:
        """The largest number of distinct values that a neuron takes on the batch."""
        return max((i.last - i.first + 3 for i in self.intervals), default=2)


@dataclass(frozen=True)
class Direction:
    """One merged direction of a layer.

    Attributes:
        vector: the direction on the n samples as integers without a common factor, smallest 0.
        energy: sum over the merged neurons of (largest value) ** 2, in the batch's unit squared.
    """

    vector: tuple[int, ...]
    energy: Fraction


def transfer_matrix(above: int, n: int) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """What one layer does to the energies of the two neurons of a gap.

    With k samples above the gap, the cut divides every interval in the gap in the proportion k : n - k, from below.
    Both the neuron on the upper k samples and its mirror image send ((n-k)/n)**2 of their energy to the former and
    (k/n)**2 to the latter, so the matrix has rank one and its eigenvalue is their sum.

    Args:
        above: k, the number of samples above the gap, 1 to n - 1.
        n: batch size, at least 2.

    Returns:
        The 2 x 2 matrix, rows and columns in the order (upper, lower), acting on column vectors.

    Raises:
        ValueError: if `n` is below 2 or `above` is not between 1 and n - 1.

    Example:
        >>> transfer_matrix(1, 4)
        ((Fraction(9, 16), Fraction(9, 16)), (Fraction(1, 16), Fraction(1, 16)))
    """
    if n < 2:
        raise ValueError(f"n is {n}; the batch size must be at least 2.")
    if not 1 <= above <= n - 1:
        raise ValueError(f"above is {above}; it must be between 1 and n - 1 = {n - 1}.")
    stay, mirror = Fraction(n - above, n) ** 2, Fraction(above, n) ** 2
    return ((stay, stay), (mirror, mirror))


def _root(batch: Batch) -> TreeState:
    """Depth 0: the batch itself, before any split, as one interval (or one gap)."""
    data = sort_batch(batch)
    gaps, only_gap = len(data.values) - 1, len(data.values) == 2
    return TreeState(
        batch=data.exact,
        depth=0,
        values=data.values,
        counts=data.counts,
        groups=data.groups,
        unit=data.unit,
        scale=1,
        upper=(data.values[-1] ** 2,) if only_gap else (0,) * gaps,
        lower=(0,) * gaps,
        intervals=() if only_gap else (Interval(0, data.values[-1], 1, gaps - 1, True),),
    )


def split(state: TreeState) -> TreeState:
    """Add one layer: cut every interval at the mean of the batch clipped to it.

    Args:
        state: a layer of the tree.

    Returns:
        The next layer; its unit of length is n times finer.

    Example:
        >>> state = grow([0, 1, 5], 1)
        >>> split(state) == grow([0, 1, 5], 2)
        True
    """
    n = state.n
    samples = np.cumsum((0, *state.counts)).tolist()
    moments = [0]
    for value, count in zip(state.values, state.counts, strict=True):
        moments.append(moments[-1] + value * count)
    upper, lower, intervals = [], [], []
    for gap, (up, down) in enumerate(zip(state.upper, state.lower, strict=True)):
        above = n - samples[gap + 1]
        upper.append((n - above) ** 2 * (up + down))
        lower.append(above**2 * (up + down))
    for piece in state.intervals:
        low, high = n * piece.low, n * piece.high
        inside = moments[piece.last + 1] - moments[piece.first]
        cut = piece.low * samples[piece.first] + piece.high * (n - samples[piece.last + 1]) + inside * state.scale
        # A batch value that the cut hits belongs to neither piece: it is 0 in both children.
        inner = range(piece.first, piece.last + 1)
        below = [g for g in inner if state.values[g] * n * state.scale < cut]
        above = [g for g in inner if state.values[g] * n * state.scale > cut]
        if above:
            intervals.append(Interval(cut, high, above[0], piece.last, True))
        else:
            upper[piece.last] += (high - cut) ** 2
        if below:
            intervals.append(Interval(low, cut, piece.first, below[-1], False))
        else:
            lower[piece.first - 1] += (cut - low) ** 2
    return TreeState(
        batch=state.batch,
        depth=state.depth + 1,
        values=state.values,
        counts=state.counts,
        groups=state.groups,
        unit=state.unit,
        scale=n * state.scale,
        upper=tuple(upper),
        lower=tuple(lower),
        intervals=tuple(intervals),
    )


def layers(batch: Batch, depth: Any) -> Iterator[TreeState]:
    """Yield the layers 1, 2, ..., depth of the tree of a batch.

    Args:
        batch: n numbers or strings such as "7/2", see `parse_batch`.
        depth: number of layers, at least 1.

    Yields:
        One `TreeState` a layer, from depth 1 on.

    Raises:
        ValueError: if the batch is not valid or `depth` is not a positive integer.

    Example:
        >>> [state.distinct_directions for state in layers([0, 1, 4, 6], 3)]
        [2, 4, 5]
    """
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 1:
        raise ValueError(f"depth is {depth!r}; it must be an integer of at least 1 (1 is one split).")
    return _layers(_root(batch), int(depth))


def _layers(state: TreeState, depth: int) -> Iterator[TreeState]:
    """The generator behind `layers`, apart so that bad arguments fail at the call."""
    for _ in range(depth):
        state = split(state)
        yield state


def grow(batch: Batch, depth: Any) -> TreeState:
    """Return the tree's layer at a depth: 2 ** depth neurons in at most 3n - 4 directions, exactly.

    Args:
        batch: n numbers or strings such as "7/2", see `parse_batch`.
        depth: number of layers, at least 1; 1 is one split.

    Returns:
        The last layer.

    Raises:
        ValueError: if the batch is not valid or `depth` is not a positive integer.

    Example:
        >>> grow([0, 2, 5], 2).distinct_directions
        4
    """
    for _state in layers(batch, depth):
        pass
    return _state


def partition(batch: Batch, depth: int) -> tuple[tuple[Fraction, Fraction, bool], ...]:
    """List the intervals of all 2 ** depth neurons, unmerged: for pictures and for checks at small depth.

    Args:
        batch: n numbers or strings such as "7/2", see `parse_batch`.
        depth: number of layers, 0 to 20; 0 is the batch itself.

    Returns:
        (low, high, upward) of each neuron, in the batch's unit and from low to high, so that each interval begins
        where the one before it ends. An upward neuron is clip(y) - low, the others are high - clip(y).

    Raises:
        ValueError: if the batch is not valid or `depth` is outside 0 to 20.

    Example:
        >>> [(str(low), str(high), upward) for low, high, upward in partition([0, 2, 5], 1)]
        [('0', '7/3', False), ('7/3', '5', True)]
    """
    if not 0 <= depth <= 20:
        raise ValueError(f"depth is {depth!r}; an unmerged tree can be listed for depths 0 to 20.")
    exact = parse_batch(batch)
    pieces = [(min(exact), max(exact), True)]
    for _ in range(depth):
        cuts = [sum(min(max(y, low), high) for y in exact) / len(exact) for low, high, _ in pieces]
        pieces = [
            piece
            for (low, high, _), cut in zip(pieces, cuts, strict=True)
            for piece in ((low, cut, False), (cut, high, True))
        ]
    return tuple(pieces)


def directions(state: TreeState) -> tuple[Direction, ...]:
    """List the different directions of a layer, each with its energy.

    Args:
        state: a layer of the tree.

    Returns:
        First the two-valued directions, gap by gap (on above, on below), then the others from low to high.

    Example:
        >>> for d in directions(grow([0, 2, 5], 2)):
        ...     print(d.vector, d.energy)
        (1, 0, 0) 169/81
        (0, 0, 1) 256/81
        (1, 1, 0) 64/81
        (0, 5, 8) 64/81
    """
    found = []
    for gap, energies in enumerate(zip(state.upper, state.lower, strict=True)):
        for energy, on in zip(energies, (True, False), strict=True):
            if energy:
                vector = tuple(int((g > gap) == on) for g in state.groups)
                found.append(Direction(vector, energy * (state.unit / state.scale) ** 2))
    for piece in sorted(state.intervals, key=lambda piece: piece.low):
        row = _row(state, piece)
        factor = math.gcd(*row)
        vector = tuple(row[g] // factor for g in state.groups)
        found.append(Direction(vector, ((piece.high - piece.low) * state.unit / state.scale) ** 2))
    return tuple(found)


def _row(state: TreeState, piece: Interval) -> list[int]:
    """The neuron on an interval, one integer for each distinct batch value."""
    clipped = [min(max(z * state.scale, piece.low), piece.high) for z in state.values]
    return [c - piece.low if piece.upward else piece.high - c for c in clipped]


def _group_gram(state: TreeState) -> list[list[int]]:
    """Gram matrix of the distinct values, m x m integers in units of (unit / scale) ** 2."""
    m = len(state.values)
    above, below = [0] * m, [0] * m
    for g in range(1, m):
        above[g] = above[g - 1] + state.upper[g - 1]
        below[m - 1 - g] = below[m - g] + state.lower[m - 1 - g]
    gram = [[above[i] + below[j] for j in range(i, m)] for i in range(m)]
    for piece in state.intervals:
        row = _row(state, piece)
        # All samples on the far side share one value: multiply each pair of distinct numbers once.
        start, stop = (piece.first, m) if piece.upward else (0, piece.last + 1)
        products = {}
        for i in range(start, stop):
            for j in range(i, stop):
                pair = (row[i], row[j])
                if pair not in products:
                    products[pair] = row[i] * row[j]
                gram[i][j - i] += products[pair]
    return [[gram[min(i, j)][abs(i - j)] for j in range(m)] for i in range(m)]


def gram(state: TreeState) -> tuple[tuple[Fraction, ...], ...]:
    """Return the exact Gram matrix of the samples: entry (i, j) sums v_i v_j over all 2 ** depth neurons.

    Args:
        state: a layer of the tree.

    Returns:
        n rows of n fractions, in the batch's unit squared and the batch's order.

    Example:
        >>> gram(grow([0, 1, 5], 1))[2]
        (Fraction(0, 1), Fraction(0, 1), Fraction(9, 1))
    """
    unit = (state.unit / state.scale) ** 2
    exact: dict[int, Fraction] = {}
    small = []
    for row in _group_gram(state):
        for entry in row:
            if entry not in exact:
                exact[entry] = entry * unit
        small.append([exact[entry] for entry in row])
    return tuple(tuple(small[g][h] for h in state.groups) for g in state.groups)


def geometry(state: TreeState) -> Geometry:
    """Return norms and angles of the samples at a layer, each correct to a few units in the last place.

    Args:
        state: a layer of the tree.

    Returns:
        The `Geometry`; angles in radians.

    Example:
        >>> found = geometry(grow([0, 1, 5], 1))
        >>> round(found.norm_max ** 2, 6), found.norm_interior < found.norm_min, found.gap
        (0.642857, True, 0.0)
    """
    return geometry_from_gram(_group_gram(state), state.counts, state.groups)


def norms(state: TreeState) -> Float[np.ndarray, " n"]:
    """Return the samples' norms alone, equal to `geometry(state).norms` and much faster for large batches.

    Args:
        state: a layer of the tree.

    Returns:
        Shape (n,), in the batch's order, scaled so that the squares sum to 1.

    Example:
        >>> norms(grow([0, 1, 5], 1)) ** 2 * 14
        array([4., 1., 9.])
    """
    above = accumulate(state.upper, initial=0)
    below = [*accumulate(reversed(state.lower), initial=0)][::-1]
    squares = [up + down for up, down in zip(above, below, strict=True)]
    for piece in state.intervals:
        for g, value in enumerate(_row(state, piece)):
            squares[g] += value * value
    total = sum(count * square for count, square in zip(state.counts, squares, strict=True))
    return np.array([sqrt_ratio(square, total) for square in squares])[list(state.groups)]


def energy_shares(state: TreeState) -> tuple[np.ndarray, float]:
    """Return the share of the energy that lies on each gap, and the share on neurons with more than two values.

    The energy of a neuron is the square of its largest value, that is of the length of its interval.

    Args:
        state: a layer of the tree.

    Returns:
        shares: shape (m - 1,) for m distinct values, gap by gap from below, both neurons of a gap together.
        rest: the share of the intervals with a batch value inside; shares and rest sum to 1.

    Example:
        >>> shares, rest = energy_shares(grow([0, 1, 5], 1))
        >>> [round(float(s), 6) for s in shares], round(rest, 6)
        ([0.0, 0.692308], 0.307692)
    """
    splits = [up + down for up, down in zip(state.upper, state.lower, strict=True)]
    rest = sum((piece.high - piece.low) ** 2 for piece in state.intervals)
    total = sum(splits) + rest
    return np.array([energy / total for energy in splits]), rest / total


def isolation_depth(batch: Batch, *, extremes: bool = False) -> int:
    """Return a depth from which on every neuron has at most three distinct values (Theorem 10, made explicit).

    A cut lies at least a k/n part of an interval's length away from both ends, k being the smaller number of
    samples at an extreme value. So no interval is longer than (1 - k/n)**t (max y - min y) at depth t, and one that
    is not longer than the smallest distance between neighboring interior values holds at most one of them.

    Args:
        batch: n numbers or strings such as "7/2", see `parse_batch`.
        extremes: count the distances of the extreme values from their neighbors too: from the depth that is returned
            then, there are also neurons that are on at the largest, and at the smallest, value only.

    Returns:
        The smallest t with (1 - k/n)**t (max y - min y) at most that distance; 0 with fewer than two interior values.

    Raises:
        ValueError: if the batch is not valid.

    Example:
        >>> isolation_depth([0, 1, 2, 8])
        8
    """
    data = sort_batch(batch)
    values = data.values if extremes else data.values[1:-1]
    closest = min((b - a for a, b in pairwise(values)), default=data.values[-1])
    n = len(data.exact)
    longest, shrink = data.values[-1], n - min(data.counts[0], data.counts[-1])
    depth = 0
    while longest > closest:
        longest, closest, depth = longest * shrink, closest * n, depth + 1
    return depth
