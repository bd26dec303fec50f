"""What chapter 8 measures, as plain lists and dictionaries: methods against each other, theory against networks.

NumPy float64; this module does not import torch.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bnlib import fourier
from bnlib.activations import Activation, activation, leaky_relu, power_relu
from bnlib.gegenbauer import cross_batch_decay_by_degree, expand
from bnlib.gegenbauer_forms import multipliers_by_degree
from bnlib.homogeneous import (
    homogeneous,
    homogeneous_cross_constant,
    homogeneous_cross_decay,
    homogeneous_cross_decay_by_kernel,
    homogeneous_fixed_point,
    homogeneous_multipliers,
    kernel_cosine,
    power_cosine,
)
from bnlib.homogeneous_layer import homogeneous_transform
from bnlib.kernel_inference import batch_norm_kernels, posterior
from bnlib.mean_field import relu_symmetric_fixed_point, symmetric_fixed_point
from bnlib.mean_field_survey import (
    QUANTITIES,
    extrapolated,
    monte_carlo,
    network_quantities,
    norm_shares,
    share_path,
    theory,
)
from bnlib.two_block import block_growth, block_state
from bnlib.v_transform import batch_norm_relu_transform

Draw = Callable[..., np.random.Generator]

HOMOGENEOUS = ((1.0, 1.0, 0.0), (1.0, 1.0, 0.1), (1.0, 1.0, 1.0), (2.0, 1.0, 0.0), (2.0, 1.0, -1.0), (3.0, 1.0, 0.5))


def named(name: str) -> Activation:
    """An activation by name, with "leaky relu SLOPE" besides those of `bnlib.activations.activation`.

    Args:
        name: of the activation.

    Raises:
        ValueError: an unknown name.

    Example:
        >>> named("leaky relu 0.1")(np.array([-1.0]))
        array([-0.1])
    """
    prefix = "leaky relu "
    return leaky_relu(float(name[len(prefix) :])) if name.startswith(prefix) else activation(name)


def readable(quantity: str) -> str:
    """A recorded quantity's name as a reader would write it.

    Args:
        quantity: one of `mean_field_survey.QUANTITIES`.

    Example:
        >>> readable("lambda_L"), readable("off_diagonal")
        ('λ_L', 'off-diagonal')
    """
    names = {"off_diagonal": "off-diagonal", "lambda_L": "λ_L", "lambda_M": "λ_M"}
    return names.get(quantity, quantity.replace("_batch", "-batch").replace("_", " "))


def method_differences(batch_sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Each other method against spherical integration, wherever both apply.

    Args:
        batch_sizes: at least 4 each.

    Returns:
        Rows with method, activation, n, quantity, value and difference.

    Example:
        >>> rows = method_differences([8])
        >>> bool(max(abs(row["difference"]) for row in rows) < 1e-9)
        True
    """
    rows: list[dict[str, Any]] = []

    def add(method: str, name: str, n: int, found: dict[str, float], known: dict[str, float]) -> None:
        for quantity, value in found.items():
            row = {"method": method, "activation": name, "n": n, "quantity": quantity, "value": value}
            rows.append(row | {"difference": value - known[quantity]})

    for n in batch_sizes:
        for alpha, a, b in HOMOGENEOUS:
            phi = homogeneous(alpha, a, b)
            point, multipliers = homogeneous_fixed_point(phi, n), homogeneous_multipliers(phi, n)
            closed = {
                "diagonal": point.diagonal,
                "off_diagonal": point.off_diagonal,
                "lambda_L": multipliers.norms,
                "lambda_M": multipliers.covariances,
                "cross_batch_constant": homogeneous_cross_constant(phi, n),
                "cross_batch_decay": homogeneous_cross_decay(phi, n),
            }
            known = theory(phi.activation, n)
            add("closed form", phi.activation.name, n, closed, known)
            v = homogeneous_transform(np.eye(n), phi)
            kernel = homogeneous_cross_decay_by_kernel(phi, n)
            found = {"diagonal": v[0, 0], "off_diagonal": v[0, 1], "cross_batch_decay": kernel}
            add("Laplace", phi.activation.name, n, found, known)
        for name in ("tanh", "sigmoid", "gelu", "sin", "square"):
            phi = activation(name)
            known, expansion = theory(phi, n), expand(phi, n)
            squares = expansion.coefficients**2
            found = {
                "diagonal": float(squares.sum()),
                "off_diagonal": float(squares @ expansion.off_diagonal),
                "cross_batch_constant": float(squares[0]),
                "cross_batch_decay": cross_batch_decay_by_degree(expansion),
                "lambda_L": multipliers_by_degree(expansion).norms,
                "lambda_M": multipliers_by_degree(expansion).covariances,
            }
            add("Gegenbauer", name, n, found, known)
        for name, point in (
            ("sin", fourier.sine_fixed_point(n)),
            ("erf-like", fourier.error_function_fixed_point(n)),
        ):
            known = theory(activation(name), n)
            add("Fourier", name, n, {"diagonal": point.diagonal, "off_diagonal": point.off_diagonal}, known)
        decay = {"cross_batch_decay": fourier.sine_cross_batch_decay(n)}
        add("Fourier", "sin", n, decay, theory(activation("sin"), n))
    return rows


