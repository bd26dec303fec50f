"""Gegenbauer expansion of an activation over a normalized batch, and what it says about fixed point and gradients.

For v uniform on the unit sphere of the hyperplane orthogonal to (1, ..., 1), the entries of the normalized batch are
sqrt(n-1) <u_i, v> with unit vectors u_i at mutual cosine -1/(n-1). Expand phi(sqrt(n-1) t) = sum_l a_l p_l(t) in the
polynomials that are orthonormal for the law of t = <u_1, v>; with P_l the Gegenbauer polynomial of degree l normalized
to P_l(1) = 1 (for the sphere in n - 1 dimensions), E[phi(b_i) phi(b_j)] = sum_l a_l^2 P_l(<u_i, u_j>), and the sphere's
Laplace operator has the eigenvalue -l (l + n - 3) on degree l. Hence, with weights w_l = a_l^2 (1 - P_l(-1/(n-1))),

    mu = sum_l w_l,   lambda_G = sum_l w_l l (l+n-3) / ((n-3) mu),   lambda_cb = (E chi_{n-1})^2 / (n-1) * w_1 / mu:

the gradient's growth is a weighted mean of l (l+n-3)/(n-3), least at l = 1, the identity (arXiv 1902.08129,
sections F.2.3, G.1.2 and I). NumPy float64; this module does not import torch.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bnlib.activations import Activation
from bnlib.checks import checked_integer_batch
from bnlib.mean_field import GRADIENT_MINIMUM, mean_chi
from bnlib.sphere import one_entry


@dataclass(frozen=True)
class Expansion:
    """An activation over a normalized batch, by degree.

    Attributes:
        n: batch size.
        coefficients: a_0, ..., a_degree, shape (degree + 1,).
        off_diagonal: P_l(-1/(n-1)), shape (degree + 1,).
        missing: E[phi(b_1)^2] - sum of a_l^2, what the degrees beyond hold; 0 up to rounding for a polynomial.
    """

    n: int
    coefficients: Float[np.ndarray, " degrees"]
    off_diagonal: Float[np.ndarray, " degrees"]
    missing: float

    @property
    def weights(self) -> Float[np.ndarray, " degrees"]:
        """w_l = a_l^2 (1 - P_l(-1/(n-1))), shape (degree + 1,)."""
        return self.coefficients**2 * (1 - self.off_diagonal)


def gegenbauer(
    t: Float[np.ndarray, "*shape"] | float | int, degree: int, n: int | float
) -> Float[np.ndarray, "degrees *shape"]:
    """Gegenbauer polynomials P_0, ..., P_degree of the sphere in n - 1 dimensions, normalized to P_l(1) = 1.

    Args:
        t: points in [-1, 1], any shape.
        degree: the largest, at least 1.
        n: batch size, at least 3.

    Returns:
        The values, degree first.

    Raises:
        ValueError: n is not a whole number of at least 3, degree is below 1, or t leaves [-1, 1].

    Example:
        >>> gegenbauer(0.5, 3, 4).tolist()  # n = 4: Legendre polynomials
        [1.0, 0.5, -0.125, -0.4375]
    """
    n = checked_integer_batch(n, 3)
    t = np.asarray(t, dtype=np.float64)
    if degree < 1:
        raise ValueError(f"degree must be at least 1, got {degree}.")
    if not (np.abs(t) <= 1 + 1e-12).all():
        raise ValueError("t must lie between -1 and 1.")
    values = [np.ones_like(t), t]
    for order in range(1, degree):
        values.append(((2 * order + n - 3) * t * values[-1] - order * values[-2]) / (order + n - 3))
    return np.stack(values)


def harmonic_dimension(degrees: Float[np.ndarray, " k"], n: int | float) -> Float[np.ndarray, " k"]:
    """Number of independent spherical harmonics of each degree in n - 1 dimensions; E[P_l(t)^2] is its inverse.

    Args:
        degrees: l, whole numbers of at least 0.
        n: batch size, at least 3.

    Raises:
        ValueError: n is not a whole number of at least 3.

    Example:
        >>> harmonic_dimension(np.arange(4.0), 4)  # 2 l + 1 in three dimensions
        array([1., 3., 5., 7.])
    """
    m = checked_integer_batch(n, 3) - 1
    degrees = np.asarray(degrees, dtype=np.float64)
    if m == 2:
        return np.where(degrees == 0, 1.0, 2.0)
    return (2 * degrees + m - 2) / (m - 2) * np.exp(gammaln(degrees + m - 2) - gammaln(degrees + 1) - gammaln(m - 2))


def expand(phi: Activation, n: int | float, degree: int = 60) -> Expansion:
    """Expand an activation over a normalized batch.

    Args:
        phi: activation; kinks are allowed at 0 only.
        n: batch size, at least 3.
        degree: of the expansion, at least 1.

    Returns:
        The coefficients, and how much of the mean square they miss.

    Raises:
        ValueError: n is not a whole number of at least 3, or degree is below 1.

    Example:
        >>> from bnlib.activations import activation
        >>> expansion = expand(activation("square"), 8, degree=4)  # b^2 has degrees 0 and 2
        >>> np.round(expansion.coefficients, 10) + 0.0, round(expansion.missing, 10) + 0.0
        (array([1.        , 0.        , 1.15470054, 0.        , 0.        ]), 0.0)
    """
    n = checked_integer_batch(n, 3)
    x, w = one_entry(n, max(96, degree + 40))
    values = phi(x)
    degrees = np.arange(degree + 1.0)
    polynomials = gegenbauer(x / np.sqrt(n - 1), degree, n) * np.sqrt(harmonic_dimension(degrees, n))[:, None]
    coefficients = polynomials @ (w * values)
    off_diagonal = gegenbauer(-1.0 / (n - 1), degree, n)
    return Expansion(n, coefficients, off_diagonal, float(w @ values**2 - coefficients @ coefficients))


def gradient_growth_by_degree(expansion: Expansion) -> float:
    """lambda_G from the expansion: the mean of l (l+n-3)/(n-3) with weights w_l.

    The tail counts with l^2, so for an activation with a kink this converges slowly, from below.

    Args:
        expansion: of the activation; its n is at least 4.

    Raises:
        ValueError: n < 4.

    Example:
        >>> from bnlib.activations import activation
        >>> round(gradient_growth_by_degree(expand(activation("identity"), 8)), 12)  # (n-2)/(n-3)
        1.2
    """
    n = checked_integer_batch(expansion.n, GRADIENT_MINIMUM)
    degrees = np.arange(len(expansion.coefficients))
    weights = expansion.weights
    return float(weights @ (degrees * (degrees + n - 3)) / ((n - 3) * weights.sum()))


def cross_batch_decay_by_degree(expansion: Expansion) -> float:
    """lambda_cb from the expansion: (E chi_{n-1})^2 / (n-1) times the weight of degree 1.

    Args:
        expansion: of the activation.

    Example:
        >>> from bnlib.activations import activation
        >>> from bnlib.mean_field import cross_batch_decay
        >>> phi = activation("tanh")
        >>> abs(cross_batch_decay_by_degree(expand(phi, 8)) - cross_batch_decay(phi, 8)) < 1e-9
        True
    """
    n, weights = expansion.n, expansion.weights
    return float(mean_chi(n - 1) ** 2 / (n - 1) * weights[1] / weights.sum())
