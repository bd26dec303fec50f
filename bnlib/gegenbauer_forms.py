"""Quadratic forms in an activation's Gegenbauer coefficients: forward multipliers, and the form that drives gradients.

Notation of `bnlib.gegenbauer`: t_i = <u_i, v>, phi(sqrt(n-1) t) = sum_l a_l p_l(t), P_l normalized to P_l(1) = 1,
c = -1/(n-1). Multiplication by t is the Jacobi matrix T of the orthonormal p_l, and
E[p_l(t_1) p_m(t_2)] = delta_lm P_l(<u_1, u_2>). So every average of a polynomial in t_1, t_2 times phi(b_1) phi(b_2) is
a quadratic form in the a_l. With Q = (n-1) T^2 - 1, the score of the multipliers (`bnlib.mean_field`) turns into

    lambda_L = sum_lm a_l w_lm a_m / sum_l v_l a_l^2,   w_lm = Q_lm (1 - (n-1)/(n-2) (P_l(c) + P_m(c))) / 2,
    v_l = 1 - P_l(c),

where w couples l with l and l +- 2 only, and lambda_M likewise. The entries with l = 0 vanish: shifts of the activation
do not matter (arXiv 1902.08129, section F.3.2). The form of gradients is, for any cosine <u_1, u_2>,

    E[(<u_1,u_2> - t_1 t_2) f'(t_1) g'(t_2)] = sum_l l (l+n-3) a_l b_l P_l(<u_1, u_2>),

diagonal in the degrees, since l (l+n-3) are the eigenvalues of the sphere's Laplace operator (section E.4).
NumPy float64; this module does not import torch.
"""

import math

import numpy as np
from jaxtyping import Float

from bnlib.activations import Activation
from bnlib.checks import checked_integer_batch
from bnlib.gegenbauer import Expansion, gegenbauer, harmonic_dimension
from bnlib.mean_field import LINEARIZATION_MINIMUM, ForwardMultipliers


def jacobi_matrix(degree: int, n: int | float) -> Float[np.ndarray, "degrees degrees"]:
    """Multiplication by t in the orthonormal polynomials of degrees 0 to `degree`: symmetric, zero diagonal.

    Args:
        degree: the largest, at least 1.
        n: batch size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4, or degree is below 1.

    Example:
        >>> round(float(jacobi_matrix(2, 8)[0, 1] ** 2), 12) == round(1 / 7, 12)  # E t^2 = 1/(n-1)
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    if degree < 1:
        raise ValueError(f"degree must be at least 1, got {degree}.")
    k, order = n - 1, np.arange(float(degree))
    beside = np.sqrt((order + 1) * (order + k - 2) / ((2 * order + k - 2) * (2 * order + k)))
    return np.diag(beside, 1) + np.diag(beside, -1)


def multiplier_forms(
    degree: int, n: int | float
) -> tuple[Float[np.ndarray, " degrees"], Float[np.ndarray, "degrees degrees"], Float[np.ndarray, "degrees degrees"]]:
    """The forms v (diagonal), w and m with mu = a.v.a, lambda_L = a.w.a / mu and lambda_M = a.m.a / mu.

    Args:
        degree: the largest, at least 1.
        n: batch size, at least 4.

    Returns:
        v, shape (degree + 1,); w and m, shape (degree + 1, degree + 1), in which only l, l +- 2 are coupled.

    Raises:
        ValueError: n is not a whole number of at least 4, or degree is below 1.

    Example:
        >>> v, w, m = multiplier_forms(4, 8)
        >>> round(float(w[1, 1] / v[1]) * 9, 12), round(float(m[1, 1] / v[1]) * 9, 12)  # the identity: (n-1)/(n+1)
        (7.0, 7.0)
        >>> bool(abs(v[0]) + abs(w[0]).max() + abs(m[0]).max() < 1e-14)
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    wide = jacobi_matrix(degree + 1, n)  # one degree more, so that the product is exact in the corner
    size = degree + 1
    values = gegenbauer(-1.0 / (n - 1), degree + 1, n)
    square, between = (wide @ wide)[:size, :size], ((wide * values) @ wide)[:size, :size]
    level = values[:size]
    pair = level[:, None] + level
    w = ((n - 1) * square - np.eye(size)) * (1 - (n - 1) / (n - 2) * pair) / 2
    # What the other n - 2 entries add once they are averaged given the two that phi sees.
    rest = 2 / ((n - 2) * (n - 3))
    product, squares, constant = 1 + 2 / (n - 2) + rest, 1 / (n - 2) + rest, n / ((n - 2) * (n - 3))
    m = (n - 1) * (product * between + squares * square * pair) - constant * np.diag(level)
    return 1 - level, w, (n - 1) / n * m


def multipliers_by_degree(expansion: Expansion) -> ForwardMultipliers:
    """lambda_L and lambda_M from the coefficients of the activation; exact for a polynomial.

    Args:
        expansion: of the activation; its n is at least 4.

    Raises:
        ValueError: n < 4.

    Example:
        >>> from bnlib.activations import activation
        >>> from bnlib.gegenbauer import expand
        >>> from bnlib.mean_field import forward_multipliers
        >>> phi = activation("tanh")
        >>> abs(multipliers_by_degree(expand(phi, 8)).norms - forward_multipliers(phi, 8).norms) < 1e-12
        True
    """
    a = expansion.coefficients
    v, w, m = multiplier_forms(len(a) - 1, expansion.n)
    mu = float(v @ a**2)
    return ForwardMultipliers(0.0, float(a @ w @ a) / mu, float(a @ m @ a) / mu)


