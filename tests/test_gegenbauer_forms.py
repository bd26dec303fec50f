"""Forms in the degrees: against spherical integration, exact entries, what vanishes, bad input."""

import math

import numpy as np
import pytest

from bnlib.activations import activation
from bnlib.gegenbauer import expand
from bnlib.gegenbauer_forms import (
    dirichlet_form,
    dirichlet_form_by_degree,
    dirichlet_matrix,
    jacobi_matrix,
    multiplier_forms,
    multipliers_by_degree,
    polynomial,
)
from bnlib.mean_field import forward_multipliers, gradient_growth
from bnlib.sphere import uniform_on_sphere


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gelu", "square", "sin"])
@pytest.mark.parametrize("n", [4, 5, 8, 16])
def test_multipliers_are_those_of_spherical_integration(name, n):
    found, known = multipliers_by_degree(expand(activation(name), n)), forward_multipliers(activation(name), n)
    assert found.norms == pytest.approx(known.norms, abs=1e-11)
    assert found.covariances == pytest.approx(known.covariances, abs=1e-11)


def test_a_kink_converges_slowly_and_towards_the_right_value():
    known = forward_multipliers(activation("relu"), 8).norms
    errors = [abs(multipliers_by_degree(expand(activation("relu"), 8, degree)).norms - known) for degree in (10, 40)]
    assert errors[1] < errors[0] / 4 < 1e-3


@pytest.mark.parametrize("n", [4, 9, 32])
def test_entries(n):
    v, w, m = multiplier_forms(6, n)
    assert w[1, 1] / v[1] == pytest.approx((n - 1) / (n + 1), abs=1e-13)
    assert m[1, 1] / v[1] == pytest.approx((n - 1) / (n + 1), abs=1e-13)
    assert abs(v[0]) + np.abs(w[0]).max() + np.abs(m[0]).max() < 1e-13
    coupled = np.abs(np.subtract.outer(np.arange(7), np.arange(7)))
    assert np.abs(w[(coupled != 0) & (coupled != 2)]).max() < 1e-13
    assert np.abs(m[(coupled != 0) & (coupled != 2)]).max() < 1e-13
    assert np.abs(w[1:, 1:][coupled[1:, 1:] == 2]).min() > 1e-3  # it is not diagonal


def test_jacobi_matrix_against_draws(seed):
    n = 6
    t = uniform_on_sphere(n, 40_000, np.random.default_rng(seed))[:, 0] / math.sqrt(n - 1)
    p2, p3 = (polynomial(degree, n)(t * math.sqrt(n - 1)) for degree in (2, 3))
    products = t * p2 * p3
    error = products.std(ddof=1) / 200
    assert abs(products.mean() - jacobi_matrix(4, n)[2, 3]) < 5 * error
    assert abs(products.mean() - jacobi_matrix(4, n)[1, 2] * 1.3) > 5 * error  # power


@pytest.mark.parametrize("cosine", [1.0, -1 / 7, 0.4, -1.0])
def test_the_dirichlet_form_is_diagonal(cosine):
    matrix = dirichlet_matrix(6, 8, cosine)
    assert matrix - np.diag(np.diag(matrix)) == pytest.approx(np.zeros((6, 6)), abs=1e-10)
    for name in ("tanh", "gelu", "sin"):
        phi = activation(name)
        by_degree = dirichlet_form_by_degree(expand(phi, 8), expand(phi, 8), cosine)
        assert dirichlet_form(phi, phi, 8, cosine) == pytest.approx(by_degree, abs=1e-10)
    two = dirichlet_form_by_degree(expand(activation("tanh"), 8), expand(activation("gelu"), 8), cosine)
    assert dirichlet_form(activation("tanh"), activation("gelu"), 8, cosine) == pytest.approx(two, abs=1e-10)


def test_the_gradient_is_the_form_at_two_cosines():
    n, phi = 8, activation("tanh")
    e = expand(phi, n)
    own, beside = (dirichlet_form(phi, phi, n, c) for c in (1.0, -1 / (n - 1)))
    assert (own - beside) / ((n - 3) * e.weights.sum()) == pytest.approx(gradient_growth(phi, n), abs=1e-10)


def test_slopes_of_polynomials():
    x, step = np.linspace(-2, 2, 9), 1e-6
    for degree in (1, 2, 5):
        p = polynomial(degree, 8)
        assert p.derivative(x) == pytest.approx((p(x + step) - p(x - step)) / (2 * step), abs=1e-6)


def test_errors(unchecked):
    with pytest.raises(ValueError, match="n must be a whole batch size of at least 4, got 3"):
        jacobi_matrix(4, 3)
    with pytest.raises(ValueError, match="degree must be at least 1, got 0"):
        jacobi_matrix(0, 8)
    with pytest.raises(ValueError, match="degree must be at least 1, got 0"):
        polynomial(0, 8)
    with pytest.raises(ValueError, match=r"cosine must lie between -1 and 1, got 1\.5"):
        dirichlet_form(activation("tanh"), activation("tanh"), 8, 1.5)
    with pytest.raises(ValueError, match="must be of one degree and one batch size"):
        dirichlet_form_by_degree(expand(activation("tanh"), 8), expand(activation("tanh"), 9), 0.1)
    with pytest.raises(ValueError, match="at least 4, got 3"):
        multipliers_by_degree(expand(activation("tanh"), 3))
