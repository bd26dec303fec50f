"""Tests of bnlib.leaky: the kernel against Monte Carlo, the theorem on equal states, known values, messages."""

import math

import numpy as np
import pytest

from bnlib import leaky, outlier_class
from bnlib.escape_networks import outlier_gram
from bnlib.fixed_points import NotConvergedError
from bnlib.kernels import recentered_relu_kernel, relu_cosine
from bnlib.outlier_fixed_points import outlier_state
from bnlib.state_stability import all_multipliers, class_stability

SLOPES = [-1.0, -0.4, 0.0, 0.2, 0.7]


def activation(x: np.ndarray, slope: float) -> np.ndarray:
    """a relu(x) - b relu(-x) with b/a = slope and He's variance: E phi(g)^2 = 1."""
    return np.where(x > 0, x, slope * x) * math.sqrt(2 / (1 + slope**2))


def leaky_layer(k: np.ndarray, slope: float) -> np.ndarray:
    """Recentered Gram matrix after one infinitely wide layer, entry by entry."""
    n = len(k)
    g = np.eye(n) - 1 / n
    c = g @ k @ g
    norms = np.sqrt(np.diagonal(c))
    cosine = np.clip(c / np.outer(norms, norms), -1, 1)
    return g @ (np.outer(norms, norms) * leaky.leaky_cosine(cosine, slope)) @ g


# ---------------------------------------------------------------- naive references


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("c", [-0.9, -0.2, 0.5])
def test_kernel_against_monte_carlo(slope, c, seed):
    random = np.random.default_rng(seed)
    x, z = random.standard_normal((2, 200_000))
    product = activation(x, slope) * activation(c * x + math.sqrt(1 - c * c) * z, slope)
    error = product.std() / math.sqrt(len(product))
    assert abs(product.mean() - leaky.leaky_cosine(c, slope)) < 5 * error
    if slope != 0:  # power: the same sample rejects the kernel of ReLU
        assert abs(product.mean() - relu_cosine(c)) > 5 * error


@pytest.mark.parametrize("slope", SLOPES)
def test_map_of_one_number_is_the_map_of_the_gram_matrix(slope):
    n, u = 7, 0.3
    odd, mean = np.eye(n)[0], np.r_[0, np.full(n - 1, 1 / (n - 1))]
    k = u * np.diag(np.r_[0, np.ones(n - 1)]) + np.outer(odd, odd) * (1 - u / (n - 1))
    after = leaky_layer(k, slope)
    distance = (odd - mean) @ k @ (odd - mean)
    after_distance = (odd - mean) @ after @ (odd - mean)
    state = (k[1, 1] - k[1, 2]) / distance
    assert leaky.next_state(state, n, slope) == pytest.approx((after[1, 1] - after[1, 2]) / after_distance, rel=1e-12)


@pytest.mark.parametrize("slope", SLOPES)
def test_theorem_the_identity_is_added_to_the_map(slope, seed):
    n = 6
    x = np.random.default_rng(seed).standard_normal((n, 4))
    x -= x.mean(axis=0)
    k = x @ x.T
    w = leaky.mixing(slope)
    g = np.eye(n) - 1 / n
    relu = g @ recentered_relu_kernel(k) @ g
    np.testing.assert_allclose(leaky_layer(k, slope), (1 - w) * relu + w * k, atol=1e-12)


# ---------------------------------------------------------------- known values


def test_relu_is_slope_zero():
    u = np.geomspace(1e-6, 3, 50)
    np.testing.assert_allclose(leaky.next_state(u, 9), outlier_class.next_state(u, 9), rtol=1e-12)
    known = outlier_state(16)
    found = leaky.outlier_state(16)
    assert found.u == pytest.approx(known.u, rel=1e-9)
    assert found.cluster_angle == pytest.approx(known.cluster_angle, rel=1e-9)
    assert found.outlier_angle == pytest.approx(known.outlier_angle, rel=1e-12)
    assert found.norm_ratio_to_mean == pytest.approx(known.norm_ratio_mean, rel=1e-9)


def test_mixing_is_symmetric_and_bounded():
    s = np.array([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 4.0, 1e90])
    w = leaky.mixing(s)
    np.testing.assert_allclose(w[:-1], 2 * s[:-1] / (1 + s[:-1] ** 2))
    assert (np.abs(w) <= 1).all()
    assert leaky.mixing(4.0) == leaky.mixing(0.25)


def test_absolute_value_and_linear():
    c = np.linspace(-1, 1, 21)
    np.testing.assert_allclose(leaky.leaky_cosine(c, -1), 2 / math.pi * (np.sqrt(1 - c * c) + c * np.arcsin(c)))
    np.testing.assert_allclose(leaky.leaky_cosine(c, 1), c, atol=1e-15)
    u = np.array([0.1, 0.5, 2.0])
    np.testing.assert_allclose(leaky.next_state(u, 5, 1.0), u)  # linear: every state stays


