r"""The constant γ(X) of Theorem 3 in any dimension: exact where that is possible, else between two proved bounds.

With $f_v(w) = \sum_j v_j\,\mathrm{ReLU}(w \cdot x_j)$ and $w$ standard Gaussian, $\gamma(X) = \min_{v \ne 0} P[f_v
\ne 0]$. The minimum is attained: $f_v$ is linear on each cone of the arrangement of hyperplanes $w \cdot x_j = 0$, so
only finitely many probabilities occur. Everything here rests on three facts, proved in chapter 2 of the book.

* *Parity.* With $m = \sum_j v_j x_j$, $f_v(w) = \frac12 \sum_j v_j\lvert w \cdot x_j\rvert + \frac12 w \cdot m$. If
  $m \ne 0$ the probability is at least 1/2. A single sample attains 1/2, so $\gamma \le 1/2$.
* *Runs.* If $m = 0$ and $f_v$ vanishes on two cones, the hyperplanes between them on which $f_v$ has a kink are those
  of linearly dependent samples. So there are at least `spark` of them: the size of the smallest dependent set.
* *Sides.* On a cone where $f_v$ vanishes, the samples of $v$ that are active there are dependent, or none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import erf

from bnlib.collinear import (
    attainable_rank,
    checked_batch,
    clearly_on_different_lines,
    exact_rank,
    lines_through_origin,
    pairwise_angles,
)
from bnlib.planar_gamma import gamma_planar

# Nodes of the quadrature over the distance from a hyperplane, in standard deviations: geometric where near-collinear
# samples put the mass, fine in the bulk.
_NODES = np.concatenate([[0.0], np.geomspace(1e-17, 0.02, 200), np.linspace(0.02, 8.5, 400)[1:], [np.inf]])
_CLIQUE_BUDGET = 20_000


@dataclass(frozen=True)
class GammaBounds:
    """γ(X) between two proved bounds.

    Attributes:
        lower: γ is at least this, from 0 to 1/2.
        upper: γ is at most this, from 0 to 1/2.
        reason: what gives the lower bound: "out of reach" (full rank is, γ = 0), "independent lines" (γ = 1/2), "plane"
            (exact), "counting hyperplanes" or "acute sets".
    """

    lower: float
    upper: float
    reason: str

    @property
    def exact(self) -> bool:
        """Whether γ is known exactly, up to rounding."""
        return self.lower == self.upper


def gamma_bounds(x: Float[np.ndarray, "n d"], *, spark_at_least: int = 3) -> GammaBounds:
    r"""Return γ(X), exactly where that is possible, otherwise between a lower and an upper bound.

    Exact are: 0 if full rank is out of reach; 1/2 if the distinct lines through the origin that carry the samples are
    linearly independent (linearly independent samples in particular); any batch in the plane; and 1/2 wherever the
    lower bound gets there. The bounds are `gamma_lower_counting`, `gamma_lower_acute` and `gamma_upper`. Our
    derivation; Theorem 3 of arXiv 2412.02843 uses γ(X), the sources do not define it.

    Args:
        x: a batch, rows are samples, no unit.
        spark_at_least: a number that is known to be at most the spark, the size of the smallest linearly dependent set
            of lines of samples. 3 always holds. For Gaussian samples d + 1 holds almost surely (general position).

    Returns:
        The `GammaBounds`.

    Raises:
        ValueError: if x is not a batch of finite numbers or spark_at_least is below 3 or above d + 1 (and not 3).

    Example:
        >>> gamma_bounds(np.eye(4))
        GammaBounds(lower=0.5, upper=0.5, reason='independent lines')
    """
    x = checked_batch(x)
    _check_spark(spark_at_least, x.shape[1])
    if attainable_rank(x) < len(x):
        return GammaBounds(0.0, 0.0, "out of reach")
    representatives = _line_representatives(x)
    if exact_rank(representatives) == len(representatives):
        return GammaBounds(0.5, 0.5, "independent lines")
    if x.shape[1] == 2:
        exact = gamma_planar(x).gamma
        return GammaBounds(exact, exact, "plane")
    lower, reason = gamma_lower_acute(x, spark_at_least=spark_at_least), "acute sets"
    if lower < 0.5:
        counted = gamma_lower_counting(x, spark_at_least=spark_at_least), "counting hyperplanes"
        lower, reason = max((lower, reason), counted)
    return GammaBounds(lower, max(lower, gamma_upper(x)), reason)


def gamma_lower_counting(x: Float[np.ndarray, "n d"], *, spark_at_least: int = 3) -> float:
    r"""Return a lower bound of γ(X) that counts the hyperplanes near a point of one of them.

    Take $j$ with a kink of $f_v$, and walk along $w = t x_j/\lvert x_j\rvert + w_\perp$. Other hyperplanes are crossed
    at $t_k = -\tan\theta_{jk}\,z_k$, $z_k$ standard normal. If fewer than $\text{spark} - 1$ of them lie in $(-s, s)$,
    the run of kinks around $t = 0$ leaves that interval, so $f_v$ is not silent on a share of at least
    $\Phi(s) - \frac12$ of the walk. With Markov's inequality for their number,
    $$\gamma \ge \min_j \int_0^\infty \varphi(s) \max\Bigl(0, 1 - \frac{\sum_{k \ne j} \operatorname{erf}
    (s\lvert\cot\theta_{jk}\rvert/\sqrt2)}{\text{spark} - 1}\Bigr) ds.$$
    The maximum is convex in $s$, so Jensen's inequality on each cell of a grid makes the quadrature a lower bound too.
    Our derivation.

    Args:
        x: a batch, rows are samples, no unit.
        spark_at_least: a lower bound of the spark, see `gamma_bounds`.

    Returns:
        The bound, from 0 to 1/2; 0 if full rank is out of reach.

    Raises:
        ValueError: as `gamma_bounds`.

    Example:
        >>> gamma_lower_counting(np.eye(3)) > 0.499999
        True
    """
    x = checked_batch(x)
    _check_spark(spark_at_least, x.shape[1])
    if attainable_rank(x) < len(x):
        return 0.0
    mass, means = _cells()
    bound = 0.5
    angles = pairwise_angles(_line_representatives(x))
    for j, row in enumerate(angles):
        folded = np.delete(np.minimum(row, math.pi - row), j)
        # An angle is known to about 4 eps; the smaller one gives the smaller bound.
        folded = np.maximum(folded - 8 * np.finfo(float).eps, 0.0)
        with np.errstate(divide="ignore"):
            slopes = 1 / np.tan(folded) / math.sqrt(2)
        crossed = erf(np.outer(means, slopes)).sum(axis=1)
        share = np.maximum(0.0, 1 - crossed / (spark_at_least - 1))
        # The relative margin is far above what rounding can do to a sum of non-negative terms.
        bound = min(bound, float(mass @ share) * (1 - 1e-9))
    return bound


def gamma_lower_acute(x: Float[np.ndarray, "n d"], *, spark_at_least: int = 3) -> float:
    r"""Return a lower bound of γ(X) for batches of at most 2·spark − 1 samples without antipodal pairs.

    On a cone where $f_v$ vanishes and $m = 0$, both the active and the silent samples of $v$ are dependent or none;
    with at most $2 \cdot \text{spark} - 1$ samples one side is empty. So $f_v$ vanishes only where all samples of $v$
    are on one side, and two of them at the angle $\theta$ are so with probability $1 - \theta/\pi$. A set of `spark` or
    more samples has two at least $t$ apart, where $t$ is the smallest angle such that `spark` samples are pairwise
    within $t$; hence $\gamma \ge \min(\frac12, t/\pi)$. If no `spark` samples are pairwise acute, γ is exactly 1/2. Our
    derivation.

    Args:
        x: a batch, rows are samples, no unit.
        spark_at_least: a lower bound of the spark, see `gamma_bounds`.

    Returns:
        The bound, from 0 to 1/2; 0 where its hypotheses fail.

    Raises:
        ValueError: as `gamma_bounds`.

    Example:
        >>> gamma_lower_acute(np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]]), spark_at_least=4)
        0.5
    """
    x = checked_batch(x)
    _check_spark(spark_at_least, x.shape[1])
    if len(x) > 2 * spark_at_least - 1 or len(_line_representatives(x)) < len(x) or not x.any(axis=1).all():
        return 0.0
    angles = pairwise_angles(x)
    candidates = np.unique(angles[np.triu_indices(len(x), 1)])
    candidates = candidates[candidates < math.pi / 2]

    def crowded(threshold: float) -> bool:
        return _may_have_clique(angles <= threshold, spark_at_least)

    first = _first_true(crowded, candidates)
    return 0.5 if first is None else max(0.0, first / math.pi - 1e-14)


def gamma_upper(x: Float[np.ndarray, "n d"]) -> float:
    r"""Return an upper bound of γ(X) from the tightest dependent sets found.

    Any $r + 1$ samples of a batch of rank $r$ are dependent: $\sum_j v_j x_j = 0$. Where all of them are on one side of
    $w$, $f_v = 0$. They are not with probability at most $\sum \theta/\pi$ over the edges of any tree that joins them.
    The trees are grown from each sample, nearest sample first (Prim). Our derivation.

    Args:
        x: a batch, rows are samples, no unit.

    Returns:
        The bound, at most 1/2; 0 if full rank is out of reach.

    Raises:
        ValueError: if x is not a batch of finite numbers.

    Example:
        >>> gamma_upper(np.array([[1.0, 0.0], [1.0, 0.01], [1.0, 0.02]])) < 0.0064
        True
    """
    x = checked_batch(x)
    if attainable_rank(x) < len(x):
        return 0.0
    rank = exact_rank(x)
    if len(x) <= rank:
        return 0.5
    angles = pairwise_angles(x)
    length = min(_tree_length(angles, start, rank + 1) for start in range(len(x)))
    return min(0.5, length / math.pi + 1e-14)


def _check_spark(spark_at_least: int, d: int) -> None:
    if not 3 <= spark_at_least <= max(3, d + 1):
        raise ValueError(
            f"spark_at_least must be from 3 to d + 1 = {max(3, d + 1)}, got {spark_at_least}: more samples than d are "
            "always dependent, and two different lines never are."
        )


def _line_representatives(x: np.ndarray) -> np.ndarray:
    """One sample of each line through the origin, shape (lines, d)."""
    if clearly_on_different_lines(x):
        return x
    return x[[min(line.length) for line in lines_through_origin(x)]]


def _cells() -> tuple[np.ndarray, np.ndarray]:
    """Mass and mean of a standard normal variable on each cell of the grid."""
    low, high = _NODES[:-1], _NODES[1:]
    mass = (erf(high / math.sqrt(2)) - erf(low / math.sqrt(2))) / 2
    # phi(low) - phi(high) without cancellation.
    with np.errstate(invalid="ignore"):
        first = -np.exp(-(low**2) / 2) * np.expm1(-(high - low) * (high + low) / 2) / math.sqrt(2 * math.pi)
    kept = mass > 0
    # The last cell reaches to infinity; its mass is below 1e-16 and counts for nothing.
    kept[-1] = False
    return mass[kept], first[kept] / mass[kept]


def _first_true(predicate: Callable[[float], bool], candidates: np.ndarray) -> float | None:
    """The smallest candidate for which a monotone predicate holds, by bisection."""
    if len(candidates) == 0 or not predicate(candidates[-1]):
        return None
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if predicate(candidates[middle]):
            high = middle
        else:
            low = middle + 1
    return float(candidates[high])


def _may_have_clique(near: np.ndarray, size: int) -> bool:
    """Whether a graph has a clique of this size; True as well when the search would take too long."""
    neighbors = [sum(1 << int(k) for k in np.flatnonzero(row) if k != j) for j, row in enumerate(near)]
    budget = _CLIQUE_BUDGET

    def search(candidates: int, missing: int) -> bool:
        nonlocal budget
        budget -= 1
        if missing == 0 or budget < 0:
            return True
        while candidates.bit_count() >= missing:
            vertex = candidates.bit_length() - 1
            candidates ^= 1 << vertex
            if (candidates & neighbors[vertex]).bit_count() >= missing - 1 and search(
                candidates & neighbors[vertex], missing - 1
            ):
                return True
        return False

    return search((1 << len(near)) - 1, size)


def _tree_length(angles: np.ndarray, start: int, size: int) -> float:
    """Total angle of the tree that Prim's rule grows from one sample to `size` samples."""
    distance = angles[start].copy()
    inside = np.zeros(len(angles), dtype=bool)
    inside[start] = True
    total = 0.0
    for _ in range(size - 1):
        nearest = int(np.argmin(np.where(inside, np.inf, distance)))
        total += float(distance[nearest])
        inside[nearest] = True
        distance = np.minimum(distance, angles[nearest])
    return total
