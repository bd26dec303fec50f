"""The exact tree against the tree that nobody has to grow: all 2 ** depth neurons, unmerged."""

import math
import random
import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from bnlib import tree


def _unmerged(batch, depth):
    """All neurons at a depth, by the definition; rows of fractions, zero neurons included."""
    neurons = [[Fraction(y) for y in batch]]
    for _ in range(depth):
        children = []
        for v in neurons:
            mean = sum(v) / len(v)
            children.append([max(x - mean, Fraction(0)) for x in v])
            children.append([max(mean - x, Fraction(0)) for x in v])
        neurons = children
    return neurons


def _merge(neurons):
    """Sum of squared largest values, by direction (divided by the largest value)."""
    merged = Counter()
    for v in neurons:
        if max(v):
            merged[tuple(x / max(v) for x in v)] += max(v) ** 2
    return merged


def _integers(draw, n, high):
    """Distinct random integers; sorted order and position are random too."""
    return draw.sample(range(-high, high), n)


def _batches(seed):
    """Random, tied, symmetric and chosen batches; several of them have cuts that hit a batch value."""
    draw = random.Random(seed)
    half = _integers(draw, 3, 40)
    return {
        "distinct integers": _integers(draw, 7, 1000),
        "small integers": _integers(draw, 6, 8),
        "rationals": [Fraction(draw.randrange(1, 99), draw.randrange(1, 9)) for _ in range(4)] + [-1],
        "floats": [draw.gauss(0, 1) for _ in range(5)],
        "tied": [0, 0, 9, 9, *(draw.randrange(10) for _ in range(4))],
        "tied at one end": [draw.randrange(20) for _ in range(4)] + [30, 30, 30],
        "symmetric": [*half, *(-y for y in half)],
        "cut hits at once": [0, 1, 2, 3, 4],
        "cut hits later": [0, 1, 5],
        "two values": [3, 1, 1, 3, 1],
        "two samples": [4, "7/2"],
        "three samples": [0, draw.randrange(1, 9), 9],
    }


def test_gram_equals_unmerged_tree(seed):
    for name, batch in _batches(seed).items():
        exact = tree.parse_batch(batch)
        for depth, state in enumerate(tree.layers(batch, 7), 1):
            neurons = _unmerged(exact, depth)
            expected = tuple(
                tuple(sum(v[i] * v[j] for v in neurons) for j in range(len(exact))) for i in range(len(exact))
            )
            assert tree.gram(state) == expected, (name, depth)


def test_directions_equal_unmerged_tree(seed):
    for name, batch in _batches(seed).items():
        exact = tree.parse_batch(batch)
        for depth, state in enumerate(tree.layers(batch, 7), 1):
            expected = _merge(_unmerged(exact, depth))
            found = tree.directions(state)
            assert all(min(d.vector) == 0 and math.gcd(*d.vector) == 1 for d in found)
            as_fractions = {tuple(Fraction(x, max(d.vector)) for x in d.vector): d.energy for d in found}
            assert as_fractions == expected, (name, depth)
            assert state.distinct_directions == len(found) == len(expected)
            assert state.max_distinct_values == max(len(set(v)) for v in expected)


def test_geometry_equals_floats_of_the_unmerged_tree(seed):
    for name, batch in _batches(seed).items():
        exact = tree.parse_batch(batch)
        neurons = np.array(_unmerged(exact, 6), dtype=float)
        norms = np.linalg.norm(neurons, axis=0)
        found = tree.geometry(tree.grow(batch, 6))
        np.testing.assert_allclose(found.norms, norms / np.linalg.norm(norms), rtol=1e-12, err_msg=name)
        assert (tree.norms(tree.grow(batch, 6)) == found.norms).all()
        directions = neurons / norms
        for i in range(len(exact)):
            for j in range(len(exact)):
                u, v = directions[:, i], directions[:, j]
                angle = 2 * math.atan2(np.linalg.norm(u - v), np.linalg.norm(u + v))
                assert found.angles[i, j] == pytest.approx(angle, rel=1e-9, abs=1e-12), (name, i, j)


