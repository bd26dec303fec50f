"""Positively homogeneous activations under batch normalization: closed forms for every degree.

A function of one variable with phi(t x) = t^alpha phi(x) for t > 0 is a rho(x) - b rho(-x), rho(x) = max(x, 0)^alpha
(arXiv 1902.08129, section E.1.2). For a Gaussian pair with unit variances and cosine c,

    E[rho(x) rho(y)] = E[rho(x)^2] J_alpha(c),   J_alpha(c) = A (1+c)^(alpha+1/2) 2F1(1/2, 1/2; alpha+3/2; (1+c)/2)

with A such that J_alpha(1) = 1: in polar coordinates the average is an integral of (cos u + c)^alpha, Mehler's integral
of a Legendre function. J_1 = J is the cosine map of ReLU. J_alpha' = alpha^2/(2 alpha - 1) J_(alpha-1). With
J = J_phi(c) = (a^2+b^2) J_alpha(c) - 2ab J_alpha(-c), taken at c = -1/(n-1), the symmetric fixed point BSB1 and its
multipliers follow, because the length of a Gaussian vector is independent of its direction. NumPy float64; no torch.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import gammaln, hyp2f1

from bnlib.activations import Activation
from bnlib.kernels import one_minus_relu_cosine
from bnlib.mean_field import LINEARIZATION_MINIMUM, ForwardMultipliers, SymmetricFixedPoint, mean_chi

Values = Float[np.ndarray, "*shape"] | float | int

_TINY_GAP = 1e-3  # below it 1 - J is integrated, not subtracted
_NODES, _WEIGHTS = (0.5 * np.polynomial.legendre.leggauss(8)[0] + 0.5, 0.5 * np.polynomial.legendre.leggauss(8)[1])


@dataclass(frozen=True)
class Homogeneous:
    """phi(x) = a max(x,0)^alpha - b max(-x,0)^alpha.

    Attributes:
        alpha: the degree, above -1/2 so that the mean square exists.
        a: factor on the positive side.
        b: factor on the negative side, with the sign of the formula: a = b is odd, a = -b is even.
    """

    alpha: float
    a: float
    b: float

    @property
    def activation(self) -> Activation:
        """The same function for the quadrature rules; the degree must be positive there."""
        alpha, a, b = self.alpha, self.a, self.b

        def function(x: np.ndarray) -> np.ndarray:
            return np.where(x > 0, a, -b) * np.abs(x) ** alpha

        def derivative(x: np.ndarray) -> np.ndarray:
            size = np.where(x == 0, 1.0, np.abs(x))
            return np.where(x == 0, 0.0, np.where(x > 0, a, b) * alpha * size ** (alpha - 1))

        return Activation(f"{a:g} relu^{alpha:g}(x) - {b:g} relu^{alpha:g}(-x)", function, derivative, degree=alpha)


def homogeneous(alpha: float | int, a: float | int = 1.0, b: float | int = 0.0) -> Homogeneous:
    """The activation a max(x,0)^alpha - b max(-x,0)^alpha, checked.

    Args:
        alpha: degree, above -1/2.
        a: factor on the positive side.
        b: factor on the negative side; not both are zero.

    Raises:
        ValueError: alpha is not above -1/2, or a and b are both zero or not finite.

    Example:
        >>> homogeneous(1, 1, 0.1).activation(np.array([-2.0, 3.0]))  # leaky ReLU
        array([-0.2,  3. ])
    """
    _checked_degree(alpha)
    if not (math.isfinite(a) and math.isfinite(b)) or (a == 0 and b == 0):
        raise ValueError(f"a and b must be finite and not both zero, got {a} and {b}.")
    return Homogeneous(float(alpha), float(a), float(b))


def _checked_degree(alpha: float | int, above: float = -0.5) -> float:
    if not above < alpha < math.inf:
        raise ValueError(f"alpha must be a finite degree above {above:g}, got {alpha}.")
    return float(alpha)


def power_cosine(c: Values, alpha: float | int) -> Values:
    """J_alpha: the cosine between two Gaussian vectors after an entrywise max(x, 0)^alpha, at infinite width.

    Args:
        c: cosine before, in [-1, 1].
        alpha: degree, above -1/2.

    Returns:
        The cosine after, same shape.

    Raises:
        ValueError: alpha is not above -1/2, or c leaves [-1, 1].

    Example:
        >>> round(power_cosine(0.0, 1) * math.pi, 12), round(power_cosine(0.5, 0), 12)
        (1.0, 0.666666666667)
    """
    alpha = _checked_degree(alpha)
    c = np.asarray(c, dtype=np.float64)
    if not (np.abs(c) <= 1 + 1e-12).all():
        raise ValueError("c must lie between -1 and 1.")
    half = np.clip((1 + c) / 2, 0.0, 1.0)
    # At c = 1 Gauss's theorem gives the series' sum Gamma(a+3/2) Gamma(a+1/2) / Gamma(a+1)^2.
    top = math.exp(gammaln(alpha + 1.5) + gammaln(alpha + 0.5) - 2 * gammaln(alpha + 1))
    value = half ** (alpha + 0.5) * hyp2f1(0.5, 0.5, alpha + 1.5, half) / top
    return value if value.ndim else float(value)


def power_cosine_derivative(c: Values, alpha: float | int) -> Values:
    """J_alpha'(c) = alpha^2/(2 alpha - 1) J_(alpha-1)(c).

    Args:
        c: cosine, in [-1, 1].
        alpha: degree, above 1/2: below, the slope at c = 1 is infinite.

    Raises:
        ValueError: alpha is not above 1/2, or c leaves [-1, 1].

    Example:
        >>> round(power_cosine_derivative(0.0, 1), 12), round(power_cosine_derivative(1.0, 2), 12)
        (0.5, 1.333333333333)
    """
    alpha = _checked_degree(alpha, above=0.5)
    return alpha**2 / (2 * alpha - 1) * power_cosine(c, alpha - 1)


def power_cosine_fixed_point(alpha: float | int) -> float:
    """The solution c* of J_alpha(c) = c in (0, 1); besides it only c = 1 solves the equation.

    J_alpha has a power series with non-negative coefficients, so it is convex on [0, 1]; its slope at 1,
    alpha^2/(2 alpha - 1) (infinite for alpha <= 1/2), exceeds 1 unless alpha = 1.

    Args:
        alpha: degree, above -1/2, not 1.

    Raises:
        ValueError: alpha is not above -1/2, or it is 1, where c = 1 is the only solution.

    Example:
        >>> c = power_cosine_fixed_point(0.75)
        >>> abs(power_cosine(c, 0.75) - c) < 1e-12, 0 < c < 1
        (True, True)
    """
    alpha = _checked_degree(alpha)
    if alpha == 1:
        raise ValueError("alpha must differ from 1, where c = 1 is the only solution of J(c) = c.")
    upper = 1 - 1e-9
    while power_cosine(upper, alpha) >= upper:
        upper = 1 - (1 - upper) / 8
        if 1 - upper < 1e-14:
            raise ValueError(f"alpha must differ from 1 by more than the solver can see, got {alpha}.")
    return float(brentq(lambda c: power_cosine(c, alpha) - c, 0.0, upper, xtol=1e-15, rtol=1e-14))


def kernel_cosine(c: Values, phi: Homogeneous) -> Values:
    """J_phi(c) = (a^2 + b^2) J_alpha(c) - 2 a b J_alpha(-c).

    Args:
        c: cosine, in [-1, 1].
        phi: activation.

    Raises:
        ValueError: c leaves [-1, 1].

    Example:
        >>> round(kernel_cosine(0.3, homogeneous(1, 1, 1)), 12)  # the identity: (a + b)^2/2 c
        0.6
    """
    positive = (phi.a**2 + phi.b**2) * power_cosine(c, phi.alpha)
    if phi.a * phi.b == 0:
        return positive  # the series costs most of a layer's time
    return positive - 2 * phi.a * phi.b * power_cosine(np.negative(c), phi.alpha)


def kernel_cosine_gap(gap: Values, phi: Homogeneous) -> Values:
    """J_phi(1) - J_phi(1 - gap), also where the gap is far below rounding.

    Degree one has a closed form in the angle. Else, by J_alpha' = alpha^2/(2 alpha - 1) J_(alpha-1), small gaps are an
    integral over the slope, smooth in the square root of the gap; large ones are a plain difference. The relative
    error is below 1e-9 for degrees of 1.2 and more, and grows towards degree 1/2 (0.93: 1e-6; 0.6: 1e-2).

    Args:
        gap: 1 - c, in [0, 2].
        phi: activation, of positive degree; at degrees up to 1/2, where the slope at 1 is infinite, all gaps are plain
            differences.

    Returns:
        The difference, same shape.

    Raises:
        ValueError: gap leaves [0, 2].

    Example:
        >>> kernel_cosine_gap(1e-30, homogeneous(2)) / 1e-30 * 3 / 4  # the slope 4/3 of degree two
        1.0
    """
    gap = np.asarray(gap, dtype=np.float64)
    if not ((gap >= 0) & (gap <= 2 + 1e-12)).all():
        raise ValueError("gap must lie between 0 and 2.")
    gap = np.minimum(gap, 2.0)
    alpha, both = phi.alpha, 2 * phi.a * phi.b
    if alpha == 1:
        one = np.asarray(one_minus_relu_cosine(2 * np.arcsin(np.sqrt(gap / 2))))
    elif alpha <= 0.5:
        one = np.asarray(1.0 - power_cosine(1 - gap, alpha))
    else:
        flat = np.ravel(gap)
        one, tiny = np.empty_like(flat), flat < _TINY_GAP
        one[~tiny] = 1.0 - power_cosine(1 - flat[~tiny], alpha)
        # t = gap u^2 makes the square root at the end of J_(alpha-1) smooth.
        slope = power_cosine(1 - flat[tiny, None] * _NODES**2, alpha - 1) @ (2 * _NODES * _WEIGHTS)
        one[tiny] = alpha**2 / (2 * alpha - 1) * flat[tiny] * slope
        one = one.reshape(gap.shape)
    value = (phi.a**2 + phi.b**2) * one
    if both != 0:
        value = value + both * power_cosine(gap - 1, alpha)
    return value if gap.ndim else float(value)


def _kernel_slope(c: float, phi: Homogeneous) -> float:
    j, alpha = power_cosine, phi.alpha
    positive, negative = (alpha**2 / (2 * alpha - 1) * j(x, alpha - 1) for x in (c, -c))
    return (phi.a**2 + phi.b**2) * positive + 2 * phi.a * phi.b * negative


def homogeneous_fixed_point(phi: Homogeneous, n: int | float) -> SymmetricFixedPoint:
    """BSB1 in closed form: diagonal K J_phi(1), off-diagonal K J_phi(-1/(n-1)).

    K = (n-1)^alpha Gamma(alpha+1/2) Gamma((n-1)/2) / (2 sqrt(pi) Gamma((n-1)/2 + alpha)), since the mean of
    chi^(2 alpha) with n - 1 degrees of freedom divides the Gaussian average.

    Args:
        phi: activation.
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2.

    Example:
        >>> point = homogeneous_fixed_point(homogeneous(1), 8)
        >>> round(point.diagonal, 12), round(math.degrees(math.acos(point.cosine)), 2)
        (0.5, 75.51)
    """
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    alpha, k = phi.alpha, (n - 1) / 2
    log_scale = alpha * math.log(n - 1) + gammaln(alpha + 0.5) + gammaln(k) - gammaln(k + alpha)
    scale = math.exp(log_scale) / (2 * math.sqrt(math.pi))
    diagonal = scale * float(kernel_cosine(1.0, phi))
    off_diagonal = scale * float(kernel_cosine(-1.0 / (n - 1), phi))
    return SymmetricFixedPoint(n, diagonal, off_diagonal, off_diagonal / diagonal, diagonal - off_diagonal)


def homogeneous_multipliers(phi: Homogeneous, n: int | float) -> ForwardMultipliers:
    """Multipliers at BSB1 in closed form, J = J_phi(-1/(n-1)), J1 = J_phi(1) = a^2 + b^2.

    lambda_M = n J' / ((n-1+2 alpha)(J1-J)), lambda_L = (alpha (n-2)(J1-J) + n J'/(n-1)) / ((n-1+2 alpha)(J1-J)); as n
    grows lambda_L tends to alpha and lambda_M to J_phi'(0)/(J1 - J_phi(0)).

    Args:
        phi: activation, of a degree above 1/2.
        n: batch size, at least 4; any real number.

    Raises:
        ValueError: n < 4, or alpha is not above 1/2.

    Example:
        >>> found = homogeneous_multipliers(homogeneous(1), 8)
        >>> round(found.norms, 4), round(found.covariances, 4)
        (0.7436, 0.5386)
    """
    if not n >= LINEARIZATION_MINIMUM:
        raise ValueError(f"n must be a batch size of at least {LINEARIZATION_MINIMUM}, got {n}.")
    _checked_degree(phi.alpha, above=0.5)
    c, alpha = -1.0 / (n - 1), phi.alpha
    gap = float(kernel_cosine(1.0, phi) - kernel_cosine(c, phi))
    slope = _kernel_slope(c, phi)
    scale = (n - 1 + 2 * alpha) * gap
    return ForwardMultipliers(0.0, (alpha * (n - 2) * gap + n * slope / (n - 1)) / scale, n * slope / scale)


def best_covariance_limit(alpha: float | int) -> float:
    """Largest limit of lambda_M over a and b for large batches: 2 J_alpha'(0), at a = b.

    J_alpha'(0) = Gamma(alpha/2 + 1)^2 / (sqrt(pi) Gamma(alpha + 1/2)). It exceeds alpha, the limit of lambda_L, exactly
    for alpha < 1.

    Args:
        alpha: degree, above -1/2.

    Raises:
        ValueError: alpha is not above -1/2.

    Example:
        >>> round(best_covariance_limit(1), 12)
        1.0
    """
    alpha = _checked_degree(alpha)
    return 2 * math.exp(2 * gammaln(alpha / 2 + 1) - gammaln(alpha + 0.5)) / math.sqrt(math.pi)


def homogeneous_cross_constant(phi: Homogeneous, n: int | float) -> float:
    """Covariance between samples of two independent batches: E[phi(b_1)]^2, in closed form.

    E[phi(b_1)] = (a - b) (n-1)^(alpha/2) Gamma((alpha+1)/2) Gamma((n-1)/2) / (2 sqrt(pi) Gamma((n-1+alpha)/2)).

    Args:
        phi: activation.
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(homogeneous_cross_constant(homogeneous(1), 2), 12)
        0.25
    """
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    alpha, k = phi.alpha, n - 1
    log_mean = alpha / 2 * math.log(k) + gammaln((alpha + 1) / 2) + gammaln(k / 2) - gammaln((k + alpha) / 2)
    return ((phi.a - phi.b) * math.exp(log_mean) / (2 * math.sqrt(math.pi))) ** 2


def homogeneous_cross_decay(phi: Homogeneous, n: int | float) -> float:
    """Decay of the covariance between two batches, per layer, in closed form.

    (E chi)^2 n E[phi(b_1) b_1]^2 / ((n-1)^2 mu), with E[phi(b_1) b_1] = (a+b)/2 (n-1)^((alpha+1)/2)
    Gamma(alpha/2+1) Gamma((n-1)/2) / (sqrt(pi) Gamma((n+alpha)/2)).

    Args:
        phi: activation.
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(homogeneous_cross_decay(homogeneous(1), 8), 4)
        0.7097
    """
    mu = homogeneous_fixed_point(phi, n).centered
    alpha, k = phi.alpha, n - 1
    log_mean = (alpha + 1) / 2 * math.log(k) + gammaln(alpha / 2 + 1) + gammaln(k / 2) - gammaln((k + alpha + 1) / 2)
    along = (phi.a + phi.b) / 2 * math.exp(log_mean) / math.sqrt(math.pi)
    return mean_chi(k) ** 2 * n * along**2 / (k**2 * mu)


def homogeneous_cross_decay_by_kernel(phi: Homogeneous, n: int | float) -> float:
    """The same through the kernel's slope at 0, as the Laplace method gives it (arXiv 1902.08129, section H.2.2).

    n/(n-1) (E chi)^2 E[chi^(2 alpha)] / E[chi^(alpha+1)]^2 * J_phi'(0) / (J_phi(1) - J_phi(-1/(n-1))), chi with n - 1
    degrees of freedom: derivative of the kernel in the covariance, at 0, of two independent batches.

    Args:
        phi: activation, of a degree above 1/2.
        n: batch size, at least 2; any real number.

    Raises:
        ValueError: n < 2, or alpha is not above 1/2.

    Example:
        >>> phi = homogeneous(2, 1, 0.5)
        >>> abs(homogeneous_cross_decay_by_kernel(phi, 8) - homogeneous_cross_decay(phi, 8)) < 1e-13
        True
    """
    if not n >= 2:
        raise ValueError(f"n must be a batch size of at least 2, got {n}.")
    _checked_degree(phi.alpha, above=0.5)
    alpha, k = phi.alpha, (n - 1) / 2
    # E chi^p = 2^(p/2) Gamma(k + p/2) / Gamma(k), and the powers of two cancel.
    moments = 2 * gammaln(k + 0.5) + gammaln(k + alpha) - gammaln(k) - 2 * gammaln(k + (alpha + 1) / 2)
    gap = float(kernel_cosine(1.0, phi) - kernel_cosine(-1.0 / (n - 1), phi))
    return n / (n - 1) * math.exp(moments) * _kernel_slope(0.0, phi) / gap


def instability_degree(n: int | float) -> float:
    """The degree alpha at which BSB1 of max(x,0)^alpha turns unstable: lambda_L = 1.

    Args:
        n: batch size above 4: at 4 and below lambda_L stays below 1 for every degree.

    Raises:
        ValueError: n is not above 4.

    Example:
        >>> alpha = instability_degree(10)
        >>> round(homogeneous_multipliers(homogeneous(alpha), 10).norms, 12)
        1.0
    """
    if not n > LINEARIZATION_MINIMUM:
        raise ValueError(f"n must be a batch size above {LINEARIZATION_MINIMUM}, got {n}.")

    def excess(alpha: float) -> float:
        return homogeneous_multipliers(homogeneous(alpha), n).norms - 1

    upper = 2.0
    while excess(upper) <= 0:
        upper *= 2
        if upper > 1e4:
            raise ValueError(f"n must be a batch size far enough above {LINEARIZATION_MINIMUM}, got {n}.")
    return float(brentq(excess, 0.6, upper, xtol=1e-13))
