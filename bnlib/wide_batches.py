"""The infinite-width map of recentered ReLU networks on whole batches, Sigma -> V(G Sigma G), without loss of digits.

V(K)_ij = (sigma^2/2) sqrt(K_ii K_jj) J(K_ij / sqrt(K_ii K_jj)), G = I - 11^T/n. With He weights (sigma^2 = 2) V keeps
the squared lengths of the recentered samples; any other sigma^2 multiplies everything and changes no angle or ratio.

A layer costs O(n^2) and loses no digits where samples align. Cosines would: two samples at an angle of 1e-8 have the
cosine 1 in float64. So a batch is carried as the products of its differences from one of its samples, the reference r,

    M_ij = (x_i - x_r) . (x_j - x_r),

which recentering leaves alone. From M follow, by sums in which nothing small is a difference of large numbers, the
squared distances and the differences of squared lengths after recentering; with a, b the lengths of two samples and D
their squared distance,

    y = (1 - cos)/2 = (D - (a - b)^2)/(4ab),    z = (1 + cos)/2 = ((a + b)^2 - D)/(4ab),
    1 - J = 2y - y^(3/2) H(y),                  J = z^(3/2) H(z),

one smooth function H serves both (with theta the angle, y^(3/2) H(y) = (sin theta - theta cos theta)/pi), and the new
squared distance is (a - b)^2 + 2ab(1 - J). Its error is of the order of rounding
relative to the distances of the two samples from the reference, which therefore stays in the cluster. (At several
scales, distances s << t << 1 from the reference, products between the two groups lose the smaller of t/s and 1/t.)
The scale is divided out and its logarithm kept.

NumPy float64; angles are radians; no torch.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import mpmath
import numpy as np
from jaxtyping import Float

from bnlib.checks import SLACK, checked_depth
from bnlib.kernels import _sine_minus_chord

_EQUAL = "The batch must hold different samples, got equal ones only: recentering makes all of them zero."
_ROWS = 64  # rows of pairs worked on at once: the block stays in a core's cache
_DEGREE = 18  # H is analytic up to y = 1, so its Chebyshev coefficients on [0, 1/2] fall by 5.8 a degree
_FAR = 2.0  # how much better the second way to a product must be to be taken


@dataclass(frozen=True)
class Batch:
    """A batch at infinite width, up to translation, which recentering removes.

    Attributes:
        products: (x_i - x_r).(x_j - x_r), shape (n, n); row and column r are zero; its mean diagonal entry is about 1.
        reference: the index r.
        log_scale: logarithm of the factor by which the true products are larger than `products`, for He weights.
        depth: number of layers that the batch has passed.
    """

    products: Float[np.ndarray, "n n"]
    reference: int
    log_scale: float
    depth: int


def checked_square(name: str, values: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix over at least 3 samples as float64; a tiny asymmetry is averaged away."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 3:
        raise ValueError(f"{name} must be a square matrix over at least 3 samples, got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    worst = np.abs(values - values.T).max()
    if not worst <= SLACK * np.abs(values).max():
        raise ValueError(f"{name} must be symmetric, got a matrix that differs from its transpose by {worst:.3g}.")
    return (values + values.T) / 2.0


def checked_covariance(sigma: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Return a covariance as float64, refusing what none can be (see `batch_from_gram` for the reasons).

    Example:
        >>> checked_covariance(np.eye(3) - 1.0)
        Traceback (most recent call last):
        ...
        ValueError: sigma must be positive semi-definite, got the eigenvalue -2.
    """
    sigma = checked_square("sigma", sigma)
    least = float(np.linalg.eigvalsh(sigma)[0])
    if not least >= -SLACK * float(np.abs(np.diagonal(sigma)).max()):
        raise ValueError(f"sigma must be positive semi-definite, got the eigenvalue {least:.3g}.")
    return sigma


