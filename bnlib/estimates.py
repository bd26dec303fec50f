"""Medians, quantiles and growth laws of a sample, with intervals; censored times included."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import CensoredData, beta, binom, ecdf

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 percent bootstrap interval.

    Attributes:
        value: the estimate from the sample itself.
        low: the 2.5 percent quantile over resamples.
        high: the 97.5 percent quantile over resamples.
    """

    value: float
    low: float
    high: float


def quantile(values: Sequence[float] | Float[np.ndarray, "draws"], level: float) -> float | None:
    """Quantile of the finite values (linear interpolation), None if there are none.

    Args:
        values: the sample; NaN and infinities are left out.
        level: share of the sample below, from 0 to 1.

    Returns:
        The quantile, in the unit of the values, or None.

    Raises:
        ValueError: a level outside [0, 1].

    Example:
        >>> quantile([1.0, 2.0, 4.0, math.nan], 0.5), quantile([math.inf], 0.5)
        (2.0, None)
    """
    if not 0 <= level <= 1:
        raise ValueError(f"level is {level}; valid is a number from 0 to 1.")
    finite = _finite(values)
    return float(np.quantile(finite, level)) if len(finite) else None


def median_interval(values: Sequence[float] | Float[np.ndarray, "draws"]) -> tuple[float | None, float | None]:
    """Interval of order statistics that covers the median with at least 95 percent, whatever the distribution.

    With k the largest rank such that P(Binomial(m, 1/2) < k) <= 0.025, the interval runs from the k-th
    smallest to the k-th largest of the m values. Infinite values take part (a censored time is late, not
    lost) and an end that is not finite is None; NaN is left out.

    Args:
        values: the sample, any unit.

    Returns:
        Lower and upper end, each None if the sample is too small (fewer than 6 values) or the end is infinite.

    Example:
        >>> median_interval([float(rank) for rank in range(1, 33)])
        (10.0, 23.0)
        >>> median_interval([1.0, 2.0, 3.0])
        (None, None)
    """
    sample = np.sort(np.asarray(values, dtype=float))
    sample = sample[~np.isnan(sample)]
    count = len(sample)
    rank = int(binom.ppf((1 - CONFIDENCE) / 2, count, 0.5)) if count else 0
    # ppf is the first rank whose probability exceeds the tail; the strictly smaller one keeps the coverage.
    if count == 0 or rank < 1:
        return None, None
    ends = sample[rank - 1], sample[count - rank]
    return tuple(float(end) if math.isfinite(end) else None for end in ends)


def censored_quantile(times: Sequence[int | None], level: float) -> float | None:
    """Quantile of times of which some are censored: None where it falls among the censored ones.

    All draws are watched equally long, so a censored one is later than every observed one, and the observed
    order statistics are what a Kaplan-Meier estimate would give.

    Args:
        times: any unit, None for a censored draw; not empty.
        level: share of the draws that have passed, between 0 and 1.

    Returns:
        The smallest observed time by which at least this share has passed, or None.

    Raises:
        ValueError: no draws, or a level outside (0, 1).

    Example:
        >>> censored_quantile([40, 50, 60, None, None], 0.5), censored_quantile([40, None, None], 0.5)
        (60.0, None)
    """
    if len(times) == 0:
        raise ValueError("times is empty; valid is at least one draw.")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; valid is a number between 0 and 1.")
    found = np.sort(_late(times))[math.ceil(level * len(times)) - 1]
    return float(found) if math.isfinite(found) else None


def share_interval(hits: int, draws: int, *, tail: float = (1 - CONFIDENCE) / 2) -> tuple[float | None, float | None]:
    """Exact two-sided interval of a share, 95 percent by default (Clopper and Pearson 1934).

    Args:
        hits: number of draws that had the property.
        draws: number of draws, at least `hits`.
        tail: probability, on each side, that the interval misses the truth.

    Returns:
        Lower and upper end, or None for both if there are no draws.

    Raises:
        ValueError: a negative number, or more hits than draws.

    Example:
        >>> low, high = share_interval(0, 64)
        >>> low, round(high, 3)
        (0.0, 0.056)
    """
    if not 0 <= hits <= draws:
        raise ValueError(f"hits is {hits} of {draws} draws; valid is a number from 0 to the number of draws.")
    if draws == 0:
        return None, None
    low = float(beta.ppf(tail, hits, draws - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, draws - hits)) if hits < draws else 1.0
    return low, high


