"""Stability of the states of recentered ReLU layers in all directions, at infinite width.

Recentered Gram matrices of n samples have n(n-1)/2 free numbers; everything else is removed by the next recentering.
Near a state with k equivalent distinguished samples and m = n - k equivalent others, the linearized layer commutes with
all permutations inside the two kinds, so it acts on each type of symmetry separately (Schur's lemma):

    class      changes that keep the equivalences: p, u and the scale               (once)
    outliers   one weight v_a a distinguished sample, sum of v zero                 (k - 1 times)
    cluster    one weight v_i an other sample, sum of v zero                        (m - 1 times)
    cross      a matrix of outlier-cluster products, all row and column sums zero   ((k-1)(m-1) times)
    outlier pairs, cluster pairs   products inside a kind, zero diagonal and row sums   (k(k-3)/2, m(m-3)/2 times)

and each type is a scalar or a 2 x 2 matrix. All follow from one differential, with theta the angle before ReLU:

    dV_ij = (1 - theta_ij/pi) dK_ij + sin(theta_ij)/(2 pi) [sqrt(K_jj/K_ii) dK_ii + sqrt(K_ii/K_jj) dK_jj],
    dV_ii = dK_ii.

Multipliers have the scale removed: they are eigenvalues over the growth of the squared scale. NumPy float64.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.kernels import relu_cosine, relu_cosine_derivative
from bnlib.outlier_class import ClassGeometry, _checked_k, _checked_state, _geometry, _jacobian, _layer, checked_n


@dataclass(frozen=True)
class Block:
    """The multipliers of one type of directions.

    Attributes:
        name: "class", "outliers", "cluster", "cross", "outlier pairs" or "cluster pairs".
        multipliers: eigenvalues over the growth of the squared scale, largest modulus first; real where they are real.
        multiplicity: how often each of them occurs (a real number for real n or k).
    """

    name: str
    multipliers: tuple[float | complex, ...]
    multiplicity: float


@dataclass(frozen=True)
class Stability:
    """All multipliers of a state, with the scale removed.

    Attributes:
        blocks: the types of directions that occur.
        spectral_radius: the largest modulus over all of them.
        unstable_directions: number of multipliers of modulus above 1, with multiplicity.
    """

    blocks: tuple[Block, ...]
    spectral_radius: float
    unstable_directions: float

    def block(self, name: str) -> Block | None:
        """The block of that name, or None where the batch is too small to have one."""
        return next((block for block in self.blocks if block.name == name), None)


def _collected(blocks: list[Block]) -> Stability:
    kept = tuple(block for block in blocks if block.multipliers and block.multiplicity > 0)
    return Stability(
        blocks=kept,
        spectral_radius=max(abs(value) for block in kept for value in block.multipliers),
        unstable_directions=sum(block.multiplicity * sum(abs(v) > 1 for v in block.multipliers) for block in kept),
    )


def _eigenvalues(matrix: np.ndarray) -> tuple[float | complex, ...]:
    values = np.linalg.eigvals(matrix)
    values = values[np.argsort(-np.abs(values))]
    return tuple(float(v.real) if v.imag == 0 else complex(v) for v in values)


def standard_block(
    own: float, other: float, n: float, own_angle: float, square_ratio: float, supplement: float
) -> Float[np.ndarray, "2 2"]:
    """The layer on changes with one weight v_a a sample of a kind, sum of v zero, before the scale is removed.

    The change is x v_a in the products with the other kind and y v_a in the squared lengths; the row sums then leave
    -(y + other x)/(own - 2) (v_a + v_b) for the products inside the kind.

    Args:
        own: number of samples of the kind, at least 2; with 2 the line y = -other x is all there is.
        other: number of samples of the other kind.
        n: batch size.
        own_angle: angle between two recentered samples of the kind, radians.
        square_ratio: squared length of a sample of the other kind over that of one of this kind.
        supplement: pi minus the angle between the kinds, radians.

    Returns:
        Shape (2, 2), acting on (x, y).

    Example:
        >>> np.round(standard_block(2.0, 2.0, 4.0, math.pi / 2, 1.0, math.pi / 2) @ [1.0, -2.0], 4)
        array([ 0.5908, -1.1817])
    """
    inner = 1.0 - own_angle / math.pi
    cross = np.array([supplement / math.pi, math.sin(supplement) / (2.0 * math.pi) * math.sqrt(square_ratio)])
    inside = np.array([-inner * other, 1.0 - inner + (own - 2.0) * math.sin(own_angle) / (2.0 * math.pi)])
    mean = (other * cross + inside) / n  # change of the mean of a row: what recentering takes off
    return np.array([cross - mean, np.array([0.0, 1.0]) - 2.0 * mean])


def _standard(own: float, other: float, n: float, angle: float, ratio: float, supplement: float) -> np.ndarray:
    block = standard_block(own, other, n, angle, ratio, supplement)
    return block if own > 2 else np.array([[block[0, 0] - other * block[0, 1]]])


def class_stability(p: float | int, u: float | int, n: float | int, k: float | int = 1) -> Stability:
    """Multipliers in all directions at a fixed point with k distinguished samples.

    Args:
        p: state of the distinguished samples (see `bnlib.outlier_class`); not used for k = 1.
        u: state of the others; (p, u) should be a fixed point, or the result has no meaning for stability.
        n: batch size, at least 3; any real number.
        k: number of distinguished samples, 1 or a real number between 2 and n - 2.

    Returns:
        The blocks, with multiplicities, and the spectral radius.

    Raises:
        ValueError: p, u, n or k outside its domain.

    Example:
        >>> from bnlib.outlier_fixed_points import outlier_state
        >>> found = class_stability(0.0, outlier_state(8).u, 8)
        >>> round(found.spectral_radius, 3), found.unstable_directions
        (0.931, 0.0)
        >>> sum(block.multiplicity * len(block.multipliers) for block in found.blocks)  # and the scale: 28 in all
        27.0
    """
    n = checked_n(n)
    k = _checked_k(k, n)
    p, u = np.broadcast_arrays(_checked_state("p", p), _checked_state("u", u))
    g = _geometry(p, u, n, k)
    growth = float(_layer(g, k).growth)
    m = g.others
    within = _jacobian(p, u, n, k)
    ratio = float(g.cluster_square / g.outlier_square)
    supplement = float(g.supplement)
    angle_o, angle_c = float(g.outlier_pair_angle), float(g.cluster_pair_angle)
    blocks = [Block("class", _eigenvalues(within if k != 1.0 else within[1:, 1:]), 1.0)]
    if k != 1.0:
        blocks.append(Block("outliers", _eigenvalues(_standard(k, m, n, angle_o, ratio, supplement) / growth), k - 1.0))
        blocks.append(Block("cross", (supplement / math.pi / growth,), (k - 1.0) * (m - 1.0)))
        blocks.append(Block("outlier pairs", ((1.0 - angle_o / math.pi) / growth,), k * (k - 3.0) / 2.0))
    blocks.append(
        Block("cluster", _eigenvalues(_standard(m, k, n, angle_c, 1.0 / ratio, supplement) / growth), m - 1.0)
    )
    blocks.append(Block("cluster pairs", ((1.0 - angle_c / math.pi) / growth,), m * (m - 3.0) / 2.0))
    return _collected(blocks)


def symmetric_stability(n: float | int) -> Stability:
    """Multipliers in all directions at the symmetric state, where all n samples are equivalent.

    With J and J' at -1/(n-1) and the growth (1 - J)(n-1)/n of the squared scale:

        cluster        (n-2)/(n-1) + n J'/((n-1)^2 (1 - J))     (n - 1 times: one weight a sample)
        cluster pairs  n J'/((n-1)(1 - J))                      (n(n-3)/2 times)

    Args:
        n: batch size, at least 3; any real number.

    Returns:
        The two blocks, named as those of a cluster of all samples.

    Raises:
        ValueError: n < 3 or not finite.

    Example:
        >>> found = symmetric_stability(8)
        >>> [round(block.multipliers[0], 4) for block in found.blocks]
        [0.9561, 0.6925]
    """
    n = checked_n(n)
    cosine = -1.0 / (n - 1.0)
    slope, deficit = float(relu_cosine_derivative(cosine)), 1.0 - float(relu_cosine(cosine))
    pairs = n * slope / ((n - 1.0) * deficit)
    return _collected(
        [
            Block("cluster", ((n - 2.0) / (n - 1.0) + pairs / (n - 1.0),), n - 1.0),
            Block("cluster pairs", (pairs,), n * (n - 3.0) / 2.0),
        ]
    )


def class_distances(p: float | int, u: float | int, n: float | int, k: float | int = 1) -> Float[np.ndarray, "n n"]:
    """Squared distances between the samples of the state (p, u), in units of |nu_o - nu_c|^2.

    Args:
        p: state of the distinguished samples, at least 0; not used for k = 1.
        u: state of the others, at least 0.
        n: batch size, a whole number of at least 3.
        k: number of distinguished samples, which come first.

    Returns:
        Shape (n, n), symmetric with zero diagonal.

    Raises:
        ValueError: n or k is not a whole number, or out of range.

    Example:
        >>> class_distances(0.0, 0.5, 3).round(3)
        array([[0.  , 1.25, 1.25],
               [1.25, 0.  , 1.  ],
               [1.25, 1.  , 0.  ]])
    """
    n, k = whole_number("n", n), whole_number("k", k)
    _checked_k(k, checked_n(n))
    distances = np.full((n, n), 1.0 + p * (k - 1) / k + u * (n - k - 1) / (n - k))
    distances[:k, :k] = 2.0 * p
    distances[k:, k:] = 2.0 * u
    np.fill_diagonal(distances, 0.0)
    return distances


def whole_number(name: str, value: float | int) -> int:
    """Return value as an int, refusing anything that is not a whole number."""
    if not math.isfinite(value) or value != int(value):
        raise ValueError(f"{name} must be a whole number where samples are counted, got {value}.")
    return int(value)


def brute_force_multipliers(
    layer: Callable[[Float[np.ndarray, "n n"]], Float[np.ndarray, "n n"]], distances: Float[np.ndarray, "n n"]
) -> np.ndarray:
    """All multipliers of a map of squared distances at a state that it keeps up to scale, by differences.

    Each of the n(n-1)/2 distances is changed in turn (fourth-order central differences, step 1e-3 of the distance); no
    symmetry is used. The oracle for the closed forms.

    Args:
        layer: the map of squared distances, homogeneous of degree one.
        distances: the state, shape (n, n), positive off the diagonal.

    Returns:
        n(n-1)/2 eigenvalues over the growth of the scale, by falling modulus; one of them is 1, the scale itself.

    Example:
        >>> from bnlib.infinite_width import next_distances
        >>> values = brute_force_multipliers(next_distances, class_distances(0.0, 7 / 8, 8))
        >>> np.abs(values[:2]).round(4)  # the scale, then the leading multiplier of the symmetric state
        array([1.    , 0.9561])
    """
    rows, columns = np.triu_indices(len(distances), 1)
    growth = float(np.mean(layer(distances)[rows, columns] / distances[rows, columns]))
    jacobian = np.empty((len(rows), len(rows)))
    for index, (i, j) in enumerate(zip(rows, columns, strict=True)):
        step = 1e-3 * distances[i, j]
        values = []
        for shift in (-2, -1, 1, 2):
            moved = distances.copy()
            moved[i, j] = moved[j, i] = distances[i, j] + shift * step
            values.append(layer(moved)[rows, columns])
        jacobian[:, index] = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * step)
    eigenvalues = np.linalg.eigvals(jacobian) / growth
    return eigenvalues[np.argsort(-np.abs(eigenvalues))]


def all_multipliers(stability: Stability) -> Float[np.ndarray, "directions"]:
    """The multipliers of all blocks, each as often as it occurs, and 1 for the scale, by falling modulus.

    Args:
        stability: of a state of a whole number of samples.

    Returns:
        Shape (n(n-1)/2,).

    Example:
        >>> len(all_multipliers(symmetric_stability(8)))
        28
    """
    values = [1.0]
    for block in stability.blocks:
        values += list(block.multipliers) * round(block.multiplicity)
    values = np.array(values)
    return values[np.argsort(-np.abs(values))]


__all__ = [
    "Block",
    "ClassGeometry",
    "Stability",
    "all_multipliers",
    "brute_force_multipliers",
    "class_distances",
    "class_stability",
    "standard_block",
    "symmetric_stability",
    "whole_number",
]
