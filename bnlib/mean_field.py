"""Mean-field theory of batch normalization: fixed point, convergence, gradient growth, cross-batch decay.

At infinite width the pre-activations of one neuron over a batch of n samples are Gaussian with some covariance S,
and a layer of batch normalization and activation phi maps S to E[phi(b) phi(b)^T], b = sqrt(n) G h / |G h|, h ~ N(0, S)
(arXiv 1902.08129; the source writes B for the batch size n). The fixed point with equal diagonal and equal
off-diagonal entries is called BSB1 there. Around it everything follows from averages over one or two entries
of a uniform point on the sphere (`bnlib.sphere`), for any activation:

* the forward linearization has three eigenvalues: 0 on multiples of G (average norm), lambda_L on fluctuations of the
  norms, lambda_M on covariances between samples. They are computed by differentiating the Gaussian density, so phi
  needs no derivative;
* the squared gradient grows by lambda_G per layer going down, under gradient independence;
* two independent batches lose their common covariance by lambda_cb per layer, forwards and backwards alike.

For ReLU each has a closed form, given beside the general one and compared with it in the tests. NumPy float64;
this module does not import torch. No epsilon, no learned scale or shift.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from bnlib.activations import Activation
from bnlib.checks import checked_integer_batch
from bnlib.kernels import relu_cosine, relu_cosine_derivative
from bnlib.sphere import one_entry, two_entries

LINEARIZATION_MINIMUM = 4  # the space of covariances between samples is empty below
GRADIENT_MINIMUM = 4  # E[1/|G h|^2] is infinite at n = 3, and at n = 2 every gradient is zero


@dataclass(frozen=True)
class SymmetricFixedPoint:
    """The BSB1 fixed point of one activation and batch size.

    Attributes:
        n: batch size.
        diagonal: E[phi(b_i)^2].
        off_diagonal: E[phi(b_i) phi(b_j)], i not j.
        cosine: off_diagonal / diagonal.
        centered: diagonal - off_diagonal, the factor mu of G S G = mu G.
    """

    n: int
    diagonal: float
    off_diagonal: float
    cosine: float
    centered: float


@dataclass(frozen=True)
class ForwardMultipliers:
    """Eigenvalues of the linearized covariance map at BSB1, per layer.

    Attributes:
        average_norm: on multiples of G; 0, since batch normalization forgets every scale.
        norms: lambda_L, on fluctuations of the samples' norms (n - 1 directions).
        covariances: lambda_M, on covariances between samples (n (n - 3) / 2 directions).
    """

    average_norm: float
    norms: float
    covariances: float


def symmetric_fixed_point(phi: Activation, n: int | float) -> SymmetricFixedPoint:
    """BSB1 by spherical integration.

    Args:
        phi: activation; kinks are allowed at 0 only.
        n: batch size, at least 2.

    Returns:
        The fixed point.

    Raises:
        ValueError: n is not a whole number of at least 2, phi is not finite, or it is constant on the normalized
            batch.

    Example:
        >>> from bnlib.activations import activation
        >>> point = symmetric_fixed_point(activation("relu"), 8)
        >>> round(point.diagonal, 12), abs(point.cosine - relu_cosine(-1 / 7)) < 1e-14
        (0.5, True)
    """
    n = checked_integer_batch(n, 2)
    x, w = one_entry(n)
    pair = two_entries(n)
    values = phi(x)
    if not np.isfinite(values).all():
        worst = values[~np.isfinite(values)][0]
        raise ValueError(f"phi must be finite over a normalized batch of {n}, but {phi.name} takes the value {worst}.")
    diagonal = float(w @ values**2)
    off_diagonal = pair.mean(phi(pair.first) * phi(pair.second))
    if diagonal - off_diagonal <= 1e-14 * diagonal:
        raise ValueError(f"phi must vary over a normalized batch of {n}, but {phi.name} gives {diagonal} everywhere.")
    return SymmetricFixedPoint(n, diagonal, off_diagonal, off_diagonal / diagonal, diagonal - off_diagonal)


def forward_multipliers(phi: Activation, n: int | float) -> ForwardMultipliers:
    """Eigenvalues of the linearized covariance map at BSB1, by spherical integration.

    A change L of the centered covariance mu G changes E[f(b)] by E[f(b) ((n-1) v^T L v - tr L)] / (2 mu). Schur's
    lemma leaves one number for each kind of L.

    Args:
        phi: activation; kinks are allowed at 0 only.
        n: batch size, at least 4.

    Returns:
        The three eigenvalues.

    Raises:
        ValueError: n is not a whole number of at least 4, or phi is constant on the normalized batch.

    Example:
        >>> from bnlib.activations import activation
        >>> multipliers = forward_multipliers(activation("relu"), 8)
        >>> round(multipliers.covariances, 4), round(multipliers.norms, 4)
        (0.5386, 0.7436)
    """
    if n in (2, 3):
        raise ValueError(
            f"n must be a whole batch size of at least {LINEARIZATION_MINIMUM}, since smaller batches have no "
            f"covariances between samples to perturb, got {n}."
        )
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    mu = symmetric_fixed_point(phi, n).centered
    x, w = one_entry(n)
    pair = two_entries(n)
    first, second = pair.first, pair.second
    product = phi(first) * phi(second)
    # Entries that phi does not see are averaged given those that it sees: their sum and their sum of squares are known.
    total, squares = first + second, n - first**2 - second**2
    other = (total**2 - squares) / ((n - 2) * (n - 3))
    covariances = (n - 1) / (n * mu) * pair.mean(product * (first * second + total**2 / (n - 2) + other))
    diagonal = float(w @ (phi(x) ** 2 * (x**2 - (n - x**2) / (n - 1))))
    beside = pair.mean(product * (first**2 - squares / (n - 2)))
    norms = (n - 1) / (2 * n * mu) * (diagonal - 2 * beside)
    return ForwardMultipliers(0.0, norms, covariances)


def gradient_growth(phi: Activation, n: int | float) -> float:
    """Growth of the squared gradient norm per layer, going down, at BSB1 and under gradient independence.

    lambda_G = n / (mu (n-3) (n-1)) E[tr(G D G D) - v^T D G D v], D = Diag(phi'(b)): the backward Jacobian of batch
    normalization is (sqrt(n)/|G h|) G (I - v v^T) D, and E[1/|G h|^2] = 1/(mu (n-3)).

    Args:
        phi: activation with its derivative.
        n: batch size, at least 4: at 3 the mean does not exist, at 2 gradients vanish.

    Returns:
        The growth factor, at least (n-2)/(n-3), which the identity attains.

    Raises:
        ValueError: n is not a whole number of at least 4, phi is constant on the normalized batch, or its derivative
            has no finite mean square (degrees up to 1/2).

    Example:
        >>> from bnlib.activations import activation
        >>> round(gradient_growth(activation("relu"), 8), 5), round(gradient_growth(activation("identity"), 8), 5)
        (1.78819, 1.2)
    """
    if n in (2, 3):
        raise ValueError(
            f"n must be a whole batch size of at least {GRADIENT_MINIMUM}, since at 3 the mean does not exist and at 2 "
            f"every gradient is zero, got {n}."
        )
    n = checked_integer_batch(n, GRADIENT_MINIMUM)
    mu = symmetric_fixed_point(phi, n).centered
    x, w = one_entry(n)
    pair = two_entries(n)
    slope = phi.derivative(x)
    # Quadrature would return some finite number for a slope like |x|^(alpha - 1) without a mean square.
    if not np.isfinite(slope).all() or (phi.degree is not None and phi.degree <= 0.5):
        raise ValueError(f"phi must have a derivative with a finite mean square, which {phi.name} has not.")
    slopes = phi.derivative(pair.first) * phi.derivative(pair.second)
    trace = (n - 1) ** 2 / n * float(w @ slope**2) + (n - 1) / n * pair.mean(slopes)
    radial = (n - 1) / n * (float(w @ (slope * x) ** 2) - pair.mean(slopes * pair.first * pair.second))
    return n / (mu * (n - 3) * (n - 1)) * (trace - radial)


def cross_batch_constant(phi: Activation, n: int | float) -> float:
    """Covariance between two samples of different, independent batches at the fixed point: E[phi(b_1)]^2.

    Args:
        phi: activation.
        n: batch size, at least 2.

    Raises:
        ValueError: n is not a whole number of at least 2.

    Example:
        >>> from bnlib.activations import activation
        >>> round(cross_batch_constant(activation("relu"), 1024) * 2 * math.pi, 3)
        1.0
    """
    x, w = one_entry(checked_integer_batch(n, 2))
    return float(w @ phi(x)) ** 2


def cross_batch_decay(phi: Activation, n: int | float) -> float:
    """Factor per layer on the centered covariance between two batches, forwards and backwards.

    lambda_cb = (E chi_{n-1})^2 E[phi(b_1) b_1]^2 n / ((n-1)^2 mu), since E of the Jacobian of batch normalization and
    activation is a multiple of G, by integration by parts. Always below 1.

    Args:
        phi: activation.
        n: batch size, at least 2.

    Raises:
        ValueError: n is not a whole number of at least 2, or phi is constant on the normalized batch.

    Example:
        >>> from bnlib.activations import activation
        >>> round(cross_batch_decay(activation("relu"), 8), 4), round(cross_batch_decay(activation("relu"), 64), 4)
        (0.7097, 0.7308)
    """
    n = checked_integer_batch(n, 2)
    mu = symmetric_fixed_point(phi, n).centered
    x, w = one_entry(n)
    return mean_chi(n - 1) ** 2 * n / ((n - 1) ** 2 * mu) * float(w @ (phi(x) * x)) ** 2


def mean_chi(degrees: int | float) -> float:
    """Mean length of a standard Gaussian vector with this many entries: sqrt(2) Gamma((k+1)/2) / Gamma(k/2).

    Args:
        degrees: k, positive.

    Raises:
        ValueError: degrees is not positive.

    Example:
        >>> round(mean_chi(2) ** 2 * 2 / math.pi, 12)
        1.0
    """
    if not degrees > 0:
        raise ValueError(f"degrees must be positive, got {degrees}.")
    return math.sqrt(2) * math.exp(gammaln((degrees + 1) / 2) - gammaln(degrees / 2))


# ------------------------------------------------------------------------------------------ closed forms for ReLU


def relu_symmetric_fixed_point(n: int | float) -> SymmetricFixedPoint:
    """BSB1 of ReLU in closed form: diagonal 1/2, cosine J(-1/(n-1)).

    Args:
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(math.degrees(math.acos(relu_symmetric_fixed_point(8).cosine)), 2)
        75.51
    """
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    cosine = float(relu_cosine(-1.0 / (n - 1)))
    return SymmetricFixedPoint(n, 0.5, cosine / 2, cosine, (1 - cosine) / 2)


def relu_forward_multipliers(n: int | float) -> ForwardMultipliers:
    """Closed form: lambda_M = n J' / (2 mu (n+1)), lambda_L = ((n-2)(1-J) + n J'/(n-1)) / (2 mu (n+1)).

    J and J' at -1/(n-1), mu = (1-J)/2. As n grows lambda_L tends to 1 and lambda_M to pi/(2 (pi-1)).

    Args:
        n: batch size, at least 4; any real number.

    Raises:
        ValueError: n < 4.

    Example:
        >>> round(relu_forward_multipliers(1e9).covariances * 2 * (math.pi - 1) / math.pi, 6)
        1.0
    """
    if not n >= LINEARIZATION_MINIMUM:
        raise ValueError(f"n must be a batch size of at least {LINEARIZATION_MINIMUM}, got {n}.")
    j, slope = float(relu_cosine(-1.0 / (n - 1))), float(relu_cosine_derivative(-1.0 / (n - 1)))
    scale = (1 - j) * (n + 1)
    return ForwardMultipliers(0.0, ((n - 2) * (1 - j) + n * slope / (n - 1)) / scale, n * slope / scale)


def relu_gradient_growth(n: int | float) -> float:
    """Closed form: (n - 2 + J + J') / ((n-3)(1-J)), J and J' at -1/(n-1); pi/(pi-1) as n grows.

    Args:
        n: batch size above 3; any real number, or infinity.

    Raises:
        ValueError: n <= 3.

    Example:
        >>> round(relu_gradient_growth(16), 5), round(relu_gradient_growth(math.inf) * (math.pi - 1) / math.pi, 12)
        (1.58995, 1.0)
    """
    if not n > 3:
        raise ValueError(f"n must be a batch size above 3 (the mean does not exist at 3), got {n}.")
    if math.isinf(n):
        return math.pi / (math.pi - 1)
    j, slope = float(relu_cosine(-1.0 / (n - 1))), float(relu_cosine_derivative(-1.0 / (n - 1)))
    return (n - 2 + j + slope) / ((n - 3) * (1 - j))


def linear_gradient_growth(n: int | float) -> float:
    """Growth of the squared gradient norm in linear networks with batch normalization: (n-2)/(n-3).

    Args:
        n: batch size above 3; any real number, or infinity.

    Raises:
        ValueError: n <= 3.

    Example:
        >>> linear_gradient_growth(8), linear_gradient_growth(math.inf)
        (1.2, 1.0)
    """
    if not n > 3:
        raise ValueError(f"n must be a batch size above 3 (the mean does not exist at 3), got {n}.")
    return 1.0 if math.isinf(n) else (n - 2) / (n - 3)


def relu_cross_batch_constant(n: int | float) -> float:
    """Closed form: (n-1)/(4 pi) (Gamma((n-1)/2) / Gamma(n/2))^2, which tends to 1/(2 pi).

    Args:
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(relu_cross_batch_constant(2), 12)
        0.25
    """
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    return (n - 1) / (2 * math.pi * mean_chi(n - 1) ** 2)


def relu_cross_batch_decay(n: int | float) -> float:
    """Closed form: n / (2 mu (n-1)^2) (Gamma(n/2) / Gamma((n-1)/2))^2.

    Args:
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(relu_cross_batch_decay(8), 4)
        0.7097
    """
    mu = relu_symmetric_fixed_point(n).centered
    return n * mean_chi(n - 1) ** 2 / (4 * mu * (n - 1) ** 2)
