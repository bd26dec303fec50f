"""Tests of bnlib.escape_networks: noise against networks layer by layer, passages, laws of growth, messages."""

import math

import numpy as np
import pytest
import torch

from bnlib import escape_networks as networks
from bnlib import leaky
from bnlib.ensembles import propagate
from bnlib.escape_noise import gram_fluctuations
from bnlib.layers import Stages


def diagonal_of_centered(k: torch.Tensor) -> torch.Tensor:
    c = k - k.mean(dim=-1, keepdim=True)
    c = c - c.mean(dim=-2, keepdim=True)
    d = c.diagonal(dim1=-2, dim2=-1)
    return d.shape[-1] * d / d.sum(dim=-1, keepdim=True) - 1


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("slope", [0, 0.3, -1])
def test_next_gram_is_a_layer(slope, generator):
    n, width, draws = 4, 6, 20_000
    x = torch.randn(n, 5, generator=generator, dtype=torch.float64)
    k = (x @ x.mT).expand(draws, n, n)
    found = networks.next_gram(k, width, generator=generator, slope=slope)
    w = torch.randn(draws, 5, width, generator=generator, dtype=torch.float64)
    h = torch.nn.functional.leaky_relu((x - x.mean(dim=0)) @ w, slope)
    direct = h @ h.mT
    direct = direct / direct.diagonal(dim1=-2, dim2=-1).sum(dim=-1)[:, None, None]
    for i, j in ((0, 0), (0, 1), (2, 3)):
        (a, da), (b, db) = (mean_and_error(part[:, i, j].numpy()) for part in (found, direct))
        assert abs(a - b) < 5 * math.hypot(da, db)


def test_wide_layers_are_drawn_in_blocks(generator):
    k = torch.eye(8, dtype=torch.float64)[None]
    after = networks.next_gram(k, 200_001, generator=generator)[0] * 8
    cosine = float(after[0, 1])
    assert abs(cosine - leaky.leaky_cosine(-1 / 7, 0)) < 0.02
    assert torch.allclose(after, after.mT)


def test_collapsed_batches_do_not_stop_a_layer(generator):
    x = torch.zeros(1, 4, 3, dtype=torch.float64)
    x[:, 0] = 1.0
    after = networks.next_gram(x @ x.mT, 50, generator=generator)
    assert torch.isfinite(after).all()
    assert float(after[0, 1, 2]) == pytest.approx(float(after[0, 1, 1]), rel=1e-6)


@pytest.mark.parametrize(("n", "slope"), [(3, 0.0), (6, 0.0), (6, -0.5)])
def test_noise_has_the_covariance_asked_for(n, slope, generator):
    draw = networks._noise(n, slope, generator)
    xi = draw(40_000).numpy()
    parts = gram_fluctuations(n, slope)
    index = np.arange(n)
    diagonal = xi[:, index, index]
    off = (xi.sum(axis=2) - diagonal) / (n - 1)
    a = (diagonal - diagonal.mean(axis=1, keepdims=True))[:, 0]
    b = (off - off.mean(axis=1, keepdims=True))[:, 0] * (n - 1) / (n - 2)
    t = diagonal.mean(axis=1), off.mean(axis=1)
    e = xi[:, 0, 1] - t[1] - (off[:, 0] + off[:, 1] - 2 * t[1]) * (n - 1) / (n - 2)
    for product, value in (
        (t[0] * t[0], parts.uniform[0, 0]),
        (t[0] * t[1], parts.uniform[0, 1]),
        (a * a, parts.sample[0, 0]),
        (a * b, parts.sample[0, 1]),
        (b * b, parts.sample[1, 1]),
        (e * e, parts.pair * (n - 3) / (n - 1)),
    ):
        mean, error = mean_and_error(product)
        assert abs(mean - value) < 5 * error + 1e-9
    mean, error = mean_and_error(a * a)
    assert abs(mean - parts.sample[0, 0] * n / (n - 1)) > 5 * error  # power: the mean not taken off
    np.testing.assert_allclose(xi, xi.transpose(0, 2, 1))


