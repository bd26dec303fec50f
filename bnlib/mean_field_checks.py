"""Single statements of the mean-field theory of batch normalization, checked by finite differences or exactly.

NumPy float64; this module does not import torch.
"""

import math

import numpy as np

from bnlib.activations import Activation, activation, power_relu
from bnlib.checks import checked_integer_batch
from bnlib.homogeneous import homogeneous, homogeneous_fixed_point, kernel_cosine, power_cosine, power_cosine_derivative
from bnlib.homogeneous_layer import homogeneous_transform, power_mean_square
from bnlib.infinite_width import next_covariance
from bnlib.mean_field import cross_batch_constant, relu_forward_multipliers, relu_symmetric_fixed_point
from bnlib.mean_field_survey import network_covariances
from bnlib.outlier_fixed_points import outlier_state
from bnlib.plain_layers import pair_average
from bnlib.two_block import block_covariance, group_average, log_drift, recentered_outlier_ratio
from bnlib.v_transform import batch_norm_relu_transform


def _relu_derivative(n: int, direction: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Derivative of the transform at mu G in a direction, by a central difference of fourth order."""
    # The constant keeps the matrices positive semi-definite in directions that are not centered.
    base = relu_symmetric_fixed_point(n).centered * np.eye(n) + 1
    scale = step * (base[0, 0] - 1)

    def at(factor: float | int) -> np.ndarray:
        return batch_norm_relu_transform(base + factor * scale * direction)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * scale)


def relu_spectrum(n: int) -> dict[str, float | int]:
    """All eigenvalues of the linearized layer on centered covariances, from finite differences of the transform.

    Args:
        n: batch size, at least 4.

    Returns:
        For each of the three predicted eigenvalues the number of computed ones within 1e-5 of it, and the largest
        distance of a computed eigenvalue from the nearest predicted one.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> found = relu_spectrum(5)
        >>> found["average_norm"], found["norms"], found["covariances"], found["error"] < 1e-6
        (1, 4, 5, True)
    """
    n = checked_integer_batch(n, 4)
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0][:, 1:]
    pairs = [(i, j) for i in range(n - 1) for j in range(i, n - 1)]

    def coordinates(k: np.ndarray) -> list[float]:
        inner = basis.T @ k @ basis
        return [inner[i, j] * (1.0 if i == j else math.sqrt(2)) for i, j in pairs]

    columns = []
    for i, j in pairs:
        unit = np.zeros((n - 1, n - 1))
        unit[i, j] = unit[j, i] = 1.0 if i == j else math.sqrt(0.5)
        columns.append(coordinates(_relu_derivative(n, basis @ unit @ basis.T)))
    found = np.linalg.eigvals(np.array(columns).T).real
    known = relu_forward_multipliers(n)
    wanted = {"average_norm": known.average_norm, "norms": known.norms, "covariances": known.covariances}
    counts = {name: int((np.abs(found - value) < 1e-5).sum()) for name, value in wanted.items()}
    nearest = np.abs(found[:, None] - np.array(list(wanted.values()))).min(axis=1)
    return {**counts, "error": float(nearest.max())}


def ultrasymmetric_covariances(n: int) -> float:
    """lambda_M of ReLU by the source's formula [12|12] + [12|21] - 4 [12|13] + 2 [12|34] (section E.5).

    [ij|kl] is the derivative of entry ij of the layer with respect to entry kl of the covariance.

    Args:
        n: batch size, at least 4.

    Raises:
        ValueError: n is not a whole number of at least 4.

    Example:
        >>> abs(ultrasymmetric_covariances(6) - relu_forward_multipliers(6).covariances) < 1e-6
        True
    """
    n = checked_integer_batch(n, 4)

    def both(k: int, l: int) -> float:  # noqa: E741
        direction = np.zeros((n, n))
        direction[k, l] = direction[l, k] = 1.0
        # The layer sees the centered covariance only, and its derivative is centered on the way in.
        return float(_relu_derivative(n, direction)[0, 1])

    return both(0, 1) - 2 * both(0, 2) + both(2, 3)


def one_step_error(n: int) -> float:
    """Largest distance from BSB1 after one layer from covariances with equal diagonal and equal other entries.

    Args:
        n: batch size, at least 4.

    Example:
        >>> one_step_error(8) < 1e-12
        True
    """
    worst = 0.0
    for alpha, a, b in ((1.0, 1.0, 0.0), (2.0, 1.0, -0.5), (3.0, 1.0, 1.0)):
        phi = homogeneous(alpha, a, b)
        point = homogeneous_fixed_point(phi, n)
        expected = point.off_diagonal + point.centered * np.eye(n)
        for cosine in (-0.5 / (n - 1), 0.0, 0.9):
            found = homogeneous_transform((1 - cosine) * np.eye(n) + cosine, phi)
            worst = max(worst, float(np.abs(found - expected).max() / point.diagonal))
    return worst


def identity_factor_error(n: int) -> float:
    """Largest deviation of the linear layer from B/(B-1) G on a covariance with equal samples.

    Args:
        n: batch size, at least 4.

    Example:
        >>> identity_factor_error(8) < 1e-12
        True
    """
    centering = np.eye(n) - 1 / n
    return float(np.abs(batch_norm_relu_transform(3 * np.eye(n) + 1, slope=1) - n / (n - 1) * centering).max())


def symmetric_eigenvalue_error(n: int) -> float:
    """Largest error of the eigenvalues a - b and (n-1) b + a of S with diagonal a, others b, and of G S G = (a-b) G.

    Args:
        n: size, at least 2.

    Example:
        >>> symmetric_eigenvalue_error(8) < 1e-13
        True
    """
    a, b = 1.7, 0.4
    s, centering = (a - b) * np.eye(n) + b, np.eye(n) - 1 / n
    values = np.linalg.eigvalsh(s)
    wanted = np.r_[np.full(n - 1, a - b), (n - 1) * b + a]
    centered = np.abs(centering @ s @ centering - (a - b) * centering).max()
    return float(max(np.abs(values - wanted).max(), centered))


def slope_identity_error() -> float:
    """Largest error of J_alpha' = alpha^2/(2 alpha - 1) J_(alpha-1), against central differences.

    Example:
        >>> slope_identity_error() < 1e-8
        True
    """
    c, step, worst = np.linspace(-0.9, 0.9, 19), 1e-5, 0.0
    for alpha in (0.6, 1.0, 1.7, 2.0, 4.0):
        numeric = (power_cosine(c + step, alpha) - power_cosine(c - step, alpha)) / (2 * step)
        worst = max(worst, float(np.abs(numeric - power_cosine_derivative(c, alpha)).max()))
    return worst


def diagonal_factor_error(generator: np.random.Generator) -> float:
    """Largest relative error of V(D S D) = D^alpha V(S) D^alpha, entries of V by quadrature in the plane.

    Args:
        generator: draws D and the cosines of S.

    Example:
        >>> bool(diagonal_factor_error(np.random.default_rng(0)) < 1e-12)
        True
    """
    worst = 0.0
    for alpha, a, b in ((0.7, 1.0, 0.3), (2.0, 1.0, -1.0), (5.0, 1.0, 0.0)):
        phi = homogeneous(alpha, a, b).activation
        for cosine in generator.uniform(-1, 1, 5):
            first, second = np.exp(generator.standard_normal(2))
            plain = pair_average(phi, 1.0, 1.0, cosine)
            scaled = pair_average(phi, first**2, second**2, first * second * cosine)
            size = pair_average(phi, 1.0, 1.0, 1.0)
            worst = max(worst, abs(scaled / (first * second) ** alpha - plain) / size)
    return worst


def kernel_quadrature_error() -> float:
    """Largest error of E[phi(x) phi(y)] = E[rho^2] J_phi(c) against quadrature in the plane.

    Example:
        >>> kernel_quadrature_error() < 1e-11
        True
    """
    worst = 0.0
    for alpha, a, b in ((0.3, 1.0, 0.0), (0.75, 1.0, 0.4), (1.0, 1.0, 0.1), (2.0, 1.0, -1.0), (3.5, 1.0, 0.5)):
        phi = homogeneous(alpha, a, b)
        for c in (-1.0, -0.8, -0.2, 0.0, 0.3, 0.95, 1.0):
            exact = power_mean_square(alpha) * float(kernel_cosine(c, phi))
            worst = max(worst, abs(pair_average(phi.activation, 1.0, 1.0, c) - exact) / power_mean_square(alpha))
    return worst


def derivative_identities_error() -> float:
    """Largest error of E[phi'(x) phi'(y)] = E[rho^2] J_phi'(c), phi = a rho(x) - b rho(-x), rho(x) = max(x, 0)^alpha.

    The left side by quadrature in the plane; the slope of J_phi from that of J_alpha.

    Example:
        >>> derivative_identities_error() < 1e-6
        True
    """
    worst = 0.0
    for alpha, a, b in ((0.8, 1.0, 0.3), (1.0, 1.0, 0.3), (1.7, 1.0, -0.5), (2.0, 1.0, 0.0), (4.0, 1.0, 1.0)):
        phi = homogeneous(alpha, a, b).activation
        slope = Activation("slope", phi.derivative, phi.derivative)
        for c in (-0.9, -0.3, 0.0, 0.5, 1.0):
            positive, negative = (float(power_cosine_derivative(x, alpha)) for x in (c, -c))
            exact = power_mean_square(alpha) * ((a**2 + b**2) * positive + 2 * a * b * negative)
            found = pair_average(slope, 1.0, 1.0, c)
            worst = max(worst, abs(found - exact) / power_mean_square(alpha))
    return worst


def winner_positions(n: int, alpha: float | int, width: int, depth: int, networks: int, generator) -> list[int]:
    """Which sample ends up largest, in networks with max(x, 0)^alpha that all start from equal, orthogonal samples.

    Args:
        n: batch size.
        alpha: degree.
        width: neurons in each layer.
        depth: layers.
        networks: number of them.
        generator: NumPy source of the randomness.

    Returns:
        The index for each network.

    Example:
        >>> len(winner_positions(6, 2, 32, 3, 4, np.random.default_rng(0)))
        4
    """
    start = np.tile(np.eye(n), (networks, 1, 1))
    *_, last = network_covariances(power_relu(alpha), start, width, depth, generator)
    return np.argmax(np.diagonal(last, axis1=1, axis2=2), axis=1).tolist()


def rank_one(n: int, alpha: float | int) -> dict[str, float]:
    """The covariance of rank one with one distinguished sample: is it fixed, and does it attract?

    Args:
        n: batch size, at least 5.
        alpha: degree of max(x, 0)^alpha.

    Returns:
        `error`: of one exact layer (b = +-sqrt(n) q) against the direction q, `drift`: log(next/ratio) at ratio 1e-40,
        and `exponent`: by which power the next ratio depends on a tiny ratio.

    Example:
        >>> found = rank_one(10, 30)
        >>> found["error"] < 1e-12, round(found["exponent"], 3)
        (True, 0.5)
    """
    q = np.r_[1.0, np.full(n - 1, -1.0 / (n - 1))] * math.sqrt((n - 1) / n)
    phi = homogeneous(alpha)
    values = phi.activation(math.sqrt(n) * np.stack([q, -q]))
    centered = values - values.mean(axis=1, keepdims=True)
    layer = centered.T @ centered / 2
    error = float(np.abs(layer / np.trace(layer) - np.outer(q, q)).max())
    far, near = log_drift(1e-40, n, phi), log_drift(1e-36, n, phi)
    return {"error": error, "drift": far, "exponent": 1 + (near - far) / math.log(1e4)}


def outlier_is_a_block_state(n: int) -> dict[str, float]:
    """The outlier state of recentered ReLU networks without rescaling, in this chapter's terms.

    Args:
        n: batch size, at least 7.

    Returns:
        `fixed`: how far one layer of the recentered map moves the block covariance, up to scale; `pattern`: how far the
        result is from a 1 x 1 block and a cluster; `drift`: log(next/ratio) when rescaling is switched on there.

    Raises:
        NoStateError: n is below the saddle-node between 6 and 7.

    Example:
        >>> found = outlier_is_a_block_state(8)
        >>> found["fixed"] < 1e-9, found["pattern"] < 1e-12, found["drift"] > 0
        (True, True, True)
    """
    ratio = recentered_outlier_ratio(n)
    start = block_covariance(n, 1, 1.0, ratio)
    after = next_covariance(start)
    after = after - after.mean(axis=0)
    after = after - after.mean(axis=1, keepdims=True)
    after *= np.trace(start) / np.trace(after)
    pattern = np.abs(after - group_average(after, 1)).max()
    return {
        "fixed": float(np.abs(after - start).max()),
        "pattern": float(pattern),
        "drift": log_drift(ratio, n, homogeneous(1)),
        "norm_ratio": outlier_state(n).norm_ratio,
    }


def cross_slope_error(n: int) -> float:
    """Largest error of E[phi(b_1)]^2 = (a - b)^2 E[rho(b_1)]^2, by integration over the sphere, not by the closed form.

    Args:
        n: batch size of the constant.

    Example:
        >>> cross_slope_error(8) < 1e-12
        True
    """
    worst = 0.0
    for alpha in (0.7, 1.0, 2.0):
        unit = cross_batch_constant(homogeneous(alpha).activation, n)
        for a, b in ((1.0, 0.5), (2.0, 1.5), (1.0, 1.0), (0.2, -0.9)):
            found = cross_batch_constant(homogeneous(alpha, a, b).activation, n)
            worst = max(worst, abs(found - (a - b) ** 2 * unit))
    return worst


def rank_one_eigenvalues(n: int, names: list[str]) -> list[dict[str, float | str]]:
    """The eigenvalue of the centered covariance after a layer at the rank-one state with one distinguished sample.

    There b = +-sqrt(n) q with equal probability, so that the distinguished sample sees +-sqrt(n-1) and each other one
    -+1/sqrt(n-1). With the differences d+ = phi(sqrt(n-1)) - phi(-1/sqrt(n-1)) and d- = phi(-sqrt(n-1)) -
    phi(1/sqrt(n-1)) the eigenvalue is (n-1)/(2n) (d+^2 + d-^2).

    Args:
        n: batch size, at least 5.
        names: of activations, or "relu^" and a degree.

    Returns:
        Rows with activation, `value` (of the layer itself), `formula`, `printed` (1/n) and `error`, how far the layer
        is from value * q q^T.

    Example:
        >>> row, = rank_one_eigenvalues(10, ["relu"])
        >>> abs(row["value"] - row["formula"]) < 1e-14, round(row["formula"], 3)
        (True, 4.1)
    """
    q = np.r_[1.0, np.full(n - 1, -1.0 / (n - 1))] * math.sqrt((n - 1) / n)
    rows = []
    for name in names:
        phi = power_relu(float(name[5:])) if name.startswith("relu^") else activation(name)
        values = phi(math.sqrt(n) * np.stack([q, -q]))
        centered = values - values.mean(axis=1, keepdims=True)
        layer = centered.T @ centered / 2
        far, near = math.sqrt(n - 1), 1 / math.sqrt(n - 1)
        differences = phi(np.array([far, -far])) - phi(np.array([-near, near]))
        value = float(q @ layer @ q)
        rows.append(
            {
                "activation": name,
                "value": value,
                "formula": (n - 1) / (2 * n) * float((differences**2).sum()),
                "printed": 1 / n,
                "error": float(np.abs(layer - value * np.outer(q, q)).max() / value),
            }
        )
    return rows


def block_spectrum_error(n: int, generator: np.random.Generator) -> float:
    """Largest error of the eigenvectors and eigenvalues of G S G for a general BSB2 matrix S, over all block sizes.

    S has a diagonal value and an off-diagonal value in either block and one value between. Zero-sum vectors of a block
    have the eigenvalue "diagonal minus off-diagonal" of the block, q = (1/k, ..., -1/(n-k), ...) has q.S.q/q.q, and the
    constant vector 0.

    Args:
        n: batch size, at least 5.
        generator: draws the five values.

    Example:
        >>> block_spectrum_error(7, np.random.default_rng(0)) < 1e-12
        True
    """
    worst, g = 0.0, np.eye(n) - 1 / n
    for k in range(1, n):
        own, off, other, beside, between = generator.standard_normal(5)
        s = np.full((n, n), between)
        s[:k, :k] = off + (own - off) * np.eye(k)
        s[k:, k:] = beside + (other - beside) * np.eye(n - k)
        q = np.r_[np.full(k, 1 / k), np.full(n - k, -1 / (n - k))]
        m = g @ s @ g
        along = float(q @ s @ q) / float(q @ q)
        worst = max(worst, float(np.abs(m @ q - along * q).max()), float(np.abs(m.sum(axis=0)).max()))
        wanted = np.sort(np.r_[np.full(k - 1, own - off), np.full(n - k - 1, other - beside), along, 0.0])
        worst = max(worst, float(np.abs(np.linalg.eigvalsh(m) - wanted).max()))
        for block, value in ((range(k), own - off), (range(k, n), other - beside)):
            for index in list(block)[1:]:
                vector = np.eye(n)[block[0]] - np.eye(n)[index]
                worst = max(worst, float(np.abs(m @ vector - value * vector).max()))
    return worst


def linear_limit_error(n: int, ranks: list[int], layers: int, generator: np.random.Generator) -> float:
    """Distance of a deep linear network's covariance from n/C times the projection on the range of G S G, S of rank C.

    Args:
        n: batch size.
        ranks: C of the random inputs, each at least 2 and at most n - 1.
        layers: number of layers.
        generator: draws the inputs, whose eigenvalues differ, in a random eigenbasis.

    Example:
        >>> linear_limit_error(4, [2], 40, np.random.default_rng(0)) < 1e-9
        True
    """
    worst = 0.0
    for rank in ranks:
        x = generator.standard_normal((n, rank)) * np.exp(generator.standard_normal(rank))
        x = (x - x.mean(axis=0)) @ np.diag(np.exp(generator.standard_normal(rank)))
        k = x @ x.T + 1.0
        basis = np.linalg.qr(x)[0]
        for _ in range(layers):
            k = batch_norm_relu_transform(k, slope=1)
        worst = max(worst, float(np.abs(k - n / rank * basis @ basis.T).max()))
    return worst


def concentration(widths: list[int], layers: int, networks: int, generator: np.random.Generator) -> dict[str, list]:
    """Covariances of ReLU networks with batch normalization against the infinitely wide map, over the width.

    Args:
        widths: ascending.
        layers: after which the comparison is made.
        networks: number of each.
        generator: source of the randomness.

    Returns:
        `width`, `deviation` (root mean square over networks and entries), and its relative standard `error`.

    Example:
        >>> found = concentration([64, 256], 3, 50, np.random.default_rng(0))
        >>> 1.5 < found["deviation"][0] / found["deviation"][1] < 2.7
        True
    """
    x = generator.standard_normal((6, 8)) * np.exp(0.5 * generator.standard_normal((6, 1)))
    exact = x @ x.T
    for _ in range(layers):
        exact = batch_norm_relu_transform(exact)
    deviations, errors = [], []
    for width in widths:
        start = np.tile(x @ x.T, (networks, 1, 1))
        *_, last = network_covariances(activation("relu"), start, width, layers, generator)
        squares = ((last - exact) ** 2).mean(axis=(1, 2))
        deviations.append(float(np.sqrt(squares.mean())))
        errors.append(float(squares.std(ddof=1) / math.sqrt(networks) / squares.mean() / 2))
    return {"width": [int(w) for w in widths], "deviation": deviations, "error": errors}


def nonlocality(n: int) -> dict[str, float]:
    """How much entry 12 of the next covariance changes when only sample 4's variance is multiplied by 9.

    Args:
        n: batch size, at least 5.

    Returns:
        Relative change `with_norm` and `without` batch normalization (ReLU).

    Example:
        >>> found = nonlocality(8)
        >>> found["with_norm"] > 0.01 > found["without"]
        True
    """
    plain, other = np.eye(n) + 0.3, np.eye(n) + 0.3
    other[3, 3] *= 9
    one, two = (batch_norm_relu_transform(s)[0, 1] for s in (plain, other))
    relu = activation("relu")
    far = [pair_average(relu, s[0, 0], s[1, 1], s[0, 1]) for s in (plain, other)]
    return {"with_norm": abs(float(two / one) - 1), "without": abs(far[1] / far[0] - 1)}
