"""The formula of Cho and Saul, checked in two ways that do not use it: an integral over directions, and drawn neurons.

NumPy float64; this module does not import torch.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.integrate import quad

from bnlib.kernels import relu_cosine


@dataclass(frozen=True)
class KernelCheck:
    """How well the closed form J(cos theta) stands up, over the angles that were looked at.

    Attributes:
        quadrature_error: largest difference to the integral over directions.
        largest_z: largest difference to the mean over drawn neurons, in standard errors.
        standard_error: the largest of these standard errors.
        draws: neurons drawn for each angle.
        least_excess: smallest J(c) - c over the angles above 0; positive where K(x, y) exceeds x.y for He weights.
        excess_parallel: J(1) - 1, the same for parallel vectors.
    """

    quadrature_error: float
    largest_z: float
    standard_error: float
    draws: int
    least_excess: float
    excess_parallel: float


def relu_cosine_by_directions(theta: float | int) -> float:
    """2 E[ReLU(w.x) ReLU(w.y)] for unit vectors at an angle, as an integral over the direction of w in their plane.

    (2/pi) int cos(phi) cos(phi - theta) dphi over phi from theta - pi/2 to pi/2, where both are positive; the squared
    radius of the Gaussian w in the plane has mean 2.

    Args:
        theta: angle in radians, from 0 to pi.

    Raises:
        ValueError: theta is not between 0 and pi.

    Example:
        >>> round(relu_cosine_by_directions(math.pi / 2) * math.pi, 12)
        1.0
    """
    if not 0 <= theta <= math.pi:
        raise ValueError(f"theta must be an angle between 0 and pi radians, got {theta}.")
    value, _ = quad(lambda phi: math.cos(phi) * math.cos(phi - theta), theta - math.pi / 2, math.pi / 2, epsabs=1e-14)
    return 2 / math.pi * value


def check_relu_kernel(angles: Float[np.ndarray, " k"], draws: int, *, random: np.random.Generator) -> KernelCheck:
    """Compare J with the integral over directions and with drawn neurons.

    Args:
        angles: radians, from 0 to pi, the first of them 0 and at least one above.
        draws: neurons for each angle, at least 2.
        random: source of the neurons.

    Raises:
        ValueError: draws is below 2, or the angles are not as described.

    Example:
        >>> found = check_relu_kernel(np.array([0.0, 1.0]), 100, random=np.random.default_rng(0))
        >>> found.quadrature_error < 1e-12, found.least_excess > 0, found.excess_parallel
        (True, True, 0.0)
    """
    if draws < 2:
        raise ValueError(f"draws must be at least 2, got {draws}.")
    if len(angles) < 2 or angles[0] != 0 or not (angles[1:] > 0).all() or not (angles <= math.pi).all():
        raise ValueError("angles must begin with 0 and go on with angles above 0 up to pi radians.")
    closed = np.asarray(relu_cosine(np.cos(angles)))
    by_directions = np.array([relu_cosine_by_directions(float(theta)) for theta in angles])
    scores, errors = [], []
    for theta, value in zip(angles, closed, strict=True):
        first, second = random.standard_normal((2, draws))
        products = 2 * np.maximum(first, 0) * np.maximum(math.cos(theta) * first + math.sin(theta) * second, 0)
        error = products.std(ddof=1) / math.sqrt(draws)
        # At the angle pi the exact value is 0 and so is every product, up to the rounding of sin(pi).
        scores.append(abs(products.mean() - value) / error if error > 1e-12 else 0.0)
        errors.append(error)
    excess = closed - np.cos(angles)
    return KernelCheck(
        quadrature_error=float(np.abs(closed - by_directions).max()),
        largest_z=float(max(scores)),
        standard_error=float(max(errors)),
        draws=draws,
        least_excess=float(excess[1:].min()),
        excess_parallel=float(excess[0]),
    )