def test_neurons_are_the_batch_clipped_to_the_intervals_of_a_partition(seed):
    for name, batch in _batches(seed).items():
        exact = tree.parse_batch(batch)
        for depth in range(7):
            pieces = tree.partition(batch, depth)
            assert pieces[0][0] == min(exact)
            assert pieces[-1][1] == max(exact)
            assert all(a[1] == b[0] for a, b in pairwise(pieces))
            clipped = [[min(max(y, low), high) for y in exact] for low, high, _ in pieces]
            neurons = [
                tuple(c - low if up else high - c for c in row)
                for row, (low, high, up) in zip(clipped, pieces, strict=True)
            ]
            if depth == 0:
                neurons = [tuple(x + min(exact) for x in v) for v in neurons]
            assert Counter(neurons) == Counter(map(tuple, _unmerged(exact, depth))), (name, depth)


@pytest.mark.parametrize("depth", [-1, 21])
def test_bad_partition(depth):
    with pytest.raises(ValueError, match=f"depth is {depth}; an unmerged tree can be listed for depths 0 to 20"):
        tree.partition([1, 2], depth)


def test_two_valued_neurons_follow_their_transfer_matrix(seed):
    draw = random.Random(seed)
    n = draw.randrange(2, 12)
    for k in range(1, n):
        mark = [0] * (n - k) + [1] * k
        before = tree.directions(tree.grow(mark, 1))
        after = tree.directions(tree.grow(mark, 2))
        vector = [d.energy for d in before]
        rows = tree.transfer_matrix(k, n)
        assert [d.vector for d in before] == [d.vector for d in after] == [tuple(mark), tuple(1 - x for x in mark)]
        assert [d.energy for d in after] == [sum(m * e for m, e in zip(row, vector, strict=True)) for row in rows]


def test_at_most_3n_minus_4_directions_and_values_are_conserved(seed):
    draw = random.Random(seed)
    batches = [*_batches(seed).values(), [draw.getrandbits(60) for _ in range(12)]]
    for batch in batches:
        n = len(batch)
        interior = len(set(tree.parse_batch(batch))) - 2
        before = interior
        for state in tree.layers(batch, 60):
            assert state.distinct_directions <= 3 * n - 4 or n == 2
            owned = sum(piece.last - piece.first + 1 for piece in state.intervals)
            # A value leaves when a cut hits it, and never comes back.
            assert owned <= before
            before = owned
    # Sixty random bits: no cut hits a value within 60 layers, and the bound is attained.
    assert owned == interior
    assert state.distinct_directions == 3 * n - 4


def test_two_samples_have_two_directions():
    for state in tree.layers([1, 2], 5):
        assert state.distinct_directions == 2 == 3 * 2 - 4
        assert state.max_distinct_values == 2


def test_a_cut_through_a_batch_value_ends_its_interval():
    first, second = tree.layers([0, 1, 5], 2)
    assert [(d.vector, d.energy) for d in tree.directions(first)] == [((0, 0, 1), 9), ((2, 1, 0), 4)]
    assert second.intervals == ()
    assert second.max_distinct_values == 2


def test_extremes_are_orthogonal_from_the_first_layer_on(seed):
    for batch in _batches(seed).values():
        exact = tree.parse_batch(batch)
        top, bottom = exact.index(max(exact)), exact.index(min(exact))
        for state in tree.layers(batch, 8):
            assert tree.gram(state)[top][bottom] == 0
            assert tree.geometry(state).angle_extremes == math.pi / 2


def test_theorem_10_with_its_depth(seed):
    draw = random.Random(seed)
    batches = [*_batches(seed).values(), [draw.gauss(0, 1) for _ in range(20)], [2**i for i in range(12)]]
    too_many_before = 0
    for batch in batches:
        deadline = tree.isolation_depth(batch)
        for state in tree.layers(batch, deadline + 5):
            too_many_before += state.max_distinct_values > 3
            assert state.max_distinct_values <= 3 or state.depth < deadline
    # Without this the statement could hold because it never had anything to say.
    assert too_many_before > 20


def test_isolation_depth_grows_with_the_logarithm_of_the_closest_pair():
    depths = [tree.isolation_depth([0, 1, 1 + Fraction(1, 10**e), 2]) for e in (3, 6, 9)]
    assert depths[1] - depths[0] == pytest.approx(math.log(10**3) / math.log(4 / 3), abs=1)
    assert depths[2] - depths[1] == pytest.approx(math.log(10**3) / math.log(4 / 3), abs=1)
    assert tree.isolation_depth([0, 1, 1, 2]) == 0


