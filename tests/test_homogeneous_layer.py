"""The Laplace layer of any degree: against the faster rule, draws, exact traces; bad input."""

import math

import numpy as np
import pytest

from bnlib.homogeneous import homogeneous, homogeneous_fixed_point
from bnlib.homogeneous_layer import homogeneous_transform, log_laplace_rule, power_mean_square
from bnlib.v_transform import batch_norm_relu_transform


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.5])
@pytest.mark.parametrize("spread", [0.0, 2.0, 5.0])
def test_degree_one_meets_the_other_rule(slope, spread, seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((7, 9)) * np.exp(spread * generator.standard_normal((7, 1)))
    found = homogeneous_transform(x @ x.T, homogeneous(1, 1, slope))
    assert found == pytest.approx(batch_norm_relu_transform(x @ x.T, slope), abs=1e-11)


def test_squares_have_known_sums():
    # b^2 sums to n for every batch, so the matrix of squares has row sums n E[b_i^2] and total n^2.
    x = np.random.default_rng(0).standard_normal((6, 3))
    v = homogeneous_transform(x @ x.T, homogeneous(2, 1, -1))
    assert v.sum() == pytest.approx(36, abs=1e-10)
    linear = homogeneous_transform(x @ x.T, homogeneous(1, 1, 1))
    assert v.sum(axis=1) == pytest.approx(6 * np.diagonal(linear), abs=1e-10)


@pytest.mark.parametrize("alpha", [0.5, 2.5])
def test_against_draws(alpha, seed):
    generator = np.random.default_rng(seed)
    n, draws = 5, 40_000
    x = generator.standard_normal((n, 6)) * np.array([[1, 1, 2, 3, 0.5]]).T
    h = generator.standard_normal((draws, 6)) @ x.T
    h -= h.mean(axis=1, keepdims=True)
    f = np.maximum(h / np.sqrt((h**2).mean(axis=1, keepdims=True)), 0) ** alpha
    products = f[:, :, None] * f[:, None, :]
    error = products.std(axis=0, ddof=1) / math.sqrt(draws)
    assert (abs(products.mean(axis=0) - homogeneous_transform(x @ x.T, homogeneous(alpha))) < 5 * error).all()
    wrong = homogeneous_transform(x @ x.T, homogeneous(alpha + 0.3))
    assert (abs(products.mean(axis=0) - wrong) > 5 * error).any()  # power


def test_fixed_point_of_large_degree():
    phi = homogeneous(30)
    v = homogeneous_transform(np.eye(10), phi)
    assert v[0, 0] == pytest.approx(homogeneous_fixed_point(phi, 10).diagonal, rel=1e-10)


def test_errors(unchecked):
    relu = homogeneous(1)
    for bad, sentence in (
        (np.ones((2, 2)), "at least 3 samples"),
        (np.full((3, 3), np.nan), "must be finite"),
        (np.triu(np.ones((4, 4))), "must be symmetric"),
        (np.diag([1.0, 1.0, -1.0]), "positive semi-definite"),
        (np.ones((4, 4)), "nothing is left after centering"),
        (np.eye(4) - 2, "positive semi-definite"),
        (np.outer([1.0, 2, 3], [1.0, 2, 3]), "rank at least 2 after centering, got 1: the integral needs it"),
    ):
        with pytest.raises(ValueError, match=sentence):
            homogeneous_transform(bad, relu)
    with pytest.raises(ValueError, match="alpha must be a positive finite degree, got 0"):
        log_laplace_rule(np.ones(1), np.ones(1), 0)
    with pytest.raises(ValueError, match="alpha must be above -1/2"):
        power_mean_square(-1)
