"""Gegenbauer expansions: orthogonality, the addition theorem by quadrature, and the quantities of the theory."""

import numpy as np
import pytest
from scipy.special import eval_gegenbauer

from bnlib.activations import activation, power_relu
from bnlib.gegenbauer import (
    cross_batch_decay_by_degree,
    expand,
    gegenbauer,
    gradient_growth_by_degree,
    harmonic_dimension,
)
from bnlib.mean_field import cross_batch_decay, gradient_growth, symmetric_fixed_point
from bnlib.sphere import one_entry, two_entries


@pytest.mark.parametrize("n", [4, 5, 9, 40])
def test_polynomials_are_scipys(n):
    t = np.linspace(-1, 1, 11)
    alpha = (n - 3) / 2
    for order, values in enumerate(gegenbauer(t, 12, n)):
        assert values == pytest.approx(eval_gegenbauer(order, alpha, t) / eval_gegenbauer(order, alpha, 1.0), abs=1e-12)


def test_three_samples_give_cosines():
    angle = np.linspace(0, np.pi, 7)
    for order, values in enumerate(gegenbauer(np.cos(angle), 9, 3)):
        assert values == pytest.approx(np.cos(order * angle), abs=1e-12)


@pytest.mark.parametrize("n", [3, 4, 8, 30])
def test_orthogonality_and_the_addition_theorem(n):
    x, w = one_entry(n)
    polynomials = gegenbauer(x / np.sqrt(n - 1), 10, n)
    dimension = harmonic_dimension(np.arange(11.0), n)
    assert (polynomials * w) @ polynomials.T == pytest.approx(np.diag(1 / dimension), abs=1e-12)
    pair = two_entries(n)
    first = gegenbauer(pair.first / np.sqrt(n - 1), 6, n)
    second = gegenbauer(pair.second / np.sqrt(n - 1), 6, n)
    expected = np.diag(gegenbauer(-1 / (n - 1), 6, n) / dimension[:7])
    assert (first * pair.weights) @ second.T == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gelu", "sin", "square", "identity"])
@pytest.mark.parametrize("n", [4, 8, 50])
def test_smooth_activations_agree_with_spherical_integration(name, n):
    phi = activation(name)
    expansion = expand(phi, n)
    assert abs(expansion.missing) < 1e-8
    assert expansion.weights.sum() == pytest.approx(symmetric_fixed_point(phi, n).centered, abs=1e-8)
    assert gradient_growth_by_degree(expansion) == pytest.approx(gradient_growth(phi, n), rel=1e-5)
    assert cross_batch_decay_by_degree(expansion) == pytest.approx(cross_batch_decay(phi, n), abs=1e-8)


def test_a_kink_converges_slowly_and_from_below():
    phi = activation("relu")
    exact = gradient_growth(phi, 8)
    gaps = [exact - gradient_growth_by_degree(expand(phi, 8, degree)) for degree in (10, 20, 40, 80)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] > 1e-4
    assert [expand(phi, 8, degree).missing > 0 for degree in (10, 80)] == [True, True]


def test_the_growth_is_a_mean_over_degrees():
    # b^2 has degree 2 only besides a constant: 2 (n - 1) / (n - 3).
    for n in (4, 8, 64):
        assert gradient_growth(activation("square"), n) == pytest.approx(2 * (n - 1) / (n - 3), abs=1e-10)
        assert gradient_growth_by_degree(expand(activation("square"), n)) == pytest.approx(2 * (n - 1) / (n - 3))


def test_a_constant_has_degree_zero_only():
    constant = type(activation("relu"))("one", np.ones_like, np.zeros_like)
    assert expand(constant, 6, 5).coefficients == pytest.approx([1, 0, 0, 0, 0, 0], abs=1e-13)
    assert expand(power_relu(2), 6, 5).coefficients[1] > 0


def test_errors(unchecked):
    with pytest.raises(ValueError, match="degree must be at least 1, got 0"):
        expand(activation("relu"), 8, 0)
    with pytest.raises(ValueError, match="n must be a whole batch size of at least 3, got 2"):
        gegenbauer(0.0, 3, 2)
    with pytest.raises(ValueError, match="t must lie between -1 and 1"):
        gegenbauer(np.array([1.5]), 3, 5)
    with pytest.raises(ValueError, match="n must be a whole batch size of at least 4, got 3"):
        gradient_growth_by_degree(expand(activation("relu"), 3))
