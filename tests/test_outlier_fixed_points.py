"""Fixed points with one distinguished sample: known values, every batch size, the saddle-node three ways."""

import math

import mpmath
import numpy as np
import pytest

from bnlib import kernels
from bnlib.outlier_asymptotics import precise_values
from bnlib.outlier_class import next_state
from bnlib.outlier_fixed_points import (
    NoStateError,
    bifurcation_branches,
    collapsed_state,
    fixed_points,
    log_drift,
    outlier_state,
    saddle_node,
    saddle_node_by_square_root,
    saddle_node_by_touching,
    separatrix,
    symmetric_state,
)

# Norm over a cluster point's norm, angle to a cluster point and angle within the cluster, in degrees.
KNOWN = {
    7: (3.849, 86.24, 61.37),
    8: (5.105, 87.54, 54.65),
    16: (13.896, 89.655, 30.00),
    32: (30.385, 89.952, 15.88),
    64: (62.674, 89.994, 8.18),
    128: (126.83, 89.999, 4.154),
}


@pytest.mark.parametrize("n", KNOWN)
def test_known_outlier_states(n):
    state = outlier_state(n)
    ratio, outlier, cluster = KNOWN[n]
    assert state.norm_ratio == pytest.approx(ratio, abs=5e-3)
    assert math.degrees(state.outlier_angle) == pytest.approx(outlier, abs=5e-3)
    assert math.degrees(state.cluster_angle) == pytest.approx(cluster, abs=5e-3)
    assert state.outlier_gap == pytest.approx(math.pi / 2 - state.outlier_angle, abs=1e-15)
    assert state.iterations > 0


@pytest.mark.parametrize("n", [6.2, 7, 8, 20.5, 64, 1024, 1e6])
@pytest.mark.parametrize("solve", [outlier_state, separatrix])
def test_agrees_with_sixty_digits(solve, n):
    state = solve(n)
    exact = precise_values(n, state.kind)
    # near the saddle-node, and for the separatrix of large batches, the root is ill-conditioned
    slack = 5e-15 / abs(1 - state.multiplier)
    assert abs(state.u / exact["u"] - 1) < slack
    assert abs(state.norm_ratio / exact["norm_ratio"] - 1) < slack
    assert abs(state.norm_ratio_mean / exact["norm_ratio_mean"] - 1) < slack
    assert abs(state.cluster_angle / exact["cluster_angle"] - 1) < slack
    assert abs(state.outlier_gap / exact["outlier_gap"] - 1) < 2 * slack
    assert abs(state.scale_growth / exact["scale_growth"] - 1) < slack
    assert abs(state.multiplier - exact["class_multiplier"]) < 2 * slack


@pytest.mark.parametrize("n", [3, 4, 5, 6, 6.1070751248])
def test_small_batches_have_none_and_say_so(n):
    for solve, name in ((outlier_state, "outlier"), (separatrix, "separatrix")):
        with pytest.raises(
            NoStateError, match=rf"has no {name} state: the residual u'/u - 1 is at least [0-9.e-]+ from"
        ):
            solve(n)
    # and indeed the map moves every state towards the symmetric one
    assert (log_drift(np.geomspace(1e-9, (n - 1) / n * 0.999, 4000), n) > 0).all()


