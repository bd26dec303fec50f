"""The map on whole batches: against the textbook form, against 60 digits, and on batches that lose digits elsewhere."""

import math

import mpmath
import numpy as np
import pytest

from bnlib import kernels
from bnlib.outlier_class import next_state
from bnlib.outlier_fixed_points import outlier_state, symmetric_state
from bnlib.state_stability import class_distances
from bnlib.wide_batches import (
    _bent,
    activations,
    angles,
    batch_from_distances,
    batch_from_gram,
    batch_from_points,
    batches,
    covariance,
    distances,
    next_batch,
    next_distances,
)


def true_distances(batch):
    return distances(batch) * math.exp(batch.log_scale)


def precise_path(x, depth):
    """Squared distances after each layer, from Gram matrices in cosines with 60 digits."""
    n = len(x)
    k = mpmath.matrix([[mpmath.fdot(map(float, a), map(float, b)) for b in x] for a in x])
    for _ in range(depth):
        rows = [mpmath.fsum(k[i, j] for j in range(n)) / n for i in range(n)]
        mean = mpmath.fsum(rows) / n
        c = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                c[i, j] = k[i, j] - rows[i] - rows[j] + mean
        for i in range(n):
            for j in range(n):
                scale = mpmath.sqrt(c[i, i] * c[j, j])
                t = c[i, j] / scale
                root = mpmath.sqrt(1 - t * t)
                k[i, j] = c[i, i] if i == j else scale * (root + (mpmath.pi - mpmath.acos(t)) * t) / mpmath.pi
        yield [[k[i, i] + k[j, j] - 2 * k[i, j] for j in range(n)] for i in range(n)]


@pytest.mark.parametrize(("spread", "others_out"), [(1e-12, 0), (1e-9, 0), (1e-9, 2), (1e-4, 1), (1.0, 0)])
def test_no_digits_are_lost_against_sixty(spread, others_out, seed):
    """A cluster of spread 1e-12 to 1, one sample far from it, up to two in between; squared distances to 1e-13."""
    random = np.random.default_rng(seed)
    n = 7
    x = spread * random.standard_normal((n, n)) / n
    x[:, 1] += 1 / (n - 1)
    x[0] = np.eye(n)[0]
    x[1 : 1 + others_out] += 0.3 * random.standard_normal((others_out, n))
    batch = batch_from_points(x)
    with mpmath.workdps(60):
        for exact in precise_path(x, 12):
            batch = next_batch(batch)
            found = true_distances(batch)
            for i in range(n):
                for j in range(i):
                    assert abs(found[i, j] / exact[i][j] - 1) < 1e-13


@pytest.mark.parametrize("n", [3, 8, 130])
def test_agrees_with_the_textbook_form(n, seed):
    """n = 130 spans several blocks of rows."""
    x = np.random.default_rng(seed).standard_normal((n, n + 3))
    sigma = x @ x.T
    batch = batch_from_gram(sigma)
    for _ in range(5):
        np.testing.assert_allclose(
            covariance(batch) * math.exp(batch.log_scale), kernels.recentered_relu_kernel(sigma), rtol=1e-10
        )
        sigma = kernels.recentered_relu_kernel(sigma)
        batch = next_batch(batch)
    assert batch.depth == 5


@pytest.mark.parametrize("u", [1e-14, 1e-3, 0.4, 2.0])
def test_is_the_reduced_map_on_its_class(u):
    n = 9
    after = next_distances(class_distances(0.0, u, n))
    m = n - 1
    apart = after[0, 1:].mean() - after[1:, 1:].sum() / (2 * m * m)
    assert after[1, 2] / 2 / apart == pytest.approx(next_state(u, n), rel=1e-12)


def test_thousands_of_layers_end_in_the_known_states():
    """Small batches return, larger ones escape, scales underflow in plain float64 and here do not."""
    strong = batch_from_gram(np.diag([25.0, 1, 1, 1, 1, 1, 1, 1, 1, 1]))
    *_, batch = batches(strong, 600)
    lengths, _ = activations(batch)
    assert lengths[0] / lengths[1] == pytest.approx(outlier_state(10).norm_ratio, rel=1e-10)
    assert angles(batch)[1, 2] == pytest.approx(outlier_state(10).cluster_angle, rel=1e-10)
    small = batch_from_gram(np.diag([25.0, 1, 1, 1, 1]))
    logs = [batch.log_scale for batch in batches(small, 2500)]
    assert logs[-1] < -745  # below the smallest positive float64
    assert logs[-1] - logs[-2] == pytest.approx(math.log(symmetric_state(5).scale_growth), rel=1e-9)