def transform_accuracy(n: int, generator: np.random.Generator, repeats: int = 5) -> dict[str, float]:
    """Accuracy and cost of the Laplace integral of `bnlib.v_transform` for ReLU.

    Args:
        n: batch size of the check with unequal scales and of the clock, at least 4.
        generator: draws covariances.
        repeats: of the clock; the least time counts.

    Returns:
        `known`: largest error where the answer is known (BSB1 in one step; two groups; the mean of the diagonal);
        `unequal`: largest difference from the trapezoidal rule of `bnlib.homogeneous_layer`, a different rule, over
        row scales up to exp(+-6); `milliseconds`: processor time of one layer.

    Example:
        >>> found = transform_accuracy(6, np.random.default_rng(0), repeats=1)
        >>> found["known"] < 1e-12, found["unequal"] < 1e-9
        (True, True)
    """
    known = 0.0
    for size in (4, 8, n):
        v = batch_norm_relu_transform(0.7 * np.eye(size) + 0.3)
        expected = relu_symmetric_fixed_point(size)
        off = v[~np.eye(size, dtype=bool)]
        known = max(known, np.abs(np.diagonal(v) - 0.5).max(), np.abs(off - expected.off_diagonal).max())
    x = np.array([1.0, 1.0, 1.0, -3.0])
    b = x / np.sqrt((x**2).mean())
    two = (np.outer(np.maximum(b, 0), np.maximum(b, 0)) + np.outer(np.maximum(-b, 0), np.maximum(-b, 0))) / 2
    known = max(known, np.abs(batch_norm_relu_transform(np.outer(x, x)) - two).max())
    unequal, relu = 0.0, homogeneous(1)
    for spread in (1.0, 3.0, 6.0):
        rows = generator.standard_normal((n, n + 2)) * np.exp(spread * generator.uniform(-1, 1, (n, 1)))
        v = batch_norm_relu_transform(rows @ rows.T)
        known = max(known, abs(float(np.trace(v)) / n - 0.5))
        unequal = max(unequal, float(np.abs(v - homogeneous_transform(rows @ rows.T, relu)).max()))
    covariance, times = rows @ rows.T, []
    for _ in range(repeats):
        started = time.process_time()
        batch_norm_relu_transform(covariance)
        times.append(1000 * (time.process_time() - started))
    return {"known": float(known), "unequal": unequal, "milliseconds": min(times)}


def comparison(
    names: Sequence[str], n: int, draws: int, width: int, depth: int, networks: int, draw: Draw
) -> list[dict[str, Any]]:
    """Theory, Monte Carlo and networks for every forward quantity, with z-scores.

    Args:
        names: of activations.
        n: batch size, at least 4.
        draws: of the Monte Carlo.
        width: of the narrow networks; the wide ones have twice that, and both are extrapolated.
        depth: layers.
        networks: number of each.
        draw: makes a NumPy generator from labels.

    Returns:
        One row for each activation and quantity; quantities that vanish by symmetry are left out.

    Example:
        >>> rows = comparison(["relu"], 5, 500, 32, 14, 4, lambda *labels: np.random.default_rng(len(labels)))
        >>> [row["quantity"] for row in rows][:2]
        ['diagonal', 'off_diagonal']
    """
    rows = []
    for name in names:
        phi, known = named(name), theory(named(name), n)
        drawn = monte_carlo(phi, n, draws, draw("monte carlo", name))
        narrow, wide = (
            network_quantities(phi, n, size, depth, networks, draw("networks", name, size))
            for size in (width, 2 * width)
        )
        for quantity in QUANTITIES:
            if abs(known[quantity]) < 1e-12:
                continue
            network = extrapolated(narrow[quantity], wide[quantity])
            rows.append(
                {
                    "activation": name,
                    "n": n,
                    "quantity": quantity,
                    "theory": known[quantity],
                    "monte_carlo": drawn[quantity].mean,
                    "monte_carlo_error": drawn[quantity].error,
                    "monte_carlo_z": (drawn[quantity].mean - known[quantity]) / drawn[quantity].error,
                    "network": network.mean,
                    "network_error": network.error,
                    "network_z": (network.mean - known[quantity]) / network.error,
                }
            )
    return rows


