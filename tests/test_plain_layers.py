"""Networks without batch normalization: plane integrals against closed forms and draws; where they end."""

import math

import numpy as np
import pytest

from bnlib.activations import activation
from bnlib.homogeneous import homogeneous, kernel_cosine
from bnlib.homogeneous_layer import power_mean_square
from bnlib.plain_layers import pair_average, plain_layer, symmetry_rows


@pytest.mark.parametrize("alpha", [0.3, 1, 2, 3.5])
@pytest.mark.parametrize("c", [-1.0, -0.6, 0.0, 0.9, 1.0])
def test_pairs_against_closed_forms(alpha, c):
    phi = homogeneous(alpha, 1, 0.3)
    exact = power_mean_square(alpha) * float(kernel_cosine(c, phi))
    assert pair_average(phi.activation, 1, 1, c) == pytest.approx(exact, abs=1e-9 * power_mean_square(alpha))
    scaled = pair_average(phi.activation, 4, 9, 6 * c)
    assert scaled == pytest.approx(6**alpha * exact, abs=1e-8 * power_mean_square(alpha) * 6**alpha)


def test_error_function_is_exact():
    # E (2 Phi(x) - 1)(2 Phi(y) - 1) = (2/pi) arcsin(s_xy / sqrt((1 + s_xx)(1 + s_yy))).
    s = np.array([[1.0, 0.4], [0.4, 2.0]])
    found = plain_layer(s, activation("erf-like"), 1.5, 0.1)
    size = np.sqrt(np.outer(1 + np.diagonal(s), 1 + np.diagonal(s)))
    assert found == pytest.approx(1.5 * 2 / math.pi * np.arcsin(s / size) + 0.1, abs=1e-8)


def test_against_draws(seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((4, 6))
    values = np.tanh(generator.standard_normal((40_000, 6)) @ x.T)
    products = values[:, :, None] * values[:, None, :]
    error = products.std(axis=0, ddof=1) / 200
    found = plain_layer(x @ x.T, activation("tanh"), 1, 0)
    assert (np.abs(products.mean(axis=0) - found) < 5 * error).all()
    assert (np.abs(products.mean(axis=0) - plain_layer(x @ x.T, activation("sigmoid"), 1, 0)) > 5 * error).any()


def test_where_deep_networks_end():
    start = np.diag([1.0, 2.0, 4.0]) + 0.2
    biased, plain = symmetry_rows([(activation("relu"), 1.5, 0.2), (activation("relu"), 2.0, 0.0)], start, 60)
    assert biased["norms"] < 1e-6
    assert biased["cosine"] > 0.999
    assert plain["norms"] == pytest.approx(3 / 2.533, abs=0.03)  # the norms that it was given
    assert plain["cosine"] > 0.9


def test_errors(unchecked):
    phi = activation("tanh")
    for bad, sentence in (
        (np.ones((2, 3)), "must be square"),
        (np.full((2, 2), np.nan), "must be finite"),
        (np.diag([1.0, 0.0]), "positive diagonal"),
        (np.array([[1.0, 0.5], [0.1, 1.0]]), "must be symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semi-definite, got an eigenvalue -1"),
    ):
        with pytest.raises(ValueError, match=sentence):
            plain_layer(bad, phi, 1, 0)
    with pytest.raises(ValueError, match="weight_variance must be positive and bias_variance at least 0, got 0 and 0"):
        plain_layer(np.eye(2), phi, 0, 0)
    with pytest.raises(ValueError, match="must be positive variances, got 0 and 1"):
        pair_average(phi, 0, 1, 0)
    with pytest.raises(ValueError, match="covariance of at most 2, got 3"):
        pair_average(phi, 1, 4, 3)
    with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
        symmetry_rows([], np.eye(2), 0)
