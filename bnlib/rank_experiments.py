"""Measurements for Theorem 3: waiting times until full rank beside the constant γ of the same batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib import estimates
from bnlib.collinear import attainable_rank
from bnlib.data import gaussian_batch
from bnlib.gamma import GammaBounds, gamma_bounds
from bnlib.rank import rank_times

_KINDS = {
    "independent lines": "exact (independent samples)",
    "plane": "exact (plane)",
    "acute sets": "exact (general position)",
}
_BOUND_ONLY = "certified lower bound (general position)"


@dataclass(frozen=True)
class WaitingTimes:
    """Neurons until full rank of fresh batches, each with its own γ.

    Attributes:
        times: number of neurons of each draw, shape (draws,).
        gamma_lower: a proved lower bound of γ for each batch, γ itself where it is known, shape (draws,).
        gamma_upper: a proved upper bound of γ, shape (draws,).
        kind: how γ is known: "exact (independent samples)", "exact (plane)", "exact (general position)" or "certified
            lower bound (general position)"; None if some batch cannot reach full rank.
        n: batch size.
        input_dim: dimension of the samples.
    """

    times: Int[np.ndarray, "draws"]
    gamma_lower: Float[np.ndarray, "draws"]
    gamma_upper: Float[np.ndarray, "draws"]
    kind: str | None
    n: int
    input_dim: int

    def cell(self) -> dict[str, object]:
        """Return mean, standard error and the mean of n/γ over the same batches, as the results file holds them.

        `bound` takes γ's lower bound and is at least the mean of n/γ, `bound_at_least` takes the upper one and is at
        most that; they are equal where γ is known.
        """
        mean, error = mean_and_error(self.times)
        bound = float((self.n / self.gamma_lower).mean()) if self.kind else None
        at_least = float((self.n / self.gamma_upper).mean()) if self.kind else None
        return {
            "n": self.n,
            "input_dim": self.input_dim,
            "mean": mean,
            "standard_error": error,
            "bound": bound,
            "bound_at_least": at_least,
            "bound_kind": self.kind,
        }

    def share(self) -> dict[str, object]:
        """Return the mean over draws of T·γ/n (at most 1 by the theorem) and of T·γ (at least 1 where γ is exact).

        `share_of_bound` takes γ's lower bound, `share_at_most` the upper one: the mean of T·γ/n lies between them.
        """
        used, used_error = mean_and_error(self.times * self.gamma_lower / self.n)
        most, most_error = mean_and_error(self.times * self.gamma_upper / self.n)
        over, over_error = mean_and_error(self.times * self.gamma_upper)
        return {
            "n": self.n,
            "input_dim": self.input_dim,
            "share_of_bound": used,
            "share_error": used_error,
            "share_at_most": most,
            "share_at_most_error": most_error,
            "over_lower_bound": over,
            "over_error": over_error,
            "median_gamma": float(np.median(self.gamma_lower)),
            "median_gamma_upper": float(np.median(self.gamma_upper)),
        }


def mean_and_error(sample: np.ndarray) -> tuple[float, float]:
    """Return the mean of a sample and its standard error.

    Args:
        sample: at least two numbers.

    Returns:
        Mean and standard error, in the sample's unit.

    Raises:
        ValueError: if there are fewer than two numbers.

    Example:
        >>> mean_and_error(np.array([1.0, 3.0]))
        (2.0, 1.0)
    """
    sample = np.asarray(sample, dtype=float)
    if sample.size < 2:
        raise ValueError(f"sample must hold at least two numbers, got {sample.size}.")
    return float(sample.mean()), float(sample.std(ddof=1) / np.sqrt(sample.size))


def gaussian_waiting_times(n: int, input_dim: int, draws: int, *, generator: torch.Generator) -> WaitingTimes:
    r"""Simulate neurons until full rank, each draw with a fresh standard Gaussian batch and fresh weights.

    Given its batch, a draw's expectation is at most $n/\gamma(X)$ (Theorem 3 of arXiv 2412.02843, γ as in
    `bnlib.gamma`), so the mean over the draws is to be compared with the mean of $n/\gamma(X)$ over the same batches.
    Gaussian samples are in general position almost surely; γ is bounded under that hypothesis.

    Args:
        n: batch size, at least 2.
        input_dim: dimension of the samples, at least 2 (on a line, more than two samples never reach full rank).
        draws: number of draws, at least 2.
        generator: source of batches and weights; everything but γ is computed on its device.

    Returns:
        The `WaitingTimes`.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> found = gaussian_waiting_times(2, 2, 10, generator=torch.Generator().manual_seed(0))
        >>> found.kind, found.cell()["bound"]
        ('exact (independent samples)', 4.0)
    """
    if input_dim < 2:
        raise ValueError(f"input_dim must be at least 2, got {input_dim}: all samples on a line are collinear.")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}.")
    x = gaussian_batch(n, input_dim, generator=generator, draws=draws)
    times = rank_times(x, generator=generator)[:, -1].cpu().numpy()
    bounds = [gamma_bounds(batch, spark_at_least=max(3, input_dim + 1)) for batch in x.cpu().numpy()]
    return WaitingTimes(
        times=times,
        gamma_lower=np.array([bound.lower for bound in bounds]),
        gamma_upper=np.array([bound.upper for bound in bounds]),
        kind=_kind(bounds),
        n=n,
        input_dim=input_dim,
    )


def _kind(bounds: list[GammaBounds]) -> str | None:
    if any(bound.lower == 0 for bound in bounds):
        return None
    reasons = {bound.reason for bound in bounds}
    if all(bound.exact for bound in bounds) and len(reasons) == 1:
        return _KINDS.get(reasons.pop(), _BOUND_ONLY)
    return _BOUND_ONLY


def fixed_batch_times(
    x: Float[Tensor, "n d"],
    draws: int,
    *,
    generator: torch.Generator,
    target_rank: int | None = None,
    max_neurons: int = 1_000_000,
) -> Int[np.ndarray, "draws target"]:
    """Simulate the same batch many times with fresh weights: the number of neurons at each rank.

    Args:
        x: one batch, rows are samples, on the generator's device.
        draws: number of draws.
        generator: source of the weights.
        target_rank: where to stop; the batch size if None.
        max_neurons: where to give up.

    Returns:
        As `bnlib.rank.rank_times`: entry (draw, r - 1) is the time of rank r, -1 if it was not reached.

    Raises:
        ValueError: as `bnlib.rank.rank_times`.

    Example:
        >>> x = torch.tensor([[1.0], [-1.0], [2.0]], dtype=torch.float64)
        >>> fixed_batch_times(x, 2, generator=torch.Generator().manual_seed(0), max_neurons=99)[:, 2].tolist()
        [-1, -1]
    """
    repeated = x.expand(draws, *x.shape)
    found = rank_times(repeated, generator=generator, target_rank=target_rank, max_neurons=max_neurons)
    return found.cpu().numpy()


def cone_batch(directions: Float[Tensor, "n d"], opening: float | int) -> Float[Tensor, "n d"]:
    r"""Return samples $e_1 + \delta z_j$: of nearly one direction if $\delta$ is small.

    Args:
        directions: the $z_j$, no unit.
        opening: $\delta$, positive, about half the opening angle of the cone in radians when it is small.

    Returns:
        The batch.

    Raises:
        ValueError: if the opening is not positive.

    Example:
        >>> cone_batch(torch.eye(2), 0.5).tolist()
        [[1.5, 0.0], [1.0, 0.5]]
    """
    if not opening > 0:
        raise ValueError(f"opening must be positive, got {opening}.")
    batch = opening * directions
    batch[:, 0] += 1
    return batch


def near_collinear_cells(
    n: int, input_dim: int, openings: Sequence[float | int], draws: int, *, generator: torch.Generator
) -> list[dict[str, object]]:
    r"""Simulate one batch in general position while its samples are moved towards one direction.

    The batch is $e_1 + \delta z_j$ with fixed Gaussian $z_j$ (`cone_batch`), so only the weights are drawn anew.

    Args:
        n: batch size, above input_dim for a constant below 1/2.
        input_dim: dimension of the samples, at least 2.
        openings: values of $\delta$.
        draws: number of draws of the weights for each, at least 2.
        generator: source of the batch and the weights.

    Returns:
        For each opening `n`, `input_dim`, `opening`, `mean`, `standard_error`, `gamma_lower`, `gamma_upper`.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> found = near_collinear_cells(3, 2, [1.0, 0.1], 20, generator=torch.Generator().manual_seed(0))
        >>> [cell["gamma_lower"] == cell["gamma_upper"] for cell in found]
        [True, True]
    """
    directions = gaussian_batch(n, input_dim, generator=generator)
    found = []
    for opening in openings:
        batch = cone_batch(directions, opening)
        times = fixed_batch_times(batch, draws, generator=generator)[:, -1]
        mean, error = mean_and_error(times)
        gamma = gamma_bounds(batch.cpu().numpy(), spark_at_least=max(3, input_dim + 1))
        found.append(
            {
                "n": n,
                "input_dim": input_dim,
                "opening": opening,
                "mean": mean,
                "standard_error": error,
                "gamma_lower": gamma.lower,
                "gamma_upper": gamma.upper,
            }
        )
    return found


def log_log_slope(cells: Sequence[dict[str, object]]) -> tuple[float, float]:
    """Return the slope of log mean against log opening between the last two cells, and its standard error.

    Args:
        cells: at least two of `near_collinear_cells`.

    Returns:
        Slope and standard error (to first order in the relative errors of the means).

    Example:
        >>> log_log_slope([{"opening": 0.1, "mean": 5.0, "standard_error": 0.0},
        ...                {"opening": 0.01, "mean": 50.0, "standard_error": 0.0}])
        (-1.0, 0.0)
    """
    one, two = cells[-2], cells[-1]
    step = np.log(two["opening"] / one["opening"])
    slope = np.log(two["mean"] / one["mean"]) / step
    error = np.hypot(one["standard_error"] / one["mean"], two["standard_error"] / two["mean"]) / abs(step)
    return float(slope), float(error)


def lifted_batches(
    features: Float[Tensor, "samples d"], n: int, width: int, draws: int, *, generator: torch.Generator
) -> dict[str, object]:
    """Draw batches of a data set and simulate neurons until full rank.

    Args:
        features: all samples, no unit.
        n: batch size.
        width: the layer for which the share of full rank is counted.
        draws: number of batches, each with its own neurons.
        generator: source of randomness, on the device of the features.

    Returns:
        `n`, `width`, `draws`, `input_rank_max` (the number of features that are not zero on the whole batch, at least
        its rank; the largest over the batches), `mean`, `standard_error`, `largest` (number of neurons), `share_full`
        and its interval `share_lower`, `share_upper` (error 0.001 on each side).

    Example:
        >>> x = torch.randn(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        >>> found = lifted_batches(x, 3, 50, 10, generator=torch.Generator().manual_seed(0))
        >>> found["input_rank_max"]
        2
    """
    order = torch.rand(draws, len(features), generator=generator, device=features.device).argsort(dim=1)[:, :n]
    batches = features[order]
    times = rank_times(batches, generator=generator)[:, -1].cpu().numpy()
    full = int(((times >= 0) & (times <= width)).sum())
    lower, upper = share_interval(full, draws, error=1e-3)
    mean, error = mean_and_error(times)
    return {
        "n": n,
        "width": width,
        "draws": draws,
        "input_rank_max": int(batches.any(dim=1).sum(dim=1).max()),
        "mean": mean,
        "standard_error": error,
        "largest": int(times.max()),
        "share_full": full / draws,
        "share_lower": lower,
        "share_upper": upper,
    }


def mean_rank_curve(times: Int[np.ndarray, "draws target"], neurons: int) -> Float[np.ndarray, "neurons"]:
    """Return the mean rank over the draws after 1, 2, ... neurons.

    Args:
        times: times of each rank, -1 if not reached, from `fixed_batch_times`.
        neurons: length of the curve.

    Returns:
        The mean rank, shape (neurons,).

    Example:
        >>> mean_rank_curve(np.array([[1, 3], [2, -1]]), 3)
        array([0.5, 1. , 1.5])
    """
    after = np.arange(1, neurons + 1)
    reached = (times[:, :, None] >= 0) & (times[:, :, None] <= after)
    return reached.sum(axis=1).mean(axis=0)


def share_interval(count: int, draws: int, error: float = 1e-6) -> tuple[float, float]:
    """Return an exact confidence interval of a probability (Clopper and Pearson).

    Args:
        count: how many of the draws had the property.
        draws: number of draws, at least 1.
        error: probability, on each side, that the interval misses the truth.

    Returns:
        Lower and upper end, from 0 to 1.

    Raises:
        ValueError: if count is not from 0 to draws.

    Example:
        >>> [round(end, 3) for end in share_interval(0, 1000)]
        [0.0, 0.014]
    """
    if not 0 <= count <= draws or draws < 1:
        raise ValueError(f"count must be from 0 to draws, got {count} of {draws}.")
    return estimates.share_interval(count, draws, tail=error)


def degenerate_batch(n: int, d: int, *, generator: torch.Generator) -> Float[Tensor, "n d"]:
    """Return a batch of small integers in which repeated, antipodal, collinear and zero samples are common.

    Args:
        n: batch size, at least 2.
        d: dimension.
        generator: source of randomness.

    Returns:
        Float64, entries are whole numbers.

    Example:
        >>> degenerate_batch(4, 2, generator=torch.Generator().manual_seed(0)).shape
        torch.Size([4, 2])
    """
    device = generator.device
    fresh = torch.randint(-2, 3, (n, d), generator=generator, device=device)
    # The second half are multiples of samples of the first half, by -2, -1, 1 or 2.
    half = n - n // 2
    source = torch.randint(half, (n - half,), generator=generator, device=device)
    factor = torch.tensor([-2, -1, 1, 2], device=device)[
        torch.randint(4, (n - half, 1), generator=generator, device=device)
    ]
    keep = torch.randint(2, (n - half, 1), generator=generator, device=device)
    fresh[half:] = keep * fresh[half:] + (1 - keep) * factor * fresh[source]
    return fresh.double()


def attained_ranks(batches: int, neurons: int, *, generator: torch.Generator) -> list[dict[str, int]]:
    """Compare the rank that many neurons reach with the attainable rank, for degenerate batches.

    Args:
        batches: number of batches; their sizes run from 2 to 9, their dimensions from 1 to 4.
        neurons: number of neurons for each.
        generator: source of batches and weights.

    Returns:
        For each batch `n`, `d`, `attainable` and `attained`.

    Example:
        >>> found = attained_ranks(3, 500, generator=torch.Generator().manual_seed(0))
        >>> all(one["attained"] == one["attainable"] for one in found)
        True
    """
    found = []
    for index in range(batches):
        n, d = 2 + index % 8, 1 + index // 8 % 4
        x = degenerate_batch(n, d, generator=generator)
        times = rank_times(x, generator=generator, max_neurons=neurons)
        reachable = attainable_rank(x.cpu().numpy())
        found.append({"n": n, "d": d, "attainable": reachable, "attained": int((times >= 0).sum())})
    return found


def accuracy_summary(shares: Sequence[float | int | None], name: str) -> dict[str, float | None]:
    """Return mean, standard error, minimum and maximum of accuracies, a diverged network counting as zero.

    Args:
        shares: accuracies from 0 to 1, None for a network that diverged.
        name: begins the keys.

    Returns:
        `<name>_mean`, `<name>_error` (None for a single network), `<name>_min`, `<name>_max`.

    Example:
        >>> accuracy_summary([0.5, None], "train")["train_mean"]
        0.25
    """
    counted = [0.0 if share is None else share for share in shares]
    mean = math.fsum(counted) / len(counted)
    error = None
    if len(counted) > 1:
        variance = math.fsum((share - mean) ** 2 for share in counted) / (len(counted) - 1)
        error = math.sqrt(variance / len(counted))
    return {f"{name}_mean": mean, f"{name}_error": error, f"{name}_min": min(counted), f"{name}_max": max(counted)}


def finite_or_none(value: float | int) -> float | int | None:
    """Return the number, or None if it is NaN or infinite.

    Example:
        >>> finite_or_none(math.nan) is None
        True
    """
    return value if math.isfinite(value) else None