def _pair(n: int, cosine: float, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quadrature for (t_1, t_2) along two unit vectors at a cosine, for smooth functions."""
    between = math.acos(cosine)
    angle = 2 * math.pi * np.arange(nodes) / nodes
    x, w = np.polynomial.legendre.leggauss(nodes)
    psi = math.pi / 4 * (1 + x)
    weights = w * np.sin(psi) * np.cos(psi) ** (n - 4)
    radius, weights = np.sin(psi)[:, None], np.repeat(weights[:, None] / weights.sum() / nodes, nodes, axis=1)
    return (radius * np.cos(angle)).ravel(), (radius * np.cos(angle - between)).ravel(), weights.ravel()


def dirichlet_form(phi: Activation, other: Activation, n: int | float, cosine: float | int, nodes: int = 120) -> float:
    """E[(<u_1,u_2> - t_1 t_2) f'(t_1) g'(t_2)] by integration over the sphere, f(t) = phi(sqrt(n-1) t).

    Args:
        phi: activation with its derivative, smooth.
        other: the second one, for g.
        n: batch size, at least 4.
        cosine: <u_1, u_2>, in [-1, 1]; the samples of a batch have -1/(n-1), and 1 is one sample alone.
        nodes: of the rule, for the radius and for the angle.

    Raises:
        ValueError: n is not a whole number of at least 4, or cosine leaves [-1, 1].

    Example:
        >>> from bnlib.activations import activation
        >>> phi = activation("identity")  # 7 degrees of freedom: l (l+n-3) = 6, a_1^2 = 1
        >>> round(dirichlet_form(phi, phi, 8, 0.3), 12) == round(6 * 0.3, 12)
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    if not -1 <= cosine <= 1:
        raise ValueError(f"cosine must lie between -1 and 1, got {cosine}.")
    first, second, weights = _pair(n, float(cosine), nodes)
    scale = math.sqrt(n - 1)
    slopes = (n - 1) * phi.derivative(scale * first) * other.derivative(scale * second)
    return float(weights @ ((cosine - first * second) * slopes))


def dirichlet_form_by_degree(one: Expansion, two: Expansion, cosine: float | int) -> float:
    """The same from the coefficients: sum_l l (l+n-3) a_l b_l P_l(cosine).

    Args:
        one: expansion of phi.
        two: expansion of the other activation, to the same degree and for the same batch size.
        cosine: in [-1, 1].

    Raises:
        ValueError: the expansions differ in degree or batch size, or cosine leaves [-1, 1].

    Example:
        >>> from bnlib.activations import activation
        >>> from bnlib.gegenbauer import expand
        >>> e = expand(activation("identity"), 8, 4)
        >>> round(dirichlet_form_by_degree(e, e, 1), 12)
        6.0
    """
    if one.n != two.n or len(one.coefficients) != len(two.coefficients):
        raise ValueError("the two expansions must be of one degree and one batch size.")
    degrees = np.arange(len(one.coefficients))
    values = gegenbauer(float(cosine), len(degrees) - 1, one.n)
    return float((degrees * (degrees + one.n - 3) * one.coefficients * two.coefficients) @ values)


def polynomial(degree: int, n: int | float) -> Activation:
    """The orthonormal polynomial p_l of t = x / sqrt(n-1) as an activation, with its derivative.

    Args:
        degree: l, at least 1.
        n: batch size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4, or degree is below 1.

    Example:
        >>> p = polynomial(1, 8)
        >>> np.round(p(np.array([2.0])), 12).tolist(), np.round(p.derivative(np.array([0.0])), 12).tolist()
        ([2.0], [1.0])
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    if degree < 1:
        raise ValueError(f"degree must be at least 1, got {degree}.")
    size, scale = math.sqrt(float(harmonic_dimension(np.array([float(degree)]), n)[0])), math.sqrt(n - 1)

    def function(x: np.ndarray) -> np.ndarray:
        return size * gegenbauer(np.clip(x / scale, -1, 1), degree, n)[degree]

    def derivative(x: np.ndarray) -> np.ndarray:
        # P_l' = l (l+n-3)/(n-2) times the polynomial of degree l - 1 in two dimensions more.
        slope = gegenbauer(np.clip(x / scale, -1, 1), max(degree - 1, 1), n + 2)[degree - 1]
        return size / scale * degree * (degree + n - 3) / (n - 2) * slope

    return Activation(f"p_{degree}", function, derivative)


def dirichlet_matrix(degrees: int, n: int | float, cosine: float | int) -> Float[np.ndarray, "degrees degrees"]:
    """`dirichlet_form` between all p_l of degrees 1 to `degrees`: diagonal, by the source's Theorem E.47.

    Args:
        degrees: the largest, at least 1.
        n: batch size, at least 4.
        cosine: in [-1, 1].

    Raises:
        ValueError: as `dirichlet_form` and `polynomial`.

    Example:
        >>> np.abs(np.round(dirichlet_matrix(2, 8, 1.0), 9)).tolist()  # l (l + 5)
        [[6.0, 0.0], [0.0, 14.0]]
    """
    basis = [polynomial(l, n) for l in range(1, degrees + 1)]  # noqa: E741
    return np.array([[dirichlet_form(one, two, n, cosine) for two in basis] for one in basis])
