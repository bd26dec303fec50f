"""Every small integer batch: the proofs of Theorems 10 and 11 checked step by step, and the smallest counterexamples.

All decisions are made in integers and fractions. `verify` goes through the tree layer by layer and counts what
contradicts a lemma; `limit_decisions` says whether the limit obeys Theorem 11's bounds; `first_batch` finds the
smallest batch with a property.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise

from bnlib.exact import Batch, SortedBatch, parse_batch, sort_batch
from bnlib.tree import TreeState, gram, layers, partition
from bnlib.tree_limit import isolated_energy

BOUNDS = ("ratio_larger", "gap_larger", "ratio_smaller", "gap_smaller")
_DEFINITION_DEPTH = 4


def integer_batches(n: int, largest: int, *, distinct: bool = False) -> Iterator[tuple[int, ...]]:
    """Yield every batch of n integers from 0 to `largest`, both attained, in ascending order.

    Neither order nor a shift nor a factor changes anything in the tree, so batches are sorted, start at 0 and have no
    common factor: each shape comes once over all values of `largest`.

    Args:
        n: batch size, at least 3.
        largest: the largest value, at least 2.
        distinct: only batches of n different values.

    Yields:
        The batches with at least three different values.

    Raises:
        ValueError: n < 3 or `largest` < 2.

    Example:
        >>> list(integer_batches(4, 2))
        [(0, 0, 1, 2), (0, 1, 1, 2), (0, 1, 2, 2)]
    """
    if n < 3 or largest < 2:
        raise ValueError(f"n is {n} and largest is {largest}; three different values need n >= 3 and largest >= 2.")
    if distinct:
        inner = combinations(range(1, largest), n - 2)
    else:
        inner = combinations_with_replacement(range(largest + 1), n - 2)
    for values in inner:
        batch = (0, *values, largest)
        if math.gcd(*batch) == 1 and len(set(batch)) >= 3:
            yield batch


def definition_neurons(batch: Batch, depth: int) -> list[tuple[Fraction, ...]]:
    """Return all 2 ** depth neurons straight from Definition 5: ReLU(v - mean v) and ReLU(mean v - v), nothing merged.

    Args:
        batch: n numbers or strings such as "7/2".
        depth: number of layers, 1 to 12.

    Returns:
        The neurons, exact, in ascending order, each as its n values in the batch's order.

    Raises:
        ValueError: the batch is not valid, or `depth` is outside 1 to 12.

    Example:
        >>> [[str(value) for value in neuron] for neuron in definition_neurons([0, 1, 5], 1)]
        [['0', '0', '3'], ['2', '1', '0']]
    """
    if not 1 <= depth <= 12:
        raise ValueError(f"depth is {depth}; all 2 ** depth neurons are listed for depths 1 to 12.")
    neurons = [parse_batch(batch)]
    zero = Fraction(0)
    for _ in range(depth):
        centered = [[value - sum(neuron) / len(neuron) for value in neuron] for neuron in neurons]
        neurons = [tuple(max(sign * z, zero) for z in row) for row in centered for sign in (1, -1)]
    return sorted(neurons)


def _definition_violations(batch: Batch, states: Sequence[TreeState]) -> int:
    """Layers whose neurons or Gram matrix are not those of Definition 5."""
    exact = parse_batch(batch)
    wrong = 0
    for state in states:
        plain = definition_neurons(batch, state.depth)
        cut = [
            tuple(min(max(y, low), high) - low if upward else high - min(max(y, low), high) for y in exact)
            for low, high, upward in partition(batch, state.depth)
        ]
        columns = list(zip(*plain, strict=True))
        summed = tuple(tuple(sum(a * b for a, b in zip(u, v, strict=True)) for v in columns) for u in columns)
        wrong += sorted(cut) != plain or summed != gram(state)
    return wrong


def lemma_depth(distance: int, span: int, held: int, n: int) -> int:
    """Return the smallest t with (1 - held / n) ** t * span <= distance, in integers.

    Args:
        distance: a positive length.
        span: the batch's largest minus its smallest value, in the same unit.
        held: number of samples at an extreme value, 1 to n - 1.
        n: batch size.

    Returns:
        The depth of the lemmas on Theorem 10 and on the isolating neurons.

    Example:
        >>> lemma_depth(1, 8, 1, 4)
        8
    """
    depth = 0
    while span > distance:
        span, distance, depth = span * (n - held), distance * n, depth + 1
    return depth


def _end_energies(states: Sequence[TreeState], top: bool) -> list[tuple[int, int, bool]]:
    """For each layer: energy on an end's gap, length of what feeds it (0: nothing), whether that has one value."""
    found = []
    for state in states:
        last = len(state.values) - 2
        energy = state.upper[last] + state.lower[last] if top else state.upper[0] + state.lower[0]
        feeding = [piece for piece in state.intervals if (piece.last == last if top else piece.first == 1)]
        length = feeding[0].high - feeding[0].low if feeding else 0
        found.append((energy, length, not feeding or feeding[0].first == feeding[0].last))
    return found


