"""Two batches through one network: how a common covariance is lost, in full and not only near the fixed point.

Start with two batches at BSB1 whose centered cross-covariance is rho mu G, 0 <= rho <= 1 (1: the same batch twice). A
layer keeps this form and maps rho to

    F(rho) = sum_l w_l tau_l(rho) / sum_l w_l,   tau_l(rho) = E[P_l(<v, v'>)]
           = Gamma((k+l)/2)^2 / (Gamma(k/2) Gamma(k/2+l)) rho^l 2F1(l/2, l/2; l + k/2; rho^2),   k = n - 1,

w_l the Gegenbauer weights of `bnlib.gegenbauer` and v, v' the directions of two Gaussian vectors with correlation rho.
All coefficients are positive, so F is convex with F(1) = 1: with a slope F'(0) = lambda_cb below 1, rho falls to 0 from
every rho < 1. NumPy float64; this module does not import torch.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, hyp2f1

from bnlib.activations import Activation
from bnlib.checks import checked_integer_batch
from bnlib.gegenbauer import expand
from bnlib.mean_field import mean_chi, symmetric_fixed_point

Values = Float[np.ndarray, "*shape"] | float | int


def direction_correlation(rho: Values, degree: int, n: int | float) -> Values:
    """tau_l(rho): mean of P_l(<v, v'>) for the directions of two Gaussian vectors in n - 1 dimensions.

    Args:
        rho: correlation of the vectors, in [0, 1].
        degree: l, at least 0.
        n: batch size, at least 3.

    Raises:
        ValueError: rho leaves [0, 1], degree is negative, or n is not a whole number of at least 3.

    Example:
        >>> direction_correlation(1.0, 3, 8), direction_correlation(0.5, 0, 8)
        (1.0, 1.0)
    """
    k = checked_integer_batch(n, 3) - 1
    rho = np.asarray(rho, dtype=np.float64)
    if not ((rho >= 0) & (rho <= 1)).all():
        raise ValueError("rho must lie between 0 and 1.")
    if degree < 0:
        raise ValueError(f"degree must be at least 0, got {degree}.")
    half = degree / 2
    factor = math.exp(2 * gammaln(k / 2 + half) - gammaln(k / 2) - gammaln(k / 2 + degree))
    value = np.where(rho == 1, 1.0, factor * rho**degree * hyp2f1(half, half, degree + k / 2, np.minimum(rho, 1) ** 2))
    return value if value.ndim else float(value)


def correlation_map(phi: Activation, n: int | float, rho: Values, degree: int = 60) -> Values:
    """F(rho): correlation of two batches after a layer of infinite width.

    Args:
        phi: activation.
        n: batch size, at least 3.
        rho: correlation before, in [0, 1].
        degree: of the expansion; what is beyond it is counted with tau of the next degree.

    Raises:
        ValueError: rho leaves [0, 1], or n is not a whole number of at least 3.

    Example:
        >>> from bnlib.activations import activation
        >>> round(correlation_map(activation("relu"), 8, 1e-6) / 1e-6, 4)
        0.7097
    """
    expansion = expand(phi, n, degree)
    weights = np.append(expansion.weights, max(expansion.missing, 0.0))
    weights[0] = 0.0
    rho = np.asarray(rho, dtype=np.float64)
    total = sum(w * direction_correlation(rho, l, n) for l, w in enumerate(weights) if w > 0)  # noqa: E741
    value = np.asarray(total / weights.sum())
    return value if value.ndim else float(value)


def largest_decay(n: int | float) -> float:
    """The largest lambda_cb over all activations: (E chi)^2/(n-1), attained by phi(x) = x alone, up to a x + b.

    lambda_cb is this number times w_1 / sum_l w_l, a share that is 1 only if all other weights are 0.

    Args:
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(largest_decay(8), 4), round(1e4 * (1 - largest_decay(1e4)), 2)  # 1 - 1/(2n)
        (0.9313, 0.5)
    """
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    return mean_chi(n - 1) ** 2 / (n - 1)


def mutual_information(rho: Values, n: int | float) -> Values:
    """Information, in nats, that a neuron's centered pre-activations over one batch hold about those over the other.

    -(n-1)/2 log(1 - rho^2), for Gaussian vectors with cross-covariance rho mu G.

    Args:
        rho: correlation, in [0, 1).
        n: batch size, at least 2.

    Raises:
        ValueError: rho is not in [0, 1), or n < 2.

    Example:
        >>> mutual_information(0.0, 8)
        0.0
    """
    rho = np.asarray(rho, dtype=np.float64)
    if not ((rho >= 0) & (rho < 1)).all():
        raise ValueError("rho must be at least 0 and below 1: two equal batches share infinitely much.")
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    value = -(n - 1) / 2 * np.log1p(-(rho**2)) + 0.0
    return value if value.ndim else float(value)


def correlation_path(phi: Activation, n: int | float, rho: float | int, layers: int) -> list[float]:
    """Rho before the first layer and after each layer of infinite width.

    Args:
        phi: activation.
        n: batch size, at least 3.
        rho: correlation at the start, in [0, 1].
        layers: number of layers.

    Raises:
        ValueError: as `correlation_map`.

    Example:
        >>> from bnlib.activations import activation
        >>> path = correlation_path(activation("relu"), 8, 0.9, 3)
        >>> path[0] > path[1] > path[2] > path[3]
        True
    """
    path = [float(rho)]
    for _ in range(layers):
        path.append(float(correlation_map(phi, n, path[-1])))
    return path


def backward_correlation(
    phi: Activation, n: int | float, draws: int, generator: np.random.Generator
) -> tuple[float, float]:
    """Factor per layer on the covariance of the gradients of two independent batches at BSB1, from drawn Jacobians.

    The same centered gradient is sent back through two batches that share the weights and nothing else.

    Args:
        phi: activation with its derivative.
        n: batch size, at least 5, for a finite variance.
        draws: pairs of batches, at least 2.
        generator: source of the randomness.

    Returns:
        Estimate and standard error.

    Raises:
        ValueError: n is not a whole number of at least 5, or draws is below 2.

    Example:
        >>> from bnlib.activations import activation
        >>> found, error = backward_correlation(activation("relu"), 8, 20000, np.random.default_rng(0))
        >>> bool(abs(found - 0.7097) < 5 * error)
        True
    """
    n = checked_integer_batch(n, 5)
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}.")
    mu = symmetric_fixed_point(phi, n).centered
    gradient = generator.standard_normal((draws, n))
    gradient -= gradient.mean(axis=1, keepdims=True)
    back = []
    for _ in range(2):
        h = generator.standard_normal((draws, n)) * math.sqrt(mu)
        h -= h.mean(axis=1, keepdims=True)
        length = np.linalg.norm(h, axis=1)[:, None]
        v = h / length
        g = phi.derivative(math.sqrt(n) * v) * gradient
        g -= (g * v).sum(axis=1, keepdims=True) * v
        back.append(math.sqrt(n) / length * (g - g.mean(axis=1, keepdims=True)))
    products = (back[0] * back[1]).sum(axis=1) / (n - 1)
    return float(products.mean()), float(products.std(ddof=1) / math.sqrt(draws))
