"""Distances between the simplified model and real networks: whole distributions, with intervals that always hold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bnlib.estimates import share_interval
from bnlib.tree_transfer import NormPaths, distribution_distance, escaped_points, second_over_top

QUANTITIES = ("norm_ratio", "angle_deg", "escaped", "second")
FACTORS = (1.5, 2.0, 3.0)


@dataclass(frozen=True)
class Distance:
    """The largest difference of two distribution functions, with an interval.

    Attributes:
        value: of the two samples, from 0 to 1.
        low: lower end of the interval for the distance of the two laws.
        high: upper end.
    """

    value: float
    low: float
    high: float


def distance_interval(a: Float[np.ndarray, " k"], b: Float[np.ndarray, " m"], error: float = 0.05) -> Distance:
    """Estimate the Kolmogorov-Smirnov distance of two laws, with an interval that holds whatever they are.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, an empirical distribution function
    of m independent values is nowhere farther from the true one than sqrt(log(2 / delta) / (2 m)), except with
    probability delta. With delta = error / 2 for either sample, the sum of the two terms bounds the error of the
    distance, also if the samples depend on each other.

    Args:
        a: independent values from one law.
        b: independent values from another.
        error: probability that the interval misses the truth, at most; between 0 and 1.

    Returns:
        The `Distance`.

    Raises:
        ValueError: an empty sample, or `error` outside (0, 1).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> found = distance_interval(rng.standard_normal(1000), rng.standard_normal(1000) + 3)
        >>> round(found.value, 2), found.low > 0.7, found.high < 1
        (0.88, True, True)
    """
    if not len(a) or not len(b):
        raise ValueError("a or b is empty; a distance needs at least one value of each law.")
    if not 0 < error < 1:
        raise ValueError(f"error is {error}; it must lie between 0 and 1.")
    value = distribution_distance(a, b)
    slack = sum(math.sqrt(math.log(4 / error) / (2 * len(sample))) for sample in (a, b))
    return Distance(value, max(0.0, value - slack), min(1.0, value + slack))


def quantities(paths: NormPaths, factor: int | float = 2.0) -> dict[str, Float[np.ndarray, " batches"]]:
    """Return what is compared, one network a batch, so that the values are independent.

    Args:
        paths: norms, angles and norm ratios of many batches; only a batch's first draw and the last depth count.
        factor: how many times the median norm an escaped point must reach.

    Returns:
        Shape (batches,) each, under the names of `QUANTITIES`: the norm of the largest sample over that of the mean of
        the others, their angle in degrees, the number of samples whose norm is at least `factor` times the batch's
        median norm, and the second-largest norm over the largest.

    Example:
        >>> from bnlib.tree_transfer import tree_limits
        >>> found = quantities(tree_limits(np.array([[-3.0, -1.0, 0.0, 1.0, 3.0]])))
        >>> found["escaped"].tolist(), found["second"].round(6).tolist()
        ([2.0], [1.0])
    """
    norms = paths.norms[-1, :, 0]
    return {
        "norm_ratio": paths.norm_ratio[:, 0],
        "angle_deg": 90 - np.degrees(paths.gap[:, 0]),
        "escaped": escaped_points(norms, factor).astype(float),
        "second": second_over_top(norms),
    }


def compare(toy: NormPaths, real: NormPaths) -> dict[str, dict[str, float | int | list[float]]]:
    """Compare two models on many batches, quantity by quantity.

    Args:
        toy: one model.
        real: another model; the same or other batches of the same law.

    Returns:
        For each of `QUANTITIES` its `distance` with `low` and `high` (95 percent, see `distance_interval`), and the
        quartiles and median of either model, `toy` and `real`, three numbers each.

    Example:
        >>> from bnlib.tree_transfer import tree_limits
        >>> paths = tree_limits(np.random.default_rng(0).standard_normal((30, 6)))
        >>> compare(paths, paths)["escaped"]["distance"]
        0.0
    """
    ours, theirs = quantities(toy), quantities(real)
    found = {}
    for name in QUANTITIES:
        one = distance_interval(ours[name], theirs[name])
        levels = [0.25, 0.5, 0.75]
        found[name] = {
            "distance": one.value,
            "low": one.low,
            "high": one.high,
            "toy": np.quantile(ours[name], levels).tolist(),
            "real": np.quantile(theirs[name], levels).tolist(),
        }
    return found


def escaped_shares(paths: NormPaths, factor: int | float = 2.0) -> list[dict[str, float | int | str]]:
    """Return the shares of batches with 0, 1, 2, 3, or more escaped points, with exact 95 percent intervals.

    Args:
        paths: norms of many batches; only the first draw of each batch and the last depth count.
        factor: how many times the median norm an escaped point must reach.

    Returns:
        One row a number, `escaped` ("0" to "3", "4+"): `share`, `low`, `high` (Clopper and Pearson).

    Example:
        >>> from bnlib.tree_transfer import tree_limits
        >>> rows = escaped_shares(tree_limits(np.array([[-3.0, -1.0, 0.0, 1.0, 3.0]])))
        >>> [row["share"] for row in rows]
        [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    counts = np.minimum(quantities(paths, factor)["escaped"], 4)
    rows = []
    for number in range(5):
        hits = int((counts == number).sum())
        low, high = share_interval(hits, len(counts))
        name = f"{number}+" if number == 4 else str(number)
        rows.append({"escaped": name, "share": hits / len(counts), "low": low, "high": high})
    return rows


def one_escaped(paths: NormPaths, factors: Sequence[int | float] = FACTORS) -> list[dict[str, float]]:
    """Return the share of batches with exactly one escaped point, for several rules.

    Args:
        paths: norms of many batches; only the first draw of each batch and the last depth count.
        factors: multiples of the median norm that an escaped point must reach.

    Returns:
        One row a factor: `factor`, `share`, `low`, `high` (exact, 95 percent).

    Example:
        >>> from bnlib.tree_transfer import tree_limits
        >>> [row["share"] for row in one_escaped(tree_limits(np.array([[0.0, 1.0, 2.0, 9.0]])))]
        [1.0, 1.0, 0.0]
    """
    rows = []
    for factor in factors:
        single = quantities(paths, factor)["escaped"] == 1
        low, high = share_interval(int(single.sum()), len(single))
        rows.append({"factor": float(factor), "share": float(single.mean()), "low": low, "high": high})
    return rows


def same_winner(toy: NormPaths, real: NormPaths) -> dict[str, float]:
    """Return the share of batches whose largest sample is the same in both models.

    Args:
        toy: one model.
        real: another model, the same batches.

    Returns:
        `share`, `low`, `high` (exact, 95 percent, one network a batch); a guess among n samples hits one time in n.

    Example:
        >>> from bnlib.tree_transfer import tree_limits
        >>> paths = tree_limits(np.random.default_rng(0).standard_normal((30, 6)))
        >>> same_winner(paths, paths)["share"]
        1.0
    """
    same = toy.norms[-1, :, 0].argmax(axis=-1) == real.norms[-1, :, 0].argmax(axis=-1)
    low, high = share_interval(int(same.sum()), len(same))
    return {"share": float(same.mean()), "low": low, "high": high}


def forest_cell(toy: NormPaths, real: NormPaths, dimension: int) -> dict:
    """Compare the simplified model with networks for inputs of one dimension, one network a batch.

    Args:
        toy: the simplified model.
        real: networks, the same batches.
        dimension: of the input, for the record.

    Returns:
        `n`, `d`, `batches`; what `compare` returns; the shares of batches with exactly one escaped point, `toy_one` and
        `network_one`, and with the same largest sample in both, `same`; each with `_low` and `_high`, exact 95 percent,
        and with `_lower` and `_upper`, one-sided limits at 99.9 percent (Clopper and Pearson).

    Example:
        >>> from bnlib.tree_transfer import tree_limits
        >>> paths = tree_limits(np.random.default_rng(0).standard_normal((30, 6)))
        >>> cell = forest_cell(paths, paths, 1)
        >>> cell["same"], cell["norm_ratio"]["distance"], cell["toy_one"] == cell["network_one"]
        (1.0, 0.0, True)
    """
    cell = {"n": toy.norms.shape[-1], "d": dimension, "batches": toy.norms.shape[1], **compare(toy, real)}
    found = {
        "toy_one": one_escaped(toy, [2.0])[0],
        "network_one": one_escaped(real, [2.0])[0],
        "same": same_winner(toy, real),
    }
    for name, row in found.items():
        cell.update({name: row["share"], f"{name}_low": row["low"], f"{name}_high": row["high"]})
        lower, upper = share_interval(round(row["share"] * cell["batches"]), cell["batches"], tail=1e-3)
        cell.update({f"{name}_lower": lower, f"{name}_upper": upper})
    return cell


def symmetric_cell(batch: Float[np.ndarray, " n"], network: NormPaths) -> dict[str, float | int]:
    """Say who wins for a batch that is its own mirror image.

    Args:
        batch: shape (n,), with as many samples at y as at -y.
        network: what `network_paths` returns for it alone.

    Returns:
        `n`, `draws`; the shares of draws `maximum`, `minimum`, `extreme` (their sum) in which that sample has the
        largest norm; for the first two one-sided confidence limits, `maximum_lower`, `maximum_upper` and so on (Clopper
        and Pearson, 99.9 percent); `difference` of the first two and its standard error `difference_error`;
        `agreement`, the share of the pairs of draws with the same winner, and its standard error `agreement_error`.

    Raises:
        ValueError: fewer than two draws.

    Example:
        >>> import torch
        >>> from bnlib.tree_transfer import network_paths
        >>> y, g = np.array([-3.0, -1.0, 1.0, 3.0]), torch.Generator().manual_seed(0)
        >>> cell = symmetric_cell(y, network_paths(y[None], 32, [4], draws=50, generator=g))
        >>> abs(cell["difference"]) < 5 * cell["difference_error"]
        True
    """
    winner = network.norms[-1, 0].argmax(axis=-1)
    outcome = (winner == batch.argmax()).astype(float) - (winner == batch.argmin())
    draws = len(winner)
    if draws < 2:
        raise ValueError(f"network has {draws} draws; whether winners agree needs at least two.")
    limits = {}
    for name, hits in (("maximum", int((outcome > 0).sum())), ("minimum", int((outcome < 0).sum()))):
        limits[f"{name}_lower"], limits[f"{name}_upper"] = share_interval(hits, draws, tail=1e-3)
    agreement, error = pair_agreement(winner)
    return {
        "n": len(batch),
        "draws": draws,
        "maximum": float((outcome > 0).mean()),
        "minimum": float((outcome < 0).mean()),
        "extreme": float(np.abs(outcome).mean()),
        "difference": float(outcome.mean()),
        "difference_error": max(float(np.sqrt(np.square(outcome).mean() / draws)), 1 / draws),
        **limits,
        "agreement": agreement,
        "agreement_error": error,
    }


def pair_agreement(winner: Int[np.ndarray, " draws"]) -> tuple[float, float]:
    """Estimate the probability that two independent draws have the same winner, and its standard error.

    The share of the agreeing pairs is unbiased. Its variance is at most 4 v_1 / m + 2 v_2 / (m (m-1)), v_1 the variance
    of the probability that a second draw agrees with the first one, v_2 that of a single pair (Hoeffding 1948). The
    error is at least 1 / m: a share of exactly 0 or 1 in a sample is not certain beyond it.

    Args:
        winner: index of the winner in each of m >= 2 draws.

    Returns:
        Share and standard error.

    Raises:
        ValueError: fewer than two draws.

    Example:
        >>> pair_agreement(np.array([0, 0, 1, 1]))[0]
        0.3333333333333333
    """
    draws = len(winner)
    if draws < 2:
        raise ValueError(f"winner has {draws} entries; whether winners agree needs at least two.")
    others = np.bincount(winner)[winner] - 1
    share = float(others.mean() / (draws - 1))
    first = float((others / (draws - 1)).var())
    variance = 4 * first / draws + 2 * share * (1 - share) / (draws * (draws - 1))
    return share, max(math.sqrt(variance), 1 / draws)


def extreme_among_escaped(real: NormPaths, inputs: Float[np.ndarray, "batches n"]) -> dict[str, float | int | None]:
    """Say how often the largest sample is an extreme of the input, among networks with an escaped point.

    Args:
        real: networks; only the first draw of each batch and the last depth count.
        inputs: the one-dimensional batches, shape (batches, n).

    Returns:
        `batches` (those with an escaped point), `share`, `low`, `high` (exact, 95 percent; None without any).

    Example:
        >>> from bnlib.tree_transfer import tree_limits
        >>> y = np.array([[0.0, 1.0, 2.0, 9.0], [-3.0, -1.0, 1.0, 3.0]])
        >>> extreme_among_escaped(tree_limits(y), y)["share"]
        1.0
    """
    norms = real.norms[-1, :, 0]
    winner, escaped = norms.argmax(axis=-1), escaped_points(norms) > 0
    extreme = (winner == inputs.argmax(axis=-1)) | (winner == inputs.argmin(axis=-1))
    count, hits = int(escaped.sum()), int((extreme & escaped).sum())
    if not count:
        return {"batches": 0, "share": None, "low": None, "high": None}
    low, high = share_interval(hits, count)
    return {"batches": count, "share": hits / count, "low": low, "high": high}


def share_text(row: dict) -> str:
    """Write a share with its interval.

    Args:
        row: has `share`, `low` and `high`.

    Returns:
        Three digits each; a dash if there is none.

    Example:
        >>> share_text({"share": 0.5, "low": 0.25, "high": 0.75})
        '0.500 (0.250 to 0.750)'
    """
    if row["share"] is None:
        return "–"
    return f"{row['share']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def distance_text(row: dict) -> str:
    """Write a distance with its interval.

    Args:
        row: has `distance`, `low` and `high`.

    Returns:
        Two digits each.

    Example:
        >>> distance_text({"distance": 0.5, "low": 0.25, "high": 0.75})
        '0.50 (0.25 to 0.75)'
    """
    return f"{row['distance']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def quartile_text(quartiles: Sequence[float]) -> str:
    """Write a median with the quartiles around it.

    Args:
        quartiles: lower quartile, median, upper quartile.

    Returns:
        Four significant digits each.

    Example:
        >>> quartile_text([1.0, 2.0, 3.25])
        '2 (1 to 3.25)'
    """
    low, middle, high = quartiles
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"


def distance_path(toy: NormPaths, real: NormPaths) -> list[dict[str, float | int]]:
    """Follow the distance of the laws of the second-largest over the largest norm from layer to layer.

    Args:
        toy: one model at some depths.
        real: another one at the same depths.

    Returns:
        One row a depth: `depth`, `distance`, `low`, `high` (95 percent at each depth, one network a batch).

    Raises:
        ValueError: the depths differ.

    Example:
        >>> from bnlib.tree_transfer import infinite_width_paths, tree_paths
        >>> y = np.random.default_rng(0).standard_normal((40, 6))
        >>> rows = distance_path(tree_paths(y, [1, 9]), infinite_width_paths(y, [1, 9]))
        >>> rows[0]["distance"], rows[1]["distance"] > 0
        (0.0, True)
    """
    if toy.depths.tolist() != real.depths.tolist():
        raise ValueError(
            f"toy has depths {toy.depths.tolist()}, real has depths {real.depths.tolist()}; they must be the same."
        )
    rows = []
    for index, depth in enumerate(toy.depths.tolist()):
        # Equal norms differ by rounding in two ways of computing them; distributions of rounded numbers do not.
        a, b = (np.round(second_over_top(paths.norms[index, :, 0]), 9) for paths in (toy, real))
        one = distance_interval(a, b)
        rows.append({"depth": depth, "distance": one.value, "low": one.low, "high": one.high})
    return rows
