"""The backward map of batch normalization at the symmetric fixed point, as an operator on gradient covariances.

Under gradient independence a layer maps the covariance P (n x n) of a gradient over the batch to

    T(P) = c E[(G - v v^T) D P D (G - v v^T)],   c = n / (mu (n-3)),   D = Diag(phi'(b)), b = sqrt(n) v,

with v uniform on the unit sphere of the centered hyperplane (`bnlib.gradients`, arXiv 1902.08129, appendix G).
Permutations of the samples commute with T, and the centered symmetric matrices hold each of three inequivalent
representations once: multiples of G, L = {G diag(d) G, sum d = 0} and M = {zero diagonal, zero row sums}. So T is a
number on each of them. D sees two entries of v at a time, and the other entries enter T as polynomials, whose averages
given two entries are known: everything below is an average over one or two entries (`bnlib.sphere`). NumPy float64;
this module does not import torch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bnlib.activations import Activation
from bnlib.checks import checked_integer_batch
from bnlib.kernels import relu_cosine, relu_cosine_derivative
from bnlib.mean_field import GRADIENT_MINIMUM, cross_batch_decay, gradient_growth, mean_chi, symmetric_fixed_point
from bnlib.mean_field_survey import Measured, jackknife
from bnlib.sphere import one_entry, two_entries, uniform_on_sphere


@dataclass(frozen=True)
class BackwardMultipliers:
    """Eigenvalues of the backward map at the symmetric fixed point, per layer going down.

    Attributes:
        average: on multiples of G: the growth of the squared gradient.
        norms: on L, on differences of the samples' squared gradients (n - 1 directions).
        covariances: on M, on covariances between samples' gradients (n (n - 3) / 2 directions).
    """

    average: float
    norms: float
    covariances: float


def backward_multipliers(phi: Activation, n: int | float) -> BackwardMultipliers:
    """The three eigenvalues by spherical integration.

    On M and L the number is <P, T(P)> / |P|^2 for one P: (e1 - e2)(e3 - e4)^T + its transpose, and
    G (e1 e1^T - e2 e2^T) G.

    Args:
        phi: activation with its derivative; kinks are allowed at 0 only.
        n: batch size, at least 4.

    Returns:
        The eigenvalues; the first is `bnlib.mean_field.gradient_growth`.

    Raises:
        ValueError: n is not a whole number of at least 4, or phi is constant on the normalized batch.

    Example:
        >>> from bnlib.activations import activation
        >>> found = backward_multipliers(activation("relu"), 8)
        >>> round(found.average, 5), round(found.norms, 5), round(found.covariances, 5)
        (1.78819, 1.50273, 0.72328)
    """
    n = checked_integer_batch(n, GRADIENT_MINIMUM)
    c = n / (symmetric_fixed_point(phi, n).centered * (n - 3))
    x, weights = one_entry(n)
    v = x / math.sqrt(n)
    # <P, T(P)> = c sum_ij E D_i D_j P_ij Q_ij with Q = (G - v v^T) P (G - v v^T), other entries averaged.
    along = v * (1 - 1 / (n - 1)) * v
    diagonal = 1 - 2 / n - 2 * along + v**2 * (v**2 - (1 - v**2) / (n - 1))
    own = float(weights @ (phi.derivative(x) ** 2 * diagonal))
    pair = two_entries(n)
    slopes = phi.derivative(pair.first) * phi.derivative(pair.second)
    a, b = pair.first / math.sqrt(n), pair.second / math.sqrt(n)
    mean, square = -(a + b) / (n - 2), (1 - a**2 - b**2) / (n - 2)
    between = -1 / n - a * (mean - a) / n - ((1 - 1 / n) * a + mean / n) * b + a * b * (a**2 - square)
    norms = c * (own - 2 * pair.mean(slopes * between))
    other = ((a + b) ** 2 - (1 - a**2 - b**2)) / ((n - 2) * (n - 3))
    crossed = 1 - a * (a - mean) - b * (b - mean) + 2 * a * b * (a * b - (a + b) * mean + other)
    return BackwardMultipliers(gradient_growth(phi, n), norms, c * pair.mean(slopes * crossed))


def relu_backward_multipliers(n: int | float) -> BackwardMultipliers:
    """The three eigenvalues for ReLU in closed form, from moments of two correlated Gaussians that are both positive.

    Length and direction of a Gaussian vector are independent, so an average over the sphere of a polynomial of degree
    2 k in v is the Gaussian one over (n-1)(n+1)...(n+2k-3).

    Args:
        n: batch size of at least 4; any real number.

    Returns:
        The eigenvalues. As n grows they tend to pi/(pi-1), pi/(pi-1) and pi/(2 (pi-1)).

    Raises:
        ValueError: n < 4.

    Example:
        >>> large = relu_backward_multipliers(1e8)
        >>> [round(value * (math.pi - 1) / math.pi, 6) for value in (large.average, large.norms, large.covariances)]
        [1.0, 1.0, 0.5]
    """
    if not n >= GRADIENT_MINIMUM:
        raise ValueError(f"n must be a batch size of at least {GRADIENT_MINIMUM}, got {n}.")
    n = float(n)
    c = -1.0 / (n - 1)
    j, slope = float(relu_cosine(c)), float(relu_cosine_derivative(c))
    factor = n / ((1 - j) / 2 * (n - 3))
    both, s = slope / 2, math.sqrt((1 - c) * (1 + c)) / (2 * math.pi)
    g = (n - 1) / n  # variance of an entry of G z
    two, four = g / (n - 1), g**2 / ((n - 1) * (n + 1))
    square, product = two * (both + c * s), two * (c * both + s)
    squares = four * ((1 + 2 * c * c) * both + 3 * c * s)  # a^2 b^2
    cubic = four * (3 * c * both + s * (2 + c * c))  # a^3 b
    one_square, one_fourth = two / 2, four * 3 / 2
    own = (1 - 2 / n) / 2 - 2 * (1 - 1 / (n - 1)) * one_square + one_fourth
    own -= (one_square - one_fourth) / (n - 1)
    # -a (mean - a)/n - ((1 - 1/n) a + mean/n) b + a b (a^2 - square), mean = -(a+b)/(n-2), square = (1-a^2-b^2)/(n-2)
    sum_square = square + product  # E of (a + b) a over both positive
    between = -both / n + (sum_square / (n - 2) + square) / n - (1 - 1 / n) * product + sum_square / (n - 2) / n
    between += cubic - (product - 2 * cubic) / (n - 2)
    crossed = both - 2 * (square + sum_square / (n - 2))
    # 2 a b (a b + (a + b)^2 / (n-2) + ((a + b)^2 - 1 + a^2 + b^2) / ((n-2)(n-3)))
    total = 2 * cubic + 2 * squares  # E a b (a + b)^2
    crossed += 2 * (squares + total / (n - 2) + (total + 2 * cubic - product) / ((n - 2) * (n - 3)))
    average = (n - 2 + j + slope) / ((n - 3) * (1 - j))
    return BackwardMultipliers(average, factor * (own - 2 * between), factor * crossed)


def backward_operator(phi: Activation, n: int | float) -> Float[np.ndarray, "k k"]:
    """T on all symmetric n x n matrices, centered or not, as a matrix in orthonormal coordinates.

    Args:
        phi: activation with its derivative; kinks are allowed at 0 only.
        n: batch size, at least 4; k = n (n+1) / 2.

    Returns:
        The matrix, column by column the images of e_i e_i^T and (e_i e_j^T + e_j e_i^T) / sqrt(2).

    Raises:
        ValueError: n is not a whole number of at least 4, or phi is constant on the normalized batch.

    Example:
        >>> from bnlib.activations import activation
        >>> backward_operator(activation("relu"), 5).shape
        (15, 15)
    """
    n = checked_integer_batch(n, GRADIENT_MINIMUM)
    c = n / (symmetric_fixed_point(phi, n).centered * (n - 3))
    x, weights = one_entry(n)
    single = c * _image(x[:, None] / math.sqrt(n), weights * phi.derivative(x) ** 2, n)
    pair = two_entries(n)
    points = np.column_stack([pair.first, pair.second]) / math.sqrt(n)
    double = c * _image(points, pair.weights * phi.derivative(pair.first) * phi.derivative(pair.second), n)
    indices = [(i, j) for i in range(n) for j in range(i, n)]
    columns = []
    for i, j in indices:
        image, seen = (single, [i]) if i == j else (double, [i, j])
        order = [*seen, *(k for k in range(n) if k not in seen)]
        matrix = np.empty((n, n))
        matrix[np.ix_(order, order)] = image
        matrix = (matrix + matrix.T) / 2 * (1.0 if i == j else math.sqrt(2))
        columns.append([matrix[a, b] * (1.0 if a == b else math.sqrt(2)) for a, b in indices])
    return np.array(columns).T


def _image(points: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
    """Sum of weights times E[(G e_1 - v_1 v)(G e_last - v_last v)^T] given the first entries of v."""
    seen = points.shape[1]
    rest = n - seen
    total, left = points.sum(axis=1), 1 - (points**2).sum(axis=1)
    mean = np.concatenate([points, np.repeat(-total[:, None] / rest, rest, axis=1)], axis=1)
    second = mean[:, :, None] * mean[:, None, :]
    if rest > 1:
        between = (total**2 - left) / (rest * (rest - 1))
        block = np.where(np.eye(rest, dtype=bool), (left / rest)[:, None, None], between[:, None, None])
        second[:, seen:, seen:] = block
    centering = np.eye(n) - 1 / n
    first, last = centering[0], centering[seen - 1]
    a, b = points[:, 0], points[:, -1]
    image = weights.sum() * np.outer(first, last)
    image -= np.outer(first, (weights * b) @ mean) + np.outer((weights * a) @ mean, last)
    return image + np.einsum("k,kij->ij", weights * a * b, second)


def operator_facts(phi: Activation, n: int | float) -> dict[str, float | int]:
    """What the sources say of the operator, on the whole matrix: eigenspaces, eigenvalues, self-adjointness.

    Args:
        phi: activation with its derivative.
        n: batch size, at least 4.

    Returns:
        "asymmetry_before", |T - T^T| / |T| on all symmetric matrices, and "asymmetry_after", the same for P T P with P
        the centering on both sides; "average", "norms" and "covariances", how many eigenvalues on the centered
        matrices lie within 1e-9 of the three of `backward_multipliers`; "error", the largest distance of one from the
        nearest of the three; "kernel", the eigenvalues of P T P below 1e-9 (expected: n, the others' number).

    Raises:
        ValueError: as `backward_operator`.

    Example:
        >>> from bnlib.activations import activation
        >>> found = operator_facts(activation("tanh"), 6)
        >>> found["average"], found["norms"], found["covariances"], found["error"] < 1e-10
        (1, 5, 9, True)
    """
    operator, wanted = backward_operator(phi, n), backward_multipliers(phi, n)
    n = int(n)
    indices = [(i, j) for i in range(n) for j in range(i, n)]
    centering = np.eye(n) - 1 / n
    columns = []
    for i, j in indices:
        unit = np.zeros((n, n))
        unit[i, j] = unit[j, i] = 1.0 if i == j else math.sqrt(0.5)
        image = centering @ unit @ centering
        columns.append([image[a, b] * (1.0 if a == b else math.sqrt(2)) for a, b in indices])
    projector = np.array(columns).T
    inner = projector @ operator @ projector
    values = np.linalg.eigvals(inner).real
    values = values[np.argsort(-np.abs(values))][: n * (n - 1) // 2]
    known = {"average": wanted.average, "norms": wanted.norms, "covariances": wanted.covariances}
    distance = np.abs(values[:, None] - np.array(list(known.values())))
    return {
        "asymmetry_before": _asymmetry(operator),
        "asymmetry_after": _asymmetry(inner),
        **{name: int((distance[:, index] < 1e-9).sum()) for index, name in enumerate(known)},
        "error": float(distance.min(axis=1).max()),
        "kernel": int((np.abs(np.linalg.eigvals(inner)) < 1e-9).sum()),
    }


def _asymmetry(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix - matrix.T) / np.linalg.norm(matrix))


def monte_carlo_backward(
    phi: Activation, n: int | float, draws: int, generator: np.random.Generator, parts: int = 50
) -> dict[str, Measured]:
    """The three eigenvalues from drawn normalized batches: traces of P -> B P B^T over the three spaces.

    Args:
        phi: activation with its derivative.
        n: batch size, at least 4.
        draws: number of batches, at least `parts`.
        generator: source of the randomness.
        parts: independent parts for the error.

    Returns:
        "average", "norms" and "covariances", with jackknife errors. E[1/|G h|^2] is exact here, so nothing is heavy.

    Raises:
        ValueError: n is not a whole number of at least 4, or draws is below parts.

    Example:
        >>> from bnlib.activations import activation
        >>> found = monte_carlo_backward(activation("relu"), 8, 5000, np.random.default_rng(0))
        >>> abs(found["norms"].mean - 1.5027) < 5 * found["norms"].error < 0.2
        True
    """
    n = checked_integer_batch(n, GRADIENT_MINIMUM)
    if draws < parts:
        raise ValueError(f"draws must be at least {parts}, got {draws}.")
    centering, rows = np.eye(n) - 1 / n, []
    for _ in range(parts):
        x = uniform_on_sphere(n, draws // parts, generator)
        v, values = x / math.sqrt(n), phi(x)
        centered = values - values.mean(axis=1, keepdims=True)
        b = (centering - v[:, :, None] * v[:, None, :]) * phi.derivative(x)[:, None, :] @ centering
        whole = (b**2).sum(axis=(1, 2))
        diagonal = np.diagonal(b, axis1=1, axis2=2)
        norms = n / (n - 2) * ((diagonal**2).sum(axis=1) - whole / n)
        traces = (diagonal.sum(axis=1) ** 2 + (b * b.transpose(0, 2, 1)).sum(axis=(1, 2))) / 2
        covariances = traces - whole / (n - 1) - norms
        rows.append([(centered**2).sum(axis=1).mean() / (n - 1), whole.mean(), norms.mean(), covariances.mean()])
    c, sums = n / (n - 3), np.array(rows)
    return {
        "average": jackknife(sums, lambda s: c * s[1] / (s[0] * (n - 1))),
        "norms": jackknife(sums, lambda s: c * s[2] / (s[0] * (n - 1))),
        "covariances": jackknife(sums, lambda s: c * s[3] * 2 / (s[0] * n * (n - 3))),
    }


def cross_backward(phi: Activation, n: int | float) -> dict[str, float]:
    """The map of the cross-covariance of two independent batches' gradients, Q -> A Q A^T, A = E of the Jacobian.

    A comes from phi' here, and from phi alone in `bnlib.mean_field.cross_batch_decay`; the two agree by integration by
    parts. Before centering A is a multiple of G already.

    Args:
        phi: activation with its derivative; kinks are allowed at 0 only.
        n: batch size, at least 4.

    Returns:
        "decay", the eigenvalue on the matrices with centered rows and columns ((n-1)^2 directions), "difference" from
        the other form, and "elsewhere", the largest size of an entry of A - (its multiple of G).

    Raises:
        ValueError: n is not a whole number of at least 4, or phi is constant on the normalized batch.

    Example:
        >>> from bnlib.activations import activation
        >>> found = cross_backward(activation("relu"), 8)
        >>> round(found["decay"], 4), abs(found["difference"]) < 1e-12, found["elsewhere"] < 1e-12
        (0.7097, True, True)
    """
    n = checked_integer_batch(n, GRADIENT_MINIMUM)
    mu = symmetric_fixed_point(phi, n).centered
    x, weights = one_entry(n)
    v, slope = x / math.sqrt(n), phi.derivative(x)
    # Entries of E[(G - v v^T) D]: on the diagonal, and beside it, where v_i is averaged given v_j.
    diagonal = float(weights @ (slope * (1 - 1 / n - v**2)))
    beside = float(weights @ (slope * (-1 / n + v**2 / (n - 1))))
    inverse = 1 / mean_chi(n - 1) / (n - 2) * mean_chi(n - 1) ** 2  # E[1/chi_k] = E[chi_k] / (k - 1)
    multiple = diagonal - beside
    decay = n / mu * inverse**2 * multiple**2
    elsewhere = max(abs(diagonal - multiple * (1 - 1 / n)), abs(beside + multiple / n))
    return {"decay": decay, "difference": decay - cross_batch_decay(phi, n), "elsewhere": elsewhere}


def jacobian_error(
    phi: Activation, n: int | float, draws: int, generator: np.random.Generator, step: float = 1e-4
) -> float:
    """Largest relative error of the layer's Jacobian formula against finite differences of the layer itself.

    The formula is D (I - v v^T) G sqrt(n) / |G h|; the differences are central ones of fourth order.

    Args:
        phi: a smooth activation.
        n: batch size, at least 3.
        draws: random pre-activations.
        generator: source of the randomness.
        step: of the differences, in units of the pre-activation.

    Raises:
        ValueError: n is not a whole number of at least 3, or draws is below 1.

    Example:
        >>> from bnlib.activations import activation
        >>> jacobian_error(activation("tanh"), 6, 3, np.random.default_rng(0)) < 1e-8
        True
    """
    n = checked_integer_batch(n, 3)
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}.")
    centering, worst = np.eye(n) - 1 / n, 0.0
    for _ in range(draws):
        h = generator.standard_normal(n)
        size = np.linalg.norm(centering @ h)
        v = centering @ h / size
        exact = phi.derivative(math.sqrt(n) * v)[:, None] * (centering - np.outer(v, v)) * math.sqrt(n) / size
        numeric = _differences(lambda one: phi(_normalized(one)), h, step)
        worst = max(worst, float(np.abs(numeric - exact).max() / np.abs(exact).max()))
    return worst


def _normalized(h: np.ndarray) -> np.ndarray:
    h = h - h.mean()
    return h / math.sqrt(float((h**2).mean()))


def _differences(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray, step: float) -> np.ndarray:
    columns = []
    for unit in step * np.eye(len(at)):
        near = function(at + unit) - function(at - unit)
        far = function(at + 2 * unit) - function(at - 2 * unit)
        columns.append((8 * near - far) / (12 * step))
    return np.array(columns).T
