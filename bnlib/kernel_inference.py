"""Exact Bayesian inference with deep batch-normalized networks of infinite width, on a small problem.

With independent Gaussian weights a read-out of an infinitely wide network is a Gaussian process over the batch, whose
covariance is that of the last layer (arXiv 1902.08129, section 1). Batch normalization couples the samples: the
function is defined on the whole batch, training and test samples together, and so is the prior. NumPy float64; no
torch.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.activations import activation
from bnlib.mean_field import relu_symmetric_fixed_point
from bnlib.mean_field_survey import network_covariances
from bnlib.v_transform import batch_norm_relu_transform


@dataclass(frozen=True)
class Posterior:
    """Posterior of a function at test samples.

    Attributes:
        mean: shape (tests,).
        covariance: shape (tests, tests), without observation noise.
        log_evidence: logarithm of the density of the training targets, in nats.
    """

    mean: Float[np.ndarray, " tests"]
    covariance: Float[np.ndarray, "tests tests"]
    log_evidence: float


def batch_norm_kernels(x: Float[np.ndarray, "n d"], depths: list[int]) -> dict[int, Float[np.ndarray, "n n"]]:
    """Prior covariances of the read-out after some depths of batch normalization and ReLU.

    Args:
        x: the batch, rows are samples, at least 3.
        depths: numbers of layers, at least 1.

    Returns:
        Depth to covariance.

    Raises:
        ValueError: a depth is below 1, there is none, or x is not a finite matrix of at least 3 samples.

    Example:
        >>> kernels = batch_norm_kernels(np.eye(4), [1, 3])
        >>> sorted(kernels), round(float(kernels[3][0, 0]), 12)
        ([1, 3], 0.5)
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or len(x) < 3 or not np.isfinite(x).all():
        raise ValueError(f"x must be a finite matrix of at least 3 samples, got shape {x.shape}.")
    if not depths or min(depths) < 1:
        raise ValueError(f"depths must be numbers of layers of at least 1, got {depths}.")
    covariance, found = x @ x.T, {}
    for layer in range(1, max(depths) + 1):
        covariance = batch_norm_relu_transform(covariance)
        if layer in depths:
            found[layer] = covariance
    return found


def network_kernel_scores(
    x: Float[np.ndarray, "n d"], depth: int, width: int, networks: int, generator: np.random.Generator
) -> dict[str, list[float] | float]:
    """Gram matrices of networks of finite width on a batch, entry by entry against the kernel of infinite width.

    The mean over networks has a bias of order 1/width, which widths w and 2w remove.

    Args:
        x: the batch, rows are samples, at least 3.
        depth: number of layers of batch normalization and ReLU.
        width: of the narrow networks; the wide ones have twice as many neurons in each layer.
        networks: number of each, at least 2.
        generator: source of the randomness.

    Returns:
        `z`: distance of every entry on and above the diagonal from the kernel in standard errors; `error`: the largest
        standard error; `far`: how many standard errors the largest difference between the kernel and the fixed point
        BSB1 is, so that a kernel that has forgotten the batch would show.

    Raises:
        ValueError: networks is below 2; else as `batch_norm_kernels`.

    Example:
        >>> found = network_kernel_scores(np.diag([1.0, 2.0, 3.0, 4.0]), 1, 64, 50, np.random.default_rng(0))
        >>> len(found["z"]), max(abs(z) for z in found["z"]) < 5
        (10, True)
    """
    if networks < 2:
        raise ValueError(f"networks must be at least 2, got {networks}.")
    kernel = batch_norm_kernels(x, [depth])[depth]
    above = np.triu_indices(len(x))
    start = np.tile(x @ x.T, (networks, 1, 1))
    found = []
    for size in (width, 2 * width):
        *_, last = network_covariances(activation("relu"), start, size, depth, generator)
        entries = last[:, above[0], above[1]]
        found.append((entries.mean(axis=0), entries.var(axis=0, ddof=1) / networks))
    (narrow, narrow_variance), (wide, wide_variance) = found
    error = np.sqrt(4 * wide_variance + narrow_variance)
    z = (2 * wide - narrow - kernel[above]) / error
    point = relu_symmetric_fixed_point(len(x))
    fixed = np.where(above[0] == above[1], point.diagonal, point.off_diagonal)
    far = np.abs(kernel[above] - fixed) / error
    return {"z": z.tolist(), "error": float(error.max()), "far": float(far.max())}


def posterior(kernel: Float[np.ndarray, "n n"], targets: Float[np.ndarray, " train"], noise: float | int) -> Posterior:
    """Condition the Gaussian process on noisy values at the first samples of the batch.

    Args:
        kernel: prior covariance over the batch.
        targets: values at its first samples, fewer than n.
        noise: variance of the observation noise, positive.

    Returns:
        The posterior at the other samples.

    Raises:
        ValueError: noise is not positive, or the number of targets is not between 1 and n - 1.

    Example:
        >>> found = posterior(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([2.0]), 1.0)
        >>> np.round(found.mean, 12).tolist(), np.round(found.covariance, 12).tolist()
        ([0.5], [[0.875]])
    """
    if not noise > 0:
        raise ValueError(f"noise must be a positive variance, got {noise}.")
    train = len(targets)
    if not 1 <= train < len(kernel):
        raise ValueError(f"targets must be at least 1 and fewer than the batch of {len(kernel)}, got {train}.")
    lower = np.linalg.cholesky(kernel[:train, :train] + noise * np.eye(train))
    whitened = np.linalg.solve(lower, np.column_stack([targets, kernel[:train, train:]]))
    cross = whitened[:, 1:]
    evidence = -0.5 * whitened[:, 0] @ whitened[:, 0] - np.log(np.diagonal(lower)).sum() - train / 2 * np.log(2 * np.pi)
    return Posterior(cross.T @ whitened[:, 0], kernel[train:, train:] - cross.T @ cross, float(evidence))


def posterior_by_sampling(
    kernel: Float[np.ndarray, "n n"],
    targets: Float[np.ndarray, " train"],
    noise: float | int,
    draws: int,
    generator: np.random.Generator,
) -> tuple[Float[np.ndarray, " tests"], Float[np.ndarray, " tests"]]:
    """The same posterior mean by weighting functions drawn from the prior: a check that uses no linear algebra.

    Args:
        kernel: prior covariance over the batch.
        targets: values at its first samples; few, or the weights degenerate.
        noise: variance of the observation noise, positive.
        draws: functions, at least 2.
        generator: source of the randomness.

    Returns:
        The weighted means at the other samples, and their standard errors.

    Raises:
        ValueError: noise is not positive or draws is below 2.

    Example:
        >>> k = np.array([[1.0, 0.5], [0.5, 1.0]])
        >>> mean, error = posterior_by_sampling(k, np.array([2.0]), 1.0, 20000, np.random.default_rng(0))
        >>> bool(abs(mean[0] - 0.5) < 5 * error[0])
        True
    """
    if not noise > 0:
        raise ValueError(f"noise must be a positive variance, got {noise}.")
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}.")
    values, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    functions = generator.standard_normal((draws, len(kernel))) @ root.T
    misfit = ((functions[:, : len(targets)] - targets) ** 2).sum(axis=1) / (2 * noise)
    weights = np.exp(misfit.min() - misfit)
    weights /= weights.sum()
    tests = functions[:, len(targets) :]
    mean = weights @ tests
    return mean, np.sqrt((weights[:, None] ** 2 * (tests - mean) ** 2).sum(axis=0))
