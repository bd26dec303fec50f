"""Large batches and convergence: limits against large n, pure degrees, rates; bad input."""

import numpy as np
import pytest

from bnlib.activations import Activation, activation, power_relu
from bnlib.mean_field import forward_multipliers, relu_forward_multipliers
from bnlib.wide_batch_limits import (
    degree_excess,
    gaussian_rule,
    linear_share,
    norm_deviation,
    norm_elasticity,
    pure_degree,
    relu_convergence,
)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "sin", "square", "sigmoid"])
def test_limits_are_approached_like_one_over_n(name):
    phi = activation(name)
    gaps = []
    for n in (512, 1024):
        found = forward_multipliers(phi, n)
        gaps.append((n * (found.norms - norm_elasticity(phi)), n * (found.covariances - linear_share(phi))))
    assert gaps[0] == pytest.approx(gaps[1], abs=0.1)


def test_elasticity_is_a_derivative():
    for phi in (activation("gelu"), activation("tanh"), power_relu(1.5)):
        x, w = gaussian_rule()

        def log_variance(q, phi=phi, x=x, w=w):
            values = phi(np.sqrt(q) * x)
            return np.log(w @ values**2 - (w @ values) ** 2)

        step = 1e-4
        slope = (log_variance(1 + step) - log_variance(1 - step)) / (2 * step)
        assert norm_elasticity(phi) == pytest.approx(slope, abs=1e-6)
    assert norm_elasticity(power_relu(3)) == pytest.approx(3, abs=1e-9)


@pytest.mark.parametrize("n", [5, 9, 20])
def test_the_first_degree_is_the_identity(n):
    assert degree_excess(n, 3)[0] == pytest.approx(-2 / (n + 1), abs=1e-12)


def test_signs_of_the_excess():
    assert min(degree_excess(8, 6)[1:]) < 0 < min(degree_excess(10, 6)[1:])


def test_degrees_do_not_couple_beyond_two():
    # lambda_L mu is a quadratic form in the coefficients; degrees 1 and 2 have no mixed term.
    n = 9
    one, two = pure_degree(1, n), pure_degree(2, n)
    mixed = Activation("mixed", lambda x: one(x) + two(x), one.derivative)
    from bnlib.mean_field import symmetric_fixed_point

    def form(phi):
        return forward_multipliers(phi, n).norms * symmetric_fixed_point(phi, n).centered

    assert form(mixed) == pytest.approx(form(one) + form(two), abs=1e-11)


def test_convergence_at_the_predicted_rate():
    path, layers = relu_convergence(np.diag(np.linspace(1, 2, 12)), 120)
    assert layers is not None
    assert path[-1] / path[-2] == pytest.approx(relu_forward_multipliers(12).norms, abs=0.005)
    assert relu_convergence(np.diag(np.linspace(1, 2, 12)), 3)[1] is None
    assert norm_deviation(np.eye(4) + 7) < 1e-14


def test_errors(unchecked):
    with pytest.raises(ValueError, match="phi must vary, but constant is constant"):
        norm_elasticity(Activation("constant", lambda x: 1 + 0 * x, lambda x: 0 * x))
    with pytest.raises(ValueError, match="degree must be at least 1, got 0"):
        pure_degree(0, 8)
    with pytest.raises(ValueError, match="degrees must be at least 1, got 0"):
        degree_excess(8, 0)
    with pytest.raises(ValueError, match="nodes must be at least 4"):
        gaussian_rule(2)
    with pytest.raises(ValueError, match="layers must be at least 2"):
        relu_convergence(np.eye(4), 1)
    with pytest.raises(ValueError, match="factor must lie between 0 and 1"):
        relu_convergence(np.eye(4), 5, 2)
