"""Mean-field theory of batch normalization: closed forms, quadrature, Monte Carlo, networks of one layer."""

import math

import numpy as np
import pytest

from bnlib.activations import Activation, activation, leaky_relu, power_relu
from bnlib.mean_field import (
    cross_batch_constant,
    cross_batch_decay,
    forward_multipliers,
    gradient_growth,
    linear_gradient_growth,
    mean_chi,
    relu_cross_batch_constant,
    relu_cross_batch_decay,
    relu_forward_multipliers,
    relu_gradient_growth,
    relu_symmetric_fixed_point,
    symmetric_fixed_point,
)
from bnlib.sphere import uniform_on_sphere
from bnlib.v_transform import batch_norm_relu_transform

RELU, IDENTITY = activation("relu"), activation("identity")
SIZES = (4, 5, 8, 16, 64, 300, 1024)


@pytest.mark.parametrize("n", SIZES)
def test_relu_quadrature_meets_the_closed_forms(n):
    point, closed = symmetric_fixed_point(RELU, n), relu_symmetric_fixed_point(n)
    assert point.diagonal == pytest.approx(0.5, abs=1e-12)
    assert point.cosine == pytest.approx(closed.cosine, abs=1e-12)
    assert point.centered == pytest.approx(closed.centered, abs=1e-12)
    multipliers, expected = forward_multipliers(RELU, n), relu_forward_multipliers(n)
    assert multipliers.norms == pytest.approx(expected.norms, abs=1e-11)
    assert multipliers.covariances == pytest.approx(expected.covariances, abs=1e-11)
    assert gradient_growth(RELU, n) == pytest.approx(relu_gradient_growth(n), abs=1e-11)
    assert gradient_growth(IDENTITY, n) == pytest.approx(linear_gradient_growth(n), abs=1e-11)
    assert cross_batch_constant(RELU, n) == pytest.approx(relu_cross_batch_constant(n), abs=1e-11)
    assert cross_batch_decay(RELU, n) == pytest.approx(relu_cross_batch_decay(n), abs=1e-11)


def test_published_numbers():
    assert relu_gradient_growth(8) == pytest.approx(1.78819, abs=1e-5)
    assert relu_gradient_growth(64) == pytest.approx(1.49306, abs=1e-5)
    assert relu_gradient_growth(math.inf) == pytest.approx(math.pi / (math.pi - 1))
    assert relu_forward_multipliers(8).norms == pytest.approx(0.744, abs=5e-4)
    assert relu_cross_batch_decay(8) == pytest.approx(0.7097, abs=5e-5)
    assert relu_cross_batch_constant(1e7) == pytest.approx(1 / (2 * math.pi), rel=1e-6)
    big = relu_forward_multipliers(1e8)
    assert big.norms == pytest.approx(1, abs=1e-6)
    assert big.covariances == pytest.approx(math.pi / (2 * (math.pi - 1)), abs=1e-6)


@pytest.mark.parametrize("slope", [0.0, 0.3, 1.0, -1.0])
@pytest.mark.parametrize("n", [4, 5, 8, 13])
def test_the_linearization_is_the_derivative_of_the_laplace_integral(slope, n):
    """Two ways that share nothing: the score of a Gaussian on the sphere, and differences of the transform."""
    phi = leaky_relu(slope)
    point = symmetric_fixed_point(phi, n)
    centering = np.eye(n) - 1 / n
    norms = centering @ np.diag([1.0, -1.0] + [0.0] * (n - 2)) @ centering
    covariances = np.zeros((n, n))
    covariances[:4, :4] = [[0, 0, 1, -1], [0, 0, -1, 1], [1, -1, 0, 0], [-1, 1, 0, 0]]
    multipliers = forward_multipliers(phi, n)
    step = 1e-4 * point.centered
    wanted = ((centering, multipliers.average_norm), (norms, multipliers.norms), (covariances, multipliers.covariances))
    for direction, expected in wanted:
        forward = batch_norm_relu_transform(point.centered * centering + step * direction, slope)
        backward = batch_norm_relu_transform(point.centered * centering - step * direction, slope)
        change = centering @ (forward - backward) @ centering / (2 * step)
        assert change == pytest.approx(expected * direction, abs=2e-6)


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "square"])
def test_gradient_growth_against_drawn_jacobians(name, seed):
    """The Jacobian of sqrt(n) G h / |G h|, drawn, applied to an isotropic gradient; n = 12 keeps the tails light."""
    n, draws, phi = 12, 4000, activation(name)
    point = symmetric_fixed_point(phi, n)
    generator = np.random.default_rng(seed)
    h = generator.standard_normal((draws, n)) * math.sqrt(point.centered)
    h -= h.mean(axis=1, keepdims=True)
    length = np.linalg.norm(h, axis=1)[:, None]
    v = h / length
    gradient = generator.standard_normal((draws, n))
    gradient -= gradient.mean(axis=1, keepdims=True)  # below the top layer gradients are centered
    back = phi.derivative(math.sqrt(n) * v) * gradient
    back -= (back * v).sum(axis=1, keepdims=True) * v
    back -= back.mean(axis=1, keepdims=True)
    back *= math.sqrt(n) / length
    growth = (back**2).sum(axis=1) / (n - 1)
    error = growth.std(ddof=1) / math.sqrt(draws)
    assert abs(growth.mean() - gradient_growth(phi, n)) < 5 * error
    # Power: taking E[1/|G h|^2] for 1/E[|G h|^2] is rejected.
    assert abs(growth.mean() - gradient_growth(phi, n) * (n - 3) / (n - 1)) > 5 * error


