"""The façade: the view of a batch, the textbook layer, and the table whose names the results file keeps."""

import math

import numpy as np
import pytest

from bnlib import infinite_width as iw
from bnlib import kernels


def naive_view(sigma):
    norms = np.sqrt(np.diag(sigma))
    index = int(np.argmax(norms))
    rest = [i for i in range(len(sigma)) if i != index]
    mean_square = np.mean([sigma[i, j] for i in rest for j in rest])
    outlier = np.mean([math.acos(sigma[index, i] / norms[index] / norms[i]) for i in rest])
    cluster = np.mean([math.acos(sigma[i, j] / norms[i] / norms[j]) for i in rest for j in rest if i != j])
    mean_angle = math.acos(np.mean(sigma[index, rest]) / norms[index] / math.sqrt(mean_square))
    return (
        index,
        norms[index] / np.median(norms[rest]),
        norms[index] / math.sqrt(mean_square),
        outlier,
        mean_angle,
        cluster,
    )


def test_view_agrees_with_a_naive_one(seed):
    x = np.random.default_rng(seed).standard_normal((7, 9))
    sigma = x @ x.T
    seen = iw.view(iw.batch_from_gram(sigma))
    after = kernels.recentered_relu_kernel(sigma)
    index, *numbers = naive_view(after)
    assert seen.index == index
    found = seen.norm_ratio, seen.norm_ratio_mean, seen.outlier_angle, seen.outlier_mean_angle, seen.cluster_angle
    assert found == pytest.approx(numbers, rel=1e-9)
    assert seen.log_scale == pytest.approx(math.log(np.trace(after) / 7), rel=1e-12)


def test_textbook_layer_and_its_variance():
    sigma = np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(iw.next_covariance(sigma, 1), iw.next_covariance(sigma) / 2)
    np.testing.assert_allclose(
        iw.next_covariance(np.ones((3, 3))), np.zeros((3, 3)), atol=1e-15
    )  # equal samples vanish


def test_all_parts_can_be_had_here():
    for name in iw.__all__:
        assert callable(getattr(iw, name))


def test_table_has_the_promised_names():
    table = iw.states_table([3, 6, 7, 8, 16])
    assert set(table) == {"outlier_state", "symmetric_state", "separatrix_norm_ratio"}
    names = {"exists", "norm_ratio", "norm_ratio_mean", "outlier_angle_deg", "cluster_angle_deg", "spectral_radius"}
    for n, entry in table["outlier_state"].items():
        assert names <= set(entry)
        assert entry["exists"] == (n >= 7)
        assert all((entry[name] is None) == (n < 7) for name in names - {"exists"})
        assert (table["separatrix_norm_ratio"][n] is None) == (n < 7)
    entry = table["outlier_state"][16]
    assert entry["norm_ratio"] == pytest.approx(13.896, abs=1e-3)
    assert entry["outlier_angle_deg"] == pytest.approx(89.655, abs=1e-3)
    assert entry["spectral_radius"] == pytest.approx(0.943, abs=5e-4)
    assert table["symmetric_state"][8]["cosine"] == pytest.approx(kernels.relu_cosine(-1 / 7), rel=1e-12)
    assert table["symmetric_state"][8]["leading_multiplier"] == pytest.approx(0.956, abs=5e-4)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: iw.states_table([]), "batch_sizes must hold at least one batch size, got none"),
        (lambda: iw.states_table([2]), "n must be a batch size of at least 3, got 2"),
        (lambda: iw.states_table([7.5]), "n must be a whole number where samples are counted, got 7.5"),
        (lambda: iw.next_covariance(np.eye(3) - 1), "sigma must be positive semi-definite, got the eigenvalue -2"),
        (lambda: iw.next_covariance(np.eye(3), 0.0), "weight_variance must be positive and finite"),
        (
            lambda: iw.view(iw.batch_from_points(np.array([[1.0], [-1.0], [0], [0], [0]]))),
            "hold more than one sample that",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
