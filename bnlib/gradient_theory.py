"""Gradient growth beyond the plain mean-field rate: epsilon, small batches, networks of finite width.

Notation as in `bnlib.mean_field`: n is the batch size, mu the centered covariance of a pre-activation (G S G = mu G),
D = Diag(phi'(b)), v a uniform direction of the centered hyperplane. A layer is X -> H = X W -> batch norm -> phi, with
weights of variance weight_variance / width. All rates are for *squared* gradient norms, per layer, going down, under
gradient independence (arXiv 1902.08129, appendix B). With s^2 = |G h|^2 / n + epsilon and r^2 = |G h|^2 / (n s^2), the
backward Jacobian of batch norm is (1/s) G (I - r^2 v v^T), so that

    growth = weight_variance / (n-1) * E[(tr(G D G D) - (2 r^2 - r^4) v^T D G D v) / s^2].

NumPy float64; this module does not import torch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from bnlib.activations import Activation, activation, leaky_relu, power_relu
from bnlib.checks import checked_integer_batch
from bnlib.mean_field import GRADIENT_MINIMUM, symmetric_fixed_point
from bnlib.sphere import one_entry, two_entries

_RADII = 400  # trapezoidal points for log |G h|; the integrands are analytic and decay on both sides


@dataclass(frozen=True)
class EpsilonState:
    """The symmetric fixed point of a network whose batch norm adds epsilon to the variance.

    Attributes:
        n: batch size.
        epsilon: added to the variance of a pre-activation.
        centered: mu, the centered covariance of the pre-activations; 0 where the signal dies out with depth.
        gradient: growth of the squared gradient per layer going down.
        signal: multiplier of a small centered covariance per layer going up; above 1 exactly where mu > 0. It is
            infinite for epsilon 0.
    """

    n: int
    epsilon: float
    centered: float
    gradient: float
    signal: float


def scaled(phi: Activation, gain: float | int) -> Activation:
    """The activation x -> phi(gain * x): batch norm with the gain gamma, then phi.

    Args:
        phi: activation.
        gain: gamma, positive; a small one makes a smooth activation nearly linear.

    Raises:
        ValueError: gain is not positive and finite.

    Example:
        >>> abs(scaled(activation("tanh"), 0.5)(np.array([2.0])).item() - math.tanh(1.0)) < 1e-15
        True
    """
    if not 0 < gain < math.inf:
        raise ValueError(f"gain must be positive and finite, got {gain}.")
    return Activation(
        f"{phi.name} at gain {gain:g}",
        lambda x: phi.function(gain * x),
        lambda x: gain * phi.derivative(gain * x),
        degree=phi.degree,
    )


def parsed_activation(name: str) -> Activation:
    """An activation by a name that may carry one number: "relu", "leaky 0.5", "tanh 0.1" (a gain), "abs".

    Args:
        name: of `bnlib.activations.activation`, or "leaky" and a slope, or "power" and a degree, or a known name and a
            positive gain.

    Raises:
        ValueError: an unknown name, or a number that is none.

    Example:
        >>> parsed_activation("leaky 0.5").name, parsed_activation("tanh 0.1").name
        ('leaky relu 0.5', 'tanh at gain 0.1')
    """
    word, _, rest = name.partition(" ")
    if not rest:
        return activation(word)
    try:
        value = float(rest)
    except ValueError:
        raise ValueError(f"name must end in a number after {word!r}, got {name!r}.") from None
    if word == "power":
        return power_relu(value)
    return leaky_relu(value) if word == "leaky" else scaled(activation(word), value)


def radial_rule(n: int | float) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Quadrature for |G z|^2 of a standard Gaussian z, chi-square with n - 1 degrees of freedom.

    Args:
        n: batch size, at least 2.

    Returns:
        Nodes and weights of sum 1, by the trapezoidal rule in log |G z|.

    Raises:
        ValueError: n is not a whole number of at least 2.

    Example:
        >>> square, weights = radial_rule(8)
        >>> round(float(weights @ square), 10), round(float(weights @ (1 / square)), 10)  # n - 1 and 1 / (n - 3)
        (7.0, 0.2)
    """
    n = checked_integer_batch(n, 2)
    spread = 1 / math.sqrt(2 * (n - 1))
    peak = math.log(n - 1) / 2
    # Wide enough for a factor 1/|G z|^2 as well, where its mean exists.
    u = np.linspace(peak - 40 / max(n - 3, 1) - 12 * spread, peak + 12 * spread, _RADII)
    logs = (n - 1) * u - np.exp(2 * u) / 2
    kept = logs + np.maximum(-2 * u, 0.0) > logs.max() - 42
    u, logs = u[kept], logs[kept]
    weights = np.exp(logs - logs.max())
    return np.exp(2 * u), weights / weights.sum()