def onset_summary(onsets: Sequence[int | None], returned: Sequence[bool], *, latest: int) -> dict[str, Any]:
    """Median, quartiles and counts of onsets of which some are censored, and the share that was lost again.

    Args:
        onsets: layers, None for a censored draw; not empty.
        returned: whether each draw lost again what it had.
        latest: last layer of an onset after which a return could still be seen; draws with a later onset say
            nothing about returns.

    Returns:
        `median`, `low`, `high` (95 percent interval of the median), `quartile_1`, `quartile_3`, in layers,
        None for "later than the run"; `draws`, `censored`, `settled` (onset at `latest` or before) and
        `returned` (those of the settled that were lost): numbers of draws; `returned_low`, `returned_high`:
        as `share_interval`, of the share of the settled draws that returned.

    Raises:
        ValueError: no draws, or lists of different lengths.

    Example:
        >>> found = onset_summary([40, 50, 60, None, None], [False, True, False, False, False], latest=50)
        >>> found["median"], found["settled"], found["returned"]
        (60.0, 2, 1)
    """
    if len(onsets) != len(returned):
        raise ValueError(f"returned has {len(returned)} entries; valid is one for each of the {len(onsets)} onsets.")
    quartile_1, median, quartile_3 = (censored_quantile(onsets, level) for level in (0.25, 0.5, 0.75))
    low, high = median_interval(_late(onsets))
    settled = _late(onsets) <= latest
    lost = int(np.sum(settled & np.asarray(returned, dtype=bool)))
    returned_low, returned_high = share_interval(lost, int(settled.sum()))
    return {
        "median": median,
        "low": low,
        "high": high,
        "quartile_1": quartile_1,
        "quartile_3": quartile_3,
        "draws": len(onsets),
        "censored": sum(onset is None for onset in onsets),
        "settled": int(settled.sum()),
        "returned": lost,
        "returned_low": returned_low,
        "returned_high": returned_high,
    }


def survival(durations: Sequence[int | float], observed: Sequence[bool]) -> dict[str, list[float | None]]:
    """Kaplan and Meier's estimate of the share that lasts longer than a time, with pointwise 95 percent intervals.

    The intervals are those of Greenwood's variance on the scale of log(-log S) (Kalbfleisch & Prentice 1980).

    Args:
        durations: how long each draw lasted, or was watched without an end; any unit, not empty.
        observed: whether the end was seen; if not, the draw is censored at its duration.

    Returns:
        `times`, increasing; `share`: of the draws that last longer than each time; `low`, `high`: its interval,
        None before the first end and after the last draw has ended, where Greenwood's variance says nothing.

    Raises:
        ValueError: no draws, or lists of different lengths.

    Example:
        >>> found = survival([5, 8, 8, 12], [True, False, True, False])
        >>> found["times"], [round(share, 3) for share in found["share"]]
        ([5.0, 8.0, 12.0], [0.75, 0.5, 0.5])
    """
    if len(durations) != len(observed):
        raise ValueError(
            f"observed has {len(observed)} entries; valid is one for each of the {len(durations)} durations."
        )
    if len(durations) == 0:
        raise ValueError("durations is empty; valid is at least one draw.")
    seen = np.asarray(observed, dtype=bool)
    found = ecdf(CensoredData.right_censored(np.asarray(durations, dtype=float), ~seen)).sf
    inside = (found.probabilities > 0) & (found.probabilities < 1)
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where the interval is not defined, it is None below
        ends = found.confidence_interval(CONFIDENCE, method="log-log") if inside.any() else None
    return {
        "times": [float(time) for time in found.quantiles],
        "share": [float(share) for share in found.probabilities],
        "low": _known(ends.low.probabilities if ends else None, inside),
        "high": _known(ends.high.probabilities if ends else None, inside),
    }