def _batch(products: np.ndarray, log_scale: float, depth: int) -> Batch:
    """Choose the reference (the sample whose median distance is least), and scale."""
    squares = np.diagonal(products)
    distances = squares[:, None] + squares[None, :] - 2.0 * products
    reference = int(np.argmin(np.median(distances, axis=1)))
    scale = float(distances[reference].mean())
    if not scale > 0:
        raise ValueError(_EQUAL)
    return Batch(_referred(products, reference) / scale, reference, log_scale + math.log(scale), depth)


def _referred(products: np.ndarray, reference: int) -> np.ndarray:
    column = products[:, reference]
    moved = products - column[:, None] - column[None, :] + column[reference]
    moved[reference, :] = moved[:, reference] = 0.0
    return moved


def batch_from_gram(sigma: Float[np.ndarray, "n n"]) -> Batch:
    """A batch from the covariance of its samples (their Gram matrix).

    Args:
        sigma: inner products, shape (n, n), symmetric, positive semi-definite, n >= 3.

    Returns:
        The batch at depth 0. Distances below about 1e-8 of the largest norm are lost in sigma itself: use
        `batch_from_points` for nearly equal samples.

    Raises:
        ValueError: sigma is not a square matrix over at least 3 samples, not finite, not symmetric, not positive
            semi-definite, or all samples are equal.

    Example:
        >>> batch = batch_from_gram(np.eye(8))
        >>> bool(np.ptp(activations(next_batch(batch))[0]) < 1e-12)  # equivalent samples stay so
        True
    """
    return _batch(checked_covariance(sigma), 0.0, 0)


def batch_from_points(x: Float[np.ndarray, "n d"]) -> Batch:
    """A batch from its samples; nearly equal ones keep their distance to full relative precision.

    Args:
        x: samples are rows, shape (n, d), n >= 3.

    Returns:
        The batch at depth 0.

    Raises:
        ValueError: x is not a matrix of at least 3 rows, not finite, or all rows are equal.

    Example:
        >>> x = np.array([[1.0, 0.0, 0.0], [0.0, 0.1, 1e-9], [0.0, 0.1, 0.0], [0.0, 0.1, -1e-9]])
        >>> batch = batch_from_points(x)
        >>> bool(np.isclose(np.sqrt(distances(batch)[1, 3]) * math.exp(batch.log_scale / 2), 2e-9, rtol=1e-12))
        True
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or len(x) < 3:
        raise ValueError(f"x must be a matrix of at least 3 rows, one a sample, got shape {x.shape}.")
    if not np.isfinite(x).all():
        raise ValueError("x must be finite, got NaN or infinity.")
    center = np.median(x, axis=0)
    first = int(np.argmin(((x - center) ** 2).sum(axis=1)))
    moved = x - x[first]
    squared = ((moved[:, None] - moved[None, :]) ** 2).sum(axis=-1) if x.size <= 10**5 else None
    reference = first if squared is None else int(np.argmin(np.median(squared, axis=1)))
    moved = x - x[reference]
    products = moved @ moved.T
    scale = float(np.diagonal(products).mean())
    if not scale > 0:
        raise ValueError(_EQUAL)
    return Batch(products / scale, reference, math.log(scale), 0)


def batch_from_distances(squared: Float[np.ndarray, "n n"]) -> Batch:
    """A batch from squared distances, such as those of `bnlib.state_stability.class_distances`.

    Args:
        squared: squared distances, shape (n, n), symmetric with zero diagonal, n >= 3.

    Returns:
        The batch at depth 0.

    Raises:
        ValueError: not a square matrix over at least 3 samples, not finite, not symmetric, a non-zero diagonal, not the
            distances of any points, or all distances are zero.

    Example:
        >>> from bnlib.outlier_fixed_points import outlier_state
        >>> from bnlib.state_stability import class_distances
        >>> batch = batch_from_distances(class_distances(0.0, outlier_state(16).u, 16))
        >>> round(math.degrees(angles(batch)[1, 2]), 2)
        30.0
    """
    squared = checked_square("squared", squared)
    if np.diagonal(squared).any():
        raise ValueError("squared must have a zero diagonal: a sample is at distance zero from itself.")
    reference = int(np.argmin(np.median(squared, axis=1)))
    column = squared[:, reference]
    products = (column[:, None] + column[None, :] - squared) / 2.0
    least = float(np.linalg.eigvalsh(products)[0])
    if not least >= -SLACK * float(column.max()):
        raise ValueError(f"squared must be distances between points, got products with the eigenvalue {least:.3g}.")
    scale = float(column.mean())
    if not scale > 0:
        raise ValueError(_EQUAL)
    return Batch(products / scale, reference, math.log(scale), 0)


def distances(batch: Batch) -> Float[np.ndarray, "n n"]:
    """Squared distances of a batch, in the scale of `batch.products`.

    Example:
        >>> distances(batch_from_gram(np.eye(3))).round(12)  # the mean of a row of three is 2/3 of the distance
        array([[0. , 1.5, 1.5],
               [1.5, 0. , 1.5],
               [1.5, 1.5, 0. ]])
    """
    squares = np.diagonal(batch.products)
    return squares[:, None] + squares[None, :] - 2.0 * batch.products


@cache
def _smooth() -> tuple[float, ...]:
    """Coefficients of H on [0, 1/2] as a polynomial in 4y - 1, from high precision: good to 2e-16."""

    def h(w: mpmath.mpf) -> mpmath.mpf:
        y = (w + 1) / 4
        theta = 2 * mpmath.asin(mpmath.sqrt(y))
        return (mpmath.sin(theta) - theta * mpmath.cos(theta)) / (mpmath.pi * mpmath.sqrt(y) ** 3)

    with mpmath.workdps(50):
        return tuple(float(value) for value in reversed(mpmath.chebyfit(h, [-1, 1], _DEGREE + 1)))


def _bent(t: np.ndarray) -> np.ndarray:
    """t^(3/2) H(t) for t in [0, 1/2], by Horner's rule."""
    w = 4.0 * t
    w -= 1.0
    coefficients = _smooth()
    result = np.full_like(w, coefficients[-1])
    for value in coefficients[-2::-1]:
        result *= w
        result += value
    result *= t
    result *= np.sqrt(t)
    return result


