"""Monte Carlo and networks against the mean-field theory of batch normalization.

A network of width d with independent Gaussian weights has, given the covariance of a layer, d independent neurons in
the next one: drawing them from that covariance is the same law as multiplying by a weight matrix, at a cost that does
not depend on d^2 (chapter 3). So these are networks of finite width, not of infinite width. NumPy float64; no torch.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.activations import Activation
from bnlib.checks import checked_integer_batch
from bnlib.mean_field import (
    LINEARIZATION_MINIMUM,
    cross_batch_constant,
    cross_batch_decay,
    forward_multipliers,
    mean_chi,
    symmetric_fixed_point,
)
from bnlib.sphere import uniform_on_sphere

QUANTITIES = ("diagonal", "off_diagonal", "lambda_L", "lambda_M", "cross_batch_constant", "cross_batch_decay")


@dataclass(frozen=True)
class Measured:
    """One measured number.

    Attributes:
        mean: the estimate.
        error: its standard error, by the jackknife over independent parts.
    """

    mean: float
    error: float


def jackknife(parts: Float[np.ndarray, "parts k"], estimate: Callable[[np.ndarray], float]) -> Measured:
    """A function of means, with its standard error from leaving out one independent part at a time.

    Args:
        parts: sums or means of each part, shape (parts, k), at least 2 parts.
        estimate: takes the mean over the parts, shape (k,).

    Returns:
        The estimate, corrected for the bias of first order, and its error.

    Raises:
        ValueError: fewer than 2 parts.

    Example:
        >>> jackknife(np.array([[1.0], [3.0]]), lambda mean: float(mean[0]))
        Measured(mean=2.0, error=1.0)
    """
    count = len(parts)
    if count < 2:
        raise ValueError(f"parts must be at least 2, got {count}.")
    total = parts.sum(axis=0)
    whole = estimate(total / count)
    left = np.array([estimate((total - part) / (count - 1)) for part in parts])
    error = math.sqrt((count - 1) / count * float(((left - left.mean()) ** 2).sum()))
    return Measured(float(count * whole - (count - 1) * left.mean()), error)


def theory(phi: Activation, n: int | float) -> dict[str, float]:
    """The forward quantities of the mean-field theory by spherical integration, by name.

    Args:
        phi: activation.
        n: batch size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> from bnlib.activations import activation
        >>> round(theory(activation("relu"), 8)["lambda_L"], 3)
        0.744
    """
    point, multipliers = symmetric_fixed_point(phi, n), forward_multipliers(phi, n)
    return {
        "diagonal": point.diagonal,
        "off_diagonal": point.off_diagonal,
        "lambda_L": multipliers.norms,
        "lambda_M": multipliers.covariances,
        "cross_batch_constant": cross_batch_constant(phi, n),
        "cross_batch_decay": cross_batch_decay(phi, n),
    }


def monte_carlo(
    phi: Activation, n: int | float, draws: int, generator: np.random.Generator, parts: int = 50
) -> dict[str, Measured]:
    """The same quantities from drawn normalized batches.

    With f = G phi(b) and v = b/sqrt(n), the multipliers are the traces of the linearization over a space of
    perturbations: lambda_S = (n-1)/(2 mu dim S) E <P_S f f^T, P_S v v^T>.

    Args:
        phi: activation.
        n: batch size, at least 4.
        draws: number of batches, at least `parts`.
        generator: source of the randomness.
        parts: independent parts for the error.

    Raises:
        ValueError: n is not a whole number of at least 4, or draws is below parts.

    Example:
        >>> from bnlib.activations import activation
        >>> found = monte_carlo(activation("relu"), 8, 5000, np.random.default_rng(0))
        >>> abs(found["lambda_L"].mean - 0.7436) < 5 * found["lambda_L"].error < 0.2
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    if draws < parts:
        raise ValueError(f"draws must be at least {parts}, got {draws}.")
    rows = []
    for count in np.full(parts, draws // parts):
        b = uniform_on_sphere(n, int(count), generator)
        values = phi(b)
        centered = values - values.mean(axis=1, keepdims=True)
        squares, size = (values**2).sum(axis=1), (centered**2).sum(axis=1)
        norms = n / (n - 2) * (centered**2 * (b**2 / n - 1 / n)).sum(axis=1)
        whole = (centered * b).sum(axis=1) ** 2 / n - size / (n - 1)
        rows.append(
            [
                (squares / n).mean(),
                ((values.sum(axis=1) ** 2 - squares) / (n * (n - 1))).mean(),
                norms.mean(),
                (whole - norms).mean(),
                (size / (n - 1)).mean(),
                values.mean(),
                (values * b).mean(),
            ]
        )
    sums = np.array(rows)
    chi = mean_chi(n - 1) ** 2 * n / (n - 1) ** 2
    return {
        "diagonal": jackknife(sums, lambda s: s[0]),
        "off_diagonal": jackknife(sums, lambda s: s[1]),
        "lambda_L": jackknife(sums, lambda s: s[2] / (2 * s[4])),
        "lambda_M": jackknife(sums, lambda s: (n - 1) * s[3] / (n * (n - 3) * s[4])),
        "cross_batch_constant": jackknife(sums, lambda s: s[5] ** 2),
        "cross_batch_decay": jackknife(sums, lambda s: chi * s[6] ** 2 / s[4]),
    }


def normalize(h: Float[np.ndarray, "*draws n width"]) -> Float[np.ndarray, "*draws n width"]:
    """Batch normalization: every neuron centered over the batch and divided by its standard deviation there.

    Args:
        h: pre-activations, samples in the last but one axis; a neuron that is constant over the batch stays 0.

    Example:
        >>> normalize(np.array([[1.0], [3.0]])).ravel().tolist()
        [-1.0, 1.0]
    """
    h = h - h.mean(axis=-2, keepdims=True)
    size = np.sqrt((h**2).mean(axis=-2, keepdims=True))
    return np.divide(h, size, out=h, where=size > 0)


def network_covariances(
    phi: Activation,
    covariance: Float[np.ndarray, "draws m m"],
    width: int,
    depth: int,
    generator: np.random.Generator,
    batches: int = 1,
) -> Iterator[Float[np.ndarray, "draws m m"]]:
    """Covariances x x^T / width of the layers of random networks with batch normalization.

    Args:
        phi: activation.
        covariance: of the input, one for each network; m = batches * n samples.
        width: neurons in each layer.
        depth: number of layers.
        generator: source of the randomness.
        batches: how many batches go through each network, each normalized on its own.

    Yields:
        The covariance after each layer, same shape.

    Raises:
        ValueError: width or depth is below 1, covariance is not finite, or batches does not divide m.

    Example:
        >>> from bnlib.activations import activation
        >>> start = np.tile(np.eye(8), (2, 1, 1))
        >>> *_, last = network_covariances(activation("relu"), start, 64, 3, np.random.default_rng(0))
        >>> last.shape, bool((abs(np.trace(last, axis1=1, axis2=2) / 8 - 0.5) < 0.1).all())
        ((2, 8, 8), True)
    """
    k = np.asarray(covariance, dtype=np.float64)
    if k.ndim != 3 or k.shape[1] != k.shape[2] or batches < 1 or k.shape[1] % batches:
        raise ValueError(f"covariance must have shape (draws, {batches} n, {batches} n), got {k.shape}.")
    if not np.isfinite(k).all():
        raise ValueError("covariance must be finite, got NaN or infinity.")
    if width < 1 or depth < 1:
        raise ValueError(f"width and depth must be at least 1, got {width} and {depth}.")
    draws, m, _ = k.shape
    for _ in range(depth):
        # Centering first keeps the digits of what batch normalization sees.
        split = k.reshape(draws, batches, m // batches, batches, m // batches)
        split = split - split.mean(axis=2, keepdims=True)
        k = (split - split.mean(axis=4, keepdims=True)).reshape(draws, m, m)
        values, vectors = np.linalg.eigh(k)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        h = root @ generator.standard_normal((draws, m, width))
        x = phi(normalize(h.reshape(draws, batches, m // batches, width))).reshape(draws, m, width)
        k = x @ x.transpose(0, 2, 1) / width
        yield k


def network_quantities(
    phi: Activation, n: int | float, width: int, depth: int, draws: int, generator: np.random.Generator, skip: int = 10
) -> dict[str, Measured]:
    """The same quantities from networks through which two independent batches go.

    Fixed point and constant are means over layers; a multiplier is the slope of the regression of the network's own
    fluctuations in one layer on those in the layer before, in the space in question, where their mean is 0 by symmetry.

    Args:
        phi: activation.
        n: batch size, at least 4.
        width: neurons in each layer; the estimates have a bias of order 1/width.
        depth: number of layers.
        draws: networks, at least 2.
        generator: source of the randomness.
        skip: layers left out at the start.

    Raises:
        ValueError: n is not a whole number of at least 4, depth is not above skip + 1, or draws is below 2.

    Example:
        >>> from bnlib.activations import activation
        >>> found = network_quantities(activation("relu"), 4, 64, 30, 8, np.random.default_rng(0))
        >>> abs(found["lambda_L"].mean - 0.526) < 0.2
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    if depth <= skip + 1:
        raise ValueError(f"depth must be above {skip + 1}, got {depth}.")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}.")
    start = generator.standard_normal((draws, 2 * n, 4 * n))
    sums, before = np.zeros((draws, 9)), None
    off = ~np.eye(n, dtype=bool)
    layers = network_covariances(phi, start @ start.transpose(0, 2, 1), width, depth, generator, batches=2)
    for layer, k in enumerate(layers):
        own = np.stack([k[:, :n, :n], k[:, n:, n:]], axis=1)
        cross = k[:, :n, n:]
        now = (*_components(own), _centered(cross))
        if layer >= skip:
            sums[:, 0] += np.trace(own, axis1=2, axis2=3).mean(axis=1) / n
            sums[:, 1] += own[:, :, off].mean(axis=(1, 2))
            sums[:, 2] += cross.mean(axis=(1, 2))
            for index, (a, b) in enumerate(zip(before, now, strict=True)):
                axes = tuple(range(1, a.ndim))
                sums[:, 3 + 2 * index] += (a * b).sum(axis=axes)
                sums[:, 4 + 2 * index] += (a * a).sum(axis=axes)
        before = now
    sums /= depth - skip
    return {
        "diagonal": jackknife(sums, lambda s: s[0]),
        "off_diagonal": jackknife(sums, lambda s: s[1]),
        "lambda_L": jackknife(sums, lambda s: s[3] / s[4]),
        "lambda_M": jackknife(sums, lambda s: s[5] / s[6]),
        "cross_batch_constant": jackknife(sums, lambda s: s[2]),
        "cross_batch_decay": jackknife(sums, lambda s: s[7] / s[8]),
    }


def _centered(k: np.ndarray) -> np.ndarray:
    k = k - k.mean(axis=-2, keepdims=True)
    return k - k.mean(axis=-1, keepdims=True)


def _components(k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parts of centered covariances in the spaces L (coordinates, shape (..., n)) and M (matrices)."""
    n = k.shape[-1]
    c = _centered(k)
    diagonal = np.diagonal(c, axis1=-2, axis2=-1)
    norms = diagonal - diagonal.mean(axis=-1, keepdims=True)
    centering = np.eye(n) - 1 / n
    along = n / (n - 2) * _centered(norms[..., None] * np.eye(n))
    level = np.trace(c, axis1=-2, axis2=-1)[..., None, None] / (n - 1)
    return norms, c - level * centering - along


def extrapolated(narrow: Measured, wide: Measured) -> Measured:
    """Value at infinite width from two independent measurements at a width and at twice the width.

    Args:
        narrow: at the width.
        wide: at twice the width.

    Returns:
        2 wide - narrow, free of the bias of order 1/width, and its error.

    Example:
        >>> extrapolated(Measured(1.5, 0.0), Measured(1.25, 0.5))
        Measured(mean=1.0, error=1.0)
    """
    return Measured(2 * wide.mean - narrow.mean, math.hypot(2 * wide.error, narrow.error))


def norm_shares(k: Float[np.ndarray, "draws n n"]) -> Float[np.ndarray, " draws"]:
    """Largest share of one sample in the trace of the centered covariance: 1/n at BSB1, (n-1)/n at rank one.

    Args:
        k: covariances.

    Example:
        >>> norm_shares(np.eye(4)[None]).tolist()
        [0.25]
    """
    diagonal = np.diagonal(_centered(k), axis1=-2, axis2=-1)
    return diagonal.max(axis=-1) / diagonal.sum(axis=-1)


def share_path(
    phi: Activation,
    n: int | float,
    width: int,
    depth: int,
    draws: int,
    generator: np.random.Generator,
) -> Float[np.ndarray, "depth draws"]:
    """`norm_shares` over the layers of networks, from Gaussian inputs of dimension 4 n.

    Args:
        phi: activation.
        n: batch size, at least 3.
        width: neurons in each layer.
        depth: number of layers.
        draws: networks.
        generator: source of the randomness.

    Raises:
        ValueError: n is not a whole number of at least 3, or width, depth or draws is below 1.

    Example:
        >>> from bnlib.activations import activation
        >>> share_path(activation("relu"), 5, 32, 3, 2, np.random.default_rng(0)).shape
        (3, 2)
    """
    n = checked_integer_batch(n, 3)
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}.")
    x = generator.standard_normal((draws, n, 4 * n))
    layers = network_covariances(phi, x @ x.transpose(0, 2, 1), width, depth, generator)
    return np.array([norm_shares(k) for k in layers])


def dense_share_path(
    phi: Activation, n: int | float, width: int, depth: int, generator: np.random.Generator
) -> list[float]:
    """The same for one network with weight matrices written out: a check that nothing hangs on the way of drawing.

    Args:
        phi: activation.
        n: batch size, at least 3.
        width: neurons in each layer, and dimension of the Gaussian input.
        depth: number of layers.
        generator: source of the randomness.

    Returns:
        `norm_shares` after each layer.

    Raises:
        ValueError: n is not a whole number of at least 3, or width or depth is below 1.

    Example:
        >>> from bnlib.activations import activation
        >>> len(dense_share_path(activation("relu"), 5, 16, 3, np.random.default_rng(0)))
        3
    """
    n = checked_integer_batch(n, 3)
    if width < 1 or depth < 1:
        raise ValueError(f"width and depth must be at least 1, got {width} and {depth}.")
    x, path = generator.standard_normal((n, width)), []
    for _ in range(depth):
        x = phi(normalize(x @ generator.standard_normal((width, width))))
        path.append(float(norm_shares((x @ x.T / width)[None])[0]))
    return path


def norm_spread(k: Float[np.ndarray, "draws n n"]) -> Float[np.ndarray, " draws"]:
    """Variance of the samples' squared centered norms in units of their squared mean: 0 at BSB1.

    Args:
        k: covariances.

    Example:
        >>> norm_spread(np.eye(4)[None]).tolist()
        [0.0]
    """
    diagonal = np.diagonal(_centered(k), axis1=-2, axis2=-1)
    return ((diagonal / diagonal.mean(axis=-1, keepdims=True) - 1) ** 2).mean(axis=-1)
