"""Tests of bnlib.invariant_geometry: naive references, exact identities, extremes, messages."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from bnlib import invariant_geometry as geometry
from bnlib import kernels

DRAWS = 40_000


def layers_by_hand(x: np.ndarray, width: int, alpha: float, draws: int, seed: int) -> np.ndarray:
    """Representations after RC and ReLU, shape (draws, n, width), from weights N(0, 2 alpha / width)."""
    weights = np.random.default_rng(seed).standard_normal((draws, x.shape[1], width)) * math.sqrt(2 * alpha / width)
    h = x @ weights
    return np.maximum(h - h.mean(axis=1, keepdims=True), 0)


def distance_in_errors(sample: np.ndarray, expected: float) -> float:
    return abs(sample.mean() - expected) / (sample.std(ddof=1) / math.sqrt(len(sample)))


# ---------------------------------------------------------------- naive references


@pytest.mark.parametrize("n", [2, 3, 8])
def test_moments_against_layers_drawn_by_hand(n, seed):
    width = 5
    alpha = geometry.alpha_invariance(n)
    y = layers_by_hand(geometry.invariant_representation(n), width, float(alpha), DRAWS, seed)
    exact = geometry.exact_moments(n, width)
    outlier, cluster = np.linalg.norm(y[:, 0], axis=1), np.linalg.norm(y[:, 1], axis=1)
    assert distance_in_errors(outlier**2, float(exact.second_outlier)) < 5
    assert distance_in_errors(cluster**2, float(exact.second_cluster)) < 5
    assert distance_in_errors(outlier, exact.first_outlier) < 5
    assert distance_in_errors(cluster, exact.first_cluster) < 5
    # the confusion that the review speaks of is noticed, and so is He's variance in place of Theorem 13's
    assert distance_in_errors(outlier, 1.0) > 5
    assert distance_in_errors(outlier**2, 1 / float(alpha)) > 5


def test_orthogonality_holds_for_every_weight_matrix(seed):
    x = np.pad(geometry.invariant_representation(9), ((0, 0), (0, 4)))
    random = np.random.default_rng(seed)
    draws = {
        "gaussian": random.standard_normal((200, 6, 7)),
        "cauchy": random.standard_cauchy((200, 6, 7)),
        "signs": random.choice([-1.0, 0.0, 1.0], (200, 6, 7)),
        "rank one": random.standard_normal((200, 6, 1)) * random.standard_normal((200, 1, 7)),
        "shifted": random.random((200, 6, 7)) + 3.0,
    }
    for weights in draws.values():
        h = x @ weights
        # the mean of ties is formed from one of them, so that rounding cannot move it across both values
        mean = (h[:, :1] + 8 * h[:, 1:2]) / 9
        y = np.maximum(h - mean, 0)
        assert (np.einsum("bij,bj->bi", y[:, 1:], y[:, 0]) == 0.0).all()
    opened = geometry.invariant_representation(9, 12, 0.3)
    y = layers_by_hand(opened, 50, 1.0, 20, seed)
    assert np.einsum("bij,bj->bi", y[:, 1:], y[:, 0]).max() > 0  # an open cluster is not exactly orthogonal


def test_first_moment_factor_against_high_precision():
    with mpmath.workdps(30):
        for width in (1, 2, 3, 16, 399, 400, 401, 1000):
            chi = [
                mpmath.sqrt(2) * mpmath.gamma((m + 1) / mpmath.mpf(2)) / mpmath.gamma(m / mpmath.mpf(2))
                for m in range(1, width + 1)
            ]
            mixed = (
                mpmath.fsum(mpmath.binomial(width, m) * c for m, c in enumerate(chi, start=1)) / mpmath.mpf(2) ** width
            )
            expected = float(mixed * mpmath.sqrt(mpmath.mpf(2) / width))
            assert geometry.first_moment_factor(width) == pytest.approx(expected, rel=1e-13)


def test_expected_squared_distances_against_layers_drawn_by_hand(seed):
    x = np.random.default_rng(seed).standard_normal((4, 3)) + np.array([[4.0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]])
    alpha = 0.7
    width = 3  # exact at every width; alpha is meant for weights of variance 2 alpha / width
    y = layers_by_hand(x, width, alpha, DRAWS, seed + 1)
    expected = geometry.expected_squared_distances(x, alpha)
    relu_forgotten = alpha * ((x[1] - x[2]) ** 2).sum() * 2
    for i, j in ((0, 1), (1, 2), (2, 3)):
        sample = ((y[:, i] - y[:, j]) ** 2).sum(axis=1)
        assert distance_in_errors(sample, expected[i, j]) < 5
    assert distance_in_errors(((y[:, 1] - y[:, 2]) ** 2).sum(axis=1), relu_forgotten) > 5


def test_expected_squared_distances_agree_with_the_kernel(seed):
    x = np.random.default_rng(seed).standard_normal((6, 4))
    k = kernels.recentered_relu_kernel(x @ x.T)
    from_kernel = np.diagonal(k)[:, None] + np.diagonal(k)[None, :] - 2 * k
    np.testing.assert_allclose(geometry.expected_squared_distances(x, 1.0), from_kernel, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- exact statements


@pytest.mark.parametrize("n", [2, 3, 4, 8, 100])
def test_definition_12(n):
    x = geometry.invariant_representation(n, 7)
    assert x.shape == (n, 7)
    assert np.linalg.norm(x[0]) == 1.0
    assert np.linalg.norm(x[1:], axis=1) == pytest.approx(1 / (n - 1), rel=1e-15)
    assert (x[1:] == x[1]).all()
    assert (x[1:] @ x[0] == 0).all()


@pytest.mark.parametrize(("n", "theta"), [(3, 0.2), (8, 1e-6), (8, 1.2), (33, 0.5)])
def test_definition_12_with_an_open_cluster(n, theta):
    x = geometry.invariant_representation(n, n, theta)
    np.testing.assert_allclose(np.linalg.norm(x[1:].mean(axis=0)), 1 / (n - 1), rtol=1e-14)
    np.testing.assert_allclose(x[1:] @ x[0], 0.0, atol=1e-15)
    unit = x[1:] / np.linalg.norm(x[1:], axis=1, keepdims=True)
    apart = np.linalg.norm(unit[:, None] - unit[None, :], axis=-1)[np.triu_indices(n - 1, 1)]
    np.testing.assert_allclose(2 * np.arcsin(apart / 2), theta, rtol=1e-8)


def test_alphas():
    for n in range(2, 200):
        alpha = geometry.alpha_invariance(n)
        assert alpha == Fraction(n * n, n * n - 2 * n + 2)
        assert alpha > 1
        assert geometry.alpha_stability(n, 1 + Fraction(1, (n - 1) ** 2)) == alpha
        threshold = Fraction(n, n - 1) ** 2
        assert geometry.alpha_stability(n, threshold) == 1
        assert geometry.alpha_stability(n, threshold + Fraction(1, 10**9)) < 1
        assert geometry.alpha_stability(n, threshold - Fraction(1, 10**9)) > 1


def test_hypothesis_is_never_met():
    for n in [*range(2, 2000), 10**9, 10**50]:
        check = geometry.check_hypothesis(n)
        assert check.squared_threshold - check.squared_distance == Fraction(2, n - 1)
        assert check.squared_reach == check.squared_threshold  # antiparallel samples touch the threshold, no more
        assert not check.met
        assert not check.met_at_some_angle


def test_hypothesis_check_would_notice_a_longer_sample():
    """Power: with |x_1| = 1 + 3/n instead of 1 the same comparison would come out the other way."""
    n = 8
    squared = (1 + Fraction(3, n)) ** 2 + Fraction(1, (n - 1) ** 2)
    assert squared > geometry.check_hypothesis(n).squared_threshold
    assert geometry.alpha_stability(n, squared) < 1


def test_symbolic_moments():
    import sympy

    moments = geometry.symbolic_moments()
    n, alpha, distance = sympy.symbols("n alpha R", positive=True)
    assert sympy.simplify(moments.outlier - alpha * distance**2 * (n - 1) ** 2 / n**2) == 0
    assert sympy.simplify(moments.cluster - alpha * distance**2 / n**2) == 0
    assert moments.inner == 0
    assert all(moments.identities.values())
    assert len(moments.identities) == 14
    for value in (3, 8):
        assert moments.alpha_13.subs(n, value) == sympy.Rational(geometry.alpha_invariance(value))
    # the review's number is below 1 under the hypothesis, and differs from the second moment, which is 1
    number = moments.review_number.subs({n: 8, distance: sympy.Rational(8, 7)})
    assert number == sympy.Rational(25, 32)
    assert moments.outlier.subs(alpha, moments.alpha_14).subs({n: 8, distance: 2}) == 1


def test_exact_moments():
    for n, width in ((2, 1), (8, 16), (64, 1000)):
        moments = geometry.exact_moments(n, width)
        assert moments.second_outlier == 1
        assert moments.second_cluster == Fraction(1, (n - 1) ** 2)
        assert moments.first_outlier == pytest.approx(geometry.first_moment_factor(width))
        assert moments.first_cluster * (n - 1) == pytest.approx(moments.first_outlier)
        assert moments.first_outlier < 1


def test_first_moment_factor_known_values():
    assert geometry.first_moment_factor(1) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-15)
    two = (math.sqrt(2 / math.pi) / 2 + math.sqrt(math.pi / 2) / 4) * 1.0
    assert geometry.first_moment_factor(2) == pytest.approx(two, rel=1e-15)
    for width in (10**4, 10**6, 10**8):
        assert (1 - geometry.first_moment_factor(width)) * width == pytest.approx(0.625, rel=1e-3)
    factors = [geometry.first_moment_factor(d) for d in range(1, 600)]
    assert factors == sorted(factors)


def test_contraction_holds_for_random_batches_beyond_the_threshold(seed):
    random = np.random.default_rng(seed)
    grown = 0
    for _ in range(200):
        n = int(random.integers(3, 12))
        x = geometry.random_cluster(n, random.uniform(1.0001, 3.0), random=random, spread=10 ** random.uniform(-3, 0.5))
        alpha = geometry.alpha_stability(n, geometry.squared_distance_to_cluster(x))
        assert alpha < 1
        ratios = geometry.contraction_ratios(x, alpha)
        assert len(ratios) == (n - 1) * (n - 2) // 2
        assert (ratios <= float(alpha) * (1 + 1e-9)).all()
        grown += bool((geometry.contraction_ratios(x, 2.0) > 1).any())
    assert grown > 0  # with a variance beyond the theorem's, distances do grow: the check can fail


def test_contraction_ratios_leave_out_equal_samples():
    x = np.array([[5.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
    assert len(geometry.contraction_ratios(x, 0.5)) == 2


# ---------------------------------------------------------------- extremes


def test_distances_keep_their_digits_in_a_tight_cluster():
    for theta in (1e-3, 1e-9, 1e-12):
        x = geometry.invariant_representation(8, 8, theta)
        before = ((x[1] - x[2]) ** 2).sum()
        ratio = geometry.expected_squared_distances(x, 1.0)[1, 2] / before
        assert ratio == pytest.approx(
            1 - 2 * theta * math.sqrt(64 / 50) / (3 * math.pi), rel=3e-6 if theta > 1e-4 else 1e-3
        )


def test_equal_samples():
    x = np.ones((3, 2))
    np.testing.assert_array_equal(geometry.expected_squared_distances(x, 1.0), np.zeros((3, 3)))


def test_squared_distance_to_cluster():
    x = np.array([[3.0, 0.0], [1.0, 0.0], [-1.0, 8.0]])
    assert geometry.squared_distance_to_cluster(x) == 9.0 + 16.0


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: geometry.invariant_representation(1), "n must be a whole batch size of at least 2, got 1."),
        (lambda: geometry.invariant_representation(2, 9, 0.1), "n must be a whole batch size of at least 3, got 2."),
        (lambda: geometry.invariant_representation(3, 1), "dimension must be a whole number of at least 2, got 1."),
        (
            lambda: geometry.invariant_representation(5, 4, 0.1),
            "dimension must be a whole number of at least 5, got 4.",
        ),
        (
            lambda: geometry.invariant_representation(5, 5, -0.1),
            "cluster_angle must be between 0 and pi/2 radians, got",
        ),
        (lambda: geometry.invariant_representation(5, 5, math.nan), "cluster_angle must be between 0 and pi/2"),
        (lambda: geometry.alpha_invariance(0), "n must be a whole batch size of at least 2, got 0."),
        (lambda: geometry.alpha_stability(3, 0), "squared_distance must be positive and finite, got 0."),
        (lambda: geometry.alpha_stability(3, math.nan), "squared_distance must be positive and finite, got nan."),
        (lambda: geometry.check_hypothesis(1), "n must be a whole batch size of at least 2, got 1."),
        (lambda: geometry.first_moment_factor(0), "width must be a whole number of neurons of at least 1, got 0."),
        (lambda: geometry.exact_moments(8, -1), "width must be a whole number of neurons of at least 1, got -1."),
        (lambda: geometry.squared_distance_to_cluster(np.ones((1, 3))), "x must be a finite batch of shape"),
        (lambda: geometry.squared_distance_to_cluster(np.full((3, 3), np.nan)), "x must be a finite batch of shape"),
        (
            lambda: geometry.random_cluster(4, 0.0, random=np.random.default_rng(0)),
            "distance_ratio must be positive and finite, got 0.0.",
        ),
        (
            lambda: geometry.random_cluster(4, 1.0, random=np.random.default_rng(0), spread=-1.0),
            "spread must be positive and finite, got -1.0.",
        ),
        (lambda: geometry.expected_squared_distances(np.eye(3), 0.0), "alpha must be positive and finite, got 0.0."),
    ],
)
def test_messages(call, sentence):
    with pytest.raises(ValueError, match="^" + sentence.replace("(", r"\(")) as caught:
        call()
    assert "\n" not in str(caught.value)
