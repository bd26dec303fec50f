"""The Fourier method on a normalized batch: averages of activations that are sums of waves.

b = sqrt(n) v with v uniform on the sphere in the n - 1 centered dimensions, so E exp(i <t, b>) is Omega(sqrt(n) |G t|),
with the characteristic function of that sphere, Omega(r) = Gamma(k/2) (2/r)^(k/2-1) J_(k/2-1)(r), k = n - 1, J a Bessel
function. For sin everything is a value of Omega; for 2 Phi(x) - 1 = int (2/pi) exp(-t^2/2) sin(t x)/t dt it is an
integral of such values. The source (arXiv 1902.08129, section E.2) treats any covariance and all integrable functions;
this is its method at BSB1, for functions with a known transform. NumPy float64; this module does not import torch.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, jv

from bnlib.checks import checked_integer_batch
from bnlib.mean_field import SymmetricFixedPoint, mean_chi

Values = Float[np.ndarray, "*shape"] | float | int
Grid = np.ndarray | float


def sphere_characteristic(r: Values, n: int | float) -> Values:
    """Omega(r): characteristic function of a uniform point on the unit sphere in n - 1 dimensions.

    Args:
        r: frequency, at least 0.
        n: batch size, at least 3.

    Raises:
        ValueError: n is not a whole number of at least 3, or r is negative.

    Example:
        >>> round(sphere_characteristic(1.0, 4), 12) == round(float(np.sin(1.0)), 12)  # three dimensions: sin(r)/r
        True
    """
    n = checked_integer_batch(n, 3)
    r = np.asarray(r, dtype=np.float64)
    if not (r >= 0).all():
        raise ValueError("r must be at least 0.")
    order = (n - 1) / 2 - 1
    safe = np.where(r < 1e-6, 1.0, r)
    bessel = np.exp(gammaln(order + 1) + order * np.log(2 / safe)) * jv(order, safe)
    value = np.where(r < 1e-6, 1 - r**2 / (2 * (n - 1)), bessel)
    return value if value.ndim else float(value)


def _wave_pair(s: Grid, t: Grid, n: int) -> Grid:
    """E[sin(s b_1) sin(t b_2)]: |G(s e_1 - t e_2)|^2 = s^2 + t^2 - (s-t)^2/n, and the same with s + t."""
    minus = n * (s**2 + t**2) - (s - t) ** 2
    plus = n * (s**2 + t**2) - (s + t) ** 2
    return (sphere_characteristic(np.sqrt(minus), n) - sphere_characteristic(np.sqrt(plus), n)) / 2


def _wave_own(s: Grid, t: Grid, n: int) -> Grid:
    """E[sin(s b_1) sin(t b_1)]."""
    size = np.sqrt(n - 1)
    return (sphere_characteristic(size * np.abs(s - t), n) - sphere_characteristic(size * (s + t), n)) / 2


def sine_fixed_point(n: int | float) -> SymmetricFixedPoint:
    """BSB1 of sin: diagonal (1 - Omega(2 sqrt(n-1)))/2, off-diagonal (Omega(sqrt(2n)) - Omega(sqrt(2n-4)))/2.

    Args:
        n: batch size, at least 3.

    Raises:
        ValueError: n is not a whole number of at least 3.

    Example:
        >>> from bnlib.activations import activation
        >>> from bnlib.mean_field import symmetric_fixed_point
        >>> abs(sine_fixed_point(8).cosine - symmetric_fixed_point(activation("sin"), 8).cosine) < 1e-13
        True
    """
    n = checked_integer_batch(n, 3)
    diagonal = float(_wave_own(1.0, 1.0, n))
    off = float(sphere_characteristic(np.sqrt(2 * n), n) - sphere_characteristic(np.sqrt(2 * n - 4), n)) / 2
    return SymmetricFixedPoint(n, diagonal, off, off / diagonal, diagonal - off)


def sine_cross_batch_decay(n: int | float) -> float:
    """lambda_cb of sin: E[b sin b] = -d/dt Omega(t sqrt(n-1)) at 1 is again a Bessel function.

    Args:
        n: batch size, at least 3.

    Raises:
        ValueError: n is not a whole number of at least 3.

    Example:
        >>> from bnlib.activations import activation
        >>> from bnlib.mean_field import cross_batch_decay
        >>> bool(abs(sine_cross_batch_decay(8) - cross_batch_decay(activation("sin"), 8)) < 1e-13)
        True
    """
    n = checked_integer_batch(n, 3)
    # Omega' in k dimensions is -(r/k) times Omega in k + 2 dimensions.
    along = float(sphere_characteristic(math.sqrt(n - 1), n + 2))
    return mean_chi(n - 1) ** 2 * n / ((n - 1) ** 2 * sine_fixed_point(n).centered) * along**2


def error_function_fixed_point(n: int | float, nodes: int = 60) -> SymmetricFixedPoint:
    """BSB1 of 2 Phi(x) - 1 by a double integral over frequencies.

    Args:
        n: batch size, at least 4.
        nodes: Gauss-Legendre nodes for each frequency.

    Raises:
        ValueError: n is not a whole number of at least 4, or nodes is below 4.

    Example:
        >>> from bnlib.activations import activation
        >>> from bnlib.mean_field import symmetric_fixed_point
        >>> found, known = error_function_fixed_point(8), symmetric_fixed_point(activation("erf-like"), 8)
        >>> abs(found.diagonal - known.diagonal) < 1e-10, abs(found.off_diagonal - known.off_diagonal) < 1e-10
        (True, True)
    """
    n = checked_integer_batch(n, 4)
    if nodes < 4:
        raise ValueError(f"nodes must be at least 4, got {nodes}.")
    x, w = np.polynomial.legendre.leggauss(nodes)
    t, w = 4.5 * (1 + x), 4.5 * w  # exp(-t^2/2) is below 1e-17 beyond 9
    density = w * 2 / np.pi * np.exp(-(t**2) / 2) / t
    s, u, both = t[:, None], t[None, :], density[:, None] * density
    diagonal, off = float((both * _wave_own(s, u, n)).sum()), float((both * _wave_pair(s, u, n)).sum())
    return SymmetricFixedPoint(n, diagonal, off, off / diagonal, diagonal - off)
