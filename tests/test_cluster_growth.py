"""Tests of bnlib.cluster_growth: the four-number map written out, known states, the small-angle law, messages."""

import math

import numpy as np
import pytest

from bnlib import cluster_growth as growth
from bnlib import invariant_geometry, kernels
from bnlib.outlier_fixed_points import find_outlier_state


def full_map(x: np.ndarray) -> np.ndarray:
    """Gram matrix after one layer, by the general kernel on all n(n+1)/2 entries."""
    return kernels.recentered_relu_kernel(x @ x.T)


def state_of_gram(k: np.ndarray) -> float:
    """u from a Gram matrix of the class, as it is defined."""
    n = len(k)
    mean = np.full(n, 1 / (n - 1))
    mean[0] = 0.0
    odd = np.eye(n)[0]
    return (k[1, 1] - k[1, 2]) / ((odd - mean) @ k @ (odd - mean))


# ---------------------------------------------------------------- naive references


@pytest.mark.parametrize(("n", "theta"), [(3, 0.4), (4, 1.3), (8, 0.05), (8, 0.9), (33, 0.3)])
def test_map_of_one_number_against_the_full_gram_matrix(n, theta):
    x = invariant_geometry.invariant_representation(n, n, theta)
    u = growth.state_of_angle(theta, n)
    assert u == pytest.approx(state_of_gram(x @ x.T), rel=1e-10)
    k = full_map(x)
    for _ in range(5):  # u follows the full map layer after layer, whatever the scale
        assert math.cos(growth.angle_after_layer(u, n)) == pytest.approx(k[1, 2] / k[1, 1], rel=1e-10)
        u = growth.next_state(u, n)
        assert u == pytest.approx(state_of_gram(k), rel=1e-8)
        k = kernels.recentered_relu_kernel(k)


def test_path_follows_the_full_gram_matrix():
    n = 6
    k = full_map(invariant_geometry.invariant_representation(n, n, 0.2))
    path = growth.cluster_angle_path(10, 0.2, n)
    assert path.shape == (11,)
    assert path[0] == 0.2
    for angle in path[1:]:
        assert math.cos(angle) == pytest.approx(k[1, 2] / k[1, 1], rel=1e-9)
        k = kernels.recentered_relu_kernel(k)


@pytest.mark.parametrize(("n", "width"), [(3, 2), (8, 3), (8, 16), (64, 40)])
def test_growth_rate_against_chi_squares(n, width, seed):
    random = np.random.default_rng(seed)
    active = random.binomial(width, 0.5, 100_000)
    active = active[(active > 0) & (active < width)]
    a, b, c = random.chisquare(active), random.chisquare(active), random.chisquare(width - active)
    sample = np.log(a) - np.log(((n - 1) ** 2 * c + b) / n**2)
    error = sample.std(ddof=1) / math.sqrt(len(sample))
    assert abs(sample.mean() - growth.growth_rate(n, width)) < 5 * error
    forgotten = np.log(a) - np.log(c.mean())  # the law of e left out: another rate
    assert abs(forgotten.mean() - growth.growth_rate(n, width)) > 5 * error


# ---------------------------------------------------------------- known values


@pytest.mark.parametrize(
    ("n", "norm_ratio", "outlier_deg", "cluster_deg"),
    [
        (7, 3.849, 86.24, 61.37),
        (8, 5.105, 87.54, 54.65),
        (16, 13.896, 89.655, 30.00),
        (32, 30.385, 89.952, 15.88),
        (64, 62.674, 89.994, 8.18),
        (128, 126.83, 89.999, 4.154),
    ],
)
def test_outlier_states(n, norm_ratio, outlier_deg, cluster_deg):
    state = find_outlier_state(n)
    assert state.norm_ratio == pytest.approx(norm_ratio, abs=5e-3)
    assert math.degrees(state.outlier_angle) == pytest.approx(outlier_deg, abs=5e-3)
    assert math.degrees(state.cluster_angle) == pytest.approx(cluster_deg, abs=5e-3)
    assert state.residual < 1e-10
    assert growth.next_state(state.u, n) == pytest.approx(state.u, rel=1e-10)


def test_outlier_state_exists_from_seven_on():
    assert [find_outlier_state(n) is None for n in (3, 4, 5, 6, 7, 8, 9)] == [True] * 4 + [False] * 3


def test_large_batches():
    state = find_outlier_state(10_000)
    assert state.cluster_angle * 10_000 == pytest.approx(3 * math.pi, rel=1e-3)
    assert (9_999 - state.norm_ratio_mean) * 1e8 == pytest.approx(9 * math.pi**2 / 2, rel=1e-2)
    gap = math.pi / 2 - state.outlier_angle
    assert gap * 1e12 == pytest.approx(9 * math.pi**2 / (2 * math.sqrt(2)), rel=1e-2)
    assert (1 - state.scale_growth) * 10_000 == pytest.approx(2.0, rel=1e-3)


def test_fixed_points_of_the_map():
    for n in (3, 8, 64):
        assert growth.next_state(0.0, n) == 0.0
        assert growth.next_state((n - 1) / n, n) == pytest.approx((n - 1) / n, rel=1e-13)


