"""The infinite depth: against deep trees, against closed forms, and the error bound against the error."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from bnlib import tree


def _batches(seed):
    draw = random.Random(seed)
    half = draw.sample(range(1, 60), 3)
    return {
        "distinct integers": draw.sample(range(1000), 8),
        "small integers": draw.sample(range(10), 6),
        "floats": [draw.gauss(0, 1) for _ in range(9)],
        "skewed": [draw.expovariate(1) ** 3 for _ in range(6)],
        "symmetric": [*half, *(-y for y in half)],
        "tied twice": [0, 0, 50, 50, *draw.sample(range(1, 50), 4)],
        "tied above": [0, 50, 50, *draw.sample(range(1, 50), 4)],
        "tied below": [0, 0, 0, 50, 50, *draw.sample(range(1, 50), 4)],
        "tied inside": [0, 7, 7, 7, 9, 30],
        "three samples": [0, draw.randrange(1, 99), 99],
        "two values": [1, 0, 0],
        "two samples": [5, 4],
    }


def test_limit_equals_a_deep_tree(seed):
    for name, batch in _batches(seed).items():
        found = tree.limit(batch)
        deep = tree.geometry(tree.grow(batch, 400))
        np.testing.assert_allclose(deep.norms, found.geometry.norms, rtol=1e-11, err_msg=name)
        np.testing.assert_allclose(deep.angles, found.geometry.angles, rtol=1e-11, atol=1e-11, err_msg=name)
        if found.geometry.gap is None:
            assert deep.gap is None
        else:
            assert deep.gap == pytest.approx(found.geometry.gap, rel=1e-10, abs=1e-12), name
        gram = tree.gram(tree.grow(batch, 400))
        trace = sum(gram[i][i] for i in range(len(batch)))
        expected = np.array([[float(x / trace) for x in row] for row in gram])
        np.testing.assert_allclose(found.gram, expected, rtol=1e-11, atol=1e-12, err_msg=name)


def test_error_bound_holds_and_is_not_idle(seed):
    draw = random.Random(seed)
    worst = 0.0
    for _ in range(15):
        batch = [draw.gauss(0, 1) for _ in range(draw.randrange(3, 24))]
        rough, fine = tree.limit(batch, 0.3), tree.limit(batch, Fraction(1, 10**30))
        assert rough.truncation_error <= Fraction(3, 10)
        assert fine.truncation_error <= Fraction(1, 10**30)
        upper = np.abs(rough.gram - fine.gram) / np.where(fine.gram, fine.gram, 1)
        assert upper.max() <= rough.relative_error
        ours, true = rough.geometry, fine.geometry
        differences = (
            abs(ours.norms - true.norms) / true.norms,
            np.abs(ours.angles - true.angles) / np.where(true.angles, true.angles, 1),
            np.array([abs(ours.gap - true.gap) / true.gap]),
        )
        assert max(d.max() for d in differences) <= rough.relative_error
        worst = max(worst, upper.max())
    # A bound a hundred thousand times too small would have been caught: the errors are real.
    assert worst > 1e-7


def test_default_is_good_to_twelve_digits(seed):
    for batch in _batches(seed).values():
        found = tree.limit(batch)
        assert found.relative_error < 1e-14
        assert found.gram.trace() == pytest.approx(1, rel=1e-14)
        assert np.square(found.geometry.norms).sum() == pytest.approx(1, rel=1e-14)


def test_a_hit_makes_the_limit_exact():
    # 0, 1, 2: the first cut meets 1, so each gap holds one interval of length 1 and both energies are equal.
    found = tree.limit([0, 1, 2])
    assert found.truncation_error == 0
    assert (found.energy_max, found.energy_min) == (0.5, 0.5)
    # n = 3, k = 1: squared norms (4 + 1, 1 + 1, 4 + 1) / 12.
    np.testing.assert_allclose(np.square(found.geometry.norms), np.array([5, 2, 5]) / 12, rtol=1e-15)
    np.testing.assert_allclose(found.gram * 12, [[5, 1, 0], [1, 2, 1], [0, 1, 5]], rtol=1e-15)
    assert found.geometry.gap == pytest.approx(math.asin(1 / math.sqrt(10)), rel=1e-15)


def test_symmetric_batches_have_two_equal_outliers(seed):
    draw = random.Random(seed)
    half = [draw.gauss(0, 1) for _ in range(draw.randrange(2, 9))]
    found = tree.limit([*half, *(-y for y in half)])
    n = 2 * len(half)
    assert (found.energy_max, found.energy_min) == (0.5, 0.5)
    assert found.geometry.norm_max == found.geometry.norm_min
    ratio, gap = tree.outlier_bounds(n)
    assert found.geometry.norm_interior / found.geometry.norm_max == pytest.approx(ratio, rel=1e-14)
    assert found.geometry.gap == pytest.approx(gap, rel=1e-14)


def test_one_tied_end_joins_the_cluster(seed):
    draw = random.Random(seed)
    k, n = 3, draw.randrange(8, 20)
    inside = [draw.uniform(0, 1) for _ in range(n - k - 1)]
    found = tree.limit([2, *inside, -1, -1, -1]).geometry
    assert found.norm_min == found.norm_interior
    assert found.norm_interior / found.norm_max == pytest.approx(1 / (n - 1), rel=1e-14)
    assert found.gap == 0
    mirrored = tree.limit([-2, *(-y for y in inside), 1, 1, 1]).geometry
    assert mirrored.norm_max == mirrored.norm_interior
    assert mirrored.norm_min == found.norm_max
    assert mirrored.gap == 0


def test_two_values(seed):
    draw = random.Random(seed)
    k, n = draw.randrange(1, 4), draw.randrange(5, 9)
    found = tree.limit([1] * k + [0] * (n - k))
    deep = tree.geometry(tree.grow([1] * k + [0] * (n - k), 1))
    np.testing.assert_allclose(found.geometry.norms, deep.norms, rtol=1e-15)
    assert found.truncation_error == 0
    assert found.layers == 0
    assert found.geometry.norm_interior is None
    assert found.geometry.norm_max / found.geometry.norm_min == pytest.approx((n - k) / k, rel=1e-14)


def test_theorem_11_relative_to_the_larger_extreme(seed):
    draw = random.Random(seed)
    for _ in range(10):
        n = draw.randrange(4, 40)
        found = tree.limit([draw.gauss(0, 1) for _ in range(n)]).geometry
        larger = max(found.norm_max, found.norm_min)
        ratio, gap = tree.outlier_bounds(n)
        assert found.angle_extremes == math.pi / 2
        assert found.norm_interior / larger <= ratio * (1 + 1e-12) < 3 / (n - 2)
        assert found.gap <= gap * (1 + 1e-12) < math.sqrt(2 * math.pi) / (n - 2)


def test_theorem_11_fails_relative_to_the_smaller_extreme():
    # The minimum is hardly an extreme: the point next to it is a thousand times closer than the maximum.
    batch = [0, 1, *range(1000, 1006), 10**5]
    found = tree.limit(batch).geometry
    n = len(batch)
    assert found.norm_max > found.norm_min
    assert found.norm_interior / found.norm_min > 3 / (n - 2)
    assert math.pi / 2 - found.angles[0, 1] > math.sqrt(2 * math.pi) / (n - 2)


@pytest.mark.parametrize(("ties", "holds"), [(1, True), (2, True), (3, False), (4, False)])
def test_theorem_11_fails_with_three_ties_at_both_ends(ties, holds, seed):
    draw = random.Random(seed)
    n = draw.randrange(2 * ties + 2, 30)
    inside = [draw.uniform(-1, 1) for _ in range(n - 2 * ties)]
    found = tree.limit([-2] * ties + [3] * ties + inside).geometry
    ratio = found.norm_interior / max(found.norm_max, found.norm_min)
    assert (ratio <= 3 / (n - 2)) == holds
    assert ratio <= tree.outlier_bounds(n, ties)[0] * (1 + 1e-12)
    assert found.gap <= tree.outlier_bounds(n, ties)[1] * (1 + 1e-12)


def test_outlier_bounds_are_the_symmetric_case():
    assert tree.outlier_bounds(3)[0] == pytest.approx(math.sqrt(2 / 5), rel=1e-15)
    assert tree.outlier_bounds(16, 3)[0] == pytest.approx(3 * math.sqrt(2) / math.sqrt(169 + 9), rel=1e-15)


def test_values_of_very_different_size():
    found = tree.limit([0, 1, 10**300, 10**400])
    assert found.relative_error < 1e-14
    assert found.energy_max > 0.99
    # The minimum's energy is far below the smallest float, and still it is not lost.
    assert 0 <= found.energy_min < 1e-300
    assert found.geometry.norm_min == pytest.approx(found.geometry.norm_interior, rel=1e-12)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, math.nan, math.inf])
def test_bad_tolerance(tolerance):
    with pytest.raises(ValueError, match="it must be positive and finite"):
        tree.limit([1, 2, 3], tolerance)


def test_bad_arguments():
    with pytest.raises(ValueError, match="batch has 2 equal entries"):
        tree.limit([1, 1])
    with pytest.raises(ValueError, match="ties is 0"):
        tree.outlier_bounds(8, 0)
    with pytest.raises(ValueError, match="n is 4; with ties = 2 an interior sample needs n of at least 5"):
        tree.outlier_bounds(4, 2)
