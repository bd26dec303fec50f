"""How a small cluster opens under recentering and ReLU: the infinite-width map of one odd sample and n-1 equal ones.

In this class the recentered Gram matrix is known, up to scale, from one number,

    u = (x_i.x_i - x_i.x_j) / |x_1 - nu|^2        (i, j in the cluster, nu the mean of the cluster),

half the squared distance inside the cluster in units of the squared distance to the odd sample. With m = n - 1 and
lengths in units of |x_1 - nu|, the recentered odd sample has the squared length P = m^2/n^2, a cluster sample
Q = u (m-1)/m + 1/n^2; two cluster samples have the inner product 1/n^2 - u/m, and the odd sample has -m/n^2 with each.
One He layer maps u to

    u' = Q (1 - J(c)) / [P - 2 sqrt(P Q) J_1 + Q (1 + (m-1) J(c)) / m],

c and J_1 = J(c_1) from these cosines; the bracket is the growth of the squared scale. Definition 12 is u = 0, the
symmetric batch u = m/n. The map itself is that of `bnlib.outlier_class`; where it settles, `bnlib.outlier_fixed_points`
says. NumPy float64; angles are radians.
"""

import math
from numbers import Integral

import numpy as np
from jaxtyping import Float
from scipy.special import psi
from scipy.stats import binom

from bnlib import outlier_class
from bnlib.checks import Result, Values, checked_batch_size, checked_depth, checked_values, plain


def _checked_n(n: float | int) -> float:
    return checked_batch_size(n, 3, " (a cluster needs two samples)")


def next_state(u: Values, n: float | int) -> Result:
    """One infinitely wide layer of recentering and ReLU, as a map of u (see the module's docstring).

    Args:
        u: state of the cluster, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.

    Returns:
        u after the layer, same shape; near 0 it is alpha u with alpha = n^2/(n^2 - 2n + 2).

    Raises:
        ValueError: u is outside [0, 1e100], or n < 3.

    Example:
        >>> round(next_state(7 / 8, 8) / (7 / 8), 12)  # the symmetric batch is a fixed point
        1.0
        >>> round(next_state(1e-14, 8) / 1e-14, 6)  # alpha = 64/50
        1.28
    """
    return outlier_class.next_state(u, _checked_n(n))


def angle_after_layer(u: Values, n: float | int) -> Result:
    """Angle between two cluster samples after one infinitely wide layer from state u.

    Args:
        u: state of the cluster before the layer, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.

    Returns:
        Angles in radians, same shape.

    Raises:
        ValueError: u is outside [0, 1e100], or n < 3.

    Example:
        >>> from bnlib.kernels import relu_cosine
        >>> math.isclose(math.cos(angle_after_layer(7 / 8, 8)), relu_cosine(-1 / 7))
        True
    """
    return outlier_class.cluster_angle_after(u, _checked_n(n))


def state_of_angle(cluster_angle: Values, n: float | int) -> Result:
    """State u of Definition 12 with its cluster opened by an angle, as `invariant_geometry.invariant_representation`.

    Args:
        cluster_angle: angle between two cluster samples in radians, any shape, in [0, pi/2].
        n: batch size, at least 3; any real number.

    Returns:
        u, same shape; alpha theta^2 / (2 n^2) for small angles theta.

    Raises:
        ValueError: an angle outside [0, pi/2], or n < 3.

    Example:
        >>> round(state_of_angle(1e-6, 8) * 2 * 64 / 1e-12, 6)  # alpha = 64/50
        1.28
    """
    n = _checked_n(n)
    angle = checked_values("cluster_angle", cluster_angle, 0.0, math.pi / 2, "between 0 and pi/2 radians")
    m = n - 1.0
    y = 2.0 * np.sin(angle / 2.0) ** 2
    offset = y / (m / (m - 1.0) - y) / (m * m)  # squared distance of a cluster sample from nu
    return plain(np.asarray(offset * m / (m - 1.0) / (1.0 + 1.0 / (m * m))))


def small_angle_series(cluster_angle: Values, n: float | int) -> Result:
    """Cluster angle after one layer from Definition 12's lengths, to second order: the growth law of the chapter.

    theta'^2 = alpha theta^2 (1 - 2 sqrt(alpha) theta / (3 pi)), alpha = n^2/(n^2 - 2n + 2). Recentering shortens a
    cluster sample from 1/(n-1) to R/n and leaves differences alone, so that the angle grows by sqrt(alpha); ReLU takes
    off the share theta/(3 pi). Whatever the weight variance.

    Args:
        cluster_angle: angle between two cluster samples in radians, any shape, small.
        n: batch size, at least 3; any real number.

    Returns:
        The angle after the layer in radians, same shape; relative error of order theta^2.

    Raises:
        ValueError: an angle outside [0, pi/2], or n < 3.

    Example:
        >>> round(small_angle_series(1e-3, 8) / 1e-3, 4)
        1.1312
    """
    n = _checked_n(n)
    angle = checked_values("cluster_angle", cluster_angle, 0.0, math.pi / 2, "between 0 and pi/2 radians")
    recentered = angle * math.sqrt(n * n / (n * n - 2.0 * n + 2.0))
    return plain(np.asarray(recentered * np.sqrt(1.0 - 2.0 * recentered / (3.0 * math.pi))))