@pytest.mark.parametrize("n", [3, 8, 64])
def test_small_angles_follow_the_series(n):
    """theta'^2 = alpha theta^2 (1 - 2 sqrt(alpha) theta / (3 pi) + O(theta^2)): the error falls with theta squared."""
    errors, wrong = [], []
    for theta in (1e-2, 1e-3):
        exact = growth.angle_after_layer(growth.state_of_angle(theta, n), n)
        errors.append(abs(growth.small_angle_series(theta, n) / exact - 1))
        first_order = theta * math.sqrt(invariant_geometry.alpha_invariance(n))
        wrong.append(abs(first_order / exact - 1))
    assert errors[0] / errors[1] == pytest.approx(100, rel=0.1)
    assert wrong[0] / wrong[1] == pytest.approx(10, rel=0.1)  # without the correction it falls with theta only


def test_growth_is_alpha_for_any_shape_of_the_cluster(seed):
    """Unequal differences, not orthogonal to anything: each pair still grows by alpha relative to the distance R."""
    random = np.random.default_rng(seed)
    n = 9
    x = invariant_geometry.invariant_representation(n, 12)
    x[1:] += 1e-7 * random.standard_normal((n - 1, 12))
    before = ((x[1:, None] - x[None, 1:]) ** 2).sum(axis=-1)[np.triu_indices(n - 1, 1)]
    squared = invariant_geometry.squared_distance_to_cluster(x)
    after = invariant_geometry.expected_squared_distances(x, 1.0)[1:, 1:][np.triu_indices(n - 1, 1)]
    k = full_map(x)
    mean = np.full(n, 1 / (n - 1))
    mean[0] = 0
    contrast = np.eye(n)[0] - mean
    ratio = after / (contrast @ k @ contrast) / (before / squared)
    np.testing.assert_allclose(ratio, float(invariant_geometry.alpha_invariance(n)), rtol=1e-4)


def test_path_from_definition_12_settles_at_the_outlier_state():
    for n in (8, 32):
        path = growth.cluster_angle_path(40 * n, 1e-3, n)
        assert path[-1] == pytest.approx(find_outlier_state(n).cluster_angle, rel=1e-6)
        assert (np.diff(path) > -1e-14).all()
    symmetric = kernels.batch_norm_angle(5)
    assert growth.cluster_angle_path(400, 1e-3, 5)[-1] == pytest.approx(symmetric, rel=1e-6)
    assert (growth.cluster_angle_path(50, 0.0, 8) == 0.0).all()  # exactly collapsed stays collapsed


def test_growth_rate_tends_to_infinite_width_and_is_positive():
    for n in (3, 8, 64):
        limit = growth.growth_rate(n)
        assert limit == pytest.approx(math.log(invariant_geometry.alpha_invariance(n)), rel=1e-12)
        assert growth.growth_rate(n, 100_000) == pytest.approx(limit, rel=1e-3)
        assert all(growth.growth_rate(n, width) > 0 for width in (3, 4, 8, 16, 64, 1000))


@pytest.mark.parametrize("n", [3, 8, 64])
def test_growth_rate_is_zero_at_width_two(n):
    """Each sign has one neuron: B / C is a squared Cauchy variable, E log(1 + B / (m^2 C)) = 2 log(1 + 1/m)."""
    assert growth.growth_rate(n, 2) == pytest.approx(0.0, abs=1e-10)


# ---------------------------------------------------------------- extremes and messages


def test_tiny_states_keep_their_digits():
    for n in (3, 8):
        alpha = float(invariant_geometry.alpha_invariance(n))
        assert growth.next_state(1e-30, n) / 1e-30 == pytest.approx(alpha, rel=1e-12)
        assert growth.angle_after_layer(growth.state_of_angle(1e-12, n), n) == pytest.approx(
            1e-12 * math.sqrt(alpha), rel=1e-11
        )


def test_shapes():
    u = np.array([[0.0, 0.1], [0.2, 0.3]])
    assert growth.next_state(u, 8).shape == (2, 2)
    assert growth.angle_after_layer(u, 8).shape == (2, 2)
    assert isinstance(growth.next_state(0.1, 8), float)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: growth.next_state(-0.1, 8), "u must be a ratio of squared distances, between 0 and 1e100, got -0.1."),
        (lambda: growth.next_state(math.nan, 8), "u must be a ratio of squared distances"),
        (lambda: growth.next_state(math.inf, 8), "u must be a ratio of squared distances"),
        (
            lambda: growth.next_state(0.1, 2),
            r"n must be a batch size of at least 3 \(a cluster needs two samples\), got 2",
        ),
        (lambda: growth.state_of_angle(2.0, 8), "cluster_angle must be between 0 and pi/2 radians, got 2.0."),
        (lambda: growth.small_angle_series(-1.0, 8), "cluster_angle must be between 0 and pi/2 radians, got -1.0."),
        (lambda: growth.cluster_angle_path(-1, 0.1, 8), "depth must be a whole number of layers, 0 or more, got -1."),
        (lambda: find_outlier_state(2), "n must be a batch size of at least 3"),
        (lambda: growth.growth_rate(8, 1), "width must be a whole number of neurons of at least 2 or infinity, got 1."),
        (
            lambda: growth.growth_rate(8, 2.5),
            "width must be a whole number of neurons of at least 2 or infinity, got 2.5.",
        ),
    ],
)
def test_messages(call, sentence):
    with pytest.raises(ValueError, match="^" + sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
