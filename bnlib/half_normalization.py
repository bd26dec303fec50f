"""Networks with one half of batch normalization: how gradients grow with recentering alone and with rescaling alone.

Recentering alone leaves a positively homogeneous layer homogeneous, so scales are free: what counts is the squared
gradient relative to the squared forward scale. At infinite width the maps of the samples' and of the gradient's second
moments are explicit. Rescaling alone (root mean square over the batch) fixes the scale, and the gradient's covariance
keeps a component along (1, ..., 1), so its map is a 2 x 2 matrix. NumPy float64; this module does not import torch.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.checks import checked_integer_batch
from bnlib.kernels import relu_cosine, relu_cosine_derivative


@dataclass(frozen=True)
class HalfRates:
    """Multipliers per layer of a network with one half of batch norm, or with neither.

    Attributes:
        forward: of the squared norm of what batch norm keeps (the centered pre-activations for recentering), going up.
        gradient: of the squared gradient norm, going down.
    """

    forward: float
    gradient: float

    @property
    def relative(self) -> float:
        """Gradient / forward, which does not depend on the weight variance: growth at a forward scale held fixed."""
        return self.gradient / self.forward


def recentered_relu_rates(n: int | float, weight_variance: float | int = 2.0) -> HalfRates:
    """ReLU networks with recentering alone, in the symmetric state: closed form.

    forward = weight_variance (n-1)(1-J)/(2n), gradient = weight_variance (n-1+J')/(2n), J and J' at -1/(n-1): their
    ratio (n-1+J')/((n-1)(1-J)) tends to pi/(pi-1), as the growth under full batch normalization does.

    Args:
        n: batch size, at least 2; any real number.
        weight_variance: sigma^2 > 0.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(recentered_relu_rates(1e9).relative * (math.pi - 1) / math.pi, 6)
        1.0
    """
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    j, slope = float(relu_cosine(-1.0 / (n - 1))), float(relu_cosine_derivative(-1.0 / (n - 1)))
    return HalfRates(weight_variance * (n - 1) * (1 - j) / (2 * n), weight_variance * (n - 1 + slope) / (2 * n))


def recentered_relu_state(
    start: Float[np.ndarray, "n n"], layers: int = 4000
) -> tuple[Float[np.ndarray, "n n"], float]:
    """The centered covariance that ReLU networks with recentering alone run into at infinite width.

    S -> G E[relu(h) relu(h)^T] G for h ~ N(0, S), with the scale divided out.

    Args:
        start: covariance of the first pre-activations, positive semi-definite.
        layers: at most so many iterations.

    Returns:
        The state with trace 1, and the multiplier of the trace per layer at weight variance 1.

    Raises:
        ValueError: start is not a square matrix, or all samples are equal.

    Example:
        >>> state, forward = recentered_relu_state(np.eye(8))
        >>> np.round(state[0, :2] * 8, 6).tolist(), round(forward, 6) == round(recentered_relu_rates(8, 1).forward, 6)
        ([1.0, -0.142857], True)
    """
    sigma = np.array(start, dtype=np.float64)
    if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1] or len(sigma) < 2:
        raise ValueError(f"start must be a square matrix of at least two rows, got shape {sigma.shape}.")
    centering = np.eye(len(sigma)) - 1 / len(sigma)
    centered = centering @ sigma @ centering
    if not np.trace(centered) > 1e-12 * max(np.trace(sigma), 1e-300):
        raise ValueError("start must hold samples that differ, but they are all equal.")
    forward = 0.0
    centered /= np.trace(centered)
    for _ in range(layers):
        norms = np.sqrt(np.diag(centered))
        cosines = np.clip(centered / np.outer(norms, norms), -1.0, 1.0)
        after = centering @ (np.outer(norms, norms) / 2 * relu_cosine(cosines)) @ centering
        before, forward = centered, float(np.trace(after))
        centered = after / forward
        if np.abs(centered - before).max() < 1e-16:
            break
    return centered, forward


def outlier_start(n: int | float, ratio: float | int = 4.0) -> Float[np.ndarray, "n n"]:
    """Covariance of orthogonal samples of which the first is longer: a start in the basin of the outlier state.

    Args:
        n: batch size, at least 2.
        ratio: length of the first sample in units of the others' common length, positive.

    Example:
        >>> np.diag(outlier_start(3, 2)).tolist()
        [4.0, 1.0, 1.0]
    """
    start = np.eye(checked_integer_batch(n, 2))
    start[0, 0] = ratio**2
    return start


def recentered_relu_rates_at(
    start: Float[np.ndarray, "n n"], weight_variance: float | int = 2.0, layers: int = 4000
) -> HalfRates:
    """ReLU networks with recentering alone, in the state that a batch runs into at infinite width.

    Backward, P -> weight_variance G (P * A) G with A_ij the probability that sample i and sample j are both active,
    (pi - angle_ij) / (2 pi), iterated with its scale divided out; forward, see `recentered_relu_state`.

    Args:
        start: covariance of the first pre-activations, positive semi-definite.
        weight_variance: sigma^2 > 0.
        layers: at most so many iterations of each map.

    Returns:
        The rates of the limits.

    Raises:
        ValueError: start is not a square matrix, or all samples are equal.

    Example:
        >>> found, exact = recentered_relu_rates_at(np.eye(8)), recentered_relu_rates(8)
        >>> abs(found.gradient - exact.gradient) < 1e-12, abs(found.forward - exact.forward) < 1e-12
        (True, True)
    """
    state, forward = recentered_relu_state(start, layers)
    n = len(state)
    centering = np.eye(n) - 1 / n
    norms = np.sqrt(np.diag(state))
    cosines = np.clip(state / np.outer(norms, norms), -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)  # arccos would turn a rounding error of 1e-16 into one of 1e-8
    active = np.asarray(relu_cosine_derivative(cosines)) / 2
    gradient, growth = centering / (n - 1), 0.0
    for _ in range(layers):
        gradient = centering @ (gradient * active) @ centering
        before, growth = growth, float(np.trace(gradient))
        gradient /= growth
        if abs(growth - before) < 1e-16:
            break
    return HalfRates(weight_variance * forward, weight_variance * growth)


def rescaled_relu_rates(
    n: int | float, cosine: float, draws: int, generator: np.random.Generator
) -> tuple[HalfRates, float]:
    """ReLU networks with rescaling alone (root mean square over the batch), samples at one mutual cosine.

    The gradient's covariance is a I + b 11^T; one layer acts on (trace, sum of entries) as a 2 x 2 matrix, which is
    averaged over draws. The largest eigenvalue is the growth.

    Args:
        n: batch size, at least 3.
        cosine: between any two samples of the pre-activation, from 0 to below 1, e.g. of `kernels.rms_fixed_point`.
        draws: Monte Carlo sample, at least 100; it is split into twenty groups for the standard error.
        generator: source of the randomness.

    Returns:
        The rates (the forward one is 1, since rescaling fixes the scale) and the standard error of the gradient's.

    Raises:
        ValueError: a size or the cosine is out of range.

    Example:
        >>> rates, error = rescaled_relu_rates(16, 0.5, 20000, np.random.default_rng(0))
        >>> 1.0 < rates.gradient < 1.6 and 0 < error < 0.1
        True
    """
    n = checked_integer_batch(n, 3)
    if not 0 <= cosine < 1:
        raise ValueError(f"cosine must be from 0 to below 1, got {cosine}.")
    if draws < 100:
        raise ValueError(f"draws must be at least 100, got {draws}.")
    groups = []
    for _ in range(20):
        h = math.sqrt(1 - cosine) * generator.standard_normal((draws // 20, n))
        h += math.sqrt(cosine) * generator.standard_normal((draws // 20, 1))
        square = (h**2).sum(axis=1, keepdims=True)
        u, active = h / np.sqrt(square), (h > 0).astype(float)
        ones = 1 - u.sum(axis=1, keepdims=True) * u  # (I - u u^T) 1
        factor = n / square[:, 0]
        trace_i = factor * (active * (1 - u**2)).sum(axis=1)
        trace_1 = factor * (active.sum(axis=1) - (active * u).sum(axis=1) ** 2)
        total_i = factor * (active * ones**2).sum(axis=1)
        total_1 = factor * (active * ones).sum(axis=1) ** 2
        groups.append([[trace_i.mean(), trace_1.mean()], [total_i.mean(), total_1.mean()]])
    # (a, b) gives trace n (a + b) and sum n (a + n b). The weight variance drops out: normalization forgets it.
    to_features = np.array([[n, n], [n, n * n]], dtype=float)
    scale = 2 / 1.0  # E phi(b)^2 is half the mean square, so the variance of h at width d is weight_variance / 2 = 1
    matrices = np.array(groups) * scale
    rates = [max(np.linalg.eigvals(np.linalg.solve(to_features, one)).real) for one in matrices]
    mean = max(np.linalg.eigvals(np.linalg.solve(to_features, matrices.mean(axis=0))).real)
    return HalfRates(1.0, float(mean)), float(np.std(rates, ddof=1) / math.sqrt(len(rates)))