def cluster_angle_path(depth: int | float, cluster_angle: float | int, n: float | int) -> Float[np.ndarray, "layers"]:
    """Cluster angle at depths 0, 1, ..., depth of an infinitely wide network, from Definition 12 opened by an angle.

    Args:
        depth: number of layers, 0 or more.
        cluster_angle: angle between two cluster samples at depth 0 in radians, in [0, pi/2].
        n: batch size, at least 3; any real number.

    Returns:
        Angles in radians, shape (depth + 1,).

    Raises:
        ValueError: an angle outside [0, pi/2], n < 3, or depth is not a whole number >= 0.

    Example:
        >>> import numpy as np
        >>> np.degrees(cluster_angle_path(200, 0.01, 16))[[0, 20, 200]].round(2)
        array([ 0.57,  1.91, 29.99])
    """
    u = state_of_angle(cluster_angle, n)
    angles = np.empty(checked_depth(depth) + 1)
    angles[0] = cluster_angle
    for layer in range(1, len(angles)):
        angles[layer] = angle_after_layer(u, n)
        u = next_state(u, n)
    return angles


def growth_rate(n: float | int, width: float | int = math.inf) -> float:
    """Mean log-growth a layer of a small cluster: of |x_i - x_j|^2 / |x_1 - nu|^2 from Definition 12.

    At infinite width log(n^2/(n^2 - 2n + 2)). At width d, the m neurons with e.w < 0 carry the cluster and the others
    the odd sample, m binomial (d, 1/2): with independent chi-squares A, B of m and C of d - m degrees of freedom

        |x_i' - x_j'|^2 ~ A,   |x_1' - nu'|^2 ~ ((n-1)^2 C + B) / n^2,
        rate = E[log A - log(((n-1)^2 C + B) / n^2)]   given 1 <= m <= d - 1,

    for differences orthogonal to e. Without the condition the mean is -infinity: at m = 0, with probability 2^-d, the
    cluster collapses exactly and for ever; m = d, its mirror image, is left out too. Then A and C have the same law and
    the rate at d = 2 is 0. E log of the sum is an integral of its Laplace transform, which is a d-th power. A positive
    rate means that small differences inside the cluster grow on average in the logarithm, as long as some neuron sees
    the cluster and some the odd sample.

    Args:
        n: batch size, at least 3; any real number.
        width: number of neurons, at least 2; math.inf for the limit.

    Returns:
        The rate, natural log per layer.

    Raises:
        ValueError: n < 3, or width is not a whole number >= 2 or infinity.

    Example:
        >>> round(growth_rate(16), 4), round(growth_rate(16, 64), 4)
        (0.1246, 0.1242)
    """
    n = _checked_n(n)
    if width == math.inf:
        return math.log(n * n / (n * n - 2.0 * n + 2.0))
    if isinstance(width, bool) or not isinstance(width, Integral) or width < 2:
        raise ValueError(f"width must be a whole number of neurons of at least 2 or infinity, got {width}.")
    m = n - 1.0
    active = np.arange(1, width)
    log_cluster = float((binom.pmf(active, width, 0.5) * (psi(active / 2.0) + math.log(2.0))).sum())
    # Frullani: log s = integral of (exp(-t) - exp(-t s)) / t dt, evenly spaced in x = log t
    x = np.arange(-45.0 - 2.0 * math.log(n) - math.log(width), 90.0 / width + 10.0, 0.1)
    t = np.exp(x)
    transform = ((1.0 / np.sqrt(1.0 + 2.0 * t * m * m) + 1.0 / np.sqrt(1.0 + 2.0 * t)) / 2.0) ** width
    log_distance = float(((np.exp(-t) - transform) * 0.1).sum())
    one_sided = 0.5**width  # m = 0 and m = d, left out on both sides
    log_distance -= 2.0 * one_sided * (math.log(m) + float(psi(width / 2.0)) + math.log(2.0))
    return (log_cluster - log_distance) / (1.0 - 2.0 * one_sided) + 2.0 * math.log(n)
