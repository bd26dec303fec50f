"""Linear networks: exact cases, the theorem's inequalities on data, the rate; bad input."""

import numpy as np
import pytest

from bnlib.linear_convergence import contraction, eigenvalue_gaps, next_eigenvalues
from bnlib.v_transform import batch_norm_relu_transform


def test_two_eigenvalues_take_square_roots(seed):
    k = np.exp(np.random.default_rng(seed).standard_normal(2))
    expected = np.sqrt(k) / np.sqrt(k).sum()
    assert next_eigenvalues(k) == pytest.approx(expected, abs=1e-12)


def test_the_layer_of_the_transform(seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((6, 9))
    x -= x.mean(axis=0)
    values, vectors = np.linalg.eigh(x @ x.T)
    after = vectors.T @ batch_norm_relu_transform(x @ x.T, slope=1) @ vectors
    kept = values > 1e-9
    assert np.diagonal(after)[kept] / 6 == pytest.approx(next_eigenvalues(values[kept]), abs=1e-10)
    assert np.abs(after - np.diag(np.diagonal(after))).max() < 1e-9


def test_order_is_kept_and_ratios_shrink(seed):
    k = np.sort(np.exp(3 * np.random.default_rng(seed).standard_normal(7)))
    after = next_eigenvalues(k)
    assert (np.diff(after) > 0).all()
    assert (after[1:] / after[:-1] < k[1:] / k[:-1]).all()


@pytest.mark.parametrize("rank", [2, 5, 30])
def test_the_rate(rank):
    gaps = eigenvalue_gaps(1 + 1e-4 * np.arange(rank), 2)
    assert gaps[2] / gaps[1] == pytest.approx(contraction(rank), abs=1e-3)


def test_extremes():
    assert next_eigenvalues(np.array([5.0])).tolist() == [1.0]
    tiny = next_eigenvalues(np.array([1.0, 1e-12]))
    assert tiny[1] == pytest.approx(1e-6, rel=1e-5)
    for bad in ([1.0, 0.0], [np.nan, 1.0], []):
        with pytest.raises(ValueError, match="eigenvalues must be a list of positive finite numbers"):
            next_eigenvalues(np.array(bad))
    with pytest.raises(ValueError, match="rank must be at least 2, got 1"):
        contraction(1)
    with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
        eigenvalue_gaps(np.ones(2), 0)
