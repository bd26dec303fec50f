"""Theory, Monte Carlo and networks side by side: the tables of chapter 9.

Each row compares a growth factor of the squared gradient per layer, computed at infinite width, with an average over
single neurons under gradient independence and with networks that torch differentiates, at two widths of which the
second is twice the first; a bias proportional to 1/width is removed by extrapolation. Rows are dictionaries of plain
numbers for a results file; None where nothing was measured.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.stats import t as student

from bnlib.activations import Activation
from bnlib.gradient_theory import (
    EpsilonState,
    epsilon_state,
    independent_growth,
    neuron_factors,
    parsed_activation,
)
from bnlib.gradients import Growth, NetworkGradients, extrapolated, growth_per_layer, network_gradients, typical_growth
from bnlib.half_normalization import (
    outlier_start,
    recentered_relu_rates_at,
    recentered_relu_state,
    rescaled_relu_rates,
)
from bnlib.kernels import rms_fixed_point
from bnlib.mean_field import gradient_growth

VARIANCE_EXISTS = 6  # smallest batch size at which the squared gradient factor of a neuron has a variance
Generator = Callable[..., torch.Generator]


def numpy_stream(generator: torch.Generator) -> np.random.Generator:
    """A NumPy stream whose seed is the next number of a torch one.

    Args:
        generator: a torch generator, on any device.

    Example:
        >>> numpy_stream(torch.Generator().manual_seed(0)).random() < 1
        True
    """
    return np.random.default_rng(torch.randint(2**62, (1,), generator=generator, device=generator.device).item())


def batch_in_state(covariance: np.ndarray, draws: int, width: int | None, generator: torch.Generator) -> torch.Tensor:
    """Inputs whose pre-activations have a given covariance (at weight variance 1).

    Args:
        covariance: positive semi-definite, shape (n, n).
        draws: networks.
        width: features, for a Gaussian sample of that covariance; None for n features with exactly that Gram matrix.
        generator: source of the randomness, and the device.

    Returns:
        Shape (draws, n, width or n), float64.

    Example:
        >>> x = batch_in_state(np.eye(3), 2, None, torch.Generator().manual_seed(0))
        >>> torch.allclose(x @ x.mT / 3, torch.eye(3, dtype=torch.float64).expand(2, 3, 3))
        True
    """
    values, vectors = np.linalg.eigh(covariance)
    root = torch.tensor(vectors * np.sqrt(np.maximum(values, 0.0)), device=generator.device)
    if width is None:
        return (root * math.sqrt(len(root))).expand(draws, -1, -1)
    noise = torch.randn(draws, len(root), width, generator=generator, device=generator.device, dtype=torch.float64)
    return root @ noise


def _z(estimate: float, error: float, theory: float, theory_error: float = 0.0) -> float:
    return (estimate - theory) / math.hypot(error, theory_error)


def _networks(
    generator: Generator,
    label: str,
    n: int,
    covariance: np.ndarray,
    widths: Sequence[int],
    layers: int,
    draws: int,
    exact_start: bool = False,
    **options: Any,
) -> list[NetworkGradients]:
    found = []
    for width in widths:
        stream = generator("networks", label, n, width)
        x = batch_in_state(covariance, draws, None if exact_start else width, stream)
        found.append(network_gradients(x, width, layers, generator=stream, **options))
    return found


def _row(
    quantity: str,
    n: int,
    theory: float,
    pair: Sequence[Growth],
    *,
    theory_error: float = 0.0,
    monte_carlo: tuple[float, float] | None = None,
    theory_kind: str = "exact",
) -> dict[str, Any]:
    limit = extrapolated(*pair)
    average, error = monte_carlo or (None, None)
    return {
        "quantity": quantity,
        "n": n,
        "theory": theory,
        "theory_kind": theory_kind,
        "monte_carlo": average,
        "monte_carlo_error": error,
        "monte_carlo_z": None if monte_carlo is None else _z(average, error, theory),
        "narrow": pair[0].mean,
        "wide": pair[1].mean,
        "wide_error": pair[1].standard_error,
        "network": limit.mean,
        "network_error": limit.standard_error,
        "network_z": _z(limit.mean, limit.standard_error, theory, theory_error),
    }


def _neurons(
    phi: Activation, n: int, samples: int, stream: torch.Generator, state: EpsilonState | None = None
) -> tuple[float, float]:
    values = neuron_factors(phi, n, samples, numpy_stream(stream), state=state)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(samples))


def activation_rows(
    cases: Sequence[tuple[str, int]], widths: Sequence[int], layers: int, draws: int, samples: int, generator: Generator
) -> list[dict[str, Any]]:
    """Full batch normalization without epsilon: growth of hidden and of weight gradients.

    Args:
        cases: (activation, batch size of at least 6).
        widths: two, the second twice the first.
        layers: of each network, at least 3.
        draws: networks a width.
        samples: neurons of the Monte Carlo average.
        generator: makes a stream from labels, e.g. `Run.generator`.

    Returns:
        One row a case; "weights" and "weights_error" are the growth of the weights' gradients at the larger width
        divided by that of the hidden ones, a paired comparison.

    Raises:
        ValueError: a batch size at which the variance does not exist.

    Example:
        >>> from bnlib import seeds
        >>> rows = activation_rows([("identity", 8)], [16, 32], 4, 4, 100, lambda *key: seeds.generator(0, *key))
        >>> round(rows[0]["theory"], 6)
        1.2
    """
    rows = []
    for name, n in cases:
        if n < VARIANCE_EXISTS:
            raise ValueError(f"cases must have batch sizes of at least {VARIANCE_EXISTS}, got {n} for {name}.")
        phi = parsed_activation(name)
        theory = gradient_growth(phi, n)
        found = _networks(generator, name, n, np.eye(n), widths, layers, draws, name=name)
        row = _row(
            f"{name}, batch norm",
            n,
            theory,
            [growth_per_layer(one.hidden) for one in found],
            monte_carlo=_neurons(phi, n, samples, generator("neurons", name, n)),
        )
        ratio = typical_growth(found[-1].weights / found[-1].hidden)
        rows.append(row | {"activation": name, "weights": ratio.mean, "weights_error": ratio.standard_error})
    return rows


def epsilon_rows(
    cases: Sequence[tuple[int, float]],
    widths: Sequence[int],
    layers: int,
    draws: int,
    samples: int,
    generator: Generator,
) -> list[dict[str, Any]]:
    """ReLU networks with epsilon, started in their fixed point.

    Args:
        cases: (batch size of at least 6, epsilon below the critical one).
        widths: see `activation_rows`.
        layers: see `activation_rows`.
        draws: see `activation_rows`.
        samples: see `activation_rows`.
        generator: see `activation_rows`.

    Example:
        >>> from bnlib import seeds
        >>> rows = epsilon_rows([(8, 0.3)], [16, 32], 4, 4, 100, lambda *key: seeds.generator(0, *key))
        >>> rows[0]["theory"] < 1.6
        True
    """
    phi, rows = parsed_activation("relu"), []
    for n, epsilon in cases:
        state = epsilon_state(phi, n, epsilon)
        label = f"relu, epsilon {epsilon:.3f}"
        found = _networks(
            generator, label, n, state.centered / 2 * np.eye(n), widths, layers, draws, name="relu", epsilon=epsilon
        )
        monte_carlo = _neurons(phi, n, samples, generator("neurons", label, n), state)
        pair = [growth_per_layer(one.hidden) for one in found]
        rows.append(_row(label, n, state.gradient, pair, monte_carlo=monte_carlo) | {"epsilon": epsilon})
    return rows


def half_rows(
    sizes: Sequence[int], widths: Sequence[int], layers: int, draws: int, samples: int, generator: Generator
) -> list[dict[str, Any]]:
    """ReLU networks with recentering alone (both states) and with rescaling alone.

    Args:
        sizes: batch sizes of at least 7, so that the outlier state exists.
        widths: see `activation_rows`.
        layers: see `activation_rows`.
        draws: see `activation_rows`.
        samples: draws of the rescaling theory, which is itself an average.
        generator: see `activation_rows`.

    Returns:
        Rows for "recentering, symmetric state", its forward scale, "recentering, outlier state" and "rescaling".

    Example:
        >>> from bnlib import seeds
        >>> rows = half_rows([8], [16, 32], 4, 4, 2000, lambda *key: seeds.generator(0, *key))
        >>> len(rows)
        4
    """
    rows = []
    for n in sizes:
        options = {"name": "relu", "normalization": "RC"}
        exact = recentered_relu_rates_at(np.eye(n))
        found = _networks(generator, "symmetric", n, np.eye(n), widths, layers, draws, **options)
        pair = [growth_per_layer(one.hidden) for one in found]
        rows.append(_row("relu, recentering, symmetric state", n, exact.gradient, pair) | {"state": "symmetric"})
        pair = [growth_per_layer(one.forward.flip(1), skip=0) for one in found]
        rows.append(_row("its forward scale", n, exact.forward, pair) | {"state": "forward"})
        start = outlier_start(n)
        outlier = recentered_relu_rates_at(start)
        found = _networks(
            generator, "outlier", n, recentered_relu_state(start)[0] * n, widths, layers, draws, True, **options
        )
        pair = [growth_per_layer(one.hidden) for one in found]
        rows.append(_row("relu, recentering, outlier state", n, outlier.gradient, pair) | {"state": "outlier"})
        cosine = math.cos(rms_fixed_point(n).value)
        rates, error = rescaled_relu_rates(n, cosine, samples, numpy_stream(generator("rescaling", n)))
        covariance = (1 - cosine) * np.eye(n) + cosine
        found = _networks(
            generator, "rescaling", n, covariance, widths, layers, draws, True, name="relu", normalization="RMS"
        )
        pair = [growth_per_layer(one.hidden) for one in found]
        rows.append(
            _row("relu, rescaling", n, rates.gradient, pair, theory_error=error, theory_kind="average")
            | {"state": "rescaling"}
        )
    return rows


def independence_rows(
    cases: Sequence[tuple[int, int]], layers: int, draws: int, chains: int, generator: Generator
) -> list[dict[str, Any]]:
    """Gradient independence at finite width: networks against the same networks with independent backward weights.

    Args:
        cases: (batch size of at least 6, width).
        layers: of each network, at least 3.
        draws: networks.
        chains: copies with independent backward weights.
        generator: see `activation_rows`.

    Returns:
        Rows with "network", "independent" (growth factors), their errors, and "difference" with "error" and "z".

    Example:
        >>> from bnlib import seeds
        >>> rows = independence_rows([(8, 32)], 4, 4, 4, lambda *key: seeds.generator(0, *key))
        >>> sorted(rows[0])[:3]
        ['difference', 'error', 'independent']
    """
    rows = []
    for n, width in cases:
        stream = generator("independence", n, width)
        x = batch_in_state(np.eye(n), draws, width, stream)
        network = growth_per_layer(network_gradients(x, width, layers, "relu", generator=stream).hidden)
        factors = independent_growth(parsed_activation("relu"), n, width, layers - 2, chains, numpy_stream(stream))
        products = factors.prod(axis=1)
        mean = float(products.mean() ** (1 / factors.shape[1]))
        error = mean * float(products.std(ddof=1) / products.mean() / math.sqrt(chains) / factors.shape[1])
        both = math.hypot(error, network.standard_error)
        rows.append(
            {
                "n": n,
                "width": width,
                "network": network.mean,
                "network_error": network.standard_error,
                "independent": mean,
                "independent_error": error,
                "difference": mean - network.mean,
                "error": both,
                "z": (mean - network.mean) / both,
            }
        )
    return rows


def _median(values: np.ndarray) -> tuple[float, float]:
    step = 0.5 / math.sqrt(len(values))
    low, median, high = np.quantile(values, [max(0.0, 0.5 - step), 0.5, min(1.0, 0.5 + step)])
    return float(median), float(high - low) / 2


def median_largest(freedom: Sequence[float | int]) -> float:
    """Median of the largest absolute value of independent t-scores, as a yardstick for the largest score of a table.

    Args:
        freedom: degrees of freedom of each score; infinity for a Gaussian one.

    Raises:
        ValueError: no score.

    Example:
        >>> round(median_largest([math.inf] * 20), 2), round(median_largest([15] * 20), 2)
        (2.12, 2.33)
    """
    if not freedom:
        raise ValueError("freedom must hold one number a score, got none.")
    degrees, counts = np.unique(np.asarray(freedom, dtype=float), return_counts=True)
    return float(
        brentq(lambda x: float((counts * np.log(2 * student.cdf(x, degrees) - 1)).sum()) + math.log(2), 1e-3, 1e3)
    )


def weighted_line(x: Sequence[float | int], y: Sequence[float], errors: Sequence[float]) -> dict[str, float]:
    """A straight line through points with known standard errors, by weighted least squares.

    Args:
        x: at least two different numbers.
        y: values.
        errors: standard errors of the values, positive.

    Returns:
        "slope", "slope_error", "intercept", "intercept_error" and "chi_square" of the residuals.

    Raises:
        ValueError: fewer than two different x, or an error that is not positive.

    Example:
        >>> line = weighted_line([0, 1, 2], [1.0, 3.0, 5.0], [0.1, 0.1, 0.1])
        >>> round(line["slope"], 9), round(line["slope_error"], 4)
        (2.0, 0.0707)
    """
    x, y, errors = (np.asarray(one, dtype=float) for one in (x, y, errors))
    if len(np.unique(x)) < 2:
        raise ValueError(f"x must hold at least two different numbers, got {x.tolist()}.")
    if not (errors > 0).all():
        raise ValueError(f"errors must be positive, got {errors.tolist()}.")
    design = np.stack([np.ones_like(x), x], axis=1) / errors[:, None]
    covariance = np.linalg.inv(design.T @ design)
    intercept, slope = covariance @ design.T @ (y / errors)
    return {
        "slope": float(slope),
        "slope_error": math.sqrt(covariance[1, 1]),
        "intercept": float(intercept),
        "intercept_error": math.sqrt(covariance[0, 0]),
        "chi_square": float((((y - intercept - slope * x) / errors) ** 2).sum()),
    }


def small_batch_rows(
    sizes: Sequence[int], widths: Sequence[int], layers: int, draws: int, chains: int, generator: Generator
) -> list[dict[str, Any]]:
    """Typical growth of ReLU networks at batch sizes at which averages cannot be trusted.

    Args:
        sizes: batch sizes of at least 3.
        widths: neurons a layer.
        layers: of each network, at least 3.
        draws: networks that torch differentiates.
        chains: networks with independent backward weights; the median of their layers' factors is taken.
        generator: see `activation_rows`.

    Returns:
        Rows with "typical" (exp of the mean log growth of networks), its "error", "median" and "median_error" (half the
        distance of the order statistics one standard error from it) of the independent factors, of which there are
        "samples"; "network_median" and "network_median_error", the same of the layers of the networks.

    Example:
        >>> from bnlib import seeds
        >>> rows = small_batch_rows([3], [16], 4, 4, 10, lambda *key: seeds.generator(0, *key))
        >>> rows[0]["typical"] > 1
        True
    """
    rows = []
    for n in sizes:
        for width in widths:
            stream = generator("small", n, width)
            x = batch_in_state(np.eye(n), draws, width, stream)
            squares = network_gradients(x, width, layers, "relu", generator=stream).hidden
            typical = typical_growth(squares)
            # As in `growth_per_layer` without the layer at the input, whose factor is another.
            own, own_error = _median((squares[:, 1:-1] / squares[:, 2:]).flatten().numpy(force=True))
            factors = independent_growth(parsed_activation("relu"), n, width, layers - 2, chains, numpy_stream(stream))
            median, median_error = _median(factors.ravel())
            rows.append(
                {
                    "n": n,
                    "width": width,
                    "typical": typical.mean,
                    "error": typical.standard_error,
                    "median": median,
                    "median_error": median_error,
                    "network_median": own,
                    "network_median_error": own_error,
                    "samples": factors.size,
                }
            )
    return rows
