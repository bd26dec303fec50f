"""Linear operators on symmetric matrices that permutations of the samples leave alone, before and after centering.

T{S}_ij = sum_kl [ij|kl] S_kl, where [ij|kl] depends only on which of the four indices coincide, is such an operator
("ultrasymmetric" in arXiv 1902.08129, section E.5): every derivative of a layer at BSB1 is one. On symmetric matrices
it has five eigenvalues, of multiplicities 1, 1, n-1, n-1 and n(n-3)/2; G T{.} G on centered matrices has three, with

    p = [11|11] - [11|22] - 2 [11|12] + 2 [11|23],   q = [12|11] - [12|33] - 2 [12|13] + 2 [12|34],
    lambda_M = [12|12] + [12|21] - 4 [12|13] + 2 [12|34],
    lambda_L = ((n-2)(p - 2q) + 2 lambda_M) / n,   lambda_G = T{G}_11 - T{G}_12.

NumPy float64; this module does not import torch.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.checks import checked_integer_batch
from bnlib.mean_field import LINEARIZATION_MINIMUM, relu_forward_multipliers, relu_symmetric_fixed_point
from bnlib.v_transform import batch_norm_relu_transform

PATTERNS = ("11|11", "11|22", "11|12", "11|23", "12|11", "12|33", "12|12", "12|21", "12|13", "12|34")


@dataclass(frozen=True)
class OperatorFacts:
    """What the spectrum of an operator shows, before and after centering.

    Attributes:
        multiplicities: of its eigenvalues on symmetric matrices, ascending.
        asymmetry: Frobenius norm of T - T^* over that of T, before centering.
        largest_cosine: between eigenvectors of different eigenvalues, before centering; 0 if all are orthogonal.
        centered_asymmetry: the asymmetry of the centered operator on centered matrices.
        centered_multiplicities: of its eigenvalues, ascending.
        formula_error: largest distance of its eigenvalues from the three formulas, in units of the largest.
        leakage: how far the centered operator moves G, L and M out of themselves, in units of the largest eigenvalue.
    """

    multiplicities: list[int]
    asymmetry: float
    largest_cosine: float
    centered_asymmetry: float
    centered_multiplicities: list[int]
    formula_error: float
    leakage: float


def symmetric_basis(n: int | float) -> Float[np.ndarray, "k n n"]:
    """An orthonormal basis of the symmetric n x n matrices, n(n+1)/2 of them.

    Args:
        n: size, at least 2.

    Raises:
        ValueError: n is not a whole number of at least 2.

    Example:
        >>> symmetric_basis(3).shape
        (6, 3, 3)
    """
    n = checked_integer_batch(n, 2)
    basis = []
    for i in range(n):
        for j in range(i, n):
            unit = np.zeros((n, n))
            unit[i, j] = unit[j, i] = 1.0 if i == j else math.sqrt(0.5)
            basis.append(unit)
    return np.array(basis)


def pattern(i: int, j: int, k: int, l: int) -> str:  # noqa: E741
    """Which of the indices of [ij|kl] coincide, up to the order within ij (and of kl, where ij does not fix it).

    Args:
        i: first index.
        j: second index.
        k: third index.
        l: fourth index.

    Returns:
        One of `PATTERNS`.

    Example:
        >>> pattern(4, 7, 7, 4), pattern(2, 2, 0, 2), pattern(0, 1, 3, 1)
        ('12|21', '11|12', '12|13')
    """
    if i == j:
        if k == l:
            return "11|11" if k == i else "11|22"
        return "11|12" if i in (k, l) else "11|23"
    if k == l:
        return "12|11" if k in (i, j) else "12|33"
    if (k, l) == (i, j):
        return "12|12"
    if (k, l) == (j, i):
        return "12|21"
    return "12|13" if {i, j} & {k, l} else "12|34"


def operator_matrix(coefficients: dict[str, float], n: int | float) -> Float[np.ndarray, "k k"]:
    """The operator with these coefficients, in the basis of `symmetric_basis`.

    Args:
        coefficients: a number for each of `PATTERNS`.
        n: size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4, or a pattern is missing or not finite.

    Example:
        >>> identity = dict.fromkeys(PATTERNS, 0.0) | {"11|11": 1.0, "12|12": 1.0}
        >>> bool(np.allclose(operator_matrix(identity, 4), np.eye(10)))
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    missing = [name for name in PATTERNS if not math.isfinite(coefficients.get(name, math.nan))]
    if missing:
        raise ValueError(f"coefficients must hold a finite number for each pattern, got none for {', '.join(missing)}.")
    indices = range(n)
    tensor = np.array(
        [[[[coefficients[pattern(i, j, k, l)] for l in indices] for k in indices] for j in indices] for i in indices]  # noqa: E741
    )
    basis = symmetric_basis(n)
    return np.einsum("aij,ijkl,bkl->ab", basis, tensor, basis)


