"""How the symmetry of a batch-normalized batch breaks: by the input, by the weights, and what is left of the cluster.

Layers of infinite width with max(x, 0)^alpha keep whatever symmetry their input has; a small difference of the inputs
is multiplied by lambda_L > 1 a layer until a block of samples has won (BSB2). Networks of finite width add differences
of their own. NumPy float64 unless said otherwise; this module does not import torch.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from bnlib.activations import Activation, power_relu
from bnlib.checks import checked_integer_batch
from bnlib.homogeneous import homogeneous
from bnlib.homogeneous_layer import homogeneous_transform
from bnlib.mean_field import forward_multipliers
from bnlib.mean_field_survey import network_covariances
from bnlib.two_block import group_average

_WINNER = 0.5  # a sample counts as a winner if its share is at least this part of the largest one


def centered_shares(k: np.ndarray) -> np.ndarray:
    """Share of each sample in the trace of the centered covariance, shape (..., n).

    Args:
        k: covariances, shape (..., n, n).

    Example:
        >>> centered_shares(np.eye(4)).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """
    k = k - k.mean(axis=-2, keepdims=True)
    diagonal = np.diagonal(k - k.mean(axis=-1, keepdims=True), axis1=-2, axis2=-1)
    return diagonal / diagonal.sum(axis=-1, keepdims=True)


def winners(k: np.ndarray) -> np.ndarray | np.integer:
    """Number of samples whose share is at least half of the largest, for each covariance; n at BSB1.

    Args:
        k: covariances, shape (..., n, n).

    Example:
        >>> winners(np.diag([9.0, 9.0, 1.0, 1.0, 1.0, 1.0])).item()
        2
    """
    shares = centered_shares(k)
    return (shares >= _WINNER * shares.max(axis=-1, keepdims=True)).sum(axis=-1)


def favored_input(n: int, size: float, sample: int) -> np.ndarray:
    """Orthogonal samples of equal norm but one, whose squared norm is larger by the factor 1 + size.

    Args:
        n: batch size.
        size: of the advantage.
        sample: which one.

    Example:
        >>> np.diagonal(favored_input(3, 0.5, 1)).tolist()
        [1.0, 1.5, 1.0]
    """
    k = np.eye(n)
    k[sample, sample] += size
    return k


def selection_at_infinite_width(n: int | float, alpha: float | int, size: float, layers: int = 40) -> dict[str, Any]:
    """Does a tiny advantage of one sample in the input decide who wins, at infinite width?

    Args:
        n: batch size, at least 5.
        alpha: degree of max(x, 0)^alpha.
        size: of the advantage.
        layers: number of layers.

    Returns:
        `right`: number of samples which, when favored, end with the largest share; `share`: the least of those shares;
        `unbroken`: the largest share when nobody is favored.

    Raises:
        ValueError: n is not a whole number of at least 5, or size is not positive.

    Example:
        >>> found = selection_at_infinite_width(5, 4, 1e-2, 25)
        >>> found["right"], round(found["unbroken"], 9)
        (5, 0.2)
    """
    n = checked_integer_batch(n, 5)
    if not 0 < size < math.inf:
        raise ValueError(f"size must be positive and finite, got {size}.")
    phi, ends = homogeneous(alpha), []
    for sample in (0, n // 2, None):
        k = np.eye(n) if sample is None else favored_input(n, size, sample)
        for _ in range(layers):
            k = homogeneous_transform(k, phi)
            k /= np.trace(k)
        ends.append((sample, centered_shares(k)))
    favored = [(sample, shares) for sample, shares in ends if sample is not None]
    right = [shares[sample] for sample, shares in favored if np.argmax(shares) == sample]
    # The map commutes with permutations, so that two places stand for all; they guard against a slip.
    return {
        "right": n if len(right) == len(favored) else len(right),
        "share": float(min(right, default=0.0)),
        "unbroken": float(ends[-1][1].max()),
    }


def selection_in_networks(
    n: int | float,
    alpha: float | int,
    sizes: list[float],
    width: int,
    depth: int,
    networks: int,
    generator: np.random.Generator,
) -> list[dict[str, float | int]]:
    """The same in networks: how often the favored sample wins, over the size of its advantage.

    Args:
        n: batch size, at least 5.
        alpha: degree of max(x, 0)^alpha.
        sizes: advantages of sample 0; 0 for none.
        width: neurons in each layer.
        depth: layers.
        networks: number of them, for each size.
        generator: source of the randomness.

    Returns:
        Rows with size, `won` (networks in which sample 0 has the largest share), networks, `places` (how many different
        samples won).

    Raises:
        ValueError: n is not a whole number of at least 5; else as `mean_field_survey.network_covariances`.

    Example:
        >>> rows = selection_in_networks(6, 4, [0.0, 4.0], 200, 12, 10, np.random.default_rng(0))
        >>> rows[0]["won"] < rows[1]["won"]
        True
    """
    n = checked_integer_batch(n, 5)
    rows = []
    for size in sizes:
        start = np.tile(favored_input(n, size, 0), (networks, 1, 1))
        *_, last = network_covariances(power_relu(alpha), start, width, depth, generator)
        first = np.argmax(centered_shares(last), axis=-1)
        rows.append(
            {
                "size": float(size),
                "won": int((first == 0).sum()),
                "networks": networks,
                "places": len(set(first.tolist())),
            }
        )
    return rows


def ends_in_blocks(
    n: int | float, alpha: float | int, starts: int, layers: int, generator: np.random.Generator
) -> list[dict[str, float | int]]:
    """Infinite width from random covariances: is the end a BSB2, and with how many winners?

    Args:
        n: batch size, at least 5.
        alpha: degree of max(x, 0)^alpha.
        starts: number of random covariances.
        layers: number of layers.
        generator: draws them.

    Returns:
        For each start `k`, the winners, `share` of one of them, and `pattern`: distance from the average over the
        permutations inside winners and others, relative to the covariance.

    Raises:
        ValueError: n is not a whole number of at least 5.

    Example:
        >>> row, = ends_in_blocks(6, 4, 1, 60, np.random.default_rng(0))
        >>> row["pattern"] < 1e-3
        True
    """
    n = checked_integer_batch(n, 5)
    phi, rows = homogeneous(alpha), []
    for _ in range(starts):
        x = generator.standard_normal((n, 2 * n))
        k = x @ x.T
        for _ in range(layers):
            k = homogeneous_transform(k, phi)
            k /= np.trace(k)
        shares = centered_shares(k)
        order = np.argsort(-shares)
        k = k[np.ix_(order, order)]
        k = k - k.mean(axis=0)
        k -= k.mean(axis=1, keepdims=True)
        count = int((shares >= _WINNER * shares.max()).sum())
        distance = float(np.linalg.norm(k - group_average(k, count)) / np.linalg.norm(k))
        rows.append({"k": count, "share": float(shares.max()), "pattern": distance})
    return rows


def precision_rows(
    n: int | float,
    alpha: float | int,
    widths: list[int],
    depth: int,
    networks: int,
    generator: np.random.Generator,
) -> list[dict[str, float | int | str]]:
    """Networks of max(x, 0)^alpha with weight matrices written out, in double and in single precision.

    Both precisions get the same weights (rounded). What is followed, over the last half of the layers: how many samples
    win, and how wide the others' cluster is in the normalized pre-activations.

    Args:
        n: batch size, at least 5.
        alpha: degree.
        widths: neurons in each layer.
        depth: layers, at least 4.
        networks: number of each.
        generator: source of the randomness.

    Returns:
        Rows with width, precision, `one` and `two` (share of the late layers with one and with two winners), `share`
        (median over them of the largest share), `cluster` (median over late layers of the root mean square distance of
        the others from their mean, in units of the winner's distance from it), `exact` (share of the late layers in
        which all others are one and the same number in more than half of the neurons), and `finite`.

    Raises:
        ValueError: n is not a whole number of at least 5, or depth is below 4.

    Example:
        >>> rows = precision_rows(6, 8, [32], 6, 2, np.random.default_rng(0))
        >>> [row["precision"] for row in rows]
        ['float64', 'float32']
    """
    n = checked_integer_batch(n, 5)
    if depth < 4:
        raise ValueError(f"depth must be at least 4, got {depth}.")
    rows = []
    for width in widths:
        late: dict[str, list] = {"float64": [], "float32": []}
        for _ in range(networks):
            start = generator.standard_normal((n, width))
            x = {name: start.astype(name) for name in late}
            for layer in range(depth):
                weights = generator.standard_normal((width, width)) / math.sqrt(width)
                for name in late:
                    x[name], entry = _layer(x[name], weights.astype(name), alpha)
                    if layer >= depth // 2:
                        late[name].append(entry)
        for name, entries in late.items():
            table = np.array(entries)
            finite = np.isfinite(table).all(axis=1)
            kept = table[finite]
            rows.append(
                {
                    "width": int(width),
                    "precision": name,
                    "one": float((kept[:, 0] == 1).mean()),
                    "two": float((kept[:, 0] == 2).mean()),
                    "share": float(np.median(kept[:, 1])),
                    "cluster": float(np.median(kept[:, 2])),
                    "exact": float((kept[:, 3] > 0.5).mean()),
                    "finite": float(finite.mean()),
                    "layers": len(entries),
                }
            )
    return rows


def _layer(x: np.ndarray, weights: np.ndarray, alpha: float | int) -> tuple[np.ndarray, list[float]]:
    """One layer in the precision of x, scale divided out; and what the normalized pre-activations look like."""
    h = x @ weights
    h = h - h.mean(axis=0)
    b = h / np.sqrt((h**2).mean(axis=0))
    after = np.maximum(b, 0) ** b.dtype.type(alpha)
    after = after / np.sqrt((after.astype("float64") ** 2).mean()).astype(b.dtype)
    wide = after.astype("float64")
    k = (wide @ wide.T)[None]
    shares = centered_shares(k)[0]
    # The block is read off the representation that these pre-activations come from.
    source = x.astype("float64")
    before = centered_shares((source @ source.T)[None])[0]
    others = np.flatnonzero(before < _WINNER * before.max())
    if len(others) < 2:
        return after, [float(winners(k)[0]), float(shares.max()), math.nan, 0.0]
    cluster = b[others].astype("float64")
    top = b[np.argmax(before)].astype("float64")
    spread = np.sqrt(((cluster - cluster.mean(axis=0)) ** 2).mean(axis=0))
    relative = spread / np.maximum(np.abs(top - cluster.mean(axis=0)), 1e-300)
    same = float((np.ptp(b[others], axis=0) == 0).mean())
    return after, [float(winners(k)[0]), float(shares.max()), float(np.median(relative)), same]


def mixed_with_identity(phi: Activation, part: float) -> Activation:
    """(1 - part) phi(x) + part x.

    Args:
        phi: activation.
        part: between 0 and 1.

    Raises:
        ValueError: part leaves [0, 1].

    Example:
        >>> from bnlib.activations import activation
        >>> mixed_with_identity(activation("relu"), 0.5)(np.array([-1.0, 1.0])).tolist()
        [-0.5, 1.0]
    """
    if not 0 <= part <= 1:
        raise ValueError(f"part must lie between 0 and 1, got {part}.")
    return Activation(
        f"{1 - part:g} {phi.name} + {part:g} x",
        lambda x: (1 - part) * phi.function(x) + part * x,
        lambda x: (1 - part) * phi.derivative(x) + part,
    )


def linear_mixtures(phis: list[Activation], sizes: list[int], parts: list[float]) -> list[dict[str, Any]]:
    """The multiplier on norms as an activation is made more linear.

    Args:
        phis: activations.
        sizes: batch sizes.
        parts: shares of the identity, ascending.

    Returns:
        Rows with activation, n, `values` of lambda_L over the parts, `unstable` (the first is above 1) and `falls`
        (each is below the one before).

    Example:
        >>> from bnlib.activations import activation
        >>> row, = linear_mixtures([activation("square")], [64], [0.0, 0.5])
        >>> row["unstable"], row["falls"]
        (True, True)
    """
    rows = []
    for phi in phis:
        for n in sizes:
            values = [forward_multipliers(mixed_with_identity(phi, part), n).norms for part in parts]
            falls = all(after < before for before, after in pairwise(values))
            rows.append({"activation": phi.name, "n": n, "values": values, "unstable": values[0] > 1, "falls": falls})
    return rows
