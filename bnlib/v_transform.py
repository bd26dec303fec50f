"""One infinitely wide layer of batch normalization at any covariance: the Laplace integral.

For y ~ N(0, K), K = G S G, and phi positively homogeneous of degree one, E[phi(b) phi(b)^T] with b = sqrt(n) y / |y|
is n E[phi(y) phi(y)^T / |y|^2]. Writing 1/|y|^2 as an integral of exp(-s |y|^2) over s > 0 turns the average into an
ordinary ReLU kernel with another covariance (arXiv 1902.08129, section E.1):

    n int_0^inf det(I + 2 s K)^(-1/2) V_phi(K (I + 2 s K)^(-1)) ds.

The integrand is analytic in s near 0 and, in x = log s, in the strip |Im x| < pi. So the rule is Gauss-Legendre in s up
to half the inverse of the largest eigenvalue, then Gauss-Legendre in log s on panels of fixed length, up to where the
integrand has fallen to 1e-18 of its largest value for the smallest eigenvalue too: unequal scales of the samples cost
panels, not digits. Eigenvalues below 1e-13 of the largest are rounding of the input and count as zero; if the rest has
rank one, this moves entries by up to 5e-8 (a cluster of relative variance r has one of order sqrt(r) after the layer).
NumPy float64; this module does not import torch.
"""

import math
from itertools import pairwise

import numpy as np
from jaxtyping import Float

_PANEL = 1.0  # length in log s
_NODES = 12  # per panel; doubling it changes entries by less than 1e-13 (tests)
_DEPTH = 42.0  # the logarithm of what counts as nothing
# Relative size at which eigenvalues count as zero: centering leaves rounding of this order in the null direction.
_RANK = 1e-13

_ENTRIES = 8192  # matrix entries worked on at a time: small batches take many nodes at once


def centered_eigensystem(
    covariance: Float[np.ndarray, "n n"], rank: int | float = 1
) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, "n r"]]:
    """Positive eigenvalues of G S G, the largest being 1, and their eigenvectors, checked for use in an integral.

    Args:
        covariance: S, positive semi-definite, shape (n, n), n >= 3; its scale and its mean do not matter.
        rank: least rank after centering that the caller's integral needs.

    Returns:
        Eigenvalues in ascending order, shape (r,), and orthonormal columns of sum 0, shape (n, r).

    Raises:
        ValueError: covariance is not square, of at least 3 samples, finite, symmetric and positive semi-definite; or
            nothing is left after centering, or less than `rank`.

    Example:
        >>> values, vectors = centered_eigensystem(np.diag([1.0, 1.0, 4.0]))
        >>> np.round(values, 12).tolist(), vectors.shape
        ([0.333333333333, 1.0], (3, 2))
    """
    s = np.asarray(covariance, dtype=np.float64)
    if s.ndim != 2 or s.shape[0] != s.shape[1] or s.shape[0] < 3:
        raise ValueError(f"covariance must be a square matrix of at least 3 samples, got shape {s.shape}.")
    if not np.isfinite(s).all():
        raise ValueError("covariance must be finite, got NaN or infinity.")
    size = np.abs(s).max()
    if np.abs(s - s.T).max() > 1e-9 * size:
        raise ValueError("covariance must be symmetric, got a matrix that differs from its transpose.")
    s = s / size if size > 0 else s
    # Before centering as well: a negative variance along (1, ..., 1) would pass unseen. |S| bounds the rounding.
    below = float(np.linalg.eigvalsh((s + s.T) / 2)[0])
    if below < -1e-9 * len(s):
        raise ValueError(f"covariance must be positive semi-definite, got an eigenvalue of {below:.3g} times its size.")
    k = s - s.mean(axis=0, keepdims=True)
    k = k - k.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((k + k.T) / 2)
    largest = values[-1]
    if largest <= _RANK:
        raise ValueError("covariance must differ between samples, got one in which nothing is left after centering.")
    if values[0] < -1e-9 * largest:
        raise ValueError(
            f"covariance must be positive semi-definite, got an eigenvalue {values[0]:.3g} after centering."
        )
    counted = values > _RANK * largest
    if counted.sum() < rank:
        raise ValueError(
            f"covariance must have rank at least {rank} after centering, got {counted.sum()}: the integral needs it."
        )
    values, vectors = values[counted] / largest, vectors[:, counted]
    return values, vectors - vectors.mean(axis=0)  # of a tiny eigenvalue, rounding mixes the direction (1, ..., 1) in


