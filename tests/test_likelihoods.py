"""Censored log-normal times and Vuong's difference, against scipy and by hand."""

import math

import numpy as np
import pytest
from scipy.stats import lognorm

from bnlib.likelihoods import likelihood_difference, lognormal_log_density


def test_density_and_survival_are_scipys():
    times = np.array([3.0, 20.0, 150.0])
    median, scale = 30.0, 0.7
    law = lognorm(scale, scale=median)
    found = lognormal_log_density(np.log(times), np.array([True, True, False]), math.log(median), math.log(scale))
    expected = [law.logpdf(3.0) + math.log(3.0), law.logpdf(20.0) + math.log(20.0), law.logsf(150.0)]
    assert found == pytest.approx(expected, rel=1e-12)


def test_each_draw_may_have_a_law_of_its_own():
    logs, seen = np.log([5.0, 5.0]), np.array([True, False])
    both = lognormal_log_density(logs, seen, np.array([1.0, 2.0]), np.array([-1.0, 0.5]))
    alone = [
        lognormal_log_density(logs[i : i + 1], seen[i : i + 1], middle, scale)[0]
        for i, (middle, scale) in enumerate([(1.0, -1.0), (2.0, 0.5)])
    ]
    assert both.tolist() == alone


def test_a_censored_draw_far_beyond_the_median_keeps_its_digits():
    assert lognormal_log_density(np.array([50.0]), np.array([False]), 0.0, 0.0)[0] == pytest.approx(
        -1254.8313611394, abs=1e-9
    )


def test_difference_takes_its_variance_within_cells():
    first, second = [np.array([1.0, 3.0]), np.array([11.0, 13.0])], [np.zeros(2), np.zeros(2)]
    found = likelihood_difference(first, second)
    assert found == {"difference": 28.0, "standard_error": math.sqrt(8.0), "z": 28.0 / math.sqrt(8.0)}
    one_cell = likelihood_difference([np.concatenate(first)], [np.concatenate(second)])
    assert one_cell["standard_error"] > 3 * found["standard_error"]


def test_degenerate_cells():
    assert likelihood_difference([np.array([2.0])], [np.array([1.0])]) == {
        "difference": 1.0, "standard_error": 0.0, "z": 0.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="zip"):
        likelihood_difference([np.zeros(1)], [])
