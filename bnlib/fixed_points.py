"""Solving one-step maps for their fixed points, with the residual and the iterations on record."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import brentq


class NotConvergedError(ValueError):
    """A solver stopped without reaching its tolerance; the message holds the residual."""


@dataclass(frozen=True)
class FixedPoint:
    """What a fixed-point solver found.

    Attributes:
        value: the fixed point, in the unit of the map's argument (radians for maps of angles).
        residual: |map(value) - value|, same unit.
        iterations: number of solver iterations, not of map evaluations.
    """

    value: float
    residual: float
    iterations: int


def solve_fixed_point(
    one_step: Callable[[float], float], lower: float | int, upper: float | int, tolerance: float = 1e-12
) -> FixedPoint:
    """Solve one_step(x) = x in a bracket by Brent's method.

    Args:
        one_step: a continuous map of one number.
        lower: one end of the bracket, in the unit of the map's argument.
        upper: the other end; one_step(x) - x must have opposite signs at the two.
        tolerance: largest residual |one_step(x) - x| that counts as converged, same unit.

    Returns:
        The fixed point, its residual and the number of iterations.

    Raises:
        ValueError: the bracket is empty or not finite.
        NotConvergedError: no change of sign in the bracket, or the residual stays above the tolerance.

    Example:
        >>> round(solve_fixed_point(math.cos, 0.0, 1.0).value, 6)
        0.739085
    """
    if not -math.inf < lower < upper < math.inf:
        raise ValueError(f"lower and upper must be finite with lower < upper, got {lower} and {upper}.")
    at_lower, at_upper = one_step(lower) - lower, one_step(upper) - upper
    if not at_lower * at_upper <= 0:
        raise NotConvergedError(
            f"No fixed point is bracketed: one_step(x) - x is {at_lower:.3g} at {lower:g} and {at_upper:.3g} at "
            f"{upper:g}."
        )
    value, info = brentq(lambda x: one_step(x) - x, lower, upper, xtol=1e-15, rtol=1e-15, full_output=True, disp=False)
    residual = abs(one_step(value) - value)
    if not residual <= tolerance:
        raise NotConvergedError(
            f"The fixed point is not reached: the residual is {residual:.3g} after {info.iterations} iterations "
            f"and {tolerance:g} is allowed."
        )
    return FixedPoint(value=float(value), residual=float(residual), iterations=int(info.iterations))