def batch_norm_relu_transform(
    covariance: Float[np.ndarray, "n n"], slope: float | int = 0.0, panel_nodes: int = _NODES
) -> Float[np.ndarray, "n n"]:
    """Covariance after one infinitely wide layer of batch normalization and (leaky) ReLU.

    E[phi(b_i) phi(b_j)] for h ~ N(0, covariance), b = sqrt(n) G h / |G h|. For ReLU the mean of its diagonal is 1/2,
    whatever the covariance.

    Args:
        covariance: positive semi-definite, shape (n, n), n >= 3; its scale and its mean do not matter.
        slope: of the leaky ReLU; 0 is ReLU, 1 the identity, -1 the absolute value.
        panel_nodes: nodes of the quadrature rule on each panel.

    Returns:
        The covariance, same shape.

    Raises:
        ValueError: covariance is not finite, symmetric and positive semi-definite, or all samples are equal,
            so that nothing is left after centering; slope is not finite, or panel_nodes is below 2.

    Example:
        >>> from bnlib.kernels import relu_cosine
        >>> v = batch_norm_relu_transform(np.eye(8))  # BSB1 in one step: cosine J(-1/7)
        >>> bool(np.isclose(v[0, 1] / v[0, 0], relu_cosine(-1 / 7), rtol=1e-12)), round(float(v[0, 0]), 12)
        (True, 0.5)
    """
    if panel_nodes < 2:
        raise ValueError(f"panel_nodes must be at least 2, got {panel_nodes}.")
    if not math.isfinite(slope):
        raise ValueError(f"slope must be finite, got {slope}.")
    values, vectors = centered_eigensystem(covariance)
    n = len(vectors)
    nodes, weights = _laplace_rule(values, panel_nodes)
    weights = weights * np.exp(-0.5 * np.log1p(2 * nodes[:, None] * values).sum(axis=1))
    total = np.zeros((n, n))
    shrunk = values / (1 + 2 * nodes[:, None] * values)
    chunk = max(1, _ENTRIES // n**2)
    for first in range(0, len(nodes), chunk):
        part = slice(first, first + chunk)
        inner = (vectors * shrunk[part, None, :]) @ vectors.T
        total += np.tensordot(weights[part], homogeneous_kernel_one(inner, float(slope)), axes=1)
    return n * total


def _laplace_rule(eigenvalues: np.ndarray, panel_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes s and weights for eigenvalues in ascending order, the largest being 1."""
    x, w = np.polynomial.legendre.leggauss(panel_nodes)
    start = 0.5

    def size(log_s: float) -> float:
        s = math.exp(log_s)
        return log_s - 0.5 * np.log1p(2 * s * eigenvalues).sum() - math.log1p(2 * s * eigenvalues[0])

    end = math.log(start)
    top = size(end)
    # Beyond the last eigenvalue the logarithm falls at a slope of at least 1/2, so this ends.
    while size(end) > top - _DEPTH:
        end += _PANEL
        top = max(top, size(end))
    # Many equal eigenvalues make the integrand narrow: below s = 1/2 it falls like (1 + 2 s)^(-rank / 2).
    cuts = np.linspace(0.0, start, 1 + math.ceil(len(eigenvalues) / 12))
    edges = np.arange(math.log(start), end, _PANEL)
    nodes = [(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(cuts)]
    weights = [(b - a) / 2 * w for a, b in pairwise(cuts)]
    for edge in edges:
        s = np.exp(edge + _PANEL / 2 * (1 + x))
        nodes.append(s)
        weights.append(_PANEL / 2 * w * s)
    return np.concatenate(nodes), np.concatenate(weights)


def homogeneous_kernel_one(
    k: Float[np.ndarray, "*draws n n"], slope: float | int = 0.0
) -> Float[np.ndarray, "*draws n n"]:
    """E[phi(y) phi(y)^T] for y ~ N(0, k), phi the leaky ReLU, in closed form, to absolute precision.

    Args:
        k: covariances.
        slope: of the leaky ReLU.

    Example:
        >>> homogeneous_kernel_one(np.eye(2)).round(6).tolist()  # 1/2 and 1/(2 pi)
        [[0.5, 0.159155], [0.159155, 0.5]]
    """
    diagonal = np.sqrt(np.maximum(np.diagonal(k, axis1=-2, axis2=-1), 0.0))
    size = diagonal[..., :, None] * diagonal[..., None, :]
    cosine = np.clip(np.divide(k, size, out=np.zeros_like(k), where=size > 0), -1.0, 1.0)
    # phi(x) = relu(x) - slope * relu(-x), and relu(-x) relu(y) sees the cosine -c. J(-c) = J(c) - c.
    # Absolute precision is enough here, and this form is several times faster than `kernels.relu_cosine`.
    j = (np.sqrt((1 - cosine) * (1 + cosine)) + (math.pi - np.arccos(cosine)) * cosine) / math.pi
    mapped = (1 + slope**2) * j - 2 * slope * (j - cosine)
    own = np.arange(k.shape[-1])
    mapped[..., own, own] = 1 + slope**2
    return size * mapped / 2
