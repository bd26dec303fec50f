"""The review's falsification test: one outlier far from a cluster, measured over batch size, width and depth.

For each batch size and width, independent draws of a batch and of all weights go through one network, and the
sample of largest norm is compared with the mean of the others after every layer. A *cell* is a batch size, a
width and a depth. `bnlib.falsification_rules` applies the rules, `bnlib.outlier_identity` asks which sample it
is, `bnlib.estimates` and `bnlib.onset_laws` hold the statistics.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bnlib.data import digits, gaussian_batch
from bnlib.ensembles import LayerState, propagate
from bnlib.estimates import median_interval, quantile, share_interval
from bnlib.falsification_rules import Thresholds
from bnlib.geometry import outlier_summary_from_gram
from bnlib.layers import Stages
from bnlib.two_samples import check_two_samples

Data = Literal["gaussian", "digits"]
_LEVELS = (0.1, 0.5, 0.9)
# Angles, in degrees, at which draws are counted, so that a verdict can be asked for another threshold as well.
SENSITIVITY = (80.0, 85.0, 88.0)

# Batch sizes that somebody had looked at, at some width and depth, before the criteria of chapter 6 were written.
PILOT_BATCH_SIZES = frozenset({4, 5, 6, 7, 8, 10, 12, 16, 32, 64})


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
        return_layer: first layer of that run; 0 where there is none, shape (draws,).
    """

    onset: Int[np.ndarray, "draws"]
    returned: Bool[np.ndarray, "draws"]
    return_layer: Int[np.ndarray, "draws"]


@dataclass(frozen=True)
class Plan:
    """How much of a batch size and width a run can afford.

    Attributes:
        draws: number of independent draws.
        depths: depths to report, in linear layers, increasing.
    """

    draws: int
    depths: tuple[int, ...]


def layer_cost(n: int, width: int) -> float:
    """Relative cost of one layer of one draw: random numbers, and two products with n x n matrices.

    Measured on CPUs in float64 with a root of the Gram matrix, a layer of one draw takes about 0.12 nanoseconds
    times this.

    Args:
        n: batch size.
        width: number of neurons.

    Returns:
        n width (100 + n), without unit.

    Example:
        >>> layer_cost(100, 10)
        200000.0
    """
    return float(n * width * (100 + n))


