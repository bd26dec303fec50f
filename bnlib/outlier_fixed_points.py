"""Fixed points of the infinite-width map of recentering and ReLU with one distinguished sample, and their bifurcation.

On the line of states u of `bnlib.outlier_class` there are the collapsed cluster u = 0, the symmetric state
u = (n-1)/n, and for batch sizes above `saddle_node` two more between them: the outlier state and the separatrix. n may
be any real number of at least 3. NumPy float64; angles are radians.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq, minimize_scalar

from bnlib.checks import Values
from bnlib.fixed_points import NotConvergedError
from bnlib.kernels import _sine_minus_chord
from bnlib.outlier_class import _geometry, _jacobian, _Layer, _layer, checked_n

_GRID = 200  # points of the scan between the collapsed cluster and the symmetric state, even in log u
_TOLERANCE = 1e-11  # largest |u'/u - 1| that counts as a fixed point


class NoStateError(NotConvergedError):
    """The batch size has no fixed point of the kind asked for; the message holds the smallest residual."""


@dataclass(frozen=True)
class OutlierClassState:
    """A fixed point with one distinguished sample and n - 1 equivalent ones, up to scale.

    Attributes:
        kind: "outlier", "separatrix", "symmetric" or "collapsed".
        n: batch size.
        u: (x_i.x_i - x_i.x_j) / |x_1 - nu|^2, i and j in the cluster, nu its mean.
        norm_ratio: norm of the distinguished sample over that of one of the others.
        norm_ratio_mean: norm of the distinguished sample over that of the mean of the others.
        outlier_angle: angle between the distinguished sample and one of the others, radians.
        outlier_gap: pi/2 minus that angle, computed without cancellation, radians.
        outlier_mean_angle: angle between the distinguished sample and the mean of the others, radians.
        cluster_angle: angle between two of the others, radians.
        scale_growth: factor of the squared norms a layer, for He weights.
        multiplier: du'/du, the multiplier inside the class with the scale removed.
        residual: |u'/u - 1|, computed anew at the value returned (0 for the collapsed cluster).
        iterations: iterations of the solver (0 where the state is known in closed form).
    """

    kind: str
    n: float
    u: float
    norm_ratio: float
    norm_ratio_mean: float
    outlier_angle: float
    outlier_gap: float
    outlier_mean_angle: float
    cluster_angle: float
    scale_growth: float
    multiplier: float
    residual: float
    iterations: int


@dataclass(frozen=True)
class SaddleNode:
    """The batch size at which outlier state and separatrix are born together.

    Attributes:
        n: the batch size, a real number.
        u: the state there.
        norm_ratio: norm of the distinguished sample over that of one of the others.
        residual: the larger of |u'/u - 1| and |du'/du - 1| there.
        iterations: iterations of the solver.
    """

    n: float
    u: float
    norm_ratio: float
    residual: float
    iterations: int


def _one_layer(u: Values, n: float) -> _Layer:
    u = np.asarray(u, dtype=np.float64)
    return _layer(_geometry(u, u, n, 1.0), 1.0)


def log_drift(u: Values, n: float | int) -> float | Float[np.ndarray, "*shape"]:
    """log(u'/u): above 0 the state moves away from the collapsed cluster, below 0 towards it.

    Args:
        u: states, any shape, positive.
        n: batch size, at least 3; any real number.

    Returns:
        The logarithm, same shape. Its roots are the fixed points other than u = 0.

    Raises:
        ValueError: n < 3, or u not positive and finite.

    Example:
        >>> log_drift(0.1, 6) > 0 > log_drift(0.1, 8)  # six samples have no outlier state, eight have
        True
    """
    n = checked_n(n)
    u = np.asarray(u, dtype=np.float64)
    if not ((u > 0) & np.isfinite(u)).all():
        raise ValueError("u must be positive and finite.")
    drift = np.log(_one_layer(u, n).u / u)
    return float(drift) if u.ndim == 0 else drift


def _state(kind: str, u: float, n: float, iterations: int) -> OutlierClassState:
    m = n - 1.0
    g = _geometry(np.asarray(u), np.asarray(u), n, 1.0)
    after = _layer(g, 1.0)
    residual = abs(float(after.u) / u - 1.0) if u > 0 else 0.0
    if not residual <= _TOLERANCE:
        raise NotConvergedError(
            f"The {kind} state of n = {n:g} is not reached: |u'/u - 1| is {residual:.3g} after {iterations} iterations."
        )
    mean_square = g.cluster_square - (m - 1.0) / m * (float(after.u) * float(after.growth))  # of the mean after ReLU
    odd_cosine = _sine_minus_chord(np.asarray(g.supplement)) / math.pi
    chord = math.sqrt(max(0.0, float(after.u * after.growth / g.cluster_square)) / 2.0)
    return OutlierClassState(
        kind=kind,
        n=n,
        u=u,
        norm_ratio=math.sqrt(g.outlier_square / g.cluster_square),
        norm_ratio_mean=math.sqrt(g.outlier_square / mean_square),
        outlier_angle=math.acos(odd_cosine),
        outlier_gap=math.asin(odd_cosine),
        outlier_mean_angle=math.acos(odd_cosine * math.sqrt(g.cluster_square / mean_square)),
        cluster_angle=2.0 * math.asin(chord),
        scale_growth=float(after.growth),
        multiplier=float(_jacobian(np.asarray(u), np.asarray(u), n, 1.0)[1, 1]),
        residual=residual,
        iterations=iterations,
    )


def collapsed_state(n: float | int) -> OutlierClassState:
    """Definition 12's state, all samples but one equal: u = 0, a fixed point for every n, and unstable.

    Args:
        n: batch size, at least 3; any real number.

    Returns:
        The state; its multiplier is n^2/(n^2 - 2n + 2).

    Raises:
        ValueError: n < 3 or not finite.

    Example:
        >>> round(collapsed_state(8).multiplier, 6)
        1.28
    """
    return _state("collapsed", 0.0, checked_n(n), 0)


def symmetric_state(n: float | int) -> OutlierClassState:
    """All samples equivalent: u = (n-1)/n, every cosine J(-1/(n-1)), a fixed point for every n.

    Args:
        n: batch size, at least 3; any real number.

    Returns:
        The state.

    Raises:
        ValueError: n < 3 or not finite.

    Example:
        >>> round(symmetric_state(8).multiplier, 3), round(symmetric_state(64).multiplier, 4)
        (0.956, 0.9957)
    """
    n = checked_n(n)
    return _state("symmetric", (n - 1.0) / n, n, 0)


def _pull(x: Values, n: float) -> float | np.ndarray:
    """log(u'/u) over the distance to the symmetric state in log u: its roots are those of the map but the symmetric."""
    return log_drift(np.exp(x), n) / (math.log((n - 1.0) / n) - x)


@lru_cache(maxsize=64)
def _valley(n: float) -> tuple[float, float]:
    """The place log u and the value of the least `_pull` between the collapsed cluster and the symmetric state."""
    # The outlier state of large batches is at u = 9 pi^2/(2 n^4); the separatrix keeps a distance of order 1/n.
    x = np.linspace(math.log(1.0 / n**4), math.log((n - 1.0) / n * (1.0 - 0.1 / n)), _GRID)
    low = int(np.argmin(_pull(x, n)[1:-1])) + 1
    found = minimize_scalar(
        lambda y: _pull(y, n), bounds=(x[low - 1], x[low + 1]), method="bounded", options={"xatol": 1e-9}
    )
    return float(found.x), float(found.fun)


LARGEST_WITH_SEPARATRIX = 1_000_000


def _between(kind: str, n: float | int) -> OutlierClassState:
    n = checked_n(n)
    if kind == "separatrix" and n > LARGEST_WITH_SEPARATRIX:
        raise ValueError(
            f"n must be at most {LARGEST_WITH_SEPARATRIX:,}, beyond which float64 does not tell the separatrix from "
            f"the symmetric state, got {n:g}."
        )
    bottom, least = _valley(n)
    if least >= 0:
        half = np.linspace(-4.0 * math.log(n), math.log((n - 1.0) / (2.0 * n)), _GRID)
        residual = float(np.expm1(log_drift(np.exp(half), n)).min())
        raise NoStateError(
            f"The batch size n = {n:g} has no {kind} state: the residual u'/u - 1 is at least {residual:.3g} "
            "from the collapsed cluster half the way to the symmetric state."
        )
    if kind == "outlier":
        ends = -math.log(n) * 4.0, bottom
    else:
        ends = bottom, math.log((n - 1.0) / n * (1.0 - 0.1 / n))
    value, info = brentq(
        lambda x: log_drift(math.exp(x), n), *ends, xtol=1e-15, rtol=1e-15, full_output=True, disp=False
    )
    return _state(kind, math.exp(value), n, int(info.iterations))


def outlier_state(n: float | int) -> OutlierClassState:
    """The outlier state: one sample far out, the others in a narrow cluster, stable.

    Args:
        n: batch size, at least 3; any real number.

    Returns:
        The root of u' = u nearest to the collapsed cluster u = 0.

    Raises:
        ValueError: n < 3 or not finite.
        NoStateError: there is none (n below `saddle_node().n`); the message holds the smallest residual.
        NotConvergedError: |u'/u - 1| stays above 1e-11.

    Example:
        >>> state = outlier_state(16)
        >>> round(state.norm_ratio, 3), round(math.degrees(state.cluster_angle), 2), state.residual < 1e-12
        (13.896, 30.0, True)
    """
    return _between("outlier", n)


def find_outlier_state(n: float | int) -> OutlierClassState | None:
    """The outlier state, or None where there is none: `outlier_state` for surveys that meet small batches too.

    Args:
        n: batch size, at least 3; any real number.

    Returns:
        As `outlier_state`, or None (n below `saddle_node().n`, so n of 6 and below).

    Raises:
        ValueError: n < 3 or not finite.
        NotConvergedError: |u'/u - 1| stays above 1e-11.

    Example:
        >>> find_outlier_state(6) is None, round(find_outlier_state(8).norm_ratio, 3)
        (True, 5.105)
    """
    try:
        return outlier_state(n)
    except NoStateError:
        return None


def separatrix(n: float | int) -> OutlierClassState:
    """The unstable state between the outlier state and the symmetric one.

    Batches of the class whose u is below this one's go to the outlier state, the others to the symmetric state.

    Args:
        n: batch size, at least 3; any real number.

    Returns:
        The root of u' = u between the outlier state and the symmetric state.

    Raises:
        ValueError: n < 3, not finite, or above 1,000,000.
        NoStateError: there is none (n below `saddle_node().n`); the message holds the smallest residual.
        NotConvergedError: |u'/u - 1| stays above 1e-11.

    Example:
        >>> round(separatrix(8).norm_ratio, 4), separatrix(8).multiplier > 1
        (1.3221, True)
    """
    return _between("separatrix", n)


def fixed_points(n: float | int) -> list[OutlierClassState]:
    """All known fixed points of the class, from the collapsed cluster to the symmetric state: two or four.

    Args:
        n: batch size, at least 3; any real number.

    Returns:
        States in ascending order of u.

    Raises:
        ValueError: n < 3 or not finite.
        NotConvergedError: |u'/u - 1| stays above 1e-11.

    Example:
        >>> [state.kind for state in fixed_points(6)], len(fixed_points(7))
        (['collapsed', 'symmetric'], 4)
    """
    try:
        between = [outlier_state(n), separatrix(n)]
    except NoStateError:
        between = []
    return [collapsed_state(n), *between, symmetric_state(n)]


def saddle_node() -> SaddleNode:
    """The saddle-node: u'(u, n) = u and du'/du = 1, by Newton's method on both equations.

    Returns:
        The real batch size at which the outlier state and the separatrix are born, and the state there.

    Raises:
        NotConvergedError: the residual stays above 1e-12.

    Example:
        >>> found = saddle_node()
        >>> round(found.n, 6), found.residual < 1e-12
        (6.107075, True)
    """

    def equations(x: np.ndarray) -> np.ndarray:
        u = np.asarray(math.exp(x[0]))
        return np.array([log_drift(float(u), x[1]), float(_jacobian(u, u, x[1], 1.0)[1, 1]) - 1.0])

    x = np.array([math.log(0.15), 6.1])
    iterations = 0
    step = np.ones(2)
    while np.abs(step).max() > 1e-14 and iterations < 30:
        iterations += 1
        value = equations(x)
        # central differences: the slope of the derivative need not be exact for Newton's method to converge
        columns = [(equations(x + h) - equations(x - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
        step = np.linalg.solve(np.column_stack(columns), value)
        x = x - step
    residual = float(np.abs(equations(x)).max())
    if not residual <= 1e-12:
        raise NotConvergedError(f"The saddle-node is not reached: the residual is {residual:.3g}.")
    u = np.asarray(math.exp(x[0]))
    g = _geometry(u, u, x[1], 1.0)
    ratio = math.sqrt(g.outlier_square / g.cluster_square)
    return SaddleNode(n=float(x[1]), u=float(u), norm_ratio=ratio, residual=residual, iterations=iterations)


def saddle_node_by_touching() -> SaddleNode:
    """The saddle-node once more, without derivatives: the n at which the graph of the map touches the diagonal.

    Returns:
        As `saddle_node`; the residual is |u'/u - 1|.

    Example:
        >>> abs(saddle_node_by_touching().n - saddle_node().n) < 1e-9
        True
    """
    n, info = brentq(lambda n: _valley(n)[1], 6.0, 7.0, xtol=1e-13, rtol=1e-14, full_output=True)
    bottom = _valley(n)[0]
    u = np.asarray(math.exp(bottom))
    g = _geometry(u, u, n, 1.0)
    ratio = math.sqrt(g.outlier_square / g.cluster_square)
    return SaddleNode(
        n=float(n), u=float(u), norm_ratio=ratio, residual=abs(log_drift(float(u), n)), iterations=int(info.iterations)
    )


def saddle_node_by_square_root() -> float:
    """The saddle-node a third time, from far away: the squared distance of the two branches, extrapolated to 0.

    Outlier state and separatrix part like the square root of n - n_0, so that the squared difference of their log u is
    a smooth function of n; a polynomial through it at Chebyshev points of [6.2, 6.7] is continued to its zero.

    Returns:
        The real batch size.

    Example:
        >>> abs(saddle_node_by_square_root() - saddle_node().n) < 1e-6
        True
    """
    nodes = 6.45 + 0.25 * np.cos(math.pi * (np.arange(10) + 0.5) / 10)
    gaps = [math.log(separatrix(n).u / outlier_state(n).u) ** 2 for n in nodes]
    curve = np.polynomial.Chebyshev.fit(nodes, gaps, 9, domain=[6.2, 6.7])
    return float(brentq(curve, 6.05, 6.2))


def bifurcation_branches(values: Iterable[float | int]) -> dict[str, Any]:
    """Norm ratios of the three opened states over real batch sizes, for the bifurcation diagram.

    Args:
        values: batch sizes, each at least 3; any real numbers.

    Returns:
        `n`: the batch sizes as a list; `outlier`, `separatrix`, `symmetric`: norm of the distinguished sample over that
        of one of the others, None where the state does not exist; `saddle_node`: (n, norm ratio).

    Raises:
        ValueError: a batch size below 3, or none at all.

    Example:
        >>> found = bifurcation_branches([6, 8])
        >>> found["outlier"][0] is None, round(found["separatrix"][1], 4), found["symmetric"]
        (True, 1.3221, [1.0, 1.0])
    """
    sizes = [checked_n(n) for n in values]
    if not sizes:
        raise ValueError("values must hold at least one batch size, got none.")
    found: dict[str, Any] = {"n": sizes, "outlier": [], "separatrix": [], "symmetric": [1.0] * len(sizes)}
    for n in sizes:
        states = {state.kind: state.norm_ratio for state in fixed_points(n)}
        found["outlier"].append(states.get("outlier"))
        found["separatrix"].append(states.get("separatrix"))
    fold = saddle_node()
    found["saddle_node"] = (fold.n, fold.norm_ratio)
    return found
