"""Wide layers without batch normalization: the covariance map of ordinary networks, a plane integral for each pair.

With weights of variance weight_variance/width and biases of variance bias_variance, a layer maps the covariance S of
the pre-activations to weight_variance E[phi(h) phi(h)^T] + bias_variance, h ~ N(0, S). Entry ij depends on S_ii, S_ij,
S_jj alone: n(n+1)/2 integrals over the plane (arXiv 1902.08129, section 3). Batch normalization is different: there
every entry depends on the whole batch. NumPy float64; this module does not import torch.
"""

from itertools import pairwise

import numpy as np
from jaxtyping import Float

from bnlib.activations import Activation

_NODES, _LINE, _REACH = 40, 32, 9.0


def _line_rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on either side of 0 in the first variable, which is where phi may have its kink."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = _REACH / 2 * (1 + x), _REACH / 2 * w
    x, w = np.concatenate([-x[::-1], x]), np.concatenate([w[::-1], w])
    w = w * np.exp(-(x**2) / 2)
    return x, w / w.sum()


def pair_average(phi: Activation, own: float | int, other: float | int, between: float | int) -> float:
    """E[phi(x) phi(y)] for a centered Gaussian pair, by a rule that uses no closed form.

    Polar coordinates in the plane of two independent Gaussians; the four lines on which x or y changes sign cut it into
    sectors, so kinks at 0 lie on the borders.

    Args:
        phi: activation; kinks are allowed at 0 only.
        own: variance of x, positive.
        other: variance of y, positive.
        between: their covariance.

    Raises:
        ValueError: a variance is not positive and finite, or |between| exceeds their geometric mean.

    Example:
        >>> from bnlib.activations import activation
        >>> round(pair_average(activation("relu"), 1, 4, 0) * np.pi, 10)  # 2/(2 pi)
        1.0
    """
    if not (0 < own < np.inf and 0 < other < np.inf):
        raise ValueError(f"own and other must be positive variances, got {own} and {other}.")
    size = float(np.sqrt(own * other))
    if not abs(between) <= size * (1 + 1e-12):
        raise ValueError(f"between must be a covariance of at most {size:.6g}, got {between}.")
    turn = float(np.arccos(np.clip(between / size, -1.0, 1.0)))
    cuts = sorted({-np.pi / 2, np.pi / 2, turn - np.pi / 2, turn + np.pi / 2})
    x, w = np.polynomial.legendre.leggauss(_NODES)
    # A substitution flat at both ends: powers of the distance from a border become smooth enough.
    t = (1 + x) / 2
    x, w = 2 * t**4 * (35 - 84 * t + 70 * t**2 - 20 * t**3) - 1, w * 140 * t**3 * (1 - t) ** 3
    edges = [*cuts, cuts[0] + 2 * np.pi]
    angle = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(edges)])
    angle_weights = np.concatenate([(b - a) / 2 * w for a, b in pairwise(edges)])
    # The radius, with density r exp(-r^2/2): in r = u^4 powers of r near 0 are smooth enough.
    top = 12.0**0.25
    u, u_weights = np.polynomial.legendre.leggauss(80)
    u, u_weights = top / 2 * (1 + u), top / 2 * u_weights
    radius, radius_weights = u**4, 4 * u**3 * u_weights * u**4 * np.exp(-(u**8) / 2)
    values = phi(np.sqrt(own) * radius[:, None] * np.cos(angle))
    values = values * phi(np.sqrt(other) * radius[:, None] * np.cos(angle - turn))
    return float(radius_weights @ values @ angle_weights / (2 * np.pi))