@pytest.mark.parametrize("slope", [-1.0, -0.5, 0.1, 0.8])
def test_states_do_not_depend_on_the_slope(slope):
    assert leaky.critical_batch_size(slope).n == pytest.approx(leaky.critical_batch_size().n, abs=1e-9)
    for n in (7, 12, 64):
        assert leaky.outlier_state(n, slope).u == pytest.approx(leaky.outlier_state(n).u, rel=1e-9)
        assert leaky.separatrix(n, slope).u == pytest.approx(leaky.separatrix(n).u, rel=1e-9)
    assert leaky.outlier_state(6, slope) is None
    assert leaky.separatrix(6, slope) is None


@pytest.mark.parametrize("slope", SLOPES)
def test_multiplier_is_carried_over(slope):
    n = 10
    relu, other = leaky.outlier_state(n), leaky.outlier_state(n, slope)
    growth = outlier_state(n).scale_growth
    assert other.multiplier == pytest.approx(leaky.transferred_multiplier(relu.multiplier, growth, slope), abs=1e-6)
    assert other.multiplier < 1 < leaky.separatrix(n, slope).multiplier


def test_saddle_node_is_one():
    found = leaky.critical_batch_size()
    assert found.n == pytest.approx(6.1070751249, abs=1e-9)
    assert found.residual < 1e-12
    assert found.slope_residual < 1e-6
    assert leaky.outlier_state(found.n + 1e-6) is not None
    assert leaky.outlier_state(found.n - 1e-3) is None


def test_derivative_at_the_symmetric_state():
    for n in (3, 8, 40):
        for slope in SLOPES:
            u, h = (n - 1) / n, 1e-6
            slope_of_map = (leaky.next_state(u + h, n, slope) - leaky.next_state(u - h, n, slope)) / (2 * h)
            assert slope_of_map == pytest.approx(leaky.symmetric_multiplier(n, slope), abs=1e-7)


def test_large_batches():
    for slope in (-0.5, 0.3):
        n = 4000
        state, w = leaky.outlier_state(n, slope), leaky.mixing(slope)
        assert n * state.cluster_angle == pytest.approx(3 * math.pi, rel=2e-3)
        assert state.outlier_angle == pytest.approx(math.acos(-w), abs=1e-3)
        limit = (1 - w) * (math.pi - 2) / (2 * (math.pi - 1 + w))
        assert n * (1 - leaky.symmetric_multiplier(n, slope)) == pytest.approx(limit, rel=2e-3)


def perturbed_distance(slope: float, layers: int) -> float:
    """Distance of a slightly pushed outlier state of n = 16 from itself after layers of the map of the Gram matrix."""
    n = 16
    k = outlier_gram(n)
    g = np.eye(n) - 1 / n
    state = g @ k @ g
    state /= np.trace(state)
    push = np.outer(state[0], np.r_[0, 1, -1, np.zeros(n - 3)])  # odd sample against one sample and another
    c = state + 1e-7 * g @ (push + push.T) @ g
    for _ in range(layers):
        c = leaky_layer(c, slope)
        c /= np.trace(c)
    return float(np.abs(c - state).max())


def test_the_outlier_state_flips_for_the_absolute_value():
    assert perturbed_distance(-1.0, 40) > 5 * perturbed_distance(-1.0, 10)
    assert perturbed_distance(-0.5, 40) < perturbed_distance(-0.5, 10)
    blocks = class_stability(0.0, outlier_state(16).u, 16)
    least = all_multipliers(blocks).real.min()
    flip = leaky.flip_slope(least, outlier_state(16).scale_growth)
    assert -0.75 < flip < -0.55
    assert perturbed_distance(flip - 0.1, 60) > perturbed_distance(flip - 0.1, 30)
    assert perturbed_distance(flip + 0.1, 60) < perturbed_distance(flip + 0.1, 30)
    assert leaky.flip_slope(0.9, 0.9) is None


# ---------------------------------------------------------------- messages


def test_messages():
    with pytest.raises(
        ValueError, match=r"^slope is 1; valid is any leaky slope but 1, where the network is linear\.$"
    ):
        leaky.outlier_state(8, 1)
    with pytest.raises(ValueError, match="slope must be a finite leaky slope, got nan"):
        leaky.mixing(math.nan)
    with pytest.raises(ValueError, match="n must be a batch size of at least 3, got 2"):
        leaky.next_state(0.1, 2)
    with pytest.raises(ValueError, match="growth is 0; valid is a positive factor"):
        leaky.transferred_multiplier(0.9, 0, 0.1)
    with pytest.raises(ValueError, match=r"valid for slope -1 is a growth above 0\.5"):
        leaky.transferred_multiplier(0.9, 0.4, -1)
    with pytest.raises(ValueError, match=r"multiplier is 1\.5; valid is a number between -1 and 1"):
        leaky.flip_slope(1.5, 0.9)
    with pytest.raises(ValueError, match=r"growth is 0\.4; valid is a factor of the squared scale above 1/2"):
        leaky.flip_slope(0.5, 0.4)
    with pytest.raises(ValueError, match="u must be a ratio of squared distances"):
        leaky.cluster_angle(-1.0, 8)
    assert issubclass(NotConvergedError, ValueError)
