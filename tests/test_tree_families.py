"""Exact checks of the tree's lemmas: that they pass where they should, and that they notice what is wrong."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from bnlib import tree, tree_families
from bnlib.tree_families import BOUNDS

ZERO = (
    "definition",
    "directions_beyond",
    "directions_off",
    "inside_grows",
    "four_values",
    "isolated_late",
    "isolated_lost",
    "energy_falls",
    "not_nested",
    "disagree",
)


def test_families_are_every_shape_once():
    for n, largest in ((3, 6), (4, 5), (5, 3)):
        found = list(tree_families.integer_batches(n, largest))
        plain = {
            tuple(sorted(batch))
            for batch in product(range(largest + 1), repeat=n)
            if min(batch) == 0 and max(batch) == largest and len(set(batch)) > 2 and math.gcd(*batch) == 1
        }
        assert found == sorted(plain)
        distinct = list(tree_families.integer_batches(n, largest, distinct=True))
        assert distinct == [batch for batch in found if len(set(batch)) == n]
    with pytest.raises(ValueError, match="n is 2 and largest is 4; three different values need n >= 3"):
        list(tree_families.integer_batches(2, 4))


def test_definition_neurons_are_the_definition():
    neurons = tree_families.definition_neurons([0, 1, 5], 2)
    first = [(0, 0, 3), (2, 1, 0)]
    plain = []
    for v in first:
        mean = Fraction(sum(v), 3)
        plain += [tuple(max(x - mean, 0) for x in v), tuple(max(mean - x, 0) for x in v)]
    assert neurons == sorted(plain)
    with pytest.raises(ValueError, match="depth is 13; all 2"):
        tree_families.definition_neurons([0, 1], 13)


@pytest.mark.parametrize(("n", "largest"), [(3, 6), (4, 4), (5, 3), (7, 2)])
def test_no_lemma_is_contradicted(n, largest):
    for top in range(2, largest + 1):
        for batch in tree_families.integer_batches(n, top):
            found = tree_families.verify(batch)
            assert {name: found[name] for name in ZERO} == dict.fromkeys(ZERO, 0), batch
            assert not found["asymmetric"]
            if found["ratio_width"] is not None:
                assert found["ratio_width"] < 1e-12


def test_random_batches_contradict_nothing(seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        n = int(rng.integers(4, 9))
        found = tree_families.verify(rng.standard_normal(n).tolist())
        assert {name: found[name] for name in ZERO} == dict.fromkeys(ZERO, 0)
        assert found["asymmetric"] is None


def test_the_checks_notice_a_wrong_tree(monkeypatch):
    def spoiled(change):
        def grow(batch, depth):
            for state in tree.layers(batch, depth):
                yield change(state)

        monkeypatch.setattr(tree_families, "layers", grow)
        return tree_families.verify([0, 1, 4, 6, 9])

    from dataclasses import replace

    # One unit too much on an inner gap: the Gram matrices of the first layers are not those of the definition.
    found = spoiled(lambda s: replace(s, upper=(*s.upper[:-1], s.upper[-1] + 1)))
    assert found["definition"] > 0
    # Energies that fade at the upper end fall, relative to their growth.
    found = spoiled(lambda s: replace(s, upper=(*s.upper[:-1], s.upper[-1] // (s.depth + 1))))
    assert found["energy_falls"] > 0
    # Energies that outgrow the tail bound leave their enclosure.
    found = spoiled(lambda s: replace(s, upper=(*s.upper[:-1], s.upper[-1] * (s.depth + 1))))
    assert found["not_nested"] > 0
    # A layer without isolating neurons is missed.
    found = spoiled(lambda s: replace(s, upper=(*s.upper[:-1], 0 if s.depth == 50 else s.upper[-1])))
    assert found["isolated_late"] == 1
    assert found["isolated_lost"] == 1


def test_asymmetry_is_noticed(monkeypatch):
    assert tree_families.verify([0, 1, 3, 4])["asymmetric"] == 0
    assert tree_families.verify([0, 1, 2, 4])["asymmetric"] is None
    low, high = zip(*map(tree_families.extreme_squares, tree.layers([0, 1, 2, 4], 5)), strict=True)
    assert all(a != b for a, b in zip(low, high, strict=True))


def test_extreme_squares_are_the_gram_matrix(seed):
    batch = sorted([*np.random.default_rng(seed).integers(0, 40, 6).tolist(), -1, 41])
    for state in tree.layers(batch, 5):
        unit = (state.unit / state.scale) ** 2
        matrix = tree.gram(state)
        assert [square * unit for square in tree_families.extreme_squares(state)] == [matrix[0][0], matrix[-1][-1]]


def test_bounds_are_theorem_11():
    for n in (4, 7, 30):
        ratio, low, high = tree_families.bound_squares(n)
        assert ratio == Fraction(3, n - 2) ** 2
        sine = math.sin(math.sqrt(2 * math.pi) / (n - 2)) ** 2
        assert float(low) == pytest.approx(sine, rel=1e-12)
        assert low < Fraction(sine) < high
    assert tree_families.bound_squares(3)[1:] == (1, 1)


def test_limit_squares_are_those_of_the_limit(seed):
    rng = np.random.default_rng(seed)
    for k in (1, 2):
        n = int(rng.integers(2 * k + 1, 10))
        inside = rng.integers(1, 50, n - 2 * k).tolist()
        batch = [0] * k + inside + [51] * k
        found = tree.limit(batch)
        low, high = sorted((found.energy_min, found.energy_max))
        squares = tree_families.limit_squares(Fraction(low / high), n, k)
        shape = found.geometry
        small, large = sorted((shape.norm_max, shape.norm_min))
        assert float(squares["ratio_larger"]) == pytest.approx((shape.norm_interior / large) ** 2, rel=1e-9)
        assert float(squares["ratio_smaller"]) == pytest.approx((shape.norm_interior / small) ** 2, rel=1e-9)
        assert float(squares["gap_larger"]) == pytest.approx(math.sin(shape.gap) ** 2, rel=1e-9)
        other = 0 if shape.norm_max >= shape.norm_min else n - 1
        sine = math.cos(shape.angles[other, k]) ** 2
        assert float(squares["gap_smaller"]) == pytest.approx(sine, rel=1e-9)


def test_decisions_follow_the_limit(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        n = int(rng.integers(4, 12))
        batch = np.cumsum(rng.integers(1, 3 ** rng.integers(1, 6, n))).tolist()
        decided, found = tree_families.limit_decisions(batch), tree.limit(batch).geometry
        small = min(found.norm_max, found.norm_min)
        assert decided["ratio_larger"]
        assert decided["gap_larger"]
        assert decided["ratio_smaller"] == (found.norm_interior / small <= 3 / (n - 2))
        end = 0 if found.norm_max >= found.norm_min else n - 1
        assert decided["gap_smaller"] == (math.pi / 2 - found.angles[end, 1] <= math.sqrt(2 * math.pi) / (n - 2))


def test_decisions_with_ties():
    assert tree_families.limit_decisions([0, 0, 0, 1, 2, 2, 2])["ratio_larger"] is False
    assert tree_families.limit_decisions([0, 0, 1, 2, 2])["ratio_larger"] is True
    four = tree_families.limit_decisions([0] * 4 + [1] + [2] * 4)
    assert (four["ratio_larger"], four["gap_larger"]) == (False, False)
    # One extreme alone: the other one lies in the cluster.
    one = tree_families.limit_decisions([0, 0, 1, 2, 3, 4])
    assert one == {"ratio_larger": True, "gap_larger": True, "ratio_smaller": False, "gap_smaller": False}
    with pytest.raises(ValueError, match="batch has only two different values"):
        tree_families.limit_decisions([0, 1, 1])


def test_verify_reads_the_last_layer():
    batch = (0, 1, 1, 1, 1, 9)
    found = tree_families.verify(batch)
    shape = tree.geometry(tree.grow(batch, 120))
    assert found["ratio_smaller"] is False
    assert shape.norm_interior / min(shape.norm_max, shape.norm_min) > 3 / 4
    sharp = math.sqrt(found["sharp_ratio"]) * tree.outlier_bounds(6)[0]
    assert sharp == pytest.approx(shape.norm_interior / max(shape.norm_max, shape.norm_min), rel=1e-12)
    assert {name: found[name] for name in BOUNDS[:2]} == dict.fromkeys(BOUNDS[:2], True)
    with pytest.raises(ValueError, match="depth is 3; it must be at least 4"):
        tree_families.verify(batch, 3)


def test_hits_and_the_sum():
    # A multiple of a prime n may hit, anything else may not; for n = 4 the sum says nothing.
    assert tree_families.verify([0, 1, 2])["inside_left"] == 0
    assert tree_families.verify([0, 1, 3])["inside_left"] == 1
    four = tree_families.verify([0, 1, 2, 3])
    assert (four["sum_modulo_n"], four["inside_left"]) == (2, 0)


def test_lemma_depth_is_the_least():
    for distance, span, held, n in ((1, 8, 1, 4), (3, 1000, 2, 9), (5, 5, 1, 3)):
        depth = tree_families.lemma_depth(distance, span, held, n)
        shrink = Fraction(n - held, n)
        assert shrink**depth * span <= distance
        assert depth == 0 or shrink ** (depth - 1) * span > distance


def test_first_batch_is_the_first():
    wanted = lambda batch: sum(batch) == 11  # noqa: E731
    batch, tried = tree_families.first_batch(4, wanted, 9)
    plain = [b for top in range(2, 10) for b in tree_families.integer_batches(4, top)]
    assert batch == next(b for b in plain if wanted(b))
    assert tried == plain.index(batch) + 1
    assert tree_families.first_batch(3, lambda batch: False, 4) == (None, 5)