def plain_layer(
    covariance: Float[np.ndarray, "n n"], phi: Activation, weight_variance: float | int, bias_variance: float | int
) -> Float[np.ndarray, "n n"]:
    """Covariance of the next pre-activations: weight_variance E[phi(h) phi(h)^T] + bias_variance.

    Args:
        covariance: positive semi-definite with a positive diagonal, shape (n, n).
        phi: activation; a kink at 0 costs digits (about five are left).
        weight_variance: positive.
        bias_variance: at least 0.

    Raises:
        ValueError: covariance is not finite, square, symmetric and positive semi-definite with a positive diagonal;
            weight_variance is not positive, or bias_variance is negative.

    Example:
        >>> from bnlib.activations import activation
        >>> np.round(plain_layer(np.eye(2), activation("identity"), 1, 0.5), 9).tolist()
        [[1.5, 0.5], [0.5, 1.5]]
    """
    s = np.asarray(covariance, dtype=np.float64)
    if s.ndim != 2 or s.shape[0] != s.shape[1]:
        raise ValueError(f"covariance must be square, got shape {s.shape}.")
    if not np.isfinite(s).all():
        raise ValueError("covariance must be finite, got NaN or infinity.")
    if not (np.diagonal(s) > 0).all():
        raise ValueError("covariance must have a positive diagonal, got a sample of variance 0 or less.")
    if np.abs(s - s.T).max() > 1e-9 * np.abs(s).max():
        raise ValueError("covariance must be symmetric, got a matrix that differs from its transpose.")
    least = float(np.linalg.eigvalsh((s + s.T) / 2)[0])
    if least < -1e-9 * np.abs(s).max() * len(s):
        raise ValueError(f"covariance must be positive semi-definite, got an eigenvalue {least:.3g}.")
    if not weight_variance > 0 or not bias_variance >= 0:
        raise ValueError(
            f"weight_variance must be positive and bias_variance at least 0, got {weight_variance} and {bias_variance}."
        )
    x, w = _line_rule(_LINE)
    rows, columns = np.triu_indices(len(s))
    root = np.sqrt(np.diagonal(s))
    cosine = np.clip(s[rows, columns] / (root[rows] * root[columns]), -1.0, 1.0)
    first = phi(root[:, None] * x)
    second = cosine[:, None, None] * x[:, None] + np.sqrt(1 - cosine**2)[:, None, None] * x
    products = phi(root[columns][:, None, None] * second) @ w
    result = np.empty_like(s)
    found = ((first[rows] * products) * w).sum(axis=1)
    result[rows, columns] = result[columns, rows] = weight_variance * found + bias_variance
    return result


def symmetry_rows(
    cases: list[tuple[Activation, float, float]], covariance: Float[np.ndarray, "n n"], layers: int | float
) -> list[dict[str, float | str]]:
    """Where deep networks without batch normalization end: how equal norms and angles become.

    Args:
        cases: activation, weight variance and bias variance of each network.
        covariance: of the input.
        layers: how many, at least 1.

    Returns:
        Rows with the case, `norms`: relative range of the diagonal after the layers, `angles`: range of the cosines,
        and `cosine`: their mean.

    Raises:
        ValueError: layers is below 1; else as `plain_layer`.

    Example:
        >>> from bnlib.activations import activation
        >>> row, = symmetry_rows([(activation("tanh"), 0.8, 0.3)], np.diag([1.0, 2.0, 3.0]), 60)
        >>> row["norms"] < 1e-3 and row["angles"] < 1e-3
        True
    """
    if layers < 1:
        raise ValueError(f"layers must be at least 1, got {layers}.")
    rows = []
    for phi, weights, bias in cases:
        k = np.asarray(covariance, dtype=np.float64)
        for _ in range(int(layers)):
            k = plain_layer(k, phi, weights, bias)
            if bias == 0 and phi.degree is not None:
                k = k / np.diagonal(k).mean()  # a homogeneous layer hands its scale on
        diagonal = np.diagonal(k)
        cosines = (k / np.sqrt(np.outer(diagonal, diagonal)))[np.triu_indices(len(k), 1)]
        rows.append(
            {
                "activation": phi.name,
                "weight_variance": float(weights),
                "bias_variance": float(bias),
                "norms": float(np.ptp(diagonal) / diagonal.mean()),
                "angles": float(np.ptp(cosines)),
                "cosine": float(cosines.mean()),
            }
        )
    return rows
