"""Fluctuations of one layer of neurons: the noise that drives a batch from its symmetric state.

For h = g - mean(g) with independent Gaussian g, h is g given that its sum is zero; a Fourier integral over one variable
carries the condition, so that every moment of phi(h_1), phi(h_2), ... is exact up to quadrature. phi is the positively
homogeneous activation of `bnlib.leaky`, a relu(x) - b relu(-x) with the leaky slope b/a; 0 is ReLU. NumPy float64.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import wofz

from bnlib import leaky
from bnlib.checks import Result, Values, checked_batch_size, checked_values, plain

_TIMES = np.linspace(-40.0, 40.0, 6401)  # of the Fourier integrals: the spacing is far below what float64 resolves


@dataclass(frozen=True)
class GramFluctuations:
    """Covariance, per neuron, of the Gram matrix phi(h) phi(h)^T at the symmetric state, by its symmetric parts.

    A symmetric matrix is M_ii = t_0 + A_i, M_ij = t_1 + B_i + B_j + E_ij with sum A = sum B = 0 and E of zero row sums.
    Units: the mean squared norm a neuron gives to each sample is 1.

    Attributes:
        n: batch size.
        mean: mean of M_ii and of M_ij, shape (2,).
        uniform: covariance of (t_0, t_1), shape (2, 2).
        sample: covariance of (A_i, B_i), the same for every i, shape (2, 2).
        pair: variance of E_ij were it not bound to zero row sums: its covariance is `pair` times the projection; 0 at
        n = 3.
    """

    n: int
    mean: Float[np.ndarray, "2"]
    uniform: Float[np.ndarray, "2 2"]
    sample: Float[np.ndarray, "2 2"]
    pair: float


def whole_batch_size(n: int | float) -> int:
    """Return n as an int, refusing fractions and anything below 3."""
    if int(checked_batch_size(n, 3)) != n:
        raise ValueError(f"n must be a whole number of samples, got {n}.")
    return int(n)


def _transforms(cut: np.ndarray, t: np.ndarray, highest: int) -> list[np.ndarray]:
    """E[(g - cut)_+^p exp(itg)], p = 0, ..., highest, for Gaussian g: Faddeeva's function, integration by parts."""
    size = np.abs(cut)
    front = np.exp(-(size**2) / 2.0 + 1j * t * size)
    beyond = [0.5 * front * wofz((t + 1j * size) / math.sqrt(2.0))]
    beyond.append(front / math.sqrt(2.0 * math.pi) - (size - 1j * t) * beyond[0])
    everywhere = [np.exp(-(t**2) / 2.0) + 0j * cut]
    everywhere.append((1j * t - cut) * everywhere[0])
    for p in range(1, highest):
        beyond.append(p * beyond[p - 1] - (size - 1j * t) * beyond[p])
        everywhere.append(p * everywhere[p - 1] + (1j * t - cut) * everywhere[p])
    # Below zero the function itself overflows: take the other tail off the whole line instead.
    return [
        np.where(cut < 0, whole - (-1) ** p * tail.conj(), tail)
        for p, (tail, whole) in enumerate(zip(beyond, everywhere, strict=True))
    ]


def _activated(shift: np.ndarray, scale: float, t: np.ndarray, w: float) -> list[np.ndarray]:
    """E[phi(shift + scale g)^p exp(itg)], p = 0, ..., 4, of the activation with mixing w and a^2 + b^2 = 1."""
    a, b = _slopes(w)
    cut = -shift / scale
    above = _transforms(cut, t, 4)
    below = [part.conj() for part in _transforms(-cut, t, 4)]  # of -g
    return [scale**p * (a**p * above[p] + (-b) ** p * below[p]) for p in range(5)]


def _slopes(w: float) -> tuple[float, float]:
    """Slopes a and b of the activation with 2ab = w and a^2 + b^2 = 1."""
    total, difference = math.sqrt(1.0 + w), math.sqrt(1.0 - w)
    return (total + difference) / 2.0, (total - difference) / 2.0


def _moment(parts: list[np.ndarray], weight: np.ndarray, m: int, powers: tuple[int, ...]) -> np.ndarray:
    """E[prod phi(h_i)^p_i] over m Gaussians of zero sum, from their transforms (last axis: Fourier variable)."""
    if len(powers) > m:
        return np.zeros(parts[0].shape[:-1])
    product = weight ** (m - len(powers))
    for power, count in Counter(powers).items():
        product = product * parts[power] ** count
    return np.asarray(product.sum(axis=-1).real / (weight**m).sum())


