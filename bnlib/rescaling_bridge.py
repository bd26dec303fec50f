"""From recentering alone to full batch normalization, continuously: one distinguished sample all the way.

Let every neuron y = G h of a ReLU layer count with the weight |y|^(2-2t): t = 0 is recentering and ReLU without
rescaling (the paper's layer), t = 1 batch normalization. Up to scale the covariance after such a layer is

    E[relu(y) relu(y)^T |y|^(-2t)] = 1/Gamma(t) int_0^inf s^t det(I + 2 s K)^(-1/2) V(K (I + 2 s K)^(-1)) ds / s,

V the kernel of ReLU: the Laplace integral of `bnlib.homogeneous_layer` with another power of s. At t = 0 it is V(K).
With one distinguished sample the state is the single `ratio` of `bnlib.two_block`. NumPy float64; no torch.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln

from bnlib import outlier_fixed_points as recentered
from bnlib.homogeneous import homogeneous
from bnlib.two_block import distinguished_share, next_block

_STEP = 0.25  # in log s
_NOTHING = 40.0  # the logarithm of what is left out at either end
_LEAST = 0.0625  # below this stage exp(-_NOTHING / t), where the rule begins, underflows
_RELU = homogeneous(1)


@dataclass(frozen=True)
class BridgeState:
    """The outermost fixed point with one winner at a stage between recentering alone and batch normalization.

    Attributes:
        t: 0 without rescaling, 1 with all of it.
        ratio: of the eigenvalue inside the cluster to the one along q.
        slope: d log(next ratio)/d log(ratio); stable inside the class if below 1.
        norm_ratio: centered norm of the winner over that of another sample.
    """

    t: float
    ratio: float
    slope: float
    norm_ratio: float


def tilted_rule(
    eigenvalues: Float[np.ndarray, " k"], multiplicities: Float[np.ndarray, " k"], t: float | int
) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Nodes s and weights s^(t-1)/Gamma(t) det(I + 2 s K)^(-1/2) ds/s, for an integrand V(s K (I + 2 s K)^(-1)).

    Args:
        eigenvalues: of K on the centered directions, positive.
        multiplicities: of each; any positive real numbers.
        t: stage, 1/16 to 1.

    Returns:
        Nodes and weights.

    Raises:
        ValueError: t is not between 1/16 and 1.

    Example:
        >>> s, w = tilted_rule(np.ones(1), np.array([7.0]), 0.5)  # E[y_1^2 / |y|] with 7 degrees of freedom
        >>> chi = math.gamma(4) / math.gamma(3.5) * math.sqrt(2)
        >>> bool(abs(w @ (s / (1 + 2 * s)) - chi / 7) < 1e-10)
        True
    """
    if not _LEAST <= t <= 1:
        raise ValueError(f"t must be 0 or lie between {_LEAST:g} and 1, got {t}.")
    low = -_NOTHING / t - math.log(eigenvalues.max()) - 2
    high = -math.log(eigenvalues.min()) + 2 * _NOTHING + 2
    x = _STEP * np.arange(math.floor(low / _STEP), math.ceil(high / _STEP))
    s = np.exp(x)
    size = -0.5 * np.log1p(2 * s[:, None] * eigenvalues) @ multiplicities + (t - 1) * x
    # What rules the cluster lies further out than what rules q: judged by the smallest eigenvalue as well.
    kept = np.zeros(len(s), dtype=bool)
    for value in (eigenvalues.max(), eigenvalues.min()):
        logs = size + np.log(s * value / (1 + 2 * s * value))
        kept |= logs > logs.max() - _NOTHING
    return s[kept], _STEP * np.exp(size[kept] - gammaln(t))


