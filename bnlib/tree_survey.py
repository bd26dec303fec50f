"""Theorems 10 and 11 put to many batches: random, tied, symmetric and chosen ones, each judged exactly."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from bnlib.exact import Batch, Geometry, SortedBatch, parse_batch, sort_batch
from bnlib.tree import geometry, grow, isolation_depth, layers, split
from bnlib.tree_families import definition_neurons
from bnlib.tree_limit import isolated_energy, limit

KINDS = ("gaussian", "integer", "tied", "symmetric", "chosen")


def make_batch(kind: str, n: int, *, rng: np.random.Generator) -> tuple[Fraction, ...]:
    """Draw one batch of a kind.

    Args:
        kind: "gaussian" (standard normal), "integer" (different integers below 4n, so that cuts often meet batch
            values), "tied" (1 to 4 samples at each end, ties inside), "symmetric" (y and -y), or "chosen" (a sparse
            batch 0, 1, b, b**2, ... with b of 3/2, 2, 5/2 or 3, whose minimum hardly stands out).
        n: batch size, at least 4.
        rng: source of randomness.

    Returns:
        The n values, exact.

    Raises:
        ValueError: if the kind is not known or n is below 4.

    Example:
        >>> [str(y) for y in make_batch("chosen", 5, rng=np.random.default_rng(0))]
        ['0', '1', '3', '9', '27']
    """
    if n < 4:
        raise ValueError(f"n is {n}; the survey's batches need at least 4 samples.")
    match kind:
        case "gaussian":
            values = rng.standard_normal(n).tolist()
        case "integer":
            values = rng.choice(4 * n, size=n, replace=False).tolist()
        case "tied":
            low, high = (int(k) for k in rng.integers(1, min(4, (n - 2) // 2) + 1, size=2))
            # Half of the batches have equal ends: both extremes stay outside the cluster only then.
            high = low if rng.random() < 0.5 else high
            inside = rng.integers(1, 4 * n, size=n - low - high).tolist()
            values = [0] * low + inside + [4 * n] * high
        case "symmetric":
            half = rng.standard_normal(n // 2).tolist()
            values = [*half, *(-y for y in half), *[0.0] * (n % 2)]
        case "chosen":
            base = Fraction(int(rng.integers(3, 7)), 2)
            values = [0, *(base**i for i in range(n - 1))]
        case _:
            raise ValueError(f"kind is {kind!r}; valid are {', '.join(KINDS)}.")
    return parse_batch(values)


def theorem_10(batch: Batch) -> dict[str, int]:
    """Run the tree until the depth by which Theorem 10 must have come true, and say what was seen.

    Args:
        batch: n numbers or strings such as "7/2".

    Returns:
        `values_start` (distinct values of the batch), `depth_reached` (first layer in which no neuron has more than
        three values; one more than the last layer if there is none), `depth_bound` (`isolation_depth`, or 1 if that
        is 0), `values_after` (most distinct values of a neuron in any layer from `depth_bound` to two layers past
        both bounds), `directions_excess` (most directions of a layer, minus 3n - 4), `isolated_at` (first layer with
        a neuron that is on at the largest value only and one that is on at the smallest value only; one more than the
        last layer if there is none), `isolation_bound` (`isolation_depth` with `extremes`, or 1 if that is 0),
        `isolation_lost` (number of layers after `isolated_at` without both).

    Raises:
        ValueError: if the batch is not valid.

    Example:
        >>> theorem_10([0, 1, 2, 8])["values_after"]
        3
    """
    bound, isolated = max(isolation_depth(batch), 1), max(isolation_depth(batch, extremes=True), 1)
    found = dict.fromkeys(("depth_reached", "values_after", "isolated_at", "isolation_lost"), 0)
    excess, start, last = -math.inf, 0, max(bound, isolated) + 2
    for state in layers(batch, last):
        start = len(state.values)
        excess = max(excess, state.distinct_directions - (3 * state.n - 4))
        if not found["depth_reached"] and state.max_distinct_values <= 3:
            found["depth_reached"] = state.depth
        if state.depth >= bound:
            found["values_after"] = max(found["values_after"], state.max_distinct_values)
        isolating = state.upper[-1] > 0 and state.lower[0] > 0
        if isolating and not found["isolated_at"]:
            found["isolated_at"] = state.depth
        found["isolation_lost"] += found["isolated_at"] > 0 and not isolating
    # What never came must not pass for early.
    for name in ("depth_reached", "isolated_at"):
        found[name] = found[name] or last + 1
    bounds = {"depth_bound": bound, "isolation_bound": isolated}
    return {"values_start": start, **bounds, "directions_excess": int(excess), **found}


def theorem_11(batch: Batch) -> dict[str, float | int | None]:
    """Measure the limit of a batch in the terms of Theorem 11, relative to either extreme.

    Args:
        batch: n numbers or strings such as "7/2", with at least three different ones.

    Returns:
        `ties_low` and `ties_high` (samples at the extreme values), `angle_extremes`, `cluster_angle` (largest angle
        between two interior samples), `ratio_larger` and `ratio_smaller` (norm of an interior sample over that of the
        larger or the smaller extreme), `gap_larger` and `gap_smaller` (distance of their angle from pi/2),
        `ratio_bound` and `gap_bound` (3 / (n-2) and sqrt(2 pi) / (n-2)), `energy_ratio` (smaller over larger
        limiting energy), `relative_error` of all of these. Angles in radians.

    Raises:
        ValueError: if the batch is not valid or has fewer than three different values.

    Example:
        >>> found = theorem_11([0, 1, 2, 3, 4])
        >>> found["energy_ratio"], found["ratio_larger"] < found["ratio_bound"]
        (1.0, True)
    """
    data = sort_batch(batch)
    if len(data.values) < 3:
        raise ValueError("batch has only two different values; Theorem 11 speaks of interior points.")
    n, last = len(data.exact), len(data.values) - 1
    found = limit(batch)
    shape = found.geometry
    interior = [i for i, g in enumerate(data.groups) if 0 < g < last]
    ends = (data.groups.index(0), data.groups.index(last))
    # In the limit all interior samples agree, so one of them speaks for all.
    sides = sorted(((shape.norms[e], _gap(shape, e, interior[0])) for e in ends), reverse=True)
    (large, gap_larger), (small, gap_smaller) = sides
    inside = float(shape.norm_interior or 0.0)
    energies = sorted((found.energy_min, found.energy_max))
    return {
        "ties_low": data.counts[0],
        "ties_high": data.counts[-1],
        "angle_extremes": shape.angle_extremes,
        "cluster_angle": float(shape.angles[np.ix_(interior, interior)].max()),
        "ratio_larger": float(inside / large),
        "ratio_smaller": float(inside / small),
        "gap_larger": gap_larger,
        "gap_smaller": gap_smaller,
        "ratio_bound": 3 / (n - 2),
        "gap_bound": math.sqrt(2 * math.pi) / (n - 2),
        "energy_ratio": energies[0] / energies[1],
        "relative_error": found.relative_error,
    }


def _gap(shape: Geometry, i: int, j: int) -> float:
    return float(math.pi / 2 - shape.angles[i, j])


def survey(sizes: Sequence[int], draws: int, *, rng: np.random.Generator, kinds: Sequence[str] = KINDS) -> list[dict]:
    """Put Theorems 10 and 11 to `draws` batches of every kind and size.

    Args:
        sizes: batch sizes, each at least 4.
        draws: batches a kind and size, at least 1.
        rng: source of randomness.
        kinds: which kinds, see `make_batch`.

    Returns:
        One row a batch: `kind`, `n` and what `theorem_10` and `theorem_11` return.

    Raises:
        ValueError: if a size is below 4, `draws` below 1 or a kind is not known.

    Example:
        >>> rows = survey([6], 2, rng=np.random.default_rng(0))
        >>> len(rows), all(row["values_after"] <= 3 for row in rows)
        (10, True)
    """
    if draws < 1:
        raise ValueError(f"draws is {draws}; a survey needs at least one batch.")
    rows = []
    for n in sizes:
        for kind in kinds:
            for _ in range(draws):
                batch = make_batch(kind, n, rng=rng)
                while len(set(batch)) < 3:
                    batch = make_batch(kind, n, rng=rng)
                rows.append({"kind": kind, "n": n, **theorem_10(batch), **theorem_11(batch)})
    return rows


def summarize(rows: Sequence[dict]) -> list[dict]:
    """Sum a survey up, one cell for each kind and size.

    Args:
        rows: what `survey` returns.

    Returns:
        Cells with `kind`, `n`, `batches`; the largest `values_start`, `values_after`, `directions_excess`,
        `depth_reached`, `isolated_at`, `isolation_lost`; `isolated_late` (batches in which `isolated_at` exceeds its
        bound); `depth_share` (largest depth
        reached over its bound); `extremes_off_deg` (largest distance of the angle between the extremes from 90
        degrees); `cluster_angle_deg` (largest); `ratio_larger`, `gap_larger`, `ratio_smaller`, `gap_smaller`: the
        largest value over Theorem 11's bound; `share_larger`, `share_smaller`: the share of batches within both
        bounds; `energy_ratio`: the median; `energy_ratio_least`: the smallest.

    Example:
        >>> cells = summarize(survey([6], 3, rng=np.random.default_rng(0), kinds=["symmetric"]))
        >>> cells[0]["batches"], cells[0]["energy_ratio"]
        (3, 1.0)
    """
    groups: dict[tuple[str, int], list[dict]] = {}
    for row in rows:
        groups.setdefault((row["kind"], row["n"]), []).append(row)
    return [{"kind": kind, "n": n, **_cell(members)} for (kind, n), members in groups.items()]


def _cell(rows: list[dict]) -> dict:
    largest = ("values_start", "values_after", "directions_excess", "depth_reached", "isolated_at", "isolation_lost")
    cell = {"batches": len(rows), **{name: max(row[name] for row in rows) for name in largest}}
    cell["isolated_late"] = sum(row["isolated_at"] > row["isolation_bound"] for row in rows)
    cell["depth_share"] = max(row["depth_reached"] / row["depth_bound"] for row in rows)
    cell["extremes_off_deg"] = math.degrees(max(abs(row["angle_extremes"] - math.pi / 2) for row in rows))
    cell["cluster_angle_deg"] = math.degrees(max(row["cluster_angle"] for row in rows))
    for side in ("larger", "smaller"):
        shares = [(row[f"ratio_{side}"] / row["ratio_bound"], row[f"gap_{side}"] / row["gap_bound"]) for row in rows]
        cell[f"ratio_{side}"], cell[f"gap_{side}"] = (max(column) for column in zip(*shares, strict=True))
        cell[f"share_{side}"] = sum(max(pair) <= 1 for pair in shares) / len(shares)
    energies = [row["energy_ratio"] for row in rows]
    return {**cell, "energy_ratio": float(np.median(energies)), "energy_ratio_least": min(energies)}


def summarize_ties(rows: Sequence[dict]) -> list[dict]:
    """Sum a survey up by the smaller number of samples at an extreme value.

    Args:
        rows: what `survey` returns.

    Returns:
        One cell for each k = min(ties_low, ties_high), ascending: `ties` (k), `batches`, `ratio_violations` and
        `gap_violations` (batches beyond Theorem 11's bounds relative to the larger extreme).

    Example:
        >>> rows = survey([16], 20, rng=np.random.default_rng(0), kinds=["tied"])
        >>> [cell["ratio_violations"] == cell["batches"] for cell in summarize_ties(rows)]
        [False, False, True, True]
    """
    cells = []
    for ties in sorted({min(row["ties_low"], row["ties_high"]) for row in rows}):
        members = [row for row in rows if min(row["ties_low"], row["ties_high"]) == ties]
        cells.append(
            {
                "ties": ties,
                "batches": len(members),
                "ratio_violations": sum(row["ratio_larger"] > row["ratio_bound"] for row in members),
                "gap_violations": sum(row["gap_larger"] > row["gap_bound"] for row in members),
            }
        )
    return cells


def isolating_sequence(batch: Batch, depth: int) -> list[dict]:
    """Follow what the review misses in the proof of Theorem 11, layer by layer.

    Args:
        batch: n numbers or strings such as "7/2", with at least three different ones.
        depth: number of layers, at least 1.

    Returns:
        One row a layer: `depth`; `isolating` (how many merged neurons are on at one extreme value only: L(t) is not
        empty if this is positive); `energy_max` and `energy_min`, the energies on the gaps below the maximum and
        above the minimum, over their growth ((n-k)**2 + k**2)**t / n**(2t), in units of the larger of the two limits;
        k is the smaller number of samples at an extreme value.

    Raises:
        ValueError: if the batch is not valid, has fewer than three different values, or `depth` is not a positive
            integer.

    Example:
        >>> [row["isolating"] for row in isolating_sequence([0, 1, 4, 6], 3)]
        [0, 0, 1]
    """
    data = sort_batch(batch)
    n, (low, high) = len(data.exact), (data.counts[0], data.counts[-1])
    if len(data.values) < 3:
        raise ValueError("batch has only two different values; Theorem 11 speaks of interior points.")
    k = min(low, high)
    q = (n - k) ** 2 + k**2
    mirrored = tuple(data.values[-1] - z for z in reversed(data.values))
    sides = [(data.values, data.counts)] * (high == k) + [(mirrored, data.counts[::-1])] * (low == k)
    limits = [isolated_energy(*side) for side in sides]
    largest = max(Fraction(numerator, q**power) for numerator, power, _ in limits)
    rows, growth = [], 1
    for state in layers(batch, depth):
        growth *= q
        top, bottom = (
            Fraction(state.upper[gap] + state.lower[gap], growth) / largest for gap in (len(data.values) - 2, 0)
        )
        isolating = int(state.upper[-1] > 0) + int(state.lower[0] > 0)
        row = {"depth": state.depth, "isolating": isolating}
        rows.append({**row, "energy_max": float(top), "energy_min": float(bottom)})
    return rows


def convergence_check(batch: Batch, depth: int) -> dict[str, float | int]:
    """Compare one layer, computed as it is, with what Theorem 11 and its proof say about the limit.

    Args:
        batch: n numbers or strings such as "7/2", with at least three different ones.
        depth: number of layers, at least 1; the gaps between extremes and cluster fade over a multiple of n layers.

    Returns:
        `n`; for the energies of `isolating_sequence`: `missing_max` and `missing_min` (the part of its own limit that
        the energy lacks at `depth`; where that limit is 0, the energy itself), `falls` (layers in which an energy with
        a positive limit falls), `overshoot` (largest excess over such a limit, relative; negative if there is none);
        for the geometry at `depth`: `extremes_off_deg` (distance of the angle between the extremes from 90 degrees),
        `cluster_angle_deg` (largest between two interior samples), `ratio` and `gap` (the largest norm of an interior
        sample over that of the larger extreme, and the distance of their angle from pi/2, both over Theorem 11's
        bound); the last three also at half the depth, rounded up, as `<name>_half`; and `extremes_product`, the largest
        inner product of two samples at the two extremes in layers 1 to 4 of the plain tree, nothing merged (exact).

    Raises:
        ValueError: if the batch is not valid, has fewer than three different values, or `depth` is not a positive
            integer.

    Example:
        >>> found = convergence_check([0, 1, 4, 6], 80)
        >>> found["extremes_off_deg"], found["missing_min"] < 0.001, found["ratio"] < 1
        (0.0, True, True)
    """
    sequence, end, data = isolating_sequence(batch, depth), limit(batch), sort_batch(batch)
    found: dict[str, float | int] = {"n": len(data.exact), "falls": 0, "overshoot": -math.inf}
    larger = max(end.energy_max, end.energy_min)
    for side, share in (("max", end.energy_max), ("min", end.energy_min)):
        path = np.array([row[f"energy_{side}"] for row in sequence])
        found[f"missing_{side}"] = float(path[-1])
        if share:
            path = path * larger / share
            found[f"missing_{side}"] = 1 - float(path[-1])
            found["falls"] += int((np.diff(path) < 0).sum())
            found["overshoot"] = max(found["overshoot"], float(path.max()) - 1)
    middle = -(-depth // 2)
    state = grow(batch, middle)
    half = _cluster_shape(data, geometry(state))
    for _ in range(depth - middle):
        state = split(state)
    shape = geometry(state)
    return {
        **found,
        "extremes_off_deg": math.degrees(abs(shape.angle_extremes - math.pi / 2)),
        **_cluster_shape(data, shape),
        **{f"{name}_half": value for name, value in half.items()},
        "extremes_product": plain_product(batch),
    }


def _cluster_shape(data: SortedBatch, shape: Geometry) -> dict[str, float]:
    """Largest interior angle (degrees), and norm ratio and gap relative to the larger extreme over their bounds."""
    n = len(data.exact)
    interior = [i for i, g in enumerate(data.groups) if 0 < g < len(data.values) - 1]
    larger = max(float(shape.norm_max), float(shape.norm_min))
    # Interior samples can all be zero in the first layer: no gap then.
    return {
        "cluster_angle_deg": math.degrees(float(shape.angles[np.ix_(interior, interior)].max())),
        "ratio": float(shape.norms[interior].max()) / larger / (3 / (n - 2)),
        "gap": float(shape.gap or 0.0) / (math.sqrt(2 * math.pi) / (n - 2)),
    }


def plain_product(batch: Batch, depth: int = 4) -> float:
    """Return the largest inner product of the two extremes in the first layers of the plain tree, nothing merged.

    Args:
        batch: n numbers or strings such as "7/2", not all equal.
        depth: how many layers, 1 to 12.

    Returns:
        The largest of the sums of v_max v_min over all neurons of a layer, exact up to the last rounding; 0 if the
        extremes are orthogonal in every one of these layers.

    Raises:
        ValueError: the batch is not valid, or `depth` is outside 1 to 12.

    Example:
        >>> plain_product([0, 1, 5])
        0.0
    """
    exact = parse_batch(batch)
    top, bottom = exact.index(max(exact)), exact.index(min(exact))
    found = [definition_neurons(batch, layer) for layer in range(1, depth + 1)]
    return float(max(sum(v[top] * v[bottom] for v in neurons) for neurons in found))
