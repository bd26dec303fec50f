"""States at infinite width against known values and a second way to compute them, and pushed networks."""

import math

import numpy as np
import pytest
import torch

from bnlib.kernels import batch_norm_angle, recentered_relu_kernel
from bnlib.layers import Stages, apply_stages
from bnlib.outlier_class import next_products
from bnlib.outlier_states import outlier_state, symmetric_state
from bnlib.pushed_networks import angle_of_first, pushed

# Norm over a cluster point's norm, angle to a cluster point and angle within the cluster, in degrees.
KNOWN = {
    7: (3.849, 86.24, 61.37),
    8: (5.105, 87.54, 54.65),
    16: (13.896, 89.655, 30.00),
    32: (30.385, 89.952, 15.88),
    64: (62.674, 89.994, 8.18),
    128: (126.83, 89.999, 4.154),
}


@pytest.mark.parametrize("n", KNOWN)
def test_outlier_state_has_the_known_values(n):
    ratio, angle_to_point, within = KNOWN[n]
    state = outlier_state(n)
    assert state.top_over_second == pytest.approx(ratio, rel=2e-4)
    assert math.degrees(state.cluster_angle) == pytest.approx(within, abs=6e-3)
    # The outlier has the same inner product with the mean as with each of the others.
    cosine = math.cos(state.angle) * state.top_over_second / state.norm_ratio
    assert math.degrees(math.acos(cosine)) == pytest.approx(angle_to_point, abs=6e-3)


@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_small_batches_have_no_outlier_state(n):
    assert outlier_state(n) is None


@pytest.mark.parametrize("n", [7, 12, 24])
def test_outlier_state_agrees_with_the_map_of_the_whole_gram_matrix(n):
    k = np.full((n, n), 0.8 / n**2)
    np.fill_diagonal(k, 1 / n**2)
    k[0, :] = k[:, 0] = 0.0
    k[0, 0] = 1.0
    for _ in range(1500):
        k = recentered_relu_kernel(k)
        k /= k[0, 0]
    mean = k[1:, 1:].mean()
    state = outlier_state(n)
    assert 1 / math.sqrt(mean) == pytest.approx(state.norm_ratio, rel=1e-9)
    assert math.acos(k[0, 1:].mean() / math.sqrt(mean)) == pytest.approx(state.angle, rel=1e-9)


def test_outlier_state_expands_in_one_over_n():
    for n in (64, 128, 256):
        state = outlier_state(n)
        assert state.norm_ratio == pytest.approx(n - 1 - 9 * math.pi**2 / (2 * n**2), abs=400 / n**3)
        assert n * state.cluster_angle == pytest.approx(3 * math.pi, rel=3 / n)


@pytest.mark.parametrize("n", [3, 8, 64])
def test_symmetric_state_is_the_fixed_point_of_batch_norm(n):
    state = symmetric_state(n)
    assert state.cluster_angle == pytest.approx(batch_norm_angle(n), rel=1e-12)
    cosine = math.cos(state.cluster_angle)
    products = next_products(np.array([1.0, 1.0, cosine, cosine]), n)
    assert products / products[0] == pytest.approx([1.0, 1.0, cosine, cosine], abs=1e-12)


@pytest.mark.parametrize("s", [0.3, 1.0, 1.05, 2.0, 7.0])
def test_one_sample_in_an_infinite_batch(s):
    """The map of the theorem, s'^2 = s^2 + (s - 1)^2 / (pi - 1) at 55.65 degrees, as the limit of large batches."""
    products = next_products(np.array([s * s, 1.0, 1 / math.pi, s / math.pi]), 10**9)
    after = products[0] / products[1]
    assert after == pytest.approx(s * s + (s - 1) ** 2 / (math.pi - 1), rel=1e-7)
    assert products[3] / math.sqrt(products[0] * products[1]) == pytest.approx(1 / math.pi, rel=1e-7)
    cosine = products[3] / math.sqrt(products[0] * products[2])
    assert cosine == pytest.approx(1 / math.sqrt(math.pi), rel=1e-7)


