r"""The simplified model for inputs of several dimensions: one tree a coordinate, and their energies add.

For a batch X of n samples in R^d the first layer of Definition 5 projects onto +-e_1, ..., +-e_d: its neurons are
ReLU(+-(X e_j - mean)), the two children of the j-th coordinate, read as a one-dimensional batch. Every deeper
layer does to each neuron what it does in one dimension. So the model is a forest of d trees, and the Gram matrix at any
depth is the sum of theirs, each in the batch's own unit.

In the limit only the gaps with the fewest samples on one side, over all coordinates, are left. A gap with k samples S
above, and limiting energy a, contributes a ((n-k)**2 on S x S, k**2 on the complement). With unique extremes in every
coordinate, let a_i be the energy of all gaps that isolate sample i, and a their sum: then
K_ii = ((n-1)**2 - 1) a_i + a and K_ij = a - a_i - a_j. At most min(n, 2 d) of the a_i are positive: that many points
may leave the cluster.
"""

import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from jaxtyping import Float, Shaped

from bnlib.ensembles import propagate
from bnlib.exact import sort_batch
from bnlib.geometry import outlier_summary_from_gram
from bnlib.layers import Stages
from bnlib.tree import gram, grow
from bnlib.tree_limit import isolated_energy
from bnlib.tree_transfer import NormPaths, paths_from_grams

_STAGES = Stages.parse("RC+NL")
# Enough for every number that is printed: the limits of many coordinates are added.
_TOLERANCE = Fraction(1, 10**9)


@dataclass(frozen=True)
class ForestLimit:
    """The simplified model at infinite depth, for inputs of any dimension.

    Attributes:
        gram: shape (n, n), trace 1.
        energies: shape (n,), for each sample the share of the winning energy on gaps that isolate it; they sum to 1
            if `rarest` is 1 and are 0 otherwise.
        rarest: k, the number of samples on the smaller side of the winning gaps.
        relative_error: bound on the relative error of each entry of `gram`, rounding aside.
    """

    gram: Float[np.ndarray, "n n"]
    energies: Float[np.ndarray, " n"]
    rarest: int
    relative_error: float


