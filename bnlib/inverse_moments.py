"""When do Gaussian averages with inverse powers of lengths exist? The rank conditions of the Laplace method.

E |y|^(-2k) for y ~ N(0, P), P a projection of rank r, is (1/Gamma(k)) int_0^inf s^(k-1) (1 + 2s)^(-r/2) ds: finite
exactly for r > 2k (arXiv 1902.08129, section E.1). For two batches (section H.1.2) let y = (u, w), y' = (u, w') share a
part u: with ranks c of the common part and p, q of the parts of their own,

    E |y|^(-2a) |y'|^(-2b) = 1/(Gamma(a) Gamma(b)) int int s^(a-1) t^(b-1) (1+2s+2t)^(-c/2) (1+2s)^(-p/2) (1+2t)^(-q/2),

finite exactly if c + p > 2a, c + q > 2b and c + p + q > 2(a + b): near 0 only y can be small, or only y', or both.
A numerator that is itself homogeneous of degree 2k lifts the condition. NumPy float64; no torch.
"""

import math

import numpy as np
from scipy.special import gammaln

_STEP = 0.25  # in the logarithm
_CUTS = (1e11, 1e15)  # an integral that exists changes little between them


def _weights(power: float | int, cut: float) -> tuple[np.ndarray, np.ndarray]:
    low = -40 / power
    x = np.arange(low, math.log(cut), _STEP)
    weights = _STEP * np.exp(power * x)
    weights[-1] /= 2
    return np.exp(x), weights


def truncated_inverse_moment(k: float | int, rank: int, cut: float, small: float = 0.0) -> float:
    """The Laplace integral of E |y|^(-2k) up to s = cut, y of this rank, plus one more direction of variance `small`.

    Args:
        k: positive.
        rank: of the projection, at least 1.
        cut: where the integral ends, above 1.
        small: variance of one more direction, at least 0.

    Raises:
        ValueError: k is not positive, rank is below 1, cut is not above 1, or small is negative.

    Example:
        >>> round(truncated_inverse_moment(1, 5, 1e12), 6)  # E 1/chi^2_5 = 1/3
        0.333333
    """
    if not 0 < k < math.inf:
        raise ValueError(f"k must be positive and finite, got {k}.")
    if rank < 1:
        raise ValueError(f"rank must be at least 1, got {rank}.")
    if not cut > 1 or not small >= 0:
        raise ValueError(f"cut must be above 1 and small at least 0, got {cut} and {small}.")
    s, weights = _weights(k, cut)
    return float(weights @ ((1 + 2 * s) ** (-rank / 2) * (1 + 2 * s * small) ** -0.5)) / math.exp(gammaln(k))


def truncated_cross_moment(a: float | int, b: float | int, common: int, first: int, second: int, cut: float) -> float:
    """The double Laplace integral of E |y|^(-2a) |y'|^(-2b) up to s = t = cut.

    Args:
        a: positive.
        b: positive.
        common: rank c of the part that both share.
        first: rank p of the part of the first alone.
        second: rank q of the part of the second alone.
        cut: where both integrals end, above 1.

    Raises:
        ValueError: a or b is not positive, a batch has rank 0, or cut is not above 1.

    Example:
        >>> round(truncated_cross_moment(1, 1, 0, 5, 5, 1e12), 6)  # independent: 1/9
        0.111111
    """
    if not (0 < a < math.inf and 0 < b < math.inf):
        raise ValueError(f"a and b must be positive and finite, got {a} and {b}.")
    if min(common, first, second) < 0 or min(common + first, common + second) < 1:
        raise ValueError(f"both batches must have rank at least 1, got {common} + {first} and {common} + {second}.")
    if not cut > 1:
        raise ValueError(f"cut must be above 1, got {cut}.")
    (s, left), (t, right) = _weights(a, cut), _weights(b, cut)
    left = left * (1 + 2 * s) ** (-first / 2) / math.exp(gammaln(a))
    right = right * (1 + 2 * t) ** (-second / 2) / math.exp(gammaln(b))
    return float(left @ ((1 + 2 * s[:, None] + 2 * t) ** (-common / 2)) @ right)


def rank_rows() -> list[dict[str, float | bool]]:
    """Does E |y|^(-2k) exist, and is it continuous, at ranks around 2k?

    Returns:
        Rows with k, rank, `growth` (relative change of the integral between two cuts), `finite` (growth below 1e-3),
        `printed` (rank > 2k) and `jump`: relative change when one more direction of variance 1e-12 is added; None
        where the average is infinite.

    Example:
        >>> all(row["finite"] == row["printed"] for row in rank_rows())
        True
    """
    rows = []
    for k in (0.5, 1.0, 1.5, 2.0):
        for rank in range(1, 7):
            near, far = (truncated_inverse_moment(k, rank, cut) for cut in _CUTS)
            growth = far / near - 1
            jump = truncated_inverse_moment(k, rank, _CUTS[1], 1e-12) / far - 1 if growth < 1e-3 else None
            rows.append({"k": k, "rank": rank, "growth": growth, "finite": growth < 1e-3, "printed": rank > 2 * k})
            rows[-1]["jump"] = jump
    return rows


def cross_rank_rows() -> list[dict[str, float | bool]]:
    """Does E |y|^(-2a) |y'|^(-2b) exist? The source's condition on the joint rank, and with one for each batch.

    Returns:
        Rows with a, b, common, first, second, growth, finite, `printed` (joint rank > 2(a+b)) and `completed` (rank of
        each batch above 2a and 2b as well).

    Example:
        >>> rows = cross_rank_rows()
        >>> all(row["finite"] == row["completed"] for row in rows), all(row["finite"] == row["printed"] for row in rows)
        (True, False)
    """
    cases = [
        (1, 1, 5, 0, 0), (1, 1, 4, 0, 0), (1, 1, 0, 3, 3), (1, 1, 0, 1, 8), (1, 1, 0, 2, 9), (1, 1, 1, 2, 1),
        (1, 1, 1, 2, 2), (1, 1, 2, 1, 1), (1, 1, 2, 1, 2), (0.5, 0.5, 3, 0, 0), (0.5, 0.5, 1, 0, 1),
        (0.5, 0.5, 1, 1, 1), (0.5, 0.5, 2, 0, 0), (0.5, 1.5, 0, 2, 4), (0.5, 1.5, 2, 4, 1),
    ]  # fmt: skip
    rows = []
    for a, b, common, first, second in cases:
        near, far = (truncated_cross_moment(a, b, common, first, second, cut) for cut in _CUTS)
        printed = common + first + second > 2 * (a + b)
        completed = printed and common + first > 2 * a and common + second > 2 * b
        row = {"a": float(a), "b": float(b), "common": common, "first": first, "second": second}
        rows.append(row | {"growth": far / near - 1, "finite": far / near - 1 < 1e-3})
        rows[-1] |= {"printed": printed, "completed": completed}
    return rows