def sample_mean_convergence(
    phi: Activation, n: int | float, sizes: tuple[int, ...], draws: int, generator: np.random.Generator
) -> list[dict[str, float | int]]:
    """How slowly a sample mean of `neuron_factors` finds its expectation.

    Args:
        phi: activation.
        n: batch size, at least 4.
        sizes: sample sizes.
        draws: numbers drawn for each size, split into samples of that size; at least four times the largest size.
        generator: source of the randomness.

    Returns:
        For each size "size", "median" of the sample means, their "low" and "high" quartiles, and "samples".

    Raises:
        ValueError: draws is too small.

    Example:
        >>> rows = sample_mean_convergence(activation("relu"), 4, (10, 100), 4000, np.random.default_rng(0))
        >>> [row["samples"] for row in rows]
        [400, 40]
    """
    if draws < 4 * max(sizes):
        raise ValueError(f"draws must be at least four times the largest size {max(sizes)}, got {draws}.")
    rows = []
    for size in sizes:
        samples = draws // size
        means = np.array([neuron_factors(phi, n, size, generator).mean() for _ in range(samples)])
        low, median, high = np.quantile(means, [0.25, 0.5, 0.75])
        rows.append({"size": size, "median": float(median), "low": float(low), "high": float(high), "samples": samples})
    return rows


