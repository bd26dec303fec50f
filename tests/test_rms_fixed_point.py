"""The second formula of RMS+NL, its rigorous digits, and the steps of the uniqueness proof."""

import itertools
import math

import flint
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from bnlib import kernels, rms_fixed_point


@pytest.mark.parametrize("n", [2, 3, 8, 64, math.inf])
@pytest.mark.parametrize("theta", [0.2, 1.0, 1.5])
def test_two_formulas_agree(n, theta):
    """Ball arithmetic on the unit interval, trapezoidal rule on the Laplace integral."""
    ball = rms_fixed_point.rms_cosine_ball(flint.arb(theta).cos(), n)
    assert float(ball.rad()) < 1e-12
    assert float(ball.mid()) == pytest.approx(math.cos(kernels.rms_relu_angle(theta, n)), abs=1e-10)
    assert not ball.contains(flint.arb(math.cos(kernels.relu_angle(theta))))


@pytest.mark.parametrize("n", [2, 5, 64, math.inf])
def test_bracket_holds_the_fixed_point_and_no_other_angle(n):
    found = rms_fixed_point.enclose_rms_fixed_point(n, 1e-11)
    assert found.lower < kernels.rms_fixed_point_angle(n) < found.upper
    assert found.margin > 1e-13


def test_a_bracket_elsewhere_is_refused(monkeypatch):
    true = kernels.rms_fixed_point_angle(8)
    monkeypatch.setattr(rms_fixed_point, "rms_fixed_point_angle", lambda n: true + 3e-9)
    with pytest.raises(ValueError, match="radius 1e-09 does not enclose the fixed point for n = 8"):
        rms_fixed_point.enclose_rms_fixed_point(8, 1e-9)


def test_growth_is_the_ratio_of_the_map():
    for n, theta in ((2, 1.0), (8, 0.7), (33, 1.3)):
        c = math.cos(theta)
        expected = (1 - math.cos(kernels.rms_relu_angle(theta, n))) / (1 - c)
        assert rms_fixed_point.rms_growth((1 + (n - 1) * c) / (1 - c), n) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 64])
def test_growth_rises_and_crosses_one_once(n):
    k = np.geomspace(1, 1e4, 200)
    growth = np.array([rms_fixed_point.rms_growth(x, n) for x in k])
    assert (np.diff(growth) > 0).all()
    assert ((growth[:-1] < 1) & (growth[1:] >= 1)).sum() == 1


@pytest.mark.parametrize("n", [2, 3, 4, 5, 9, 40])
def test_barrier_of_the_proof(n):
    """P(j) = (n + j) E[1/(1 + j B)], B of law Beta(1/2, (n+1)/2), solves its equation and stays below the barrier."""
    law = stats.beta(0.5, (n + 1) / 2)
    u = (np.polynomial.legendre.leggauss(400)[0] + 1) / 2
    weight = np.polynomial.legendre.leggauss(400)[1] / 2
    density = (1 - u * u) ** ((n - 1) / 2)  # B = u^2 takes the singularity away

    def p(j):
        return (n + j) * (weight @ (density / (1 + j * u * u))) / (weight @ density)

    assert p(3.0) == pytest.approx((n + 3) * quad(lambda b: law.pdf(b) / (1 + 3 * b), 0, 1)[0], rel=1e-6)
    for j in np.geomspace(1e-2, 1e3, 40):
        slope = (p(j * (1 + 1e-5)) - p(j * (1 - 1e-5))) / (2e-5 * j)
        equation = p(j) / (n + j) + (n + j) * (n - p(j)) / (2 * j * (1 + j))
        assert slope == pytest.approx(equation, rel=1e-4, abs=1e-6)
        assert slope > 0
        bracket = (n + j) ** 2 - 2 * j * (1 + j)
        assert bracket <= 0 or p(j) < n * (n + j) ** 2 / bracket


@pytest.mark.parametrize("n", [2, 3, 4, 5, 12])
def test_difference_kept_does_not_fall(n, seed):
    t = np.linspace(0, math.sqrt((n - 1) / n), 7)
    found = [
        rms_fixed_point.difference_kept(x, n, points=20_000, generator=np.random.default_rng([seed, i]))
        for i, x in enumerate(t)
    ]
    for (a, error_a), (b, error_b) in itertools.pairwise(found):
        assert b - a > -5 * math.hypot(error_a, error_b)
    # at t = 0 the sphere and the Gaussian agree: 1 - J(-1/(n-1)); and not 1 - J(0)
    assert abs(found[0][0] - (1 - kernels.relu_cosine(-1 / (n - 1)))) <= 5 * found[0][1] + 1e-12
    if n < 12:
        assert abs(found[0][0] - (1 - 1 / math.pi)) > 5 * found[0][1]
    assert found[-1][0] == pytest.approx(n / (n - 1), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: rms_fixed_point.rms_cosine_ball(flint.arb(1), 8), r"c must be a cosine in \[0, 1\)"),
        (lambda: rms_fixed_point.rms_cosine_ball(flint.arb(0), 2.5), r"n must be a whole number or inf, got 2\.5\."),
        (lambda: rms_fixed_point.enclose_rms_fixed_point(1), "n must be a batch size of at least 2, got 1"),
        (lambda: rms_fixed_point.enclose_rms_fixed_point(8, 0), "radius must be at least 1e-14, got 0"),
        (lambda: rms_fixed_point.rms_growth(0.5, 8), "k must be at least 1, got 0.5"),
        (
            lambda: rms_fixed_point.difference_kept(-1, 8, points=9, generator=np.random.default_rng(0)),
            "t must be at least 0 and points at least 2, got -1 and 9",
        ),
    ],
)
def test_messages(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
