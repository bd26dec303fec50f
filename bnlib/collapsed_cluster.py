"""What one recentered ReLU layer does to an exactly collapsed cluster, at finite and at infinite width.

A batch of one odd sample x_1 and n-1 equal others nu. With e = x_1 - nu, of length R, a neuron sees the one number
z = e.w: it carries the odd sample where z > 0 and the cluster where z < 0. Of d neurons m have z < 0, m binomial
(d, 1/2), and in units of the variance of z

    |nu'|^2 = B / n^2,   |x_1'|^2 = (n-1)^2 C / n^2,   R'^2 = ((n-1)^2 C + B) / n^2,

with independent chi-squares B of m and C of d - m degrees of freedom. Layers are independent of each other given that
only R matters, so everything along the depth follows from the laws here. A layer is called mixed if 1 <= m <= d - 1.

NumPy float64; sympy is imported inside the one function that needs it.
"""

import math
from dataclasses import dataclass
from functools import cache
from numbers import Rational
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import betainc, gammaln, polygamma, psi
from scipy.stats import binom

from bnlib.checks import Result, Values, checked_batch_size, checked_values, checked_width, plain
from bnlib.kernels import recentered_relu_kernel

_EULER = -float(psi(1.0))


@dataclass(frozen=True)
class ScaleStep:
    """One step of the random walk of log R^2, the log of the squared distance from the odd sample to the cluster.

    Attributes:
        mean: E log(R'^2 / R^2), natural log a layer.
        variance: of the same.
    """

    mean: float
    variance: float


@dataclass(frozen=True)
class OpenClusterMoments:
    """Second moments after one layer of any batch, the odd sample first; exact at every width.

    Attributes:
        outlier: E|x_1'|^2.
        mean_of_images: E of the squared norm of the mean of x_2', ..., x_n'.
        image_of_mean: E of the squared norm of what a sample at the mean of the others would become.
        inner_mean_of_images: E of the inner product of x_1' with the mean of the others' images.
    """

    outlier: float
    mean_of_images: float
    image_of_mean: float
    inner_mean_of_images: float


