"""Tests of bnlib.checks: what is let through, what is moved to an end, what is refused."""

import math

import numpy as np
import pytest

from bnlib import checks


def test_values_inside_are_copied():
    given = np.array([0.0, 0.5, 1.0])
    checked = checks.checked_values("x", given, 0.0, 1.0, "between 0 and 1")
    np.testing.assert_array_equal(checked, given)
    checked[0] = 9.0
    assert given[0] == 0.0


def test_rounding_is_forgiven_and_more_is_not():
    assert checks.checked_values("x", 1.0 + 1e-12, 0.0, 1.0, "between 0 and 1") == 1.0
    assert checks.checked_values("x", -1e-12, 0.0, 1.0, "between 0 and 1") == 0.0
    for bad in (1.0 + 1e-6, -1e-6, math.nan, math.inf, np.array([0.5, 2.0])):
        with pytest.raises(ValueError, match=r"^x must be between 0 and 1, got "):
            checks.checked_values("x", bad, 0.0, 1.0, "between 0 and 1")


def test_batch_sizes_and_depths():
    assert checks.checked_batch_size(3, 2) == 3.0
    assert checks.checked_batch_size(math.inf, 2) == math.inf
    assert checks.checked_depth(4) == 4
    for bad in (1.9, math.nan, -math.inf):
        with pytest.raises(ValueError, match=r"^n must be a batch size of at least 2, got "):
            checks.checked_batch_size(bad, 2)
    for bad in (-1, True, 1.0, math.inf):
        with pytest.raises(ValueError, match=r"^depth must be a whole number of layers, 0 or more, got "):
            checks.checked_depth(bad)


def test_plain():
    assert isinstance(checks.plain(np.array(1.5)), float)
    assert checks.plain(np.zeros(2)).shape == (2,)
