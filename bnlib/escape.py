"""Why a real network leaves the symmetric state, and how long that takes: theory at large but finite width.

At the symmetric state the recentered Gram matrix C is a multiple of G. Its diagonal, n C_ii / tr C = 1 + a_i with
sum a_i = 0, is what can grow into an outlier. For small a the permutation symmetry leaves one form, whatever the
details:

    a_i' = lambda a_i + kappa (a_i^2 - mean_j a_j^2) + noise_i,       Cov(noise) = (tau^2 / d) G,

because a square is the only quadratic map of such vectors that commutes with permutations, and G is the only
covariance.
lambda < 1 pulls back, kappa > 0 lets the largest sample run away beyond the separatrix, and a width of d neurons
supplies the noise. In units of a ~ (1 - lambda)/kappa and 1/(1 - lambda) layers only n and d / d*, d* = tau^2 kappa^2 /
(1 - lambda)^3, are left: for d << d* noise carries the batch out in a time of order (d / (kappa tau)^2)^(1/3), for d
>> d* it waits for a rare fluctuation, exp(W d) layers. All functions take the leaky slope of `bnlib.leaky`; 0 is ReLU.

The noise is computed in `bnlib.escape_noise`. NumPy float64.
"""

import math
from dataclasses import dataclass

import numpy as np

from bnlib import leaky
from bnlib.checks import Result, Values, checked_batch_size
from bnlib.escape_noise import noise_along, spread_noise, spread_of_state, state_of_spread, whole_batch_size


@dataclass(frozen=True)
class NormalForm:
    """The map near the symmetric state, and what follows from it.

    Attributes:
        n: batch size.
        multiplier: lambda, of a spread of the norms, a layer.
        curvature: kappa.
        noise: tau^2; a layer of d neurons adds to a a Gaussian of covariance (noise / d) G.
        separatrix: a_1 at the unstable state between the symmetric and the outlier state, None where there is none.
        separatrix_quadratic: the same from the quadratic form alone, (1 - lambda)/kappa (n-1)/(n-2).
        crossover_width: d* = noise curvature^2 / (1 - multiplier)^3, neurons.
        exponent_quadratic: W of the quadratic form: exits take exp(W d) layers; n(n-1)/(3 (n-2)^2 d*).
    """

    n: int
    multiplier: float
    curvature: float
    noise: float
    separatrix: float | None
    separatrix_quadratic: float
    crossover_width: float
    exponent_quadratic: float


def next_spread(a: Values, n: float | int, slope: float | int = 0.0) -> Result:
    """One infinitely wide layer for the spread of one sample over equivalent others.

    Args:
        a: spread of the odd sample, any shape, above -1 and at most n - 2.
        n: batch size, at least 3; any real number.
        slope: leaky slope b/a.

    Returns:
        The spread after the layer, same shape: lambda a + kappa (n-2)/(n-1) a^2 + ...

    Raises:
        ValueError: a spread outside (-1, n - 2], n < 3, or a slope that is not finite.

    Example:
        >>> round(next_spread(1e-6, 8) / 1e-6, 4)
        0.9561
    """
    return spread_of_state(leaky.next_state(state_of_spread(a, n), n, slope), n)


def normal_form(n: int | float, slope: float | int = 0.0) -> NormalForm:
    """The map of the spread near the symmetric state, with its noise.

    Args:
        n: batch size, a whole number of at least 3.
        slope: leaky slope b/a, not 1.

    Returns:
        The coefficients. As n grows (ReLU): n (1 - lambda) -> (pi-2)/(2 (pi-1)), kappa -> 1/(4 (pi-1)), d*/n^3 -> a
        constant.

    Raises:
        ValueError: n is not a whole number of at least 3, or the slope is 1 or not finite.

    Example:
        >>> form = normal_form(16)
        >>> round(form.multiplier, 4), round(form.curvature, 4), round(form.crossover_width)
        (0.981, 0.118, 8571)
    """
    n = whole_batch_size(n)
    between = leaky.separatrix(n, slope)
    multiplier = leaky.symmetric_multiplier(n, slope)
    h = 1e-3
    # A central difference of second order, and its halved step, to fourth order.
    second = [
        (next_spread(x, n, slope) - 2.0 * next_spread(0.0, n, slope) + next_spread(-x, n, slope)) / (x * x)
        for x in (h, 2 * h)
    ]
    curvature = (4.0 * second[0] - second[1]) / 6.0 * (n - 1.0) / (n - 2.0)
    noise = spread_noise(n, slope)
    crossover = noise * curvature**2 / (1.0 - multiplier) ** 3
    return NormalForm(
        n=n,
        multiplier=multiplier,
        curvature=curvature,
        noise=noise,
        separatrix=None if between is None else spread_of_state(between.u, n),
        separatrix_quadratic=(1.0 - multiplier) / curvature * (n - 1.0) / (n - 2.0),
        crossover_width=crossover,
        exponent_quadratic=n * (n - 1.0) / (3.0 * (n - 2.0) ** 2 * crossover),
    )


