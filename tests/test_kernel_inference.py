"""Exact inference against weighted draws and textbook formulas; bad input."""

import numpy as np
import pytest

from bnlib.kernel_inference import batch_norm_kernels, network_kernel_scores, posterior, posterior_by_sampling
from bnlib.mean_field import relu_symmetric_fixed_point
from bnlib.v_transform import batch_norm_relu_transform


def test_posterior_is_regression(seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((7, 9))
    k, y = x @ x.T, generator.standard_normal(4)
    found = posterior(k, y, 0.3)
    solve = np.linalg.inv(k[:4, :4] + 0.3 * np.eye(4))
    assert found.mean == pytest.approx(k[4:, :4] @ solve @ y, abs=1e-10)
    assert found.covariance == pytest.approx(k[4:, 4:] - k[4:, :4] @ solve @ k[:4, 4:], abs=1e-9)
    _, log_det = np.linalg.slogdet(k[:4, :4] + 0.3 * np.eye(4))
    assert found.log_evidence == pytest.approx(-0.5 * (y @ solve @ y + log_det + 4 * np.log(2 * np.pi)))


def test_posterior_by_sampling(seed):
    generator = np.random.default_rng(seed)
    k = batch_norm_kernels(generator.standard_normal((6, 10)), [2])[2]
    y = np.array([1.0, -1.0])
    drawn, errors = posterior_by_sampling(k, y, 0.5, 50_000, generator)
    assert (abs(drawn - posterior(k, y, 0.5).mean) < 5 * errors).all()
    assert (abs(drawn + posterior(k, y, 0.5).mean) > 5 * errors).any()  # power: the other sign


def test_deep_kernels_forget(seed):
    x = np.random.default_rng(seed).standard_normal((6, 10))
    kernels = batch_norm_kernels(x, [1, 100])
    assert kernels[1] == pytest.approx(batch_norm_relu_transform(x @ x.T), abs=1e-13)
    point = relu_symmetric_fixed_point(6)
    assert kernels[100] == pytest.approx(point.off_diagonal + point.centered * np.eye(6), abs=1e-10)


def test_networks_have_the_kernel(seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((5, 7)) * np.array([[1.0], [1.0], [1.0], [3.0], [0.3]])
    found = network_kernel_scores(x, 2, 128, 400, generator)
    assert len(found["z"]) == 15
    assert max(abs(z) for z in found["z"]) < 5
    assert found["far"] > 10  # power: the fixed point in its place would be seen
    with pytest.raises(ValueError, match="networks must be at least 2, got 1"):
        network_kernel_scores(x, 2, 16, 1, generator)


def test_errors(unchecked):
    with pytest.raises(ValueError, match="x must be a finite matrix of at least 3 samples"):
        batch_norm_kernels(np.full((4, 2), np.nan), [1])
    for depths in ([], [0]):
        with pytest.raises(ValueError, match="depths must be numbers of layers of at least 1"):
            batch_norm_kernels(np.eye(4), depths)
    with pytest.raises(ValueError, match="noise must be a positive variance, got 0"):
        posterior(np.eye(3), np.ones(1), 0)
    with pytest.raises(ValueError, match="targets must be at least 1 and fewer than the batch of 3, got 3"):
        posterior(np.eye(3), np.ones(3), 1)
    with pytest.raises(ValueError, match="draws must be at least 2"):
        posterior_by_sampling(np.eye(3), np.ones(1), 1, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="noise must be a positive variance"):
        posterior_by_sampling(np.eye(3), np.ones(1), 0, 5, np.random.default_rng(0))