def test_theory_and_networks_pass_alike(generator):
    n, width, depth = 12, 128, 200
    theory = networks.theory_passages(networks.orthogonal_grams(n, 600), width, depth, generator=generator)
    real = networks.network_passages(networks.orthogonal_grams(n, 200), width, depth, generator=generator)
    at = int(np.median(theory[theory > 0]))
    assert abs(networks.share_z(real.tolist(), at, theory.tolist())["z"]) < 5
    wider = networks.theory_passages(networks.orthogonal_grams(n, 600), 8 * width, depth, generator=generator)
    assert abs(networks.share_z(real.tolist(), at, wider.tolist())["z"]) > 5  # power: another width


def test_without_noise_the_fate_is_that_of_the_map(generator):
    n = 8
    grams = torch.stack([torch.eye(n, dtype=torch.float64)] * 2)
    grams[1, 0, 0] = 9.0  # three times as long: beyond the separatrix, and passed after one layer
    found = networks.theory_passages(grams, 10**18, 60, generator=generator, ratio=2.0)
    assert found.tolist()[0] == 0
    assert found[1] > 0


def test_stay_agrees_with_dense_propagation(generator):
    n, width, draws = 8, 64, 300
    found = networks.stay(n, width, burn=2, keep=1, draws=draws, generator=generator, every=1)
    x = torch.from_numpy(np.linalg.cholesky(networks.outlier_gram(n))).expand(draws, n, n)
    *_, last = propagate(x, width, 3, Stages.parse("RC+NL"), generator=generator, draw="dense")
    from bnlib.geometry import cluster_angle, outlier_summary_from_gram

    for ours, theirs in (
        (found.cluster_angle, cluster_angle(last.x, gram=last.gram).numpy()),
        (found.norm_ratio, outlier_summary_from_gram(last.gram).norm_ratio.numpy()),
    ):
        (a, da), (b, db) = mean_and_error(ours), mean_and_error(theirs)
        assert abs(a - b) < 5 * math.hypot(da, db)
    np.testing.assert_array_equal(found.cluster_angle, found.final_cluster_angle)


def test_outlier_gram_is_fixed_by_the_map():
    k = networks.outlier_gram(12)
    found = networks.theory_passages(torch.from_numpy(k)[None], 10**18, 1, generator=torch.Generator(), ratio=9.0)
    assert found.tolist() == [1]
    np.testing.assert_allclose(k, k.T)


def test_share_z():
    found = networks.share_z([1] * 50 + [0] * 50, 10, [1] * 300 + [0] * 300)
    assert found == {"observed": 0.5, "predicted": 0.5, "z": 0.0}
    assert math.isfinite(networks.share_z([1, 2], 5, [0, 0])["z"])


def test_messages(unchecked, generator):
    eye = torch.eye(4, dtype=torch.float64)[None]
    with pytest.raises(ValueError, match=r"gram has the shape \(4, 4\); valid is \(draws, n, n\) with n >= 3"):
        networks.network_passages(eye[0], 8, 5, generator=generator)
    with pytest.raises(ValueError, match="width is 0; valid is a whole number of at least 1"):
        networks.theory_passages(eye, 0, 5, generator=generator)
    with pytest.raises(ValueError, match="depth is 0; valid"):
        networks.theory_passages(eye, 8, 0, generator=generator)
    with pytest.raises(ValueError, match="ratio is 1; valid is a ratio of norms above 1"):
        networks.theory_passages(eye, 8, 5, generator=generator, ratio=1)
    with pytest.raises(ValueError, match="gram has entries that are not finite"):
        networks.network_passages(eye * math.nan, 8, 5, generator=generator)
    with pytest.raises(ValueError, match="n is 6; valid is a batch size with an outlier state, at least 7"):
        networks.outlier_gram(6)
    with pytest.raises(ValueError, match="observed or predicted is empty"):
        networks.share_z([], 5, [1])
    with pytest.raises(ValueError, match="draws is 0, width 9"):
        networks.stay(8, 9, burn=1, keep=4, draws=0, generator=generator)