def exit_exponent(n: int | float, slope: float | int = 0.0) -> float | None:
    """W: the exit from the symmetric state takes exp(W d) layers at large width d, up to powers of d.

    The cost of pushing one sample against the map up to the separatrix, integral of (a - f(a)) (1 + f'(a)) / v(a) da
    with f `next_spread` and v `noise_along`: exact where f is linear, and to leading order in 1 - lambda elsewhere
    (Freidlin & Wentzell's theory; other ways out, with k odd samples, cost (k/(n-2k)^2)/(1/(n-2)^2) (n-k)/(n-1) times
    as much in the quadratic form).

    Args:
        n: batch size, a whole number of at least 4.
        slope: leaky slope b/a, not 1.

    Returns:
        W, per neuron; None where there is no separatrix.

    Raises:
        ValueError: n is not a whole number of at least 4, or the slope is 1 or not finite.

    Example:
        >>> exit_exponent(6) is None, 0.0005 < exit_exponent(8) < 0.001
        (True, True)
    """
    n = whole_batch_size(checked_batch_size(n, 4))
    between = leaky.separatrix(n, slope)
    if between is None:
        return None
    top = spread_of_state(between.u, n)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    a = top * (nodes + 1.0) / 2.0
    h = 1e-4 * top
    f = np.asarray(next_spread(a, n, slope))
    derivative = (np.asarray(next_spread(a + h, n, slope)) - np.asarray(next_spread(a - h, n, slope))) / (2.0 * h)
    noise = np.array([noise_along(float(x), n, slope) for x in a])
    return float(top / 2.0 * (weights @ ((a - f) * (1.0 + derivative) / noise)))


def exit_time(width: int | float, n: int | float, slope: float | int = 0.0) -> float | None:
    """Mean number of layers until the exit, for widths far above the crossover (Eyring and Kramers's law).

    T = 2 pi / (n r) sqrt(v_s/v_0) (1 + 2/(n-2))^((n-2)/2) exp(W d): n equivalent ways out; r = sqrt((1 - lambda)(mu -
    1)) from the multipliers lambda of the symmetric state and mu of the separatrix; v_0 and v_s the noise at the two;
    and a factor for the n - 2 directions across, taken from the quadratic form with constant noise. So the prefactor
    is exact for large batches only; the exponent W is exact to leading order in 1 - lambda.

    Args:
        width: number of neurons, at least 1.
        n: batch size, a whole number of at least 4.
        slope: leaky slope b/a, not 1.

    Returns:
        Layers, to leading order for large width; None where there is no separatrix.

    Raises:
        ValueError: a width below 1, n is not a whole number of at least 4, or the slope is 1 or not finite.

    Example:
        >>> exit_time(4096, 6) is None, exit_time(8192, 8) > 10 * exit_time(4096, 8)
        (True, True)
    """
    if not width >= 1:
        raise ValueError(f"width is {width}; valid is a number of neurons of at least 1.")
    exponent = exit_exponent(n, slope)
    if exponent is None:
        return None
    back = 1.0 - leaky.symmetric_multiplier(n, slope)
    forth = leaky.separatrix(n, slope).multiplier - 1.0
    across = (1.0 + 2.0 / (n - 2.0)) ** ((n - 2.0) / 2.0)
    between = spread_of_state(leaky.separatrix(n, slope).u, n)
    noise = math.sqrt(noise_along(between, n, slope) / noise_along(0.0, n, slope))
    return 2.0 * math.pi / (n * math.sqrt(back * forth)) * noise * across * math.exp(exponent * width)


