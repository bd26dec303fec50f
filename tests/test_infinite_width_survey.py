"""The surveys: their summaries against the pieces, and the accuracy check against a map that does lose digits."""

import math

import numpy as np
import pytest

from bnlib import infinite_width_survey as survey
from bnlib import kernels
from bnlib.outlier_fixed_points import outlier_state
from bnlib.state_stability import class_stability


def test_every_batch_size_summarizes():
    found = survey.every_batch_size(20)
    assert (found["sizes"], found["with_outlier"], found["first_with_outlier"]) == (18, 14, 7)
    radii = [class_stability(0.0, outlier_state(n).u, n).spectral_radius for n in range(7, 21)]
    assert found["largest_radius_outlier"] == max(radii)
    assert found["largest_residual"] < 1e-12
    assert found["collapsed_stable"] == 0
    with pytest.raises(ValueError, match="largest must be a batch size of at least 7, got 6"):
        survey.every_batch_size(6)


def test_jacobians_agree():
    rows = survey.compared_jacobians([3, 8])
    assert [row["state"] for row in rows] == ["symmetric", "outlier", "separatrix", "symmetric"]
    assert max(row["error"] for row in rows) < 1e-8


def test_several_outliers_summarizes():
    cells, summary = survey.several_outliers(12)
    assert summary["cells"] == len(cells) == sum(n // 2 - 1 for n in range(4, 13))
    assert (summary["stable"], summary["upper_minus_k"], summary["lower_minus_k"]) == (0, [-1], [0])
    assert summary["pairs"]
    assert summary["races"]
    assert min(cell["n"] for cell in cells if cell["states"]) == 9
    with pytest.raises(ValueError, match="up_to must be a batch size of at least 9"):
        survey.several_outliers(8)


def test_accuracy_check_has_power(monkeypatch, seed):
    """The library's map passes; the textbook map in float64 cosines would not."""
    x = survey.narrow_cluster(np.random.default_rng(seed).standard_normal((6, 6)), 1e-6)
    assert survey.accuracy_against_high_precision(x, 3) < 1e-13

    def textbook(batch):
        gram = kernels.recentered_relu_kernel(batch.products)
        return type(batch)(gram, batch.reference, batch.log_scale, batch.depth + 1)

    monkeypatch.setattr(survey, "next_batch", textbook)
    assert survey.accuracy_against_high_precision(x, 3) > 1e-5


def test_narrow_cluster():
    x = survey.narrow_cluster(np.random.default_rng(0).standard_normal((5, 8)), 1e-3)
    assert np.linalg.norm(x[1:] - x[1], axis=1).max() < 3e-3 / 4
    assert np.linalg.norm(x[0]) == 1
    assert math.isclose(np.linalg.norm(x[1]), 1 / 4, rel_tol=3e-3)
    with pytest.raises(ValueError, match="noise must have at least 3 rows and 2 columns"):
        survey.narrow_cluster(np.zeros((2, 2)), 0.1)
