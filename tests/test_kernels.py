"""Tests of bnlib.kernels: naive references first, then known values, then extremes, then messages."""

import math

import mpmath
import numpy as np
import pytest

from bnlib import kernels

PAIRS = 200_000  # draws of the Monte Carlo tests: fixed, whatever the outcome


def exact_cosine(theta: float) -> mpmath.mpf:
    """J(cos theta) with 50 digits, as in the textbook."""
    with mpmath.workdps(50):
        angle = mpmath.mpf(float(theta))
        return (mpmath.sin(angle) + (mpmath.pi - angle) * mpmath.cos(angle)) / mpmath.pi


def equicorrelated(n: int, theta: float, draws: int, seed: int) -> np.ndarray:
    """Pre-activations of `draws` neurons over a batch in which every pair has the angle theta."""
    random = np.random.default_rng(seed)
    c = math.cos(theta)
    gram = (1 - c) * np.eye(n) + c * np.ones((n, n))
    return random.standard_normal((draws, n)) @ np.linalg.cholesky(gram).T


def scaled_gram_statistics(h: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Per neuron: mean diagonal and mean off-diagonal entry of the Gram matrix after rescaling and ReLU."""
    n = h.shape[1]
    scale = np.sqrt((h**2).mean(axis=1)) if by == "rms" else h.std(axis=1)
    y = np.maximum(h / scale[:, None], 0.0)
    square = (y**2).sum(axis=1)
    return square / n, (y.sum(axis=1) ** 2 - square) / (n * (n - 1))


def z_score(h: np.ndarray, by: str, theta_after: float) -> float:
    """How many standard errors the simulated E[off - cos(theta_after) diagonal] is from 0, its value if right."""
    diagonal, off = scaled_gram_statistics(h, by)
    contrast = off - math.cos(theta_after) * diagonal
    return contrast.mean() / (contrast.std(ddof=1) / math.sqrt(len(contrast)))


# ---------------------------------------------------------------- naive references


def test_relu_cosine_equals_the_mean_over_gaussians(seed):
    random = np.random.default_rng(seed)
    for c in (-0.9, -0.2, 0.0, 0.6):
        x = random.standard_normal(PAIRS)
        y = c * x + math.sqrt(1 - c * c) * random.standard_normal(PAIRS)
        product = 2 * np.maximum(x, 0) * np.maximum(y, 0)
        error = product.std(ddof=1) / math.sqrt(PAIRS)
        assert abs(product.mean() - kernels.relu_cosine(c)) < 5 * error
        wrong = kernels.relu_cosine(min(1.0, c + 0.05))  # a kernel read off at a cosine 0.05 too large
        if c > -0.9:  # at c = -0.9 the two kernels differ by less than 5 standard errors
            assert abs(product.mean() - wrong) > 5 * error


def test_relu_cosine_derivative_equals_the_share_of_jointly_active_neurons(seed):
    random = np.random.default_rng(seed)
    for c in (-0.5, 0.3):
        x = random.standard_normal(PAIRS)
        y = c * x + math.sqrt(1 - c * c) * random.standard_normal(PAIRS)
        both = 2.0 * ((x > 0) & (y > 0))
        error = both.std(ddof=1) / math.sqrt(PAIRS)
        assert abs(both.mean() - kernels.relu_cosine_derivative(c)) < 5 * error
        assert abs(both.mean() - kernels.relu_cosine(c)) > 5 * error  # J in place of J' is noticed


def test_relu_kernel_equals_the_mean_over_wide_layers(seed):
    random = np.random.default_rng(seed)
    x = random.standard_normal((3, 2)) * np.array([[3.0], [1.0], [0.2]])
    h = random.standard_normal((PAIRS, 2)) @ x.T * math.sqrt(2.0)
    y = np.maximum(h, 0)
    products = y[:, :, None] * y[:, None, :]
    error = products.std(axis=0, ddof=1) / math.sqrt(PAIRS)
    gap = np.abs(products.mean(axis=0) - kernels.relu_kernel(x @ x.T))
    assert (gap < 5 * error).all()
    wrong = np.abs(products.mean(axis=0) - kernels.relu_kernel(x @ x.T, weight_variance=1.9))
    assert (np.diagonal(wrong) > 5 * np.diagonal(error)).all()


def test_recentered_kernel_equals_centering_first(seed):
    x = np.random.default_rng(seed).standard_normal((5, 7))
    g = np.eye(5) - 1 / 5
    expected = kernels.relu_kernel((g @ x) @ (g @ x).T)
    np.testing.assert_allclose(kernels.recentered_relu_kernel(x @ x.T), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_rms_layer_against_simulation(n, seed):
    theta = 1.1
    h = equicorrelated(n, theta, PAIRS, seed)
    right = kernels.rms_relu_angle(theta, n)
    assert abs(z_score(h, "rms", right)) < 5
    assert abs(z_score(h, "rms", right + math.radians(1.0))) > 5  # one degree off is noticed
    assert abs(z_score(h, "rms", kernels.relu_angle(theta))) > 5  # no rescaling at all is noticed


@pytest.mark.parametrize("n", [8, 16])
def test_std_layer_against_simulation(n, seed):
    theta = 1.1
    h = equicorrelated(n, theta, PAIRS, seed)
    assert abs(z_score(h, "std", kernels.std_relu_angle(theta, n))) < 5
    assert abs(z_score(h, "std", kernels.rms_relu_angle(theta, n))) > 5  # the other rescaling is noticed
    assert abs(z_score(h, "std", kernels.relu_angle(theta))) > 5


def test_rms_fixed_point_against_simulation(seed):
    n = 8
    theta = kernels.rms_fixed_point_angle(n)
    assert abs(z_score(equicorrelated(n, theta, PAIRS, seed), "rms", theta)) < 5
    shifted = theta + math.radians(3.0)  # no other angle reproduces itself
    assert abs(z_score(equicorrelated(n, shifted, PAIRS, seed), "rms", shifted)) > 5


def laplace_reference(theta: float, n: int, recentered_scale: bool) -> tuple[float, float]:
    """Angle after the layer, and diagonal of its Gram matrix, by adaptive quadrature in s with 20 digits."""
    with mpmath.workdps(20):
        c = mpmath.cos(mpmath.mpf(theta))
        ones, rest = 1 + (n - 1) * c, 1 - c

        def integrands(t):
            mu_ones = ones if recentered_scale else ones / (1 + t * ones)
            mu_rest = rest / (1 + t * rest)
            a, b = (mu_ones + (n - 1) * mu_rest) / n, (mu_ones - mu_rest) / n
            density = (1 + t * rest) ** (-mpmath.mpf(n - 1) / 2)
            if not recentered_scale:
                density /= mpmath.sqrt(1 + t * ones)
            r = b / a
            return density * a, density * (mpmath.sqrt(a * a - b * b) + (mpmath.pi - mpmath.acos(r)) * b) / mpmath.pi

        points = [0, 1 / ones, 1 / rest, 10 / rest, 100 / rest, mpmath.inf]
        diagonal, off = (mpmath.quad(lambda t, i=i: integrands(t)[i], sorted(points)) for i in (0, 1))
        return float(mpmath.acos(off / diagonal)), float(diagonal * n / 4)


@pytest.mark.parametrize(("n", "theta"), [(2, 0.5), (3, 1.5), (8, 1.0), (33, 0.3)])
def test_rms_layer_against_adaptive_quadrature(n, theta):
    angle, diagonal = laplace_reference(theta, n, recentered_scale=False)
    assert kernels.rms_relu_angle(theta, n) == pytest.approx(angle, rel=1e-12)
    assert diagonal == pytest.approx(0.5, rel=1e-9)  # the exact diagonal that the map relies on


@pytest.mark.parametrize(("n", "theta"), [(5, 1.5), (8, 1.0), (33, 0.3)])
def test_std_layer_against_adaptive_quadrature(n, theta):
    angle, diagonal = laplace_reference(theta, n, recentered_scale=True)
    c = math.cos(theta)
    assert kernels.std_relu_angle(theta, n) == pytest.approx(angle, rel=1e-9)
    assert diagonal == pytest.approx((1 + (1 + (n - 1) * c) / ((n - 3) * (1 - c))) / 2, rel=1e-6)


# ---------------------------------------------------------------- known values


def test_known_values_of_j():
    assert kernels.relu_cosine(1.0) == 1.0
    assert kernels.relu_cosine(-1.0) == 0.0
    assert kernels.relu_cosine(0.0) == pytest.approx(1 / math.pi, rel=1e-15)
    assert kernels.relu_cosine_derivative(0.0) == 0.5
    assert kernels.relu_angle(0.0) == 0.0
    assert kernels.relu_angle(math.pi) == pytest.approx(math.pi / 2, rel=1e-15)


def test_derivative_is_the_slope():
    c = np.linspace(-0.95, 0.95, 39)
    slope = (kernels.relu_cosine(c + 1e-5) - kernels.relu_cosine(c - 1e-5)) / 2e-5
    np.testing.assert_allclose(kernels.relu_cosine_derivative(c), slope, atol=1e-9)


@pytest.mark.parametrize(("n", "degrees"), [(2, 90.0), (8, 75.51), (math.inf, 71.44)])
def test_batch_norm_angle(n, degrees):
    assert math.degrees(kernels.batch_norm_angle(n)) == pytest.approx(degrees, abs=0.005)


def test_batch_norm_angle_does_not_depend_on_the_input_angle():
    n = 8
    for theta in (0.2, 1.0, 1.5):
        gram = (1 - math.cos(theta)) * np.eye(n) + math.cos(theta)
        after = kernels.recentered_relu_kernel(gram)
        assert after[0, 1] / after[0, 0] == pytest.approx(math.cos(kernels.batch_norm_angle(n)), rel=1e-12)


@pytest.mark.parametrize(("n", "degrees"), [(8, 60.107), (math.inf, 58.7525)])
def test_rms_fixed_point(n, degrees):
    found = kernels.rms_fixed_point(n)
    assert math.degrees(found.value) == pytest.approx(degrees, abs=5e-4 if n == 8 else 5e-5)
    assert found.residual < 1e-12
    assert found.iterations > 0
    assert kernels.rms_fixed_point_angle(n) == found.value


def test_rms_limit_of_large_batches_by_its_own_formula():
    """The integral over s at a huge n and the integral over the common part z agree: two separate derivations."""
    theta = np.array([1e-4, 0.1, 0.7, 1.2, 1.5])
    np.testing.assert_allclose(kernels.rms_relu_angle(theta, 1e10), kernels.rms_relu_angle(theta, math.inf), rtol=1e-8)
    assert kernels.rms_fixed_point_angle(1e8) == pytest.approx(kernels.rms_fixed_point_angle(math.inf), abs=1e-8)


def test_rms_fixed_point_falls_with_n_and_is_the_only_one():
    angles = [kernels.rms_fixed_point_angle(n) for n in (2, 3, 4, 8, 64, 10**6, math.inf)]
    assert angles == sorted(angles, reverse=True)
    grid = np.linspace(1e-3, math.pi / 2, 2000)
    for n in (2, 8, math.inf):
        sign = np.sign(kernels.rms_relu_angle(grid, n) - grid)
        assert np.count_nonzero(np.diff(sign)) == 1


def test_rms_fixed_point_attracts():
    theta = 0.01
    for _ in range(60):
        theta = kernels.rms_relu_angle(theta, 8)
    assert theta == pytest.approx(kernels.rms_fixed_point_angle(8), abs=1e-9)


def test_relu_alone_decays_like_three_pi_over_depth():
    depth = 20_000
    scaled = kernels.relu_angle_after(depth, np.array([0.5, math.pi / 2])) * depth / (3 * math.pi)
    np.testing.assert_allclose(scaled, 1.0, atol=0.005)
    path = kernels.relu_angle_path(5, math.pi / 2)
    assert path.shape == (6,)
    assert path[5] == kernels.relu_angle_after(5, math.pi / 2)
    assert (np.diff(path) < 0).all()


@pytest.mark.parametrize("n", [4, 8, 64])
def test_std_without_recentering_collapses_by_a_constant_factor(n):
    path = kernels.std_relu_angle_path(400, math.pi / 2, n)
    assert (path[-1] / path[-2]) ** 2 == pytest.approx((n - 3) / (n - 1), rel=1e-3)


def test_std_without_recentering_tends_to_relu_alone():
    theta = np.array([0.3, 1.0, math.pi / 2])
    np.testing.assert_allclose(kernels.std_relu_angle(theta, 1e9), kernels.relu_angle(theta), rtol=1e-8)
    np.testing.assert_array_equal(kernels.std_relu_angle(theta, math.inf), kernels.relu_angle(theta))


# ---------------------------------------------------------------- extremes


def test_no_digits_are_lost_at_either_end():
    small = np.geomspace(1e-12, 3.0, 200)
    for theta in np.concatenate([small, math.pi - small]):
        j = exact_cosine(theta)
        with mpmath.workdps(50):
            deficit, angle = float(1 - j), float(mpmath.acos(j))
        assert kernels.one_minus_relu_cosine(theta) == pytest.approx(deficit, rel=4e-15)
        assert kernels.relu_angle(theta) == pytest.approx(angle, rel=4e-15)


def test_relu_cosine_keeps_its_digits_near_antipodal_samples():
    for y in np.geomspace(1e-12, 1.0, 60):
        c = -1.0 + y  # the cosine itself is exact; its complement 1 + c has all its digits
        with mpmath.workdps(50):
            exact = mpmath.mpf(c)
            j = (mpmath.sqrt(1 - exact**2) + (mpmath.pi - mpmath.acos(exact)) * exact) / mpmath.pi
            expected = float(j)
        assert kernels.relu_cosine(c) == pytest.approx(expected, rel=4e-15)


def test_textbook_recursion_in_cosines_would_fail_where_ours_holds():
    """The reason for angles: float32 cosines lose 1 - cos at depth 3000, the angle form agrees with float64."""
    c = np.float32(0.0)
    for _ in range(3000):
        clipped = np.float32(min(c, np.float32(1.0)))
        root = np.sqrt(np.float32(1.0) - clipped * clipped)
        c = (root + (np.float32(math.pi) - np.arccos(clipped)) * clipped) / np.float32(math.pi)
    naive = math.acos(min(float(c), 1.0))
    exact = kernels.relu_angle_after(3000, math.pi / 2)
    assert exact == pytest.approx(3 * math.pi / 3000, rel=0.01)
    assert not 0.9 < naive / exact < 1.1


def test_small_angles_under_rescaling():
    assert kernels.std_relu_angle(1e-120, 8) == pytest.approx(1e-120 * math.sqrt(5 / 7), rel=1e-6)
    for n in (2, 8, math.inf):
        ratio = kernels.rms_relu_angle(1e-8, n) / kernels.rms_relu_angle(1e-10, n)
        assert ratio == pytest.approx(10.0, rel=1e-3)  # the square root of the angle
        assert kernels.rms_relu_angle(0.0, n) == 0.0
    assert kernels.std_relu_angle(0.0, 8) == 0.0


def test_widest_angle_between_all_pairs():
    assert kernels.rms_relu_angle(math.pi, 2) == pytest.approx(math.pi / 2, rel=1e-12)
    widest = math.acos(-1 / 7)
    # h has mean zero already: rescaling by either scale is the same
    assert kernels.rms_relu_angle(widest, 8) == pytest.approx(kernels.std_relu_angle(widest, 8), rel=1e-12)
    assert kernels.rms_relu_angle(widest, 8) == pytest.approx(kernels.batch_norm_angle(8), rel=1e-12)


def test_zero_and_equal_samples():
    k = np.array([[0.0, 0.0], [0.0, 4.0]])
    np.testing.assert_array_equal(kernels.relu_kernel(k), k)
    np.testing.assert_array_equal(kernels.recentered_relu_kernel(np.full((5, 5), 0.1)), np.zeros((5, 5)))


def test_shapes_and_arguments_are_left_alone():
    theta = np.array([[0.0, 4.0 - 3.0], [math.pi / 2, 1.5]])
    before = theta.copy()
    for function in (kernels.relu_angle, kernels.one_minus_relu_cosine, lambda t: kernels.rms_relu_angle(t, 5)):
        assert function(theta).shape == theta.shape
    assert kernels.relu_kernel(np.eye(3)[None]).shape == (1, 3, 3)
    assert kernels.relu_angle_path(4, theta).shape == (5, 2, 2)
    np.testing.assert_array_equal(theta, before)
    assert isinstance(kernels.relu_angle(1.0), float)
    assert isinstance(kernels.rms_relu_angle(1, 8), float)
    beyond = np.array([1.0 + 1e-13])
    assert kernels.relu_cosine(beyond)[0] == 1.0
    assert beyond[0] == 1.0 + 1e-13  # not clipped in place


def test_kernel_scales_and_weight_variance():
    k = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(kernels.relu_kernel(1e100 * k), 1e100 * kernels.relu_kernel(k), rtol=1e-14)
    np.testing.assert_allclose(kernels.relu_kernel(k, 1.0), kernels.relu_kernel(k) / 2, rtol=1e-15)


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: kernels.relu_cosine(1.1), r"c must be a cosine between -1 and 1, got 1\.1\."),
        (lambda: kernels.relu_cosine(math.nan), r"c must be a cosine between -1 and 1, got nan\."),
        (lambda: kernels.relu_cosine_derivative(-2.0), r"c must be a cosine between -1 and 1, got -2\.0\."),
        (lambda: kernels.relu_angle(-0.1), r"theta must be an angle between 0 and pi radians, got -0\.1\."),
        (lambda: kernels.one_minus_relu_cosine(math.inf), r"theta must be an angle between 0 and pi radians, got inf"),
        (lambda: kernels.relu_angle_after(-1, 1.0), r"depth must be a whole number of layers, 0 or more, got -1\."),
        (lambda: kernels.relu_angle_path(2.5, 1.0), r"depth must be a whole number of layers, 0 or more, got 2\.5\."),
        (lambda: kernels.batch_norm_angle(1), r"n must be a batch size of at least 2, got 1\."),
        (lambda: kernels.batch_norm_angle(math.nan), r"n must be a batch size of at least 2, got nan\."),
        (lambda: kernels.rms_fixed_point_angle(1.5), r"n must be a batch size of at least 2, got 1\.5\."),
        (lambda: kernels.rms_relu_angle(2.0, 8), r"theta must be at most arccos\(-1/\(n-1\)\) = 1\.71414 rad"),
        (lambda: kernels.rms_relu_angle(2.0, math.inf), r"theta must be at most pi/2"),
        (lambda: kernels.std_relu_angle(1.0, 3), r"n must be a batch size of at least 4 \(below, the mean of"),
        (lambda: kernels.relu_kernel(np.array([[1.0, math.nan], [0.0, 1.0]])), r"k must be finite, got NaN or inf"),
        (lambda: kernels.relu_kernel(np.array([[1.0, 0.5], [0.0, 1.0]])), r"k must be symmetric, got a matrix"),
        (lambda: kernels.relu_kernel(np.array([[1.0, 2.0], [2.0, 1.0]])), r"k must be a Gram matrix, got an entry"),
        (lambda: kernels.relu_kernel(-np.eye(2)), r"k must be a Gram matrix, got an entry"),
        (lambda: kernels.relu_kernel(np.eye(2), 0.0), r"weight_variance must be positive and finite, got 0\.0\."),
        (lambda: kernels.recentered_relu_kernel(np.eye(1)), r"n must be a batch size of at least 2, got 1\."),
    ],
)
def test_messages(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_shape_of_a_gram_matrix():
    # with the run-time checks of the annotations on, they refuse the shape before the function does
    with pytest.raises((ValueError, TypeError), match=r"shape \(3,\)\.|f64\[3\]"):
        kernels.relu_kernel(np.ones(3))