def log_drift(ratio: float | int, n: int | float, t: float | int) -> float:
    """log(next ratio / ratio) of a layer at stage t.

    Args:
        ratio: positive.
        n: batch size, at least 3; any real number.
        t: stage, 0 or 1/16 to 1.

    Raises:
        ValueError: t is outside its domain, or as `two_block.next_block`.

    Example:
        >>> from bnlib import two_block
        >>> abs(log_drift(0.01, 16, 1) - two_block.log_drift(0.01, 16, _RELU)) < 1e-10
        True
        >>> log_drift(0.001, 16, 0) < log_drift(0.001, 16, 0.25) < log_drift(0.001, 16, 1)
        True
    """
    if t == 0:
        return float(recentered.log_drift(ratio * (n - 1) / n, n))

    def rule(eigenvalues: np.ndarray, multiplicities: np.ndarray, _: float) -> tuple[np.ndarray, np.ndarray]:
        return tilted_rule(eigenvalues, multiplicities, t)

    return math.log(next_block(1.0, ratio, n, 1, _RELU, rule)[1] / ratio)


def _valley(n: int | float, t: int | float) -> tuple[float, float]:
    """Where the pull back to BSB1 is least, in log ratio, and how large it is there."""

    def pull(x: float) -> float:
        return log_drift(math.exp(x), n, t) / -x

    grid = -np.geomspace(1e-2, 4 * math.log(n) + 2, 30)
    values = [pull(x) for x in grid]
    best = int(np.argmin(values))
    bounds = sorted((grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]))
    found = minimize_scalar(pull, bounds=bounds, method="bounded", options={"xatol": 1e-7})
    return (float(found.x), float(found.fun)) if found.fun < values[best] else (float(grid[best]), values[best])


def fold(t: float | int) -> float:
    """The real batch size at which the one-winner state of stage t is born, in a saddle-node.

    Args:
        t: stage, 0 or 1/16 to 1.

    Raises:
        ValueError: t is outside its domain.

    Example:
        >>> round(fold(0), 4), round(fold(1), 2)
        (6.1071, 51.37)
    """
    return float(brentq(lambda n: _valley(n, t)[1], 5.0, 128.0, xtol=1e-7))


def bridge_state(n: int | float, t: float | int) -> BridgeState | None:
    """The outermost fixed point with one winner, or None where there is none.

    Args:
        n: batch size, at least 5; any real number.
        t: stage, 0 or 1/16 to 1.

    Raises:
        ValueError: n < 5 or t is outside its domain.

    Example:
        >>> bridge_state(64, 0).norm_ratio > bridge_state(64, 1).norm_ratio > 2, bridge_state(16, 1)
        (True, None)
    """
    if not n >= 5:
        raise ValueError(f"n must be a batch size of at least 5, got {n}.")
    bottom, least = _valley(n, t)
    if least >= 0:
        return None
    low = -4 * math.log(n) - 2
    x = float(brentq(lambda y: log_drift(math.exp(y), n, t), low, bottom, xtol=1e-13))
    step = 1e-4
    slope = 1 + (log_drift(math.exp(x + step), n, t) - log_drift(math.exp(x - step), n, t)) / (2 * step)
    share = distinguished_share(math.exp(x), n)
    return BridgeState(float(t), math.exp(x), slope, math.sqrt(share * (n - 1) / (1 - share)))


def branch(n: int | float, stages: int) -> list[dict[str, float | None]]:
    """The one-winner state at one batch size, from t = 0 to t = 1 in equal steps, and the births.

    Args:
        n: batch size, at least 5.
        stages: number of steps, at most 16.

    Returns:
        Rows with t, fold, ratio, slope and norm_ratio (None where the state does not exist).

    Raises:
        ValueError: n < 5 or stages is not between 1 and 16.

    Example:
        >>> rows = branch(64, 2)
        >>> [round(row["fold"], 1) for row in rows][::2], all(row["slope"] < 1 for row in rows)
        ([6.1, 51.4], True)
    """
    if not 1 <= stages <= 16:
        raise ValueError(f"stages must lie between 1 and 16, got {stages}.")
    rows = []
    for index in range(stages + 1):
        t = index / stages
        state = bridge_state(n, t)
        row = {"t": t, "fold": fold(t)}
        rows.append(row | {key: getattr(state, key, None) for key in ("ratio", "slope", "norm_ratio")})
    return rows
