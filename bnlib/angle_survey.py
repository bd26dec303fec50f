"""Measurements of the chapter on angles: single cells of stage combination, batch size and width, as plain numbers.

Every function draws fresh Gaussian batches of the network's width and fresh He weights from the generator that it is
given. Results are dictionaries as a results file holds them; angles in them are degrees, with the suffix ``_deg``.
"""

import math
from collections.abc import Sequence

import torch

from bnlib import angles
from bnlib.data import gaussian_batch
from bnlib.ensembles import gaussian, propagate
from bnlib.estimates import median_interval
from bnlib.geometry import mean_pairwise_angle
from bnlib.layers import Stages, apply_stages, recenter


def depth_cell(
    n: int, width: int, depth: int, stages: Stages, *, draws: int, generator: torch.Generator, points: int = 32
) -> dict:
    """Mean pairwise angle along the depth of one cell, with statistics over the draws.

    Args:
        n: batch size.
        width: number of neurons of every layer, and dimension of the input.
        depth: number of linear layers.
        stages: the stages after each linear map.
        draws: number of independent draws.
        generator: source of randomness.
        points: how many depths to measure, about; 1, 10, half the depth and the depth are among them.

    Returns:
        ``depths``; lists over them ``mean``, ``standard_error``, ``median``, ``q10``, ``q90`` (degrees) and
        ``undefined_share``; at the last depth the medians ``outlier_deg``, ``cluster_deg``, ``top_over_second``, each
        with the ends of its 95 percent interval, ``_low`` and ``_high`` (`bnlib.estimates.median_interval`);
        ``exponent`` p of angle ~ depth^-p between half the depth and the depth, draw by draw, with its
        ``exponent_standard_error``. None where nothing was measured.

    Raises:
        ValueError: as `bnlib.angles.angle_curves`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> cell = depth_cell(8, 256, 10, Stages.parse("RC+RS+NL"), draws=10, generator=g)
        >>> cell["depths"][-1], abs(cell["mean"][-1] - 75.5) < 1
        (10, True)
    """
    half = max(1, depth // 2)
    curves = angles.angle_curves(
        n,
        width,
        depth,
        stages,
        draws=draws,
        generator=generator,
        depths=sorted({*angles.depth_grid(depth, points), min(10, depth), half}),
    )
    # draw by draw: angles of one draw at two depths are not independent
    fall = (curves.mean_angle[curves.depths.index(half)] / curves.mean_angle[-1]).log()
    exponent = angles.draw_statistics(fall / math.log(depth / half) if depth > 1 else fall * math.nan)
    mean = angles.draw_statistics(torch.rad2deg(curves.mean_angle))
    medians: dict[str, float | None] = {}
    for key, values in (
        ("outlier_deg", torch.rad2deg(curves.outlier_angle)),
        ("cluster_deg", torch.rad2deg(curves.cluster_angle)),
        ("top_over_second", curves.top_over_second),
    ):
        medians[key] = angles.none_if_undefined(angles.draw_statistics(values[-1]).median)
        medians[f"{key}_low"], medians[f"{key}_high"] = median_interval(values[-1].cpu().numpy())
    return (
        {key: angles.none_if_undefined(value) for key, value in vars(mean).items()}
        | medians
        | {
            "depths": curves.depths,
            "exponent": angles.none_if_undefined(exponent.mean),
            "exponent_standard_error": angles.none_if_undefined(exponent.standard_error),
        }
    )


def layer_point_cell(
    n: int, width: int, depth: int, stages: Stages, *, draws: int, generator: torch.Generator
) -> dict[str, float | None]:
    """Mean pairwise angle of one cell at the two points of a layer: behind the last stage, and behind ReLU.

    The first is that of layer `depth`; the second is that of the layer after it, before its norm.

    Args:
        n: batch size.
        width: number of neurons of every layer, and dimension of the input.
        depth: number of linear layers.
        stages: stages with the norm after the activation.
        draws: number of independent draws.
        generator: source of randomness.

    Returns:
        Mean and standard error over the draws, degrees: ``after_norm_deg``, ``after_norm_standard_error_deg``,
        ``after_relu_deg``, ``after_relu_standard_error_deg``; the same behind the norm of layer 10 (or the last, if
        there are fewer) as ``early_deg`` and ``early_standard_error_deg``; and ``top_over_second`` with ``_q10`` and
        ``_q90``, median and quantiles over the draws of largest over second-largest norm behind the last ReLU, and
        ``_low`` and ``_high``, the ends of the median's 95 percent interval. None where nothing was measured.

    Raises:
        ValueError: stages with the norm before the activation, or as `bnlib.ensembles.propagate`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> cell = layer_point_cell(8, 256, 10, Stages.parse("NL+RC+RS"), draws=10, generator=g)
        >>> abs(cell["after_norm_deg"] - 98.2) < 1, abs(cell["after_relu_deg"] - 75.5) < 1
        (True, True)
    """
    if not stages.norm_after:
        raise ValueError(f"stages must have the norm after the activation, got {stages.name!r}.")
    batch = gaussian_batch(n, width, generator=generator, draws=draws)
    for state in propagate(batch, width, depth, stages, generator=generator):
        if state.depth == min(10, depth):
            early = mean_pairwise_angle(state.x, gram=state.gram)
    relu = next(propagate(state.x, width, 1, Stages.parse("NL"), generator=generator))
    top = relu.gram.diagonal(dim1=-2, dim2=-1).sqrt().topk(2, dim=-1).values
    found: dict[str, float | None] = {}
    for key, values in (
        ("after_norm", mean_pairwise_angle(state.x, gram=state.gram)),
        ("after_relu", mean_pairwise_angle(relu.x, gram=relu.gram)),
        ("early", early),
    ):
        statistics = angles.draw_statistics(torch.rad2deg(values))
        found[f"{key}_deg"] = angles.none_if_undefined(statistics.mean)
        found[f"{key}_standard_error_deg"] = angles.none_if_undefined(statistics.standard_error)
    ratio = angles.draw_statistics(top[:, 0] / top[:, 1])
    for key, value in (("", ratio.median), ("_q10", ratio.q10), ("_q90", ratio.q90)):
        found[f"top_over_second{key}"] = angles.none_if_undefined(value)
    low, high = median_interval((top[:, 0] / top[:, 1]).cpu().numpy())
    return found | {"top_over_second_low": low, "top_over_second_high": high}


def order_gap(norm: str, *, n: int, width: int, depth: int, generator: torch.Generator) -> float:
    """How far two networks with the same weights are apart, norm before and norm after the activation.

    The first has the layers norm, NL, and starts from a centered batch; the second has NL, norm. The representation of
    the second is compared with the norm applied to that of the first, in every layer.

    Args:
        norm: RC, RC+RS, RMS or STD.
        n: batch size, at least 2.
        width: number of neurons of every layer, and dimension of the input.
        depth: number of layers.
        generator: source of randomness.

    Returns:
        The largest relative distance over the layers, in the Frobenius norm, each side scaled to norm one; NaN if a
        representation becomes zero on the way.

    Raises:
        ValueError: an unknown norm, or n < 2.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> order_gap("RC", n=6, width=32, depth=5, generator=g) < 1e-12
        True
    """
    before, after, alone = Stages.parse(f"{norm}+NL"), Stages.parse(f"NL+{norm}"), Stages.parse(norm)
    first = second = recenter(gaussian_batch(n, width, generator=generator))
    gaps = []
    for _ in range(depth):
        weights = gaussian(width, width, generator=generator) * math.sqrt(2.0 / width)
        first, second = apply_stages(first @ weights, before), apply_stages(second @ weights, after)
        first, second = (
            first / first.norm(),
            second / second.norm(),
        )  # the stages are homogeneous: no over- or underflow
        moved = apply_stages(first, alone)
        gaps.append((second - moved / moved.norm()).norm())
    return float(torch.stack(gaps).max())


def pair_steps(width: int, *, draws: int, generator: torch.Generator) -> dict[str, float | None]:
    """Measured step of a tiny angle in one ReLU layer of finite width: mean and variance of its logarithm.

    Args:
        width: number of neurons of the layer.
        draws: number of independent layers.
        generator: source of randomness.

    Returns:
        ``log_mean`` with ``log_mean_standard_error`` and ``log_variance``: of log(angle after / angle before), natural
        logarithm.

    Raises:
        ValueError: as `bnlib.ensembles.propagate`.

    Example:
        >>> found = pair_steps(64, draws=500, generator=torch.Generator().manual_seed(0))
        >>> abs(found["log_mean"] + 1 / 64) < 5 * found["log_mean_standard_error"]
        True
    """
    point = gaussian_batch(2, 8, generator=generator, draws=draws)
    batch = torch.stack([point[:, 0], point[:, 0] + 1e-7 * point[:, 1]], dim=1)
    state = next(propagate(batch, width, 1, Stages.parse("NL"), generator=generator))
    logs = (mean_pairwise_angle(state.x) / mean_pairwise_angle(batch)).log()
    statistics = angles.draw_statistics(logs)
    return {
        "log_mean": angles.none_if_undefined(statistics.mean),
        "log_mean_standard_error": angles.none_if_undefined(statistics.standard_error),
        "log_variance": angles.none_if_undefined((statistics.standard_error**2) * draws),
    }


def tolerance_row(
    degrees: Sequence[tuple[int, float | int]], target: float | int, tolerances: Sequence[float | int]
) -> list[str]:
    """For which batch sizes an angle lies within each tolerance of a target.

    Args:
        degrees: (batch size, angle in degrees), in ascending order of the batch size.
        target: the angle asked for, degrees.
        tolerances: degrees, one an entry of the result.

    Returns:
        The batch sizes as text, one entry a tolerance; neighbors in the list are joined to ranges.

    Raises:
        ValueError: no angles.

    Example:
        >>> tolerance_row([(4, 61.3), (8, 60.1), (16, 59.4), (32, 59.1)], 60, [0.5, 0.7, 2.5])
        ['8', '8 to 16', '4 to 32']
    """
    if not degrees:
        raise ValueError("degrees is empty; valid is at least one batch size with its angle.")
    rows = []
    for tolerance in tolerances:
        runs: list[list[int]] = []
        previous = False
        for n, angle in degrees:
            if inside := abs(angle - target) <= tolerance:
                if previous:
                    runs[-1].append(n)
                else:
                    runs.append([n])
            previous = inside
        rows.append(", ".join(f"{r[0]} to {r[-1]}" if len(r) > 1 else str(r[0]) for r in runs) or "none")
    return rows
