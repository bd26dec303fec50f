"""Where whole batches go at infinite width: to the symmetric state or to an outlier. NumPy float64; no torch."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.checks import checked_depth
from bnlib.outlier_fixed_points import NoStateError, outlier_state, separatrix
from bnlib.wide_batches import Batch, activations, batch_from_points, next_batch

_EVERY = 5  # layers between two looks


@dataclass(frozen=True)
class Fate:
    """What became of a batch.

    Attributes:
        end: "outlier", "symmetric" or "open" (neither by the last layer).
        layers: layers passed until that was seen.
        start: largest norm over the root mean square of the others, after the first layer.
        winner: index of the sample of largest norm at the end.
        first: index of the sample of largest norm after the first layer.
        log_scale: log of the mean squared norm at the end, for He weights.
    """

    end: str
    layers: int
    start: float
    winner: int
    first: int
    log_scale: float


def _top(lengths: np.ndarray) -> tuple[int, float]:
    index = int(np.argmax(lengths))
    others = np.delete(lengths, index)
    return index, float(lengths[index] / np.sqrt((others**2).mean()))


def thresholds(n: int) -> tuple[float, float]:
    """When a batch counts as symmetric and when as having an outlier, by the ratio of the largest norm to the others'.

    Below a tenth of the separatrix's excess over 1 a batch is taken for symmetric; above the geometric mean of
    separatrix and outlier state for one with an outlier. Without these states: 1.001, and infinity.

    Args:
        n: batch size, at least 3.

    Returns:
        The two ratios.

    Raises:
        ValueError: n < 3.

    Example:
        >>> [round(t, 3) for t in thresholds(8)]
        [1.032, 2.598]
    """
    try:
        between, far = separatrix(n).norm_ratio, outlier_state(n).norm_ratio
    except NoStateError:
        return 1.001, float("inf")
    return 1.0 + (between - 1.0) / 10.0, float(np.sqrt(between * far))


def fate(start: Batch, depth: int | float) -> Fate:
    """Follow a batch until it is symmetric or has an outlier.

    Args:
        start: the batch.
        depth: the most layers to pass.

    Returns:
        Its fate.

    Raises:
        ValueError: depth is not a whole number >= 0.

    Example:
        >>> found = fate(batch_from_points(np.diag([3.0, 1, 1, 1, 1, 1, 1, 1])), 400)
        >>> found.end, found.winner
        ('outlier', 0)
    """
    batch = next_batch(start)
    low, high = thresholds(len(batch.products))
    first, begin = _top(activations(batch)[0])
    winner, end = first, "open"
    for layer in range(1, checked_depth(depth) + 1):
        if layer % _EVERY == 1:
            lengths = activations(batch)[0]
            winner, ratio = _top(lengths)
            if ratio > high:
                end = "outlier"
                break
            if lengths.max() / lengths.min() < low:
                end = "symmetric"
                break
        batch = next_batch(batch)
    return Fate(end, batch.depth, begin, winner, first, batch.log_scale)


def fates(x: Float[np.ndarray, "draws n d"], depth: int | float) -> list[Fate]:
    """The fates of several batches.

    Args:
        x: samples are rows, shape (draws, n, d).
        depth: the most layers to pass.

    Returns:
        One fate a draw.

    Raises:
        ValueError: as `bnlib.wide_batches.batch_from_points`, or depth is not a whole number >= 0.

    Example:
        >>> [f.end for f in fates(np.random.default_rng(0).standard_normal((2, 8, 1000)), 400)]
        ['symmetric', 'symmetric']
    """
    return [fate(batch_from_points(draw), depth) for draw in np.asarray(x, dtype=np.float64)]


def shares(found: list[Fate]) -> dict[str, float | int | None]:
    """Summary of some fates, ready for a results file.

    Args:
        found: at least one fate.

    Returns:
        `draws`; the counts `outlier`, `symmetric` and `open`; `first_wins` (of those with an outlier, how many have it
        at the sample that was largest after the first layer); medians `layers` (until seen) and `start`.

    Raises:
        ValueError: no fate.

    Example:
        >>> shares([Fate("outlier", 20, 2.0, 1, 1, 0.0), Fate("symmetric", 30, 1.0, 2, 0, 0.0)])["outlier"]
        1
    """
    if not found:
        raise ValueError("found must hold at least one fate, got none.")
    out = [f for f in found if f.end == "outlier"]
    return {
        "draws": len(found),
        "outlier": len(out),
        "symmetric": sum(f.end == "symmetric" for f in found),
        "open": sum(f.end == "open" for f in found),
        "first_wins": sum(f.winner == f.first for f in out),
        "layers": float(np.median([f.layers for f in found])),
        "start": float(np.median([f.start for f in found])),
    }


def on_the_side(found: list[Fate], ratio: float) -> int:
    """How many batches ended where a norm ratio of the separatrix would send them by their start alone.

    Args:
        found: fates.
        ratio: norm ratio of the separatrix.

    Returns:
        The number of those with an outlier that started above it, and of symmetric ones that started below.

    Example:
        >>> on_the_side([Fate("outlier", 20, 2.0, 1, 1, 0.0), Fate("symmetric", 30, 1.9, 2, 0, 0.0)], 1.5)
        1
    """
    return sum((f.start > ratio) == (f.end == "outlier") for f in found if f.end != "open")
