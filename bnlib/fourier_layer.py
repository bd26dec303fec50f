"""The Fourier method at any covariance: averages of waves over a normalized batch.

b = sqrt(n) y / |y| with y ~ N(0, K), K = G S G. Fix the length: 1 = int dlambda delta(|y|^2 - lambda), write the delta
function as a Fourier integral over omega, and the average over y is Gaussian (arXiv 1902.08129, section E.2):

    E exp(i <t, b>) = int_0^inf dlambda (1/(2 pi i)) int dz exp(z lambda) det(I + 2 z K)^(-1/2)
                      exp(-n/(2 lambda) t^T K (I + 2 z K)^(-1) t),     z = -i omega.

Along the imaginary axis the order of integration matters; the inner integral is an inverse Laplace transform, whose
singularities lie on the negative half axis, and on Talbot's contour around them both integrals converge geometrically.
sin and cos are two waves each; other activations are integrals of waves. NumPy float64; this module does not import
torch.
"""

import math

import numpy as np
from jaxtyping import Float

from bnlib.fourier import sine_fixed_point
from bnlib.v_transform import centered_eigensystem

_CONTOUR = 28  # nodes; exp(N) grows along the contour, so that more of them cost digits
_STEP = 0.05  # in log lambda
_NOTHING = 36.0  # the logarithm of what counts as nothing


def _talbot(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Points z and weights exp(z) dz/(2 pi i) of Weideman's form of Talbot's contour."""
    theta = -math.pi + (np.arange(nodes) + 0.5) * 2 * math.pi / nodes
    tangent = np.tan(0.6407 * theta)
    z = nodes * (0.5017 * theta / tangent - 0.6122 + 0.2645j * theta)
    slope = 0.5017 / tangent - 0.5017 * 0.6407 * theta / np.sin(0.6407 * theta) ** 2 + 0.2645j
    return z, np.exp(z) * slope / 1j


def wave_averages(
    covariance: Float[np.ndarray, "n n"], frequencies: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, " k"]:
    """E cos<t, b> for the columns t of `frequencies`; the average of the sine vanishes by symmetry.

    Args:
        covariance: positive semi-definite, shape (n, n), n >= 3; its scale and its mean do not matter.
        frequencies: columns t, shape (n, k).

    Returns:
        The averages.

    Raises:
        ValueError: covariance is not finite, symmetric and positive semi-definite, or has a rank below 2 after
            centering; frequencies has another number of rows, or is not finite.

    Example:
        >>> from bnlib.fourier import sphere_characteristic
        >>> t = np.array([[1.0], [-1.0], [0.0], [0.0]])
        >>> found = wave_averages(np.eye(4), t)[0]
        >>> bool(abs(found - sphere_characteristic(math.sqrt(8), 4)) < 1e-11)  # |G t| sqrt(n) = sqrt(2 n)
        True
    """
    values, vectors = centered_eigensystem(covariance, rank=2)
    n = len(covariance)
    t = np.asarray(frequencies, dtype=np.float64)
    if t.ndim != 2 or len(t) != n or not np.isfinite(t).all():
        raise ValueError(f"frequencies must be a finite matrix with {n} rows, got shape {t.shape}.")
    along = (vectors.T @ t) ** 2
    z, weights = _talbot(_CONTOUR)
    # Near 0 the density of |y|^2 falls like the power rank/2 - 1 of lambda, far out exponentially.
    low, high = -2 * _NOTHING / len(values) + np.log(values).mean(), math.log(2 * _NOTHING + 4 * len(values))
    total = np.zeros(t.shape[1])
    for size in np.exp(np.arange(low, high, _STEP)):
        grown = 1 + 2 * z[:, None] / size * values
        kernel = weights * np.exp(-0.5 * np.log(grown).sum(axis=1))
        total += _STEP * (kernel @ np.exp(-n / (2 * size) * ((values / grown) @ along))).real
    return total


def sine_layer(covariance: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """E sin(b) sin(b)^T: one infinitely wide layer of batch normalization and sin, at any covariance.

    2 sin x sin y = cos(x - y) - cos(x + y), so each entry is two waves.

    Args:
        covariance: positive semi-definite, shape (n, n), n >= 3; its scale and its mean do not matter.

    Returns:
        The covariance, same shape.

    Raises:
        ValueError: as `wave_averages`.

    Example:
        >>> from bnlib.fourier import sine_fixed_point
        >>> found = sine_layer(np.eye(5))
        >>> bool(abs(found[0, 1] - sine_fixed_point(5).off_diagonal) < 1e-11)
        True
    """
    n = len(covariance)
    rows, columns = np.triu_indices(n)
    unit = np.eye(n)
    waves = wave_averages(covariance, np.hstack([unit[:, rows] - unit[:, columns], unit[:, rows] + unit[:, columns]]))
    half = len(rows)
    result = np.empty((n, n))
    result[rows, columns] = result[columns, rows] = (waves[:half] - waves[half:]) / 2
    return result


def fourier_layer_check(generator: np.random.Generator, draws: int) -> dict[str, float | int]:
    """`sine_layer` where the answer is known, and against drawn batches where it is not.

    Args:
        generator: draws covariances and batches.
        draws: batches for each covariance, at least 100.

    Returns:
        `known`: largest error at BSB1 and at covariances of centered rank two, where b runs over a circle;
        `largest_z`: largest distance from the mean over draws in standard errors, rows of unequal sizes; `entries`,
        `covariances`: how many were compared by draws.

    Raises:
        ValueError: draws is below 100.

    Example:
        >>> found = fourier_layer_check(np.random.default_rng(0), 2000)
        >>> found["known"] < 1e-9, found["largest_z"] < 5
        (True, True)
    """
    if draws < 100:
        raise ValueError(f"draws must be at least 100, got {draws}.")
    known, largest, entries = 0.0, 0.0, 0
    for n in (4, 8):
        point = sine_fixed_point(n)
        wanted = point.off_diagonal + point.centered * np.eye(n)
        for cosine in (0.0, 0.7):  # from any BSB1 to the same one
            known = max(known, float(np.abs(sine_layer((1 - cosine) * np.eye(n) + cosine) - wanted).max()))
    angle = 2 * np.pi * np.arange(4000) / 4000
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for _ in range(3):
        x = generator.standard_normal((5, 2))
        x -= x.mean(axis=0)
        y = x @ circle
        values = np.sin(math.sqrt(5) * y / np.linalg.norm(y, axis=0))
        known = max(known, float(np.abs(sine_layer(x @ x.T) - values @ values.T / 4000).max()))
    for spread in (0.0, 1.0, 2.0):
        x = generator.standard_normal((6, 8)) * np.exp(spread * generator.uniform(-1, 1, (6, 1)))
        h = generator.standard_normal((draws, 8)) @ x.T
        h -= h.mean(axis=1, keepdims=True)
        values = np.sin(h / np.sqrt((h**2).mean(axis=1, keepdims=True)))
        mean = values.T @ values / draws
        error = np.sqrt(((values**2).T @ values**2 / draws - mean**2) / draws)
        largest = max(largest, float(np.abs((mean - sine_layer(x @ x.T)) / error).max()))
        entries += 21
    return {"known": known, "largest_z": largest, "entries": entries, "covariances": 3}