def projected_eigenvalues(coefficients: dict[str, float], n: int | float) -> dict[str, float]:
    """The three eigenvalues of the centered operator: on G, on L and on M.

    Args:
        coefficients: a number for each of `PATTERNS`.
        n: size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> identity = dict.fromkeys(PATTERNS, 0.0) | {"11|11": 1.0, "12|12": 1.0}
        >>> projected_eigenvalues(identity, 5)
        {'G': 1.0, 'L': 1.0, 'M': 1.0}
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    c = coefficients
    m = c["12|12"] + c["12|21"] - 4 * c["12|13"] + 2 * c["12|34"]
    p = c["11|11"] - c["11|22"] - 2 * c["11|12"] + 2 * c["11|23"]
    q = c["12|11"] - c["12|33"] - 2 * c["12|13"] + 2 * c["12|34"]
    own, other = 1 - 1 / n, -1 / n
    diagonal = own * (c["11|11"] + (n - 1) * c["11|22"])
    diagonal += other * (n - 1) * (2 * c["11|12"] + (n - 2) * c["11|23"])
    beside = own * (2 * c["12|11"] + (n - 2) * c["12|33"])
    beside += other * (c["12|12"] + c["12|21"] + 4 * (n - 2) * c["12|13"] + (n - 2) * (n - 3) * c["12|34"])
    return {"G": diagonal - beside, "L": ((n - 2) * (p - 2 * q) + 2 * m) / n, "M": m}


def semidirect(u: float | int, v: float | int, w: float | int) -> dict[str, float]:
    """Coefficients of the source's DOS(u, v, w): T{S}_ii = u S_ii, T{S}_ij = v (S_ii + S_jj) + w S_ij.

    Args:
        u: on the diagonal.
        v: from the diagonal to the other entries.
        w: on the other entries.

    Example:
        >>> projected_eigenvalues(semidirect(1.0, 0.0, 1.0), 6) == {"G": 1.0, "L": 1.0, "M": 1.0}
        True
    """
    return dict.fromkeys(PATTERNS, 0.0) | {"11|11": float(u), "12|11": float(v), "12|12": float(w)}


def _multiplicities(values: np.ndarray, slack: float) -> list[int]:
    left, counts = list(values), []
    while left:
        near = [value for value in left if abs(value - left[0]) < slack]
        counts.append(len(near))
        left = [value for value in left if abs(value - left[0]) >= slack]
    return sorted(counts)


def operator_facts(matrix: Float[np.ndarray, "k k"], predicted: dict[str, float], n: int | float) -> OperatorFacts:
    """Read the facts of `OperatorFacts` off an operator's matrix.

    Args:
        matrix: in the basis of `symmetric_basis`.
        predicted: eigenvalues of the centered operator on G, L and M.
        n: size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4, or the matrix has another shape.

    Example:
        >>> c = {name: float(i) for i, name in enumerate(PATTERNS)}
        >>> facts = operator_facts(operator_matrix(c, 5), projected_eigenvalues(c, 5), 5)
        >>> facts.multiplicities, facts.formula_error < 1e-12
        ([1, 1, 4, 4, 5], True)
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    basis = symmetric_basis(n)
    if matrix.shape != (len(basis), len(basis)):
        raise ValueError(f"matrix must have shape {(len(basis), len(basis))}, got {matrix.shape}.")
    values, vectors = np.linalg.eig(matrix)
    slack = 1e-6 * np.abs(values).max()
    gram = np.abs(vectors.conj().T @ vectors)
    different = np.abs(values[:, None] - values) > slack
    g = np.eye(n) - 1 / n
    center = np.einsum("aij,ik,bkl,lj->ab", basis, g, basis, g)
    inner = center @ matrix @ center
    own, frame = np.linalg.eigh(center)
    frame = frame[:, own > 0.5]
    restricted = frame.T @ inner @ frame
    found = np.linalg.eigvals(restricted)
    wanted = np.array([predicted[name] for name in ("G", "L", "M")])
    size = max(np.abs(wanted).max(), 1e-300)
    spaces = _spaces(n, basis)
    leakage = max(
        float(np.linalg.norm(inner @ space - predicted[name] * space)) / size / math.sqrt(space.shape[1])
        for name, space in spaces.items()
    )
    return OperatorFacts(
        _multiplicities(values, slack),
        float(np.linalg.norm(matrix - matrix.T) / np.linalg.norm(matrix)),
        float((gram * different).max()),
        float(np.linalg.norm(restricted - restricted.T) / np.linalg.norm(restricted)),
        _multiplicities(found, slack),
        float(np.abs(found[:, None] - wanted).min(axis=1).max() / size),
        leakage,
    )