def test_the_reference_follows_when_its_sample_escapes():
    """The sample that is the reference at first becomes the outlier; the cluster's angle keeps its digits."""
    n = 12
    squared = class_distances(0.0, 0.2, n)
    order = np.roll(np.arange(n), 1)
    batch = batch_from_distances(squared)
    moved = batch_from_distances(squared[np.ix_(order, order)])
    forced = type(batch)(covariance_to_first(batch), 0, batch.log_scale, 0)  # refer to the odd sample itself
    for _ in range(500):
        batch, moved, forced = next_batch(batch), next_batch(moved), next_batch(forced)
    expected = outlier_state(n).cluster_angle
    assert forced.reference != 0
    assert angles(forced)[1, 2] == pytest.approx(expected, rel=1e-9)
    assert angles(batch)[1, 2] == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(distances(moved), distances(batch)[np.ix_(order, order)], rtol=1e-8)


def covariance_to_first(batch):
    d = distances(batch)
    return (d[:, :1] + d[:1, :] - d) / 2


def test_ties_stay_ties(seed):
    x = np.random.default_rng(seed).standard_normal((6, 6))
    x[3] = x[2]
    batch = batch_from_points(x)
    for batch in batches(batch, 30):  # noqa: B020
        assert distances(batch)[2, 3] == 0
    lengths, _ = activations(batch)
    assert lengths[2] == lengths[3]


def test_a_sample_at_the_mean_stays_zero():
    x = np.array([[1.0, 0], [-1.0, 0], [0, 1.0], [0, -1.0], [0, 0]])
    batch = batch_from_points(x)
    after = covariance(batch) * math.exp(batch.log_scale)
    np.testing.assert_allclose(after, kernels.recentered_relu_kernel(x @ x.T), atol=1e-14)
    assert np.isfinite(distances(next_batch(batch))).all()


def test_the_smooth_part_is_exact():
    t = np.r_[1e-300, 1e-16, np.linspace(1e-6, 0.5, 200)]
    with mpmath.workdps(60):
        for value, found in zip(t, _bent(t), strict=True):
            theta = 2 * mpmath.asin(mpmath.sqrt(mpmath.mpf(float(value))))
            exact = (mpmath.sin(theta) - theta * mpmath.cos(theta)) / mpmath.pi
            assert abs(found - float(exact)) <= 6e-16 * float(exact) + 5e-324


BAD = np.eye(4)
ASYMMETRIC = BAD + np.eye(4, k=1)
INDEFINITE = BAD - 0.5
NAN = np.full((4, 4), math.nan)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: batch_from_gram(np.eye(2)),
            r"sigma must be a square matrix over at least 3 samples, got shape \(2, 2\)",
        ),
        (lambda: batch_from_gram(np.ones((3, 4))), r"sigma must be a square matrix over at least 3 samples, got shape"),
        (lambda: batch_from_gram(NAN), "sigma must be finite, got NaN or infinity"),
        (
            lambda: batch_from_gram(ASYMMETRIC),
            "sigma must be symmetric, got a matrix that differs from its transpose by 1",
        ),
        (lambda: batch_from_gram(INDEFINITE), "sigma must be positive semi-definite, got the eigenvalue -1"),
        (lambda: batch_from_gram(np.ones((4, 4))), "The batch must hold different samples, got equal ones only"),
        (lambda: batch_from_points(np.ones((4, 4))), "The batch must hold different samples, got equal ones only"),
        (lambda: batch_from_points(np.ones((2, 4))), "x must be a matrix of at least 3 rows"),
        (lambda: batch_from_points(NAN), "x must be finite"),
        (lambda: batch_from_distances(BAD), "squared must have a zero diagonal"),
        (lambda: batch_from_distances(np.zeros((3, 3))), "The batch must hold different samples"),
        (lambda: batch_from_distances(NAN), "squared must be finite"),
        (
            lambda: batch_from_distances(np.array([[0.0, 9, 1], [9, 0, 1], [1, 1, 0]])),
            "squared must be distances between points, got products with the eigenvalue",
        ),
        (lambda: list(batches(batch_from_gram(np.eye(3)), 1.5)), "depth must be a whole number of layers"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
