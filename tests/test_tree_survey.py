"""The survey: its batches, and its verdicts against the unmerged definitions."""

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml

from bnlib import criteria, tree, tree_survey

CLAIMS = Path(__file__).parents[1] / "book" / "claims.yml"


def _criterion(claim):
    entries = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
    return next(entry["criterion"] for entry in entries if entry["id"] == claim)


@pytest.mark.parametrize("n", [4, 5, 8, 17])
def test_batches_are_of_their_kind(n, seed):
    rng = np.random.default_rng(seed)
    batches = {kind: tree_survey.make_batch(kind, n, rng=rng) for kind in tree_survey.KINDS}
    assert all(len(batch) == n for batch in batches.values())
    assert len(set(batches["gaussian"])) == n
    assert len(set(batches["integer"])) == n
    assert all(y.denominator == 1 and 0 <= y < 4 * n for y in batches["integer"])
    assert sorted(batches["symmetric"]) == sorted(-y for y in batches["symmetric"])
    chosen = batches["chosen"]
    assert chosen[:2] == (0, 1)
    assert {b / a for a, b in pairwise(chosen[1:])} == {chosen[2]}
    tied = [tree_survey.make_batch("tied", n, rng=rng) for _ in range(60)]
    ends = [(batch.count(min(batch)), batch.count(max(batch))) for batch in tied]
    limit = min(4, (n - 2) // 2)
    assert {k for pair in ends for k in pair} == set(range(1, limit + 1))
    assert any(low == high for low, high in ends)


def test_theorem_10_is_read_off_the_layers(seed):
    rng = np.random.default_rng(seed)
    for kind in tree_survey.KINDS:
        batch = tree_survey.make_batch(kind, 7, rng=rng)
        found = tree_survey.theorem_10(batch)
        last = max(found["depth_bound"], tree.isolation_depth(batch, extremes=True)) + 2
        states = list(tree.layers(batch, last))
        values = [state.max_distinct_values for state in states]
        assert found["values_start"] == len(set(batch))
        assert found["depth_reached"] == 1 + next(i for i, v in enumerate(values) if v <= 3)
        assert found["values_after"] == max(values[found["depth_bound"] - 1 :]) <= 3
        assert found["directions_excess"] == max(state.distinct_directions for state in states) - 17
        marks = [tuple(int(y == end) for y in batch) for end in (max(batch), min(batch))]
        isolating = [all(mark in {d.vector for d in tree.directions(state)} for mark in marks) for state in states]
        first = isolating.index(True)
        assert found["isolation_bound"] == max(1, tree.isolation_depth(batch, extremes=True))
        assert found["isolated_at"] == first + 1 <= found["isolation_bound"]
        assert found["isolation_lost"] == isolating[first:].count(False) == 0


def test_a_tree_that_never_gets_to_three_values_does_not_pass(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    good = tree_survey.summarize(tree_survey.survey([8], 2, rng=rng))
    assert criteria.decide(_criterion("theorem-10"), {"survey_cells": good}) == "confirmed"
    monkeypatch.setattr(tree.TreeState, "max_distinct_values", 7)
    found = tree_survey.theorem_10([0, 1, 2, 8])
    assert found["values_after"] == 7
    assert found["depth_reached"] == max(found["depth_bound"], found["isolation_bound"]) + 3
    bad = tree_survey.summarize(tree_survey.survey([8], 2, rng=rng))
    assert criteria.decide(_criterion("theorem-10"), {"survey_cells": bad}) == "refuted"


def test_three_values_do_not_isolate_an_extreme():
    # Two values close to either extreme: the tree has three values soon, an isolating neuron only much later.
    batch = [0, "1/1000", 10, 20, "20001/1000"]
    found = tree_survey.theorem_10(batch)
    assert [row["isolating"] for row in tree_survey.isolating_sequence(batch, 22)] == [0] * 20 + [2, 2]
    assert (found["depth_reached"], found["isolated_at"]) == (2, 21)
    assert found["depth_bound"] < found["isolated_at"] <= found["isolation_bound"]


@pytest.mark.parametrize("kind", tree_survey.KINDS)
def test_convergence_is_measured_at_finite_depth(kind, seed):
    rng = np.random.default_rng(seed)
    batch = tree_survey.make_batch(kind, 6, rng=rng)
    while len(set(batch)) < 3:
        batch = tree_survey.make_batch(kind, 6, rng=rng)
    found, shallow = tree_survey.convergence_check(batch, 240), tree_survey.convergence_check(batch, 1)
    shape = tree.geometry(tree.grow(batch, 240))
    inside = [i for i, y in enumerate(batch) if min(batch) < y < max(batch)]
    top = max(shape.norm_max, shape.norm_min)
    assert found["ratio"] == pytest.approx(max(shape.norms[i] for i in inside) / top * 4 / 3, rel=1e-12)
    assert found["gap"] == pytest.approx(shape.gap * 4 / math.sqrt(2 * math.pi), rel=1e-12)
    assert found["extremes_off_deg"] == shallow["extremes_off_deg"] == 0
    assert found["cluster_angle_deg"] == math.degrees(max(shape.angles[i, j] for i in inside for j in inside))
    assert max(found["missing_max"], found["missing_min"]) < 1e-6
    assert found["falls"] == 0
    assert found["overshoot"] < 1e-12
    half = tree.geometry(tree.grow(batch, 120))
    assert found["ratio_half"] == pytest.approx(max(half.norms[i] for i in inside) / top_of(half) * 4 / 3, rel=1e-12)
    assert found["gap_half"] == pytest.approx(half.gap * 4 / math.sqrt(2 * math.pi), rel=1e-12)
    assert found["cluster_angle_deg_half"] == math.degrees(max(half.angles[i, j] for i in inside for j in inside))
    assert found["cluster_angle_deg_half"] >= found["cluster_angle_deg"]
    assert found["extremes_product"] == 0


def top_of(shape):
    return max(shape.norm_max, shape.norm_min)


def test_plain_product_notices_a_wrong_layer(seed, monkeypatch):
    batch = tree_survey.make_batch("gaussian", 6, rng=np.random.default_rng(seed))
    assert tree_survey.plain_product(batch) == 0
    low = min(batch)
    # Neurons without recentering are on at both extremes.
    monkeypatch.setattr(tree_survey, "definition_neurons", lambda b, _: [tuple(y - low + 1 for y in b)])
    assert tree_survey.plain_product(batch) == float(max(batch) - low + 1)


def test_convergence_checks_notice_wrong_limits(seed, monkeypatch):
    batch = tree_survey.make_batch("gaussian", 6, rng=np.random.default_rng(seed))
    true, wrong = tree_survey.limit(batch), tree_survey.limit([0, 1, 2, 3, 4, 100])
    assert abs(true.energy_max - wrong.energy_max) > 1e-6
    monkeypatch.setattr(tree_survey, "limit", lambda _: wrong)
    found = tree_survey.convergence_check(batch, 240)
    assert max(abs(found["missing_max"]), abs(found["missing_min"])) > 1e-6
    assert tree_survey.convergence_check(batch, 3)["cluster_angle_deg"] > found["cluster_angle_deg"]


def test_theorem_11_is_read_off_the_limit(seed):
    rng = np.random.default_rng(seed)
    batch = tree_survey.make_batch("gaussian", 9, rng=rng)
    found, shape = tree_survey.theorem_11(batch), tree.limit(batch).geometry
    top, bottom, inside = batch.index(max(batch)), batch.index(min(batch)), batch.index(sorted(batch)[4])
    larger, smaller = (top, bottom) if shape.norms[top] > shape.norms[bottom] else (bottom, top)
    assert found["ratio_larger"] == pytest.approx(shape.norms[inside] / shape.norms[larger], rel=1e-12)
    assert found["ratio_smaller"] == pytest.approx(shape.norms[inside] / shape.norms[smaller], rel=1e-12)
    assert found["gap_larger"] == pytest.approx(math.pi / 2 - shape.angles[larger, inside], rel=1e-9)
    assert found["gap_smaller"] == pytest.approx(math.pi / 2 - shape.angles[smaller, inside], rel=1e-9)
    assert found["gap_larger"] == pytest.approx(shape.gap, rel=1e-9)
    assert found["cluster_angle"] == 0
    assert (found["ratio_bound"], found["gap_bound"]) == (3 / 7, math.sqrt(2 * math.pi) / 7)


def test_survey_and_its_sums(seed):
    rows = tree_survey.survey([5, 8], 4, rng=np.random.default_rng(seed))
    assert len(rows) == 2 * 5 * 4
    cells = tree_survey.summarize(rows)
    assert [(cell["kind"], cell["n"], cell["batches"]) for cell in cells] == [
        (kind, n, 4) for n in (5, 8) for kind in tree_survey.KINDS
    ]
    for cell in cells:
        members = [row for row in rows if (row["kind"], row["n"]) == (cell["kind"], cell["n"])]
        assert cell["ratio_larger"] == max(row["ratio_larger"] / row["ratio_bound"] for row in members)
        within = [r["ratio_smaller"] <= r["ratio_bound"] and r["gap_smaller"] <= r["gap_bound"] for r in members]
        assert cell["share_smaller"] == sum(within) / 4
        assert cell["energy_ratio_least"] == min(row["energy_ratio"] for row in members)
        assert cell["values_after"] <= 3
        assert cell["extremes_off_deg"] == 0
    ties = tree_survey.summarize_ties(rows)
    assert sum(cell["batches"] for cell in ties) == len(rows)


def test_ties_split_theorem_11_in_two(seed):
    rows = tree_survey.survey([12, 20], 20, rng=np.random.default_rng(seed), kinds=["tied"])
    for cell in tree_survey.summarize_ties(rows):
        assert cell["ratio_violations"] == (cell["batches"] if cell["ties"] >= 3 else 0)


def test_isolating_energies_rise_to_their_limit(seed):
    rng = np.random.default_rng(seed)
    batch = tree_survey.make_batch("gaussian", 6, rng=rng)
    rows = tree_survey.isolating_sequence(batch, 120)
    found = tree.limit(batch)
    for name, share in (("energy_max", found.energy_max), ("energy_min", found.energy_min)):
        path = [row[name] for row in rows]
        assert all(b >= a for a, b in pairwise(path))
        larger = max(found.energy_max, found.energy_min)
        assert path[-1] == pytest.approx(share / larger, rel=1e-9)
        assert path[0] < path[-1]
    assert rows[-1]["isolating"] == 2


def test_the_losing_end_loses_all_its_energy():
    rows = tree_survey.isolating_sequence([0, 0, 1, 2, 3, 9], 200)
    assert rows[-1]["energy_max"] == pytest.approx(1, rel=1e-12)
    assert rows[-1]["energy_min"] < 1e-12
    mirrored = tree_survey.isolating_sequence([Fraction(-y) for y in (0, 0, 1, 2, 3, 9)], 200)
    assert mirrored[-1]["energy_min"] == rows[-1]["energy_max"]


def test_bad_arguments():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="n is 3; the survey's batches need at least 4 samples"):
        tree_survey.make_batch("gaussian", 3, rng=rng)
    with pytest.raises(ValueError, match="kind is 'cauchy'; valid are gaussian, integer, tied, symmetric, chosen"):
        tree_survey.make_batch("cauchy", 8, rng=rng)
    with pytest.raises(ValueError, match="draws is 0; a survey needs at least one batch"):
        tree_survey.survey([8], 0, rng=rng)
    for call in (tree_survey.theorem_11, lambda batch: tree_survey.isolating_sequence(batch, 3)):
        with pytest.raises(ValueError, match="batch has only two different values"):
            call([1, 2, 2])
