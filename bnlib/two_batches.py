"""Two batches through one infinitely wide layer of batch normalization and (leaky) ReLU, at any joint covariance.

Each batch is normalized alone. With y, y' the centered pre-activations, (y, y') ~ N(0, K), both factors 1/|y| and
1/|y'| are Laplace integrals of their squares (arXiv 1902.08129, section H.1.2):

    E[phi(b) phi(b')^T] = n/pi int int (s t)^(-1/2) det(I + 2 D K)^(-1/2) V_phi(K (I + 2 D K)^(-1))_(12) ds dt,
    D = diag(s, ..., s, t, ..., t).

In sigma = sqrt(s) the integrand is even and analytic, and with sigma = sinh(x) the trapezoidal rule converges
geometrically. Small batches only: the cost is that of some thousand 2n x 2n systems. NumPy float64; no torch.
"""

import math

import numpy as np
from jaxtyping import Float

from bnlib.checks import checked_integer_batch
from bnlib.mean_field import LINEARIZATION_MINIMUM, relu_symmetric_fixed_point
from bnlib.v_transform import batch_norm_relu_transform, centered_eigensystem, homogeneous_kernel_one

_STEP, _REACH = 0.18, 7.2


def two_batch_layer(covariance: Float[np.ndarray, "m m"], slope: float | int = 0.0) -> Float[np.ndarray, "m m"]:
    """Covariance of two batches after one layer.

    Args:
        covariance: of both batches, positive semi-definite, shape (2n, 2n), n >= 4.
        slope: of the leaky ReLU.

    Returns:
        The covariance, same shape: diagonal blocks by `v_transform`, the block between by the double integral.

    Raises:
        ValueError: covariance is not square with an even number of at least 8 samples, or not positive semi-definite,
            or the rank of a batch after centering is below 3; slope is not finite.

    Example:
        >>> from bnlib.mean_field import relu_cross_batch_constant
        >>> found = two_batch_layer(np.eye(8))
        >>> bool(abs(found[0, 4] - relu_cross_batch_constant(4)) < 1e-9)
        True
    """
    s = np.asarray(covariance, dtype=np.float64)
    if s.ndim != 2 or s.shape[0] != s.shape[1] or len(s) % 2 or len(s) < 2 * LINEARIZATION_MINIMUM:
        raise ValueError(f"covariance must be of two batches of at least 4 samples each, got shape {s.shape}.")
    if not math.isfinite(slope):
        raise ValueError(f"slope must be finite, got {slope}.")
    centered_eigensystem(s)
    n = len(s) // 2
    for block in (s[:n, :n], s[n:, n:]):
        centered_eigensystem(block, rank=3)
    result = np.empty_like(s)
    result[:n, :n], result[n:, n:] = (batch_norm_relu_transform(b, slope) for b in (s[:n, :n], s[n:, n:]))
    result[:n, n:] = _cross_block(s, n, float(slope))
    result[n:, :n] = result[:n, n:].T
    return result


def _cross_block(s: np.ndarray, n: int, slope: float) -> np.ndarray:
    centering = np.kron(np.eye(2), np.eye(n) - 1 / n)
    k = centering @ s @ centering
    x = _STEP * np.arange(round(_REACH / _STEP) + 1)
    root, weights = np.sinh(x), _STEP * np.cosh(x)
    weights[0] /= 2
    # In units of each batch's mean variance; s^(-1/2) ds = 2 d sigma.
    units = np.array([np.trace(k[:n, :n]), np.trace(k[n:, n:])]) / (n - 1)
    weights = 4 * (weights[:, None] * weights).ravel() / math.sqrt(units.prod())
    first, second = np.repeat(root**2, len(x)) / units[0], np.tile(root**2, len(x)) / units[1]
    diagonal = np.concatenate([np.repeat(part[:, None], n, axis=1) for part in (first, second)], axis=1)
    total = np.zeros((n, n))
    for part in np.array_split(np.arange(len(weights)), 8):
        system = np.eye(2 * n) + 2 * k * diagonal[part, None, :]
        shrunk = np.linalg.solve(system, np.broadcast_to(k, system.shape))
        kernel = homogeneous_kernel_one((shrunk + shrunk.transpose(0, 2, 1)) / 2, slope)[:, :n, n:]
        total += np.einsum("k,kij->ij", weights[part] / np.sqrt(np.linalg.det(system)), kernel)
    return n / math.pi * total


