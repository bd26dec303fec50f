"""The invariant geometry of the paper (Definition 12) and the moments of Theorems 13 and 14, exactly.

One sample x_1 of length 1, all others at one point nu of length 1/(n-1), orthogonal to it. Recentering turns them into
opposite vectors, ((n-1)/n) e and -(1/n) e with e = x_1 - nu, so one neuron w sees ((n-1)/n) z and -z/n with one number
z = e.w: ReLU leaves the odd sample where z > 0 and the cluster where z < 0. Everything below follows from the moments
of the positive part of a Gaussian. R stands for |e|, the weights have variance 2 alpha / d for width d.

Exact rational numbers where there are any, float64 elsewhere; sympy is imported inside the one function that needs it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from numbers import Integral, Rational
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln
from scipy.stats import binom

from bnlib.checks import checked_width
from bnlib.kernels import one_minus_relu_cosine

# From here on the ratio of two gamma functions is taken from its asymptotic series: the difference of two
# log-gammas loses digits in proportion to their size.
_LARGE = 200.0
# Binomial terms further than this many standard deviations from the middle are below 1e-300.
_REACH = 40.0


@dataclass(frozen=True)
class HypothesisCheck:
    """Whether R > n/(n-1), the hypothesis of Theorem 14, can hold where the lengths are those of Definition 12.

    Attributes:
        n: batch size.
        squared_distance: R^2 = 1 + 1/(n-1)^2, the squared distance from the odd sample to the cluster; exact.
        squared_threshold: (n/(n-1))^2; exact.
        squared_reach: the largest R^2 that the two lengths allow at any angle, by the triangle inequality; exact.
        met: whether squared_distance > squared_threshold.
        met_at_some_angle: whether squared_reach > squared_threshold, that is without the orthogonality.
    """

    n: int
    squared_distance: Fraction
    squared_threshold: Fraction
    squared_reach: Fraction
    met: bool
    met_at_some_angle: bool


@dataclass(frozen=True)
class SymbolicMoments:
    """Second moments after one layer, as sympy expressions in n, alpha, R, and the identities that they imply.

    Attributes:
        outlier: E|x_1'|^2 for weights of variance 2 alpha / d, any collapsed cluster at distance R.
        cluster: E|nu'|^2.
        inner: x_1'.nu', which is zero before any expectation is taken.
        alpha_13: Theorem 13's alpha, from E|x_1'|^2 = 1 at Definition 12's distance.
        alpha_14: Theorem 14's alpha, from E|x_1'|^2 = 1 at distance R.
        review_number: what alpha_14 gives if |x_1 - mean| is Definition 12's while R in alpha_14 stays free.
        identities: name of an identity to whether sympy reduces it to zero.
    """

    outlier: Any
    cluster: Any
    inner: Any
    alpha_13: Any
    alpha_14: Any
    review_number: Any
    identities: dict[str, bool]


@dataclass(frozen=True)
class ExactMoments:
    """Moments of the norms after one layer from Definition 12, with Theorem 13's weight variance.

    Attributes:
        second_outlier: E|x_1'|^2; exact.
        second_cluster: E|nu'|^2; exact.
        first_outlier: E|x_1'|, at the given width.
        first_cluster: E|nu'|, at the given width.
    """

    second_outlier: Fraction
    second_cluster: Fraction
    first_outlier: float
    first_cluster: float


def _checked_batch_size(n: int, smallest: int = 2) -> int:
    if isinstance(n, bool) or not isinstance(n, Integral) or n < smallest:
        raise ValueError(f"n must be a whole batch size of at least {smallest}, got {n}.")
    return int(n)


def invariant_representation(
    n: int, dimension: int = 2, cluster_angle: float = 0.0
) -> Float[np.ndarray, "n dimension"]:
    """The representation of Definition 12 (arXiv 2412.02843), or the same with its cluster opened by an angle.

    x_1 = e_1; the mean of the others is nu = e_2 / (n-1). With a cluster angle above 0 the others stand around nu at
    the corners of a simplex orthogonal to x_1 and nu, all pairs at that angle.

    Args:
        n: batch size, at least 2 (3 with a cluster angle).
        dimension: number of columns, at least 2 (n with a cluster angle).
        cluster_angle: angle between every two samples of the cluster in radians, in [0, pi/2]; 0 is Definition 12.

    Returns:
        The batch, shape (n, dimension), samples in rows, the odd sample first.

    Raises:
        ValueError: n or dimension is too small, or cluster_angle is outside [0, pi/2].

    Example:
        >>> invariant_representation(3).tolist()
        [[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]]
    """
    if not 0.0 <= cluster_angle <= math.pi / 2:
        raise ValueError(f"cluster_angle must be between 0 and pi/2 radians, got {cluster_angle}.")
    n = _checked_batch_size(n, 3 if cluster_angle > 0 else 2)
    needed = n if cluster_angle > 0 else 2
    if isinstance(dimension, bool) or not isinstance(dimension, Integral) or dimension < needed:
        raise ValueError(f"dimension must be a whole number of at least {needed}, got {dimension}.")
    m = n - 1
    x = np.zeros((n, dimension))
    x[0, 0] = 1.0
    x[1:, 1] = 1.0 / m
    if cluster_angle > 0:
        # 1 - cos = eps^2 (m/(m-1)) / (|nu|^2 + eps^2) for offsets of length eps with inner products -eps^2/(m-1)
        y = 2.0 * math.sin(cluster_angle / 2.0) ** 2
        offset = math.sqrt(y / (m / (m - 1.0) - y)) / m
        x[1:, 2 : m + 1] = offset * _simplex(m)
    return x


def _simplex(m: int) -> np.ndarray:
    """Return m unit vectors in m-1 dimensions that sum to zero, all pairs at the same angle."""
    corners = np.zeros((m, m - 1))
    for k in range(m - 1):  # column k separates corner k from the later ones
        later = m - 1 - k
        corners[k, k] = math.sqrt(later / (later + 1.0))
        corners[k + 1 :, k] = -1.0 / math.sqrt(later * (later + 1.0))
    return corners * math.sqrt(m / (m - 1.0))


def alpha_invariance(n: int) -> Fraction:
    """Theorem 13's alpha, n^2 / (n^2 - 2n + 2): with weight variance 2 alpha / d, E|x_1'|^2 = 1 (arXiv 2412.02843).

    Args:
        n: batch size, at least 2.

    Returns:
        alpha, exact; above 1 for every n.

    Raises:
        ValueError: n < 2.

    Example:
        >>> alpha_invariance(8)
        Fraction(32, 25)
    """
    n = _checked_batch_size(n)
    return Fraction(n * n, n * n - 2 * n + 2)


def alpha_stability(n: int, squared_distance: Rational | float) -> Fraction:
    """Theorem 14's alpha, n^2 / ((n-1)^2 R^2): odd sample is at distance R from the mean of the others.

    Below 1 if and only if R > n/(n-1). At Definition 12's own distance it is Theorem 13's alpha.

    Args:
        n: batch size, at least 2.
        squared_distance: R^2, positive; a float is taken at its exact binary value.

    Returns:
        alpha, exact.

    Raises:
        ValueError: n < 2, or squared_distance is not positive and finite.

    Example:
        >>> alpha_stability(8, 1 + Fraction(1, 49)) == alpha_invariance(8)
        True
    """
    n = _checked_batch_size(n)
    if not 0 < squared_distance < math.inf:
        raise ValueError(f"squared_distance must be positive and finite, got {squared_distance}.")
    return Fraction(n * n, (n - 1) ** 2) / Fraction(squared_distance)


def check_hypothesis(n: int) -> HypothesisCheck:
    """Compare Definition 12's distance with Theorem 14's threshold in exact rational numbers.

    (n/(n-1))^2 - R^2 = (1 + 1/(n-1))^2 - 1 - 1/(n-1)^2 = 2/(n-1) > 0 for every n: the hypothesis R > n/(n-1) fails.
    Without orthogonality R <= |x_1| + |nu| = n/(n-1), so that it fails at any angle.

    Args:
        n: batch size, at least 2.

    Returns:
        The exact numbers and the two comparisons.

    Raises:
        ValueError: n < 2.

    Example:
        >>> check = check_hypothesis(8)
        >>> check.squared_threshold - check.squared_distance, check.met, check.met_at_some_angle
        (Fraction(2, 7), False, False)
    """
    n = _checked_batch_size(n)
    outlier, cluster = Fraction(1), Fraction(1, n - 1)
    squared_distance = outlier**2 + cluster**2
    squared_threshold = Fraction(n, n - 1) ** 2
    squared_reach = (outlier + cluster) ** 2
    return HypothesisCheck(
        n=n,
        squared_distance=squared_distance,
        squared_threshold=squared_threshold,
        squared_reach=squared_reach,
        met=squared_distance > squared_threshold,
        met_at_some_angle=squared_reach > squared_threshold,
    )


@cache
def symbolic_moments() -> SymbolicMoments:
    """Second moments of one recentered ReLU layer over a collapsed cluster, derived by sympy from a Gaussian integral.

    With z the pre-activation of e = x_1 - nu under one neuron, of variance 2 alpha R^2 / d, the two rows are
    ((n-1)/n) ReLU(z) and (1/n) ReLU(-z). Their squares are integrated against the Gaussian density and summed over d
    neurons; their product is zero for every z.

    Returns:
        The expressions and the identities between them; the width has dropped out.

    Example:
        >>> moments = symbolic_moments()
        >>> moments.outlier, all(moments.identities.values())
        (R**2*alpha*(n - 1)**2/n**2, True)
    """
    import sympy

    n, alpha, distance, width = sympy.symbols("n alpha R d", positive=True)
    z = sympy.symbols("z", real=True)
    density = sympy.exp(-(z**2) / 2) / sympy.sqrt(2 * sympy.pi)
    half = sympy.integrate(z**2 * density, (z, 0, sympy.oo))  # E[ReLU(z)^2], also E[ReLU(-z)^2]
    first = sympy.integrate(z * density, (z, 0, sympy.oo))  # E[ReLU(z)]
    variance = 2 * alpha * distance**2 / width
    outlier = sympy.factor(width * ((n - 1) / n) ** 2 * variance * half)
    cluster = sympy.factor(width * (1 / n) ** 2 * variance * half)
    # ReLU(z) ReLU(-z) on either half-line
    p = sympy.symbols("p", nonnegative=True)
    inner = sympy.Max(p, 0) * sympy.Max(-p, 0)

    definition = {distance: sympy.sqrt(1 + 1 / (n - 1) ** 2)}
    alpha_13 = sympy.factor(sympy.solve(sympy.Eq(outlier.subs(definition), 1), alpha)[0])
    alpha_14 = sympy.factor(sympy.solve(sympy.Eq(outlier, 1), alpha)[0])
    centered = ((n - 1) / n) ** 2 * (1 + 1 / (n - 1) ** 2)  # |x_1 - mean|^2 of Definition 12
    review = sympy.factor(alpha_14 * centered)
    mean_length = width * variance * (((n - 1) / n) * first) ** 2  # |E x_1'|^2: all entries are equal
    zeros = {
        "theorem 13: outlier": outlier.subs(alpha, alpha_13).subs(definition) - 1,
        "theorem 13: cluster": cluster.subs(alpha, alpha_13).subs(definition) - 1 / (n - 1) ** 2,
        "theorem 13: alpha": alpha_13 - n**2 / (n**2 - 2 * n + 2),
        "theorem 14: outlier, every R": outlier.subs(alpha, alpha_14) - 1,
        "theorem 14: cluster, every R": cluster.subs(alpha, alpha_14) - 1 / (n - 1) ** 2,
        "theorem 14: squared distance after the layer is definition 12's, every R": (outlier + cluster).subs(
            alpha, alpha_14
        )
        - 1
        - 1 / (n - 1) ** 2,
        "theorem 14: squared threshold exceeds squared distance by 2/(n-1)": (n / (n - 1)) ** 2
        - (1 + 1 / (n - 1) ** 2)
        - 2 / (n - 1),
        "theorem 14: threshold is the sum of the lengths": n / (n - 1) - (1 + 1 / (n - 1)),
        "theorem 14: alpha": alpha_14 - n**2 / ((n - 1) ** 2 * distance**2),
        "both alphas at definition 12": alpha_14.subs(definition) - alpha_13,
        "orthogonality": inner,
        "review: number": review - (n**2 - 2 * n + 2) / ((n - 1) ** 2 * distance**2),
        "review: number is 1 at definition 12": review.subs(definition) - 1,
        "squared norm of the mean representation is 1/pi": mean_length.subs(alpha, alpha_13).subs(definition)
        - 1 / sympy.pi,
    }
    identities = {name: sympy.simplify(value) == 0 for name, value in zeros.items()}
    return SymbolicMoments(outlier, cluster, inner, alpha_13, alpha_14, review, identities)


def first_moment_factor(width: int) -> float:
    """E|ReLU(z)| / sqrt(E|ReLU(z)|^2) for a standard Gaussian vector z of `width` entries.

    The number m of active neurons is binomial (width, 1/2), and given m the norm is a chi variable with m degrees of
    freedom: sqrt(2/d) sum_m C(d, m) 2^-d sqrt(2) Gamma((m+1)/2) / Gamma(m/2) = 1 - 5/(8 d) + O(1/d^2). This factor
    separates the first moments of Theorem 14 from the square roots of the second moments; it is the same for the odd
    sample and for the cluster, and does not depend on n.

    Args:
        width: number of neurons, at least 1.

    Returns:
        The factor, in (0, 1).

    Raises:
        ValueError: width < 1.

    Example:
        >>> round(first_moment_factor(1) * math.sqrt(math.pi), 12)  # one neuron: E ReLU(z) = 1/sqrt(2 pi)
        1.0
        >>> round((1 - first_moment_factor(10**6)) * 10**6, 4)
        0.625
    """
    width = checked_width(width, 1)
    reach = math.ceil(_REACH * math.sqrt(width))
    active = np.arange(max(1, width // 2 - reach), min(width, width // 2 + reach + 1) + 1)
    return float(math.sqrt(2.0 / width) * (binom.pmf(active, width, 0.5) * _chi_mean(active)).sum())


def _chi_mean(degrees: np.ndarray) -> np.ndarray:
    """Mean of a chi variable, sqrt(2) Gamma(x + 1/2) / Gamma(x) with x half the degrees of freedom, degrees >= 1."""
    x = degrees / 2.0
    small = np.minimum(x, _LARGE)
    ratio = np.exp(gammaln(small + 0.5) - gammaln(small))
    v = 1.0 / np.maximum(x, _LARGE)
    series = 1.0 + v * (-1 / 8 + v * (1 / 128 + v * (5 / 1024 + v * (-21 / 32768))))
    return math.sqrt(2.0) * np.where(x < _LARGE, ratio, np.sqrt(x) * series)


def exact_moments(n: int, width: int) -> ExactMoments:
    """First and second moments of the norms after one layer from Definition 12 with Theorem 13's weight variance.

    Second moments 1 and 1/(n-1)^2 at every width; first moments smaller than 1 and 1/(n-1) by `first_moment_factor`.

    Args:
        n: batch size, at least 2.
        width: number of neurons, at least 1.

    Returns:
        The four moments.

    Raises:
        ValueError: n < 2 or width < 1.

    Example:
        >>> moments = exact_moments(8, 16)
        >>> moments.second_outlier, moments.second_cluster, round(moments.first_outlier, 4)
        (Fraction(1, 1), Fraction(1, 49), 0.9602)
    """
    check = check_hypothesis(n)
    alpha, factor = alpha_invariance(n), first_moment_factor(width)
    second_outlier = alpha * check.squared_distance * Fraction(n - 1, n) ** 2
    second_cluster = alpha * check.squared_distance * Fraction(1, n) ** 2
    return ExactMoments(
        second_outlier=second_outlier,
        second_cluster=second_cluster,
        first_outlier=factor * math.sqrt(second_outlier),
        first_cluster=factor * math.sqrt(second_cluster),
    )


def squared_distance_to_cluster(x: Float[np.ndarray, "n d"]) -> float:
    """R^2 of any batch: squared distance from the first sample to the mean of the others.

    Args:
        x: batch, shape (n, d), the odd sample first.

    Returns:
        R^2, in squared units of x.

    Raises:
        ValueError: x is not a finite matrix of at least two rows.

    Example:
        >>> squared_distance_to_cluster(invariant_representation(3))
        1.25
    """
    x = _checked_batch(x)
    return float(((x[0] - x[1:].mean(axis=0)) ** 2).sum())


def expected_squared_distances(x: Float[np.ndarray, "n d"], alpha: Rational | float) -> Float[np.ndarray, "n n"]:
    """E|x_i' - x_j'|^2 after one recentered ReLU layer with weight variance 2 alpha / d, for every pair of samples.

    alpha [(a - b)^2 + 2ab (1 - J(cos t))] with a, b the norms of the two recentered samples and t their angle. It is
    exact at every width, since the width only averages independent neurons. As J(c) >= c it is at most
    alpha |x_i - x_j|^2, which is Theorem 14's contraction wherever alpha < 1.

    Args:
        x: batch, shape (n, d).
        alpha: half the weight variance times the width, positive.

    Returns:
        Expected squared distances, shape (n, n), zero on the diagonal.

    Raises:
        ValueError: x is not a finite matrix of at least two rows, or alpha is not positive and finite.

    Example:
        >>> expected_squared_distances(invariant_representation(3), alpha_invariance(3)).round(3).tolist()
        [[0.0, 1.25, 1.25], [1.25, 0.0, 0.0], [1.25, 0.0, 0.0]]
    """
    x = _checked_batch(x)
    if not 0 < alpha < math.inf:
        raise ValueError(f"alpha must be positive and finite, got {alpha}.")
    centered = x - x.mean(axis=0)
    norm = np.sqrt((centered**2).sum(axis=1))
    unit = centered / np.where(norm > 0, norm, 1.0)[:, None]
    minus = np.linalg.norm(unit[:, None] - unit[None, :], axis=-1)
    plus = np.linalg.norm(unit[:, None] + unit[None, :], axis=-1)
    angle = 2.0 * np.arctan2(minus, plus)
    product = norm[:, None] * norm[None, :]
    return float(alpha) * ((norm[:, None] - norm[None, :]) ** 2 + 2.0 * product * one_minus_relu_cosine(angle))


def contraction_ratios(x: Float[np.ndarray, "n d"], alpha: Rational | float) -> Float[np.ndarray, " pairs"]:
    """E|x_i' - x_j'|^2 / |x_i - x_j|^2 for every pair of different cluster samples: below 1 is contraction.

    Args:
        x: batch, shape (n, d), n at least 3, the odd sample first.
        alpha: half the weight variance times the width, positive.

    Returns:
        The ratios, at most alpha, one for each pair i < j of rows 1, ..., n-1 that are not equal.

    Raises:
        ValueError: as `expected_squared_distances`.

    Example:
        >>> x = invariant_representation(4, 4, cluster_angle=0.1)
        >>> bool((contraction_ratios(x, 0.9) < 0.9).all())
        True
    """
    after = expected_squared_distances(x, alpha)
    x = np.asarray(x, dtype=np.float64)
    before = ((x[:, None] - x[None, :]) ** 2).sum(axis=-1)
    rows, columns = np.triu_indices(len(x) - 1, 1)
    before, after = before[1:, 1:][rows, columns], after[1:, 1:][rows, columns]
    return after[before > 0] / before[before > 0]


def random_cluster(
    n: int, distance_ratio: float, *, random: np.random.Generator, spread: float = 1.0
) -> Float[np.ndarray, "n n"]:
    """A batch whose odd sample is at distance_ratio * n/(n-1) from the mean of a Gaussian cluster.

    Args:
        n: batch size, at least 3; also the dimension.
        distance_ratio: R over Theorem 14's threshold n/(n-1), positive.
        random: source of randomness.
        spread: root mean squared distance of a cluster sample from the cluster's mean, about; in units of R.

    Returns:
        The batch, shape (n, n), the odd sample first; a common offset puts the origin somewhere near.

    Raises:
        ValueError: n < 3, or distance_ratio or spread is not positive.

    Example:
        >>> x = random_cluster(8, 1.5, random=np.random.default_rng(0))
        >>> round(math.sqrt(squared_distance_to_cluster(x)) / (8 / 7), 12)
        1.5
    """
    n = _checked_batch_size(n, 3)
    for name, value in (("distance_ratio", distance_ratio), ("spread", spread)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite, got {value}.")
    distance = distance_ratio * n / (n - 1)
    direction = random.standard_normal(n)
    x = np.empty((n, n))
    x[1:] = random.standard_normal((n - 1, n)) * (spread * distance / math.sqrt(n))
    x[0] = x[1:].mean(axis=0) + direction * (distance / math.sqrt((direction**2).sum()))
    return x + random.standard_normal(n) * (distance / math.sqrt(n))


def _checked_batch(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2 or x.shape[0] < 2 or x.shape[1] < 1 or not np.isfinite(x).all():
        raise ValueError(f"x must be a finite batch of shape (n, d) with n >= 2, got shape {x.shape}.")
    return x