def _known(values: np.ndarray | None, inside: np.ndarray) -> list[float | None]:
    if values is None:
        return [None] * len(inside)
    return [float(v) if ok and math.isfinite(v) else None for v, ok in zip(values, inside, strict=True)]


def survival_median(durations: Sequence[int | float], observed: Sequence[bool]) -> dict[str, float | None]:
    """Median duration of draws that were watched for different times, with its 95 percent interval.

    The interval holds the times at which one half lies inside the pointwise interval of `survival`
    (Brookmeyer & Crowley 1982).

    Args:
        durations: as in `survival`; may be empty.
        observed: as in `survival`.

    Returns:
        `median`, `low`, `high` in the unit of the durations; None where it is beyond what was watched.

    Example:
        >>> survival_median([3, 4, 5, 6, 7, 8, 9], [True] * 7)["median"]
        6.0
        >>> survival_median([3, 4], [False, False])["median"] is None
        True
    """
    if len(durations) == 0:
        return {"median": None, "low": None, "high": None}
    found = survival(durations, observed)

    def first(shares: Sequence[float | None]) -> float | None:
        times = zip(found["times"], shares, strict=True)
        return next((time for time, share in times if share is not None and share <= 0.5), None)

    return {"median": first(found["share"]), "low": first(found["low"]), "high": first(found["high"])}


def kept_summary(
    onsets: Sequence[int | None],
    return_layers: Sequence[int | None],
    *,
    watched: int,
    hold: int,
    horizon: int,
) -> dict[str, Any]:
    """How long draws keep the outlier after its onset; draws are watched for different times, and none is dropped.

    Args:
        onsets: layers, None for a draw that never had it.
        return_layers: first layer of its loss, None where it was not lost.
        watched: the last layer of all draws.
        hold: layers in a row that make a loss; one that begins later than `watched - hold + 1` cannot be seen.
        horizon: number of layers after the onset, for a share with an exact interval.

    Returns:
        `durations` and `ended`, draw by draw, for `survival`; `median`, `median_low`, `median_high` of the duration
        in layers; `followed`: draws whose onset is early enough that a loss within the horizon would have been seen;
        `lost`: those of them that lost it within the horizon; `lost_low`, `lost_high`: exact interval of their share.

    Raises:
        ValueError: lists of different lengths, or a horizon or hold below 1.

    Example:
        >>> found = kept_summary([10, 20, None, 90], [50, None, None, None], watched=100, hold=5, horizon=60)
        >>> found["durations"], found["ended"], found["followed"], found["lost"]
        ([40, 76, 6], [True, False, False], 2, 1)
    """
    if len(onsets) != len(return_layers):
        raise ValueError(
            f"return_layers has {len(return_layers)} entries; valid is one for each of the {len(onsets)} onsets."
        )
    if hold < 1 or horizon < 1:
        raise ValueError(f"hold is {hold} and horizon is {horizon}; valid is at least 1 layer each.")
    had = [(start, end) for start, end in zip(onsets, return_layers, strict=True) if start is not None]
    last = watched - hold + 1
    durations = [(end if end is not None else max(last, start)) - start for start, end in had]
    ended = [end is not None for _, end in had]
    early = [(start, end) for start, end in had if start + horizon <= last]
    lost = sum(end is not None and end - start <= horizon for start, end in early)
    low, high = share_interval(lost, len(early))
    median = survival_median(durations, ended)
    return {
        "durations": durations,
        "ended": ended,
        "median": median["median"],
        "median_low": median["low"],
        "median_high": median["high"],
        "followed": len(early),
        "lost": lost,
        "lost_low": low,
        "lost_high": high,
    }


