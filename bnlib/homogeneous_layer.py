"""One infinitely wide layer of batch normalization and a homogeneous activation of any degree, at any covariance.

With y ~ N(0, K), K = G S G, b = sqrt(n) y/|y| and phi of degree alpha > 0, writing |y|^(-2 alpha) as an integral of
s^(alpha-1) exp(-s |y|^2) gives (arXiv 1902.08129, section E.1)

    E[phi(b) phi(b)^T] = n^alpha / Gamma(alpha) int_0^inf det(I + 2 s K)^(-1/2) V_phi(s K (I + 2 s K)^(-1)) ds / s.

In x = log s the integrand is analytic in the strip |Im x| < pi and decays exponentially at both ends: the trapezoidal
rule converges like exp(-2 pi^2/h) (`bnlib.v_transform` has a faster rule for degree one). NumPy float64; no torch.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import gamma, gammaln

from bnlib.homogeneous import Homogeneous, kernel_cosine
from bnlib.v_transform import centered_eigensystem

_STEP = 0.25  # in log s
_NOTHING = 40.0  # the logarithm of what is left out at either end


def power_mean_square(alpha: float | int) -> float:
    """E[max(x, 0)^(2 alpha)] for a standard Gaussian: 2^(alpha-1) Gamma(alpha + 1/2) / sqrt(pi).

    Args:
        alpha: above -1/2.

    Raises:
        ValueError: alpha is not above -1/2.

    Example:
        >>> round(power_mean_square(1), 12), round(power_mean_square(2), 12)
        (0.5, 1.5)
    """
    if not alpha > -0.5:
        raise ValueError(f"alpha must be above -1/2, got {alpha}.")
    return 2 ** (alpha - 1) * float(gamma(alpha + 0.5)) / math.sqrt(math.pi)


def log_laplace_rule(
    eigenvalues: Float[np.ndarray, " k"], multiplicities: Float[np.ndarray, " k"], alpha: float | int
) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Nodes s and weights n^alpha/Gamma(alpha) det(I + 2 s K)^(-1/2) ds/s, n = 1 + the number of eigenvalues.

    The power s^alpha belongs to the integrand, as V_phi(s K (I + 2 s K)^(-1)): its entries are at most 1/2, so that
    large degrees do not overflow.

    Args:
        eigenvalues: of K on the centered directions, positive.
        multiplicities: of each, of sum n - 1; any positive real numbers.
        alpha: degree, positive.

    Returns:
        Nodes and weights.

    Raises:
        ValueError: alpha is not positive and finite.

    Example:
        >>> s, w = log_laplace_rule(np.ones(1), np.array([7.0]), 1)  # E[n / |y|^2] with 7 degrees of freedom
        >>> round(float(w @ s) * 5 / 8, 12)
        1.0
    """
    if not 0 < alpha < math.inf:
        raise ValueError(f"alpha must be a positive finite degree, got {alpha}.")
    alpha = float(alpha)
    low = -_NOTHING / alpha - math.log(eigenvalues.max()) - 2
    high = -math.log(eigenvalues.min()) + 2 * _NOTHING + 2
    x = _STEP * np.arange(math.floor(low / _STEP), math.ceil(high / _STEP))
    s = np.exp(x)
    size = -0.5 * np.log1p(2 * s[:, None] * eigenvalues) @ multiplicities
    largest = (s[:, None] * eigenvalues / (1 + 2 * s[:, None] * eigenvalues)).max(axis=1)
    weighed = size + alpha * np.log(largest)
    # A tiny eigenvalue rules a small part of the answer far out: what is kept is judged per direction.
    smallest = s * eigenvalues.min() / (1 + 2 * s * eigenvalues.min())
    inside = size + np.log(smallest) + (alpha - 1) * np.log(largest)
    kept = (weighed > weighed.max() - _NOTHING) | (inside > inside.max() - _NOTHING)
    n = 1 + float(multiplicities.sum())
    return s[kept], _STEP * np.exp(size[kept] + alpha * math.log(n) - gammaln(alpha))


def homogeneous_transform(covariance: Float[np.ndarray, "n n"], phi: Homogeneous) -> Float[np.ndarray, "n n"]:
    """Covariance after one infinitely wide layer of batch normalization and phi.

    Args:
        covariance: positive semi-definite, shape (n, n), n >= 3; its scale and its mean do not matter. Its centered
            rank is at least 2.
        phi: activation, of positive degree.

    Returns:
        The covariance, same shape.

    Raises:
        ValueError: covariance is not finite, symmetric and positive semi-definite, or its centered rank is below 2;
            the degree is not positive.

    Example:
        >>> from bnlib.homogeneous import homogeneous, homogeneous_fixed_point
        >>> phi = homogeneous(2)
        >>> v = homogeneous_transform(np.eye(8), phi)
        >>> round(float(v[0, 1]) / homogeneous_fixed_point(phi, 8).off_diagonal, 12)
        1.0
    """
    values, vectors = centered_eigensystem(covariance, rank=2)
    n = len(vectors)
    # Directions of eigenvalue zero count in n but not in the determinant.
    nodes, weights = log_laplace_rule(values, np.ones(len(values)), phi.alpha)
    weights = weights * (n / (1 + len(values))) ** phi.alpha
    # Above the diagonal only: the series in the cosine costs most of the time.
    rows, columns = np.triu_indices(n)
    total = np.zeros(len(rows))
    scaled = nodes[:, None] * values
    for weight, shrunk in zip(weights, scaled / (1 + 2 * scaled), strict=True):
        inner = (vectors * shrunk) @ vectors.T
        root = np.sqrt(np.maximum(np.diagonal(inner), 0.0))
        size = root[rows] * root[columns]
        between = inner[rows, columns]
        cosine = np.clip(np.divide(between, size, out=np.zeros_like(between), where=size > 0), -1.0, 1.0)
        cosine[rows == columns] = 1.0
        total += weight * size**phi.alpha * kernel_cosine(cosine, phi)
    result = np.empty((n, n))
    result[rows, columns] = result[columns, rows] = power_mean_square(phi.alpha) * total
    return result
