"""Activations: derivatives against difference quotients, degrees against their definition."""

import numpy as np
import pytest

from bnlib.activations import _NAMED, activation, leaky_relu, power_relu

ALL = [*_NAMED.values(), leaky_relu(0.1), leaky_relu(-1), power_relu(0.5), power_relu(2), power_relu(30)]
POINTS = np.concatenate([-np.geomspace(0.05, 3, 9), np.geomspace(0.05, 3, 9)])


@pytest.mark.parametrize("phi", ALL, ids=lambda phi: phi.name)
def test_derivatives(phi):
    h = 1e-5
    numeric = (phi(POINTS + h) - phi(POINTS - h)) / (2 * h)
    assert phi.derivative(POINTS) == pytest.approx(numeric, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("phi", [phi for phi in ALL if phi.degree is not None], ids=lambda phi: phi.name)
def test_degrees_of_homogeneity(phi):
    assert phi(3 * POINTS) == pytest.approx(3.0**phi.degree * phi(POINTS), rel=1e-12)
    assert phi(3 * POINTS) != pytest.approx(3.0 ** (phi.degree + 0.1) * phi(POINTS), rel=1e-2)


def test_values_by_hand():
    assert activation("gelu")(np.array([0.0, 10.0])).tolist() == [0.0, 10.0]
    assert activation("silu")(np.array([-1.0]))[0] == pytest.approx(-1 / (1 + np.e))
    assert activation("sigmoid")(np.array([0.0]))[0] == 0.5
    assert activation("abs").derivative(np.array([-2.0, 2.0])).tolist() == [-1.0, 1.0]
    assert activation("relu")(np.empty((0, 2))).shape == (0, 2)


def test_huge_values_neither_warn_nor_turn_into_nan():
    for name in ("tanh", "sigmoid", "gelu", "silu", "erf-like"):
        assert np.isfinite(activation(name)(np.array([-1e3, 1e3]))).all()


def test_errors():
    with pytest.raises(ValueError, match="activation is 'swish'; valid are identity, relu, abs"):
        activation("swish")
    with pytest.raises(ValueError, match="slope must be finite, got inf"):
        leaky_relu(np.inf)
    with pytest.raises(ValueError, match="exponent must be positive and finite, got 0"):
        power_relu(0)
