"""The simplified model for inputs of several dimensions: against its definition, its limit, and real networks."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bnlib import tree, tree_forest, tree_transfer


def _definition(x, depth):
    """Gram matrix of all neurons, grown from Definition 5 without any idea of trees."""
    n = len(x)
    neurons = [[Fraction(row[j]) for row in x] for j in range(len(x[0]))]
    for _ in range(depth):
        centered = [[value - sum(v) / n for value in v] for v in neurons]
        neurons = [[max(sign * z, Fraction(0)) for z in v] for v in centered for sign in (1, -1)]
    return tuple(tuple(sum(v[i] * v[j] for v in neurons) for j in range(n)) for i in range(n))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_forest_is_the_definition(depth, seed):
    x = np.random.default_rng(seed).integers(-3, 4, (4, 3))
    x[0, 0], x[1, 0] = 5, -5
    x = np.column_stack([x, np.full(4, 2)]).tolist()
    assert tree_forest.forest_gram(x, depth) == _definition(x, depth)


def test_limit_is_where_the_layers_go(seed):
    x = np.random.default_rng(seed).integers(-20, 21, (5, 2))
    x[0], x[1] = (30, 3), (-30, 1)
    deep = np.array([[float(entry) for entry in row] for row in tree_forest.forest_gram(x.tolist(), 200)])
    found = tree_forest.forest_limit(x)
    np.testing.assert_allclose(found.gram, deep / np.trace(deep), atol=2e-4)


def test_one_dimension_is_the_tree(seed):
    y = np.random.default_rng(seed).standard_normal(7)
    found = tree_forest.forest_limit(y[:, None])
    np.testing.assert_allclose(found.gram, tree.limit(y).gram, rtol=1e-8)
    # A batch on a line in space is the batch on the line.
    line = tree_forest.forest_limit(y[:, None] * np.array([1.0, 2.0, -4.0]))
    np.testing.assert_allclose(line.gram, found.gram, rtol=1e-8)


def test_formula_in_the_energies(seed):
    x = np.random.default_rng(seed).standard_normal((9, 3))
    found = tree_forest.forest_limit(x)
    a = found.energies
    assert found.rarest == 1
    assert a.sum() == pytest.approx(1)
    extremes = {*x.argmax(axis=0), *x.argmin(axis=0)}
    assert set(np.flatnonzero(a)) == extremes
    k = 1 - a[:, None] - a[None, :]
    np.fill_diagonal(k, (8**2 - 1) * a + 1)
    np.testing.assert_allclose(found.gram, k / np.trace(k), rtol=1e-12)


def test_energies_keep_their_unit(seed):
    x = np.random.default_rng(seed).standard_normal((6, 2))
    one = tree_forest.forest_limit(x)
    two = tree_forest.forest_limit(x * np.array([1.0, 3.0]))
    parts = [tree_forest.forest_limit(x[:, [j]]).energies for j in (0, 1)]
    # a = s p_0 + (1 - s) p_1 for the share s of the first coordinate; a factor of three makes it s / (s + 9 (1 - s)).
    direction = parts[0] - parts[1]
    share = [direction @ (found.energies - parts[1]) / (direction @ direction) for found in (one, two)]
    assert share[1] == pytest.approx(share[0] / (share[0] + 9 * (1 - share[0])), rel=1e-6)


def test_the_rarest_extremes_win():
    # The first coordinate has two ties at each end, the second one none.
    x = [[0, 0], [0, 1], [5, 5], [9, 2], [9, 9]]
    found = tree_forest.forest_limit(x)
    np.testing.assert_allclose(found.gram, tree.limit([0, 1, 5, 2, 9]).gram, rtol=1e-8)
    corners = tree_forest.forest_limit([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    assert corners.rarest == 2
    assert corners.energies.tolist() == [0, 0, 0, 0]
    assert (corners.gram[0] / corners.gram[0, 0]).tolist() == [1, 0.5, 0.5, 0]
    turned = tree_forest.forest_limit([[1, 0], [0, 1], [-1, 0], [0, -1]]).gram
    np.testing.assert_allclose(turned / turned[0, 0], (1 - 1 / 6) * np.eye(4) + 1 / 6, rtol=1e-12)


def test_many_dimensions_become_symmetric(seed):
    x = np.random.default_rng(seed).standard_normal((6, 1500))
    found = tree_forest.forest_limit(x, 1e-3).gram
    cosine = found[0, 1] / math.sqrt(found[0, 0] * found[1, 1])
    assert abs(cosine - 4 / 30) < 0.02
    # One dimension does not pass.
    alone = tree_forest.forest_limit(x[:, :1]).gram
    assert np.abs(np.diag(alone) / alone.trace() - 1 / 6).max() > 0.05
    np.testing.assert_allclose(np.diag(found), 1 / 6, atol=0.02)


def test_limits_of_many_batches(seed):
    x = np.random.default_rng(seed).standard_normal((3, 6, 2))
    paths = tree_forest.forest_limits(x)
    for b in range(3):
        found = tree_forest.forest_limit(x[b]).gram
        np.testing.assert_allclose(paths.norms[0, b, 0], np.sqrt(np.diag(found)), rtol=1e-12)


def test_networks_of_one_dimension_are_the_old_ones(seed):
    y = np.random.default_rng(seed).standard_normal((3, 6))
    one = tree_forest.network_ends(y[..., None], 16, 5, draws=2, generator=torch.Generator().manual_seed(seed))
    two = tree_transfer.network_paths(y, 16, [5], draws=2, generator=torch.Generator().manual_seed(seed))
    np.testing.assert_array_equal(one.norms, two.norms)
    np.testing.assert_array_equal(one.gap, two.gap)
    np.testing.assert_array_equal(one.norm_ratio, two.norm_ratio)


def test_networks_do_not_see_a_rotation(seed):
    x = np.random.default_rng(seed).standard_normal((6, 2))
    means = []
    for batch in (x, x @ np.array([[0.6, 0.8], [-0.8, 0.6]]), x * np.array([1.0, 5.0])):
        generator = torch.Generator().manual_seed(seed + len(means))
        found = tree_forest.network_ends(batch[None], 64, 2, draws=400, generator=generator).norms[0, 0] ** 2
        means.append((found.mean(axis=0), found.std(axis=0) / 20))
    (a, ea), (b, eb), (c, _) = means
    assert (np.abs(a - b) < 5 * np.hypot(ea, eb)).all()
    # Stretching one axis is not a rotation, and the same test says so.
    assert (np.abs(a - c) > 5 * np.hypot(ea, eb)).any()


def test_bad_arguments(unchecked):
    with pytest.raises(ValueError, match="x has 1 rows; give at least two samples"):
        tree_forest.forest_limit([[1, 2]])
    with pytest.raises(ValueError, match="x has 2 rows; give at least two samples with the same number"):
        tree_forest.forest_gram([[1, 2], [1]], 2)
    with pytest.raises(ValueError, match="x has only equal samples"):
        tree_forest.forest_limit([[1, 2], [1, 2]])
    with pytest.raises(ValueError, match="draws is 0 and depth is 3; both must be at least 1"):
        tree_forest.network_ends(np.ones((1, 3, 2)), 4, 3, draws=0, generator=torch.Generator())
    with pytest.raises(ValueError, match="n is 4 and d is 2; the batch needs"):
        tree_forest.cross_polytope(4, 2)
    with pytest.raises(ValueError, match="n is 5 and escaped is 5; valid are"):
        tree_forest.equal_ratio_square(5, 5)
