"""The batch-norm transform at any covariance: invariants, exact cases, Monte Carlo, unequal scales, bad input."""

import math

import numpy as np
import pytest

from bnlib.homogeneous import homogeneous
from bnlib.kernels import relu_cosine
from bnlib.two_block import block_covariance, next_ratio
from bnlib.v_transform import batch_norm_relu_transform


def _covariance(n, rank, spread, generator):
    x = generator.standard_normal((n, rank)) * np.exp(spread * generator.standard_normal((n, 1)))
    return x @ x.T


@pytest.mark.parametrize("n", [3, 4, 8, 64])
def test_equal_samples_at_equal_angles_reach_the_fixed_point_in_one_step(n):
    for c in (0.0, 0.6):
        v = batch_norm_relu_transform((1 - c) * np.eye(n) + c)
        expected = relu_cosine(-1 / (n - 1)) / 2
        assert np.diagonal(v) == pytest.approx(0.5, abs=1e-13)
        assert v[~np.eye(n, dtype=bool)] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("rank", [1, 2, 3, 20])
@pytest.mark.parametrize("spread", [0, 1, 3, 6])
def test_traces_are_exact_and_nodes_do_not_matter(rank, spread, seed):
    s = _covariance(9, rank, spread, np.random.default_rng(seed))
    v = batch_norm_relu_transform(s)
    assert np.trace(v) / 9 == pytest.approx(0.5, abs=1e-12)
    assert v == pytest.approx(batch_norm_relu_transform(s, panel_nodes=30), abs=1e-12)
    # The identity keeps b itself: rows sum to zero, and |b|^2 = n.
    linear = batch_norm_relu_transform(s, slope=1)
    assert np.trace(linear) == pytest.approx(9, abs=1e-11)
    assert linear.sum(axis=1) == pytest.approx(0, abs=1e-11)
    assert np.trace(batch_norm_relu_transform(s, slope=-0.5)) == pytest.approx(9 * (1 + 0.25) / 2, abs=1e-11)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e100])
def test_scale_shift_and_order_of_the_samples_do_not_matter(scale, seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((7, 9)) * np.exp(generator.standard_normal((7, 1)))
    s = x @ x.T
    v = batch_norm_relu_transform(s)
    assert batch_norm_relu_transform(scale * s) == pytest.approx(v, abs=1e-12)
    moved = x + 3 * generator.standard_normal(9)
    assert batch_norm_relu_transform(moved @ moved.T) == pytest.approx(v, abs=1e-11)
    order = generator.permutation(7)
    assert batch_norm_relu_transform(s[np.ix_(order, order)]) == pytest.approx(v[np.ix_(order, order)], abs=1e-13)


def test_two_equal_groups_are_exact():
    # Centered rank one: b is a fixed vector with a random sign.
    x = np.array([1.0, 1.0, 1.0, -3.0])
    v = batch_norm_relu_transform(np.outer(x, x))
    b = x / np.sqrt((x**2).mean())
    expected = (np.outer(np.maximum(b, 0), np.maximum(b, 0)) + np.outer(np.maximum(-b, 0), np.maximum(-b, 0))) / 2
    assert v == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("spread", "slope"), [(0, 0.0), (1.5, 0.0), (1.5, -0.7)])
def test_against_monte_carlo(spread, slope, seed):
    generator = np.random.default_rng(seed)
    n, draws = 6, 40_000
    x = generator.standard_normal((n, 8)) * np.exp(spread * generator.standard_normal((n, 1)))
    h = generator.standard_normal((draws, 8)) @ x.T
    h -= h.mean(axis=1, keepdims=True)
    b = h / np.sqrt((h**2).mean(axis=1, keepdims=True))
    f = np.where(b > 0, b, slope * b)
    products = f[:, :, None] * f[:, None, :]
    error = products.std(axis=0, ddof=1) / math.sqrt(draws)
    v = batch_norm_relu_transform(x @ x.T, slope)
    assert (np.abs(products.mean(axis=0) - v) < 5 * error + 1e-12).all()
    # Power: the kernel of the mean scale, E[phi(y) phi(y)^T] n / E|y|^2, is another matrix when scales differ.
    if spread:
        k = h.T @ h / draws
        size = np.sqrt(np.diagonal(k))
        c = np.clip(k / np.outer(size, size), -1, 1)
        j = relu_cosine(c)
        naive = np.outer(size, size) * ((1 + slope**2) * j - 2 * slope * (j - c)) / 2 * n / np.trace(k)
        assert (np.abs(products.mean(axis=0) - naive) > 5 * error + 1e-12).any()


@pytest.mark.parametrize(
    ("covariance", "sentence"),
    [
        (np.ones((2, 2)), "at least 3 samples"),
        (np.ones((3, 4)), "square matrix"),
        (np.full((3, 3), np.nan), "must be finite"),
        (np.triu(np.ones((4, 4))), "must be symmetric"),
        (np.diag([1.0, 1.0, -1.0]), "must be positive semi-definite, got an eigenvalue"),
        (np.eye(4) - 2, "must be positive semi-definite, got an eigenvalue"),  # centered it would be
        (np.ones((4, 4)), "nothing is left after centering"),
        (np.zeros((4, 4)), "nothing is left after centering"),
    ],
)
def test_bad_covariances(covariance, sentence, unchecked):
    with pytest.raises(ValueError, match=sentence):
        batch_norm_relu_transform(covariance)


def test_other_errors():
    with pytest.raises(ValueError, match="slope must be finite, got nan"):
        batch_norm_relu_transform(np.eye(4), math.nan)
    with pytest.raises(ValueError, match="panel_nodes must be at least 2, got 1"):
        batch_norm_relu_transform(np.eye(4), panel_nodes=1)


@pytest.mark.parametrize("ratio", [1e-6, 1e-10, 1e-12])
def test_extreme_scales_against_the_reduced_map(ratio):
    """One sample 10^3 to 10^6 times the others: the known layer on two eigenvalues, which has no small differences."""
    n = 8
    v = batch_norm_relu_transform(block_covariance(n, 1, 1.0, ratio))
    k = v - v.mean(axis=0)
    k -= k.mean(axis=1, keepdims=True)
    q = np.r_[1.0, np.full(n - 1, -1 / (n - 1))]
    found = (k[1, 1] - k[1, 2]) / (q @ k @ q / (q @ q))
    assert found == pytest.approx(next_ratio(ratio, n, homogeneous(1)), abs=1e-10)
    assert np.trace(v) / n == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("spread", [10, 30])
def test_beyond_double_precision_the_answer_is_still_a_covariance(spread, seed):
    v = batch_norm_relu_transform(_covariance(9, 12, spread, np.random.default_rng(seed)))
    assert np.trace(v) / 9 == pytest.approx(0.5, abs=1e-11)
    assert np.linalg.eigvalsh(v).min() > -1e-12