def symmetric_pair(n: int | float, correlation: float | int = 0.0) -> Float[np.ndarray, "m m"]:
    """Covariance of two batches at BSB1 of ReLU, the centered covariance between them being correlation * mu G.

    Args:
        n: batch size, at least 4.
        correlation: in [0, 1].

    Raises:
        ValueError: n is not a whole number of at least 4, or correlation leaves [0, 1].

    Example:
        >>> symmetric_pair(4).shape
        (8, 8)
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation must lie between 0 and 1, got {correlation}.")
    point = relu_symmetric_fixed_point(n)
    own = point.centered * np.eye(n) + point.off_diagonal
    between = correlation * point.centered * (np.eye(n) - 1 / n) + point.off_diagonal * correlation
    return np.block([[own, between], [between, own]])


def two_batch_path(
    covariance: Float[np.ndarray, "m m"], layers: int | float, slope: float | int = 0.0
) -> list[dict[str, float]]:
    """Layers of two batches from any joint covariance: how far they are from the fixed point CBSB1.

    Args:
        covariance: shape (2n, 2n).
        layers: number of layers, at least 1.
        slope: of the leaky ReLU.

    Returns:
        For each layer `own`, the largest deviation of the diagonal blocks from their own mean BSB1; `constant`, the
        mean of the block between; `spread`, the largest deviation from it; `centered`, the Frobenius norm of the
        centered block between, in units of that of a diagonal block.

    Raises:
        ValueError: layers is below 1; else as `two_batch_layer`.

    Example:
        >>> path = two_batch_path(symmetric_pair(4, 0.5), 2)
        >>> path[1]["centered"] < path[0]["centered"] < 0.5
        True
    """
    if layers < 1:
        raise ValueError(f"layers must be at least 1, got {layers}.")
    k, rows = np.asarray(covariance, dtype=np.float64), []
    n = len(k) // 2
    g, off = np.eye(n) - 1 / n, ~np.eye(n, dtype=bool)
    for _ in range(int(layers)):
        k = two_batch_layer(k, slope)
        own, between = [k[:n, :n], k[n:, n:]], k[:n, n:]
        level = np.mean([np.trace(b) / n for b in own]), np.mean([b[off].mean() for b in own])
        deviation = max(max(np.abs(np.diagonal(b) - level[0]).max(), np.abs(b[off] - level[1]).max()) for b in own)
        size = np.linalg.norm(g @ own[0] @ g)
        rows.append(
            {
                "own": float(deviation),
                "constant": float(between.mean()),
                "spread": float(np.abs(between - between.mean()).max()),
                "centered": float(np.linalg.norm(g @ between @ g) / size),
            }
        )
    return rows


def _jacobian(n: int, step: float) -> np.ndarray:
    """The linearized layer at CBSB1 of ReLU on all symmetric 2n x 2n matrices, by central differences.

    In an orthonormal basis: first the n(n+1)/2 of the first batch's block, then the second batch's, then the n^2 of the
    block between. The cost grows like the seventh power of n.
    """
    base = symmetric_pair(n)
    # Batch normalization ignores constants in each block; they keep the matrices positive semi-definite.
    base = base + np.kron(np.eye(2), np.ones((n, n)))
    step *= relu_symmetric_fixed_point(n).centered
    directions = symmetric_basis(n)
    columns = []
    for direction in directions:
        changed = [two_batch_layer(base + sign * step * direction) for sign in (1, -1)]
        columns.append([float((d * (changed[0] - changed[1])).sum()) / (2 * step) for d in directions])
    return np.array(columns).T


def symmetric_basis(n: int) -> list[Float[np.ndarray, "m m"]]:
    """Orthonormal symmetric 2n x 2n matrices: those of the two diagonal blocks, then those of the block between.

    Args:
        n: batch size.

    Example:
        >>> len(symmetric_basis(2))
        10
    """
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    pairs += [(i + n, j + n) for i, j in pairs] + [(i, j + n) for i in range(n) for j in range(n)]
    basis = []
    for i, j in pairs:
        unit = np.zeros((2 * n, 2 * n))
        unit[i, j] = unit[j, i] = 1.0 if i == j else math.sqrt(0.5)
        basis.append(unit)
    return basis


def two_batch_jacobian_facts(n: int | float) -> dict[str, float | int]:
    """What the source says of the linearized two-batch dynamics, read off the finite differences.

    Args:
        n: batch size, at least 4.

    Returns:
        `diagonal_from_between`: largest derivative of a diagonal block in the block between (0: they do not mix);
        `own_spectrum_error`: distance of the nonzero eigenvalues on one diagonal block from lambda_L (n-1 times) and
        lambda_M; `between_nonzero`: number of eigenvalues above 1e-4 on the block between, (n-1)^2 if only centered
        matrices survive; `between_error`: their largest distance from lambda_cb; `whole_error`: largest distance of a
        nonzero eigenvalue of the whole from its predicted list; `centering_error`: how far W is from lambda_cb times
        the projection on centered matrices.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> found = two_batch_jacobian_facts(4)
        >>> found["between_nonzero"], found["whole_error"] < 1e-4
        (9, True)
    """
    from bnlib.mean_field import relu_cross_batch_decay, relu_forward_multipliers

    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    jacobian = _jacobian(n, 1e-3)
    size = n * (n + 1) // 2
    known, decay = relu_forward_multipliers(n), relu_cross_batch_decay(n)
    own = jacobian[:size, :size]
    between = jacobian[2 * size :, 2 * size :]
    predicted = [known.norms] * (n - 1) + [known.covariances] * (n * (n - 3) // 2)
    whole = 2 * predicted + [decay] * (n - 1) ** 2

    def distance(matrix: np.ndarray, wanted: list[float]) -> float:
        found = np.sort(np.linalg.eigvals(matrix).real)
        return float(np.abs(found - np.sort(np.r_[wanted, np.zeros(len(found) - len(wanted))])).max())

    values = np.linalg.eigvalsh((between + between.T) / 2)
    kept = values[np.abs(values) > 1e-4]
    g = np.eye(n) - 1 / n
    return {
        "diagonal_from_between": float(np.abs(jacobian[: 2 * size, 2 * size :]).max()),
        "own_spectrum_error": distance(own, predicted),
        "between_nonzero": len(kept),
        "between_error": float(np.abs(kept - decay).max()),
        "whole_error": distance(jacobian, whole),
        "centering_error": float(np.abs(between - decay * np.kron(g, g)).max()),
    }