def test_batch_sizes_from_three_to_1024():
    """The chapter does every one of them."""
    previous = 0.0
    for n in [*range(3, 41), *range(64, 1025, 96)]:
        states = fixed_points(n)
        assert [s.kind for s in states] == (
            ["collapsed", "outlier", "separatrix", "symmetric"] if n >= 7 else ["collapsed", "symmetric"]
        )
        assert all(s.residual < 1e-12 for s in states)
        assert [s.multiplier > 1 for s in states] == ([True, False] * (len(states) // 2))
        if n >= 7:
            assert states[1].norm_ratio > previous  # grows with n
            previous = states[1].norm_ratio
            assert 1 < states[2].norm_ratio < states[1].norm_ratio


@pytest.mark.parametrize("n", [3, 5.5, 8, 100])
def test_symmetric_and_collapsed(n):
    state = symmetric_state(n)
    assert state.cluster_angle == pytest.approx(kernels.batch_norm_angle(n), rel=1e-12)
    assert state.outlier_angle == pytest.approx(state.cluster_angle, rel=1e-12)
    assert state.norm_ratio == pytest.approx(1, rel=1e-14)
    assert next_state(state.u, n) == pytest.approx(state.u, rel=1e-14)
    collapsed = collapsed_state(n)
    assert collapsed.norm_ratio == pytest.approx(n - 1, rel=1e-14)
    assert (collapsed.outlier_angle, collapsed.cluster_angle) == (pytest.approx(math.pi / 2), 0.0)
    assert collapsed.scale_growth * collapsed.multiplier == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("n", [3, 4, 8, 64])
def test_no_state_where_the_distinguished_sample_is_the_shorter_one(n):
    """On the far side of the symmetric state the map always moves back towards it."""
    u = (n - 1) / n * np.exp(np.geomspace(1e-4, 60, 4000))
    assert (log_drift(u, n) < 0).all()


def test_saddle_node_three_ways():
    newton, touching, extrapolated = saddle_node(), saddle_node_by_touching(), saddle_node_by_square_root()
    assert newton.n == pytest.approx(6.107075124879, abs=1e-11)
    assert touching.n == pytest.approx(newton.n, abs=1e-11)
    assert extrapolated == pytest.approx(newton.n, abs=1e-8)
    assert touching.norm_ratio == pytest.approx(newton.norm_ratio, abs=1e-6)
    assert newton.residual < 1e-12


def test_saddle_node_in_high_precision():
    """A fourth way, in other arithmetic: mpmath, cosines, both equations by differences."""

    def drift(x, n):
        m, u = n - 1, mpmath.exp(x)
        odd, other = (m / n) ** 2, 1 / n**2 + u * (m - 1) / m
        j = [
            (mpmath.sqrt(1 - c * c) + (mpmath.pi - mpmath.acos(c)) * c) / mpmath.pi
            for c in ((1 / n**2 - u / m) / other, -m / n**2 / mpmath.sqrt(odd * other))
        ]
        growth = odd - 2 * mpmath.sqrt(odd * other) * j[1] + other * (1 + (m - 1) * j[0]) / m
        return mpmath.log(other * (1 - j[0]) / growth) - x

    with mpmath.workdps(40):
        slope = lambda x, n: mpmath.diff(lambda y: drift(y, n), x)  # noqa: E731
        x, n = mpmath.findroot([drift, slope], (math.log(0.15), 6.1))
        assert abs(n - saddle_node().n) < 1e-12
        assert abs(mpmath.exp(x) - saddle_node().u) < 1e-9


def test_branches_leave_the_saddle_node_like_a_square_root():
    fold = saddle_node()
    gaps = [math.log(separatrix(fold.n + d).u / outlier_state(fold.n + d).u) for d in (1e-6, 1e-4)]
    assert gaps[1] / gaps[0] == pytest.approx(10, rel=1e-2)


def test_branches_for_the_diagram():
    found = bifurcation_branches([5, 6.5, 8])
    assert found["outlier"][0] is None is found["separatrix"][0]
    assert found["outlier"][2] == outlier_state(8).norm_ratio
    assert found["symmetric"] == [1.0] * 3
    assert found["saddle_node"][0] == saddle_node().n
    with pytest.raises(ValueError, match="values must hold at least one batch size, got none"):
        bifurcation_branches([])


@pytest.mark.parametrize("n", [2, 0, math.nan, math.inf])
def test_refusals(n):
    for solve in (outlier_state, separatrix, symmetric_state, collapsed_state, fixed_points):
        with pytest.raises(ValueError, match="n must be a"):
            solve(n)
    with pytest.raises(ValueError, match="u must be positive and finite"):
        log_drift(0.0, 8)


def test_separatrix_where_floats_no_longer_tell_it_apart():
    assert separatrix(1e6).norm_ratio == pytest.approx(1 + (math.pi - 2) / 1e6, abs=1e-9)
    with pytest.raises(ValueError, match="n must be at most 1,000,000"):
        separatrix(1e7)
