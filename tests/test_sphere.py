"""Averages over the normalized batch: exact moments, Monte Carlo, degenerate batch sizes."""

import math

import numpy as np
import pytest

from bnlib.sphere import one_entry, two_entries, uniform_on_sphere

SIZES = (2, 3, 4, 5, 8, 17, 64, 257, 1024)


@pytest.mark.parametrize("n", SIZES)
def test_even_moments_of_one_entry_are_exact(n):
    x, w = one_entry(n)
    assert w.sum() == pytest.approx(1, abs=1e-14)
    m = n - 1  # dimension of the hyperplane
    for k in range(1, 7):
        exact = math.prod((2 * i + 1) / (m + 2 * i) for i in range(k)) * m**k
        assert float(w @ x ** (2 * k)) == pytest.approx(exact, rel=1e-11)
    assert abs(float(w @ x**3)) < 1e-12


@pytest.mark.parametrize("n", SIZES)
def test_the_pair_rule_has_the_marginals_of_the_single_one(n):
    x, w = one_entry(n)
    pair = two_entries(n)
    for f in (np.abs, np.tanh, lambda x: np.maximum(x, 0) ** 3, lambda x: (x > 0) * 1.0):
        assert pair.mean(f(pair.first)) == pytest.approx(float(w @ f(x)), abs=1e-10, rel=1e-10)
        assert pair.mean(f(pair.second)) == pytest.approx(float(w @ f(x)), abs=1e-10, rel=1e-10)


@pytest.mark.parametrize("n", [2, 3, 4, 8, 64])
def test_mixed_moments_follow_from_mean_zero_and_mean_square_one(n):
    pair = two_entries(n)
    x, w = one_entry(n)
    assert pair.mean(pair.first * pair.second) == pytest.approx(-1 / (n - 1), abs=1e-12)
    # sum_j b_j^2 = n: E[b_1^2 b_2^2] (n - 1) + E[b_1^4] = n.
    assert pair.mean(pair.first**2 * pair.second**2) == pytest.approx((n - float(w @ x**4)) / (n - 1), abs=1e-11)
    # sum_j b_j = 0: E[b_1^3 b_2] (n - 1) = -E[b_1^4].
    assert pair.mean(pair.first**3 * pair.second) == pytest.approx(-float(w @ x**4) / (n - 1), abs=1e-11)


def _z(values, exact):
    return (values.mean() - exact) / (values.std(ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("n", [3, 4, 8, 32])
def test_against_normalized_gaussian_batches(n, seed):
    drawn = uniform_on_sphere(n, 20_000, np.random.default_rng(seed))
    pair = two_entries(n)

    def average(f):
        return pair.mean(f(pair.first, pair.second))

    functions = (
        lambda a, b: np.maximum(a, 0) * np.maximum(b, 0),
        lambda a, b: np.tanh(2 * a + b),
        lambda a, b: np.exp(a / 2) * (b > 0),
    )
    for f in functions:
        assert abs(_z(f(drawn[:, 0], drawn[:, 1]), average(f))) < 5
    # Power: independent entries, which is what a large batch suggests, are told apart.
    x, w = one_entry(n)
    independent = float(w @ np.maximum(x, 0)) ** 2
    assert abs(_z(functions[0](drawn[:, 0], drawn[:, 1]), independent)) > 5 or n > 8


def test_rules_cannot_be_written_to():
    x, _ = one_entry(8)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        two_entries(8).weights[0] = 1


@pytest.mark.parametrize("n", [1, 0, -3, 2.5, True, math.nan])
def test_what_is_no_batch_size(n, unchecked):
    with pytest.raises(ValueError, match="n must be a whole batch size of at least 2, got"):
        one_entry(n)
    with pytest.raises(ValueError, match="n must be a whole batch size of at least 2, got"):
        two_entries(n)


def test_what_is_no_number_of_draws():
    with pytest.raises(ValueError, match="draws must be at least 1, got 0"):
        uniform_on_sphere(4, 0, np.random.default_rng(0))
