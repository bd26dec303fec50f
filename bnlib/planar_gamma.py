r"""The constant γ(X) of Theorem 3 for a batch in the plane, computed exactly by a walk round the circle of neurons.

$\gamma(X) = \min_{v \ne 0} P_w[f_v(w) \ne 0]$ with $f_v(w) = \sum_j v_j\,\mathrm{ReLU}(w \cdot x_j)$ and $w$ standard
Gaussian. In the plane only the direction of $w$ matters. The lines $w \cdot x_j = 0$ cut the circle into sectors, and
$f_v$ is linear in each. A sector in which $f_v$ vanishes is a *silent* sector; the rest is what the minimum measures.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from bnlib.collinear import Line, Vector, attainable_rank, checked_batch, lines_through_origin, null_vector


@dataclass(frozen=True)
class PlanarGamma:
    """The exact constant of a planar batch, with a certificate that it is not smaller.

    Attributes:
        gamma: the constant, from 0 to 1/2, correct to a few units in the last place.
        blocks: for a minimizer with silent sectors on both sides of the origin, the samples of each run of lines
            between two silent sectors; empty if one sample alone is a minimizer, or if gamma is 0.
        witness: coefficients v of a minimizer, n rationals: `nonzero_probability(x, witness)` is gamma.
    """

    gamma: float
    blocks: tuple[tuple[int, ...], ...]
    witness: Vector


@dataclass(frozen=True)
class Sector:
    """A sector of the circle of neurons between two rays on which a sample is orthogonal to w.

    Attributes:
        begin: angle of its first ray, radians, counterclockwise from the first axis.
        width: its angle, radians.
        silent: whether f_v vanishes on it.
    """

    begin: float
    width: float
    silent: bool


@dataclass(frozen=True)
class _Run:
    """Consecutive lines of the circle, from index `start` on, cyclically; `dimension` is their number minus two."""

    start: int
    dimension: int
    angle: float

    @property
    def size(self) -> int:
        return self.dimension + 2


def gamma_planar(x: Float[np.ndarray, "n 2"]) -> PlanarGamma:
    r"""Return γ(X) of a batch in the plane.

    If $m = \sum_j v_j x_j \ne 0$, then $f_v(w) - f_v(-w) = w \cdot m$ is almost never zero, so the probability is at
    least 1/2, and a single sample attains that. If $m = 0$, $f_v(w) = \frac12 \sum_j v_j \lvert w \cdot x_j \rvert$,
    silent sectors are antipodal pairs, and the lines between two consecutive ones form a run with
    $\sum u_j y_j = 0$ (directions $y_j$ oriented along the walk). Such a run has at least three lines. Runs with three
    samples on one side satisfy $m = 0$ by themselves; a run of $k$ other lines has $k - 2$ free coefficients, and
    disjoint runs satisfy the two equations of $m = 0$ together as soon as they have three free coefficients in all
    (fewer where antipodal pairs leave $m$ free). γ is the least total angle of such runs over π, or 1/2. Our
    derivation; the sources do not define γ, this reading makes Theorem 3 of arXiv 2412.02843 provable.

    Args:
        x: a batch, shape (n, 2), no unit.

    Returns:
        A `PlanarGamma`; gamma is 0 exactly where full rank is out of reach (see `bnlib.collinear.attainable_rank`).

    Raises:
        ValueError: if x is not a batch of finite numbers in the plane.

    Example:
        >>> found = gamma_planar(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
        >>> found.gamma, found.blocks
        (0.5, ((0, 1, 2),))
    """
    x = checked_batch(x)
    if x.shape[1] != 2:
        raise ValueError(f"x must be a batch in the plane, shape (n, 2), got shape {x.shape}.")
    lines = _lines_in_order(x)
    if attainable_rank(x) < len(x):
        return PlanarGamma(0.0, (), _silent_everywhere(lines, len(x)))
    runs = _cheapest_runs(lines)
    angle = math.fsum(run.angle for run in runs)
    if not runs or angle > math.pi / 2:
        return PlanarGamma(0.5, (), (Fraction(1), *[Fraction(0)] * (len(x) - 1)))
    members = tuple(
        tuple(sorted(j for line, _ in _oriented(lines, run.start, run.size) for j in line.length)) for run in runs
    )
    return PlanarGamma(angle / math.pi, members, _witness(lines, runs, len(x)))


def sectors(x: Float[np.ndarray, "n 2"], v: Sequence[Fraction | float | int]) -> tuple[Sector, ...]:
    r"""Return the sectors of the circle of neurons, and where $\sum_j v_j\,\mathrm{ReLU}(w \cdot x_j)$ vanishes.

    Args:
        x: a batch, shape (n, 2), at least one sample not zero, no unit.
        v: n coefficients; floats are taken as the binary fractions that they are.

    Returns:
        The sectors, each beside its antipode; which are silent is decided exactly, angles are rounded.

    Raises:
        ValueError: if x is not a batch in the plane, has no sample but zero, or v has another length.

    Example:
        >>> [sector.silent for sector in sectors(np.array([[1.0, 0.0], [0.0, 1.0]]), [1, 0])]
        [False, True, True, False]
    """
    x = checked_batch(x)
    if x.shape[1] != 2 or len(v) != len(x):
        raise ValueError(f"x must have shape (n, 2) and v length n, got shape {x.shape} and length {len(v)}.")
    lines = _lines_in_order(x)
    if not lines:
        raise ValueError("x must have a sample that is not zero.")
    coefficients = [Fraction(entry) for entry in v]
    found = []
    for index in range(len(lines)):
        # From the ray on which line index - 1 is orthogonal to w to that of line `index`.
        begin = _direction_angle(lines[index - 1]) + (-math.pi / 2 if index == 0 else math.pi / 2)
        width = _angle(lines, index - 1, 2) if len(lines) > 1 else math.pi
        for side in (0, 1):
            gradient = [Fraction(0)] * 2
            for other, line in enumerate(lines):
                positive = (other >= index) == (side == 0)
                for j in line.positive if positive else line.negative:
                    step = coefficients[j] * line.length[j] * (1 if positive else -1)
                    gradient = [g + step * y for g, y in zip(gradient, line.direction, strict=True)]
            found.append(Sector(begin + side * math.pi, width, not any(gradient)))
    return tuple(found)


def nonzero_probability(x: Float[np.ndarray, "n 2"], v: Sequence[Fraction | float | int]) -> float:
    r"""Return $P_w[\sum_j v_j\,\mathrm{ReLU}(w \cdot x_j) \ne 0]$ for a batch in the plane and exact coefficients.

    Args:
        x: a batch, shape (n, 2), at least one sample not zero, no unit.
        v: n coefficients; floats are taken as the binary fractions that they are.

    Returns:
        The probability; which sectors are silent is decided exactly, their angles are rounded.

    Raises:
        ValueError: as `sectors`.

    Example:
        >>> nonzero_probability(np.array([[1.0, 0.0], [0.0, 1.0]]), [1, 1])
        0.75
    """
    return math.fsum(sector.width for sector in sectors(x, v) if not sector.silent) / (2 * math.pi)


def small_gamma_probability(n: int, gamma: float) -> float:
    r"""Return an approximation of $P[\gamma(X) < \gamma]$ for n Gaussian samples in the plane, good for small γ.

    γ is small when three samples on one side lie within the angle $\pi\gamma$: for three uniform directions on a circle
    that has probability $\frac34\gamma^2$, exactly. With $\binom n3$ rare and nearly independent triples the count is
    nearly Poisson: $1 - \exp(-\frac34\binom n3\gamma^2)$. So typical values fall like $n^{-3/2}$, and
    $E\,\gamma^{-2}$ is infinite (our derivation).

    Args:
        n: batch size, at least 2.
        gamma: from 0 to 1/2.

    Returns:
        A probability.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> round(small_gamma_probability(3, 0.1), 4)
        0.0075
    """
    if n < 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    if not 0 <= gamma <= 0.5:
        raise ValueError(f"gamma must be from 0 to 1/2, got {gamma}.")
    return -math.expm1(-0.75 * math.comb(n, 3) * gamma**2)


def _lines_in_order(x: np.ndarray) -> tuple[Line, ...]:
    """The lines by angle, from just above -90 to 90 degrees: by slope, the vertical line last; exact."""
    return tuple(sorted(lines_through_origin(x), key=lambda line: (line.direction[0] == 0, line.direction[1])))


def _oriented(lines: Sequence[Line], start: int, size: int) -> Iterator[tuple[Line, int]]:
    """The lines of a run with their orientation: -1 once the walk has gone past half a turn."""
    for index in range(start, start + size):
        yield lines[index % len(lines)], 1 if 0 <= index < len(lines) else -1


def _angle(lines: Sequence[Line], start: int, size: int) -> float:
    """Angle from the first to the last line of a run, radians, from exact cross and dot products."""
    oriented = list(_oriented(lines, start, size))
    (first, sign), (last, other) = oriented[0], oriented[-1]
    (a, b), (c, d) = first.direction, last.direction
    cross, dot = sign * other * (a * d - b * c), sign * other * (a * c + b * d)
    largest = max(abs(cross), abs(dot))
    return math.atan2(cross / largest, dot / largest)


def _direction_angle(line: Line) -> float:
    """Angle of a line's direction, radians, above -pi/2 and up to pi/2."""
    a, b = line.direction
    largest = max(abs(a), abs(b))
    return math.atan2(b / largest, a / largest)


def _signs(lines: Sequence[Line], start: int, size: int) -> list[int]:
    """On which side of the walk each line of a run has its sample, 0 for both."""
    return [line.sign * orientation for line, orientation in _oriented(lines, start, size)]


def _cheapest_runs(lines: Sequence[Line]) -> tuple[_Run, ...]:
    """The disjoint runs of least total angle that carry a non-zero f_v with m = 0; empty if there are none."""
    count = len(lines)
    doubled = sum(not line.sign for line in lines)
    needed = 3 - min(doubled, 2)  # free coefficients that beat the equations m = 0 modulo the doubled lines
    alone: list[_Run] = []
    partial: list[_Run] = []
    for start in range(count):
        for size in range(3, min(5, count) + 1):
            signs = _signs(lines, start, size)
            run = _Run(start, size - 2, _angle(lines, start, size))
            # Three samples on one side, a doubled line counting for either, meet m = 0 by themselves, modulo the
            # doubled line; with two doubled lines m = 0 holds anyway.
            same_side = max(signs.count(1), signs.count(-1)) + min(doubled, 1) * signs.count(0)
            if same_side >= 3 or run.dimension >= needed:
                alone.append(run)
                break
            partial.append(run)
    best = min(((run,) for run in alone), key=lambda runs: runs[0].angle, default=())
    least = best[0].angle if best else math.inf
    for first in sorted(partial, key=lambda run: run.angle / run.dimension):
        # In a best set the run with the least angle per free coefficient has at most 1/needed of the total.
        if first.angle * needed >= least * first.dimension:
            break
        rest = [run for run in partial if (run.start - first.start) % count >= first.size]
        found = _best_after(first, rest, needed, count)
        total = math.fsum(run.angle for run in found)
        if found and total < least:
            best, least = found, total
    return best


def _best_after(first: _Run, rest: Sequence[_Run], needed: int, count: int) -> tuple[_Run, ...]:
    """The cheapest disjoint runs that contain `first` and have `needed` free coefficients together."""
    starting: dict[int, list[_Run]] = {}
    for run in rest:
        starting.setdefault((run.start - first.start) % count, []).append(run)
    missing = needed - first.dimension
    # plans[position][k]: cheapest runs from this position to the end of the walk with at least k free coefficients.
    plans: list[list[tuple[float, tuple[_Run, ...]]]] = [
        [(0.0, ()) if k == 0 else (math.inf, ()) for k in range(missing + 1)] for _ in range(count + 1)
    ]
    for position in range(count - 1, first.size - 1, -1):
        for k in range(1, missing + 1):
            options = [plans[position + 1][k]]
            for run in starting.get(position, []):
                if position + run.size <= count:
                    angle, runs = plans[position + run.size][max(0, k - run.dimension)]
                    options.append((angle + run.angle, (run, *runs)))
            plans[position][k] = min(options, key=lambda option: option[0])
    angle, runs = plans[min(first.size, count)][missing]
    return (first, *runs) if math.isfinite(angle) else ()


def _witness(lines: Sequence[Line], runs: Sequence[_Run], n: int) -> Vector:
    """Exact coefficients v: f_v is silent outside the runs, and not identically zero."""
    # Unknowns: the even coefficient of each line in a run, then the odd coefficient of each doubled line.
    in_runs = [list(_oriented(lines, run.start, run.size)) for run in runs]
    even = [line for run in in_runs for line, _ in run]
    odd = [line for line in lines if not line.sign]
    offsets = [0]
    for run in in_runs:
        offsets.append(offsets[-1] + len(run))
    unknowns = len(even) + len(odd)
    equations = []
    for axis in range(2):
        for run, (begin, end) in zip(in_runs, pairwise(offsets), strict=True):
            row = [Fraction(0)] * unknowns
            row[begin:end] = [orientation * line.direction[axis] for line, orientation in run]
            equations.append(row)
        equations.append([line.sign * line.direction[axis] for line in even] + [line.direction[axis] for line in odd])
    solution = null_vector(equations, unknowns)
    assert solution is not None, "the counting of free coefficients and the linear system disagree"
    v = [Fraction(0)] * n
    for position, (line, value) in enumerate(zip((*even, *odd), solution, strict=True)):
        odd_part = position >= len(even)
        for j in line.positive:
            v[j] += value / line.length[j] / (1 if line.sign else 2)
        for j in line.negative:
            v[j] += (-value if odd_part else value) / line.length[j] / (1 if line.sign else 2)
    return tuple(v)


def _silent_everywhere(lines: Sequence[Line], n: int) -> Vector:
    """Exact coefficients v with f_v = 0, for a batch that cannot reach full rank."""
    v = [Fraction(0)] * n
    on_a_line = {j for line in lines for j in line.length}
    for j in range(n):
        if j not in on_a_line:
            v[j] = Fraction(1)
            return tuple(v)
    for line in lines:
        for side in (line.positive, line.negative):
            if len(side) > 1:
                v[side[0]], v[side[1]] = 1 / line.length[side[0]], -1 / line.length[side[1]]
                return tuple(v)
    doubled = [line for line in lines if not line.sign]
    solution = null_vector([[line.direction[axis] for line in doubled] for axis in range(2)], len(doubled))
    assert solution is not None, "full rank is out of reach for no reason"
    for line, value in zip(doubled, solution, strict=True):
        v[line.positive[0]] = value / line.length[line.positive[0]]
        v[line.negative[0]] = -value / line.length[line.negative[0]]
    return tuple(v)