def _layer_means(phi: Activation, n: int, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At b = scale * sqrt(n) v: E tr(G D G D) and E v^T D G D v, one a scale (one in all for degree one)."""
    x, w = one_entry(n)
    pair = two_entries(n)
    found = []
    for scale in scales if phi.degree != 1 else (1.0,):
        slope = phi.derivative(scale * x)
        slopes = phi.derivative(scale * pair.first) * phi.derivative(scale * pair.second)
        trace = (n - 1) / n * ((n - 1) * float(w @ slope**2) + pair.mean(slopes))
        radial = (n - 1) / n * (float(w @ (slope * x) ** 2) - pair.mean(slopes * pair.first * pair.second))
        found.append((trace, radial))
    trace, radial = np.array(found).T
    return trace, radial


@lru_cache(maxsize=64)
def _plain_centered(phi: Activation, n: int) -> float:
    return symmetric_fixed_point(phi, n).centered


def _centered_after(phi: Activation, n: int, epsilon: float, variance: float, mu: float) -> float:
    square, weights = radial_rule(n)
    scales = np.sqrt(mu * square / (mu * square + n * epsilon))
    if phi.degree == 1:
        return variance * _plain_centered(phi, n) * float(weights @ scales**2)
    x, w = one_entry(n)
    pair = two_entries(n)
    centered = [
        float(w @ phi(scale * x) ** 2) - pair.mean(phi(scale * pair.first) * phi(scale * pair.second))
        for scale in scales
    ]
    return variance * float(weights @ centered)


def epsilon_state(
    phi: Activation, n: int | float, epsilon: float | int, weight_variance: float | int = 2.0
) -> EpsilonState:
    """Fixed point and gradient growth with epsilon added to the variance, as every implementation does.

    Args:
        phi: activation; kinks are allowed at 0 only. Its value at 0 does not matter.
        n: batch size, at least 2; at least 4 for epsilon 0.
        epsilon: at least 0, in units of the pre-activation's variance.
        weight_variance: sigma^2 > 0; batch norm without epsilon forgets it, epsilon is measured against it.

    Returns:
        The state; `centered` is 0 where epsilon is so large that the signal dies out, and `gradient` is then the rate
        of that limit, weight_variance / epsilon * E tr(G D G D) / (n-1).

    Raises:
        ValueError: epsilon is negative, n is too small for the mean to exist, or weight_variance is not positive.

    Example:
        >>> state = epsilon_state(activation("relu"), 8, 0.0)
        >>> round(state.gradient, 5)  # bnlib.mean_field.relu_gradient_growth(8)
        1.78819
        >>> epsilon_state(activation("identity"), 8, 2.5).centered  # 2 n / (n - 1) * (n - 1) / n < 2.5
        0.0
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be at least 0 and finite, got {epsilon}.")
    if not 0 < weight_variance < math.inf:
        raise ValueError(f"weight_variance must be positive and finite, got {weight_variance}.")
    n = checked_integer_batch(n, 2)
    if epsilon == 0 and n < GRADIENT_MINIMUM:
        raise ValueError(
            f"n must be at least {GRADIENT_MINIMUM} at epsilon 0, since the mean does not exist at 3 or below, got {n}."
        )
    square, weights = radial_rule(n)
    tiny = 1e-12
    if epsilon == 0:
        mu, signal = weight_variance * symmetric_fixed_point(phi, n).centered, math.inf
    else:
        tiny *= epsilon
        signal = _centered_after(phi, n, epsilon, weight_variance, tiny) / tiny
        high = tiny
        while _centered_after(phi, n, epsilon, weight_variance, high) > high:
            high *= 10
        mu = 0.0
        if high > tiny:
            mu = float(
                brentq(
                    lambda value: _centered_after(phi, n, epsilon, weight_variance, value) / value - 1,
                    high / 10,
                    high,
                    xtol=1e-15,
                    rtol=1e-14,
                )
            )
    deviation = mu * square / n + epsilon
    share = mu * square / n / deviation
    trace, radial = _layer_means(phi, n, np.sqrt(np.maximum(share, 1e-24)))
    gradient = weight_variance / (n - 1) * float(weights @ ((trace - (2 * share - share**2) * radial) / deviation))
    return EpsilonState(n, float(epsilon), mu, gradient, signal)


def critical_epsilon(phi: Activation, n: int | float, weight_variance: float | int = 2.0) -> float:
    """The epsilon above which the signal of a network with an activation of degree one dies out with depth.

    weight_variance * mu_1 (n-1)/n, where mu_1 is the centered covariance of the epsilon-free fixed point: a small mu
    becomes weight_variance * mu_1 E[mu chi^2_{n-1}] / (n epsilon) in one layer.

    Args:
        phi: activation of degree one.
        n: batch size, at least 2.
        weight_variance: sigma^2 > 0.

    Raises:
        ValueError: phi is not of degree one, or n is too small.

    Example:
        >>> round(critical_epsilon(activation("identity"), 8, 1.0), 12)
        1.0
    """
    if phi.degree != 1:
        raise ValueError(f"phi must be positively homogeneous of degree one, got {phi.name}.")
    n = checked_integer_batch(n, 2)
    return weight_variance * symmetric_fixed_point(phi, n).centered * (n - 1) / n


# ------------------------------------------------------------------------------------------------- small batches


def tail_index(n: int | float) -> float:
    """Tail index of one neuron's squared gradient factor: P(factor > t) falls like t^-(n-1)/2.

    The factor holds 1/|G h|^2, and |G h|^2 is chi-square with n - 1 degrees of freedom. Moments of order p exist for
    p < (n-1)/2: no mean at n = 3, no variance up to n = 5.

    Args:
        n: batch size, at least 3.

    Raises:
        ValueError: n is not a whole number of at least 3.

    Example:
        >>> tail_index(3), tail_index(4)
        (1.0, 1.5)
    """
    return (checked_integer_batch(n, 3) - 1) / 2


def growth_per_width_doubling(phi: Activation, n: int | float = 3) -> float:
    """How much the typical growth of the squared gradient at n = 3 rises when the width doubles.

    At n = 3 the factor of one neuron has P(factor > t) = a / t for large t, a = n E[tr(G D G D) - v^T D G D v] /
    (2 mu (n-1)); the mean of d of them is a log d + O(1) in probability.

    Args:
        phi: activation.
        n: 3; other sizes have no such law.

    Returns:
        a log 2.

    Raises:
        ValueError: n is not 3.

    Example:
        >>> round(growth_per_width_doubling(activation("relu")) / math.log(2), 3)  # (1 + J + J') / (2 (1 - J))
        0.809
    """
    if n != 3:
        raise ValueError(f"n must be 3, where the factor's tail falls like 1/t, got {n}.")
    trace, radial = (float(value[0]) for value in _layer_means(phi, 3, np.ones(1)))
    return 3 * (trace - radial) / (2 * symmetric_fixed_point(phi, 3).centered * 2) * math.log(2)


def neuron_factors(
    phi: Activation,
    n: int | float,
    draws: int,
    generator: np.random.Generator,
    *,
    state: EpsilonState | None = None,
    weight_variance: float | int = 2.0,
) -> Float[np.ndarray, " draws"]:
    """Monte Carlo draws whose mean is the growth of the squared gradient: tr of one neuron's backward map at P = G.

    weight_variance / (n-1) (tr(G D G D) - (2 r^2 - r^4) v^T D G D v) / s^2 at a pre-activation drawn from the fixed
    point, by plain sums over the batch.

    Args:
        phi: activation.
        n: batch size, at least 3; from 4 on the mean exists, from 6 on the variance.
        draws: how many, at least 1.
        generator: source of the randomness.
        state: fixed point with its epsilon and its mu > 0; None without epsilon.
        weight_variance: that of the state.

    Raises:
        ValueError: n or draws is too small.

    Example:
        >>> x = neuron_factors(activation("relu"), 16, 20000, np.random.default_rng(0))
        >>> bool(abs(x.mean() - 1.58995) < 5 * x.std() / math.sqrt(len(x)))
        True
    """
    n = checked_integer_batch(n, 3)
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}.")
    mu = state.centered if state else weight_variance * symmetric_fixed_point(phi, n).centered
    h = math.sqrt(mu) * generator.standard_normal((draws, n))
    h -= h.mean(axis=1, keepdims=True)
    square = (h**2).sum(axis=1)
    deviation = square / n + (state.epsilon if state else 0.0)
    share = square / n / deviation
    v = h / np.sqrt(square)[:, None]
    slope = phi.derivative(h / np.sqrt(deviation)[:, None])
    trace = (1 - 2 / n) * (slope**2).sum(axis=1) + slope.sum(axis=1) ** 2 / n**2
    radial = ((slope * v) ** 2).sum(axis=1) - (slope * v).sum(axis=1) ** 2 / n
    return weight_variance / (n - 1) * (trace - (2 * share - share**2) * radial) / deviation


