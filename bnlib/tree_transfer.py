"""Does the simplified tree describe real networks? The same one-dimensional batches sent through both.

Gaussian networks with recentering and ReLU, of finite width (simulated) and of infinite width (the deterministic map
of the Gram matrix), beside the exact tree. Both are one rule: with z the recentered neuron values, the next Gram matrix
is E max(z_i z_j, 0) = (E z_i z_j + E |z_i z_j|) / 2. In the tree z is one of the neurons, in the network it is Gaussian
with the same covariance. So given the Gram matrix the two agree on the next norms and differ in E |z_i z_j| alone:
from a one-dimensional batch they agree on the first layer, and on the norms of the second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib.ensembles import propagate
from bnlib.estimates import median_interval, share_interval
from bnlib.geometry import outlier_summary_from_gram
from bnlib.kernels import recentered_relu_kernel
from bnlib.layers import Stages
from bnlib.tree import geometry, layers, limit
from bnlib.tree import norms as tree_norms

_STAGES = Stages.parse("RC+NL")


@dataclass(frozen=True)
class NormPaths:
    """Norms of all samples at some depths, each batch's squares scaled to sum 1.

    Attributes:
        depths: the depths, ascending, shape (t,).
        norms: shape (t, batches, draws, n); the tree and the map of infinite width have one draw.
        gap: distance to pi/2 of the angle between the largest-norm sample and the mean of the others at the last
            depth, radians, shape (batches, draws).
        norm_ratio: norm of that sample over the norm of that mean, shape (batches, draws).
    """

    depths: Int[np.ndarray, " t"]
    norms: Float[np.ndarray, "t batches draws n"]
    gap: Float[np.ndarray, "batches draws"]
    norm_ratio: Float[np.ndarray, "batches draws"]


def tree_paths(batches: Float[np.ndarray, "batches n"], depths: Sequence[int]) -> NormPaths:
    """Send batches through the tree, exactly.

    Args:
        batches: shape (batches, n), rows not constant.
        depths: ascending, each at least 1.

    Returns:
        The `NormPaths`.

    Raises:
        ValueError: if the depths do not ascend from 1 on, or a batch is not valid.

    Example:
        >>> paths = tree_paths(np.array([[0.0, 1.0, 2.0, 9.0]]), [1])
        >>> np.round(paths.norms[0, 0, 0] ** 2 * 50, 6)
        array([ 9.,  4.,  1., 36.])
    """
    wanted = _check_depths(depths)
    found, grams = [], []
    for batch in batches:
        states = [state for state in layers(batch, wanted[-1]) if state.depth in wanted]
        found.append([tree_norms(state) for state in states])
        last = geometry(states[-1])
        grams.append(np.outer(last.norms, last.norms) * np.cos(np.nan_to_num(last.angles)))
    return paths_from_grams(wanted, np.swapaxes(found, 0, 1)[:, :, None], np.stack(grams))


def tree_limits(batches: Float[np.ndarray, "batches n"]) -> NormPaths:
    """Send batches through the tree to infinite depth, see `bnlib.tree_limit.limit`.

    Args:
        batches: shape (batches, n), rows not constant.

    Returns:
        The `NormPaths`, with a single depth that is written as 0.

    Raises:
        ValueError: if a batch is not valid.

    Example:
        >>> tree_limits(np.array([[-3.0, -1.0, 1.0, 3.0]])).norms.round(6)[0, 0, 0]
        array([0.645497, 0.288675, 0.288675, 0.645497])
    """
    found = [limit(batch) for batch in batches]
    ends = np.stack([one.geometry.norms for one in found])[None, :, None]
    return paths_from_grams([0], ends, np.stack([one.gram for one in found]))


def paths_from_grams(depths: list[int], found: np.ndarray, grams: np.ndarray) -> NormPaths:
    """Return norms of shape (t, batches, 1, n) and the last Gram matrices, one a batch, as `NormPaths`.

    Args:
        depths: the depths, ascending, shape (t,).
        found: norms, shape (t, batches, 1, n).
        grams: Gram matrices at the last depth, shape (batches, n, n).

    Returns:
        The `NormPaths`; angles in radians.

    Example:
        >>> gram = np.diag([4.0, 1.0, 1.0])[None]
        >>> paths_from_grams([3], np.ones((1, 1, 1, 3)), gram).norm_ratio.round(6).tolist()
        [[2.828427]]
    """
    summary = outlier_summary_from_gram(torch.from_numpy(grams)[:, None])
    return NormPaths(np.array(depths), found, math.pi / 2 - summary.angle.numpy(), summary.norm_ratio.numpy())


def infinite_width_paths(batches: Float[np.ndarray, "batches n"], depths: Sequence[int]) -> NormPaths:
    """Send batches through a network of infinite width: the map K -> V(G K G) from K = y y'.

    Args:
        batches: shape (batches, n).
        depths: ascending, each at least 1.

    Returns:
        The `NormPaths`.

    Raises:
        ValueError: if the depths do not ascend from 1 on.

    Example:
        >>> paths = infinite_width_paths(np.array([[0.0, 1.0, 2.0, 9.0]]), [1, 5])
        >>> np.round(paths.norms[0, 0, 0] ** 2 * 50, 6)
        array([ 9.,  4.,  1., 36.])
    """
    wanted = _check_depths(depths)
    k = batches[:, :, None] * batches[:, None, :]
    rows = []
    for depth in range(1, wanted[-1] + 1):
        k = recentered_relu_kernel(k)
        k = k / np.trace(k, axis1=-2, axis2=-1)[:, None, None]
        if depth in wanted:
            rows.append(np.sqrt(np.diagonal(k, axis1=-2, axis2=-1)))
    return paths_from_grams(wanted, np.stack(rows)[:, :, None, :], k)


def network_paths(
    batches: Float[np.ndarray, "batches n"],
    width: int,
    depths: Sequence[int],
    *,
    draws: int,
    generator: torch.Generator,
) -> NormPaths:
    """Send batches through random networks with recentering and ReLU, each through `draws` of its own.

    Args:
        batches: shape (batches, n).
        width: neurons a layer.
        depths: ascending, each at least 1.
        draws: networks a batch.
        generator: source of randomness; its device does the work.

    Returns:
        The `NormPaths`.

    Raises:
        ValueError: if the depths do not ascend from 1 on, or width or draws are below 1.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> network_paths(np.array([[0.0, 1.0, 2.0, 9.0]]), 32, [1, 5], draws=3, generator=g).norms.shape
        (2, 1, 3, 4)
    """
    wanted = _check_depths(depths)
    if draws < 1:
        raise ValueError(f"draws is {draws}; at least one network a batch is needed.")
    x = torch.as_tensor(batches, dtype=torch.float64, device=generator.device)
    x = x[:, None, :, None].expand(-1, draws, -1, 1)
    rows: list[Tensor] = []
    for state in propagate(x, width, wanted[-1], _STAGES, generator=generator):
        if state.depth in wanted:
            squares = state.gram.diagonal(dim1=-2, dim2=-1)
            rows.append((squares / squares.sum(dim=-1, keepdim=True)).sqrt().cpu())
    summary = outlier_summary_from_gram(state.gram.cpu())
    return NormPaths(
        depths=np.array(wanted),
        norms=torch.stack(rows).numpy(),
        gap=math.pi / 2 - summary.angle.numpy(),
        norm_ratio=summary.norm_ratio.numpy(),
    )


def _check_depths(depths: Sequence[int]) -> list[int]:
    found = [int(depth) for depth in depths]
    if not found or any(a >= b for a, b in pairwise([0, *found])):
        raise ValueError(f"depths is {list(depths)}; valid are ascending integers of at least 1.")
    return found


def second_over_top(norms: Float[np.ndarray, "*rest n"]) -> Float[np.ndarray, "*rest"]:
    """Return the second-largest norm over the largest: near 0 or near 1/(n-1) for one escaped point.

    Args:
        norms: shape (..., n).

    Returns:
        Shape (...).

    Example:
        >>> second_over_top(np.array([1.0, 4.0, 2.0])).item()
        0.5
    """
    ordered = np.sort(norms, axis=-1)
    return np.asarray(ordered[..., -2] / ordered[..., -1])


def escaped_points(norms: Float[np.ndarray, "*rest n"], factor: int | float = 2.0) -> Int[np.ndarray, "*rest"]:
    """Count the escaped points of a batch: the samples whose norm is at least twice the median norm of the batch.

    Args:
        norms: shape (..., n).
        factor: another multiple of the median in place of two.

    Returns:
        Shape (...), integers.

    Example:
        >>> escaped_points(np.array([1.0, 1.0, 1.1, 9.0, 4.0])).item()
        2
    """
    return np.asarray((norms >= factor * np.median(norms, axis=-1, keepdims=True)).sum(axis=-1))


def extremes_ratio(
    norms: Float[np.ndarray, "*rest batches draws n"], batches: Float[np.ndarray, "batches n"]
) -> Float[np.ndarray, "*rest batches draws"]:
    """Return the norms of the samples with the largest and the smallest input value, smaller over larger.

    Args:
        norms: shape (..., batches, draws, n).
        batches: the inputs, shape (batches, n).

    Returns:
        Shape (..., batches, draws), between 0 and 1.

    Example:
        >>> extremes_ratio(np.array([[[1.0, 3.0, 4.0]]]), np.array([[0.0, 1.0, 2.0]])).item()
        0.25
    """
    members = np.arange(len(batches))
    ends = [norms[..., members, :, pick(axis=-1)] for pick in (batches.argmax, batches.argmin)]
    # Two index arrays put their common axis, the batches, in front.
    ends = [np.moveaxis(end, 0, -2) for end in ends]
    return np.minimum(*ends) / np.maximum(*ends)


def winner_shares(
    norms: Float[np.ndarray, "batches draws n"],
    batches: Float[np.ndarray, "batches n"],
    predicted: Int[np.ndarray, " batches"],
) -> dict[str, Float[np.ndarray, " batches"]]:
    """Say, batch by batch, who is the sample of largest norm.

    Args:
        norms: shape (batches, draws, n).
        batches: the inputs, shape (batches, n).
        predicted: index of the sample that the tree makes largest, shape (batches,).

    Returns:
        Shares of the draws, shape (batches,): `extreme` (it has the largest or smallest input value), `maximum` (the
        largest input value), `predicted` (the tree's); and `agreement`, the share of the pairs of draws with the same
        winner, an unbiased estimate of the probability that two networks on the same batch have the same winner.

    Raises:
        ValueError: fewer than two draws.

    Example:
        >>> y, norms = np.array([[0.0, 1.0, 2.0]]), np.array([[[1.0, 0.5, 2.0], [2.0, 0.5, 1.0]]])
        >>> {name: share.item() for name, share in winner_shares(norms, y, np.array([2])).items()}
        {'extreme': 1.0, 'maximum': 0.5, 'predicted': 0.5, 'agreement': 0.0}
    """
    winner = norms.argmax(axis=-1)
    draws = winner.shape[-1]
    if draws < 2:
        raise ValueError(f"norms has {draws} draws a batch; whether winners agree needs at least two.")
    top, bottom = batches.argmax(axis=-1)[:, None], batches.argmin(axis=-1)[:, None]
    number = (winner[..., None] == np.arange(batches.shape[-1])).sum(axis=1)
    return {
        "extreme": ((winner == top) | (winner == bottom)).mean(axis=-1),
        "maximum": (winner == top).mean(axis=-1),
        "predicted": (winner == predicted[:, None]).mean(axis=-1),
        # The share of the most frequent winner would be biased upwards: pairs of draws are not.
        "agreement": (number * (number - 1)).sum(axis=-1) / (draws * (draws - 1)),
    }


def distribution_distance(a: Float[np.ndarray, " k"], b: Float[np.ndarray, " m"]) -> float:
    """Return the largest difference between two empirical distribution functions (Kolmogorov and Smirnov).

    Args:
        a: a sample.
        b: another sample.

    Returns:
        Between 0 (the same values) and 1 (no overlap).

    Example:
        >>> distribution_distance(np.array([0.0, 1.0]), np.array([2.0, 3.0]))
        1.0
    """
    points = np.concatenate([a, b])
    shares = [np.searchsorted(np.sort(sample), points, side="right") / len(sample) for sample in (a, b)]
    return float(np.abs(shares[0] - shares[1]).max())


def mean_and_error(shares: Float[np.ndarray, " batches"]) -> tuple[float, float]:
    """Return the mean over batches of a share, and its standard error; draws of one batch are averaged before.

    The error is at least 1 / batches: a share of exactly 0 or 1 in a sample is not certain beyond the sample.

    Args:
        shares: one number in [0, 1] a batch, shape (batches,), at least two.

    Returns:
        Mean and standard error.

    Raises:
        ValueError: fewer than two batches.

    Example:
        >>> mean_and_error(np.array([0.0, 1.0])), mean_and_error(np.ones(10))
        ((0.5, 0.5), (1.0, 0.1))
    """
    count = len(shares)
    if count < 2:
        raise ValueError(f"shares has {count} entries; a standard error needs at least two batches.")
    return float(shares.mean()), max(float(shares.std(ddof=1)) / math.sqrt(count), 1 / count)


def lower_limit(shares: Float[np.ndarray, " batches"], error: float = 1e-3) -> float:
    """Return a one-sided lower confidence limit of the mean share (Clopper and Pearson), with batches as the units.

    Exact where every share is 0 or 1. Shares in between, means over the draws of a batch, scatter less than a coin of
    the same mean; their sum is rounded down to a whole number of batches.

    Args:
        shares: one number in [0, 1] a batch, shape (batches,), at least one.
        error: probability that the limit exceeds the truth.

    Returns:
        From 0 to 1; below 1 even if all shares are 1.

    Example:
        >>> round(lower_limit(np.ones(300)), 4), lower_limit(np.zeros(300))
        (0.9772, 0.0)
    """
    # The small number keeps three thirds a whole.
    return share_interval(math.floor(float(shares.sum()) + 1e-9), len(shares), tail=error)[0]


def transfer_cell(
    batches: Float[np.ndarray, "batches n"], end: NormPaths, network: NormPaths
) -> dict[str, float | int]:
    """Compare networks at their last depth with the tree at infinite depth, over batches of one size.

    Args:
        batches: the inputs, shape (batches, n).
        end: what `tree_limits` returns for them.
        network: what `network_paths` returns for them.

    Returns:
        `n`, `batches`, `draws`; medians of second-largest over largest norm, `tree_second` and `network_second`, and
        `distance`, the largest difference of their distribution functions; shares with two escaped points or more,
        `tree_two` and `network_two`; shares of draws whose largest sample is an `extreme`, the one `predicted` by the
        tree; `agreement` of the winners, see `winner_shares`; `ratio_share` and `gap_share`, of draws within Theorem
        11's bounds for the sample of largest norm against the mean of the others. Shares have standard errors over
        batches, `<name>_error`; `extreme`, `ratio_share` and `gap_share`, which are near 1 where the tree's word holds,
        also have one-sided lower confidence limits, `<name>_lower`, see `lower_limit`.

    Raises:
        ValueError: fewer than two batches or draws.

    Example:
        >>> y = np.array([[0.0, 1.0, 2.0, 9.0], [-7.0, 1.0, 2.0, 3.0]])
        >>> g = torch.Generator().manual_seed(0)
        >>> cell = transfer_cell(y, tree_limits(y), network_paths(y, 64, [8], draws=20, generator=g))
        >>> cell["draws"], cell["predicted"] > 0.5
        (20, True)
    """
    n = batches.shape[-1]
    toy, real = end.norms[-1], network.norms[-1]
    second = second_over_top(toy)[:, 0], second_over_top(real)
    shares = {
        "tree_two": (escaped_points(toy) >= 2).mean(axis=-1),
        "network_two": (escaped_points(real) >= 2).mean(axis=-1),
        "ratio_share": (network.norm_ratio >= (n - 2) / 3).mean(axis=-1),
        "gap_share": (np.abs(network.gap) <= math.sqrt(2 * math.pi) / (n - 2)).mean(axis=-1),
        **winner_shares(real, batches, toy[:, 0].argmax(axis=-1)),
    }
    cell = {
        "n": n,
        "batches": len(batches),
        "draws": real.shape[1],
        "tree_second": float(np.median(second[0])),
        "network_second": float(np.median(second[1])),
        "distance": distribution_distance(second[0], second[1].ravel()),
    }
    for name in ("extreme", "ratio_share", "gap_share"):
        cell[f"{name}_lower"] = lower_limit(shares[name])
    for name, share in shares.items():
        cell[name], cell[f"{name}_error"] = mean_and_error(share)
    return cell


def tree_shares(n: int, batches: int, *, rng: np.random.Generator) -> dict[str, float | int]:
    """Say how many points escape in the tree's limit, over many standard normal batches.

    Args:
        n: batch size, at least 3.
        batches: how many, at least 2.
        rng: source of randomness.

    Returns:
        `n`, `batches`; `two` (share of batches with two escaped points or more) and `two_error`; `second` (median of
        second-largest over largest norm); `energy_ratio` (median of the smaller over the larger limiting energy) with
        `energy_ratio_low` and `energy_ratio_high` (95 percent, order statistics; None for few batches);
        `absorbed` (share of batches in which the smaller energy is below 1/(n-1)**2 of the larger one).

    Raises:
        ValueError: n < 3 or fewer than two batches.

    Example:
        >>> tree_shares(8, 50, rng=np.random.default_rng(0))["two"] > 0.5
        True
    """
    if n < 3:
        raise ValueError(f"n is {n}; without an interior point nothing can be compared, so n must be at least 3.")
    found = [limit(batch) for batch in rng.standard_normal((batches, n))]
    ends = np.stack([one.geometry.norms for one in found])
    energies = np.array([min(one.energy_min, one.energy_max) / max(one.energy_min, one.energy_max) for one in found])
    low, high = median_interval(energies)
    two, error = mean_and_error((escaped_points(ends) >= 2).astype(float))
    return {
        "n": n,
        "batches": batches,
        "two": two,
        "two_error": error,
        "second": float(np.median(second_over_top(ends))),
        "energy_ratio": float(np.median(energies)),
        "energy_ratio_low": low,
        "energy_ratio_high": high,
        "absorbed": float((energies < 1 / (n - 1) ** 2).mean()),
    }
