"""Large batches: derived coefficients against high-precision ones, and against float64 solvers."""

import math

import pytest

from bnlib.outlier_asymptotics import (
    EXPANSIONS,
    compared_expansions,
    expansion_value,
    precise_values,
)
from bnlib.outlier_fixed_points import NoStateError


@pytest.fixture(scope="module")
def rows():
    return compared_expansions()


def test_derived_coefficients_are_the_measured_ones(rows):
    assert len(rows) == len(EXPANSIONS)
    for row in rows:
        assert row["error"] < 1e-8, row


def test_a_wrong_coefficient_would_be_seen(rows):
    """The separatrix's "about 1.2" is pi - 2 and nothing near it."""
    measured = next(row["measured"] for row in rows if (row["name"], row["kind"]) == ("norm_ratio", "separatrix"))
    assert abs(measured[1] - 1.2) > 0.05
    assert measured[1] == pytest.approx(math.pi - 2, abs=1e-10)
    assert measured[2] == pytest.approx(math.pi**2 / 2, abs=1e-6)


@pytest.mark.parametrize("expansion", EXPANSIONS, ids=lambda e: f"{e.kind} {e.name}")
def test_error_falls_with_the_next_power(expansion):
    known = sum(not math.isnan(c) for c in expansion.coefficients)
    errors = []
    for n in (4000, 8000):
        exact = float(precise_values(n, expansion.kind)[expansion.name])
        errors.append(abs(expansion_value(expansion, n) - exact) / n**expansion.power)
    order = math.log2(errors[0] / errors[1])
    assert order > known - 0.3


def test_precise_values_solve_the_fixed_point_equation():
    values = precise_values(7)
    assert float(values["norm_ratio"]) == pytest.approx(3.849, abs=1e-3)
    assert math.degrees(values["cluster_angle"]) == pytest.approx(61.37, abs=5e-3)
    assert float(values["outlier_angle"] + values["outlier_gap"]) == pytest.approx(math.pi / 2, rel=1e-15)


def test_refusals():
    with pytest.raises(ValueError, match="kind must be outlier or separatrix, got collapsed"):
        precise_values(8, "collapsed")
    with pytest.raises(NoStateError, match="has no outlier state"):
        precise_values(6)
    with pytest.raises(ValueError, match="n must be a batch size of at least 3"):
        expansion_value(EXPANSIONS[0], 2)
