"""Tests of bnlib.fixed_points: maps with known answers, and maps where the solver must fail."""

import math

import pytest

from bnlib.fixed_points import NotConvergedError, solve_fixed_point


def test_solver_on_maps_with_known_answers():
    found = solve_fixed_point(lambda x: 0.5 * x + 1.0, 0.0, 10.0)
    assert found.value == pytest.approx(2.0, abs=1e-14)
    assert found.residual <= 1e-12
    assert solve_fixed_point(lambda x: -3.0 * x + 4.0, 0.0, 5.0).value == pytest.approx(1.0)  # unstable, still found


def test_solver_says_when_there_is_no_fixed_point():
    with pytest.raises(NotConvergedError, match=r"No fixed point is bracketed: one_step\(x\) - x is 1 at 0 and 1 at 1"):
        solve_fixed_point(lambda x: x + 1.0, 0.0, 1.0)


def test_solver_says_when_the_residual_stays_large():
    with pytest.raises(NotConvergedError, match="the residual is 2 after"):
        solve_fixed_point(lambda x: x + (2.0 if x < 1 / 3 else -2.0), 0.0, 1.0)  # a jump across the diagonal


def test_solver_refuses_an_empty_bracket():
    with pytest.raises(ValueError, match="lower and upper must be finite with lower < upper, got 1 and 0"):
        solve_fixed_point(math.cos, 1, 0)