def solutions_of_cosine_map(alpha: float | int, points: int = 4001) -> int:
    """Number of solutions of J_alpha(c) = c in [-1, 1], by sign changes below 1, and c = 1 itself.

    Args:
        alpha: degree, above -1/2.
        points: of the scan, dense towards 1.

    Example:
        >>> solutions_of_cosine_map(0.5), solutions_of_cosine_map(1)
        (2, 1)
    """
    gap = np.concatenate([np.linspace(2.0, 0.1, points), np.geomspace(0.1, 1e-9, points)[1:]])
    signs = np.sign(power_cosine(1 - gap, alpha) - (1 - gap))
    return 1 + int((signs[1:] * signs[:-1] < 0).sum())


def blocks(n: int, degrees: Sequence[float | int], largest: int, draw: Draw) -> list[dict[str, Any]]:
    """Winner-take-all states with 1 to `largest` winners and what becomes of small differences among the winners.

    Args:
        n: batch size, at least 5.
        degrees: alpha of max(x, 0)^alpha.
        largest: number of winners.
        draw: makes a NumPy generator from labels.

    Example:
        >>> rows = blocks(10, [2], 1, lambda *labels: np.random.default_rng(0))
        >>> rows[0]["stable"], round(rows[0]["share"], 3)
        (False, 0.809)
    """
    rows = []
    for alpha in degrees:
        phi = homogeneous(alpha)
        for k in range(1, largest + 1):
            state = block_state(n, k, phi)
            growth = block_growth(n, state, phi, draw("block", k))
            rows.append(
                {
                    "alpha": float(alpha),
                    "k": k,
                    "share": state.share,
                    "inside_block": state.inside_block,
                    "inside_cluster": state.inside_cluster,
                    "residual": state.residual,
                    "growth": growth,
                    "stable": growth < 1,
                }
            )
    return rows


