"""Gradients at the winner-take-all state of rank one of networks with max(x, 0)^alpha and batch normalization.

In that state (arXiv 1902.08129, appendix K.1; `bnlib.mean_field_checks.rank_one`) the centered covariance is
lambda q q^T, q = (1, -1/(n-1), ...) sqrt((n-1)/n): a neuron's pre-activations are z sqrt(lambda) q with a Gaussian z,
the normalized batch is sqrt(n) q or its negative, and only the sign of z is left. Where z > 0 the winner alone is
active, and the layer's Jacobian removes the span of (1, ..., 1) and q, hence everything. Where z < 0 the cluster of the
n - 1 others is active, with one slope alpha (n-1)^(-(alpha-1)/2): a gradient that is constant over the cluster is
removed, and any other is multiplied by slope sqrt(n) / (sqrt(lambda) |z|). With N neurons of negative z among d, the
squared gradient inside the cluster is multiplied by

    a N^2 / d * xi,   a = n alpha^2 (n-1)^(1-alpha) / lambda,   lambda = (n-1)/(2n) ((n-1)^alpha + (n-1)^-alpha),

in which xi has the law of 1/z^2 again (Levy's, a stable law: the sum of N copies is N^2 times one). Its mean is
infinite, its median grows with the width, and for a large alpha the constant a is tiny. NumPy float64, and ball
arithmetic for networks without rounding; this module does not import torch.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import flint
import numpy as np
from jaxtyping import Float
from scipy.special import erfinv

from bnlib.checks import checked_integer_batch

_LEVY_MEDIAN = float(1 / (2 * erfinv(0.5) ** 2))  # of 1/z^2, z standard Gaussian


@dataclass(frozen=True)
class LayerNorms:
    """One layer of one network.

    Attributes:
        cluster: spread of the samples other than the largest about their mean, over the whole batch's spread; both
            Frobenius norms of centered pre-activations. 0 is a covariance of rank one.
        log_square: natural logarithm of the squared norm of the gradient with respect to the pre-activations;
            minus infinity for an exact zero.
    """

    cluster: float
    log_square: float


def _checked(n: int | float, alpha: float | int) -> int:
    n = checked_integer_batch(n, 3)
    if not 0 < alpha < math.inf:
        raise ValueError(f"alpha must be a positive finite degree, got {alpha}.")
    return n


def rank_one_eigenvalue(n: int | float, alpha: float | int) -> float:
    """The eigenvalue lambda of the centered covariance in the state of rank one.

    Args:
        n: batch size, at least 3.
        alpha: degree, positive.

    Raises:
        ValueError: n is not a whole number of at least 3, or alpha is not positive and finite.

    Example:
        >>> rank_one_eigenvalue(3, 1)  # (2/6) (2 + 1/2)
        0.8333333333333333
    """
    n = _checked(n, alpha)
    return (n - 1) / (2 * n) * ((n - 1.0) ** alpha + (n - 1.0) ** -alpha)


def cluster_constant(n: int | float, alpha: float | int) -> float:
    """The constant a: of one neuron with z^2 = 1 that sees the cluster.

    Args:
        n: batch size, at least 3.
        alpha: degree, positive.

    Raises:
        ValueError: n is not a whole number of at least 3, or alpha is not positive and finite.

    Example:
        >>> round(cluster_constant(10, 1), 4), cluster_constant(10, 30) < 1e-50
        (2.439, True)
    """
    n = _checked(n, alpha)
    return n * alpha**2 * (n - 1.0) ** (1 - alpha) / rank_one_eigenvalue(n, alpha)


def median_growth(n: int | float, alpha: float | int, width: int | float) -> float:
    """Median over networks of a layer's factor on squared gradients inside the cluster: a d/4 times Levy's median.

    Args:
        n: batch size, at least 3.
        alpha: degree, positive.
        width: d, at least 1; it is to be large, as N^2/d is replaced by d/4.

    Raises:
        ValueError: a size or alpha is out of range.

    Example:
        >>> round(median_growth(10, 1, 100), 1)
        134.0
    """
    if not width >= 1:
        raise ValueError(f"width must be at least 1, got {width}.")
    return cluster_constant(n, alpha) * width / 4 * _LEVY_MEDIAN


def neutral_width(n: int | float, alpha: float | int) -> float:
    """The width at which the median factor is 1: narrower networks lose such gradients, wider ones blow them up.

    Args:
        n: batch size, at least 3.
        alpha: degree, positive.

    Raises:
        ValueError: a size or alpha is out of range.

    Example:
        >>> neutral_width(10, 1) < 1, 10 < neutral_width(10, 2) < 100, neutral_width(10, 30) > 1e50
        (True, True, True)
    """
    return 1 / median_growth(n, alpha, 1)


def layer_factors(
    n: int | float,
    alpha: float | int,
    width: int,
    draws: int,
    generator: np.random.Generator,
    constant: bool = False,
) -> Float[np.ndarray, " draws"]:
    """Draw factors of one layer at the state of rank one, from the Jacobian itself, with nothing simplified.

    Args:
        n: batch size, at least 3.
        alpha: degree, positive.
        width: neurons.
        draws: layers.
        generator: source of the randomness.
        constant: gradients constant over the cluster, with any value at the winner; otherwise gradients of zero sum
            over the cluster and zero at the winner.

    Returns:
        Squared norm below over squared norm above, averaged over orthonormal gradients of the kind, given the layer.

    Raises:
        ValueError: a size or alpha is out of range.

    Example:
        >>> found = layer_factors(10, 2, 100, 400, np.random.default_rng(0))
        >>> abs(math.log(float(np.median(found)) / median_growth(10, 2, 100))) < 0.5
        True
        >>> float(layer_factors(10, 2, 100, 4, np.random.default_rng(0), constant=True).max()) < 1e-25
        True
    """
    n = _checked(n, alpha)
    if min(width, draws) < 1:
        raise ValueError(f"width and draws must be at least 1, got {width} and {draws}.")
    q = np.r_[1.0, np.full(n - 1, -1.0 / (n - 1))] * math.sqrt((n - 1) / n)
    cluster = np.r_[0.0, np.full(n - 1, 1 / math.sqrt(n - 1))]
    both = np.stack([np.eye(n)[0], cluster])
    delta = both if constant else np.linalg.svd(both)[2][2:]  # orthonormal rows
    size, found = math.sqrt(rank_one_eigenvalue(n, alpha)), []
    for _ in range(draws):
        z = generator.standard_normal((width, 1, 1))
        b = math.sqrt(n) * np.sign(z) * q
        slope = np.where(b > 0, alpha * np.maximum(b, 0.0) ** (alpha - 1), 0.0)
        below = slope * delta
        below -= below.mean(axis=2, keepdims=True)
        v = b / math.sqrt(n)
        below -= (below * v).sum(axis=2, keepdims=True) * v
        below *= math.sqrt(n) / (size * np.abs(z))
        found.append((below**2).sum() / (width * len(delta)))
    return np.array(found)


def median_and_error(values: Float[np.ndarray, " k"]) -> tuple[float, float]:
    """Median of the logarithms of positive numbers, and half the distance of the order statistics beside it.

    Args:
        values: independent, positive, at least 10.

    Returns:
        The median logarithm and its standard error, free of any assumption on the law.

    Raises:
        ValueError: fewer than 10 values, or one that is not positive.

    Example:
        >>> median, error = median_and_error(np.exp(np.linspace(-1, 1, 101)))
        >>> abs(median) < 1e-12, round(error, 2)
        (True, 0.1)
    """
    if len(values) < 10 or not (values > 0).all():
        raise ValueError(f"values must be at least 10 positive numbers, got {len(values)}, least {np.min(values)}.")
    step = 0.5 / math.sqrt(len(values))
    low, median, high = np.quantile(np.log(values), [0.5 - step, 0.5, 0.5 + step])
    return float(median), float(high - low) / 2


# ------------------------------------------------------------------------------------------ without rounding


def exact_network(
    x: Float[np.ndarray, "n d"],
    weights: Iterable[Float[np.ndarray, "d d"]],
    readout: Float[np.ndarray, "n d"],
    alpha: float | int,
    bits: int = 800,
) -> list[LayerNorms]:
    """Forward and backward through one network with max(x, 0)^alpha in ball arithmetic of many bits.

    The layer is H = X W, batch normalization without epsilon, the activation; the loss is the inner product of the
    last representation with the readout.

    Args:
        x: the batch.
        weights: of the layers, already scaled.
        readout: coefficients of the loss.
        alpha: a whole degree, at least 1.
        bits: of precision; twice what is lost must be below it.

    Returns:
        Layers from the input.

    Raises:
        ValueError: alpha is not a whole number of at least 1, or a norm comes out with fewer than 20 bits.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> found = exact_network(rng.normal(size=(4, 6)), rng.normal(size=(3, 6, 6)), rng.normal(size=(4, 6)), 2)
        >>> len(found), all(math.isfinite(layer.log_square) for layer in found)
        (3, True)
    """
    if alpha != int(alpha) or alpha < 1:
        raise ValueError(f"alpha must be a whole number of at least 1, got {alpha}.")
    before, flint.ctx.prec = flint.ctx.prec, bits
    try:
        return _exact_network(x, weights, readout, int(alpha))
    finally:
        flint.ctx.prec = before


def _balls(values: np.ndarray) -> flint.arb_mat:
    return flint.arb_mat([[flint.arb(float(one)) for one in row] for row in values])


def _exact_network(x: np.ndarray, weights: Iterable[np.ndarray], readout: np.ndarray, alpha: int) -> list[LayerNorms]:
    n = len(x)
    rep, matrices, kept, found = _balls(x), [], [], []
    for weight in weights:
        matrix = _balls(weight)
        h = (rep * matrix).transpose().tolist()  # neurons in rows
        layer, after = [], []
        for row in h:
            mean = sum(row[1:], row[0]) / n
            row = [one - mean for one in row]
            size = (sum((one * one for one in row[1:]), row[0] * row[0]) / n).sqrt()
            b = [one / size for one in row]
            layer.append((row, b, size))
            after.append([one**alpha if one > 0 else flint.arb(0) for one in b])
        matrices.append(matrix)
        kept.append(layer)
        rep = flint.arb_mat(after).transpose()
    delta = _balls(readout).transpose().tolist()
    for layer, matrix in zip(reversed(kept), reversed(matrices), strict=True):
        below, square = [], flint.arb(0)
        for (_, b, size), row in zip(layer, delta, strict=True):
            slope = [alpha * one ** (alpha - 1) * d if one > 0 else flint.arb(0) for one, d in zip(b, row, strict=True)]
            mean = sum(slope[1:], slope[0]) / n
            along = sum((s * one for s, one in zip(slope, b, strict=True)), flint.arb(0)) / n
            new = [(s - mean - along * one) / size for s, one in zip(slope, b, strict=True)]
            square += sum((one * one for one in new), flint.arb(0))
            below.append(new)
        found.append(LayerNorms(_cluster_of([row for row, _, _ in layer]), _log(square)))
        delta = (matrix * flint.arb_mat(below)).tolist()
        delta = [list(row) for row in delta]
    return found[::-1]


def _cluster_of(rows: list[list[flint.arb]]) -> float:
    """Spread of the samples other than the largest, relative; rows are neurons, centered."""
    n = len(rows[0])
    squares = [sum((row[i] * row[i] for row in rows), flint.arb(0)) for i in range(n)]
    top = max(range(n), key=lambda i: float(squares[i]))
    spread = flint.arb(0)
    for row in rows:
        others = [one for i, one in enumerate(row) if i != top]
        mean = sum(others, flint.arb(0)) / (n - 1)
        spread += sum(((one - mean) ** 2 for one in others), flint.arb(0))
    return float((spread / sum(squares, flint.arb(0))).sqrt().mid())


def _log(square: flint.arb) -> float:
    if square.is_zero():
        return -math.inf
    if square.rel_accuracy_bits() < 20:
        raise ValueError("bits must be more: a squared norm has fewer than 20 bits left.")
    return float(square.log().mid())