def _power_sums(parts: list[np.ndarray], weight: np.ndarray, m: int) -> dict[str, np.ndarray]:
    """Moments of p1 = sum phi(h_i) and p2 = sum phi(h_i)^2 over m Gaussians of zero sum."""

    def e(*powers):
        return math.perm(m, len(powers)) * _moment(parts, weight, m, powers)

    return {
        "1": e(1),
        "2": e(2),
        "11": e(2) + e(1, 1),
        "12": e(3) + e(2, 1),
        "111": e(3) + 3 * e(2, 1) + e(1, 1, 1),
        "22": e(4) + e(2, 2),
        "112": e(4) + 2 * e(3, 1) + e(2, 2) + e(2, 1, 1),
        "1111": e(4) + 4 * e(3, 1) + 3 * e(2, 2) + 6 * e(2, 1, 1) + e(1, 1, 1, 1),
    }


def gram_fluctuations(n: int | float, slope: float | int = 0.0) -> GramFluctuations:
    """How the Gram matrix of one layer fluctuates around its mean at the symmetric state.

    Args:
        n: batch size, a whole number of at least 3.
        slope: leaky slope b/a.

    Returns:
        Covariances per neuron: a layer of d neurons has 1/d of them.

    Raises:
        ValueError: n is not a whole number of at least 3, or a slope that is not finite.

    Example:
        >>> found = gram_fluctuations(8)
        >>> round(float(found.mean[1]), 6)  # J(-1/7)
        0.250135
    """
    n = whole_batch_size(n)
    weight = np.exp(-(_TIMES**2) / 2.0)
    parts = _activated(np.zeros(1), math.sqrt(n / (n - 1.0)), _TIMES, float(leaky.mixing(slope)))

    def e(*powers):
        return float(_moment(parts, weight, n, powers))

    # phi phi^T in units in which the diagonal has mean 1: relu^2 has the mean 1/2 for a = 1.
    mean = np.array([e(2), e(1, 1)])
    mean, unit = mean / mean[0], mean[0] ** 2
    moments = {p: e(*p) / unit for p in ((4,), (2, 2), (3, 1), (2, 1, 1), (1, 1, 1, 1))}
    d0, o0 = mean
    dd, dd_other = moments[(4,)] - d0 * d0, moments[(2, 2)] - d0 * d0
    do, do_other = moments[(3, 1)] - d0 * o0, moments[(2, 1, 1)] - d0 * o0
    oo, oo_shared = moments[(2, 2)] - o0 * o0, moments[(2, 1, 1)] - o0 * o0
    oo_other = moments[(1, 1, 1, 1)] - o0 * o0 if n > 3 else 0.0
    pairs = n * (n - 1) / 2
    uniform_do = ((n - 1) * do + (n - 1) * (n - 2) / 2 * do_other) / pairs
    uniform_o = (oo + 2 * (n - 2) * oo_shared + (n - 2) * (n - 3) / 2 * oo_other) / pairs
    back = (n - 1) / (n - 2)  # from the mean of a row to B_i
    sample_ab = back * (do - uniform_do)
    return GramFluctuations(
        n=n,
        mean=mean,
        uniform=np.array([[(dd + (n - 1) * dd_other) / n, uniform_do], [uniform_do, uniform_o]]),
        sample=np.array(
            [
                [(dd - dd_other) * (1 - 1 / n), sample_ab],
                [sample_ab, back**2 * ((oo + (n - 2) * oo_shared) / (n - 1) - uniform_o)],
            ]
        ),
        pair=oo - 2 * oo_shared + oo_other if n > 3 else 0.0,
    )


def spread_noise(n: int | float, slope: float | int = 0.0) -> float:
    """tau^2: a layer of d neurons adds to the spread a of the norms noise of covariance (tau^2 / d) G.

    From y_i, the squared deviation of neuron value phi(h_i) from its mean over the batch, and S = sum y_i:
    tau^2 = (sum_i E[(n y_i - S)^2]) / ((n - 1) E[S]^2). For n to infinity it tends to the kurtosis of phi(g), less 1.

    Args:
        n: batch size, a whole number of at least 3.
        slope: leaky slope b/a.

    Returns:
        tau^2, no unit.

    Raises:
        ValueError: n is not a whole number of at least 3, or a slope that is not finite.

    Example:
        >>> round(spread_noise(3), 3), round(spread_noise(8), 4)
        (1.75, 3.9311)
    """
    n = whole_batch_size(n)
    found = gram_fluctuations(n, slope)
    # C_ii = M_ii - (2/n) sum_j M_ij + const = (1 - 2/n) A_i - 2 (n-2)/n B_i + const.
    combination = np.array([1.0 - 2.0 / n, -2.0 * (n - 2.0) / n])
    scale = (n - 1.0) / n * (found.mean[0] - found.mean[1])  # mean of C_ii
    variance = float(combination @ found.sample @ combination) / scale**2
    return float(variance / (1.0 - 1.0 / n))