def forest_gram(x: list[list[int | float | str]], depth: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return the exact Gram matrix of the simplified model at a depth: the sum over coordinates of the trees' matrices.

    Args:
        x: n rows of d numbers or strings such as "7/2"; a coordinate on which all samples agree contributes nothing.
        depth: number of layers, at least 1.

    Returns:
        n rows of n fractions.

    Raises:
        ValueError: fewer than two samples, all samples equal, rows of different lengths, an entry that is not a number,
            or `depth` < 1.

    Example:
        >>> [[str(entry) for entry in row] for row in forest_gram([[0, 1], [0, 0], [3, 0]], 1)]
        [['13/9', '1', '0'], ['1', '10/9', '1/9'], ['0', '1/9', '37/9']]
    """
    total = None
    for column in _columns(x):
        one = gram(grow(column, depth))
        pairs = zip(total or [[Fraction(0)] * len(one)] * len(one), one, strict=True)
        total = [[a + b for a, b in zip(u, v, strict=True)] for u, v in pairs]
    return tuple(tuple(row) for row in total)


def forest_limit(x: Shaped[np.ndarray, "n d"] | list, tolerance: Fraction | float = _TOLERANCE) -> ForestLimit:
    """Return the simplified model at infinite depth.

    Args:
        x: n samples of d coordinates (floats, integers, or strings such as "7/2").
        tolerance: largest relative truncation error of each coordinate's energies.

    Returns:
        The `ForestLimit`.

    Raises:
        ValueError: fewer than two samples, all samples equal, rows of different lengths or an entry that is not a
            number.

    Example:
        >>> found = forest_limit([[1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]])
        >>> found.energies.tolist(), round(float(found.gram[0, 0] / found.gram[4, 4]), 12)
        ([0.25, 0.25, 0.25, 0.25, 0.0], 4.75)
    """
    gaps = [gap for column in _columns(x) for gap in _winning_gaps(column, Fraction(tolerance))]
    rarest = min(k for k, *_ in gaps)
    gaps = [(isolated, energy, error) for k, isolated, energy, error in gaps if k == rarest]
    largest = max(energy for _, energy, _ in gaps)
    n = len(gaps[0][0])
    found, energies = np.zeros((n, n)), np.zeros(n)
    for isolated, energy, _ in gaps:
        share = float(energy / largest)
        found += share * ((n - rarest) ** 2 * np.outer(isolated, isolated) + rarest**2 * np.outer(~isolated, ~isolated))
        if rarest == 1:
            energies += share * isolated
    return ForestLimit(
        gram=found / np.trace(found),
        energies=energies / (energies.sum() or 1.0),
        rarest=rarest,
        relative_error=float(max(error for *_, error in gaps)),
    )


def _columns(x) -> list[list]:
    """The coordinates on which the samples differ."""
    rows = x.tolist() if hasattr(x, "tolist") else [list(row) for row in x]
    if len(rows) < 2 or len({len(row) for row in rows}) != 1:
        raise ValueError(f"x has {len(rows)} rows; give at least two samples with the same number of coordinates.")
    columns = [list(column) for column in zip(*rows, strict=True)]
    kept = [column for column in columns if any(entry != column[0] for entry in column)]
    if not kept:
        raise ValueError("x has only equal samples; the model needs at least two different ones.")
    return kept


def _winning_gaps(column: list, tolerance: Fraction) -> list[tuple[int, np.ndarray, Fraction, Fraction]]:
    """The one or two gaps of a coordinate that win: samples on the smaller side, who they are, energy and its error."""
    data = sort_batch(column)
    n, groups, last = len(data.exact), np.array(data.groups), len(data.values) - 1
    low, high = data.counts[0], data.counts[-1]
    k = min(low, high)
    if last == 1:
        smaller = groups == (last if high <= low else 0)
        return [(k, smaller, (data.values[-1] * data.unit) ** 2, Fraction(0))]
    q = (n - k) ** 2 + k**2
    mirrored = tuple(data.values[-1] - z for z in reversed(data.values))
    sides = [(data.values, data.counts, groups == last)] * (high == k)
    sides += [(mirrored, data.counts[::-1], groups == 0)] * (low == k)
    found = []
    for values, counts, isolated in sides:
        numerator, power, error = isolated_energy(values, counts, tolerance)
        found.append((k, isolated, Fraction(numerator, q**power) * data.unit**2, error))
    return found


def forest_limits(x: Float[np.ndarray, "batches n d"]) -> NormPaths:
    """Send batches through the simplified model to infinite depth.

    Args:
        x: shape (batches, n, d).

    Returns:
        The `NormPaths`, with a single depth that is written as 0.

    Raises:
        ValueError: a batch is not valid, see `forest_limit`.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((3, 6, 2))
        >>> forest_limits(x).norms.shape
        (1, 3, 1, 6)
    """
    grams = np.stack([forest_limit(batch).gram for batch in x])
    norms = np.sqrt(np.diagonal(grams, axis1=-2, axis2=-1))
    return paths_from_grams([0], norms[None, :, None], grams)


def network_ends(
    x: Float[np.ndarray, "batches n d"], width: int, depth: int, *, draws: int, generator: torch.Generator
) -> NormPaths:
    """Send batches of any dimension through random networks with recentering and ReLU, and keep the last layer.

    Args:
        x: shape (batches, n, d).
        width: neurons a layer.
        depth: number of layers, at least 1.
        draws: networks a batch, at least 1.
        generator: source of randomness; its device does the work.

    Returns:
        The `NormPaths` with the single depth `depth`.

    Raises:
        ValueError: width, depth or draws are below 1.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((2, 5, 3))
        >>> network_ends(x, 16, 4, draws=3, generator=torch.Generator().manual_seed(0)).norms.shape
        (1, 2, 3, 5)
    """
    if draws < 1 or depth < 1:
        raise ValueError(f"draws is {draws} and depth is {depth}; both must be at least 1.")
    inputs = torch.as_tensor(x, dtype=torch.float64, device=generator.device)
    inputs = inputs[:, None].expand(-1, draws, -1, -1)
    # A queue of length one: the last layer, and no other, is kept.
    (state,) = deque(propagate(inputs, width, depth, _STAGES, generator=generator), maxlen=1)
    squares = state.gram.diagonal(dim1=-2, dim2=-1)
    norms = (squares / squares.sum(dim=-1, keepdim=True)).sqrt().cpu().numpy()
    summary = outlier_summary_from_gram(state.gram.cpu())
    return NormPaths(np.array([depth]), norms[None], math.pi / 2 - summary.angle.numpy(), summary.norm_ratio.numpy())


def cross_polytope(n: int, d: int) -> list[list[int]]:
    """Return the 2 d points +-e_j and n - 2 d times the origin: the batch with the most equal escaped points.

    Args:
        n: batch size, at least 2 d + 1.
        d: dimension, at least 1.

    Returns:
        n rows of d integers.

    Raises:
        ValueError: d < 1 or no sample is left for the origin.

    Example:
        >>> cross_polytope(4, 1)
        [[1], [-1], [0], [0]]
    """
    if d < 1 or n < 2 * d + 1:
        raise ValueError(f"n is {n} and d is {d}; the batch needs d >= 1 and n >= 2 d + 1.")
    corners = [[sign * int(i == j) for i in range(d)] for j in range(d) for sign in (1, -1)]
    return corners + [[0] * d for _ in range(n - 2 * d)]


def equal_ratio_square(n: int, escaped: int) -> Fraction:
    """Return the squared norm ratio, cluster over escaped point, when m points escape with equal energies.

    It is m / ((n-1)**2 - 1 + m), and no batch with m escaped points has a larger one relative to its largest sample.

    Args:
        n: batch size, at least 3.
        escaped: m, from 1 to n - 1.

    Returns:
        A fraction.

    Raises:
        ValueError: n < 3 or m outside 1 to n - 1.

    Example:
        >>> equal_ratio_square(13, 12), equal_ratio_square(13, 12) > Fraction(9, 11**2)
        (Fraction(12, 155), True)
    """
    if n < 3 or not 1 <= escaped <= n - 1:
        raise ValueError(f"n is {n} and escaped is {escaped}; valid are n >= 3 and 1 <= escaped <= n - 1.")
    return Fraction(escaped, (n - 1) ** 2 - 1 + escaped)