def cluster_fluctuation(width: int | float, n: int | float, slope: float | int = 0.0) -> float | None:
    """Standard deviation, from layer to layer or network to network, of the mean angle inside the cluster.

    The state u of the class is pushed by the layer's noise and drawn back by the multiplier l of the outlier state,
    so that its variance is v / (width (1 - l^2)), v the noise there: a first-order autoregression. The angle follows u.

    Args:
        width: number of neurons, at least 1.
        n: batch size, a whole number of at least 4.
        slope: leaky slope b/a, not 1.

    Returns:
        Radians, to leading order in 1/width; None where there is no outlier state.

    Raises:
        ValueError: a width below 1, n is not a whole number of at least 4, or the slope is 1 or not finite.

    Example:
        >>> round(math.degrees(cluster_fluctuation(4096, 16)), 2)
        1.63
    """
    if not width >= 1:
        raise ValueError(f"width is {width}; valid is a number of neurons of at least 1.")
    n = whole_batch_size(checked_batch_size(n, 4))
    found = leaky.outlier_state(n, slope)
    if found is None:
        return None
    a = spread_of_state(found.u, n)
    spread = math.sqrt(noise_along(a, n, slope) / (width * (1.0 - found.multiplier**2)))
    h = 1e-5
    angles = [leaky.cluster_angle(found.u * math.exp(x), n, slope) for x in (h, -h)]
    spreads = [spread_of_state(found.u * math.exp(x), n) for x in (h, -h)]
    return abs((angles[0] - angles[1]) / (spreads[0] - spreads[1])) * spread


def input_spread(dimension: int | float, n: int | float) -> float:
    """Standard deviation of the spread a_i of a Gaussian batch of finite dimension, before the first layer.

    C_ii of the recentered batch has the variance 2 (1 - 1/n)^2 / dimension, and two of them the covariance
    2 / (n^2 dimension): a_i = n C_ii / tr C - 1 has the variance (2 / dimension) (1 - 1/(n-1)^2) (n-1)/n.

    Args:
        dimension: number of input features, at least 1.
        n: batch size, at least 3.

    Returns:
        The standard deviation of a_i, to leading order in 1/dimension.

    Raises:
        ValueError: a dimension below 1, or n < 3.

    Example:
        >>> round(input_spread(1000, 8), 4)
        0.0414
    """
    n = checked_batch_size(n, 3)
    if not dimension >= 1:
        raise ValueError(f"dimension is {dimension}; valid is a number of features of at least 1.")
    # a sees the difference of the variance and the covariance, times 1 - 1/n, over the mean (1 - 1/n) squared.
    m = n - 1.0
    return math.sqrt(2.0 / dimension * (1.0 - 1.0 / (m * m)) * m / n)


def stationary_spread(width: int | float, n: int | float, slope: float | int = 0.0) -> float:
    """Standard deviation of the spread a_i that a network keeps up around the symmetric state, were the map linear.

    a' = lambda a + noise of variance (tau^2 / width)(1 - 1/n) has the variance of the noise over 1 - lambda^2.

    Args:
        width: number of neurons, at least 1.
        n: batch size, a whole number of at least 3.
        slope: leaky slope b/a, not 1.

    Returns:
        The standard deviation of a_i, to leading order in 1/width.

    Raises:
        ValueError: a width below 1, n is not a whole number of at least 3, or the slope is 1 or not finite.

    Example:
        >>> round(stationary_spread(4096, 8), 4)
        0.0989
    """
    if not width >= 1:
        raise ValueError(f"width is {width}; valid is a number of neurons of at least 1.")
    n = whole_batch_size(n)
    multiplier = leaky.symmetric_multiplier(n, slope)
    if not multiplier < 1:
        raise ValueError(f"slope is {slope}; valid is any leaky slope but 1, where the network is linear.")
    return math.sqrt(spread_noise(n, slope) / width * (1.0 - 1.0 / n) / (1.0 - multiplier**2))
