"""Infinitely wide dense layers of any architecture without rescaling over the batch, for one distinguished sample.

A wide layer with Gaussian weights maps the Gram matrix K of a batch (per neuron) to V(K)_ij = E phi(u) phi(v), (u, v)
Gaussian with the covariance of the preactivations. If n - 1 samples are equivalent, K is four numbers. The stages act
on them exactly: recentering, layer norm and RMS norm (whose statistics over a wide layer are not random), skip
connections, standardized weights (which take the mean over the neurons away), biases, shifts, dropout. Rescaling over
the batch is left out: behind it neurons are not Gaussian (`bnlib.mean_field` holds its symmetric state).
NumPy float64; this module does not import torch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from bnlib.architectures import Architecture, nonlinearity
from bnlib.checks import checked_integer_batch

_REACH, _POINTS = (
    8.0,
    161,
)  # trapezoidal rule over a standard Gaussian; for analytic functions it converges geometrically
_WIDE = 12.0  # standard deviations above which SiLU is taken for ReLU: the kernels differ by about 2 / std^2
_SLOPES = {"relu": 0.0, "abs": -1.0}
_RANGE = 1e100  # squared norms outside this and its inverse are put back by 1e50, where phi is homogeneous to rounding


@dataclass(frozen=True)
class ClassGram:
    """Inner products per neuron in a batch with one distinguished sample, and means over the neurons.

    Attributes:
        odd: x_1 . x_1.
        own: x_i . x_i of every other sample.
        pair: x_i . x_j of two others.
        cross: x_1 . x_i.
        odd_mean: mean entry of x_1 over the neurons.
        mean: mean entry of every other sample.
    """

    odd: float
    own: float
    pair: float
    cross: float
    odd_mean: float = 0.0
    mean: float = 0.0

    def matrix(self, n: int) -> Float[np.ndarray, "n n"]:
        """The Gram matrix of n samples, the distinguished one first.

        Example:
            >>> ClassGram(4.0, 1.0, 0.5, 0.0).matrix(3)
            array([[4. , 0. , 0. ],
                   [0. , 1. , 0.5],
                   [0. , 0.5, 1. ]])
        """
        k = np.full((n, n), self.pair)
        np.fill_diagonal(k, self.own)
        k[0, :] = k[:, 0] = self.cross
        k[0, 0] = self.odd
        return k


def near_symmetric(excess: float | int = 0.02) -> ClassGram:
    """Orthogonal samples of equal norm, but for one whose squared norm is larger by a small share.

    Example:
        >>> near_symmetric(0.0)
        ClassGram(odd=1.0, own=1.0, pair=0.0, cross=0.0, odd_mean=0.0, mean=0.0)
    """
    return ClassGram(1.0 + excess, 1.0, 0.0, 0.0)


def with_outlier(n: int) -> ClassGram:
    """One sample n times as long as the others and orthogonal to them, the others at a cosine of 0.9.

    Example:
        >>> with_outlier(8).odd
        64.0
    """
    return ClassGram(float(n) ** 2, 1.0, 0.9, 0.0)


def activation_kernel(name: str, first: float | int, second: float | int, product: float | int) -> float:
    """E phi(u) phi(v) for Gaussian u, v with variances `first`, `second` and covariance `product`.

    In closed form for a relu(x) - b relu(-x) (the cosine map of `bnlib.leaky`), square, identity and GELU (by Gaussian
    integration by parts); by a trapezoidal rule for tanh and SiLU.

    Args:
        name: as `bnlib.architectures.nonlinearity`.
        first: variance of u, not negative.
        second: variance of v, not negative.
        product: their covariance.

    Returns:
        The mean product.

    Raises:
        ValueError: an unknown activation, a negative variance, or a covariance above the geometric mean of the
            variances (beyond rounding).

    Example:
        >>> round(activation_kernel("relu", 1, 1, 1), 12), round(activation_kernel("square", 1, 2, 0.5), 12)
        (0.5, 2.5)
    """
    phi = nonlinearity(name)
    if not (0 <= first < math.inf and 0 <= second < math.inf):
        raise ValueError(f"first and second are {first} and {second}; valid are finite variances from 0 on.")
    root = math.sqrt(first) * math.sqrt(second)
    if abs(product) > root * (1 + 1e-9):
        raise ValueError(f"product is {product}; valid is a covariance of at most {root} in size.")
    if root == 0:
        return 0.0 if first == second == 0 or phi(np.zeros(1))[0] == 0 else math.nan
    c = min(1.0, max(-1.0, product / root))
    if name == "identity":
        return c * root
    if name == "square":
        return first * second * (1 + 2 * c * c)
    if phi.degree == 1:  # a relu(x) - b relu(-x): (a^2 + b^2)/2 ((1 - w) J(c) + w c), w = 2 a b/(a^2 + b^2)
        slope = _SLOPES[name] if name in _SLOPES else float(name.partition(":")[2])
        return root / 2 * ((1 - slope) ** 2 * _relu_cosine(c) + 2 * slope * c)
    if name == "gelu":
        return _gelu_kernel(float(first), float(second), c)
    if name == "silu" and min(first, second) > _WIDE**2:
        return root / 2 * _relu_cosine(c)
    return _by_quadrature(phi.function, math.sqrt(first), math.sqrt(second), c)


def _relu_cosine(c: float) -> float:
    """J(c) for one number: the checks of `bnlib.kernels.relu_cosine` would take most of the time of a layer."""
    return (math.sqrt((1 - c) * (1 + c)) + (math.pi - math.acos(c)) * c) / math.pi


def _gelu_kernel(p: float, q: float, c: float) -> float:
    # D = (1 + p)(1 + q) - r^2 and q - r^2/(1 + p), without cancellation where p and q are large.
    r = c * math.sqrt(p) * math.sqrt(q)
    free = p * q * (1 - c) * (1 + c)
    root = math.sqrt(1 + p + q + free)
    orthant = 0.25 + math.atan2(r, root) / (2 * math.pi)
    ridge = (p * (q + free) / (1 + p) + r * r / (1 + q)) / (2 * math.pi * root)
    return r * orthant + ridge


def _rule() -> tuple[np.ndarray, np.ndarray]:
    z = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-z * z / 2)
    return z, weights / weights.sum()


_NODES, _WEIGHTS = _rule()
_HALF_WEIGHTS = np.concatenate([_WEIGHTS[_POINTS // 2 :][:1], 2 * _WEIGHTS[_POINTS // 2 + 1 :]])


def _by_quadrature(phi: Callable[[np.ndarray], np.ndarray], p: float, q: float, c: float) -> float:
    if p == q and c == 1.0:
        return float(_WEIGHTS @ phi(p * _NODES) ** 2)
    # Along the two diagonals the rule is as good at c = 1 and -1 as in between.
    plus, minus = math.sqrt((1 + c) / 2), math.sqrt((1 - c) / 2)
    if p == q:  # even in t: one half of the nodes will do
        s, t = plus * _NODES[:, None], minus * _NODES[None, _POINTS // 2 :]
        return float(_WEIGHTS @ (phi(p * (s + t)) * phi(p * (s - t))) @ _HALF_WEIGHTS)
    s, t = plus * _NODES[:, None], minus * _NODES[None, :]
    return float(_WEIGHTS @ (phi(p * (s + t)) * phi(q * (s - t))) @ _WEIGHTS)


def activation_mean(name: str, variance: float | int) -> float:
    """E phi(u) for a centered Gaussian u.

    Args:
        name: as `bnlib.architectures.nonlinearity`.
        variance: of u, not negative.

    Raises:
        ValueError: an unknown activation, or a negative variance.

    Example:
        >>> round(activation_mean("relu", 4) * math.sqrt(2 * math.pi), 12), activation_mean("tanh", 1)
        (2.0, 0.0)
    """
    phi = nonlinearity(name)
    if not 0 <= variance < math.inf:
        raise ValueError(f"variance is {variance}; valid is a finite number from 0 on.")
    std = math.sqrt(variance)
    if name == "square":
        return float(variance)
    if phi.degree == 1:
        up, down = (float(phi(np.array([x]))[0]) for x in (1.0, -1.0))
        return (up + down) * std / math.sqrt(2 * math.pi)
    if name == "gelu":
        return variance / math.sqrt(2 * math.pi * (1 + variance))
    if name == "tanh":
        return 0.0
    if std > _WIDE:
        return std / math.sqrt(2 * math.pi)
    return float(_WEIGHTS @ phi(std * _NODES))


def applies(spec: Architecture) -> bool:
    """Whether `next_gram` knows an architecture: dense, without orthogonal weights and rescaling over the batch.

    Example:
        >>> applies(Architecture.parse("RC+NL")), applies(Architecture.parse("RC+RS+NL"))
        (True, False)
    """
    return spec.layout == "dense" and spec.weights != "orthogonal" and not {"RS", "RMS", "STD"} & set(spec.tokens)


def next_gram(k: ClassGram, n: int | float, spec: Architecture) -> ClassGram:
    """One infinitely wide layer or block.

    Args:
        k: inner products before it.
        n: batch size, at least 3.
        spec: an architecture for which `applies` holds.

    Returns:
        Inner products behind it.

    Raises:
        ValueError: another architecture, or n is not a whole number of at least 3.

    Example:
        >>> from bnlib.kernels import relu_cosine
        >>> found = next_gram(near_symmetric(0.0), 8, Architecture.parse("RC+NL"))
        >>> abs(found.pair / found.own - relu_cosine(-1 / 7)) < 1e-12
        True
    """
    n = checked_integer_batch(n, 3)
    if not applies(spec):
        raise ValueError(
            f"spec is {spec.name!r}; valid is a dense architecture with Gaussian or standardized weights and without "
            "RS, RMS and STD."
        )
    h = _linear(k, spec.weight_variance, spec.weights)
    if spec.bias and spec.tokens[:1] != ("RC",):
        h = _shifted(h, spec.bias)
    norms = [i for i, token in enumerate(spec.tokens) if token != "NL"]
    for i, token in enumerate(spec.tokens):
        if token == "NL":
            h = _activated(h, spec.activation)
        elif token == "RC":
            h = _recentered(h, n)
        else:
            h = _normalized(h, spec.epsilon, about_mean=token == "LN")
        if norms and i == norms[-1]:
            h = _shifted(_scaled(h, spec.gamma), spec.beta)
    if spec.dropout:
        h = replace(h, odd=h.odd / (1 - spec.dropout), own=h.own / (1 - spec.dropout))
    if spec.residual is None:
        return h
    branch = _scaled(_linear(h, 1.0, spec.weights), spec.residual)
    added = {name: getattr(k, name) + getattr(branch, name) for name in ("odd", "own", "pair", "cross")}
    return replace(k, **added)


def _linear(k: ClassGram, weight_variance: float, weights: str) -> ClassGram:
    if weights == "standardized":
        k = _about_mean(k)
    return _scaled(replace(k, odd_mean=0.0, mean=0.0), math.sqrt(weight_variance))


def _about_mean(k: ClassGram) -> ClassGram:
    m, o = k.mean, k.odd_mean
    return ClassGram(max(k.odd - o * o, 0.0), max(k.own - m * m, 0.0), k.pair - m * m, k.cross - o * m)


def _scaled(k: ClassGram, factor: float) -> ClassGram:
    f = factor * factor
    return ClassGram(f * k.odd, f * k.own, f * k.pair, f * k.cross, factor * k.odd_mean, factor * k.mean)


def _shifted(k: ClassGram, std: float) -> ClassGram:
    v = std * std
    return replace(k, odd=k.odd + v, own=k.own + v, pair=k.pair + v, cross=k.cross + v)


def _recentered(k: ClassGram, n: int) -> ClassGram:
    # By differences, so that a tight cluster and a large common part keep their digits.
    m = n - 1
    spread = k.own - k.pair  # half the squared distance of two others
    far = k.odd - 2 * k.cross + k.pair + spread / m  # squared distance of x_1 to the mean of the others
    near = -m * far / n**2  # between x_1 and an other, both about the common mean
    shift = k.odd_mean - k.mean
    own = spread * (m - 1) / m + far / n**2
    return ClassGram(m * m * far / n**2, own, far / n**2 - spread / m, near, shift * m / n, -shift / n)


def _normalized(k: ClassGram, epsilon: float, about_mean: bool) -> ClassGram:
    if about_mean:
        k = _about_mean(k)
    p, q = 1 / math.sqrt(k.odd + epsilon), 1 / math.sqrt(k.own + epsilon)
    return ClassGram(k.odd * p * p, k.own * q * q, k.pair * q * q, k.cross * p * q, k.odd_mean * p, k.mean * q)


def _activated(k: ClassGram, name: str) -> ClassGram:
    return ClassGram(
        activation_kernel(name, k.odd, k.odd, k.odd),
        activation_kernel(name, k.own, k.own, k.own),
        activation_kernel(name, k.own, k.own, min(k.pair, k.own)),
        activation_kernel(name, k.odd, k.own, k.cross),
        activation_mean(name, k.odd),
        activation_mean(name, k.own),
    )


def limit_gram(start: ClassGram, n: int, spec: Architecture, *, layers: int, tolerance: float = 1e-10) -> ClassGram:
    """Many infinitely wide layers.

    Args:
        start: inner products of the batch.
        n: batch size, at least 3.
        spec: an architecture for which `applies` holds.
        layers: at most so many; fewer where the inner products stop changing, up to their scale where the architecture
            is homogeneous.
        tolerance: relative change of a layer that counts as none.

    Returns:
        Inner products behind the last layer, up to their scale where the architecture is homogeneous.

    Raises:
        ValueError: as `next_gram`.

    Example:
        >>> from bnlib.leaky import outlier_state
        >>> found = limit_gram(with_outlier(8), 8, Architecture.parse("RC+NL"), layers=2000)
        >>> abs(math.sqrt(found.odd / found.own) / outlier_state(8).norm_ratio - 1) < 1e-6
        True
    """
    k = start
    for _ in range(layers):
        new = next_gram(k, n, spec)
        size = max(new.odd, new.own)
        if not 0 < size < math.inf:
            return new
        if spec.degree is not None:
            new = _scaled(new, 1 / math.sqrt(size))
        elif size > _RANGE or size < 1 / _RANGE:
            new = _scaled(new, 1e-25 if size > 1 else 1e25)
        before = np.array([k.odd, k.own, k.pair, k.cross])
        change = np.abs(np.array([new.odd, new.own, new.pair, new.cross]) - before).max()
        k = new
        if change <= tolerance * max(k.odd, k.own) and k.own - k.pair > 1e-6 * k.own:
            break
    return k