def _enclosures(data: SortedBatch, states: Sequence[TreeState], top: bool, k: int) -> list[tuple[Fraction, Fraction]]:
    """Lower and upper bound of an end's limiting energy (over its growth), for each layer that has one."""
    n = len(data.exact)
    held = data.counts[-2] if top else data.counts[1]
    q = (n - k) ** 2 + k**2
    shrink = Fraction(((n - k - held) * n) ** 2, (n - held) ** 2 * q)
    tail = Fraction((n - k) ** 2, q) / (1 - shrink)
    return [
        (Fraction(energy, q**state.depth), (energy + tail * length**2) / q**state.depth)
        for state, (energy, length, single) in zip(states, _end_energies(states, top), strict=True)
        if single
    ]


def _enclosure_checks(data: SortedBatch, states: Sequence[TreeState]) -> dict[str, int | float | None]:
    """The second step of Theorem 11: energies rise, enclosures are nested, and the ratio's enclosure becomes narrow."""
    n, k = len(data.exact), min(data.counts[0], data.counts[-1])
    q = (n - k) ** 2 + k**2
    falls = open_ends = 0
    last = []
    for top in (True, False):
        if data.counts[-1 if top else 0] != k:
            continue
        energies = [energy for energy, _, _ in _end_energies(states, top)]
        falls += sum(b < q * a for a, b in pairwise(energies))
        found = _enclosures(data, states, top, k)
        open_ends += sum(a[0] > b[0] or a[1] < b[1] for a, b in pairwise(found))
        last.append(found[-1])
    width = float((last[0][1] * last[1][1]) / (last[0][0] * last[1][0]) - 1) if len(last) == 2 else None
    return {"energy_falls": falls, "not_nested": open_ends, "ratio_width": width}


def _isolation_checks(data: SortedBatch, states: Sequence[TreeState]) -> dict[str, int]:
    """The first step of Theorem 11: isolating neurons are there from the lemma's depth on, and are never lost."""
    n, values = len(data.exact), data.values
    late = lost = 0
    ends = (
        ([state.upper[-1] > 0 for state in states], values[-1] - values[-2], data.counts[-1]),
        ([state.lower[0] > 0 for state in states], values[1], data.counts[0]),
    )
    for there, distance, held in ends:
        late += there[max(1, lemma_depth(distance, values[-1], held, n)) - 1 :].count(False)
        lost += sum(a and not b for a, b in pairwise(there))
    return {"isolated_late": late, "isolated_lost": lost}


def _layer_checks(data: SortedBatch, states: Sequence[TreeState]) -> dict[str, int]:
    """Theorem 10 and the number of directions, layer by layer."""
    n, values, m = len(data.exact), data.values, len(data.values)
    closest = min((b - a for a, b in pairwise(values[1:-1])), default=values[-1])
    bound = max(1, lemma_depth(closest, values[-1], min(data.counts[0], data.counts[-1]), n))
    inside = [m - 2] + [sum(piece.last - piece.first + 1 for piece in state.intervals) for state in states]
    return {
        "four_values": sum(state.max_distinct_values > 3 for state in states[bound - 1 :]),
        "directions_beyond": sum(state.distinct_directions > 3 * m - 4 for state in states),
        "directions_off": abs(states[-1].distinct_directions - (2 * (m - 1) + inside[-1])),
        "inside_grows": sum(b > a for a, b in pairwise(inside)),
        "inside_start": inside[0],
        "inside_left": inside[-1],
        "sum_modulo_n": sum(z * count for z, count in zip(values, data.counts, strict=True)) % n,
    }


