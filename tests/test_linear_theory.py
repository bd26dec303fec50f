"""The maps of linear networks against Monte Carlo, quadrature and elementary cases."""

import itertools
import math

import numpy as np
import pytest
import scipy.integrate

from bnlib import linear_theory as theory


def random_eigenvalues(seed, n):
    return np.random.default_rng(seed).exponential(size=n)


# --- the map of one layer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.0, 2.0, 10.0, 1e6, 1e-9, 1e-30])
def test_two_samples_have_the_square_root_of_their_ratio(ratio):
    following = theory.rescaled_linear_map(np.array([ratio, 1.0]))
    assert following[0] / following[1] == pytest.approx(math.sqrt(ratio), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_map_equals_the_mean_over_draws(seed, n):
    """400 000 draws, five standard errors; power: the same test rejects ratios that are off by a tenth."""
    eigenvalues = random_eigenvalues(seed, n) + 0.05
    z = np.random.default_rng(seed + 1000).standard_normal((400_000, n)) ** 2 * eigenvalues
    shares = z / z.sum(axis=1, keepdims=True)
    error = shares.std(axis=0) / math.sqrt(len(z))
    following = theory.rescaled_linear_map(eigenvalues)
    assert (abs(shares.mean(axis=0) - following) < 5 * error).all()
    wrong = theory.rescaled_linear_map(np.concatenate([eigenvalues[:1] * 1.2, eigenvalues[1:]]))
    assert (abs(shares.mean(axis=0) - wrong) > 5 * error).any()


def test_the_map_equals_adaptive_quadrature():
    eigenvalues = np.array([5.0, 1.0, 0.3, 1e-4])

    def integrand(s, i):
        factor = 1 + 2 * s * eigenvalues
        return eigenvalues[i] / factor[i] / math.sqrt(factor.prod())

    following = theory.rescaled_linear_map(eigenvalues)
    for i in range(4):
        pieces = [0, 1e-3, 1, 1e3, 1e6, 1e10]
        integral = sum(
            scipy.integrate.quad(integrand, a, b, args=(i,), epsrel=1e-12, epsabs=0, limit=500)[0]
            for a, b in itertools.pairwise(pieces)
        )
        assert following[i] == pytest.approx(integral, rel=1e-7)


def test_the_map_keeps_order_sum_and_zeros(seed):
    eigenvalues = np.concatenate([random_eigenvalues(seed, 5), [0.0, 0.0]])
    following = theory.rescaled_linear_map(eigenvalues)
    assert following.sum() == pytest.approx(1, rel=1e-14)
    assert (following[5:] == 0).all()
    assert (np.argsort(following[:5]) == np.argsort(eigenvalues[:5])).all()
    permuted = theory.rescaled_linear_map(eigenvalues[::-1])
    np.testing.assert_allclose(permuted[::-1], following, rtol=1e-13)
    # Differences shrink, in the ratio of any two.
    ratios = following[:5, None] / following[:5]
    before = eigenvalues[:5, None] / eigenvalues[:5]
    assert (abs(np.log(ratios)) <= abs(np.log(before)) + 1e-12).all()


@pytest.mark.parametrize("n", [2, 3, 8, 64])
def test_equal_eigenvalues_are_fixed_and_small_deviations_shrink_by_the_multiplier(seed, n):
    equal = np.full(n, 7.0)
    np.testing.assert_allclose(theory.rescaled_linear_map(equal), 1 / n, rtol=1e-13)
    deviation = np.random.default_rng(seed).standard_normal(n) * 1e-4
    deviation -= deviation.mean()
    following = theory.rescaled_linear_map(1 / n + deviation / n) - 1 / n
    assert np.linalg.norm(following) / np.linalg.norm(deviation / n) == pytest.approx(
        theory.gap_multiplier(n), rel=1e-3
    )
    assert theory.gap_multiplier(n) == n / (n + 2)


def test_rank_one_stays_rank_one():
    assert theory.rescaled_linear_map(np.array([0.0, 3.0, 0.0])).tolist() == [0, 1, 0]


def test_gap_path_goes_to_the_gap_of_its_rank():
    path = theory.rescaled_gap_path(np.array([1e-12, 1.0, 1e-3, 0.0]), 60)
    assert len(path) == 61
    assert path[0] == pytest.approx(math.sqrt(3 / 4), rel=1e-2)
    assert (np.diff(path) < 1e-14).all()
    # Three of four directions: sqrt(1/3 - 1/4).
    assert path[-1] == pytest.approx(math.sqrt(1 / 3 - 1 / 4), rel=1e-9)


def test_gap_of_eigenvalues_is_the_gap_of_a_matrix(seed):
    x = np.random.default_rng(seed).standard_normal((5, 9))
    k = x @ x.T
    expected = np.linalg.norm(k / np.trace(k) - np.eye(5) / 5)
    assert theory.gap_of_eigenvalues(np.linalg.eigvalsh(k)) == pytest.approx(expected, rel=1e-12)


# --- finite width --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 9])
def test_stationary_gap_is_the_one_of_its_linear_recursion(seed, n):
    """The recursion D -> n/(n+2) D + noise, run: 2000 chains, five standard errors."""
    width, chains = 200, 2000
    rng = np.random.default_rng(seed)
    deviation = np.zeros((chains, n, n))
    for _ in range(12 * n):
        # Gaussian noise, isotropic among the symmetric traceless matrices, of mean square (1 - 1/n)/width.
        a = rng.standard_normal((chains, n, n))
        a = (a + a.transpose(0, 2, 1)) / 2
        a -= np.trace(a, axis1=1, axis2=2)[:, None, None] * np.eye(n) / n
        noise = a * math.sqrt((1 - 1 / n) / width / ((n - 1) * (n + 2) / 2))
        deviation = theory.gap_multiplier(n) * deviation + noise
    gaps = np.linalg.norm(deviation, axis=(1, 2))
    mean, root_mean_square = theory.stationary_gap(n, width)
    assert abs(gaps.mean() - mean) < 5 * gaps.std() / math.sqrt(chains)
    squares = gaps**2
    assert abs(squares.mean() - root_mean_square**2) < 5 * squares.std() / math.sqrt(chains)
    # Power: leaving out the memory of earlier layers is seen.
    assert abs(gaps.mean() - mean * math.sqrt(1 - theory.gap_multiplier(n) ** 2)) > 5 * gaps.std() / math.sqrt(chains)


def test_stationary_gap_at_four_samples_is_the_known_coefficient():
    assert theory.stationary_gap(4, 1)[0] == pytest.approx(1.13, abs=5e-3)
    assert theory.stationary_gap(4, 100)[0] == pytest.approx(theory.stationary_gap(4, 1)[0] / 10)
    large = theory.stationary_gap(10_000, 1)
    assert large[1] == pytest.approx(math.sqrt(10_000 / 4), rel=1e-3)
    assert large[0] == pytest.approx(large[1], rel=1e-6)


@pytest.mark.parametrize(("n", "width"), [(2, 2), (4, 32), (8, 1000)])
def test_spread_rate_is_a_difference_of_mean_logs_of_chi(seed, n, width):
    rng = np.random.default_rng(seed)
    largest, least = (np.log(rng.chisquare(f, 400_000)) / 2 for f in (width, width - n + 1))
    error = math.sqrt((largest.var() + least.var()) / 400_000)
    assert abs(largest.mean() - least.mean() - theory.spread_rate(n, width)) < 5 * error
    if width >= 8 * n:
        assert theory.spread_rate(n, width) == pytest.approx((n - 1) / (2 * width), rel=2 * n / width)


def test_uncentered_growth_is_a_mean_of_inverse_chi_squares(seed):
    rng = np.random.default_rng(seed)
    inverse = 12 * rng.standard_normal(400_000) ** 2 / rng.chisquare(12, 400_000)
    error = inverse.std() / math.sqrt(len(inverse))
    assert abs(inverse.mean() - theory.uncentered_growth(13)) < 5 * error
    assert theory.uncentered_growth(2) == theory.uncentered_growth(3) == math.inf
    assert theory.uncentered_growth(4) == 3


def test_lost_direction_factor_is_that_of_one_layer(seed):
    """n = 8, width 24, 20 000 layers: energy of a nearly lost direction off the span of the others, over theirs."""
    rng = np.random.default_rng(seed)
    others = rng.standard_normal((20_000, 7, 24))
    scale = np.linalg.norm(others, axis=1)
    lost = rng.standard_normal((20_000, 24)) / scale
    rows = others / scale[:, None, :]
    q = np.linalg.qr(rows.swapaxes(1, 2)).Q
    outside = (lost**2).sum(axis=1) - (np.einsum("tdk,td->tk", q, lost) ** 2).sum(axis=1)
    factor = outside / (24 / 7)
    error = factor.std() / math.sqrt(len(factor))
    assert abs(factor.mean() - theory.lost_direction_factor(8, 24)) < 5 * error
    assert abs(factor.mean() - theory.uncentered_growth(8)) > 5 * error  # power: without the loss at finite width
    assert theory.lost_direction_factor(3, 5) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.lost_direction_factor(4, 3), "width must be at least the batch size 4, got 3"),
        (lambda: theory.rescaled_linear_map(np.array([1.0])), "eigenvalues must be at least two numbers"),
        (lambda: theory.rescaled_linear_map(np.array([1.0, -1.0])), "none negative"),
        (lambda: theory.rescaled_linear_map(np.array([math.nan, 1.0])), "none negative"),
        (lambda: theory.gap_of_eigenvalues(np.zeros(3)), "not all zero"),
        (lambda: theory.rescaled_gap_path(np.ones(2), -1), "depth must be a whole number"),
        (lambda: theory.gap_multiplier(1), "n must be a batch size of at least 2"),
        (lambda: theory.stationary_gap(1, 10), "n must be a batch size of at least 2"),
        (lambda: theory.stationary_gap(4, 0), "width must be a number of neurons, 1 or more, got 0"),
        (lambda: theory.spread_rate(4, 3), "width must be at least the batch size 4, got 3"),
        (lambda: theory.uncentered_growth(1), "n must be a batch size"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
