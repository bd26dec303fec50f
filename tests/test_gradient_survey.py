"""Tables of the chapter on gradients: keys, z-scores and refusals."""

import math

import numpy as np
import pytest
import torch

from bnlib import gradient_survey, seeds


def test_survey_refuses_batches_without_variance():
    with pytest.raises(ValueError, match="batch sizes of at least 6, got 4 for relu"):
        gradient_survey.activation_rows([("relu", 4)], [8, 16], 4, 4, 10, lambda *key: torch.Generator())


def test_rows_agree_with_theory_and_a_wrong_theory_is_seen(seed):
    rows = gradient_survey.activation_rows(
        [("relu", 8)], [64, 128], 6, 24, 20000, lambda *key: seeds.generator(seed, *key)
    )
    row = rows[0]
    assert abs(row["monte_carlo_z"]) < 5
    assert abs(row["network_z"]) < 5
    wrong = row["theory"] * 5 / 7  # E[1/chi^2] replaced by 1/E[chi^2]
    assert abs(row["monte_carlo"] - wrong) / row["monte_carlo_error"] > 5
    assert abs(row["network"] - wrong) / row["network_error"] > 5
    assert abs(row["weights"] - 1) < 0.05


def test_batch_has_the_covariance_that_was_asked_for(generator):
    covariance = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])  # singular
    x = gradient_survey.batch_in_state(covariance, 2, None, generator)
    assert torch.allclose(x[0] @ x[0].T / 3, torch.tensor(covariance))
    wide = gradient_survey.batch_in_state(covariance, 1, 20000, generator)
    assert torch.allclose(wide[0] @ wide[0].T / 20000, torch.tensor(covariance), atol=0.1)


def test_weighted_line(seed):
    rng = np.random.default_rng(seed)
    x, errors = [0.0, 1.0, 3.0], [0.1, 0.2, 0.05]
    noise = np.array(errors) * rng.standard_normal((400, 3))
    lines = [gradient_survey.weighted_line(x, (1 + 2 * np.array(x) + one).tolist(), errors) for one in noise]
    scores = np.array([(line["slope"] - 2) / line["slope_error"] for line in lines])
    assert abs(scores.mean()) < 5 / 20
    assert abs(scores.var() - 1) < 5 * math.sqrt(2 / 400)
    assert abs(np.mean([line["chi_square"] for line in lines]) - 1) < 5 * math.sqrt(2 / 400)
    with pytest.raises(ValueError, match="x must hold at least two different numbers"):
        gradient_survey.weighted_line([1, 1], [0.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="errors must be positive"):
        gradient_survey.weighted_line([1, 2], [0.0, 1.0], [1.0, 0.0])


def test_median_of_the_largest_score(seed):
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.standard_t(9, (4000, 5)), rng.standard_normal((4000, 7))], axis=1)
    largest = np.abs(scores).max(axis=1)
    share = float((largest < gradient_survey.median_largest([9] * 5 + [math.inf] * 7)).mean())
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(4000)
    wrong = float((largest < gradient_survey.median_largest([math.inf] * 12)).mean())
    assert abs(wrong - 0.5) > 5 * 0.5 / math.sqrt(4000)
    with pytest.raises(ValueError, match="freedom must hold one number a score, got none"):
        gradient_survey.median_largest([])