def width_fates(
    n: int, degrees: Sequence[float | int], widths: Sequence[int], depth: int, networks: int, draw: Draw
) -> list[dict[str, Any]]:
    """Largest share of one sample late in networks with max(x, 0)^alpha, and how many samples win.

    Args:
        n: batch size.
        degrees: alpha.
        widths: of the networks.
        depth: layers; the last third counts.
        networks: number of each.
        draw: makes a NumPy generator from labels.

    Example:
        >>> rows = width_fates(10, [1], [32], 9, 2, lambda *labels: np.random.default_rng(0))
        >>> sorted(rows[0])
        ['alpha', 'high', 'low', 'median', 'networks', 'width']
    """
    rows = []
    for alpha in degrees:
        for width in widths:
            late = share_path(power_relu(alpha), n, width, depth, networks, draw("fate", str(alpha), width))
            each = np.median(late[-(depth // 3) :], axis=0)
            low, high = np.quantile(each, [0.1, 0.9])
            row = {"alpha": float(alpha), "width": width, "median": float(np.median(each)), "networks": networks}
            rows.append(row | {"low": float(low), "high": float(high)})
    return rows


def state_of_whole_map(n: int, ratio: float, layers: int, generator: np.random.Generator) -> dict[str, float]:
    """The winner's state followed by the independent rule of `bnlib.v_transform`, with every number of S free.

    Args:
        n: batch size.
        ratio: of the state's two eigenvalues.
        layers: number of layers.
        generator: draws a perturbation of relative size 1/100.

    Returns:
        Share of the winner in the trace before and after, and the largest spread among the others' norms after.

    Example:
        >>> found = state_of_whole_map(8, 1.0, 30, np.random.default_rng(0))
        >>> round(found["after"] * 8, 2)
        1.0
    """
    from bnlib.two_block import block_covariance

    values, vectors = np.linalg.eigh(block_covariance(n, 1, 1.0, ratio))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = generator.standard_normal((n, n)) / 100
    k = root @ (np.eye(n) + noise + noise.T) @ root.T
    before = float(norm_shares(k[None])[0])
    for _ in range(layers):
        k = batch_norm_relu_transform(k)
    centered = k - k.mean(axis=0)
    diagonal = np.sort(np.diagonal(centered - centered.mean(axis=1, keepdims=True)))
    return {
        "before": before,
        "after": float(diagonal[-1] / diagonal.sum()),
        "others": float(diagonal[-2] / diagonal[0] - 1),
    }


def inference_by_depth(
    x: np.ndarray, labels: np.ndarray, depths: Sequence[int], train: int, tests: int, splits: int, draw: Draw
) -> dict[int, dict[str, float]]:
    """Exact inference on two classes with the batch-norm kernel: accuracy and evidence over depth.

    Args:
        x: samples, rows.
        labels: +1 or -1.
        depths: numbers of layers.
        train: training samples in a batch.
        tests: test samples in the same batch.
        splits: random batches.
        draw: makes a NumPy generator from labels.

    Returns:
        Depth to mean accuracy, its standard error, mean log evidence per training sample, and the standard deviation
        of the posterior means over the test samples (how much the posterior still tells them apart).

    Example:
        >>> x = np.r_[np.eye(6), -np.eye(6)] + 1.0
        >>> y = np.r_[np.ones(6), -np.ones(6)]
        >>> found = inference_by_depth(x, y, [1], 8, 4, 2, lambda *labels: np.random.default_rng(labels[-1]))
        >>> sorted(found[1])
        ['accuracy', 'accuracy_error', 'contrast', 'evidence']
    """
    rows: dict[int, list] = {depth: [] for depth in depths}
    for split in range(splits):
        chosen = draw("split", split).permutation(len(x))[: train + tests]
        batch, y = x[chosen], labels[chosen]
        for depth, kernel in batch_norm_kernels(batch, list(depths)).items():
            found = posterior(kernel, y[:train], 0.01)
            right = np.where(found.mean > 0, 1, -1) == y[train:]
            rows[depth].append([right.mean(), found.log_evidence / train, found.mean.std()])
    result = {}
    for depth, values in rows.items():
        table = np.array(values, dtype=float)
        error = float(table[:, 0].std(ddof=1) / math.sqrt(splits))
        mean = table.mean(axis=0)
        result[depth] = {"accuracy": mean[0], "accuracy_error": error, "evidence": mean[1], "contrast": mean[2]}
    return result


def shifted(phi: Activation, constant: float) -> Activation:
    """Phi + constant.

    Args:
        phi: activation.
        constant: what is added.

    Example:
        >>> shifted(activation("relu"), 2.0)(np.array([-1.0]))
        array([2.])
    """
    return Activation(f"{phi.name} + {constant:g}", lambda x: phi(x) + constant, phi.derivative)


def shift_changes(names: Sequence[str], n: int, constant: float) -> dict[str, dict[str, float]]:
    """What adding a constant to the activation changes: multipliers, centered fixed point, common covariance.

    Args:
        names: of activations.
        n: batch size.
        constant: what is added.

    Example:
        >>> found = shift_changes(["tanh"], 8, 0.5)["tanh"]
        >>> found["largest_change"] < 1e-9 < found["common"]
        True
    """
    result = {}
    for name in names:
        phi, moved = activation(name), shifted(activation(name), constant)
        before, after = theory(phi, n), theory(moved, n)
        kept = ("lambda_L", "lambda_M", "cross_batch_decay")
        mu = symmetric_fixed_point(phi, n).centered, symmetric_fixed_point(moved, n).centered
        changes = [abs(after[key] - before[key]) for key in kept] + [abs(mu[1] - mu[0])]
        result[name] = {"largest_change": max(changes), "common": abs(after["off_diagonal"] - before["off_diagonal"])}
    return result


def cosine_formula_error(points: int = 200) -> float:
    """Largest error of the closed form 3 pi J_2 = 3 sin t cos t + (pi - t)(1 + 2 cos^2 t) over t in (0, pi).

    Args:
        points: angles.

    Example:
        >>> cosine_formula_error() < 1e-11
        True
    """
    t = np.linspace(1e-3, np.pi - 1e-3, points)
    closed = 3 * np.sin(t) * np.cos(t) + (np.pi - t) * (1 + 2 * np.cos(t) ** 2)
    return float(np.abs(3 * np.pi * power_cosine(np.cos(t), 2) - closed).max())


def homogeneous_identity_error() -> float:
    """Largest error of J_phi(1) = a^2 + b^2 and J_phi(0) = (a - b)^2 J_alpha(0).

    Example:
        >>> homogeneous_identity_error() < 1e-13
        True
    """
    worst = 0.0
    for alpha in (0.3, 0.75, 1.0, 1.5, 3.0):
        for a, b in ((1.0, 0.0), (1.0, 0.4), (1.0, -2.0)):
            phi = homogeneous(alpha, a, b)
            one, zero = float(kernel_cosine(1.0, phi)), float(kernel_cosine(0.0, phi))
            worst = max(worst, abs(one - a**2 - b**2), abs(zero - (a - b) ** 2 * float(power_cosine(0.0, alpha))))
    return worst
