"""The measurements of the chapter on finite width: real networks beside the theory of `bnlib.escape`, cell by cell.

Each function measures one cell and returns plain numbers, ready for a results file; each takes the seed of the run and
derives an own stream for the networks and one for the theory, so that cells do not depend on each other.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch

from bnlib import escape, escape_laws, leaky, seeds
from bnlib.data import gaussian_batch
from bnlib.ensembles import propagate
from bnlib.escape_networks import network_passages, orthogonal_grams, share_z, stay, theory_passages
from bnlib.estimates import censored_quantile, median_interval, onset_summary, share_interval
from bnlib.falsification import follow, passages
from bnlib.geometry import outlier_summary_from_gram
from bnlib.kernels import recentered_relu_kernel
from bnlib.layers import Stages

_WITHOUT_NOISE = 10**18  # neurons: the theory's noise is then below rounding


def fewer_when_wide(draws: int, width: int, *, full_up_to: int = 1024, least: int = 3) -> int:
    """Number of draws at a width: all up to some width, then in inverse proportion to it, at the same cost.

    Args:
        draws: number of draws of a narrow network.
        width: number of neurons.
        full_up_to: the width up to which all are taken.
        least: the fewest.

    Returns:
        A whole number.

    Example:
        >>> [fewer_when_wide(48, width) for width in (256, 4096, 65536)]
        [48, 12, 3]
    """
    return max(min(least, draws), round(draws * min(1.0, full_up_to / width)))


def escape_cell(
    n: int,
    width: int,
    depth: int,
    draws: int,
    theory_draws: int,
    *,
    seed: int,
    device: str = "cpu",
    slope: float | int = 0.0,
    label: str = "escape",
) -> dict[str, Any]:
    """Escape of a symmetric (orthonormal) batch: networks against the theory.

    Args:
        n: batch size, at least 3.
        width: number of neurons.
        depth: layers that are watched.
        draws: number of networks; 0 for the theory alone.
        theory_draws: number of draws of the theory.
        seed: the run's seed.
        device: torch device.
        slope: leaky slope b/a.
        label: name of the random streams.

    Returns:
        `n`, `width`, `depth`, `draws`, `slope`; `times` (layers, 0 censored) and of them `median`, `low`, `high` (its
        95 percent interval), None where beyond the last layer; `escaped` (share) with `escaped_low`, `escaped_high`;
        `theory_lower`, `theory_median`, `theory_upper` (quartiles) and `theory_escaped`. `at` is the theory's median
        layer, or the last one where more than half of the theory's draws are censored; `observed`, `predicted` are
        the shares escaped by then, `z` their difference in standard errors.

    Example:
        >>> cell = escape_cell(16, 64, 100, 40, 100, seed=0)
        >>> cell["at"], abs(cell["z"]) < 5
        (22, True)
    """
    start = orthogonal_grams(n, theory_draws, device=device)
    stream = seeds.generator(seed, label, "theory", n, width, str(slope), device=device)
    expected = theory_passages(start, width, depth, generator=stream, slope=slope)
    theory = _censored(expected)
    quartiles = [censored_quantile(theory, level) for level in (0.25, 0.5, 0.75)]
    cell: dict[str, Any] = {
        "n": n,
        "width": width,
        "depth": depth,
        "draws": draws,
        "slope": float(slope),
        "theory_lower": quartiles[0],
        "theory_median": quartiles[1],
        "theory_upper": quartiles[2],
        "theory_escaped": float((expected > 0).mean()),
        "at": depth if quartiles[1] is None else int(quartiles[1]),
    }
    if draws == 0:
        return cell
    stream = seeds.generator(seed, label, "networks", n, width, str(slope), device=device)
    times = network_passages(orthogonal_grams(n, draws, device=device), width, depth, generator=stream, slope=slope)
    low, high = median_interval([math.inf if time is None else float(time) for time in _censored(times)])
    escaped = int((times > 0).sum())
    escaped_low, escaped_high = share_interval(escaped, draws)
    return {
        **cell,
        "times": times.tolist(),
        "median": censored_quantile(_censored(times), 0.5),
        "low": low,
        "high": high,
        "escaped": escaped / draws,
        "escaped_low": escaped_low,
        "escaped_high": escaped_high,
        **share_z(times.tolist(), cell["at"], expected.tolist()),
    }


def laws_of_cells(cells: Sequence[Mapping[str, Any]], waiting: Literal["lognormal", "exponential"]) -> dict[str, Any]:
    """The three laws of growth with the width, fitted to the networks of one batch size.

    Args:
        cells: as `escape_cell`, of one batch size, with networks, at least three widths.
        waiting: as `bnlib.escape_laws.growth_laws`.

    Returns:
        As `bnlib.escape_laws.compared_laws`.

    Raises:
        ValueError: as `bnlib.escape_laws.growth_laws`.

    Example:
        >>> cells = [{"width": d, "depth": 90, "times": [x, x + 2]} for d, x in ((64, 10), (512, 20), (4096, 40))]
        >>> round(laws_of_cells(cells, "lognormal")["laws"]["power"]["parameters"][1], 1)
        0.3
    """
    depths = {cell["width"]: cell["depth"] for cell in cells}
    return escape_laws.compared_laws({cell["width"]: cell["times"] for cell in cells}, depths, waiting=waiting)


def power_exponent(cells: Sequence[Mapping[str, Any]], widest: float | int) -> dict[str, Any]:
    """Exponent of the power law over the widths up to one, of the networks and of the theory's medians.

    Args:
        cells: as `escape_cell`, of one batch size, with networks.
        widest: the largest width that counts.

    Returns:
        `widths` and `draws` that count; `value`, with `low` and `high` (95 percent, profile likelihood), None with
        fewer than three widths; `theory`: slope of a line through the logarithms of the theory's medians, None with
        fewer than two of them.

    Example:
        >>> cells = [
        ...     {"width": d, "depth": 90, "times": [x, x + 2], "theory_median": x, "draws": 2}
        ...     for d, x in ((64, 10), (512, 20), (4096, 40), (32768, 89))
        ... ]
        >>> found = power_exponent(cells, 5000)
        >>> found["widths"], round(found["theory"], 3), found["low"] < 0.3 < found["high"]
        ([64, 512, 4096], 0.333, True)
    """
    found = sorted((cell for cell in cells if cell["width"] <= widest), key=lambda cell: cell["width"])
    known = [cell for cell in found if cell["theory_median"] is not None]
    told: dict[str, Any] = {
        "widths": [cell["width"] for cell in found],
        "draws": sum(cell["draws"] for cell in found),
        **dict.fromkeys(("value", "low", "high", "theory")),
    }
    if len(known) >= 2:
        x, y = (np.log([cell[name] for cell in known]) for name in ("width", "theory_median"))
        told["theory"] = float(np.polyfit(x, y, 1)[0])
    if len(found) >= 3:
        times = {cell["width"]: cell["times"] for cell in found}
        depths = {cell["width"]: cell["depth"] for cell in found}
        told["value"] = escape_laws.growth_laws(times, depths)["power"].parameters[1]
        told["low"], told["high"] = escape_laws.slope_interval("power", times, depths)
    return told


def _censored(times: np.ndarray) -> list[int | None]:
    return [int(time) if time > 0 else None for time in times]


def stay_cell(
    n: int,
    width: int,
    draws: int,
    *,
    seed: int,
    device: str = "cpu",
    slope: float | int = 0.0,
    relaxations: float | int = 2.5,
) -> dict[str, Any]:
    """Networks that start in the outlier state of infinite width: where they stay.

    Args:
        n: batch size with an outlier state, at least 7.
        width: number of neurons.
        draws: number of networks, at least 2.
        seed: the run's seed.
        device: torch device.
        slope: leaky slope b/a.
        relaxations: layers before the averages, and again of the averages, in units of 1/(1 - multiplier).

    Returns:
        `n`, `width`, `draws`, `slope`, `layers` (of the averages); for each of `cluster_angle_deg`,
        `outlier_angle_deg`, `norm_ratio` (both to the mean of the others) and `norm_ratio_sample` (to the root mean
        square of their norms) the mean over networks and, with `_sd`, the standard deviation between networks;
        `snapshot_sd_deg`, the standard deviation of the cluster angle after the last layer, and
        `snapshot_theory_deg` its prediction.

    Example:
        >>> cell = stay_cell(8, 256, 6, seed=0)
        >>> 45 < cell["cluster_angle_deg"] < 65
        True
    """
    multiplier = leaky.outlier_state(n, slope).multiplier
    layers = max(4, 4 * round(relaxations / (1.0 - multiplier) / 4))
    stream = seeds.generator(seed, "stay", n, width, str(slope), device=device)
    found = stay(n, width, burn=layers, keep=layers, draws=draws, generator=stream, slope=slope)
    cell = {"n": n, "width": width, "draws": draws, "slope": float(slope), "layers": layers}
    for name, values in (
        ("cluster_angle_deg", np.degrees(found.cluster_angle)),
        ("outlier_angle_deg", np.degrees(found.outlier_angle)),
        ("norm_ratio", found.norm_ratio),
        ("norm_ratio_sample", found.norm_ratio_sample),
    ):
        cell[name] = float(values.mean())
        cell[f"{name}_sd"] = float(values.std(ddof=1))
    cell["snapshot_sd_deg"] = float(np.degrees(found.final_cluster_angle).std(ddof=1))
    cell["snapshot_theory_deg"] = math.degrees(escape.cluster_fluctuation(width, n, slope))
    return cell


def to_infinite_width(cells: Sequence[Mapping[str, Any]], name: str, theory: float | int) -> dict[str, float]:
    """Extrapolate a mean to infinite width, value + bias/width, and compare with a theory.

    Fluctuations of a network are of order 1/sqrt(width), so that the error of a cell's mean is s / sqrt(width draws)
    with one s, pooled over the cells; their effect on a mean is of order 1/width.

    Args:
        cells: of one batch size, as `stay_cell`, at least two widths.
        name: which mean, e.g. `"norm_ratio"`.
        theory: its value at infinite width.

    Returns:
        `value` and `error` (standard error) at infinite width, `bias` and `bias_error` (per 1/width), `z` of the value
        against the theory, and `theory`.

    Raises:
        ValueError: fewer than two widths.

    Example:
        >>> cells = [{"width": d, "draws": 4, "x": 2 + 8 / d, "x_sd": 1 / d**0.5} for d in (64, 256)]
        >>> found = to_infinite_width(cells, "x", 2)
        >>> round(found["value"], 9), round(found["bias"], 9)
        (2.0, 8.0)
    """
    width = np.array([cell["width"] for cell in cells], dtype=float)
    draws = np.array([cell["draws"] for cell in cells], dtype=float)
    if len(set(width)) < 2:
        raise ValueError(f"cells has {len(set(width))} widths; valid is at least two.")
    mean = np.array([cell[name] for cell in cells])
    scale = sum((m - 1) * d * cell[f"{name}_sd"] ** 2 for m, d, cell in zip(draws, width, cells, strict=True))
    scale = scale / (draws - 1).sum()
    precision = width * draws / scale
    design = np.stack([np.ones_like(width), 1.0 / width], axis=1)
    covariance = np.linalg.inv(design.T @ (design * precision[:, None]))
    value, bias = covariance @ (design.T @ (precision * mean))
    error, bias_error = np.sqrt(np.diag(covariance))
    return {
        "value": float(value),
        "error": float(error),
        "bias": float(bias),
        "bias_error": float(bias_error),
        "theory": float(theory),
        "z": float((value - theory) / error),
    }


def small_batch_cell(n: int, width: int, depth: int, draws: int, *, seed: int, device: str = "cpu") -> dict[str, Any]:
    """Who escapes and who returns, by the rule of the falsification test.

    The angle is that between the sample of largest norm and the mean of the others. An escape is the first of ten
    consecutive layers above 85 degrees, a return ten consecutive layers not above after it.

    Args:
        n: batch size, at least 3.
        width: number of neurons.
        depth: layers that are watched.
        draws: number of networks, each with an own Gaussian batch of dimension `width`.
        seed: the run's seed.
        device: torch device.

    Returns:
        `n`, `width`, `depth`, `draws`; the summary of `bnlib.estimates.onset_summary` over the onsets; `escaped` and
        `escaped_low`, `escaped_high` (share with its 95 percent interval); `out`, `out_low`, `out_high`: share of
        draws above 85 degrees at the last layer; `time_out`: share of the layers of the second half above, and
        `time_out_error`, its standard error over draws.

    Example:
        >>> small_batch_cell(4, 256, 60, 6, seed=0)["escaped"] < 0.7
        True
    """
    stream = seeds.generator(seed, "small", n, width, device=device)
    x = gaussian_batch(n, width, generator=stream, draws=draws)
    angle = np.degrees(follow(x, width, depth, Stages.parse("RC+NL"), generator=stream).angle.numpy())
    found = passages(angle, 85.0, min(10, depth))
    onsets = [int(layer) if layer > 0 else None for layer in found.onset]
    summary = onset_summary(onsets, found.returned.tolist(), latest=max(1, depth - 50))
    escaped = draws - summary["censored"]
    out = int((angle[-1] > 85.0).sum())
    late = (angle[depth // 2 :] > 85.0).mean(axis=0)
    low, high = share_interval(escaped, draws)
    out_low, out_high = share_interval(out, draws)
    return {
        "n": n,
        "width": width,
        "depth": depth,
        **{key: value for key, value in summary.items() if key not in ("low", "high")},
        "onset_low": summary["low"],
        "onset_high": summary["high"],
        "escaped": escaped / draws,
        "escaped_low": low,
        "escaped_high": high,
        "out": out / draws,
        "out_low": out_low,
        "out_high": out_high,
        "time_out": float(late.mean()),
        "time_out_error": float(late.std(ddof=1) / math.sqrt(draws)) if draws > 1 else None,
    }


def input_cell(
    n: int, dimension: int, width: int, depth: int, inputs: int, *, seed: int, device: str = "cpu"
) -> dict[str, Any]:
    """Does the input decide? The map of infinite width against a wide network, from the same Gaussian inputs.

    Args:
        n: batch size, at least 7.
        dimension: number of features of the inputs.
        width: number of neurons of the networks.
        depth: layers that are watched.
        inputs: number of input batches.
        seed: the run's seed.
        device: torch device.

    Returns:
        `n`, `dimension`, `width`, `depth`, `inputs`; `push`: standard deviation of the inputs' spread over the
        separatrix's spread; `noise_push`: the same of the stationary spread that the width keeps up; `infinite`:
        share that escapes at infinite width, `network`: share in networks, `agree`: share of inputs with the same
        fate, with `agree_low`, `agree_high`; `missed`: inputs that escape at infinite width and not in the network.

    Example:
        >>> cell = input_cell(12, 4, 1024, 100, 12, seed=0)
        >>> cell["push"] > 1, cell["infinite"]
        (True, 1.0)
    """
    stream = seeds.generator(seed, "inputs", n, dimension, width, device=device)
    x = gaussian_batch(n, dimension, generator=stream, draws=inputs).to(device)
    gram = x @ x.mT
    limit = theory_passages(gram, _WITHOUT_NOISE, depth, generator=stream) > 0
    real = network_passages(gram, width, depth, generator=stream) > 0
    form = escape.normal_form(n)
    agree = int((limit == real).sum())
    low, high = share_interval(agree, inputs)
    return {
        "n": n,
        "dimension": dimension,
        "width": width,
        "depth": depth,
        "inputs": inputs,
        "push": escape.input_spread(dimension, n) / form.separatrix,
        "noise_push": escape.stationary_spread(width, n) / form.separatrix,
        "infinite": float(limit.mean()),
        "network": float(real.mean()),
        "agree": agree / inputs,
        "agree_low": low,
        "agree_high": high,
        "missed": int((limit & ~real).sum()),
    }


def limits_in_both_orders(
    n: int, dimension: int, widths: Sequence[int], depth: int, draws: int, *, seed: int, device: str = "cpu"
) -> dict[str, Any]:
    """Angle of the sample of largest norm against depth, for several widths and for infinite width, from one input.

    Args:
        n: batch size, at least 7.
        dimension: number of features of the one Gaussian input batch.
        widths: numbers of neurons.
        depth: number of layers.
        draws: networks of each width.
        seed: the run's seed.
        device: torch device.

    Returns:
        `angle_deg`: width (a decimal string) to the median angle at each depth, a list; `infinite_deg`: the list of
        the map; `last`: width to {`median`, `low`, `high`, `draws`} at the last layer; `input_push`: the largest
        spread of the recentered input's squared norms over the separatrix's spread.

    Example:
        >>> found = limits_in_both_orders(12, 1000, [16], 30, 3, seed=0)
        >>> len(found["angle_deg"]["16"]), found["infinite_deg"][-1] < 75
        (30, True)
    """
    stream = seeds.generator(seed, "orders", "input", n, dimension, device=device)
    x = gaussian_batch(n, dimension, generator=stream).to(device)
    k = (x @ x.mT).cpu().numpy()
    centered = k - k.mean(axis=0) - k.mean(axis=1)[:, None] + k.mean()
    push = n * centered.diagonal().max() / centered.trace() - 1.0
    limit = []
    for _ in range(depth):
        k = recentered_relu_kernel(k / k.trace())
        limit.append(k)
    limit = outlier_summary_from_gram(torch.from_numpy(np.stack(limit))).angle.rad2deg().tolist()
    curves, last = {}, {}
    for width in widths:
        stream = seeds.generator(seed, "orders", n, width, device=device)
        states = propagate(x.expand(draws, n, dimension), width, depth, Stages.parse("RC+NL"), generator=stream)
        angles = torch.stack([outlier_summary_from_gram(state.gram).angle for state in states]).rad2deg().cpu().numpy()
        low, high = median_interval(angles[-1])
        curves[str(width)] = np.median(angles, axis=1).tolist()
        last[str(width)] = {"median": curves[str(width)][-1], "low": low, "high": high, "draws": draws}
    return {
        "angle_deg": curves,
        "infinite_deg": limit,
        "last": last,
        "input_push": float(push / escape.normal_form(n).separatrix),
    }
