"""Large batches: the multipliers as functions of the activation alone, and how many layers convergence takes.

As n grows, a normalized batch becomes n independent standard Gaussians x, and

    lambda_L -> d log Var phi(sqrt(q) x) / d log q at q = 1     (elasticity of the variance),
    lambda_M -> a_1^2 / sum_{l >= 1} a_l^2                      (share of the linear Hermite coefficient).

So lambda_L reaches 1 exactly where the variance of phi grows at least in proportion to that of its input, and lambda_M
never exceeds 1. NumPy float64; this module does not import torch.
"""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from bnlib.activations import Activation
from bnlib.checks import checked_integer_batch
from bnlib.gegenbauer import gegenbauer, harmonic_dimension
from bnlib.mean_field import LINEARIZATION_MINIMUM, forward_multipliers
from bnlib.v_transform import batch_norm_relu_transform


@lru_cache(maxsize=4)
def gaussian_rule(nodes: int = 120) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Quadrature for a standard Gaussian, with the border of its two pieces at 0.

    Args:
        nodes: Gauss-Legendre nodes on each side of 0.

    Returns:
        Nodes and weights of sum 1.

    Raises:
        ValueError: nodes is below 4.

    Example:
        >>> x, w = gaussian_rule()
        >>> round(float(w @ x**4), 12)
        3.0
    """
    if nodes < 4:
        raise ValueError(f"nodes must be at least 4, got {nodes}.")
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = 6 * (1 + x), 6 * w
    w = w * np.exp(-(x**2) / 2)
    x, w = np.concatenate([-x, x]), np.concatenate([w, w])
    return x, w / w.sum()


def norm_elasticity(phi: Activation) -> float:
    """Limit of lambda_L: E[(x^2 - 1)(phi - E phi)^2] / (2 Var phi).

    Args:
        phi: activation; kinks are allowed at 0 only.

    Raises:
        ValueError: phi is constant.

    Example:
        >>> from bnlib.activations import activation
        >>> round(norm_elasticity(activation("relu")), 10), round(norm_elasticity(activation("square")), 10)
        (1.0, 2.0)
    """
    x, w = gaussian_rule()
    centered, variance = _centered(phi)
    return float(w @ ((x**2 - 1) * centered**2)) / (2 * variance)


def linear_share(phi: Activation) -> float:
    """Limit of lambda_M and of the cross-batch decay: E[x phi]^2 / Var phi, at most 1.

    Args:
        phi: activation.

    Raises:
        ValueError: phi is constant.

    Example:
        >>> from bnlib.activations import activation
        >>> round(linear_share(activation("relu")) * 2 * (math.pi - 1) / math.pi, 10)
        1.0
    """
    x, w = gaussian_rule()
    centered, variance = _centered(phi)
    return float(w @ (x * centered)) ** 2 / variance


def _centered(phi: Activation) -> tuple[np.ndarray, float]:
    x, w = gaussian_rule()
    values = phi(x)
    centered = values - w @ values
    variance = float(w @ centered**2)
    if not variance > 1e-14 * float(w @ values**2):
        raise ValueError(f"phi must vary, but {phi.name} is constant.")
    return centered, variance


def pure_degree(degree: int, n: int | float) -> Activation:
    """The activation whose Gegenbauer expansion over a normalized batch of n has one term, a_l = 1.

    Args:
        degree: l, at least 1.
        n: batch size, at least 4.

    Raises:
        ValueError: degree is below 1, or n is not a whole number of at least 4.

    Example:
        >>> pure_degree(1, 8)(np.array([-1.0, 2.0]))
        array([-1.,  2.])
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    if degree < 1:
        raise ValueError(f"degree must be at least 1, got {degree}.")
    size = math.sqrt(float(harmonic_dimension(np.array([float(degree)]), n)[0]))

    def function(x: np.ndarray) -> np.ndarray:
        return size * gegenbauer(np.clip(x / math.sqrt(n - 1), -1, 1), degree, n)[degree]

    return Activation(f"Gegenbauer {degree}", function, lambda x: np.full_like(x, np.nan))


def degree_excess(n: int | float, degrees: int | float) -> list[float]:
    """(w_l - v_l) / v_l for l = 1, ..., degrees: lambda_L - 1 of the activation that has only degree l.

    The source writes lambda_L as a ratio of quadratic forms in the coefficients a_l; the terms with a_l^2 are read here
    as w_l above and v_l = 1 - P_l(-1/(n-1)) below.

    Args:
        n: batch size, at least 4.
        degrees: the largest l.

    Raises:
        ValueError: n is not a whole number of at least 4, or degrees is below 1.

    Example:
        >>> round(degree_excess(10, 1)[0] * 11, 10)  # the identity: -2/(n+1)
        -2.0
    """
    if degrees < 1:
        raise ValueError(f"degrees must be at least 1, got {degrees}.")
    return [forward_multipliers(pure_degree(l, n), n).norms - 1 for l in range(1, int(degrees) + 1)]  # noqa: E741


def norm_deviation(covariance: Float[np.ndarray, "n n"]) -> float:
    """Relative size of the part of a centered covariance in the space of norm fluctuations.

    Args:
        covariance: shape (n, n).

    Example:
        >>> norm_deviation(np.eye(5)) < 1e-15
        True
    """
    k = covariance - covariance.mean(axis=0)
    diagonal = np.diagonal(k - k.mean(axis=1, keepdims=True))
    return float(np.sqrt(((diagonal / diagonal.mean() - 1) ** 2).mean()))


def relu_convergence(
    covariance: Float[np.ndarray, "n n"], layers: int | float, factor: float | int = 1e-3
) -> tuple[list[float], int | None]:
    """Norm fluctuations over layers of infinite width with batch normalization and ReLU.

    Args:
        covariance: of the input, shape (n, n), n >= 3.
        layers: at most so many.
        factor: stop when the fluctuations are below this share of those after the first layer.

    Returns:
        `norm_deviation` after each layer, and the number of layers after the first that it took; None if it did not.

    Raises:
        ValueError: layers is below 2, or factor is not between 0 and 1.

    Example:
        >>> path, count = relu_convergence(np.diag([1.0, 2.0, 3.0, 4.0]), 40)
        >>> len(path) == count + 1 and path[-1] < 1e-3 * path[0]
        True
    """
    if layers < 2:
        raise ValueError(f"layers must be at least 2, got {layers}.")
    if not 0 < factor < 1:
        raise ValueError(f"factor must lie between 0 and 1, got {factor}.")
    path = []
    for layer in range(int(layers)):
        covariance = batch_norm_relu_transform(covariance)
        path.append(norm_deviation(covariance))
        if path[-1] < factor * path[0]:
            return path, layer
    return path, None
