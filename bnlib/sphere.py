"""Averages over a normalized batch: quadrature for one and for two samples of a uniform point on the sphere.

If the pre-activations of one neuron over a batch of n are Gaussian with a covariance of equal diagonal and equal
off-diagonal entries, batch normalization (recentering, then division by the standard deviation) turns them into
sqrt(n) v, with v uniform on the unit sphere of the hyperplane orthogonal to (1, ..., 1) (arXiv 1902.08129, section
E.3). Its entries are not independent, but any two of them have a simple law:

* one entry is v_1 = sqrt((n-1)/n) sin(psi) with density proportional to cos(psi)^(n-3), -pi/2 < psi < pi/2;
* two entries are the components, along two unit vectors at the cosine -1/(n-1), of a point of the disc whose radius
  sin(psi) has density proportional to sin(psi) cos(psi)^(n-4), times sqrt((n-1)/n).

Kinks of an activation at 0 lie on the borders of the pieces, so Gauss-Legendre rules converge geometrically.
NumPy float64; this module does not import torch.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from bnlib.checks import checked_integer_batch

# The radial weight cos^(n-3) falls like exp(-(n-3) psi^2 / 2); beyond this many standard deviations it is < 1e-40.
_REACH = 14.0


@dataclass(frozen=True)
class PairRule:
    """A quadrature rule for two entries of the normalized batch.

    Attributes:
        first: nodes sqrt(n) v_1, shape (k,).
        second: nodes sqrt(n) v_2, shape (k,).
        weights: positive, sum 1, shape (k,).
    """

    first: Float[np.ndarray, " k"]
    second: Float[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]

    def mean(self, values: Float[np.ndarray, " k"]) -> float:
        """The average of values given at the nodes."""
        return float(self.weights @ values)


def _legendre(lower: float, upper: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (lower + upper) / 2 + (upper - lower) / 2 * x, (upper - lower) / 2 * w


def _frozen(array: np.ndarray) -> np.ndarray:
    """Read-only, since the rules are cached."""
    array.flags.writeable = False
    return array


def _reach(exponent: int) -> float:
    return math.pi / 2 if exponent <= 0 else min(math.pi / 2, _REACH / math.sqrt(exponent))


@lru_cache(maxsize=64)
def one_entry(n: int | float, nodes: int = 96) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Quadrature rule for one entry of the normalized batch.

    Args:
        n: batch size, at least 2.
        nodes: Gauss-Legendre nodes on each side of 0.

    Returns:
        Nodes sqrt(n) v_1 and weights of sum 1. They are shared between calls and cannot be written to.

    Raises:
        ValueError: n is not a whole number of at least 2.

    Example:
        >>> x, w = one_entry(8)
        >>> round(float(w @ x**2), 12), round(float(w @ x**4), 12)  # 1 and 3 (n-1)/(n+1)
        (1.0, 2.333333333333)
    """
    n = checked_integer_batch(n, 2)
    if n == 2:
        return _frozen(np.array([-1.0, 1.0])), _frozen(np.array([0.5, 0.5]))
    psi, weights = _legendre(0.0, _reach(n - 3), nodes)
    weights = weights * np.cos(psi) ** (n - 3)
    x = math.sqrt(n - 1) * np.sin(psi)
    weights = np.concatenate([weights, weights])
    return _frozen(np.concatenate([-x, x])), _frozen(weights / weights.sum())


@lru_cache(maxsize=32)
def two_entries(n: int | float, nodes: int = 64) -> PairRule:
    """Quadrature rule for two different entries of the normalized batch.

    Args:
        n: batch size, at least 2.
        nodes: Gauss-Legendre nodes for the radius, and for each of four sectors of the angle.

    Returns:
        The rule, with nodes in units in which an entry has mean square 1.

    Raises:
        ValueError: n is not a whole number of at least 2.

    Example:
        >>> rule = two_entries(8)
        >>> round(rule.mean(rule.first * rule.second) * 7, 12)  # -1/(n-1)
        -1.0
    """
    n = checked_integer_batch(n, 2)
    if n == 2:
        ends = np.array([-1.0, 1.0])
        return PairRule(_frozen(ends), _frozen(-ends), _frozen(np.array([0.5, 0.5])))
    between = math.acos(-1.0 / (n - 1))
    # v_1 = 0 and v_2 = 0 cut the circle of directions into four sectors.
    cuts = sorted([-math.pi / 2, math.pi / 2, between - math.pi / 2, between + math.pi / 2])
    cuts = [*cuts, cuts[0] + 2 * math.pi]
    sectors = [_legendre(a, b, nodes) for a, b in pairwise(cuts)]
    angle, angle_weights = (np.concatenate(parts) for parts in zip(*sectors, strict=True))
    if n == 3:
        radius, radius_weights = np.ones(1), np.ones(1)
    else:
        psi, radius_weights = _legendre(0.0, _reach(n - 4), nodes)
        radius, radius_weights = np.sin(psi), radius_weights * np.sin(psi) * np.cos(psi) ** (n - 4)
    scale = math.sqrt(n - 1) * radius[:, None]
    weights = (radius_weights[:, None] * angle_weights).ravel()
    first, second = (scale * np.cos(angle)).ravel(), (scale * np.cos(angle - between)).ravel()
    return PairRule(_frozen(first), _frozen(second), _frozen(weights / weights.sum()))


def uniform_on_sphere(n: int, draws: int, generator: np.random.Generator) -> Float[np.ndarray, "draws n"]:
    """Draw normalized batches sqrt(n) v directly: the Monte Carlo counterpart of the rules above.

    Args:
        n: batch size, at least 2.
        draws: number of batches.
        generator: source of the randomness.

    Returns:
        Rows of mean 0 and mean square 1, shape (draws, n).

    Raises:
        ValueError: n is not a whole number of at least 2, or draws is below 1.

    Example:
        >>> x = uniform_on_sphere(4, 2, np.random.default_rng(0))
        >>> np.round(x.mean(axis=1), 12) + 0.0, np.round((x**2).mean(axis=1), 12)
        (array([0., 0.]), array([1., 1.]))
    """
    n = checked_integer_batch(n, 2)
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}.")
    h = generator.standard_normal((draws, n))
    h -= h.mean(axis=1, keepdims=True)
    return h / np.sqrt((h**2).mean(axis=1, keepdims=True))
