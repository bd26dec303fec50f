r"""The simplified tree at infinite depth: which extremes escape, how far, and with what error.

`bnlib.tree` tells what the tree is. Here is its limit, by exact arithmetic on two intervals only, and with a bound.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bnlib.exact import Batch, Geometry, geometry_from_gram, sort_batch

# Stopping at a relative error of 1e-16 leaves the rounding of the final floats as the larger part of the bound.
_TOLERANCE = Fraction(1, 10**16)
_ROUNDING = 16 * 2.0**-53


@dataclass(frozen=True)
class Limit:
    """The tree at infinite depth.

    Attributes:
        geometry: norms and angles; each differs from the true one by a relative error of at most `relative_error`.
        gram: shape (n, n), trace 1; same bound, entry by entry.
        energy_max: share in [0, 1] of the limiting energy on the gap below the largest value.
        energy_min: share on the gap above the smallest value; the shares sum to 1 for three distinct values or more
            (with two values there is only one gap, and both shares are 1).
        truncation_error: relative error of an energy, hence of every entry, from stopping at `layers`; exact.
        relative_error: truncation error plus the rounding of the conversion to float.
        layers: number of layers that were computed; 0 if the limit needs none.
    """

    geometry: Geometry
    gram: np.ndarray
    energy_max: float
    energy_min: float
    truncation_error: Fraction
    relative_error: float
    layers: int


def outlier_bounds(n: int, ties: int = 1) -> tuple[float, float]:
    r"""Return what the limit obeys relative to the larger extreme: a norm ratio and a gap to 90 degrees.

    With both extreme values held by `ties` samples, norm(interior) / norm(larger extreme) is at most
    sqrt(2) k / sqrt((n-k)**2 + k**2) and the sine of the gap at most k / sqrt(2 ((n-k)**2 + k**2)), with equality if
    the limiting energies are equal. For k = 1 both lie below Theorem 11's 3 / (n-2) and sqrt(2 pi) / (n-2).

    Args:
        n: batch size, at least 2 * ties + 1.
        ties: k, the number of samples at each extreme value, at least 1.

    Returns:
        The largest norm ratio, and the largest gap in radians.

    Raises:
        ValueError: if `ties` is below 1 or `n` leaves no interior sample.

    Example:
        >>> ratio, gap = outlier_bounds(8)
        >>> round(ratio, 6), round(gap, 6)
        (0.2, 0.100167)
    """
    if ties < 1:
        raise ValueError(f"ties is {ties}; an extreme value is held by at least one sample.")
    if n < 2 * ties + 1:
        raise ValueError(f"n is {n}; with ties = {ties} an interior sample needs n of at least {2 * ties + 1}.")
    whole = (n - ties) ** 2 + ties**2
    return math.sqrt(2 / whole) * ties, math.asin(ties / math.sqrt(2 * whole))


def limit(batch: Batch, tolerance: Fraction | float = _TOLERANCE) -> Limit:
    """Return the geometry at infinite depth, with a rigorous bound on its error.

    The energy on a gap with k samples on one side grows by ((n-k)**2 + k**2) / n**2 a layer, so the gap with the
    smallest k wins: the one below the maximum, the one above the minimum, or both (k equal). Let alpha, beta be
    their energies divided by that growth, in the limit, A = (n-k)**2 alpha and C = k**2 alpha the parts on the
    extreme and on the others, and B, D the same of beta (all over (n-k)**2 + k**2). Then the squared norms are
    A + D (maximum), B + C (minimum), C + D (interior), and the inner products D (maximum and interior),
    C (minimum and interior), 0 (maximum and minimum).

    alpha is a sum of positive rationals, one for each cut in the gap of an interval from outside. If a cut meets
    the neighboring batch value, or there is none, the sum is finite and exact. Otherwise it is computed until its
    geometric tail bound is a `tolerance` part of it.

    Args:
        batch: n numbers or strings such as "7/2", see `parse_batch`.
        tolerance: largest relative truncation error of each energy, positive.

    Returns:
        The `Limit`.

    Raises:
        ValueError: if the batch is not valid or `tolerance` is not positive and finite.

    Example:
        >>> found = limit([-3, -1, 1, 3])
        >>> found.energy_max, round(found.geometry.norm_interior / found.geometry.norm_max, 6)
        (0.5, 0.447214)
    """
    if not 0 < tolerance < math.inf:
        raise ValueError(f"tolerance is {tolerance!r}; it must be positive and finite.")
    data = sort_batch(batch)
    n, low, high = len(data.exact), data.counts[0], data.counts[-1]
    # Classes: minimum, interior, maximum; without an interior, minimum and maximum.
    classes = tuple(min(g, 1) + (g == len(data.values) - 1 > 1) for g in data.groups)
    counts = tuple(np.bincount(classes).tolist())
    k = min(low, high)
    p, q = (n - k) ** 2, k**2
    steps, error, alpha, beta = 0, Fraction(0), int(high == k), int(low == k)
    if len(data.values) == 2:
        # One gap, which both extremes share: n - k against k from the first layer on.
        gram = [[high**2, 0], [0, low**2]]
        alpha, beta, total = 1, 1, 1
    else:
        if high == low:
            mirrored = tuple(data.values[-1] - z for z in reversed(data.values))
            top = isolated_energy(data.values, data.counts, Fraction(tolerance))
            bottom = isolated_energy(mirrored, data.counts[::-1], Fraction(tolerance))
            # Both sums over one denominator, ((n-k)**2 + k**2) ** steps.
            steps = max(top[1], bottom[1])
            alpha, beta = (energy * (p + q) ** (steps - at) for energy, at, _ in (top, bottom))
            error = max(top[2], bottom[2])
        total = alpha + beta
        upper, interior, lower = p * alpha + q * beta, q * total, p * beta + q * alpha
        gram = [[lower, q * alpha, 0], [q * alpha, interior, q * beta], [0, q * beta, upper]]
        if high != low:
            # Only one extreme escapes: the other one has joined the cluster.
            joined = 0 if alpha else 2
            gram[joined], gram[1][joined] = list(gram[1]), gram[1][1]
            gram[joined][joined] = gram[1][1]
    trace = sum(count * gram[c][c] for c, count in enumerate(counts))
    small = np.array([[entry / trace for entry in row] for row in gram])
    return Limit(
        geometry=geometry_from_gram(gram, counts, classes),
        gram=small[np.ix_(classes, classes)],
        energy_max=alpha / total,
        energy_min=beta / total,
        truncation_error=error,
        relative_error=float(error) + _ROUNDING,
        layers=steps,
    )


def isolated_energy(
    values: tuple[int, ...], counts: tuple[int, ...], tolerance: Fraction = _TOLERANCE
) -> tuple[int, int, Fraction]:
    """Return the energy on the gap below the maximum, over its growth, in the limit of infinite depth.

    With k samples at the maximum and q = (n-k)**2 + k**2, the energy at depth t is divided by (q / n**2)**t. Only the
    interval around the neighbor of the maximum (k1 samples) feeds the gap. Once it holds no other value, and k0
    samples lie below, each layer leaves at most k0 / (n - k1) of its length L and sends at most ((n-k)/n)**2 L**2 to
    the gap. Since r = (k0 n / (n - k1))**2 / q < 1, all that is still to come is at most
    (n-k)**2 L**2 / (q (1 - r)), in the unit of the layer and over the growth so far.

    Args:
        values: m >= 3 distinct values, ascending integers of which the first is 0.
        counts: samples at each value, no fewer at the minimum than at the maximum.
        tolerance: largest relative error at which to stop.

    Returns:
        numerator and power: the energy is numerator / q**power, in the unit of `values` squared, a lower bound.
        error: the true energy exceeds it by at most this part; 0 if it is exact.

    Example:
        >>> isolated_energy((0, 1, 2), (1, 1, 1))
        (9, 1, Fraction(0, 1))
    """
    m, n = len(values), sum(counts)
    k, k1 = counts[-1], counts[-2]
    samples = np.cumsum((0, *counts)).tolist()
    moments = [0]
    for value, count in zip(values, counts, strict=True):
        moments.append(moments[-1] + value * count)
    q = (n - k) ** 2 + k**2
    ratio = Fraction(((n - k - k1) * n) ** 2, (n - k1) ** 2 * q)
    tail = Fraction((n - k) ** 2, q) / (1 - ratio)
    low, high, first, scale, energy, step = 0, values[-1], 1, 1, 0, 0
    while True:
        top = values[-2] * scale
        inside = (moments[m - 1] - moments[first]) * scale
        cut = low * samples[first] + high * k + inside
        low, high, top, scale, energy, step = n * low, n * high, n * top, n * scale, q * energy, step + 1
        if cut >= top:
            energy += (high - cut) ** 2
            high = cut
        else:
            low = cut
        if cut == top:
            return energy, step, Fraction(0)
        while values[first] * scale <= low:
            first += 1
        if first == m - 2 and energy and step % 16 == 0:
            error = tail * (high - low) ** 2 / energy
            if error <= tolerance:
                return energy, step, error