def _spaces(n: int, basis: np.ndarray) -> dict[str, np.ndarray]:
    """Orthonormal coordinates of G, L and M."""
    g = np.eye(n) - 1 / n
    norms = np.array([g @ np.diag(np.eye(n)[0] - np.eye(n)[i]) @ g for i in range(1, n)])
    coordinates = {"G": g[None], "L": norms}
    spaces = {name: np.linalg.qr(np.einsum("aij,bij->ab", basis, m))[0] for name, m in coordinates.items()}
    center = np.einsum("aij,ik,bkl,lj->ab", basis, g, basis, g)
    rest = center - sum(space @ space.T for space in spaces.values())
    values, vectors = np.linalg.eigh(rest)
    return spaces | {"M": vectors[:, values > 0.5]}


def layer_operator(n: int | float, step: float = 1e-4) -> Float[np.ndarray, "k k"]:
    """Derivative of one infinitely wide layer of batch normalization and ReLU at BSB1, by differences of fourth order.

    Nothing is centered by hand on either side: this is the operator U composed with the centering of the input.

    Args:
        n: batch size, at least 4.
        step: of the differences, in units of mu.

    Returns:
        Its matrix in the basis of `symmetric_basis`.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> facts = operator_facts(layer_operator(4), layer_eigenvalues(4), 4)
        >>> facts.centered_multiplicities, facts.formula_error < 1e-6
        ([1, 2, 3], True)
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    mu = relu_symmetric_fixed_point(n).centered
    base, basis, size = mu * np.eye(n) + 1, symmetric_basis(n), step * mu
    columns = []
    for direction in basis:
        at = {f: batch_norm_relu_transform(base + f * size * direction) for f in (-2, -1, 1, 2)}
        change = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * size)
        columns.append(np.einsum("aij,ij->a", basis, change))
    return np.array(columns).T


def layer_eigenvalues(n: int | float) -> dict[str, float]:
    """The multipliers of ReLU at BSB1 under the names of this module.

    Args:
        n: batch size, at least 4.

    Raises:
        ValueError: n < 4.

    Example:
        >>> round(layer_eigenvalues(8)["L"], 4)
        0.7436
    """
    known = relu_forward_multipliers(n)
    return {"G": known.average_norm, "L": known.norms, "M": known.covariances}


def shared_spectrum_error(n: int | float) -> float:
    """Nonzero eigenvalues of U o G against those of G o U, both from `layer_operator`: the AB-BA correspondence.

    Args:
        n: batch size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> shared_spectrum_error(4) < 1e-6
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    matrix, basis, g = layer_operator(n), symmetric_basis(n), np.eye(n) - 1 / n
    center = np.einsum("aij,ik,bkl,lj->ab", basis, g, basis, g)
    one, two = (np.sort(np.linalg.eigvals(m).real) for m in (matrix, center @ matrix))
    return float(np.abs(one - two).max())


def lifted_eigenvector_error(n: int | float, generator: np.random.Generator) -> float:
    """The source's lifted eigenvectors of BDOS(U, V, w): (A, 0) on the diagonal and V{A}/(lambda - w) between.

    Args:
        n: batch size, at least 4.
        generator: draws U and V, ultrasymmetric, and w.

    Returns:
        Largest residual |T x - lambda x| / |x| over the eigenvectors A of U, and over those with zero diagonal blocks.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> lifted_eigenvector_error(4, np.random.default_rng(0)) < 1e-10
        True
    """
    n = checked_integer_batch(n, LINEARIZATION_MINIMUM)
    size = n * (n + 1) // 2
    u = operator_matrix({name: float(generator.standard_normal()) for name in PATTERNS}, n)
    v, w = generator.standard_normal((n * n, size)), float(generator.standard_normal())
    whole = np.zeros((2 * size + n * n,) * 2)
    whole[:size, :size] = whole[size : 2 * size, size : 2 * size] = u
    whole[2 * size :, :size] = v
    whole[2 * size :, size : 2 * size] = generator.standard_normal((n * n, size))
    whole[2 * size :, 2 * size :] = w * np.eye(n * n)
    values, vectors = np.linalg.eig(u)
    worst = float(np.abs(whole[:, 2 * size :] - np.eye(len(whole))[:, 2 * size :] * w).max())
    for value, vector in zip(values, vectors.T, strict=True):
        lifted = np.concatenate([vector, np.zeros(size), v @ vector / (value - w)])
        worst = max(worst, float(np.linalg.norm(whole @ lifted - value * lifted) / np.linalg.norm(lifted)))
    return worst
