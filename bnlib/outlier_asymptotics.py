"""Large batches: the states of recentered ReLU layers with one distinguished sample, in powers of 1/n.

The expansions were derived by inserting a power series for the angle psi inside the recentered cluster into the
condition u' = u (chapter 7 carries it out to second order). Here they stand beside an independent check: the fixed
points to 60 digits by mpmath, at 14 batch sizes, and the coefficients that a polynomial in 1/n through them has.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath

from bnlib.outlier_class import checked_n
from bnlib.outlier_fixed_points import outlier_state, separatrix

_DIGITS = 60
_SIZES = 14  # batch sizes in the fit: the first three coefficients come out to ten digits and more
_FIRST_SIZE, _STEP = 200, (3, 2)


@dataclass(frozen=True)
class Expansion:
    """The behavior of one quantity for large batches: n**power times (c_0 + c_1/n + c_2/n^2 + ...).

    Attributes:
        name: of the quantity, as in `precise_values`.
        kind: the state, "outlier" or "separatrix".
        power: power of n in front.
        coefficients: c_0, c_1, c_2.
        text: the same for a reader.
    """

    name: str
    kind: str
    power: int
    coefficients: tuple[float, float, float]
    text: str


_PI2 = math.pi**2
_RATE = (math.pi - 2) / (2 * (math.pi - 1))
EXPANSIONS = (
    Expansion(
        "cluster_angle",
        "outlier",
        -1,
        (3 * math.pi, -6 * math.pi, 9 * math.pi * (10 + _PI2) / 20),
        "(3π/n)(1 − 2/n + 3(10 + π²)/(20n²))",
    ),
    Expansion("norm_ratio", "outlier", 1, (1.0, -1.0, -9 * _PI2 / 4), "n − 1 − 9π²/(4n)"),
    Expansion("norm_ratio_mean", "outlier", 1, (1.0, -1.0, 0.0), "n − 1 − 9π²/(2n²)"),
    Expansion("mean_deficit", "outlier", -2, (9 * _PI2 / 2, -45 * _PI2 / 2, math.nan), "(9π²/(2n²))(1 − 5/n)"),
    Expansion(
        "outlier_gap",
        "outlier",
        -3,
        (
            9 * _PI2 / (2 * math.sqrt(2)),
            -81 * _PI2 / (4 * math.sqrt(2)),
            27 * math.sqrt(2) * _PI2 * (17 + 3 * _PI2) / 32,
        ),
        "(9π²/(2√2 n³))(1 − 9/(2n))",
    ),
    Expansion("scale_growth", "outlier", 0, (1.0, -2.0, 2.0), "1 − 2/n + 2/n²"),
    Expansion("class_multiplier", "outlier", 0, (1.0, -1.0, -1.0), "1 − 1/n − 1/n²"),
    Expansion("cluster_multiplier", "outlier", 0, (1.0, -1.0, -1.0), "1 − 1/n − 1/n²"),
    Expansion("second_cluster_multiplier", "outlier", 0, (0.0, 1.0, 2.0), "1/n + 2/n²"),
    Expansion("cluster_pair_multiplier", "outlier", 0, (1.0, -1.0, -1.0), "1 − 1/n − 1/n²"),
    Expansion("norm_ratio", "separatrix", 0, (1.0, math.pi - 2, _PI2 / 2), "1 + (π − 2)/n + π²/(2n²)"),
    Expansion("class_multiplier", "separatrix", 0, (1.0, _RATE, math.nan), "1 + (π − 2)/(2(π − 1)n)"),
)


def expansion_value(expansion: Expansion, n: float | int) -> float:
    """The expansion at one batch size, with the coefficients that are known.

    Args:
        expansion: one of `EXPANSIONS`.
        n: batch size, at least 3; any real number.

    Returns:
        Its value.

    Raises:
        ValueError: n < 3 or not finite.

    Example:
        >>> round(expansion_value(EXPANSIONS[0], 64) * 180 / math.pi, 3)  # the cluster angle in degrees
        8.18
    """
    n = checked_n(n)
    known = [c for c in expansion.coefficients if not math.isnan(c)]
    return n**expansion.power * sum(c / n**order for order, c in enumerate(known))


def _bent(x: mpmath.mpf) -> mpmath.mpf:
    return (mpmath.sin(x) - x * mpmath.cos(x)) / mpmath.pi


def _parts(u: mpmath.mpf, n: mpmath.mpf) -> tuple:
    m = n - 1
    odd, other = (m / n) ** 2, 1 / n**2 + u * (m - 1) / m
    pair = mpmath.acos((1 / n**2 - u / m) / other)  # 60 digits: cosines may lose half of them here
    supplement = mpmath.pi - mpmath.acos(-m / n**2 / mpmath.sqrt(odd * other))
    deficit = 1 - mpmath.cos(pair) - _bent(pair)
    growth = odd - 2 * mpmath.sqrt(odd * other) * _bent(supplement) + other * (1 - (m - 1) / m * deficit)
    return odd, other, pair, supplement, deficit, growth


def precise_values(n: float | int, kind: str = "outlier") -> dict[str, mpmath.mpf]:
    """Fixed point and multipliers to high precision, from the formulas in cosines and 60 digits.

    Shares no arithmetic with `bnlib.outlier_class`, from which it takes a starting value only.

    Args:
        n: batch size; a whole or binary fraction, above the saddle-node.
        kind: "outlier" or "separatrix".

    Returns:
        `u`, `norm_ratio`, `norm_ratio_mean`, `mean_deficit` (n - 1 minus it), `outlier_angle`, `outlier_gap` (pi/2
        minus it), `cluster_angle` (radians), `scale_growth`, `class_multiplier`, `cluster_multiplier`,
        `second_cluster_multiplier`, `cluster_pair_multiplier`; numbers of mpmath.

    Raises:
        ValueError: n < 3, or a kind that does not exist.
        NoStateError: n lies below the saddle-node.

    Example:
        >>> mpmath.nstr(precise_values(8)["norm_ratio"], 20)
        '5.1047339125113148675'
    """
    if kind not in ("outlier", "separatrix"):
        raise ValueError(f"kind must be outlier or separatrix, got {kind}.")
    start = (outlier_state if kind == "outlier" else separatrix)(n).u
    with mpmath.workdps(2 * _DIGITS):
        n = mpmath.mpf(n)
        m = n - 1

        def drift(x: mpmath.mpf) -> mpmath.mpf:
            _, other, _, _, deficit, growth = _parts(mpmath.exp(x), n)
            return mpmath.log(other * deficit / growth) - x

        x = mpmath.log(mpmath.mpf(start))
        x = mpmath.findroot(drift, (x, x * (1 + mpmath.mpf(10) ** -9)), solver="secant", verify=False)
        u, step = mpmath.exp(x), mpmath.mpf(10) ** -30
        odd, other, pair, supplement, deficit, growth = _parts(u, n)
        mean = other * (1 - (m - 1) / m * deficit)
        slope = 1 + (drift(x + step) - drift(x - step)) / (2 * step)
        inner = 1 - pair / mpmath.pi
        ratio = mpmath.sqrt(odd / other)
        cross = (supplement / mpmath.pi, mpmath.sin(supplement) / (2 * mpmath.pi) * ratio)
        inside = (-inner, 1 - inner + (m - 2) * mpmath.sin(pair) / (2 * mpmath.pi))
        lost = [(a + b) / n for a, b in zip(cross, inside, strict=True)]
        trace = cross[0] - lost[0] + 1 - 2 * lost[1]
        determinant = (cross[0] - lost[0]) * (1 - 2 * lost[1]) + 2 * lost[0] * (cross[1] - lost[1])
        root = mpmath.sqrt(trace**2 - 4 * determinant)
        return {
            "u": u,
            "norm_ratio": ratio,
            "norm_ratio_mean": mpmath.sqrt(odd / mean),
            "mean_deficit": m - mpmath.sqrt(odd / mean),
            "outlier_angle": mpmath.acos(_bent(supplement)),
            "outlier_gap": mpmath.asin(_bent(supplement)),
            "cluster_angle": 2 * mpmath.asin(mpmath.sqrt(deficit / 2)),
            "scale_growth": growth,
            "class_multiplier": slope,
            "cluster_multiplier": (trace + root) / 2 / growth,
            "second_cluster_multiplier": (trace - root) / 2 / growth,
            "cluster_pair_multiplier": inner / growth,
        }


def measured_coefficients(kind: str = "outlier", count: int = _SIZES) -> Callable[[str, int], list[float]]:
    """Coefficients of the expansions as high-precision numbers have them, whatever was derived.

    A polynomial in 1/n passes through the fixed points at `count` batch sizes from 200 on, each half as large again.

    Args:
        kind: "outlier" or "separatrix".
        count: how many; 14 give the first three coefficients to ten digits.

    Returns:
        A function of a quantity's name (as in `precise_values`) and the power of n in front; it returns the first three
        coefficients.

    Raises:
        ValueError: a kind that does not exist.

    Example:
        >>> [round(c, 8) for c in measured_coefficients("separatrix")("norm_ratio", 0)[:2]], round(math.pi - 2, 8)
        ([1.0, 1.14159265], 1.14159265)
    """
    sizes = [_FIRST_SIZE * _STEP[0] ** j / _STEP[1] ** j for j in range(count)]  # binary fractions: exact as floats
    values = [precise_values(n, kind) for n in sizes]

    def coefficients(name: str, power: int) -> list[float]:
        with mpmath.workdps(2 * _DIGITS):
            sides = mpmath.matrix(
                [value[name] / mpmath.mpf(n) ** power for n, value in zip(sizes, values, strict=True)]
            )
            table = mpmath.matrix([[mpmath.mpf(n) ** -order for order in range(count)] for n in sizes])
            return [float(c) for c in mpmath.lu_solve(table, sides)[:3]]

    return coefficients


def compared_expansions(count: int = _SIZES) -> list[dict[str, object]]:
    """Every expansion beside its measured coefficients.

    Args:
        count: number of batch sizes, as for `measured_coefficients`.

    Returns:
        One dictionary an expansion: `name`, `kind`, `text`, `derived` and `measured` (coefficients, None where none was
        derived), `error` (the largest difference of the derived ones).

    Example:
        >>> max(row["error"] for row in compared_expansions()) < 1e-8
        True
    """
    measured = {kind: measured_coefficients(kind, count) for kind in ("outlier", "separatrix")}
    rows = []
    for expansion in EXPANSIONS:
        found = measured[expansion.kind](expansion.name, expansion.power)
        derived = [None if math.isnan(c) else c for c in expansion.coefficients]
        errors = [abs(a - b) for a, b in zip(derived, found, strict=True) if a is not None]
        rows.append(
            {
                "name": expansion.name,
                "kind": expansion.kind,
                "text": expansion.text,
                "derived": derived,
                "measured": found,
                "error": max(errors),
            }
        )
    return rows