def test_energy_shares_are_those_of_the_directions(seed):
    for batch in _batches(seed).values():
        for state in tree.layers(batch, 5):
            found = tree.directions(state)
            total = sum(d.energy for d in found)
            rest = sum(d.energy for d in found if len(set(d.vector)) > 2)
            shares, left = tree.energy_shares(state)
            assert left == pytest.approx(float(rest / total), rel=1e-14)
            assert sum(shares) + left == pytest.approx(1, rel=1e-12)
            for gap, share in enumerate(shares):
                above = tuple(int(g > gap) for g in state.groups)
                below = tuple(1 - x for x in above)
                energy = sum(d.energy for d in found if d.vector in (above, below))
                assert share == pytest.approx(float(energy / total), rel=1e-14)


def test_place_unit_and_order_of_the_batch_do_not_matter(seed):
    draw = random.Random(seed)
    batch = _integers(draw, 8, 300)
    found = tree.geometry(tree.grow(batch, 20))
    moved = tree.geometry(tree.grow([Fraction(10**400, 3) * (y - 17) for y in batch], 20))
    assert (found.norms == moved.norms).all()
    assert (found.angles == moved.angles).all()
    order = draw.sample(range(8), 8)
    permuted = tree.geometry(tree.grow([batch[i] for i in order], 20))
    assert (permuted.norms == found.norms[order]).all()
    assert (permuted.angles == found.angles[np.ix_(order, order)]).all()
    mirrored = tree.geometry(tree.grow([-y for y in batch], 20))
    assert (mirrored.norms == found.norms).all()
    assert (mirrored.norm_max, mirrored.norm_min) == (found.norm_min, found.norm_max)


def test_values_of_very_different_size_survive():
    batch = [0, 1, 10**400, 3 * 10**400 + 7, 10**400 + 1]
    found = tree.geometry(tree.grow(batch, 30))
    assert np.isfinite(found.norms).all()
    assert np.isfinite(found.angles).all()
    assert tree.grow(batch, 30).max_distinct_values > 3
    # (4 / 5) ** t meets 1 / (3 * 10 ** 400).
    assert tree.isolation_depth(batch) == math.ceil((400 * math.log(10) + math.log(3)) / math.log(5 / 4))


def test_without_an_interior_there_is_nothing_to_measure():
    for batch in ([1, 2], [0, 0, 1, 1, 1]):
        found = tree.geometry(tree.grow(batch, 4))
        assert found.norm_interior is None
        assert found.gap is None


def test_norms_of_the_first_layer():
    # The first layer folds the batch about its mean, 3: norms 3, 2, 1, 6 over the root of 50.
    found = tree.geometry(tree.grow([0, 1, 2, 9], 1))
    np.testing.assert_allclose(found.norms, np.array([3, 2, 1, 6]) / math.sqrt(50), rtol=1e-15)
    assert found.norm_interior == pytest.approx(2 / math.sqrt(50), rel=1e-15)
    assert found.gap == 0


def test_the_gap_is_taken_from_the_larger_extreme():
    # The maximum is the smaller extreme here, and its angle to the interior is far from a right one.
    state = tree.grow([10, 10.5, 11, 0.1], 30)
    found = tree.geometry(state)
    assert found.norm_min > found.norm_max
    assert found.gap == pytest.approx(max(math.pi / 2 - found.angles[3, :2]), rel=1e-9)
    other = max(math.pi / 2 - found.angles[2, :2])
    assert abs(other - found.gap) > 0.1


@pytest.mark.parametrize("depth", [0, -1, 1.0, "3", True, None])
def test_bad_depth(depth):
    sentence = f"depth is {depth!r}; it must be an integer of at least 1 (1 is one split)."
    with pytest.raises(ValueError, match=re.escape(sentence)):
        tree.grow([1, 2], depth)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        tree.layers([1, 2], depth)


def test_bad_batch_reaches_the_caller_at_once():
    for call in (lambda: tree.layers([], 1), lambda: tree.grow([], 1), lambda: tree.isolation_depth([])):
        with pytest.raises(ValueError, match="batch is empty"):
            call()


@pytest.mark.parametrize(("above", "n", "sentence"), [(1, 1, "n is 1"), (0, 4, "above is 0"), (4, 4, "above is 4")])
def test_bad_transfer_matrix(above, n, sentence):
    with pytest.raises(ValueError, match=sentence):
        tree.transfer_matrix(above, n)