@pytest.mark.parametrize("name", ["relu", "tanh", "sin"])
def test_cross_batch_decay_against_two_correlated_batches(name, seed):
    n, draws, correlation, phi = 8, 60_000, 0.1, activation(name)
    generator = np.random.default_rng(seed)
    g, other = generator.standard_normal((2, draws, n))
    mu = symmetric_fixed_point(phi, n).centered
    along, across = correlation * g, math.sqrt(1 - correlation**2) * other

    def normalized(h):
        h = h - h.mean(axis=1, keepdims=True)
        values = phi(h / np.sqrt((h**2).mean(axis=1, keepdims=True)))
        return values - values.mean(axis=1, keepdims=True)

    # Half the difference between opposite correlations: the same mean, and most of the noise cancels.
    a, b = normalized(g), (normalized(across + along) - normalized(across - along)) / 2
    # Covariance mu * correlation * G goes to lambda_cb times it, to first order; the next one is the cube.
    ratio = (a * b).sum(axis=1) / ((n - 1) * mu * correlation)
    error = ratio.std(ddof=1) / math.sqrt(draws)
    assert abs(ratio.mean() - cross_batch_decay(phi, n)) < 5 * error + 2 * correlation**2 * 0.2
    assert abs(ratio.mean() - 1.0) > 5 * error  # power: "no decay" is rejected


def test_the_identity_is_extreme():
    others = [activation(name) for name in ("relu", "tanh", "sigmoid", "gelu", "sin", "square")]
    others += [leaky_relu(0.5), power_relu(2)]
    for n in (4, 8, 64):
        for phi in others:
            assert gradient_growth(phi, n) > linear_gradient_growth(n)
            assert cross_batch_decay(phi, n) < cross_batch_decay(IDENTITY, n) < 1


def test_shifts_of_the_activation_change_only_the_common_covariance():
    plain = activation("tanh")
    shifted = type(plain)("shifted", lambda x: np.tanh(x) + 0.7, plain.derivative)
    for n in (4, 9):
        one, two = symmetric_fixed_point(plain, n), symmetric_fixed_point(shifted, n)
        assert one.centered == pytest.approx(two.centered, abs=1e-12)
        assert two.off_diagonal > one.off_diagonal + 0.1
        assert forward_multipliers(plain, n).norms == pytest.approx(forward_multipliers(shifted, n).norms, abs=1e-10)
        assert gradient_growth(plain, n) == pytest.approx(gradient_growth(shifted, n), abs=1e-10)


def test_two_samples():
    # b is (1, -1) or (-1, 1): everything is known, and nothing of the input's size is left.
    point = symmetric_fixed_point(RELU, 2)
    assert (point.diagonal, point.off_diagonal) == (0.5, 0.0)
    assert cross_batch_constant(RELU, 2) == 0.25
    assert cross_batch_decay(RELU, 2) == pytest.approx(relu_cross_batch_decay(2))
    assert mean_chi(1) == pytest.approx(math.sqrt(2 / math.pi))


def test_fixed_point_against_drawn_batches(seed):
    for phi in (activation("gelu"), power_relu(0.5)):
        drawn = phi(uniform_on_sphere(6, 20_000, np.random.default_rng(seed)))
        products = drawn[:, 0] * drawn[:, 1]
        error = products.std(ddof=1) / math.sqrt(len(products))
        assert abs(products.mean() - symmetric_fixed_point(phi, 6).off_diagonal) < 5 * error


def test_errors(unchecked):
    with pytest.raises(ValueError, match="at 3 the mean does not exist and at 2 every gradient is zero, got 3"):
        gradient_growth(RELU, 3)
    with pytest.raises(ValueError, match="smaller batches have no covariances between samples to perturb, got 3"):
        forward_multipliers(RELU, 3)
    wild = Activation("wild", lambda x: np.where(x > 0, np.inf, 0.0), np.zeros_like)
    with pytest.raises(
        ValueError, match="phi must be finite over a normalized batch of 8, but wild takes the value inf"
    ):
        symmetric_fixed_point(wild, 8)
    with pytest.raises(
        ValueError, match="phi must be finite over a normalized batch of 8, but nan takes the value nan"
    ):
        symmetric_fixed_point(Activation("nan", lambda x: x * np.nan, np.ones_like), 8)
    with pytest.raises(ValueError, match=r"a derivative with a finite mean square, which relu\^0.5 has not"):
        gradient_growth(power_relu(0.5), 8)
    with pytest.raises(ValueError, match=r"n must be a whole batch size of at least 4, got 4\.5"):
        forward_multipliers(RELU, 4.5)
    with pytest.raises(ValueError, match="phi must vary over a normalized batch of 2"):
        symmetric_fixed_point(activation("abs"), 2)
    for closed in (relu_gradient_growth, linear_gradient_growth):
        with pytest.raises(ValueError, match="the mean does not exist at 3"):
            closed(3)
    for closed in (relu_symmetric_fixed_point, relu_cross_batch_constant, relu_cross_batch_decay):
        with pytest.raises(ValueError, match="n must be a batch size of at least 2, got nan"):
            closed(math.nan)
    with pytest.raises(ValueError, match="degrees must be positive, got 0"):
        mean_chi(0)