def test_one_layer_of_a_large_finite_batch_agrees_with_the_infinite_one(generator):
    """Batch norm, n = 512, width 1024, s = 3: agrees within fluctuations, and s' = s is rejected."""
    n, s, draws = 512, 3.0, 16
    cosine = 1 / math.pi
    x = torch.full((n, n), cosine, dtype=torch.float64)
    x.fill_diagonal_(1.0)
    x[0, :] = x[:, 0] = s * cosine
    x[0, 0] = s * s
    root = torch.linalg.cholesky(x)
    w = torch.randn(draws, n, 1024, generator=generator, dtype=torch.float64)
    squares = apply_stages(root @ w, Stages.parse("RC+RS+NL")).square().sum(dim=-1)
    ratio = squares[:, 0] / squares[:, 1:].mean(dim=-1)
    expected = s * s + (s - 1) ** 2 / (math.pi - 1)
    # The square of a rectified Gaussian has five times its squared mean as variance.
    error = expected * math.sqrt(5 / (1024 * draws))
    # The batch is finite: s^2/n of every neuron's variance is the heavy sample's own, about two percent here.
    tolerance = 5 * error + expected * 3 * s * s / n
    assert abs(ratio.mean().item() - expected) < tolerance
    assert abs(s * s - expected) > tolerance


def test_pushed_samples_come_back_in_small_batches(seed):
    g = torch.Generator().manual_seed(seed)
    found = pushed(8, 256, 40, Stages.parse("RC+RS+NL"), factor=3.0, draws=16, generator=g)
    low, middle, high = found["curves"]
    assert len(low) == len(middle) == len(high) == 40
    assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))
    assert middle[0] > 1.7
    assert middle[-1] < 1.25
    assert found["end"] == middle[-1]
    assert low[-1] <= found["end_low"] <= found["end"] <= found["end_high"] <= high[-1]
    # One of many equivalent samples: the angle of the symmetric state, up to fluctuations, and far from a right one.
    assert found["angle_low"] <= found["angle_deg"] <= found["angle_high"]
    assert abs(found["angle_deg"] - math.degrees(symmetric_state(8).angle)) < 8


def test_angle_of_the_pushed_sample_agrees_with_the_vectors(generator):
    x = torch.randn(4, 6, 5, generator=generator, dtype=torch.float64)
    mean = x[:, 1:].mean(dim=1)
    naive = torch.nn.functional.cosine_similarity(x[:, 0], mean, dim=-1).arccos().rad2deg()
    assert angle_of_first(x @ x.mT) == pytest.approx(naive.numpy(), abs=1e-9)
    x[0, 0] = 0
    assert np.isnan(angle_of_first(x @ x.mT)).tolist() == [True, False, False, False]


def test_pushed_samples_run_away_without_rescaling(seed):
    g = torch.Generator().manual_seed(seed)
    found = pushed(16, 256, 40, Stages.parse("RC+NL"), factor=3.0, draws=16, generator=g)
    assert found["end"] > 8
    assert found["angle_deg"] > 85


@pytest.mark.parametrize("n", [0, 2])
def test_states_refuse_small_batches(n):
    for function in (symmetric_state, outlier_state):
        with pytest.raises(ValueError, match=rf"n is {n}; valid is a batch size of at least 3\."):
            function(n)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 2}, r"n is 2 and draws is 4; valid is n >= 3 with at least 1 draw\."),
        ({"draws": 0}, r"n is 8 and draws is 0; valid is n >= 3"),
        ({"factor": 0.0}, r"factor is 0\.0; valid is a positive number\."),
    ],
)
def test_pushed_refuses(changes, message):
    arguments = {"n": 8, "width": 16, "depth": 3, "stages": Stages.parse("RC+NL"), "factor": 2.0, "draws": 4} | changes
    with pytest.raises(ValueError, match=message):
        pushed(**arguments, generator=torch.Generator().manual_seed(0))