def plan_cell(
    n: int, width: int, depths: Sequence[int], *, draws: tuple[int, int], budget: int | float, reach: int
) -> Plan:
    """Choose the number of draws by cost, and where even the fewest are too many for all depths, stop earlier.

    Args:
        n: batch size.
        width: number of neurons.
        depths: the depths wanted, in linear layers, not empty.
        draws: fewest and most draws.
        budget: cost that the cell may have, in the unit of `layer_cost`; `reach` goes first.
        reach: depths up to this one are kept whatever they cost.

    Returns:
        The plan: all depths that the fewest draws can afford, with as many draws as the budget then allows.

    Raises:
        ValueError: no depths, or no depth that fits.

    Example:
        >>> plan_cell(8, 64, [30, 200], draws=(24, 64), budget=1e9, reach=30)
        Plan(draws=64, depths=(30, 200))
        >>> plan_cell(128, 4096, [30, 200], draws=(24, 64), budget=1e9, reach=30)
        Plan(draws=24, depths=(30,))
    """
    _check_depths(depths)
    least, most = draws
    cost = layer_cost(n, width)
    deepest = max(reach, budget / (least * cost))
    kept = tuple(depth for depth in sorted(depths) if depth <= deepest)
    if not kept:
        raise ValueError(
            f"budget is {budget}; valid is at least {least * cost * min(depths):.3g} at n = {n}, width {width}."
        )
    return Plan(int(min(most, max(least, budget // (cost * kept[-1])))), kept)


def _check_depths(depths: Sequence[int]) -> None:
    if len(depths) == 0 or min(depths) < 1:
        raise ValueError(f"depths is {list(depths)}; valid is at least one depth, each of at least 1 layer.")


def digits_batch(n: int, draws: int, *, generator: torch.Generator) -> Float[Tensor, "draws n 64"]:
    """Batches of different handwritten digits, each batch a random subset of scikit-learn's digits.

    Args:
        n: batch size, 2 to 1797.
        draws: number of batches.
        generator: source of the choice; the batches lie on its device.

    Returns:
        Float64, shape (draws, n, 64), gray levels in [0, 1], not standardized.

    Raises:
        ValueError: n or draws out of range.

    Example:
        >>> digits_batch(8, 3, generator=torch.Generator().manual_seed(0)).shape
        torch.Size([3, 8, 64])
    """
    features = digits().features
    if not 2 <= n <= len(features) or draws < 1:
        raise ValueError(f"n is {n} and draws is {draws}; valid is 2 <= n <= {len(features)} and at least 1 draw.")
    keys = torch.rand(draws, len(features), generator=generator, device=generator.device)
    return features.to(generator.device)[keys.topk(n, dim=-1).indices]


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
    data: Data = "gaussian",
) -> dict[str, Any]:
    """Everything that the map needs of one batch size and width, as JSON can hold it.

    Each draw has a fresh batch and fresh weights. Numbers that are not
    finite (an outlier against samples that are all zero) are left out of quantiles, and a quantile of
    nothing is None.

    Args:
        n: batch size, at least 2.
        width: neurons in every layer, and dimension of a Gaussian batch.
        depths: the depths to report, in linear layers, not empty; the network goes to the largest.
        n_seeds: number of draws.
        stages: what follows each linear map.
        thresholds: angle (degrees) and number of layers of a held passage.
        generator: source of the batches and the weights.
        data: `gaussian`, independent entries of the network's width, or `digits`, as `digits_batch`.

    Returns:
        `cells`: as `cell`, with `stages`, `data` and `share_with_outlier`, for every depth; `details`: as
        `details`, for every depth; `norm_ratios`: depth to the draws; `onsets`: layers, None for a censored draw;
        `returned`: booleans; `return_layers`: layers, None where there is no return; `watched`: the last layer;
        `curves`: `angle_deg`, `norm_ratio`, `top_over_median` to quantiles 0.1, 0.5 and 0.9 at every layer, a list
        of three lists; `two_samples`: as `bnlib.two_samples.check_two_samples` for batches of two without rescaling at
        widths of 3 and more, else None.

    Raises:
        ValueError: no depths, a depth or a number of draws below 1, unknown data, or as
            `bnlib.ensembles.propagate`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> part = run_cell(8, 16, [2, 5], 10, Stages.parse("RC+NL"), thresholds=Thresholds(), generator=g)
        >>> [cell["depth"] for cell in part["cells"]], len(part["onsets"])
        ([2, 5], 10)
    """
    _check_depths(depths)
    if data not in get_args(Data):
        raise ValueError(f'data is {data!r}; valid is "gaussian" or "digits".')
    depths = sorted(depths)
    if data == "gaussian":
        x = gaussian_batch(n, width, generator=generator, draws=n_seeds)
    else:
        x = digits_batch(n, n_seeds, generator=generator)
    paths = follow(x, width, depths[-1], stages, generator=generator)
    angle_deg = np.degrees(paths.angle.numpy())
    passed = passages(angle_deg, thresholds.angle_deg, thresholds.hold)
    known = [details(paths, n, width, depth, thresholds) for depth in depths]
    kind = {"stages": stages.name, "data": data}
    return {
        "cells": [
            cell(paths, n, width, detail["depth"]) | kind | {"share_with_outlier": detail["share"]} for detail in known
        ],
        "details": known,
        "norm_ratios": {str(depth): _finite(paths.norm_ratio[depth - 1]) for depth in depths},
        "onsets": [int(layer) if layer > 0 else None for layer in passed.onset],
        "returned": passed.returned.tolist(),
        "return_layers": [int(layer) if layer > 0 else None for layer in passed.return_layer],
        "watched": depths[-1],
        "curves": {
            "angle_deg": _quantile_curves(angle_deg),
            "norm_ratio": _quantile_curves(paths.norm_ratio.numpy()),
            "top_over_median": _quantile_curves(paths.top_over_median.numpy()),
        },
        "two_samples": _two_samples(paths, n, width, stages),
    }


def _two_samples(paths: Trajectories, n: int, width: int, stages: Stages) -> dict[str, Any] | None:
    if n != 2 or width < 3 or stages.name != "RC+NL":
        return None
    angle_deg = np.degrees(paths.angle.numpy())
    return check_two_samples(angle_deg, paths.top_over_second.numpy(), paths.index.numpy(), width)


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


def details(
    paths: Trajectories, n: int, width: int, depth: int, thresholds: Thresholds | None = None
) -> dict[str, Any]:
    """How well the medians of a cell are known, how many draws show the outlier, and how far apart the norms are.

    Args:
        paths: trajectories of the draws.
        n: batch size, written into the result.
        width: width, written into the result.
        depth: layer to read, from 1.
        thresholds: of the angle (degrees) and of the largest over the second-largest norm; by default the class's.

    Returns:
        `n`, `width`, `depth`; `draws`; `joint`: angle in degrees (the threshold's, and those of `SENSITIVITY`)
        to the number of draws with at least this angle **and** the norm rule; `share`, `share_low`,
        `share_high`: that share at the threshold with its exact 95 percent interval; for `angle` (degrees),
        `ratio` (outlier to the mean of the others), `top` (to the second), `heavy` (to the median of the
        others) and `spread` (to the smallest) the ends of the 95 percent interval of the median, `angle_low`,
        `angle_high` and so on, None where there are too few draws; and the medians `heavy`, `spread`.

    Raises:
        ValueError: a depth that the trajectories do not have.

    Example:
        >>> paths = Trajectories(*[torch.full((1, 9), 1.5, dtype=torch.float64)] * 5, torch.zeros(1, 9).long())
        >>> details(paths, 8, 64, 1)["ratio_low"]
        1.5
    """
    at = _at(paths, depth)
    thresholds = thresholds or Thresholds()
    draws, alone = len(at["angle"]), at["top"] >= thresholds.top_over_second
    angles = sorted({*SENSITIVITY, thresholds.angle_deg})
    joint = {f"{angle:g}": int(np.sum(alone & (at["angle"] >= angle))) for angle in angles}
    hits = joint[f"{thresholds.angle_deg:g}"]
    low, high = share_interval(hits, draws)
    result: dict[str, Any] = {"n": n, "width": width, "depth": depth, "draws": draws, "joint": joint}
    result |= {"share": hits / draws, "share_low": low, "share_high": high}
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
        Passages(onset=array([4, 2]), returned=array([False,  True]), return_layer=array([0, 5]))
    """
    if hold < 1:
        raise ValueError(f"hold is {hold}; valid is at least 1 layer.")
    if np.ndim(angle_deg) != 2:
        raise ValueError(f"angle_deg has {np.ndim(angle_deg)} dimensions; valid is an array of shape (depth, draws).")
    above = np.asarray(angle_deg) > threshold_deg
    onset = _first_run(above, hold)
    layers = np.arange(1, len(above) + 1)[:, None]
    return_layer = np.where(onset > 0, _first_run(~above & (layers > onset), hold), 0)
    return Passages(onset, return_layer > 0, return_layer)


def _first_run(flags: np.ndarray, length: int) -> np.ndarray:
    """First layer, from 1, of the first run of `length` true flags in each column; 0 where there is none."""
    depth, draws = flags.shape
    if depth < length:
        return np.zeros(draws, dtype=int)
    counts = np.concatenate([np.zeros((1, draws), dtype=int), np.cumsum(flags, axis=0)])
    runs = counts[length:] - counts[:-length] == length
    return np.where(runs.any(axis=0), runs.argmax(axis=0) + 1, 0)