def growth(
    samples: Mapping[int, Sequence[float]], *, generator: np.random.Generator, resamples: int = 2000
) -> Estimate | None:
    """Exponent p of a median as a power of the batch size, median ~ n^p, by least squares in logarithms.

    Args:
        samples: batch size to positive values of its draws; values that are not finite are left out.
        generator: source of the bootstrap, which resamples the draws of every batch size.
        resamples: number of resamples.

    Returns:
        The exponent with its 95 percent interval, or None with fewer than three batch sizes or an empty sample.

    Example:
        >>> ratios = {n: [n - 1.0] * 20 for n in (16, 32, 64)}
        >>> round(growth(ratios, generator=np.random.default_rng(0)).value, 3)
        1.035
    """
    finite = {n: _finite(values) for n, values in samples.items()}
    if len(finite) < 3 or any(len(values) == 0 for values in finite.values()):
        return None
    x = np.log(np.array(list(finite), dtype=float))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()  # the least-squares slope as a weighted sum
    slope = float(weights @ np.log([np.median(values) for values in finite.values()]))
    again = np.stack([_resampled_medians(values, generator, resamples) for values in finite.values()])
    return _with_interval(slope, weights @ np.log(again))


def onset_per_doubling(
    onsets: Mapping[int, Sequence[Sequence[int | None]]],
    widths: Sequence[int],
    depth: int,
    *,
    generator: np.random.Generator,
    resamples: int = 2000,
) -> dict[str, Any] | None:
    """How many layers later the median onset comes for each doubling of the width, in narrow and in wide networks.

    If the median onset is a + b log(width), the two numbers agree; if it grows like a power of the width,
    the second is larger. Both are means over those batch sizes at which more than half of the draws have
    passed at all three widths.

    Args:
        onsets: batch size to one list of onsets (layers, None for censored) for each of the widths.
        widths: increasing; the first, the middle and the last are compared.
        depth: layers that every draw was watched; a censored onset counts as one more.
        generator: source of the bootstrap, which resamples the draws of every cell.
        resamples: number of resamples.

    Returns:
        `batch_sizes` that were used, `widths` (three of them), and `narrow`, `wide`, `difference`, each an
        `Estimate` in layers per doubling; None with fewer than three widths or no batch size that qualifies.

    Example:
        >>> onsets = {8: [[40] * 9, [50] * 9, [60] * 9]}
        >>> onset_per_doubling(onsets, [64, 256, 1024], 200, generator=np.random.default_rng(0))["wide"].value
        5.0
    """
    if len(widths) < 3:
        return None
    chosen = [0, len(widths) // 2, len(widths) - 1]
    doublings = np.diff(np.log2([widths[i] for i in chosen]))
    used, slopes, resampled = [], [], []
    for n, lists in onsets.items():
        layers = [np.minimum(_late(lists[i]), depth + 1) for i in chosen]
        medians = np.array([np.median(values) for values in layers])
        if (medians > depth).any():
            continue
        again = np.stack([_resampled_medians(values, generator, resamples) for values in layers], axis=1)
        used.append(n)
        slopes.append(np.diff(medians) / doublings)
        resampled.append(np.diff(again, axis=1) / doublings)
    if not used:
        return None
    value, again = np.mean(slopes, axis=0), np.mean(resampled, axis=0)
    return {
        "batch_sizes": used,
        "widths": [widths[i] for i in chosen],
        "narrow": _with_interval(value[0], again[:, 0]),
        "wide": _with_interval(value[1], again[:, 1]),
        "difference": _with_interval(value[1] - value[0], again[:, 1] - again[:, 0]),
    }


def _finite(values: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    return array[np.isfinite(array)]


def _late(times: Sequence[int | None]) -> np.ndarray:
    """Times with infinity for the censored ones."""
    return np.array([math.inf if time is None else time for time in times], dtype=float)


def _resampled_medians(values: np.ndarray, generator: np.random.Generator, resamples: int) -> np.ndarray:
    picks = generator.integers(len(values), size=(resamples, len(values)))
    return np.median(values[picks], axis=1)


def _with_interval(value: float, resampled: np.ndarray) -> Estimate:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Estimate(float(value), float(low), float(high))
