"""Winner-take-all states of ReLU under full batch normalization: which exist, and which of them networks keep.

At infinite width one winner appears in a saddle-node between 51 and 52 samples; more winners follow at larger batches.
BSB1 stays stable beside them, so that what a wide network does depends on its start, and what a narrow one does on its
own fluctuations. NumPy float64; no torch.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bnlib.homogeneous import Homogeneous, homogeneous
from bnlib.mean_field import forward_multipliers
from bnlib.mean_field_survey import network_covariances, norm_shares, norm_spread
from bnlib.mean_field_tables import named
from bnlib.two_block import block_covariance, block_growth, block_state, next_block

Draw = Callable[..., np.random.Generator]

_RESTORED = 1.01  # n times a winner's share up to which the symmetry counts as restored


def winner_table(
    batch_sizes: Sequence[int], largest: int, layers: int, draw: Draw, slope: float | int = 0.0
) -> list[dict[str, Any]]:
    """Where the map with k equivalent winners leads from a strongly broken start, for leaky ReLU.

    Args:
        batch_sizes: at least 6 each.
        largest: number of winners.
        layers: largest number of layers of the map.
        draw: makes a NumPy generator from labels.
        slope: of the negative side; 0 for ReLU.

    Returns:
        Rows with n, k, `share` (of one winner, times n; 1 at BSB1), `inside_cluster`, `restored` (is it BSB1?),
        `growth` of small differences with every number free (lambda_L if restored), `stable`, and `residual`.

    Example:
        >>> row, = winner_table([16], 1, 200, lambda *labels: np.random.default_rng(0))
        >>> row["restored"], row["stable"]
        (True, True)
    """
    phi, rows = homogeneous(1, 1, slope), []
    for n in batch_sizes:
        for k in range(1, largest + 1):
            state = block_state(n, k, phi, layers)
            restored = n * state.share < _RESTORED
            if restored:
                growth = forward_multipliers(phi.activation, n).norms
            else:
                growth = block_growth(n, state, phi, draw("winners", n, k))
            row = {"n": n, "k": k, "share": n * state.share, "inside_cluster": state.inside_cluster}
            rows.append(
                row | {"restored": restored, "growth": growth, "stable": growth < 1, "residual": state.residual}
            )
    return rows


def collapse_rates(n: int | float, k: int, phi: Homogeneous) -> dict[str, float | bool]:
    """What a layer does with a cluster of minute variance r beside k winners: does it collapse into one point?

    A neuron that sees the winners with a size below sqrt(r) tells the cluster's samples apart. For k = 1, 2, 3 or more
    these add sqrt(r), r log(1/r), r to the cluster's variance: with up to two winners r'/r grows without bound as
    r -> 0, from three on it has a limit, and the cluster collapses if that is below 1.

    Args:
        n: batch size, at least 5.
        k: winners, 1 to n - 2.
        phi: activation, of positive degree.

    Returns:
        `near` and `far`: r'/r at r = 1e-30 and 1e-60, at the block's own state there; `bounded`: do they differ by
        less than a thousandth of themselves; `collapses`: bounded, and `far` is below 1.

    Raises:
        ValueError: as `two_block.next_block`.

    Example:
        >>> [collapse_rates(10, k, homogeneous(2))["collapses"] for k in (1, 2, 3)]
        [False, False, True]
    """
    found = []
    for r in (1e-30, 1e-60):
        block = 1.0
        for _ in range(200):
            after, _ = next_block(block, r, n, k, phi)
            settled, block = abs(after / block - 1) < 1e-9, after
            if settled:
                break
        found.append(next_block(block, r, n, k, phi)[1] / r)
    near, far = found
    bounded = abs(far - near) < 1e-3 * far
    return {"near": near, "far": far, "bounded": bool(bounded), "collapses": bool(bounded and far < 1)}


def heavy_start(n: int, size: float | int) -> Float[np.ndarray, "n n"]:
    """The centered covariance with one sample whose share of the trace is `size`/n, all others equivalent.

    Args:
        n: batch size, at least 3.
        size: n times the share, from 1 (BSB1) to below n - 1.

    Raises:
        ValueError: size is outside its range.

    Example:
        >>> k = heavy_start(16, 4)
        >>> round(float(k[0, 0] / np.trace(k)), 12)
        0.25
    """
    if not 1 <= size < n - 1:
        raise ValueError(f"size must be at least 1 and below n - 1 = {n - 1}, got {size}.")
    return block_covariance(n, 1, 1.0, ((n - 1) / size - 1) / (n - 2))


def memory_of_start(
    name: str,
    batch_sizes: Sequence[int],
    widths: Sequence[int],
    size: float | int,
    depth: int,
    networks: int,
    draw: Draw,
) -> list[dict[str, Any]]:
    """Networks from two starts, equal norms and one heavy sample: where are they late?

    Args:
        name: of the activation.
        batch_sizes: n.
        widths: of the networks.
        size: n times the share of the heavy sample at the start.
        depth: layers; the last third counts.
        networks: number of each.
        draw: makes a NumPy generator from labels.

    Returns:
        Rows with n, width, start ("equal" or "winner"), and n times the largest share: `path` (median over networks,
        every fifth layer) and `late`, `least`, `greatest` over networks of the late layers' median.

    Example:
        >>> rows = memory_of_start("relu", [16], [64], 3, 9, 2, lambda *labels: np.random.default_rng(0))
        >>> [row["start"] for row in rows]
        ['equal', 'winner']
    """
    rows = []
    for n in batch_sizes:
        for width in widths:
            for start, covariance in (("equal", np.eye(n)), ("winner", heavy_start(n, size))):
                first = np.tile(covariance, (networks, 1, 1))
                layers = network_covariances(named(name), first, width, depth, draw("memory", name, n, width, start))
                path = n * np.array([norm_shares(k) for k in layers])
                late = np.median(path[-max(1, depth // 3) :], axis=0)
                row = {"activation": name, "n": n, "width": width, "start": start, "networks": networks}
                row |= {"path": np.median(path, axis=1)[::5].tolist(), "late": float(np.median(late))}
                rows.append(row | {"least": float(late.min()), "greatest": float(late.max())})
    return rows


def late_spread(
    names: Sequence[str], batch_sizes: Sequence[int], widths: Sequence[int], depth: int, networks: int, draw: Draw
) -> list[dict[str, Any]]:
    """How unequal the samples' norms are late in networks from Gaussian inputs, at two widths or more.

    Args:
        names: of activations.
        batch_sizes: n.
        widths: of the networks, ascending.
        depth: layers; the last third counts.
        networks: number of each, at least 2.
        draw: makes a NumPy generator from labels.

    Returns:
        Rows with activation, n, width: n times the largest share (`path`, the median over networks of every tenth
        layer; `late`, `least`, `greatest` over networks of the late layers' median), and `spread`, the variance of the
        squared centered norms over their squared mean, with its standard error over networks.

    Raises:
        ValueError: networks is below 2.

    Example:
        >>> row, = late_spread(["tanh"], [8], [64], 12, 2, lambda *labels: np.random.default_rng(0))
        >>> row["spread"] < 0.5
        True
    """
    if networks < 2:
        raise ValueError(f"networks must be at least 2, got {networks}.")
    rows = []
    for name in names:
        for n in batch_sizes:
            for width in widths:
                generator = draw("late", name, n, width)
                x = generator.standard_normal((networks, n, 4 * n))
                layers = network_covariances(named(name), x @ x.transpose(0, 2, 1), width, depth, generator)
                table = np.array([(n * norm_shares(k), norm_spread(k)) for k in layers])
                last = table[-max(1, depth // 3) :]
                late, spread = np.median(last[:, 0], axis=0), last[:, 1].mean(axis=0)
                row = {"activation": name, "n": n, "width": width, "networks": networks}
                row |= {"path": np.median(table[:, 0], axis=1)[::10].tolist(), "late": float(np.median(late))}
                row |= {"least": float(late.min()), "greatest": float(late.max()), "spread": float(spread.mean())}
                rows.append(row | {"spread_error": float(spread.std(ddof=1) / math.sqrt(networks))})
    return rows


def spread_limits(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The spread of the norms at infinite width, from the two largest widths of each activation and batch size.

    Fluctuations about equal norms have a variance of order 1/width: with widths w and W, (W S(W) - w S(w))/(W - w)
    removes it. What stays is a broken symmetry.

    Args:
        rows: as of `late_spread`.

    Returns:
        Rows with activation, n, `limit` and its standard error; none where there is one width only.

    Example:
        >>> base = {"activation": "relu", "n": 8, "spread_error": 0.0}
        >>> spread_limits([base | {"width": 10, "spread": 0.3}, base | {"width": 40, "spread": 0.075}])[0]["limit"]
        0.0
    """
    groups: dict[tuple, list] = {}
    for row in rows:
        groups.setdefault((row["activation"], row["n"]), []).append(row)
    found = []
    for (name, n), group in groups.items():
        if len(group) < 2:
            continue
        narrow, wide = sorted(group, key=lambda row: row["width"])[-2:]
        w, large = narrow["width"], wide["width"]
        limit = (large * wide["spread"] - w * narrow["spread"]) / (large - w)
        error = math.hypot(large * wide["spread_error"], w * narrow["spread_error"]) / (large - w)
        found.append({"activation": name, "n": n, "limit": limit, "error": error})
    return found