def _mixed_weights(width: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers m = 1, ..., d-1 of neurons that carry the cluster, and their probabilities in a mixed layer."""
    m = np.arange(1, width)
    weights = binom.pmf(m, width, 0.5)
    return m, weights / weights.sum()


def scale_step(n: int | float, width: int, weight_variance: float = 2.0) -> ScaleStep:
    """Mean and variance of log(R'^2 / R^2) over one layer of `width` inputs and `width` neurons.

    R'^2 / R^2 = (weight_variance / d) S / n^2 with S = (n-1)^2 C + B, all layers counted. By Frullani's integral
    E log S = int (e^-t - M(t)) dt/t and E log^2 S = -2 [int (e^-t - M(t)) log t dt/t + gamma E log S], with the Laplace
    transform M(t) = [((1 + 2 (n-1)^2 t)^(-1/2) + (1 + 2t)^(-1/2)) / 2]^d.

    Args:
        n: batch size, at least 2; any real number.
        width: number of inputs and of neurons, at least 1.
        weight_variance: sigma squared; weights have variance sigma^2 / d. 2 is He's, 2 alpha Theorem 13's.

    Returns:
        Mean and variance, natural log a layer.

    Raises:
        ValueError: n < 2, width < 1, or weight_variance is not positive and finite.

    Example:
        >>> step = scale_step(8, 16, 2 * 32 / 25)  # Theorem 13's variance: E R'^2 = R^2, and still log R^2 drifts down
        >>> round(step.mean, 4), round(step.variance, 4)
        (-0.163, 0.3724)
    """
    n = checked_batch_size(n, 2)
    width = checked_width(width, 1)
    if not 0 < weight_variance < math.inf:
        raise ValueError(f"weight_variance must be positive and finite, got {weight_variance}.")
    m = n - 1.0
    x = np.arange(-45.0 - 2.0 * math.log(n) - math.log(width), 90.0 / width + 10.0, 0.1)  # log t
    t = np.exp(x)
    transform = ((1.0 / np.sqrt(1.0 + 2.0 * t * m * m) + 1.0 / np.sqrt(1.0 + 2.0 * t)) / 2.0) ** width
    difference = (np.exp(-t) - transform) * 0.1
    mean = float(difference.sum())
    square = -2.0 * (float((difference * x).sum()) + _EULER * mean)
    return ScaleStep(mean + math.log(weight_variance / (width * n * n)), square - mean * mean)


def ratio_distribution(factor: Values, width: int) -> Result:
    """Distribution function of the norm ratio in units of n-1 after a mixed layer: of sqrt(C / B).

    P(sqrt(C/B) <= q) = sum_m P(m) I(q^2 / (1 + q^2); (d-m)/2, m/2) with the regularized incomplete beta function I; the
    law is that of its inverse, so the median is 1 (a norm ratio of n-1). The same at every depth.

    Args:
        factor: q, any shape, in [0, 1e150].
        width: number of neurons, at least 2.

    Returns:
        Probabilities, same shape.

    Raises:
        ValueError: a factor outside [0, 1e150], or width < 2.

    Example:
        >>> round(ratio_distribution(1.0, 16), 12), round(ratio_distribution(2.0, 16), 4)
        (0.5, 0.9231)
    """
    width = checked_width(width, 2)
    q = checked_values("factor", factor, 0.0, 1e150, "a ratio of norms, between 0 and 1e150")
    m, weights = _mixed_weights(width)
    share = (q * q / (1.0 + q * q))[..., None]
    return plain(np.asarray((weights * betainc((width - m) / 2.0, m / 2.0, share)).sum(axis=-1)))


def log_ratio_variance(width: int) -> float:
    """Variance of the log of the norm ratio after a mixed layer; its mean is log(n-1).

    (1/4) E[psi'(m/2) + psi'((d-m)/2) + (psi((d-m)/2) - psi(m/2))^2] = 3/d + O(1/d^2).

    Args:
        width: number of neurons, at least 2.

    Returns:
        The variance, of a natural log.

    Raises:
        ValueError: width < 2.

    Example:
        >>> round(log_ratio_variance(2) * 4 / math.pi**2, 12)  # half the log of a squared Cauchy variable
        1.0
        >>> round(log_ratio_variance(10**4) * 10**4, 2)
        3.0
    """
    width = checked_width(width, 2)
    m, weights = _mixed_weights(width)
    k = width - m
    spread = polygamma(1, m / 2.0) + polygamma(1, k / 2.0) + (psi(k / 2.0) - psi(m / 2.0)) ** 2
    return float((weights * spread).sum() / 4.0)


def density_ratio(angle: Values, width: int) -> Result:
    """Density of B/(B+C) = sin^2(angle) after a mixed layer of `width` neurons, over that of a layer of two.

    pi Gamma(d/2) / (2^d - 2) sum_{m=1}^{d-1} C(d, m) sin^(m-1) cos^(d-m-1) / (Gamma(m/2) Gamma((d-m)/2)). It is 1 for
    d = 2 (the arcsine law: the angle is uniform); for d >= 3 it rises from 0 to pi/4 and falls to pi/2, which is the
    heart of the proof that the growth rate of small differences is positive.

    Args:
        angle: radians, any shape, in [0, pi/2].
        width: number of neurons, 2 to 900.

    Returns:
        The ratio, same shape.

    Raises:
        ValueError: an angle outside [0, pi/2], or width outside 2 to 900.

    Example:
        >>> round(density_ratio(0.3, 2), 12), round(density_ratio(math.pi / 4, 3), 12) == round(math.pi / 8**0.5, 12)
        (1.0, True)
    """
    phi = checked_values("angle", angle, 0.0, math.pi / 2, "between 0 and pi/2 radians")
    if checked_width(width, 2) > 900:
        raise ValueError(f"width must be a whole number of neurons of at most 900, got {width}.")
    m, weights = _mixed_weights(width)
    k = width - m
    coefficient = weights * np.exp(gammaln(width / 2.0) - gammaln(m / 2.0) - gammaln(k / 2.0))
    powers = np.sin(phi)[..., None] ** (m - 1.0) * np.cos(phi)[..., None] ** (k - 1.0)
    return plain(np.asarray(math.pi * (coefficient * powers).sum(axis=-1)))


def after_infinite_layer(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    """Gram matrix after one infinitely wide layer, in units of the squared norm of the odd sample (row 0).

    For every collapsed cluster, whatever R and the angle between x_1 and nu, it is that of Definition 12: 1, zeros, and
    1/(n-1)^2. The weight variance drops out.

    Args:
        x: batch, shape (n, d), the odd sample first.

    Returns:
        Gram matrix, shape (n, n), with entry (0, 0) equal to 1.

    Raises:
        ValueError: x is not a finite matrix of at least two rows, or row 0 is the mean of the others.

    Example:
        >>> after_infinite_layer(np.array([[3.0, 1.0], [1.0, 1.0], [1.0, 1.0]])).round(12).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.25, 0.25], [0.0, 0.25, 0.25]]
    """
    x = _checked_batch(x)
    k = recentered_relu_kernel(x @ x.T)
    if not k[0, 0] > 0:
        raise ValueError("x must have a row 0 that differs from the mean of the others, got one that equals it.")
    return k / k[0, 0]


def open_cluster_moments(x: Float[np.ndarray, "n d"], alpha: Rational | float) -> OpenClusterMoments:
    """Second moments after one layer with weight variance 2 alpha / d, for a cluster that need not be collapsed.

    The odd sample and the image of the mean of the others have ((n-1)/n)^2 alpha R^2 and alpha R^2 / n^2 as for a
    collapsed cluster. The mean of the images is longer on average, by convexity of ReLU, and no longer orthogonal.

    Args:
        x: batch, shape (n, d), the odd sample first.
        alpha: half the weight variance times the width, positive.

    Returns:
        The four moments.

    Raises:
        ValueError: x is not a finite matrix of at least two rows, or alpha is not positive and finite.

    Example:
        >>> x = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])
        >>> moments = open_cluster_moments(x, 9 / 5)
        >>> round(moments.outlier, 12), round(moments.mean_of_images, 12), round(moments.image_of_mean, 12)
        (1.0, 0.25, 0.25)
    """
    x = _checked_batch(x)
    if not 0 < alpha < math.inf:
        raise ValueError(f"alpha must be positive and finite, got {alpha}.")
    k = recentered_relu_kernel(x @ x.T, weight_variance=2.0 * float(alpha))
    squared_distance = float(((x[0] - x[1:].mean(axis=0)) ** 2).sum())
    return OpenClusterMoments(
        outlier=float(k[0, 0]),
        mean_of_images=float(k[1:, 1:].mean()),
        image_of_mean=float(alpha) * squared_distance / len(x) ** 2,
        inner_mean_of_images=float(k[0, 1:].mean()),
    )


@cache
def second_moment_readings() -> dict[str, Any]:
    """E|x_1'|^2 with Theorem 14's alpha, n^2 / ((n-1)^2 R^2), under each reading of R, as sympy expressions in n and R.

    With r the distance from x_1 to the mean of the others before the layer, E|x_1'|^2 = alpha ((n-1)/n)^2 r^2 for every
    batch; a reading says what r and R are.

    Returns:
        Reading to expression: `same` (R = r), `definition` (both Definition 12's), `review` (r is Definition 12's, R is
        free), `batch mean` (R is the distance to the mean of the whole batch, (n-1) r / n), `free` (both free).

    Example:
        >>> readings = second_moment_readings()
        >>> readings["same"], readings["batch mean"], readings["review"]
        (1, n**2/(n - 1)**2, (n**2 - 2*n + 2)/(R**2*(n - 1)**2))
    """
    import sympy

    n, big, r = sympy.symbols("n R r", positive=True)
    moment = n**2 / ((n - 1) ** 2 * big**2) * ((n - 1) / n) ** 2 * r**2
    definition = sympy.sqrt(1 + 1 / (n - 1) ** 2)
    cases = {
        "same": moment.subs(r, big),
        "definition": moment.subs({r: definition, big: definition}),
        "review": moment.subs(r, definition),
        "batch mean": moment.subs(r, n * big / (n - 1)),
        "free": moment,
    }
    return {name: sympy.factor(sympy.simplify(value)) for name, value in cases.items()}


def _checked_batch(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[0] < 2 or x.shape[1] < 1 or not np.isfinite(x).all():
        raise ValueError(f"x must be a finite batch of shape (n, d) with n >= 2, got shape {x.shape}.")
    return x
