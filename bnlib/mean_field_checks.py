"""Single statements of the mean-field theory of batch normalization, checked by finite differences or exactly.

NumPy float64; this module does not import torch.
"""

import math

import numpy as np

from bnlib.activations import power_relu
from bnlib.checks import checked_integer_batch
from bnlib.homogeneous import homogeneous, homogeneous_fixed_point, kernel_cosine, power_cosine, power_cosine_derivative
from bnlib.homogeneous_layer import homogeneous_transform
from bnlib.infinite_width import next_covariance
from bnlib.mean_field import relu_forward_multipliers, relu_symmetric_fixed_point
from bnlib.mean_field_survey import network_covariances
from bnlib.outlier_fixed_points import outlier_state
from bnlib.two_block import block_covariance, group_average, log_drift, recentered_outlier_ratio
from bnlib.v_transform import batch_norm_relu_transform


def _relu_derivative(n: int, direction: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Derivative of the transform at mu G in a direction, by a central difference of fourth order."""
    base = relu_symmetric_fixed_point(n).centered * (np.eye(n) - 1 / n)
    scale = step * base[0, 0]

    def at(factor: float | int) -> np.ndarray:
        return batch_norm_relu_transform(base + factor * scale * direction)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * scale)


def relu_spectrum(n: int) -> dict[str, float | int]:
    """All eigenvalues of the linearized layer on centered covariances, from finite differences of the transform.

    Args:
        n: batch size, at least 4.

    Returns:
        For each of the three predicted eigenvalues the number of computed ones within 1e-5 of it, and the largest
        distance of a computed eigenvalue from the nearest predicted one.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> found = relu_spectrum(5)
        >>> found["average_norm"], found["norms"], found["covariances"], found["error"] < 1e-6
        (1, 4, 5, True)
    """
    n = checked_integer_batch(n, 4)
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
    pairs = [(i, j) for i in range(n - 1) for j in range(i, n - 1)]

    def coordinates(k: np.ndarray) -> list[float]:
        inner = basis.T @ k @ basis
        return [inner[i, j] * (1.0 if i == j else math.sqrt(2)) for i, j in pairs]

    columns = []
    for i, j in pairs:
        unit = np.zeros((n - 1, n - 1))
        unit[i, j] = unit[j, i] = 1.0 if i == j else math.sqrt(0.5)
        columns.append(coordinates(_relu_derivative(n, basis @ unit @ basis.T)))
    found = np.linalg.eigvals(np.array(columns).T).real
    known = relu_forward_multipliers(n)
    wanted = {"average_norm": known.average_norm, "norms": known.norms, "covariances": known.covariances}
    counts = {name: int((np.abs(found - value) < 1e-5).sum()) for name, value in wanted.items()}
    nearest = np.abs(found[:, None] - np.array(list(wanted.values()))).min(axis=1)
    return {**counts, "error": float(nearest.max())}


def ultrasymmetric_covariances(n: int) -> float:
    """lambda_M of ReLU by the source's formula [12|12] + [12|21] - 4 [12|13] + 2 [12|34] (section E.5).

    [ij|kl] is the derivative of entry ij of the layer with respect to entry kl of the covariance.

    Args:
        n: batch size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> abs(ultrasymmetric_covariances(6) - relu_forward_multipliers(6).covariances) < 1e-6
        True
    """
    n = checked_integer_batch(n, 4)

    def both(k: int, l: int) -> float:  # noqa: E741
        direction = np.zeros((n, n))
        direction[k, l] = direction[l, k] = 1.0
        # The layer sees the centered covariance only, and its derivative is centered on the way in.
        return float(_relu_derivative(n, direction)[0, 1])

    return both(0, 1) - 2 * both(0, 2) + both(2, 3)


def one_step_error(n: int) -> float:
    """Largest distance from BSB1 after one layer from covariances with equal diagonal and equal other entries.

    Args:
        n: batch size, at least 4.

    Example:
        >>> one_step_error(8) < 1e-12
        True
    """
    worst = 0.0
    for alpha, a, b in ((1.0, 1.0, 0.0), (2.0, 1.0, -0.5), (3.0, 1.0, 1.0)):
        phi = homogeneous(alpha, a, b)
        point = homogeneous_fixed_point(phi, n)
        expected = point.off_diagonal + point.centered * np.eye(n)
        for cosine in (-0.5 / (n - 1), 0.0, 0.9):
            found = homogeneous_transform((1 - cosine) * np.eye(n) + cosine, phi)
            worst = max(worst, float(np.abs(found - expected).max() / point.diagonal))
    return worst


def identity_factor_error(n: int) -> float:
    """Largest deviation of the linear layer from B/(B-1) G on a covariance with equal samples.

    Args:
        n: batch size, at least 4.

    Example:
        >>> identity_factor_error(8) < 1e-12
        True
    """
    centering = np.eye(n) - 1 / n
    return float(np.abs(batch_norm_relu_transform(3 * np.eye(n) + 1, slope=1) - n / (n - 1) * centering).max())


def symmetric_eigenvalue_error(n: int) -> float:
    """Largest error of the eigenvalues a - b and (n-1) b + a of S with diagonal a, others b, and of G S G = (a-b) G.

    Args:
        n: size, at least 2.

    Example:
        >>> symmetric_eigenvalue_error(8) < 1e-13
        True
    """
    a, b = 1.7, 0.4
    s, centering = (a - b) * np.eye(n) + b, np.eye(n) - 1 / n
    values = np.linalg.eigvalsh(s)
    wanted = np.r_[np.full(n - 1, a - b), (n - 1) * b + a]
    centered = np.abs(centering @ s @ centering - (a - b) * centering).max()
    return float(max(np.abs(values - wanted).max(), centered))


def slope_identity_error() -> float:
    """Largest error of J_alpha' = alpha^2/(2 alpha - 1) J_(alpha-1), against central differences.

    Example:
        >>> slope_identity_error() < 1e-8
        True
    """
    c, step, worst = np.linspace(-0.9, 0.9, 19), 1e-5, 0.0
    for alpha in (0.6, 1.0, 1.7, 2.0, 4.0):
        numeric = (power_cosine(c + step, alpha) - power_cosine(c - step, alpha)) / (2 * step)
        worst = max(worst, float(np.abs(numeric - power_cosine_derivative(c, alpha)).max()))
    return worst


def diagonal_factor_error(generator: np.random.Generator) -> float:
    """Largest relative error of phi(D y) = D^alpha phi(y), hence V(D S D) = D^alpha V(S) D^alpha, over draws.

    Args:
        generator: draws y and D.

    Example:
        >>> diagonal_factor_error(np.random.default_rng(0)) < 1e-12
        True
    """
    worst = 0.0
    for alpha, a, b in ((0.7, 1.0, 0.3), (2.0, 1.0, -1.0), (5.0, 1.0, 0.0)):
        phi = homogeneous(alpha, a, b).activation
        y, d = generator.standard_normal(1000), np.exp(generator.standard_normal(1000))
        left, right = phi(d * y), d**alpha * phi(y)
        worst = max(worst, float(np.abs(left - right).max() / np.abs(right).max()))
    return worst


def winner_positions(n: int, alpha: float | int, width: int, depth: int, networks: int, generator) -> list[int]:
    """Which sample ends up largest, in networks with max(x, 0)^alpha that all start from equal, orthogonal samples.

    Args:
        n: batch size.
        alpha: degree.
        width: neurons in each layer.
        depth: layers.
        networks: number of them.
        generator: NumPy source of the randomness.

    Returns:
        The index for each network.

    Example:
        >>> len(winner_positions(6, 2, 32, 3, 4, np.random.default_rng(0)))
        4
    """
    start = np.tile(np.eye(n), (networks, 1, 1))
    *_, last = network_covariances(power_relu(alpha), start, width, depth, generator)
    return np.argmax(np.diagonal(last, axis1=1, axis2=2), axis=1).tolist()


def rank_one(n: int, alpha: float | int) -> dict[str, float]:
    """The covariance of rank one with one distinguished sample: is it fixed, and does it attract?

    Args:
        n: batch size, at least 5.
        alpha: degree of max(x, 0)^alpha.

    Returns:
        `error`: of one exact layer (b = +-sqrt(n) q) against the direction q, `drift`: log(next/ratio) at ratio 1e-40,
        and `exponent`: by which power the next ratio depends on a tiny ratio.

    Example:
        >>> found = rank_one(10, 30)
        >>> found["error"] < 1e-12, round(found["exponent"], 3)
        (True, 0.5)
    """
    q = np.r_[1.0, np.full(n - 1, -1.0 / (n - 1))] * math.sqrt((n - 1) / n)
    phi = homogeneous(alpha)
    values = phi.activation(math.sqrt(n) * np.stack([q, -q]))
    centered = values - values.mean(axis=1, keepdims=True)
    layer = centered.T @ centered / 2
    error = float(np.abs(layer / np.trace(layer) - np.outer(q, q)).max())
    far, near = log_drift(1e-40, n, phi), log_drift(1e-36, n, phi)
    return {"error": error, "drift": far, "exponent": 1 + (near - far) / math.log(1e4)}


def outlier_is_a_block_state(n: int) -> dict[str, float]:
    """The outlier state of recentered ReLU networks without rescaling, in this chapter's terms.

    Args:
        n: batch size, at least 7.

    Returns:
        `fixed`: how far one layer of the recentered map moves the block covariance, up to scale; `pattern`: how far the
        result is from a 1 x 1 block and a cluster; `drift`: log(next/ratio) when rescaling is switched on there.

    Raises:
        NoStateError: n is below the saddle-node between 6 and 7.

    Example:
        >>> found = outlier_is_a_block_state(8)
        >>> found["fixed"] < 1e-9, found["pattern"] < 1e-12, found["drift"] > 0
        (True, True, True)
    """
    ratio = recentered_outlier_ratio(n)
    start = block_covariance(n, 1, 1.0, ratio)
    after = next_covariance(start)
    after = after - after.mean(axis=0)
    after = after - after.mean(axis=1, keepdims=True)
    after *= np.trace(start) / np.trace(after)
    pattern = np.abs(after - group_average(after, 1)).max()
    return {
        "fixed": float(np.abs(after - start).max()),
        "pattern": float(pattern),
        "drift": log_drift(ratio, n, homogeneous(1)),
        "norm_ratio": outlier_state(n).norm_ratio,
    }


def cross_slope_error(n: int) -> float:
    """Largest error of J_phi(0) = (a - b)^2 J_alpha(0), which makes the cross-batch constant depend on a - b alone.

    Args:
        n: batch size of the constant.

    Example:
        >>> cross_slope_error(8) < 1e-12
        True
    """
    from bnlib.homogeneous import homogeneous_cross_constant

    worst = 0.0
    for alpha in (0.7, 1.0, 2.0):
        unit = homogeneous_cross_constant(homogeneous(alpha), n)
        for a, b in ((1.0, 0.5), (2.0, 1.5), (1.0, 1.0), (0.2, -0.9)):
            phi = homogeneous(alpha, a, b)
            worst = max(worst, abs(homogeneous_cross_constant(phi, n) - (a - b) ** 2 * unit))
            worst = max(worst, abs(float(kernel_cosine(0.0, phi)) - (a - b) ** 2 * float(power_cosine(0.0, alpha))))
    return worst
