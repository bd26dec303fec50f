"""Norm after the activation: against sampled neurons, closed forms and finer quadrature."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import ndtr

from bnlib import kernels, stage_order


def sampled_cosine(n, theta, rescaling, seed, neurons=60_000):
    """Common cosine after one layer and its standard error, by batches of neurons and plain arithmetic."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(20):
        shared = math.sqrt(math.cos(theta)) * rng.standard_normal((neurons // 20, 1))
        h = shared + math.sqrt(1 - math.cos(theta)) * rng.standard_normal((neurons // 20, n))
        f = np.maximum(h, 0)
        scale = np.sqrt((f**2).mean(axis=1)) if rescaling == "rms" else f.std(axis=1)
        f = f[scale > 0] / scale[scale > 0, None]
        gram = f.T @ f
        diagonal = np.trace(gram) / n
        found.append((gram.sum() / n - diagonal) / (n - 1) / diagonal)
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(20)


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("theta", [0.4, 1.2])
def test_rms_after_relu_against_sampled_neurons(n, theta, seed):
    mean, error = sampled_cosine(n, theta, "rms", seed)
    assert abs(math.cos(stage_order.relu_rms_angle(theta, n)) - mean) < 5 * error
    # the norm before the activation is another map, and the same test says so
    assert abs(math.cos(kernels.rms_relu_angle(theta, n)) - mean) > 5 * error


@pytest.mark.parametrize(("n", "theta"), [(8, 0.4), (16, 1.2)])
def test_std_after_relu_against_another_estimator(n, theta, seed):
    mean, error = sampled_cosine(n, theta, "std", seed)
    rng = np.random.default_rng([seed, 1])
    angle, spread = stage_order.sampled_relu_std_angle(theta, n, neurons=60_000, generator=rng)
    assert abs(math.cos(angle) - mean) < 5 * math.hypot(error, spread * math.sin(angle))
    assert abs(math.cos(kernels.std_relu_angle(theta, n)) - mean) > 5 * error


def test_orthogonal_pair_in_closed_form():
    assert math.cos(stage_order.relu_rms_angle(math.pi / 2, 2)) == pytest.approx(2 / (3 * math.pi), abs=1e-13)


@pytest.mark.parametrize(("n", "theta"), [(3, 0.5), (8, 1.2)])
def test_rms_after_relu_against_adaptive_quadrature(n, theta):
    c, sine = math.cos(theta), math.sqrt(1 - math.cos(theta))

    def integrand(x, z):
        s, mean = math.exp(x), math.sqrt(c) * z
        spread = 1 + 2 * s * sine**2
        a = mean / sine / math.sqrt(spread)
        e = math.exp(-s * mean**2 / spread) / math.sqrt(spread)
        zeroth = ndtr(-mean / sine) + e * ndtr(a)
        first = e * (mean / spread * ndtr(a) + sine / math.sqrt(2 * math.pi * spread) * math.exp(-a * a / 2))
        return n * s * first**2 * zeroth ** (n - 2) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    off = dblquad(integrand, -8, 8, -25, 25, epsabs=1e-9, epsrel=1e-9)[0]
    z = np.linspace(-9, 9, 4001)
    weight = np.exp(-z * z / 2) / np.exp(-z * z / 2).sum()
    alive = 1 - float(weight @ ndtr(-math.sqrt(c) * z / sine) ** n)
    assert math.cos(stage_order.relu_rms_angle(theta, n)) == pytest.approx(off / alive, abs=1e-7)


def test_finer_quadrature_changes_nothing(monkeypatch):
    coarse = [stage_order.relu_rms_angle(t, n) for t in (0.1, 1.5) for n in (2, 64)]
    monkeypatch.setattr(stage_order, "_LOG_STEP", 0.07)
    monkeypatch.setattr(stage_order, "_REACH", 10.0)
    fine = [stage_order.relu_rms_angle(t, n) for t in (0.1, 1.5) for n in (2, 64)]
    np.testing.assert_allclose(coarse, fine, rtol=0, atol=1e-11)


def test_large_batches_tend_to_the_limit():
    gaps = [abs(stage_order.relu_rms_angle(1.0, n) - stage_order.relu_rms_angle(1.0, math.inf)) for n in (50, 100, 200)]
    assert gaps[0] > 1.4 * gaps[1] > 1.4**2 * gaps[2] > 0


def test_recentered_layers_rest_at_the_simplex():
    for n in (2, 5, 64, math.inf):
        for name in ("NL+RC", "NL+RC+RS"):
            points = stage_order.resting_points(name, n)
            assert points.after_relu == pytest.approx(kernels.relu_angle(points.after_norm), abs=1e-12)
            assert points.after_relu == pytest.approx(kernels.batch_norm_angle(n), abs=1e-12)


def test_order_decides_about_small_angles_of_large_batches():
    """1 - cos doubles after the activation and stays (to first order) before it."""
    y = [1 - math.cos(f(0.02)) for f in (stage_order.relu_std_angle_of_large_batch, kernels.relu_angle)]
    assert y[0] / (1 - math.cos(0.02)) == pytest.approx(2, abs=0.01)
    assert y[1] / (1 - math.cos(0.02)) == pytest.approx(1, abs=0.01)


def test_fixed_points_rest():
    for n in (2, 8, math.inf):
        theta = stage_order.relu_rms_fixed_point(n).value
        assert stage_order.relu_rms_angle(theta, n) == pytest.approx(theta, abs=1e-12)
    assert stage_order.resting_points("NL+STD", 8) is None
    points = stage_order.resting_points("NL+STD", math.inf)
    assert stage_order.relu_std_angle_of_large_batch(points.after_norm) == pytest.approx(points.after_norm, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: stage_order.relu_rms_angle(0.0, 8), r"theta must be an angle of at least 0.01 rad and at most pi/2"),
        (lambda: stage_order.relu_rms_angle(1.0, 1), r"n must be a batch size of at least 2, got 1\."),
        (lambda: stage_order.relu_std_angle_of_large_batch(2.0), "theta must be an angle of at least 0.01"),
        (lambda: stage_order.resting_points("RC+NL", 8), r"name is 'RC\+NL'; valid is NL\+RC"),
        (
            lambda: stage_order.sampled_relu_std_angle(1.0, 5, neurons=9, generator=np.random.default_rng(0)),
            r"n must be a batch size of at least 6 \(below, the sampled ratio has no variance\), got 5\.",
        ),
        (
            lambda: stage_order.sampled_relu_std_angle(0.0, 8, neurons=9, generator=np.random.default_rng(0)),
            r"theta must be an angle in \(0, pi/2\], got 0\.0\.",
        ),
        (
            lambda: stage_order.sampled_relu_std_angle(1.0, 8, neurons=1, generator=np.random.default_rng(0)),
            r"neurons must be at least 2, got 1\.",
        ),
        (lambda: stage_order.simplex_angle(math.nan), "n must be a batch size of at least 2, got nan"),
    ],
)
def test_messages(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
