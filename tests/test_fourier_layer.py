"""Waves over a normalized batch at any covariance: exact circles, BSB1, draws, bad input."""

import math

import numpy as np
import pytest

from bnlib.fourier import sine_fixed_point, sphere_characteristic
from bnlib.fourier_layer import fourier_layer_check, sine_layer, wave_averages


@pytest.mark.parametrize("n", [3, 4, 8, 16])
def test_bsb1(n):
    t = np.zeros((n, 3))
    t[0], t[1, 1], t[1, 2] = 1.0, -1.0, 1.0
    found = wave_averages(2 * np.eye(n) + 0.4, t)
    wanted = [sphere_characteristic(math.sqrt(n) * np.linalg.norm(c - c.mean()), n) for c in t.T]
    assert found == pytest.approx(wanted, abs=1e-10)
    if n > 3:
        assert sine_layer(np.eye(n))[0, 1] == pytest.approx(sine_fixed_point(n).off_diagonal, abs=1e-10)


def test_rank_two_is_a_circle(seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((6, 2)) * np.exp(2 * generator.uniform(-1, 1, (6, 1)))
    x -= x.mean(axis=0)
    angle = 2 * np.pi * np.arange(20_000) / 20_000
    y = x @ np.stack([np.cos(angle), np.sin(angle)])
    values = np.sin(math.sqrt(6) * y / np.linalg.norm(y, axis=0))
    assert sine_layer(x @ x.T) == pytest.approx(values @ values.T / 20_000, abs=1e-9)


def test_scale_and_mean_do_not_matter(seed):
    x = np.random.default_rng(seed).standard_normal((5, 4))
    one = sine_layer(x @ x.T)
    assert sine_layer(1e-9 * x @ x.T) == pytest.approx(one, abs=1e-11)
    assert sine_layer((x + 3) @ (x + 3).T) == pytest.approx(one, abs=1e-9)
    assert one.sum() == pytest.approx(one.sum(axis=0).sum())
    assert np.linalg.eigvalsh(one).min() > -1e-12


def test_against_draws(seed):
    found = fourier_layer_check(np.random.default_rng(seed), 8000)
    assert found["known"] < 1e-9
    assert found["largest_z"] < 5
    # Power: the kernel of equal scales is rejected where they differ.
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((6, 8)) * np.array([[4, 1, 1, 1, 1, 0.3]]).T
    h = generator.standard_normal((8000, 8)) @ x.T
    h -= h.mean(axis=1, keepdims=True)
    values = np.sin(h / np.sqrt((h**2).mean(axis=1, keepdims=True)))
    products = values[:, :, None] * values[:, None, :]
    error = products.std(axis=0, ddof=1) / math.sqrt(8000)
    assert (np.abs(products.mean(axis=0) - sine_layer(x @ x.T)) < 5 * error).all()
    assert (np.abs(products.mean(axis=0) - sine_layer(np.eye(6))) > 5 * error).any()


@pytest.mark.parametrize(
    ("covariance", "sentence"),
    [
        (np.eye(2), "at least 3 samples"),
        (np.full((3, 3), np.nan), "must be finite"),
        (np.diag([1.0, 1.0, -1.0]), "must be positive semi-definite"),
        (np.outer([1.0, 2, 3], [1.0, 2, 3]), "must have rank at least 2 after centering, got 1"),
    ],
)
def test_bad_covariances(covariance, sentence, unchecked):
    with pytest.raises(ValueError, match=sentence):
        sine_layer(covariance)


def test_other_errors(unchecked):
    with pytest.raises(ValueError, match="frequencies must be a finite matrix with 4 rows"):
        wave_averages(np.eye(4), np.ones((3, 1)))
    with pytest.raises(ValueError, match="draws must be at least 100, got 5"):
        fourier_layer_check(np.random.default_rng(0), 5)
