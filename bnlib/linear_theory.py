"""Linear networks with and without rescaling, in theory: infinite width, and the leading order in 1/width.

Without a non-linearity the Gram matrix of a batch, divided by its trace, keeps its eigenvectors at infinite width; a
layer acts on its eigenvalues alone. Rescaling divides every neuron by its root mean square over the batch.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, gammaln

from bnlib.checks import checked_batch_size, checked_depth


def gap_of_eigenvalues(eigenvalues: Float[np.ndarray, " n"]) -> float:
    """Orthogonality gap |K/tr K - I/n|_F of a Gram matrix with these eigenvalues.

    Args:
        eigenvalues: at least two numbers, not negative, not all zero, shape (n,).

    Returns:
        A number in [0, sqrt(1 - 1/n)].

    Raises:
        ValueError: fewer than two eigenvalues, a negative one, or all zero.

    Example:
        >>> gap_of_eigenvalues(np.array([1.0, 1.0, 1.0]))
        0.0
    """
    shares = _shares(eigenvalues)
    return float(np.linalg.norm(shares - 1 / len(shares)))


def rescaled_linear_map(eigenvalues: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """One infinitely wide linear layer with rescaling by the root mean square, on the eigenvalues of the Gram matrix.

    A neuron's activity over the batch is Gaussian with the Gram matrix as covariance; rescaling puts it on a sphere. So
    eigenvalue i goes to ``E[l_i z_i^2 / sum_j l_j z_j^2]`` with independent standard Gaussian z, which is the integral
    over s > 0 of ``l_i / (1 + 2 s l_i) * prod_j (1 + 2 s l_j)^(-1/2)``. For two samples it is elementary: the ratio of
    the eigenvalues goes to its square root. Zero eigenvalues stay zero: a linear layer never raises the rank.

    Args:
        eigenvalues: at least two numbers, not negative, not all zero, shape (n,).

    Returns:
        The next eigenvalues, of sum one, in the same order.

    Raises:
        ValueError: fewer than two eigenvalues, a negative one, or all zero.

    Example:
        >>> rescaled_linear_map(np.array([4.0, 1.0])) * 3  # the ratio 4 becomes 2
        array([2., 1.])
    """
    shares = _shares(eigenvalues)
    positive = shares[shares > 0]
    if len(positive) == 1:
        return np.where(shares > 0, 1.0, 0.0)
    # With s = e^t the integrand is analytic in the strip |Im t| < pi and decays exponentially at both ends, so that the
    # trapezoidal rule of step 0.4 is accurate to rounding.
    t = np.arange(-40.0 - math.log(2 * positive.max()), 80.0 - math.log(2 * positive.min()), 0.4)
    scaled = 2 * np.exp(t)[:, None] * positive
    weight = np.exp(-0.5 * np.log1p(scaled).sum(axis=1))
    following = 0.4 * (0.5 * scaled / (1 + scaled) * weight[:, None]).sum(axis=0)
    out = np.zeros_like(shares)
    out[shares > 0] = following / following.sum()
    return out


def rescaled_gap_path(eigenvalues: Float[np.ndarray, " n"], depth: int) -> Float[np.ndarray, " layers"]:
    """Orthogonality gap after 0, 1, ..., depth infinitely wide linear layers with rescaling.

    Args:
        eigenvalues: of the Gram matrix of the input, shape (n,).
        depth: number of layers, at least 0.

    Returns:
        The gaps, shape (depth + 1,).

    Raises:
        ValueError: as :func:`rescaled_linear_map`, or a depth that is not a whole number of at least 0.

    Example:
        >>> rescaled_gap_path(np.array([1.0, 0.0]), 2).round(6).tolist()  # rank one stays rank one
        [0.707107, 0.707107, 0.707107]
    """
    gaps = [gap_of_eigenvalues(eigenvalues)]
    for _ in range(checked_depth(depth)):
        eigenvalues = rescaled_linear_map(eigenvalues)
        gaps.append(gap_of_eigenvalues(eigenvalues))
    return np.array(gaps)


def gap_multiplier(n: int) -> float:
    """Factor n/(n+2) by which a small orthogonality gap shrinks in a wide linear layer with rescaling.

    Args:
        n: batch size.

    Returns:
        A number in [1/2, 1).

    Raises:
        ValueError: n < 2.

    Example:
        >>> gap_multiplier(2)
        0.5
    """
    checked_batch_size(n, 2)
    return n / (n + 2)


def stationary_gap(n: int, width: int) -> tuple[float, float]:
    """Orthogonality gap that rescaling leaves deep in a linear network, to leading order in 1/width.

    The normalized Gram matrix is the mean of `width` independent projections on random directions: a fluctuation of
    mean square (1 - 1/n)/width, isotropic among the symmetric traceless matrices; a layer multiplies the deviation
    that it finds by n/(n+2). So the stationary mean square is ``(1 - 1/n)/width / (1 - (n/(n+2))^2)``, and the mean is
    smaller by the factor of a chi variable with (n-1)(n+2)/2 degrees of freedom.

    Args:
        n: batch size.
        width: number of neurons, much larger than n.

    Returns:
        Mean, and root mean square, of the gap over independent networks; the gap is measured after rescaling.

    Raises:
        ValueError: n < 2 or width < 1.

    Example:
        >>> mean, root_mean_square = stationary_gap(4, 10_000)
        >>> f"{mean * 100:.4f} {root_mean_square * 100:.4f}"
        '1.1301 1.1619'
    """
    checked_batch_size(n, 2)
    if not width >= 1:
        raise ValueError(f"width must be a number of neurons, 1 or more, got {width}.")
    root_mean_square = math.sqrt((1 - 1 / n) / width / (1 - gap_multiplier(n) ** 2))
    freedom = (n - 1) * (n + 2) / 2
    chi = math.sqrt(2 / freedom) * math.exp(gammaln((freedom + 1) / 2) - gammaln(freedom / 2))
    return root_mean_square * chi, root_mean_square


def spread_rate(n: int, width: int) -> float:
    """Growth a layer of log(s_1/s_n), the log of the ratio of extreme singular values, in a plain linear network.

    With a Gram root R the next representation is R Z with Gaussian Z = L Q, L lower triangular with chi-distributed
    diagonal of width, width - 1, ... degrees of freedom (Bartlett), so the exponents are those of a product of
    triangular matrices: E log chi of these degrees of freedom.

    Args:
        n: batch size.
        width: number of neurons, at least n.

    Returns:
        ``(psi(width/2) - psi((width-n+1)/2)) / 2``, about (n - 1)/(2 width) for a wide network.

    Raises:
        ValueError: n < 2, or width < n (the representation loses rank at once).

    Example:
        >>> round(spread_rate(4, 32), 4)
        0.0509
    """
    checked_batch_size(n, 2)
    if not width >= n:
        raise ValueError(f"width must be at least the batch size {n}, got {width}.")
    return float(digamma(width / 2) - digamma((width - n + 1) / 2)) / 2


def uncentered_growth(n: int) -> float:
    """Growth a layer of the mean's share against the centered one, in a linear network rescaled by standard deviations.

    A neuron's mean over the batch is independent of its standard deviation, and 1/(chi-square of n - 1) has the mean
    1/(n - 3): dividing by the standard deviation without recentering multiplies the energy along 1 relative to the
    energy of any direction across it by (n-1)/(n-3), at infinite width and for a symmetric batch.

    Args:
        n: batch size.

    Returns:
        The factor, above 1; infinite for n <= 3.

    Raises:
        ValueError: n < 2.

    Example:
        >>> uncentered_growth(5)
        2.0
    """
    checked_batch_size(n, 2)
    return (n - 1) / (n - 3) if n > 3 else math.inf


def lost_direction_factor(n: int, width: int) -> float:
    """Growth a layer of a direction that is nearly lost, in a linear network rescaled by root mean squares.

    Of n equal eigenvalues of the Gram matrix let one be much smaller than the others. A layer multiplies the energy
    of its direction outside the span of the others, relative to the energy of each of them, by
    ``(n-1)/(n-3) * (1 - (n-1)/width)`` in the mean: above 1 if and only if width > (n-1)^2 / 2.

    Args:
        n: batch size.
        width: number of neurons, at least n.

    Returns:
        The factor; infinite for n <= 3.

    Raises:
        ValueError: n < 2, or width < n (the direction is lost at once).

    Example:
        >>> lost_direction_factor(5, 8), lost_direction_factor(16, 64) < 1 < lost_direction_factor(16, 128)
        (1.0, True)
    """
    checked_batch_size(n, 2)
    if not width >= n:
        raise ValueError(f"width must be at least the batch size {n}, got {width}.")
    return uncentered_growth(n) * (1 - (n - 1) / width)


def _shares(eigenvalues: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Eigenvalues divided by their sum."""
    eigenvalues = np.asarray(eigenvalues, dtype=np.float64)
    if eigenvalues.ndim != 1 or len(eigenvalues) < 2 or not (eigenvalues >= 0).all() or not eigenvalues.any():
        raise ValueError(
            f"eigenvalues must be at least two numbers, none negative and not all zero, got {eigenvalues.tolist()}."
        )
    return eigenvalues / eigenvalues.sum()