def _others(data: SortedBatch, state: TreeState) -> float:
    """Energy outside the winning gaps, over the energy inside them."""
    k = min(data.counts[0], data.counts[-1])
    sums = [up + down for up, down in zip(state.upper, state.lower, strict=True)]
    total = sum(sums) + sum((piece.high - piece.low) ** 2 for piece in state.intervals)
    winning = (sums[-1] if data.counts[-1] == k else 0) + (sums[0] if data.counts[0] == k else 0)
    return (total - winning) / winning


def extreme_squares(state: TreeState) -> tuple[int, int]:
    """Return the squared norms of the smallest and of the largest input, in units of (unit / scale) ** 2.

    At the maximum exactly the upward neurons are on, at the minimum the downward ones, each at its interval's length.

    Args:
        state: a layer of the tree, of depth at least 1.

    Returns:
        Two integers.

    Example:
        >>> from bnlib.tree import grow
        >>> extreme_squares(grow([0, 1, 5], 1))
        (36, 81)
    """
    low, high = sum(state.lower), sum(state.upper)
    for piece in state.intervals:
        square = (piece.high - piece.low) ** 2
        low, high = (low, high + square) if piece.upward else (low + square, high)
    return low, high


def bound_squares(n: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return Theorem 11's bounds as squares: of the norm ratio, and of the sine of the gap from below and above.

    Args:
        n: batch size, at least 3.

    Returns:
        9 / (n-2)**2; two fractions that enclose sin(sqrt(2 pi) / (n-2))**2, or (1, 1) where the bound exceeds 90
        degrees and so says nothing.

    Example:
        >>> bound_squares(5)[0], bound_squares(3)[1:]
        (Fraction(1, 1), (Fraction(1, 1), Fraction(1, 1)))
    """
    angle = math.sqrt(2 * math.pi) / (n - 2)
    if angle >= math.pi / 2:
        return Fraction(9, (n - 2) ** 2), Fraction(1), Fraction(1)
    sine, slack = Fraction(math.sin(angle) ** 2), Fraction(1, 10**13)
    return Fraction(9, (n - 2) ** 2), sine * (1 - slack), sine * (1 + slack)


def _within(squares: dict[str, Fraction], n: int) -> dict[str, bool | None]:
    """Whether each squared number is within its bound; None if the bound's own enclosure leaves it open."""
    ratio, low, high = bound_squares(n)
    decided: dict[str, bool | None] = {}
    for name, square in squares.items():
        if name.startswith("ratio"):
            decided[name] = square <= ratio
        else:
            decided[name] = True if square <= low else False if square > high else None
    return decided


def _finite_squares(data: SortedBatch, state: TreeState) -> dict[str, Fraction]:
    """Squared norm ratios and squared sines of the gaps at a layer, the worst interior sample of each."""
    matrix, last = gram(state), len(data.values) - 1
    interior = [i for i, g in enumerate(data.groups) if 0 < g < last]
    ends = sorted((data.groups.index(0), data.groups.index(last)), key=lambda e: matrix[e][e])
    found = {}
    for side, e in zip(("smaller", "larger"), ends, strict=True):
        found[f"ratio_{side}"] = max(matrix[i][i] for i in interior) / matrix[e][e]
        sines = [matrix[e][i] ** 2 / (matrix[e][e] * matrix[i][i]) for i in interior if matrix[i][i]]
        found[f"gap_{side}"] = max(sines, default=Fraction(0))
    return found


def _share_range(data: SortedBatch, tolerance: Fraction) -> tuple[Fraction, Fraction]:
    """An enclosure of the smaller over the larger limiting energy; (0, 0) if only one extreme wins."""
    if data.counts[0] != data.counts[-1]:
        return Fraction(0), Fraction(0)
    mirrored = tuple(data.values[-1] - z for z in reversed(data.values))
    n, k = len(data.exact), data.counts[0]
    q = (n - k) ** 2 + k**2
    sides = []
    for values, counts in ((data.values, data.counts), (mirrored, data.counts[::-1])):
        numerator, power, error = isolated_energy(values, counts, tolerance)
        energy = Fraction(numerator, q**power)
        sides.append((energy, energy * (1 + error)))
    (a, a_high), (b, b_high) = sides
    low, high = b / a_high, b_high / a
    if low >= 1:
        return 1 / high, 1 / low
    return (low, high) if high <= 1 else (min(low, 1 / high), Fraction(1))


def limit_squares(share: Fraction, n: int, k: int) -> dict[str, Fraction]:
    """Return the limit's squared norm ratios, and squared sines of the gaps, of a cluster point against the extremes.

    With N = (n-k)**2 / k**2 and tau the smaller over the larger energy: (1 + tau) / (N + tau) and
    tau**2 / ((N + tau)(1 + tau)) against the larger extreme, (1 + tau) / (N tau + 1) and 1 / ((N tau + 1)(1 + tau))
    against the smaller one. tau = 0 stands for extremes held by unequal numbers of samples, k the smaller number.

    Args:
        share: tau, from 0 to 1.
        n: batch size.
        k: samples at the extreme value that fewer samples hold.

    Returns:
        Fractions under the names of `BOUNDS`.

    Example:
        >>> limit_squares(Fraction(1), 8, 1)["ratio_larger"]
        Fraction(1, 25)
    """
    spread = Fraction((n - k) ** 2, k**2)
    return {
        "ratio_larger": (1 + share) / (spread + share),
        "gap_larger": share**2 / ((spread + share) * (1 + share)),
        "ratio_smaller": (1 + share) / (spread * share + 1),
        "gap_smaller": 1 / ((spread * share + 1) * (1 + share)),
    }


def limit_decisions(batch: Batch) -> dict[str, bool]:
    """Decide rigorously whether the limit obeys Theorem 11's two bounds, relative to either extreme.

    The limiting energies are enclosed in fractions, more and more tightly until both ends of the enclosure agree.

    Args:
        batch: n numbers or strings such as "7/2", with at least three different ones.

    Returns:
        True (within the bound) or False for each name of `BOUNDS`.

    Raises:
        ValueError: the batch is not valid, has fewer than three different values, or lies on a bound to 60 digits.

    Example:
        >>> limit_decisions([0, 1, 1, 1, 1, 9])["ratio_smaller"], limit_decisions([0, 1, 1, 1, 1, 8])["ratio_smaller"]
        (False, True)
    """
    data = sort_batch(batch)
    if len(data.values) < 3:
        raise ValueError("batch has only two different values; Theorem 11 speaks of interior points.")
    n, k = len(data.exact), min(data.counts[0], data.counts[-1])
    for digits in (3, 12, 60):
        ends = [_within(limit_squares(t, n, k), n) for t in _share_range(data, Fraction(1, 10**digits))]
        if ends[0] == ends[1] and None not in ends[0].values():
            return {name: bool(ends[0][name]) for name in BOUNDS}
    raise ValueError("batch lies on one of Theorem 11's bounds, as far as 60 digits tell.")


def verify(batch: Batch, depth: int | None = None) -> dict[str, int | float | bool | None]:
    """Go through the tree of one batch and count, exactly, what contradicts the chapter's lemmas.

    Args:
        batch: n numbers or strings such as "7/2", with at least three different ones.
        depth: number of layers, at least 4; by default 20 n.

    Returns:
        `n`, `largest`, `ties_low`, `ties_high`; counts that a proof says are 0: `definition` (layers 1 to 4 that differ
        from the plain tree of Definition 5), `directions_beyond` (layers with more than 3m - 4 directions, m values),
        `inside_grows` (layers in which more values lie inside intervals than before), `four_values` (layers beyond
        Theorem 10's depth with four values or more), `isolated_late` and `isolated_lost` (layers without an isolating
        neuron, from the lemma's depth on, and right after one with it), `energy_falls` (layers in which a winning
        energy falls, over its growth), `not_nested` (layers whose enclosure of a limiting energy is not inside the one
        before), `asymmetric` (layers in which the two extremes differ in norm, for a symmetric batch; None for
        others), `disagree` (bounds on which the last layer and the limit decide differently, unless the limit lies on
        the bound), `directions_off` (directions of the last layer, less 2(m - 1) and the values that still lie inside
        intervals; no sign). And `inside_start` and `inside_left` (values inside intervals at first and in the end),
        `sum_modulo_n` (of the batch, shifted and scaled to integers from 0 on without a common factor), `ratio_width`
        (relative width of the enclosure of (A+C)/(B+D) at the last layer; None if only one extreme wins), `others`
        (energy outside the winning gaps over that inside, last layer), `sharp_ratio` and `sharp_gap` (squared norm
        ratio and squared sine at the last layer over the sharp bounds), and the last layer's decisions under the names
        of `BOUNDS`.

    Raises:
        ValueError: the batch is not valid or has fewer than three different values, or `depth` < 4.

    Example:
        >>> found = verify([0, 1, 4, 6])
        >>> found["definition"], found["isolated_late"], found["not_nested"], found["ratio_width"] < 1e-9
        (0, 0, 0, True)
    """
    data = sort_batch(batch)
    n = len(data.exact)
    limits = limit_decisions(batch)
    depth = 20 * n if depth is None else depth
    if depth < _DEFINITION_DEPTH:
        raise ValueError(f"depth is {depth}; it must be at least {_DEFINITION_DEPTH}.")
    states = list(layers(batch, depth))
    squares = _finite_squares(data, states[-1])
    finite = _within(squares, n)
    k = min(data.counts[0], data.counts[-1])
    sharp = limit_squares(Fraction(1), n, k)
    # With unequal ends the limit may lie on a bound (n = 5: both are 1), and a layer just beyond it.
    exact = limit_squares(Fraction(0), n, k) if data.counts[0] != data.counts[-1] else {}
    on_bound = [name for name, square in exact.items() if square in (bound_squares(n)[0], 1)]
    sample = [data.values[g] for g in data.groups]
    symmetric = sorted(data.values[-1] - z for z in sample) == sorted(sample)
    return {
        "n": n,
        "largest": data.values[-1],
        "ties_low": data.counts[0],
        "ties_high": data.counts[-1],
        "definition": _definition_violations(batch, states[:_DEFINITION_DEPTH]),
        **_layer_checks(data, states),
        **_isolation_checks(data, states),
        **_enclosure_checks(data, states),
        "others": _others(data, states[-1]),
        "asymmetric": sum(low != high for low, high in map(extreme_squares, states)) if symmetric else None,
        "disagree": sum(finite[name] is not limits[name] for name in BOUNDS if name not in on_bound),
        "sharp_ratio": float(squares["ratio_larger"] / sharp["ratio_larger"]),
        "sharp_gap": float(squares["gap_larger"] / sharp["gap_larger"]),
        **finite,
    }


def first_batch(
    n: int, wanted: Callable[[tuple[int, ...]], bool], largest: int, *, distinct: bool = False
) -> tuple[tuple[int, ...] | None, int]:
    """Find the first integer batch with a property: the smallest largest value, then the first in order.

    Args:
        n: batch size, at least 3.
        wanted: the property.
        largest: where to stop.
        distinct: only batches of n different values.

    Returns:
        The batch, or None if there is none up to `largest`; and how many batches were tried.

    Example:
        >>> first_batch(4, lambda batch: len(set(batch)) == 4, 9)
        ((0, 1, 2, 3), 7)
    """
    tried = 0
    for top in range(2, largest + 1):
        for batch in integer_batches(n, top, distinct=distinct):
            tried += 1
            if wanted(batch):
                return batch, tried
    return None, tried
