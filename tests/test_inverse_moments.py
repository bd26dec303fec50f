"""Rank conditions: exact moments, divergence where it must be, the printed condition and the complete one."""

import math

import numpy as np
import pytest

from bnlib.inverse_moments import cross_rank_rows, rank_rows, truncated_cross_moment, truncated_inverse_moment


@pytest.mark.parametrize(("k", "rank"), [(0.5, 4), (1, 5), (1.5, 7), (2, 9)])
def test_exact_moments(k, rank):
    exact = math.gamma(rank / 2 - k) / math.gamma(rank / 2) / 2**k
    assert truncated_inverse_moment(k, rank, 1e14) == pytest.approx(exact, rel=1e-6)
    independent = truncated_cross_moment(k, k, 0, rank, rank, 1e14)
    assert independent == pytest.approx(exact**2, rel=1e-6)
    same = math.gamma(8 - 2 * k) / math.gamma(8) / 4**k
    assert truncated_cross_moment(k, k, 16, 0, 0, 1e14) == pytest.approx(same, rel=1e-6)


def test_against_draws(seed):
    z = np.random.default_rng(seed).standard_normal((40_000, 12))
    one, two = (z[:, :9] ** 2).sum(axis=1), (z[:, 3:] ** 2).sum(axis=1)
    values = 1 / (one * two)
    found = truncated_cross_moment(1, 1, 6, 3, 3, 1e14)
    error = values.std(ddof=1) / 200
    assert abs(values.mean() - found) < 5 * error
    assert abs(values.mean() - truncated_cross_moment(1, 1, 0, 9, 9, 1e14)) > 5 * error  # power: the part in common


def test_a_small_direction_hardly_matters_where_the_moment_exists():
    assert truncated_inverse_moment(1, 3, 1e14, 1e-12) == pytest.approx(truncated_inverse_moment(1, 3, 1e14), rel=1e-5)
    assert truncated_inverse_moment(1, 2, 1e14, 1e-8) < 0.8 * truncated_inverse_moment(1, 2, 1e14)


def test_conditions():
    assert all(row["finite"] == row["printed"] for row in rank_rows())
    rows = cross_rank_rows()
    assert all(row["finite"] == row["completed"] for row in rows)
    assert sum(row["printed"] and not row["finite"] for row in rows) >= 2


def test_errors():
    with pytest.raises(ValueError, match="k must be positive and finite, got 0"):
        truncated_inverse_moment(0, 3, 10.0)
    with pytest.raises(ValueError, match="rank must be at least 1, got 0"):
        truncated_inverse_moment(1, 0, 10.0)
    with pytest.raises(ValueError, match="cut must be above 1 and small at least 0"):
        truncated_inverse_moment(1, 3, 10.0, -1.0)
    with pytest.raises(ValueError, match="a and b must be positive"):
        truncated_cross_moment(1, -1, 1, 1, 1, 10.0)
    with pytest.raises(ValueError, match="both batches must have rank at least 1, got 0 \\+ 0 and 0 \\+ 2"):
        truncated_cross_moment(1, 1, 0, 0, 2, 10.0)
    with pytest.raises(ValueError, match=r"cut must be above 1, got 0\.5"):
        truncated_cross_moment(1, 1, 1, 1, 1, 0.5)
