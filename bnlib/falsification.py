"""The review's falsification test: one outlier far from a cluster, measured over batch size, width and depth.

For each batch size and width, independent draws of a Gaussian batch and of all weights go through one
network, and the sample of largest norm is compared with the mean of the others after every layer. A *cell*
is a batch size, a width and a depth. `verdict_at` applies the rules, `bnlib.outlier_identity` asks which
sample it is, `bnlib.estimates` holds the statistics.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bnlib.data import gaussian_batch
from bnlib.ensembles import LayerState, propagate
from bnlib.estimates import growth, median_interval, quantile
from bnlib.geometry import outlier_summary_from_gram
from bnlib.layers import Stages

Status = Literal["holds", "fails", "undecided"]
_LEVELS = (0.1, 0.5, 0.9)

# Batch sizes that somebody had looked at, at some width and depth, before the criteria of chapter 6 were written.
PILOT_BATCH_SIZES = frozenset({4, 5, 6, 7, 8, 10, 12, 16, 32, 64})


@dataclass(frozen=True)
class Thresholds:
    """What counts as the geometry of the claim; the book's values stand in `book/claims.yml`.

    Attributes:
        angle_deg: least angle between the outlier and the mean of the others, degrees.
        top_over_second: least ratio of the largest to the second-largest norm.
        exponent: exponent p of norm ratio ~ n^p that "at least linear" means.
        exponent_margin: how far below `exponent` the lower end of its interval may lie where it holds.
        hold: number of consecutive layers that make a passage.
    """

    angle_deg: float = 85.0
    top_over_second: float = 2.0
    exponent: float = 1.0
    exponent_margin: float = 0.1
    hold: int = 10

    def __post_init__(self):
        if not 0 < self.angle_deg < 180:
            raise ValueError(f"angle_deg is {self.angle_deg}; valid is an angle between 0 and 180 degrees.")
        if isinstance(self.hold, bool) or not isinstance(self.hold, int) or self.hold < 1:
            raise ValueError(f"hold is {self.hold!r}; valid is a whole number of layers, at least 1.")


@dataclass(frozen=True)
class Trajectories:
    """The sample of largest norm against the others, layer by layer; float64, on the CPU.

    Attributes:
        angle: angle between it and the mean of the others, radians, shape (depth, draws); row t is layer t +
            1. NaN where one of the two vectors is zero.
        norm_ratio: its norm over the norm of that mean, shape (depth, draws); infinite where the mean is zero.
        top_over_second: largest over second-largest norm, shape (depth, draws).
        top_over_median: largest norm over the median norm of the others, shape (depth, draws).
        norm_spread: largest over smallest norm, shape (depth, draws).
        index: which sample has the largest norm, shape (depth, draws).
    """

    angle: Float[Tensor, "depth draws"]
    norm_ratio: Float[Tensor, "depth draws"]
    top_over_second: Float[Tensor, "depth draws"]
    top_over_median: Float[Tensor, "depth draws"]
    norm_spread: Float[Tensor, "depth draws"]
    index: Int[Tensor, "depth draws"]


@dataclass(frozen=True)
class Passages:
    """When draws first show the outlier and keep it, and which lose it again.

    Attributes:
        onset: first layer, counted from 1, of the first run of `hold` consecutive layers above the
            threshold; 0 where there is none (censored), shape (draws,).
        returned: whether a run of `hold` consecutive layers not above the threshold follows, shape (draws,).
    """

    onset: Int[np.ndarray, "draws"]
    returned: Bool[np.ndarray, "draws"]


def follow(
    x: Float[Tensor, "draws n d"], width: int, depth: int, stages: Stages, *, generator: torch.Generator
) -> Trajectories:
    """Send batches through a random network and watch the sample of largest norm after every layer.

    Args:
        x: one batch a draw, shape (draws, n, d); fresh weights for each.
        width: neurons in every layer.
        depth: number of linear layers.
        stages: what follows each linear map.
        generator: source of the weights, on the device of x.

    Returns:
        Angles in radians and ratios, each of shape (depth, draws).

    Raises:
        ValueError: as `bnlib.ensembles.propagate`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x = gaussian_batch(8, 32, generator=g, draws=5)
        >>> follow(x, 32, 3, Stages.parse("RC+NL"), generator=g).angle.shape
        torch.Size([3, 5])
    """
    layers = [_watch(state) for state in propagate(x, width, depth, stages, generator=generator)]
    *ratios, index = (torch.stack(part).cpu() for part in zip(*layers, strict=True))
    return Trajectories(*(ratio.double() for ratio in ratios), index)


def _watch(state: LayerState) -> tuple[Tensor, ...]:
    summary = outlier_summary_from_gram(state.gram)
    ordered = state.gram.diagonal(dim1=-2, dim2=-1).sqrt().sort(dim=-1).values
    n = ordered.shape[-1]
    median_of_others = (ordered[..., (n - 2) // 2] + ordered[..., (n - 1) // 2]) / 2
    largest = ordered[..., -1]
    return (
        summary.angle,
        summary.norm_ratio,
        summary.top_over_second,
        largest / median_of_others,
        largest / ordered[..., 0],
        summary.index,
    )


def run_cell(
    n: int,
    width: int,
    depths: Sequence[int],
    n_seeds: int,
    stages: Stages,
    *,
    thresholds: Thresholds,
    generator: torch.Generator,
) -> dict[str, Any]:
    """Everything that the map needs of one batch size and width, as JSON can hold it.

    Each draw has a fresh Gaussian batch of the network's width and fresh weights. Numbers that are not
    finite (an outlier against samples that are all zero) are left out of quantiles, and a quantile of
    nothing is None.

    Args:
        n: batch size, at least 2.
        width: neurons in every layer, and dimension of the batch.
        depths: the depths to report, in linear layers, not empty; the network goes to the largest.
        n_seeds: number of draws.
        stages: what follows each linear map.
        thresholds: angle (degrees) and number of layers of a held passage.
        generator: source of the batches and the weights.

    Returns:
        `cells`: as `cell`, for every depth; `details`: as `details`, for every depth; `norm_ratios`: depth
        to the draws; `onsets`: layers, None for a censored draw; `returned`: booleans; `curves`:
        `angle_deg`, `norm_ratio`, `top_over_median` to quantiles 0.1, 0.5 and 0.9 at every layer, a list of
        three lists.

    Raises:
        ValueError: no depths, a depth or a number of draws below 1, or as `bnlib.ensembles.propagate`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> part = run_cell(8, 16, [2, 5], 10, Stages.parse("RC+NL"), thresholds=Thresholds(), generator=g)
        >>> [cell["depth"] for cell in part["cells"]], len(part["onsets"])
        ([2, 5], 10)
    """
    if len(depths) == 0 or min(depths) < 1:
        raise ValueError(f"depths is {list(depths)}; valid is at least one depth, each of at least 1 layer.")
    depths = sorted(depths)
    x = gaussian_batch(n, width, generator=generator, draws=n_seeds)
    paths = follow(x, width, depths[-1], stages, generator=generator)
    angle_deg = np.degrees(paths.angle.numpy())
    passed = passages(angle_deg, thresholds.angle_deg, thresholds.hold)
    return {
        "cells": [cell(paths, n, width, depth) for depth in depths],
        "details": [details(paths, n, width, depth) for depth in depths],
        "norm_ratios": {str(depth): _finite(paths.norm_ratio[depth - 1]) for depth in depths},
        "onsets": [int(layer) if layer > 0 else None for layer in passed.onset],
        "returned": passed.returned.tolist(),
        "curves": {
            "angle_deg": _quantile_curves(angle_deg),
            "norm_ratio": _quantile_curves(paths.norm_ratio.numpy()),
            "top_over_median": _quantile_curves(paths.top_over_median.numpy()),
        },
    }


def cell(paths: Trajectories, n: int, width: int, depth: int) -> dict[str, Any]:
    """The numbers of one cell of the map.

    Args:
        paths: trajectories of the draws.
        n: batch size, written into the cell.
        width: width, written into the cell.
        depth: layer to read, from 1.

    Returns:
        `n`, `width`, `depth`, `angle_deg` (median), `angle_deg_q10`, `angle_deg_q90`, `norm_ratio` and
        `top_over_second` (medians), `share_above_85` (share of all draws with an angle above 85 degrees; one
        that is not defined is not above), `n_seeds`.

    Raises:
        ValueError: a depth that the trajectories do not have.

    Example:
        >>> paths = Trajectories(*[torch.full((1, 4), 1.5, dtype=torch.float64)] * 5, torch.zeros(1, 4).long())
        >>> cell(paths, 8, 64, 1)["share_above_85"]
        1.0
    """
    at = _at(paths, depth)
    low, median, high = (quantile(at["angle"], level) for level in _LEVELS)
    return {
        "n": n,
        "width": width,
        "depth": depth,
        "angle_deg": median,
        "angle_deg_q10": low,
        "angle_deg_q90": high,
        "norm_ratio": quantile(at["ratio"], 0.5),
        "top_over_second": quantile(at["top"], 0.5),
        "share_above_85": float(np.mean(at["angle"] > 85.0)),
        "n_seeds": len(at["angle"]),
    }


def details(paths: Trajectories, n: int, width: int, depth: int) -> dict[str, Any]:
    """How well the medians of a cell are known, and how far apart its norms are.

    Args:
        paths: trajectories of the draws.
        n: batch size, written into the result.
        width: width, written into the result.
        depth: layer to read, from 1.

    Returns:
        `n`, `width`, `depth`; for `angle` (degrees), `ratio` (outlier to the mean of the others), `top` (to
        the second), `heavy` (to the median of the others) and `spread` (to the smallest) the ends of the 95
        percent interval of the median, `angle_low`, `angle_high` and so on, None where there are too few
        draws; and the medians `heavy`, `spread`.

    Raises:
        ValueError: a depth that the trajectories do not have.

    Example:
        >>> paths = Trajectories(*[torch.full((1, 9), 1.5, dtype=torch.float64)] * 5, torch.zeros(1, 9).long())
        >>> details(paths, 8, 64, 1)["ratio_low"]
        1.5
    """
    at = _at(paths, depth)
    result: dict[str, Any] = {"n": n, "width": width, "depth": depth}
    for name, values in at.items():
        result[f"{name}_low"], result[f"{name}_high"] = median_interval(values)
    return result | {name: quantile(at[name], 0.5) for name in ("heavy", "spread")}


def _at(paths: Trajectories, depth: int) -> dict[str, np.ndarray]:
    if not 1 <= depth <= len(paths.angle):
        raise ValueError(f"depth is {depth}; valid is a layer from 1 to {len(paths.angle)}.")
    parts = {
        "angle": paths.angle.rad2deg(),
        "ratio": paths.norm_ratio,
        "top": paths.top_over_second,
        "heavy": paths.top_over_median,
        "spread": paths.norm_spread,
    }
    return {name: part[depth - 1].numpy() for name, part in parts.items()}


def _finite(values: Tensor) -> list[float]:
    return values[values.isfinite()].tolist()


def _quantile_curves(values: np.ndarray) -> list[list[float | None]]:
    return [[quantile(layer, level) for layer in values] for level in _LEVELS]


def passages(angle_deg: Float[np.ndarray, "depth draws"], threshold_deg: float, hold: int) -> Passages:
    """Find the first held passage of every draw above an angle, and whether it is lost again.

    Args:
        angle_deg: angles in degrees, shape (depth, draws); row t is layer t + 1; NaN is not above.
        threshold_deg: the angle to pass, degrees.
        hold: number of consecutive layers that make a passage, or a return.

    Returns:
        Onsets in layers (0: censored) and returns, each of shape (draws,).

    Raises:
        ValueError: hold < 1, or not two dimensions.

    Example:
        >>> angles = np.array([[80.0, 80], [86, 86], [80, 86], [86, 86], [86, 80], [86, 80]])
        >>> passages(angles, 85.0, 2)
        Passages(onset=array([4, 2]), returned=array([False,  True]))
    """
    if hold < 1:
        raise ValueError(f"hold is {hold}; valid is at least 1 layer.")
    if np.ndim(angle_deg) != 2:
        raise ValueError(f"angle_deg has {np.ndim(angle_deg)} dimensions; valid is an array of shape (depth, draws).")
    above = np.asarray(angle_deg) > threshold_deg
    onset = _first_run(above, hold)
    layers = np.arange(1, len(above) + 1)[:, None]
    returned = _first_run(~above & (layers > onset), hold) > 0
    return Passages(onset, returned & (onset > 0))


def _first_run(flags: np.ndarray, length: int) -> np.ndarray:
    """First layer, from 1, of the first run of `length` true flags in each column; 0 where there is none."""
    depth, draws = flags.shape
    if depth < length:
        return np.zeros(draws, dtype=int)
    counts = np.concatenate([np.zeros((1, draws), dtype=int), np.cumsum(flags, axis=0)])
    runs = counts[length:] - counts[:-length] == length
    return np.where(runs.any(axis=0), runs.argmax(axis=0) + 1, 0)


def status(low: float | None, high: float | None, threshold: float) -> Status:
    """Whether a median is known to be at or above a threshold, known to be below it, or neither.

    Args:
        low: lower end of its interval, None if not known.
        high: upper end, None if not known.
        threshold: in the same unit.

    Returns:
        `holds` if the whole interval is at or above, `fails` if it is below, `undecided` otherwise.

    Example:
        >>> status(86.0, 89.0, 85.0), status(80.0, 84.0, 85.0), status(80.0, 89.0, 85.0)
        ('holds', 'fails', 'undecided')
    """
    if low is not None and low >= threshold:
        return "holds"
    return "fails" if high is not None and high < threshold else "undecided"


def cell_status(detail: Mapping[str, Any], thresholds: Thresholds) -> Status:
    """Whether a cell shows one outlier, near a right angle to the mean of the others.

    Args:
        detail: as `details` returns it.
        thresholds: of the angle (degrees) and of the largest over the second-largest norm.

    Returns:
        `fails` if either is known to fail, `holds` if both are known to hold, `undecided` otherwise.

    Example:
        >>> detail = {"angle_low": 88.0, "angle_high": 89.0, "top_low": 1.5, "top_high": 1.9}
        >>> cell_status(detail, Thresholds())
        'fails'
    """
    return _worst(
        [
            status(detail["angle_low"], detail["angle_high"], thresholds.angle_deg),
            status(detail["top_low"], detail["top_high"], thresholds.top_over_second),
        ]
    )


def _worst(statuses: Iterable[Status]) -> Status:
    found = set(statuses)
    return next(word for word in ("fails", "undecided", "holds") if word in found)


def growth_table(
    parts: Mapping[tuple[int, int], Mapping[str, Any]], depth: int, *, generator: np.random.Generator
) -> list[dict[str, Any]]:
    """Exponent of the norm ratio as a power of the batch size, at one depth, for each width.

    Args:
        parts: (batch size, width) to what `run_cell` returned.
        depth: one of the depths of the parts.
        generator: source of the bootstrap.

    Returns:
        A list of `depth`, `width`, `from_n`, `exponent`, `low`, `high` (95 percent interval): the fit over
        the batch sizes from `from_n` on, for every `from_n` that leaves at least three.

    Example:
        >>> parts = {(n, 64): {"norm_ratios": {"30": [n - 1.0] * 9}} for n in (8, 16, 32)}
        >>> row = growth_table(parts, 30, generator=np.random.default_rng(0))[0]
        >>> row["from_n"], round(row["exponent"], 2)
        (8, 1.07)
    """
    sizes = sorted({n for n, _ in parts})
    rows = []
    for width in sorted({width for _, width in parts}):
        for first in range(len(sizes) - 2):
            ratios = {n: parts[n, width]["norm_ratios"][str(depth)] for n in sizes[first:]}
            fit = growth(ratios, generator=generator)
            if fit is not None:
                numbers = {"exponent": fit.value, "low": fit.low, "high": fit.high}
                rows.append({"depth": depth, "width": width, "from_n": sizes[first], **numbers})
    return rows


def verdict_at(
    all_details: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], depth: int, thresholds: Thresholds
) -> dict[str, Any]:
    """Apply the rules at one depth over all batch sizes and widths.

    The claim speaks of large batches, so it gets the benefit of the doubt for small ones. Let `from_n` be the
    smallest batch size such that every cell from it on holds and, at every width, the norm ratio grows at
    least linearly from it on (a fit takes at least three batch sizes).

    * `confirmed`: `from_n` is the smallest batch size of the run; `confirmed under conditions`: it is larger;
    * `refuted`: a cell of the largest batch size is known to fail, or the growth is known to be slower than
      linear, at some width, from every batch size on from which all cells hold and growth can be fitted;
    * `inconclusive` otherwise.

    Args:
        all_details: as `details` returns them; those of other depths are ignored.
        rows: as `growth_table` returns them; likewise.
        depth: the depth to judge.
        thresholds: the rules' numbers.

    Returns:
        `depth`, `verdict`, `from_n` (or None), and `failing`, `undecided`, `holding`: numbers of cells.

    Raises:
        ValueError: no cell of that depth.

    Example:
        >>> sure = {"angle_low": 88.0, "angle_high": 89.0, "top_low": 5.0, "top_high": 9.0}
        >>> found = [{"n": n, "width": 64, "depth": 30, **sure} for n in (8, 16, 32)]
        >>> rows = [{"depth": 30, "width": 64, "from_n": 8, "exponent": 1.05, "low": 1.0, "high": 1.1}]
        >>> verdict_at(found, rows, 30, Thresholds())["verdict"]
        'confirmed'
    """
    here = [detail for detail in all_details if detail["depth"] == depth]
    if not here:
        raise ValueError(f"depth is {depth}; valid is a depth for which there are cells.")
    sizes = sorted({detail["n"] for detail in here})
    statuses = [cell_status(detail, thresholds) for detail in here]
    by_size = {n: _worst(s for s, detail in zip(statuses, here, strict=True) if detail["n"] == n) for n in sizes}
    widths = {detail["width"] for detail in here}
    growths = {n: _growth_status([row for row in rows if row["depth"] == depth], n, widths, thresholds) for n in sizes}
    verdict, from_n = _verdict(by_size, growths)
    return {
        "depth": depth,
        "verdict": verdict,
        "from_n": from_n,
        "failing": statuses.count("fails"),
        "undecided": statuses.count("undecided"),
        "holding": statuses.count("holds"),
    }


def _growth_status(
    rows: Sequence[Mapping[str, Any]], from_n: int, widths: set[int], thresholds: Thresholds
) -> Status | None:
    """Whether growth from a batch size on is at least linear at every width; None where there is no fit at all."""
    found = [row for row in rows if row["from_n"] == from_n]
    if not found:
        return None
    if any(row["high"] < thresholds.exponent for row in found):
        return "fails"
    least = thresholds.exponent - thresholds.exponent_margin
    known = {row["width"] for row in found if row["low"] >= least}
    return "holds" if known == widths else "undecided"


def _verdict(by_size: Mapping[int, Status], growths: Mapping[int, Status | None]) -> tuple[str, int | None]:
    sizes = sorted(by_size)
    if by_size[sizes[-1]] == "fails":
        return "refuted", None
    candidates = [n for n in sizes if all(by_size[m] == "holds" for m in sizes if m >= n) and growths[n] is not None]
    from_n = next((n for n in candidates if growths[n] == "holds"), None)
    if from_n is not None:
        return ("confirmed" if from_n == sizes[0] else "confirmed under conditions"), from_n
    if candidates and all(growths[n] == "fails" for n in candidates):
        return "refuted", None
    return "inconclusive", None
