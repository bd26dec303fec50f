"""Fixed points of recentered ReLU layers with several outliers, at infinite width.

k equivalent distinguished samples and n - k equivalent others: the map of (p, u) in `bnlib.outlier_class`. Its fixed
points away from p = 0 and u = 0 are searched by Newton's method in (log p, log u) with the Jacobian in closed form,
from a grid of starts: what is found is certain, that nothing else exists is not. NumPy float64.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.checks import Result, Values
from bnlib.fixed_points import NotConvergedError
from bnlib.outlier_class import _checked_k, _geometry, _jacobian, _layer, checked_n
from bnlib.state_stability import class_stability

_STARTS = 12  # of each of log p and log u
_RANGE = (math.log(1e-6), math.log(50.0))  # of the starts, in units of the symmetric state's p = u = k (n-k)/n
_NEWTON_STEPS = 40


@dataclass(frozen=True)
class ManyOutlierState:
    """A fixed point with k equivalent outliers.

    Attributes:
        n: batch size.
        k: number of outliers.
        p: half the squared distance of two outliers, in units of the squared distance of the two kinds' means.
        u: half the squared distance of two others, in the same unit.
        norm_ratio: norm of an outlier over that of one of the others.
        spectral_radius: largest modulus of a multiplier in all directions, scale removed.
        unstable_directions: number of multipliers above 1, with multiplicity.
        unstable_blocks: for each type of directions with a multiplier above 1, how many there are.
        residual: the larger of |p'/p - 1| and |u'/u - 1|.
        iterations: Newton steps that were allowed.
    """

    n: float
    k: float
    p: float
    u: float
    norm_ratio: float
    spectral_radius: float
    unstable_directions: float
    unstable_blocks: dict[str, float]
    residual: float
    iterations: int


def _drift(x: Values, y: Values, n: float, k: float) -> tuple[Result, Result, np.ndarray]:
    """log(p'/p), log(u'/u) at p = e^x, u = e^y, and their derivatives by x and y."""
    p, u = np.asarray(np.exp(x)), np.asarray(np.exp(y))
    after = _layer(_geometry(p, u, n, k), k)
    jacobian = _jacobian(p, u, n, k)
    jacobian = jacobian * np.stack([p, u], axis=-1)[..., None, :] / np.stack([after.p, after.u], axis=-1)[..., :, None]
    return np.log(after.p) - x, np.log(after.u) - y, jacobian - np.eye(2)


def _newton(n: float, k: float, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    for _ in range(_NEWTON_STEPS):
        f, g, slope = _drift(x, y, n, k)
        determinant = slope[..., 0, 0] * slope[..., 1, 1] - slope[..., 0, 1] * slope[..., 1, 0]
        determinant = np.where(np.abs(determinant) > 1e-300, determinant, 1e-300)
        dx = (slope[..., 1, 1] * f - slope[..., 0, 1] * g) / determinant
        dy = (slope[..., 0, 0] * g - slope[..., 1, 0] * f) / determinant
        shrink = 1.0 / np.maximum(1.0, np.maximum(np.abs(dx), np.abs(dy)))  # at most one e-fold a step
        x = np.clip(x - dx * shrink, -80.0, 80.0)
        y = np.clip(y - dy * shrink, -80.0, 80.0)
    f, g, _ = _drift(x, y, n, k)
    return x, y, np.maximum(np.abs(f), np.abs(g))


def _state(n: float, k: float, x: float, y: float, residual: float) -> ManyOutlierState:
    p, u = math.exp(x), math.exp(y)
    g = _geometry(np.asarray(p), np.asarray(u), n, k)
    stability = class_stability(p, u, n, k)
    unstable = {}
    for block in stability.blocks:
        count = sum(abs(value) > 1 for value in block.multipliers)
        if count:
            unstable[block.name] = count * block.multiplicity
    return ManyOutlierState(
        n=n,
        k=k,
        p=p,
        u=u,
        norm_ratio=math.sqrt(float(g.outlier_square / g.cluster_square)),
        spectral_radius=stability.spectral_radius,
        unstable_directions=stability.unstable_directions,
        unstable_blocks=unstable,
        residual=residual,
        iterations=_NEWTON_STEPS,
    )


def many_outlier_states(n: float | int, k: float | int) -> list[ManyOutlierState]:
    """All fixed points with k outliers that the search finds, but for the symmetric state.

    Args:
        n: batch size, at least 4; any real number.
        k: number of outliers, a real number between 2 and n - 2.

    Returns:
        States by falling norm ratio; those with a norm ratio below 1 are states of n - k outliers. Empty if none.

    Raises:
        ValueError: n or k outside its domain.

    Example:
        >>> [(round(s.norm_ratio, 3), s.unstable_directions) for s in many_outlier_states(12, 2)]
        [(4.045, 1.0), (1.203, 2.0)]
        >>> many_outlier_states(6, 2)
        []
    """
    n = checked_n(n)
    k = _checked_k(k, n)
    if k == 1:
        raise ValueError("k must be at least 2; one outlier has outlier_state and separatrix.")
    symmetric = math.log(k * (n - k) / n)
    x, y = np.meshgrid(*[symmetric + np.linspace(*_RANGE, _STARTS)] * 2)
    x, y, residual = _newton(n, k, x.ravel(), y.ravel())
    good = (residual < 1e-10) & (np.maximum(np.abs(x - symmetric), np.abs(y - symmetric)) > 1e-6)
    good &= (np.minimum(x, y) > -60.0) & (np.maximum(x, y) < 60.0)
    found: list[tuple[float, float, float]] = []
    for a, b, r in sorted(zip(x[good], y[good], residual[good], strict=True), key=lambda entry: entry[2]):
        if all(max(abs(a - c), abs(b - d)) > 1e-5 for c, d, _ in found):
            found.append((float(a), float(b), float(r)))
    states = [_state(n, k, *entry) for entry in found]
    return sorted(states, key=lambda state: -state.norm_ratio)


def many_outlier_saddle_node(k: float | int) -> float:
    """The real batch size above which states with k outliers exist.

    Newton's method on p' = p, u' = u and det(D - 1) = 0, D the Jacobian of the class, from the state at a batch size
    where there is one.

    Args:
        k: number of outliers, at least 2; any real number.

    Returns:
        The batch size.

    Raises:
        ValueError: k < 2 or not finite.
        NotConvergedError: the residual stays above 1e-9.

    Example:
        >>> round(many_outlier_saddle_node(2), 4)
        8.7739
    """
    if not 2 <= k < math.inf:
        raise ValueError(f"k must be a number of outliers of at least 2, got {k}.")
    k = float(k)
    low, high = 2.0 * k + 1.0, 4.0 * k + 4.0  # no states at the lower end, some at the upper
    for _ in range(8):
        middle = (low + high) / 2.0
        if any(state.norm_ratio > 1 for state in many_outlier_states(middle, k)):
            high = middle
        else:
            low = middle
    # Two states lie close together on either side of the fold: their midpoint is a start.
    near = [state for state in many_outlier_states(high, k) if state.norm_ratio > 1]
    start = np.mean([[math.log(state.p), math.log(state.u)] for state in near], axis=0)
    z = np.array([*start, high])

    def equations(z: np.ndarray) -> np.ndarray:
        f, g, slope = _drift(np.asarray(z[0]), np.asarray(z[1]), float(z[2]), k)
        return np.array([float(f), float(g), float(np.linalg.det(slope))])

    for _ in range(40):
        value = equations(z)
        table = np.column_stack([(equations(z + h) - equations(z - h)) / 2e-6 for h in 1e-6 * np.eye(3)])
        z = z - np.linalg.solve(table, value)
        z[:2] = np.clip(z[:2], -60.0, 60.0)
        z[2] = min(max(z[2], 2.0 * k + 0.1), 5.0 * k + 5.0)
    residual = float(np.abs(equations(z)).max())
    if not residual < 1e-9:
        raise NotConvergedError(
            f"The saddle-node of k = {k:g} outliers is not reached: the residual is {residual:.3g}."
        )
    return float(z[2])


def collapsed_outlier_multiplier(n: float | int, k: float | int, u: float | int) -> float:
    """Factor a layer of a small squared distance between two of k coinciding outliers, relative to the scale.

    Samples that coincide stay so, but 1 - J(cos t) = t^2/2 to leading order, so that their squared distance is kept
    while the scale falls: the factor is one over the growth of the scale, above 1. No state with coinciding samples is
    stable.

    Args:
        n: batch size, at least 3.
        k: number of outliers, 1 or between 2 and n - 2.
        u: state of the others.

    Returns:
        The factor.

    Raises:
        ValueError: an argument outside its domain.

    Example:
        >>> round(collapsed_outlier_multiplier(8, 2, 0.1), 3) > 1
        True
    """
    n = checked_n(n)
    k = _checked_k(k, n)
    zero = np.asarray(0.0)
    return 1.0 / float(_layer(_geometry(zero, np.asarray(float(u)), n, k), k).growth)


def unstable_counts(batch_sizes: list[int], outliers: list[int]) -> Float[np.ndarray, "sizes outliers"]:
    """Number of unstable directions of the state with the largest norm ratio, over batch sizes and numbers of outliers.

    Args:
        batch_sizes: whole numbers of at least 4.
        outliers: numbers of outliers, each at least 2.

    Returns:
        Shape (sizes, outliers); nan where no state was found or k > n/2.

    Raises:
        ValueError: an argument outside its domain.

    Example:
        >>> unstable_counts([6, 12], [2, 3])
        array([[nan, nan],
               [ 1.,  2.]])
    """
    table = np.full((len(batch_sizes), len(outliers)), math.nan)
    for row, n in enumerate(batch_sizes):
        for column, k in enumerate(outliers):
            states = [s for s in many_outlier_states(n, k) if s.norm_ratio > 1] if 2 * k <= n else []
            if states:
                table[row, column] = states[0].unstable_directions
    return table