def independent_growth(
    phi: Activation,
    n: int | float,
    width: int,
    layers: int,
    chains: int,
    generator: np.random.Generator,
    *,
    root: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Float[np.ndarray, "chains layers"]:
    """Squared-gradient factors of networks of finite width under gradient independence.

    Forward the samples' second moments go through layers of `width` neurons, backward the gradient's do with
    independent copies of the weights: only n x n matrices are handed on.

    Args:
        phi: activation.
        n: batch size, at least 3.
        width: neurons a layer, at least 1.
        layers: how many, at least 1.
        chains: independent networks, at least 1.
        generator: source of the randomness.
        root: matrix root for a stack of positive semi-definite matrices; None for the symmetric one.

    Returns:
        Each layer's factor, the first column at the output.

    Raises:
        ValueError: a size is too small.

    Example:
        >>> factors = independent_growth(activation("relu"), 16, 256, 4, 2, np.random.default_rng(0))
        >>> factors.shape, bool((factors > 1.2).all() and (factors < 2.2).all())
        ((2, 4), True)
    """
    n = checked_integer_batch(n, 3)
    if min(width, layers, chains) < 1:
        raise ValueError(f"width, layers and chains must be at least 1, got {width}, {layers} and {chains}.")
    root = root or _symmetric_root
    second = np.broadcast_to(np.eye(n), (chains, n, n))
    hidden = []
    for _ in range(layers + 2):
        h = root(second) @ generator.standard_normal((chains, n, width))
        h -= h.mean(axis=1, keepdims=True)
        hidden.append(h)
        after = phi(h / np.sqrt((h**2).mean(axis=1, keepdims=True)))
        second = after @ after.transpose(0, 2, 1) / width
    gradient = np.broadcast_to(np.eye(n), (chains, n, n))
    factors = []
    # The first layer is left out: its input is not the output of an activation, and its factor would be another.
    for index, h in enumerate(reversed(hidden[1:])):
        delta = root(gradient) @ generator.standard_normal((chains, n, width))
        deviation = np.sqrt((h**2).mean(axis=1, keepdims=True))
        b = h / deviation
        delta = phi.derivative(b) * delta
        delta = (delta - delta.mean(axis=1, keepdims=True) - b * (b * delta).mean(axis=1, keepdims=True)) / deviation
        gradient = delta @ delta.transpose(0, 2, 1) / width
        trace = np.trace(gradient, axis1=1, axis2=2)
        if index:  # the first gradient is that of the readout, not of a layer
            factors.append(trace)
        gradient = gradient / trace[:, None, None]
    return np.stack(factors, axis=1)


def _symmetric_root(matrices: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrices)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
