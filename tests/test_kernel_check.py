"""The check of the formula of Cho and Saul, and that it rejects a wrong formula."""

import math

import numpy as np
import pytest

from bnlib import kernel_check
from bnlib.kernel_check import check_relu_kernel, relu_cosine_by_directions
from bnlib.kernels import relu_cosine

ANGLES = np.linspace(0, math.pi, 9)


def test_directions_by_hand():
    assert relu_cosine_by_directions(0) == pytest.approx(1, abs=1e-13)
    assert relu_cosine_by_directions(math.pi) == pytest.approx(0, abs=1e-13)
    for theta in ANGLES:
        assert relu_cosine_by_directions(float(theta)) == pytest.approx(relu_cosine(math.cos(theta)), abs=1e-12)


def test_the_formula_passes(seed):
    found = check_relu_kernel(ANGLES, 20_000, random=np.random.default_rng(seed))
    assert found.quadrature_error < 1e-12
    assert found.largest_z < 5
    assert found.least_excess > 0 == found.excess_parallel


def test_a_wrong_formula_is_rejected(monkeypatch, seed):
    # ReLU read as the mean of both signs: J without its linear term's arc cosine.
    wrong = lambda c: (np.sqrt(1 - np.asarray(c) ** 2) + np.pi / 2 * np.asarray(c)) / np.pi  # noqa: E731
    monkeypatch.setattr(kernel_check, "relu_cosine", wrong)
    found = check_relu_kernel(ANGLES, 20_000, random=np.random.default_rng(seed))
    assert found.quadrature_error > 0.1
    assert found.largest_z > 8


def test_errors():
    random = np.random.default_rng(0)
    with pytest.raises(ValueError, match="draws must be at least 2, got 1"):
        check_relu_kernel(ANGLES, 1, random=random)
    with pytest.raises(ValueError, match="angles must begin with 0"):
        check_relu_kernel(ANGLES[1:], 10, random=random)
    with pytest.raises(ValueError, match="theta must be an angle between 0 and pi radians, got -1"):
        relu_cosine_by_directions(-1)
