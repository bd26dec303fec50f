"""The backward map: eigenvalues by three routes, the whole operator, finite differences."""

import math

import numpy as np
import pytest

from bnlib import backward_operator as backward
from bnlib.activations import activation, leaky_relu
from bnlib.mean_field import relu_gradient_growth, symmetric_fixed_point
from bnlib.sphere import uniform_on_sphere

RELU = activation("relu")


def test_operator_agrees_with_plain_sums_over_drawn_batches(seed):
    n, draws, rng = 5, 60000, np.random.default_rng(seed)
    b = uniform_on_sphere(n, draws, rng)
    v = b / math.sqrt(n)
    layer = (np.eye(n) - 1 / n - v[:, :, None] * v[:, None, :]) * RELU.derivative(b)[:, None, :]
    c = n / (symmetric_fixed_point(RELU, n).centered * (n - 3))
    p = np.zeros((n, n))
    p[0, 1] = p[1, 0] = math.sqrt(0.5)  # the second column of the matrix; not centered
    images = c * layer @ p @ layer.transpose(0, 2, 1)
    indices = [(i, j) for i in range(n) for j in range(i, n)]
    column = backward.backward_operator(RELU, n)[:, 1]
    for (i, j), exact in zip(indices, column, strict=True):
        values = images[:, i, j] * (1.0 if i == j else math.sqrt(2))
        assert abs(values.mean() - exact) < 5 * values.std() / math.sqrt(draws) + 1e-12


def test_eigenvalues_of_the_identity():
    for n in (4, 6, 9, 30):
        found = backward.backward_multipliers(activation("identity"), n)
        other = 1 + 2 / ((n + 1) * (n - 3))
        assert np.allclose([found.average, found.norms, found.covariances], [(n - 2) / (n - 3), other, other])


@pytest.mark.parametrize("n", [4, 5, 8, 33, 128])
def test_closed_form_for_relu(n):
    closed, general = backward.relu_backward_multipliers(n), backward.backward_multipliers(RELU, n)
    assert closed.average == pytest.approx(relu_gradient_growth(n), rel=1e-12)
    for space in ("average", "norms", "covariances"):
        assert getattr(closed, space) == pytest.approx(getattr(general, space), rel=1e-10)


@pytest.mark.parametrize("name", ["relu", "tanh", "sin"])
def test_whole_operator_has_the_three_eigenvalues_and_no_other(name):
    found = backward.operator_facts(activation(name), 7)
    assert (found["average"], found["norms"], found["covariances"], found["kernel"]) == (1, 6, 14, 7)
    assert found["error"] < 1e-11
    assert found["asymmetry_after"] < 1e-13 < 1e-3 < found["asymmetry_before"]


def test_monte_carlo_and_a_wrong_variant(seed):
    phi, n = leaky_relu(0.2), 9
    found = backward.monte_carlo_backward(phi, n, 40000, np.random.default_rng(seed))
    exact = backward.backward_multipliers(phi, n)
    for space, measured in found.items():
        assert abs(measured.mean - getattr(exact, space)) < 5 * measured.error
    # Without the radial part v v^T the average would be larger.
    wrong = exact.average * (n - 1) / (n - 2)
    assert abs(found["average"].mean - wrong) > 5 * found["average"].error


def test_cross_covariance_and_jacobian():
    for name in ("relu", "tanh", "gelu", "identity"):
        for n in (4, 7, 40):
            found = backward.cross_backward(activation(name), n)
            assert abs(found["difference"]) < 1e-11
            assert found["elsewhere"] < 1e-14
    rng = np.random.default_rng(0)
    assert backward.jacobian_error(activation("gelu"), 5, 4, rng) < 1e-8
    # A kink off the differences' reach does no harm, one inside it does: the check sees a wrong derivative.
    wrong = activation("tanh").__class__("wrong", np.tanh, lambda x: 1.01 / np.cosh(x) ** 2)
    assert backward.jacobian_error(wrong, 5, 2, rng) > 5e-3


def test_refusals():
    with pytest.raises(ValueError, match=r"n must be .* at least 4, got 3"):
        backward.backward_multipliers(RELU, 3)
    with pytest.raises(ValueError, match=r"n must be a batch size of at least 4, got 3\.5"):
        backward.relu_backward_multipliers(3.5)
    with pytest.raises(ValueError, match="draws must be at least 50, got 49"):
        backward.monte_carlo_backward(RELU, 8, 49, np.random.default_rng(0))
    with pytest.raises(ValueError, match="draws must be at least 1, got 0"):
        backward.jacobian_error(RELU, 8, 0, np.random.default_rng(0))
