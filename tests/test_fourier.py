"""The Fourier method at BSB1 against spherical integration; bad input."""

import numpy as np
import pytest

from bnlib.activations import activation
from bnlib.fourier import (
    error_function_fixed_point,
    sine_cross_batch_decay,
    sine_fixed_point,
    sphere_characteristic,
)
from bnlib.mean_field import cross_batch_decay, symmetric_fixed_point
from bnlib.sphere import one_entry


@pytest.mark.parametrize("n", [3, 4, 8, 50])
def test_characteristic_function(n):
    x, w = one_entry(n)
    for t in (0.0, 1e-8, 0.3, 2.0):
        expected = w @ np.cos(t * x)
        assert sphere_characteristic(t * np.sqrt(n - 1), n) == pytest.approx(expected, abs=1e-10 if n > 3 else 1e-6)


@pytest.mark.parametrize("n", [4, 8, 33])
def test_fixed_points(n):
    for found, name in ((sine_fixed_point(n), "sin"), (error_function_fixed_point(n), "erf-like")):
        known = symmetric_fixed_point(activation(name), n)
        assert found.diagonal == pytest.approx(known.diagonal, abs=1e-11)
        assert found.off_diagonal == pytest.approx(known.off_diagonal, abs=1e-11)
    assert sine_cross_batch_decay(n) == pytest.approx(cross_batch_decay(activation("sin"), n), abs=1e-11)
    # Power: the wave of another frequency has another fixed point.
    assert sine_fixed_point(n).diagonal != pytest.approx(0.5 * (1 - sphere_characteristic(np.sqrt(n - 1), n)), abs=1e-3)


def test_errors(unchecked):
    with pytest.raises(ValueError, match="at least 3, got 2"):
        sphere_characteristic(1.0, 2)
    with pytest.raises(ValueError, match="r must be at least 0"):
        sphere_characteristic(-1.0, 8)
    with pytest.raises(ValueError, match="at least 4, got 3"):
        error_function_fixed_point(3)
    with pytest.raises(ValueError, match="nodes must be at least 4"):
        error_function_fixed_point(8, nodes=2)
