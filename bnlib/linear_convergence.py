"""Linear networks with batch normalization: all eigenvalues of the centered covariance become equal.

With phi = id the centered covariance keeps its eigenvectors and its rank C, and its eigenvalues k_i go to
n E[k_i g_i^2 / sum_j k_j g_j^2], g standard Gaussian. Exchanging g_i and g_j shows that the order is kept and that
every ratio k_i/k_j > 1 shrinks, so the largest ratio decreases to 1 from any start: global convergence; the last
differences shrink by 1 - 2/(C+2) a layer (arXiv 1902.08129, section F.1). NumPy float64; no torch.
"""

import math

import numpy as np
from jaxtyping import Float

_STEP = 0.25


def next_eigenvalues(eigenvalues: Float[np.ndarray, " rank"]) -> Float[np.ndarray, " rank"]:
    """Eigenvalues of the centered covariance after one linear layer with batch normalization, scaled to sum 1.

    k_i int_0^inf (1 + 2 s k_i)^(-1) prod_j (1 + 2 s k_j)^(-1/2) ds, by the trapezoidal rule in log s.

    Args:
        eigenvalues: positive, at least one.

    Raises:
        ValueError: an eigenvalue is not positive and finite, or there is none.

    Example:
        >>> after = next_eigenvalues(np.array([4.0, 1.0]))
        >>> np.round(after, 12).tolist()  # two: k_i -> sqrt(k_i)
        [0.666666666667, 0.333333333333]
    """
    k = np.asarray(eigenvalues, dtype=np.float64)
    if k.ndim != 1 or len(k) == 0 or not (np.isfinite(k).all() and (k > 0).all()):
        raise ValueError(f"eigenvalues must be a list of positive finite numbers, got {eigenvalues}.")
    if len(k) == 1:
        return np.ones(1)
    k = k / k.max()
    x = np.arange(-42.0, 84.0 - math.log(k.min()), _STEP)
    product = 2 * np.exp(x)[:, None] * k
    weights = np.exp(-0.5 * np.log1p(product).sum(axis=1))
    after = weights @ (product / (1 + product))
    return after / after.sum()


def contraction(rank: int | float) -> float:
    """Factor per layer on small differences of the eigenvalues: 1 - 2/(C+2).

    Args:
        rank: C, at least 2.

    Raises:
        ValueError: rank is below 2.

    Example:
        >>> contraction(2), contraction(7)
        (0.5, 0.7777777777777778)
    """
    if not rank >= 2:
        raise ValueError(f"rank must be at least 2, got {rank}.")
    return 1 - 2 / (rank + 2)


def eigenvalue_gaps(eigenvalues: Float[np.ndarray, " rank"], layers: int | float) -> list[float]:
    """Logarithm of the largest over the smallest eigenvalue before the first layer and after each one.

    Args:
        eigenvalues: positive.
        layers: number of layers, at least 1.

    Raises:
        ValueError: layers is below 1, or an eigenvalue is not positive and finite.

    Example:
        >>> np.round(eigenvalue_gaps(np.array([4.0, 1.0]), 2), 6).tolist()  # halved in every layer
        [1.386294, 0.693147, 0.346574]
    """
    if layers < 1:
        raise ValueError(f"layers must be at least 1, got {layers}.")
    k, gaps = np.asarray(eigenvalues, dtype=np.float64), []
    for _ in range(int(layers)):
        gaps.append(math.log(k.max() / k.min()))
        k = next_eigenvalues(k)
    return [*gaps, math.log(k.max() / k.min())]
