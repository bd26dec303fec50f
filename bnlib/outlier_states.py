"""States of a batch with one distinguished sample, as chapter 6 uses them; chapter 7's modules hold the theory.

A thin layer over `bnlib.outlier_fixed_points`.
"""

from dataclasses import dataclass

from bnlib import outlier_fixed_points


@dataclass(frozen=True)
class State:
    """A state of a batch with one distinguished sample and n - 1 equivalent ones, at infinite width.

    Attributes:
        angle: angle between the distinguished sample and the mean of the others, radians.
        norm_ratio: its norm over the norm of that mean.
        top_over_second: its norm over the norm of each other sample.
        cluster_angle: angle between two of the others, radians.
    """

    angle: float
    norm_ratio: float
    top_over_second: float
    cluster_angle: float


def _state(found: outlier_fixed_points.OutlierClassState) -> State:
    return State(found.outlier_mean_angle, found.norm_ratio_mean, found.norm_ratio, found.cluster_angle)


def _check_size(n: int) -> None:
    if n < 3:
        raise ValueError(f"n is {n}; valid is a batch size of at least 3.")


def symmetric_state(n: int) -> State:
    """Where recentered ReLU layers with or without rescaling keep a batch whose samples are all equivalent.

    Args:
        n: batch size, at least 3.

    Returns:
        The state; angles in radians.

    Raises:
        ValueError: n < 3.

    Example:
        >>> import math
        >>> round(math.degrees(symmetric_state(8).angle), 2)
        65.26
    """
    _check_size(n)
    return _state(outlier_fixed_points.symmetric_state(n))


def outlier_state(n: int) -> State | None:
    """The stable state with one outlier of recentered ReLU layers without rescaling, at infinite width.

    Args:
        n: batch size, at least 3.

    Returns:
        The state, or None if there is none (n <= 6).

    Raises:
        ValueError: n < 3.

    Example:
        >>> import math
        >>> state = outlier_state(16)
        >>> round(state.top_over_second, 3), round(math.degrees(state.cluster_angle), 2)
        (13.896, 30.0)
        >>> outlier_state(6) is None
        True
    """
    _check_size(n)
    found = outlier_fixed_points.find_outlier_state(n)
    return None if found is None else _state(found)