def _pair_deficits(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """1 - J from y = (1 - cos)/2 and z = (1 + cos)/2."""
    small = _bent(np.clip(np.minimum(y, z), 0.0, 0.5))
    return np.where(y <= z, 2.0 * y - small, 1.0 - small)


@dataclass(frozen=True)
class _Recentered:
    """Lengths after recentering: squares, their differences from the reference's, lengths, differences of lengths."""

    squares: np.ndarray
    excess: np.ndarray
    lengths: np.ndarray
    row_means: np.ndarray


def _recentered(batch: Batch) -> _Recentered:
    means = batch.products.mean(axis=1)
    excess = np.diagonal(batch.products) - 2.0 * means  # |x_i|^2 - |x_r|^2, small for samples near the reference
    # The reference itself is recentered by the mean of all differences, whose square is the mean of all products.
    squares = np.maximum(excess + means.mean(), 0.0)
    return _Recentered(squares, excess, np.sqrt(squares), means)


def _halves(batch: Batch, r: _Recentered, rows: slice, columns: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, 4ab and (a - b)^2 of a block of pairs."""
    squares = np.diagonal(batch.products)
    d = batch.products[rows, columns] * -2.0
    d += squares[rows, None]
    d += squares[None, columns]
    gap = r.excess[rows, None] - r.excess[None, columns]
    total = r.lengths[rows, None] + r.lengths[None, columns]
    np.divide(gap, total, out=gap, where=total > 0)
    gap *= gap
    four = r.lengths[rows, None] * (4.0 * r.lengths[None, columns])
    d -= gap
    np.divide(d, four, out=d, where=four > 0)
    np.clip(d, 0.0, 1.0, out=d)
    return d, four, gap


def _new_distances(batch: Batch, r: _Recentered) -> np.ndarray:
    """Squared distances after the layer, shape (n, n)."""
    n = len(batch.products)
    new = np.empty((n, n))
    for start in range(0, n, _ROWS):
        rows, columns = slice(start, min(start + _ROWS, n)), slice(start, n)
        y, four, gap = _halves(batch, r, rows, columns)
        z = 1.0 - y
        deficit = _pair_deficits(y, z)
        deficit *= four
        deficit *= 0.5
        deficit += gap
        new[rows, columns] = deficit
        new[columns, rows] = deficit.T
    np.fill_diagonal(new, 0.0)
    return new


def _far_row(batch: Batch, r: _Recentered, i: int, near: np.ndarray, column: np.ndarray) -> np.ndarray:
    """(x_i - x_r).(x_j - x_r) after the layer, for a sample i far from the reference and samples j near it.

    The products follow from distances by (D_ir + D_jr - D_ij)/2, which for |x_j - x_r| much below |x_i - x_r| is a
    small difference. Here it is taken apart: V_ij - V_ir = a_i [(a_j - a_r) J_ij + a_r (J_ij - J_ir)], with a
    difference of J in closed form: for phi = pi - theta, mean mu and half difference h of two phi,
    pi (J - J~) = mu (c - c~) + 2 cos(mu) (sin h - h cos h). `column` holds the new squared distances to the reference.
    """
    ref, a = batch.reference, r.lengths
    pairs = np.append(near, ref)
    y, _, _ = _halves(batch, r, slice(i, i + 1), slice(None))
    y = y[0, pairs]
    phi = 2.0 * np.arctan2(np.sqrt(1.0 - y), np.sqrt(y))
    phi, phi_ref, cosine_ref = phi[:-1], phi[-1], 1.0 - 2.0 * y[-1]
    shorter = r.excess[near] / (a[near] + a[ref])  # a_j - a_r: the reference's own excess is zero
    change = (batch.products[i, near] - r.row_means[near]) / (a[i] * a[near]) - cosine_ref * shorter / a[near]
    mean, half = (phi + phi_ref) / 2.0, (phi - phi_ref) / 2.0
    bend = np.sign(half) * _sine_minus_chord(np.abs(half))
    difference = (mean * change + 2.0 * np.cos(mean) * bend) / math.pi
    j = _sine_minus_chord(phi) / math.pi
    return a[i] * (shorter * j + a[ref] * difference) - (r.excess[near] - column[near]) / 2.0


def next_batch(batch: Batch) -> Batch:
    """One infinitely wide layer: recentering, ReLU, He weights.

    Args:
        batch: any batch of at least 3 samples.

    Returns:
        The batch after the layer, scaled, with the logarithm of the scale kept.

    Raises:
        ValueError: all samples have become equal.

    Example:
        >>> batch = batch_from_gram(np.diag([4.0, 1, 1, 1, 1, 1, 1, 1]))
        >>> for _ in range(300):
        ...     batch = next_batch(batch)
        >>> lengths = activations(batch)[0]  # the outlier state of eight samples
        >>> round(float(lengths[0] / lengths[1]), 3)
        5.105
    """
    r = _recentered(batch)
    ref = batch.reference
    new = _new_distances(batch, r)
    column = new[:, ref].copy()
    products = new
    products *= -0.5
    products += 0.5 * column[:, None]
    products += 0.5 * column[None, :]
    apart = np.sqrt(np.diagonal(batch.products))  # distances to the reference before the layer
    if r.lengths[ref] > 0:
        # Both ways to a product lose digits, by apart_i / apart_j and by length_i / apart_i: take the better one.
        smallest = np.min(apart[np.arange(len(apart)) != ref])
        for i in np.flatnonzero(apart**2 > _FAR * r.lengths * smallest):
            near = (_FAR * r.lengths[i] * apart < apart[i] ** 2) & (r.lengths > 0)
            near[ref] = False
            if near.any():
                j = np.flatnonzero(near)
                products[i, j] = products[j, i] = _far_row(batch, r, int(i), j, column)
    scale = float(column.mean())
    if not scale > 0:
        raise ValueError(_EQUAL)
    products /= scale
    moved = Batch(products, ref, batch.log_scale + math.log(scale), batch.depth + 1)
    if r.squares[ref] > 4.0 * float(np.median(r.squares)):  # the reference is on its way out: take one that stays
        middle = int(np.argsort(r.squares)[len(r.squares) // 2])
        moved = Batch(_referred(products, middle), middle, moved.log_scale, moved.depth)
    return moved


def batches(batch: Batch, depth: int | float) -> Iterator[Batch]:
    """The batch after each of `depth` layers.

    Args:
        batch: where to start.
        depth: number of layers, 0 or more.

    Yields:
        The batch after layer 1, 2, ..., depth.

    Raises:
        ValueError: depth is not a whole number >= 0, or all samples have become equal.

    Example:
        >>> [b.depth for b in batches(batch_from_gram(np.eye(4)), 3)]
        [1, 2, 3]
    """
    for _ in range(checked_depth(depth)):
        batch = next_batch(batch)
        yield batch


def activations(batch: Batch) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n n"]]:
    """Lengths after recentering, which a wide He layer keeps, and 1 - J of all pairs.

    Args:
        batch: any batch.

    Returns:
        Lengths, shape (n,), and 1 - cos of the angles after the next ReLU, shape (n, n), with zero diagonal.

    Example:
        >>> activations(batch_from_gram(np.eye(3)))[0].round(6)  # sqrt(1/2): the scale is in `log_scale`
        array([0.707107, 0.707107, 0.707107])
    """
    r = _recentered(batch)
    y, four, _ = _halves(batch, r, slice(None), slice(None))
    y[four <= 0] = 0.5
    deficit = _pair_deficits(y, 1.0 - y)
    np.fill_diagonal(deficit, 0.0)
    return r.lengths, deficit


def angles(batch: Batch) -> Float[np.ndarray, "n n"]:
    """Angles between all samples after the next ReLU, to full relative precision near 0.

    Args:
        batch: any batch.

    Returns:
        Radians, shape (n, n), in [0, pi/2].

    Example:
        >>> from bnlib.kernels import relu_cosine
        >>> bool(np.isclose(np.cos(angles(batch_from_gram(np.eye(8)))[0, 1]), relu_cosine(-1 / 7)))
        True
    """
    return 2.0 * np.arcsin(np.sqrt(np.maximum(activations(batch)[1], 0.0) / 2.0))


def covariance(batch: Batch) -> Float[np.ndarray, "n n"]:
    """The covariance after the next ReLU, V(G Sigma G), without the factor exp(log_scale).

    Args:
        batch: any batch.

    Returns:
        Shape (n, n), for He weights.

    Example:
        >>> from bnlib.kernels import recentered_relu_kernel
        >>> sigma = np.diag([4.0, 1.0, 1.0, 1.0])
        >>> batch = batch_from_gram(sigma)
        >>> bool(np.allclose(covariance(batch) * math.exp(batch.log_scale), recentered_relu_kernel(sigma)))
        True
    """
    lengths, deficit = activations(batch)
    return lengths[:, None] * lengths[None, :] * (1.0 - deficit)


def next_distances(squared: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """One layer as a map of squared distances alone, homogeneous of degree one; nothing is scaled.

    Args:
        squared: squared distances between n >= 3 samples, shape (n, n).

    Returns:
        Squared distances after recentering, ReLU and He weights, shape (n, n).

    Raises:
        ValueError: as `batch_from_distances`.

    Example:
        >>> from bnlib.kernels import relu_cosine
        >>> ones = np.ones((8, 8)) - np.eye(8)
        >>> bool(np.isclose(next_distances(ones)[0, 1], (1 - relu_cosine(-1 / 7)) * 7 / 8))
        True
    """
    after = next_batch(batch_from_distances(squared))
    return distances(after) * math.exp(after.log_scale)
