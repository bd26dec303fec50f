"""Homogeneous activations: closed forms against quadrature, draws and known values."""

import math

import numpy as np
import pytest

from bnlib.homogeneous import (
    best_covariance_limit,
    homogeneous,
    homogeneous_cross_constant,
    homogeneous_cross_decay,
    homogeneous_fixed_point,
    homogeneous_multipliers,
    instability_degree,
    kernel_cosine,
    kernel_cosine_gap,
    power_cosine,
    power_cosine_derivative,
    power_cosine_fixed_point,
)
from bnlib.kernels import relu_cosine
from bnlib.mean_field import cross_batch_constant, cross_batch_decay, forward_multipliers, symmetric_fixed_point

FAMILY = [(1, 1, 0), (1, 1, 0.3), (1, 1, 1), (1, 1, -1), (2, 1, 0), (2, 1, -1), (3, 1, 0.5)]


@pytest.mark.parametrize(("alpha", "a", "b"), FAMILY)
@pytest.mark.parametrize("n", [4, 8, 33])
def test_closed_forms_meet_the_quadrature(alpha, a, b, n):
    phi = homogeneous(alpha, a, b)
    point, known = homogeneous_fixed_point(phi, n), symmetric_fixed_point(phi.activation, n)
    assert point.diagonal == pytest.approx(known.diagonal, rel=1e-11)
    assert point.off_diagonal == pytest.approx(known.off_diagonal, abs=1e-11)
    found, expected = homogeneous_multipliers(phi, n), forward_multipliers(phi.activation, n)
    assert found.norms == pytest.approx(expected.norms, abs=1e-11)
    assert found.covariances == pytest.approx(expected.covariances, abs=1e-11)
    assert homogeneous_cross_constant(phi, n) == pytest.approx(cross_batch_constant(phi.activation, n), abs=1e-11)
    assert homogeneous_cross_decay(phi, n) == pytest.approx(cross_batch_decay(phi.activation, n), abs=1e-11)


def test_known_cosine_maps():
    c = np.linspace(-1, 1, 41)
    assert power_cosine(c, 1) == pytest.approx(relu_cosine(c), abs=1e-13)
    assert power_cosine(c, 0) == pytest.approx(1 - np.arccos(c) / math.pi, abs=1e-13)
    t = np.arccos(c)
    closed = (3 * np.sin(t) * np.cos(t) + (math.pi - t) * (1 + 2 * np.cos(t) ** 2)) / (3 * math.pi)
    assert power_cosine(c, 2) == pytest.approx(closed, abs=1e-13)
    assert power_cosine(1.0, 30) == pytest.approx(1, abs=1e-12)
    assert power_cosine(-1.0, 30) == 0


@pytest.mark.parametrize("alpha", [0.3, 1.7, 4])
def test_cosine_map_against_draws(alpha, seed):
    generator = np.random.default_rng(seed)
    x, z = generator.standard_normal((2, 200_000))
    c = 0.4
    y = c * x + math.sqrt(1 - c * c) * z
    rho = [np.maximum(v, 0) ** alpha for v in (x, y)]
    size = 2 ** (alpha - 1) * math.gamma(alpha + 0.5) / math.sqrt(math.pi)
    products = rho[0] * rho[1] / size
    error = products.std(ddof=1) / math.sqrt(len(products))
    assert abs(products.mean() - power_cosine(c, alpha)) < 5 * error
    assert abs(products.mean() - power_cosine(c, alpha + 1)) > 5 * error  # power


def test_fixed_points_and_slopes():
    for alpha in (-0.3, 0.5, 0.9, 1.5, 5):
        c = power_cosine_fixed_point(alpha)
        assert 0 < c < 1
        assert power_cosine(c, alpha) == pytest.approx(c, abs=1e-12)
    assert power_cosine_derivative(1.0, 0.75) == pytest.approx(0.75**2 / 0.5)
    assert power_cosine_derivative(0.2, 1) == pytest.approx((math.pi - math.acos(0.2)) / math.pi)


def test_kernel_of_even_and_odd_functions():
    c = np.linspace(-1, 1, 9)
    assert kernel_cosine(c, homogeneous(1, 1, 1)) == pytest.approx(2 * c, abs=1e-13)
    even = kernel_cosine(c, homogeneous(2, 1, -1))
    assert even == pytest.approx(even[::-1], abs=1e-13)


def test_best_limit_crosses_the_degree_at_one():
    assert best_covariance_limit(1) == pytest.approx(1)
    for alpha in (-0.4, 0, 0.5, 0.99):
        assert best_covariance_limit(alpha) > alpha
    for alpha in (1.01, 2, 10):
        assert best_covariance_limit(alpha) < alpha
    # a = b is the best: large batches, other ratios.
    for b in (0.0, 0.5, 2.0, -1.0):
        limit = homogeneous_multipliers(homogeneous(0.8, 1, b), 1e8).covariances
        assert limit < best_covariance_limit(0.8) + 1e-6


def test_instability():
    for n in (5, 10, 64, 1000):
        alpha = instability_degree(n)
        assert homogeneous_multipliers(homogeneous(alpha * 1.01), n).norms > 1
        assert homogeneous_multipliers(homogeneous(alpha * 0.99), n).norms < 1
    assert homogeneous_multipliers(homogeneous(2.5), 1e8).norms == pytest.approx(2.5, abs=1e-5)


def test_errors(unchecked):
    with pytest.raises(ValueError, match=r"alpha must be a finite degree above -0\.5, got -0\.5"):
        homogeneous(-0.5)
    with pytest.raises(ValueError, match="a and b must be finite and not both zero, got 0 and 0"):
        homogeneous(1, 0, 0)
    with pytest.raises(ValueError, match="c must lie between -1 and 1"):
        power_cosine(1.1, 1)
    with pytest.raises(ValueError, match=r"above 0\.5, got 0\.5"):
        power_cosine_derivative(0.0, 0.5)
    with pytest.raises(ValueError, match="alpha must differ from 1"):
        power_cosine_fixed_point(1)
    for function in (homogeneous_fixed_point, homogeneous_cross_constant, homogeneous_cross_decay):
        with pytest.raises(ValueError, match="n must be a batch size of at least 2, got nan"):
            function(homogeneous(1), math.nan)
    with pytest.raises(ValueError, match="at least 4, got 3"):
        homogeneous_multipliers(homogeneous(1), 3)
    with pytest.raises(ValueError, match="above 4, got 4"):
        instability_degree(4)


@pytest.mark.parametrize("alpha", [1, 1.5, 2, 3])
def test_gap_of_the_kernel(alpha):
    for b in (0.0, 0.4, -1.0):
        phi = homogeneous(alpha, 1, b)
        gaps = np.array([2.0, 1.3, 0.2, 2e-3, 5e-4])
        plain = kernel_cosine(1.0, phi) - kernel_cosine(1 - gaps, phi)
        assert kernel_cosine_gap(gaps, phi) == pytest.approx(plain, rel=1e-8, abs=1e-15)
    relu_like = homogeneous(alpha)
    slope = alpha**2 / (2 * alpha - 1)
    assert kernel_cosine_gap(1e-40, relu_like) == pytest.approx(slope * 1e-40, rel=1e-8)  # below rounding
    assert kernel_cosine_gap(0.0, relu_like) == 0
    assert kernel_cosine_gap(np.ones((2, 3)), relu_like).shape == (2, 3)


def test_gap_errors(unchecked):
    for gap in (-0.1, 2.1, np.nan):
        with pytest.raises(ValueError, match="gap must lie between 0 and 2"):
            kernel_cosine_gap(gap, homogeneous(2))
