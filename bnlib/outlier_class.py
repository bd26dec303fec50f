"""The infinite-width map of recentering and ReLU on batches of two kinds of samples: k distinguished, n - k others.

Samples of one kind are equivalent, so up to scale the recentered Gram matrix is known from two numbers, in units of
the squared distance |nu_o - nu_c|^2 between the mean of the distinguished samples and that of the others (m = n - k):

    p = half the squared distance between two distinguished samples,   u = the same for two others.

One distinguished sample has no p, and the map is one-dimensional. With E = |nu_o - nu_c|^2 = 1 the recentered inner
products are

    A = m^2/n^2 + p (k-1)/k   (a distinguished sample with itself),    m^2/n^2 - p/k   (with another one),
    B = k^2/n^2 + u (m-1)/m   (one of the others with itself),         k^2/n^2 - u/m   (with another one),
    -k m/n^2                  (a distinguished sample with one of the others),

and a wide layer of ReLU with He weights keeps A and B and replaces each cosine c by J(c). All cosines are carried as
angles (arctangents of sums of positive terms), so that no digit is lost where samples align or oppose each other.
n and k may be real numbers. NumPy float64; angles are radians.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bnlib.checks import Result, Values, checked_batch_size, checked_values, plain
from bnlib.kernels import _one_minus_j, _sine_minus_chord, relu_cosine


class ClassGeometry(NamedTuple):
    """Recentered inner products of a batch of two kinds of samples, in units of |nu_o - nu_c|^2.

    Attributes:
        others: m = n - k, the number of other samples.
        outlier_square: A, squared length of a distinguished sample.
        cluster_square: B, squared length of one of the others.
        outlier_pair_angle: angle between two distinguished samples, radians (0 for k = 1: there is no pair).
        cluster_pair_angle: angle between two of the others, radians.
        supplement: pi minus the angle between a distinguished sample and one of the others, radians, in [0, pi/2].
    """

    others: float
    outlier_square: Float[np.ndarray, "*shape"]
    cluster_square: Float[np.ndarray, "*shape"]
    outlier_pair_angle: Float[np.ndarray, "*shape"]
    cluster_pair_angle: Float[np.ndarray, "*shape"]
    supplement: Float[np.ndarray, "*shape"]


def checked_n(n: float | int) -> float:
    """Return n as a float, refusing anything but a finite number of at least 3."""
    n = checked_batch_size(n, 3)
    if n == math.inf:
        raise ValueError("n must be a finite batch size, got inf; the limits are in bnlib.outlier_asymptotics.")
    return n


def _checked_k(k: float | int, n: float) -> float:
    if not (k == 1 or 2 <= k <= n - 2):
        raise ValueError(f"k must be 1 or a number of distinguished samples between 2 and n - 2 = {n - 2:g}, got {k}.")
    return float(k)


def _checked_state(name: str, values: Values) -> np.ndarray:
    return checked_values(name, values, 0.0, 1e100, "a ratio of squared distances, between 0 and 1e100")


def class_geometry(p: Values, u: Values, n: float | int, k: float | int = 1) -> ClassGeometry:
    """Recentered lengths and angles of the state (p, u); see the module's docstring.

    Args:
        p: state of the distinguished samples, any shape, in [0, 1e100]; not used for k = 1.
        u: state of the others, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.
        k: number of distinguished samples, 1 or a real number between 2 and n - 2.

    Returns:
        The geometry; arrays of the shape of p and u broadcast together.

    Raises:
        ValueError: p, u, n or k outside its domain.

    Example:
        >>> g = class_geometry(0.0, 7 / 8, 8)  # the symmetric batch: every recentered cosine is -1/7
        >>> bool(np.allclose(np.cos([g.cluster_pair_angle, math.pi - g.supplement]), -1 / 7))
        True
    """
    n = checked_n(n)
    return _geometry(_checked_state("p", p), _checked_state("u", u), n, _checked_k(k, n))


def _geometry(p: np.ndarray, u: np.ndarray, n: float, k: float) -> ClassGeometry:
    m = n - k
    own_o, own_c = p * ((k - 1.0) / k), u * ((m - 1.0) / m)  # squared distance to the mean of the kind
    far_o, far_c = m * m / (n * n), k * k / (n * n)  # squared distance of that mean from the mean of the batch
    if k == 1.0:
        outlier_pair = np.zeros_like(own_c)
    else:
        outlier_pair = 2.0 * np.arctan2(np.sqrt(p), np.sqrt(2.0 * far_o + p * ((k - 2.0) / k)))
    cluster_pair = 2.0 * np.arctan2(np.sqrt(u), np.sqrt(2.0 * far_c + u * ((m - 2.0) / m)))
    # tan of the supplement is sqrt(A B - (k m/n^2)^2) / (k m/n^2), and the difference is a sum of positive terms
    excess = far_o * own_c + far_c * own_o + own_o * own_c
    supplement = np.arctan2(np.sqrt(excess), k * m / (n * n))
    return ClassGeometry(m, far_o + own_o, far_c + own_c, outlier_pair, cluster_pair, supplement)


class _Layer(NamedTuple):
    p: np.ndarray
    u: np.ndarray
    growth: np.ndarray


def _layer(g: ClassGeometry, k: float) -> _Layer:
    m = g.others
    half_o = g.outlier_square * _one_minus_j(g.outlier_pair_angle)  # half the new squared distance of a pair
    half_c = g.cluster_square * _one_minus_j(g.cluster_pair_angle)
    cross = np.sqrt(g.outlier_square * g.cluster_square) * _sine_minus_chord(g.supplement) / math.pi
    growth = g.outlier_square - half_o * ((k - 1.0) / k) - 2.0 * cross + g.cluster_square - half_c * ((m - 1.0) / m)
    return _Layer(half_o / growth, half_c / growth, growth)


def next_class_state(p: Values, u: Values, n: float | int, k: float | int = 1) -> tuple[Result, Result, Result]:
    """One infinitely wide layer of recentering and ReLU on a batch of k distinguished samples and n - k others.

    Args:
        p: state of the distinguished samples, any shape, in [0, 1e100]; not used for k = 1.
        u: state of the others, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.
        k: number of distinguished samples, 1 or a real number between 2 and n - 2.

    Returns:
        p after the layer (0 for k = 1), u after the layer, and the factor by which |nu_o - nu_c|^2 has grown.

    Raises:
        ValueError: p, u, n or k outside its domain.

    Example:
        >>> n, k = 12, 3
        >>> p, u, growth = next_class_state(k * (n - k) / n, k * (n - k) / n, n, k)  # all samples equivalent
        >>> round(p, 12), round(u, 12)
        (2.25, 2.25)
    """
    n = checked_n(n)
    k = _checked_k(k, n)
    after = _layer(_geometry(_checked_state("p", p), _checked_state("u", u), n, k), k)
    return plain(after.p), plain(after.u), plain(after.growth)


def next_state(u: Values, n: float | int) -> Result:
    """One layer for one distinguished sample, as a map of u alone.

    With m = n - 1, P = m^2/n^2, Q = u(m-1)/m + 1/n^2, c = (1/n^2 - u/m)/Q and J_1 = J(-m/(n^2 sqrt(P Q))):
    u' = Q (1 - J(c)) / [P - 2 sqrt(P Q) J_1 + Q (1 + (m-1) J(c))/m].

    Args:
        u: state, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.

    Returns:
        u after the layer, same shape.

    Raises:
        ValueError: u outside [0, 1e100], or n < 3.

    Example:
        >>> round(next_state(7 / 8, 8) / (7 / 8), 12)  # the symmetric batch is a fixed point
        1.0
        >>> round(next_state(1e-14, 8) / 1e-14, 6)  # near the collapsed cluster u is multiplied by 64/50
        1.28
    """
    return next_class_state(0.0, u, n)[1]


def scale_growth(u: Values, n: float | int) -> Result:
    """Factor by which one layer multiplies |x_1 - nu|^2, for He weights: the bracket in `next_state`.

    Args:
        u: state, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.

    Returns:
        The factor, same shape; below 1.

    Raises:
        ValueError: u outside [0, 1e100], or n < 3.

    Example:
        >>> round(scale_growth(0.0, 8), 6)  # 50/64
        0.78125
    """
    return next_class_state(0.0, u, n)[2]


def next_state_slope(u: Values, n: float | int) -> Result:
    """Derivative of `next_state` with respect to u: the multiplier of the class at a fixed point.

    Args:
        u: state, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.

    Returns:
        du'/du, same shape.

    Raises:
        ValueError: u outside [0, 1e100], or n < 3.

    Example:
        >>> round(next_state_slope(7 / 8, 8), 3)  # (n-2)/(n-1) + n J'/((n-1)^2 (1-J)), J at -1/7
        0.956
    """
    return plain(class_jacobian(0.0, u, n)[..., 1, 1])


def class_jacobian(p: Values, u: Values, n: float | int, k: float | int = 1) -> Float[np.ndarray, "*shape 2 2"]:
    """Derivatives of (p', u') with respect to (p, u), in closed form.

    From dV_ij = J' dK_ij + sin(theta)/(2 pi) [sqrt(K_jj/K_ii) dK_ii + sqrt(K_ii/K_jj) dK_jj], the differential of
    sqrt(K_ii K_jj) J(cos theta).

    Args:
        p: state of the distinguished samples, any shape, in [0, 1e100]; not used for k = 1.
        u: state of the others, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.
        k: number of distinguished samples, 1 or a real number between 2 and n - 2.

    Returns:
        Shape (*shape, 2, 2); row: of p', of u'; column: by p, by u. For k = 1 only [1, 1] has a meaning, and the rest
        of the first row and column is 0.

    Raises:
        ValueError: p, u, n or k outside its domain.

    Example:
        >>> step = 1e-6
        >>> up, down = next_class_state(0.6, 0.04, 12, 2)[0], next_class_state(0.6, 0.04 - step, 12, 2)[0]
        >>> bool(abs((up - down) / step - class_jacobian(0.6, 0.04, 12, 2)[0, 1]) < 1e-5)
        True
    """
    n = checked_n(n)
    k = _checked_k(k, n)
    p, u = np.broadcast_arrays(_checked_state("p", p), _checked_state("u", u))
    return _jacobian(p, u, n, k)


def _jacobian(p: np.ndarray, u: np.ndarray, n: float, k: float) -> np.ndarray:
    g = _geometry(p, u, n, k)
    after = _layer(g, k)
    m = g.others
    da, db = (k - 1.0) / k, (m - 1.0) / m  # dA/dp and dB/du; the pairs' inner products fall at the rates 1/k and 1/m
    s_cross = np.sin(g.supplement) / (2.0 * math.pi)
    ratio = np.sqrt(g.cluster_square / g.outlier_square)
    pair_o = -(1.0 - g.outlier_pair_angle / math.pi) / k + da * np.sin(g.outlier_pair_angle) / math.pi
    pair_c = -(1.0 - g.cluster_pair_angle / math.pi) / m + db * np.sin(g.cluster_pair_angle) / math.pi
    growth_p = da / k + da * pair_o - 2.0 * s_cross * ratio * da
    growth_u = db / m + db * pair_c - 2.0 * s_cross / ratio * db
    result = np.zeros((*np.shape(u), 2, 2))
    if k != 1.0:
        result[..., 0, 0] = (da - pair_o - after.p * growth_p) / after.growth
        result[..., 0, 1] = -after.p * growth_u / after.growth
        result[..., 1, 0] = -after.u * growth_p / after.growth
    result[..., 1, 1] = (db - pair_c - after.u * growth_u) / after.growth
    return result


def next_products(products: Float[np.ndarray, "4"], n: float | int) -> Float[np.ndarray, "4"]:
    """One layer for one distinguished sample, on the four inner products: the textbook form, in cosines.

    Recentering, then the arc-cosine kernel (Cho & Saul 2009) with He weights. It loses digits where samples align;
    `next_state` is the same map without that loss, and this is what it is compared with.

    Args:
        products: x_1.x_1, x_i.x_i, x_i.x_j, x_1.x_i before the layer, shape (4,); i, j among the others.
        n: batch size, at least 3; any real number.

    Returns:
        The four inner products after the layer, shape (4,).

    Raises:
        ValueError: n < 3, or a product that is not finite.

    Example:
        >>> c = relu_cosine(-1 / 7)
        >>> after = next_products(np.array([1.0, 1.0, c, c]), 8)
        >>> bool(np.allclose(after / after[0], [1.0, 1.0, c, c]))
        True
    """
    n = checked_n(n)
    products = np.asarray(products, dtype=np.float64)
    if products.shape != (4,) or not np.isfinite(products).all():
        raise ValueError(f"products must be four finite numbers, got {products}.")
    top, other, pair, cross = products
    m = n - 1.0
    top_mean, other_mean = (top + m * cross) / n, (cross + other + (m - 1.0) * pair) / n
    mean = (top_mean + m * other_mean) / n
    top, other = top - 2.0 * top_mean + mean, other - 2.0 * other_mean + mean
    pair, cross = pair - 2.0 * other_mean + mean, cross - top_mean - other_mean + mean
    scale = math.sqrt(top * other)
    # Rounding may leave a cosine just outside its interval.
    new_pair = other * float(relu_cosine(min(1.0, max(-1.0, pair / other))))
    return np.array([top, other, new_pair, scale * float(relu_cosine(min(1.0, max(-1.0, cross / scale))))])


def state_of_products(products: Float[np.ndarray, "4"], n: float | int) -> float:
    """The state u of four inner products, as in `next_products`: (x_i.x_i - x_i.x_j) / |x_1 - nu|^2.

    Args:
        products: x_1.x_1, x_i.x_i, x_i.x_j, x_1.x_i, shape (4,).
        n: batch size, at least 3; any real number.

    Returns:
        u.

    Raises:
        ValueError: n < 3, or x_1 is the mean of the others.

    Example:
        >>> round(state_of_products(np.array([1.0, 1.0, 0.0, 0.0]), 8), 6)  # orthogonal samples: 7/8
        0.875
    """
    m = checked_n(n) - 1.0
    top, other, pair, cross = np.asarray(products, dtype=np.float64)
    distance = top - 2.0 * cross + (other + (m - 1.0) * pair) / m
    if not distance > 0:
        raise ValueError(
            f"products must have x_1 apart from the mean of the others, got the squared distance {distance}."
        )
    return float((other - pair) / distance)


def cluster_angle_after(u: Values, n: float | int) -> Result:
    """Angle between two of the n - 1 other samples after one layer from the state u.

    Args:
        u: state before the layer, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.

    Returns:
        Angles in radians, same shape.

    Raises:
        ValueError: u outside [0, 1e100], or n < 3.

    Example:
        >>> math.isclose(math.cos(cluster_angle_after(7 / 8, 8)), relu_cosine(-1 / 7))
        True
    """
    g = class_geometry(0.0, u, n)
    return plain(2.0 * np.arcsin(np.sqrt(_one_minus_j(g.cluster_pair_angle) / 2.0)))