def state_of_spread(a: Values, n: float | int) -> Result:
    """State u of `bnlib.outlier_class` in which one sample has n C_11 / tr C = 1 + a, and the others share the rest.

    Args:
        a: spread of the odd sample, any shape, above -1 and at most n - 2.
        n: batch size, at least 3; any real number.

    Returns:
        u, same shape; a = 0 is the symmetric state (n-1)/n, a = n - 2 the collapsed cluster, 0.

    Raises:
        ValueError: a spread outside (-1, n - 2], or n < 3.

    Example:
        >>> state_of_spread(0.0, 8), abs(state_of_spread(6.0, 8)) < 1e-15
        (0.875, True)
    """
    n = checked_batch_size(n, 3)
    a = checked_values("a", a, -1.0 + 1e-12, n - 2.0, "a spread above -1 and at most n - 2")
    m = n - 1.0
    q = (m * m / n / (1.0 + a) - m * m / (n * n)) / m
    return plain(np.maximum(q - 1.0 / (n * n), 0.0) * m / (m - 1.0))


def spread_of_state(u: Values, n: float | int) -> Result:
    """The inverse of `state_of_spread`.

    Args:
        u: state, any shape, in [0, 1e100].
        n: batch size, at least 3; any real number.

    Returns:
        a, same shape.

    Raises:
        ValueError: u is outside [0, 1e100], or n < 3.

    Example:
        >>> round(spread_of_state(state_of_spread(0.3, 8), 8), 12)
        0.3
    """
    n = checked_batch_size(n, 3)
    u = checked_values("u", u, 0.0, 1e100, "a ratio of squared distances, between 0 and 1e100")
    m = n - 1.0
    p, q = m * m / (n * n), u * (m - 1.0) / m + 1.0 / (n * n)
    return plain(np.asarray(n * p / (p + m * q) - 1.0))


def noise_along(a: float | int, n: int | float, slope: float | int = 0.0) -> float:
    """Variance, times the width, that a layer adds to the spread a of one odd sample over equivalent others.

    Exact up to quadrature at any state of the class: the odd sample's value is integrated over, the others are
    Gaussian of zero sum around -h_1/(n-1). At a = 0 it is tau^2 (1 - 1/n).

    Args:
        a: spread of the odd sample, above -1 and below n - 2.
        n: batch size, a whole number of at least 4.
        slope: leaky slope b/a.

    Returns:
        The variance of a' times the number of neurons, to leading order in 1/width.

    Raises:
        ValueError: a spread outside (-1, n - 2), n is not a whole number of at least 4, or a slope that is not finite.

    Example:
        >>> round(noise_along(0.0, 8), 4), round(spread_noise(8) * 7 / 8, 4)
        (3.4397, 3.4397)
    """
    n = whole_batch_size(checked_batch_size(n, 4))
    u = state_of_spread(a, n)
    if not u > 0 or not np.isscalar(a):
        raise ValueError(f"a is {a}; valid is a spread above -1 and below n - 2 = {n - 2}.")
    m, w = n - 1, float(leaky.mixing(slope))
    nodes, weights = np.polynomial.legendre.leggauss(24)
    x = np.concatenate([4.5 * (nodes - 1.0), 4.5 * (nodes + 1.0)])  # -9 to 9, split at the kink
    density = np.tile(4.5 * weights, 2) * np.exp(-(x**2) / 2.0) / math.sqrt(2.0 * math.pi)
    x = x * m / n
    t = np.linspace(-14.0, 14.0, 281) / math.sqrt(max(1.0, (m - 4.0) / 4.0))  # the weight narrows like 1/sqrt(m)
    p = _power_sums(_activated(-x[:, None] / m, math.sqrt(u), t, w), np.exp(-(t**2) / 2.0), m)
    slope_a, slope_b = _slopes(w)
    r = np.where(x > 0, slope_a, slope_b) * x
    # y = ((m r - p1)/n)^2, S = s0 + p2 - 2 r p1/n - p1^2/n: quadratic forms in the power sums.
    powers = ["", "1", "11", "111", "1111"]
    moments = [np.ones_like(x), *(p[name] for name in powers[1:])]
    y = np.array([m * m * r * r, -2.0 * m * r, np.ones_like(r)]) / n**2
    s = np.array([r * r * (1.0 - 1.0 / n), -2.0 * r / n, np.full_like(r, -1.0 / n)])
    with_p2 = [p["2"], p["12"], p["112"]]
    mean_y = sum(y[k] * moments[k] for k in range(3)) @ density
    mean_s = (sum(s[k] * moments[k] for k in range(3)) + p["2"]) @ density
    k = n * mean_y / mean_s  # 1 + a'
    z = n * y - k * s  # z = z0 + z1 p1 + z2 p1^2 - k p2
    square = sum(z[i] * z[j] * moments[i + j] for i in range(3) for j in range(3))
    square = square - 2.0 * k * sum(z[i] * with_p2[i] for i in range(3)) + k * k * p["22"]
    return float(square @ density) / float(mean_s) ** 2
