"""Broken symmetry under batch normalization: winner-take-all states (BSB2).

arXiv 1902.08129 calls a covariance with a distinguished diagonal block BSB2. With a block of one sample the centered
covariance has two eigenvalues, one along q = (1, -1/(n-1), ...) and one on the n - 2 directions inside the cluster of
the others; batch normalization forgets the scale, so the state is the single number

    ratio = (eigenvalue inside the cluster) / (eigenvalue along q):   1 is BSB1, 0 a covariance of rank one,

and a layer of infinite width is a map of it. With a block of k samples there is one eigenvalue more, inside the
block, and the map is one of two numbers. For phi = max(x, 0)^alpha it is the Laplace integral of
`bnlib.homogeneous_layer`. NumPy float64; no torch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq, minimize_scalar

from bnlib.homogeneous import Homogeneous, homogeneous, homogeneous_multipliers, kernel_cosine, kernel_cosine_gap
from bnlib.homogeneous_layer import homogeneous_transform, log_laplace_rule, power_mean_square
from bnlib.outlier_fixed_points import outlier_state
from bnlib.v_transform import batch_norm_relu_transform

COLLAPSED = 1e-12  # below this the cluster counts as one point: double precision sees no further
_SMALLEST = 5  # with fewer samples symmetry does not break in any degree


@dataclass(frozen=True)
class TwoBlockState:
    """A fixed point with one distinguished sample.

    Attributes:
        ratio: of the eigenvalue inside the cluster to the one along q.
        slope: d log(ratio') / d log(ratio) there; the state is stable inside its class if it is below 1.
        share: of the distinguished sample in the trace of the centered covariance; 1/n at BSB1.
    """

    ratio: float
    slope: float
    share: float


def distinguished_share(ratio: float | int, n: int | float) -> float:
    """Share of the distinguished sample in the trace of the centered covariance.

    Args:
        ratio: of the two eigenvalues, at least 0.
        n: batch size, at least 3; any real number.

    Raises:
        ValueError: ratio is negative or NaN, or n < 3.

    Example:
        >>> distinguished_share(1, 8), distinguished_share(0, 8)
        (0.125, 0.875)
    """
    if not ratio >= 0:
        raise ValueError(f"ratio must be at least 0, got {ratio}.")
    if not n >= 3:
        raise ValueError(f"n must be a batch size of at least 3, got {n}.")
    return (n - 1) / n / (1 + (n - 2) * ratio)


@dataclass(frozen=True)
class BlockState:
    """A state with k equivalent distinguished samples, up to its scale.

    Attributes:
        k: samples in the block.
        inside_block: eigenvalue on the k - 1 directions inside the block, in units of the one along q; 1 for k = 1.
        inside_cluster: eigenvalue on the n - k - 1 directions inside the cluster of the others, in the same units.
        share: of one sample of the block in the trace of the centered covariance.
        residual: largest change of a logarithm in one more layer.
    """

    k: int
    inside_block: float
    inside_cluster: float
    share: float
    residual: float


def block_covariance(n: int, k: int, inside_block: float, inside_cluster: float) -> Float[np.ndarray, "n n"]:
    """The centered covariance of such a state; its first k samples are the block, q = (1/k, ..., -1/(n-k), ...).

    Args:
        n: batch size.
        k: samples in the block, 1 to n - 2.
        inside_block: eigenvalue inside the block.
        inside_cluster: eigenvalue inside the cluster.

    Raises:
        ValueError: k is not between 1 and n - 2.

    Example:
        >>> bool(np.allclose(block_covariance(5, 2, 1.0, 1.0), np.eye(5) - 1 / 5))
        True
    """
    if not 1 <= k <= n - 2:
        raise ValueError(f"k must lie between 1 and {n - 2}, got {k}.")
    m = n - k
    q = np.r_[np.full(k, 1 / k), np.full(m, -1 / m)] * math.sqrt(k * m / n)
    inner = np.zeros((n, n))
    inner[:k, :k] = inside_block * (np.eye(k) - 1 / k)
    inner[k:, k:] = inside_cluster * (np.eye(m) - 1 / m)
    return np.outer(q, q) + inner


def next_block(
    inside_block: float | int,
    inside_cluster: float | int,
    n: int | float,
    k: int | float,
    phi: Homogeneous,
    rule: Callable | None = None,
) -> tuple[float, float]:
    """One layer of batch normalization and a homogeneous activation on states with a block of k samples.

    Args:
        inside_block: eigenvalue inside the block in units of the one along q, positive; without effect for k = 1.
        inside_cluster: eigenvalue inside the cluster, positive.
        n: batch size, at least 3; any real number.
        k: samples in the block, at least 1 and at most n - 2.
        phi: activation, of positive degree.
        rule: nodes and weights in place of `log_laplace_rule`, with the same arguments (`bnlib.rescaling_bridge`).

    Returns:
        The two numbers after the layer.

    Raises:
        ValueError: an eigenvalue is not positive and finite, n < 3, or k is outside its range.

    Example:
        >>> np.round(next_block(1, 1, 8, 3, homogeneous(2)), 12).tolist()  # BSB1
        [1.0, 1.0]
    """
    for name, value in (("inside_block", inside_block), ("inside_cluster", inside_cluster)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}.")
    if not n >= 3:
        raise ValueError(f"n must be a batch size of at least 3, got {n}.")
    if not 1 <= k <= n - 2:
        raise ValueError(f"k must lie between 1 and {n - 2}, got {k}.")
    m = n - k
    if k == 1:
        inside_block = 1.0
    eigenvalues, multiplicities = np.array([inside_cluster, inside_block, 1.0]), np.array([m - 1.0, k - 1.0, 1.0])
    s, weights = (rule or log_laplace_rule)(eigenvalues, multiplicities, phi.alpha)
    cluster, block, along = (s * value / (1 + 2 * s * value) for value in eigenvalues)
    first, other = m / (k * n) * along + block * (1 - 1 / k), k / (m * n) * along + cluster * (1 - 1 / m)
    top, scale = float(kernel_cosine(1.0, phi)), power_mean_square(phi.alpha)

    def mean(size: np.ndarray, values: np.ndarray | float) -> float:
        return scale * float(weights @ (size**phi.alpha * values))

    # Between two samples of a group 1 - c is the group's own eigenvalue over the variance: no digit is lost.
    spread_first = mean(first, kernel_cosine_gap(np.minimum(block / first, 2.0), phi)) if k > 1 else 0.0
    spread_other = mean(other, kernel_cosine_gap(np.minimum(cluster / other, 2.0), phi))
    geometric = np.sqrt(first) * np.sqrt(other)  # a product could underflow
    across = mean(geometric, kernel_cosine(np.clip(-along / n / geometric, -1, 1), phi))
    level_first, level_other = (
        mean(first, top) - (k - 1) / k * spread_first,
        mean(other, top) - (m - 1) / m * spread_other,
    )
    q = k * m / n * (level_first - 2 * across + level_other)
    return (spread_first / q if k > 1 else 1.0), spread_other / q


def next_ratio(ratio: float | int, n: int | float, phi: Homogeneous) -> float:
    """One layer on the class with one distinguished sample.

    Args:
        ratio: positive.
        n: batch size, at least 3; any real number.
        phi: activation, of positive degree.

    Returns:
        The ratio after the layer.

    Raises:
        ValueError: ratio is not positive and finite, or n < 3.

    Example:
        >>> relu = homogeneous(1)
        >>> round(next_ratio(1, 8, relu), 12), 0.01 < next_ratio(0.01, 8, relu) < 1
        (1.0, True)
    """
    if not 0 < ratio < math.inf:
        raise ValueError(f"ratio must be positive and finite, got {ratio}.")
    return next_block(1.0, ratio, n, 1, phi)[1]


def block_state(n: int, k: int, phi: Homogeneous, layers: int = 400) -> BlockState:
    """The state with k distinguished samples that the map inside the class leads to, from a strongly broken start.

    Args:
        n: batch size, at least 5.
        k: samples in the block, 1 to n - 2.
        phi: activation, of positive degree.
        layers: largest number of layers.

    Returns:
        The state; BSB1, with share 1/n, where symmetry is restored.

    Raises:
        ValueError: n < 5, or k is outside its range.

    Example:
        >>> state = block_state(10, 3, homogeneous(2))
        >>> round(state.share, 2), state.inside_cluster
        (0.3, 0.0)
    """
    if not n >= _SMALLEST:
        raise ValueError(f"n must be a batch size of at least {_SMALLEST}, got {n}.")
    block, cluster, residual = 1.0, 1e-4, math.inf
    for _ in range(layers):
        after = next_block(block, max(cluster, COLLAPSED), n, k, phi)
        residual = abs(math.log(after[0] / block))
        if cluster > COLLAPSED and after[1] > COLLAPSED:
            residual = max(residual, abs(math.log(after[1] / cluster)))
        block, cluster = after[0], max(after[1], 0.0)
        if residual < 1e-10 and (cluster == 0 or cluster > 1e3 * COLLAPSED or cluster < COLLAPSED):
            break
    if cluster < COLLAPSED:
        cluster = 0.0
    m = n - k
    share = (m / (k * n) + block * (1 - 1 / k)) / (1 + (k - 1) * block + (m - 1) * cluster)
    return BlockState(k, block, cluster, share, residual)


def block_growth(n: int, state: BlockState, phi: Homogeneous, generator: np.random.Generator, steps: int = 18) -> float:
    """Growth per layer of what distinguishes the samples of a block, or those of the cluster, from each other.

    A slightly perturbed state goes through layers of infinite width, all n (n-1)/2 numbers free; its distance from its
    own average over permutations inside the two groups is followed. What keeps the two groups intact is the business
    of `block_state`, which converged.

    Args:
        n: batch size.
        state: a fixed point.
        phi: activation, of positive degree.
        generator: draws the perturbation.
        steps: layers; the growth is the mean over the last third.

    Returns:
        The growth; the groups are stable if it is below 1.

    Raises:
        ValueError: steps is below 6.

    Example:
        >>> symmetric = BlockState(1, 1.0, 1.0, 0.2, 0.0)
        >>> growth = block_growth(6, symmetric, homogeneous(1), np.random.default_rng(0))
        >>> abs(growth - symmetric_slope(6, 1)) < 0.02
        True
    """
    if steps < 6:
        raise ValueError(f"steps must be at least 6, got {steps}.")
    values, vectors = np.linalg.eigh(block_covariance(n, state.k, state.inside_block, state.inside_cluster))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = generator.standard_normal((n, n))
    k = root @ (np.eye(n) + 1e-5 * (noise + noise.T)) @ root.T
    distances = []
    quick = phi.alpha == 1 and phi.a != 0  # the same map by the faster rule for degree one
    for _ in range(steps):
        k = batch_norm_relu_transform(k, phi.b / phi.a) if quick else homogeneous_transform(k, phi)
        k -= k.mean(axis=0)
        k -= k.mean(axis=1, keepdims=True)
        k /= np.trace(k)
        distances.append(float(np.linalg.norm(k - group_average(k, state.k))))
    last = distances[-(steps // 3) - 1 :]
    return (last[-1] / last[0]) ** (1 / (len(last) - 1))


def group_average(k: Float[np.ndarray, "n n"], block: int) -> Float[np.ndarray, "n n"]:
    """A covariance averaged over the permutations of its first samples and of the others.

    Args:
        k: symmetric, shape (n, n).
        block: number of first samples.

    Example:
        >>> group_average(np.diag([5.0, 1.0, 3.0]), 1).tolist()
        [[5.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """
    averaged = np.empty_like(k)
    groups = slice(0, block), slice(block, len(k))
    for rows in groups:
        for columns in groups:
            part = k[rows, columns]
            averaged[rows, columns] = part.mean()
            if rows == columns:
                size = len(part)
                level, total = np.trace(part) / size, part.sum()
                off = (total - size * level) / (size * (size - 1)) if size > 1 else 0.0
                averaged[rows, columns] = off + (level - off) * np.eye(size)
    return averaged


def log_drift(ratio: float | int, n: int | float, phi: Homogeneous) -> float:
    """log(next ratio / ratio): zero at fixed points, positive where a layer brings the samples closer to equality.

    Args:
        ratio: positive; below 1 the distinguished sample is the large one.
        n: batch size, at least 3.
        phi: activation, of positive degree.

    Raises:
        ValueError: as `next_ratio`.

    Example:
        >>> log_drift(1e-6, 10, homogeneous(1)) > 0
        True
    """
    return math.log(next_ratio(ratio, n, phi) / ratio)


def two_block_states(
    n: int | float, phi: Homogeneous, lowest: float | int = -30.0, points: int = 60
) -> list[TwoBlockState]:
    """All fixed points with one larger sample, 0 < ratio < 1, found by a scan in the logarithm of the ratio.

    Args:
        n: batch size, at least 5.
        phi: activation, of positive degree.
        lowest: logarithm at which the scan begins.
        points: of the scan.

    Returns:
        The states, smallest ratio first. The rank-one covariance, ratio 0, is a fixed point for every phi and is
        not listed; neither is BSB1, ratio 1.

    Raises:
        ValueError: n < 5, points is below 4 or lowest is not negative.

    Example:
        >>> two_block_states(10, homogeneous(1))  # ReLU: nothing besides BSB1
        []
        >>> state, = two_block_states(10, homogeneous(2))
        >>> state.slope < 1 and state.share > 0.5
        True
    """
    if not n >= _SMALLEST:
        raise ValueError(f"n must be a batch size of at least {_SMALLEST}, got {n}.")
    if points < 4 or not lowest < -1:
        raise ValueError(f"points must be at least 4 and lowest below -1, got {points} and {lowest}.")

    # log(next/ratio) vanishes at ratio 1 for every phi; divided by log(ratio) it keeps only the other zeros.
    def pull(x: float) -> float:
        return log_drift(math.exp(x), n, phi) / -x

    grid = -np.geomspace(-float(lowest), 1e-3, points)
    values = [pull(x) for x in grid]
    found = []
    for left, right, low, high in zip(grid, grid[1:], values, values[1:], strict=False):
        if low * high < 0:
            x = float(brentq(pull, left, right, xtol=1e-12))
            step = 1e-4
            slope = (log_drift(math.exp(x + step), n, phi) - log_drift(math.exp(x - step), n, phi)) / (2 * step)
            found.append(TwoBlockState(math.exp(x), 1 + slope, distinguished_share(math.exp(x), n)))
    return found


def weakest_return(n: int | float, phi: Homogeneous) -> tuple[float, float]:
    """Least pull back to BSB1 on the way out: min over ratio < 1 of log(next/ratio) / -log(ratio), and where.

    A winner-take-all state exists below BSB1 exactly where this is negative; zero is its birth, a saddle-node.

    Args:
        n: batch size, at least 5; any real number.
        phi: activation, of positive degree.

    Returns:
        The least value, and the logarithm of the ratio at which it is taken.

    Raises:
        ValueError: n < 5.

    Example:
        >>> weakest_return(8, homogeneous(1))[0] > 0 > weakest_return(8, homogeneous(2))[0]
        True
    """
    if not n >= _SMALLEST:
        raise ValueError(f"n must be a batch size of at least {_SMALLEST}, got {n}.")

    def pull(x: float) -> float:
        return log_drift(math.exp(x), n, phi) / -x

    grid = -np.geomspace(1e-3, 14.0, 25)
    values = [pull(x) for x in grid]
    best = int(np.argmin(values))
    bounds = sorted((grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]))
    found = minimize_scalar(pull, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return (float(found.fun), float(found.x)) if found.fun < values[best] else (values[best], float(grid[best]))


def onset_degree(n: int | float) -> float:
    """Least degree alpha at which max(x, 0)^alpha has a state with one winner at this batch size.

    It lies below the degree at which BSB1 turns unstable (`homogeneous.instability_degree`): between the two both
    are stable inside the class, and what a network does depends on its width and its input.

    Args:
        n: batch size, at least 5.

    Raises:
        ValueError: n < 5.

    Example:
        >>> round(onset_degree(10), 3)
        1.386
    """
    high = 1.0
    while weakest_return(n, homogeneous(high))[0] > 0:
        high *= 1.5
    return float(brentq(lambda alpha: weakest_return(n, homogeneous(alpha))[0], high / 1.6, high, xtol=1e-6))


def critical_batch_size(phi: Homogeneous, largest: float | int = 4096.0) -> float | None:
    """Least real batch size at which one winner is a fixed point under full batch normalization.

    Args:
        phi: activation, of positive degree.
        largest: where to stop.

    Returns:
        The batch size, or None if there is no such state up to the largest.

    Raises:
        ValueError: largest is below 5.

    Example:
        >>> 32 < critical_batch_size(homogeneous(1)) < 64
        True
    """
    low, high = float(_SMALLEST), 2.0 * _SMALLEST
    if largest < low:
        raise ValueError(f"largest must be at least {_SMALLEST}, got {largest}.")
    while weakest_return(high, phi)[0] > 0:
        low, high = high, 2 * high
        if high > largest:
            return None
    return float(brentq(lambda n: weakest_return(n, phi)[0], low, high, xtol=1e-6))


def recentered_outlier_ratio(n: int | float) -> float:
    """The paper's odd point in these terms: ratio of the outlier state of recentered ReLU networks without rescaling.

    Args:
        n: batch size, at least 7.

    Raises:
        NoStateError: n is below the saddle-node between 6 and 7.

    Example:
        >>> 0 < recentered_outlier_ratio(10) < 0.1
        True
    """
    # There u is the cluster's eigenvalue in units of |x_1 - nu|^2, and the eigenvalue along q is (n-1)/n of the same.
    return outlier_state(n).u * n / (n - 1)


def symmetric_slope(n: int | float, alpha: float | int) -> float:
    """Slope of log(ratio') at BSB1: the multiplier lambda_L of max(x, 0)^alpha, which these states bifurcate from.

    Args:
        n: batch size, at least 4.
        alpha: degree, above 1/2.

    Raises:
        ValueError: as `homogeneous.homogeneous_multipliers`.

    Example:
        >>> round(symmetric_slope(8, 1), 4)
        0.7436
    """
    return homogeneous_multipliers(homogeneous(alpha), n).norms
