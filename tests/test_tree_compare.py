"""Distances with intervals, and the counts of escaped points."""

import math

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp

from bnlib import tree_compare, tree_transfer


def _paths(norms, ratio=2.0, gap=0.1):
    norms = np.asarray(norms, dtype=float)[None]
    shape = norms.shape[1:3]
    return tree_transfer.NormPaths(np.array([5]), norms, np.full(shape, gap), np.full(shape, ratio))


def test_distance_is_scipys_and_its_interval_is_the_formula(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(80), rng.standard_normal(50) + 1
    found = tree_compare.distance_interval(a, b, 0.1)
    assert found.value == pytest.approx(ks_2samp(a, b).statistic, rel=1e-12)
    slack = math.sqrt(math.log(40) / 160) + math.sqrt(math.log(40) / 100)
    assert found.low == pytest.approx(max(0, found.value - slack), rel=1e-12)
    assert found.high == pytest.approx(min(1, found.value + slack), rel=1e-12)


def test_intervals_hold(seed):
    rng = np.random.default_rng(seed)
    # Two uniform laws, shifted by 0.3: the distance is 0.3.
    hits = wrong = 0
    for _ in range(200):
        found = tree_compare.distance_interval(rng.random(60), rng.random(60) + 0.3)
        hits += found.low <= 0.3 <= found.high
        wrong += found.low <= 0.95 <= found.high
    assert hits >= 200 * 0.95 - 5 * math.sqrt(200 * 0.95 * 0.05)
    # The same test rejects another distance.
    assert wrong < 200 * 0.95 - 5 * math.sqrt(200 * 0.95 * 0.05)


def test_only_the_first_network_of_a_batch_counts():
    norms = [[[1, 1, 1, 8, 4], [9, 9, 9, 9, 9]], [[1, 1, 1, 1, 9], [9, 9, 9, 9, 9]]]
    found = tree_compare.quantities(_paths(norms))
    assert found["escaped"].tolist() == [2, 1]
    assert found["second"].tolist() == [0.5, 1 / 9]
    assert found["norm_ratio"].tolist() == [2, 2]
    assert found["angle_deg"] == pytest.approx(90 - math.degrees(0.1))
    assert tree_compare.quantities(_paths(norms), 5)["escaped"].tolist() == [1, 1]


def test_compare_reads_off_each_quantity():
    toy = _paths(np.ones((40, 1, 5)), ratio=3.0)
    real = _paths(np.tile([1.0, 1, 1, 1, 7], (40, 1, 1)), ratio=3.0)
    found = tree_compare.compare(toy, real)
    assert found["norm_ratio"]["distance"] == 0
    assert found["escaped"]["distance"] == 1
    assert found["escaped"]["low"] > 0.4
    assert (found["escaped"]["toy"], found["escaped"]["real"]) == ([0, 0, 0], [1, 1, 1])
    assert found["second"]["real"] == pytest.approx([1 / 7] * 3)


def test_shares_of_escaped_points():
    norms = [[[1.0] * 10 + [3.0] * k] for k in (0, 1, 1, 2)] + [[[1.0] * 12]]
    norms = [[row + [1.0] * (20 - len(row)) for row in batch] for batch in norms]
    rows = tree_compare.escaped_shares(_paths(norms))
    assert [row["share"] for row in rows] == [0.4, 0.4, 0.2, 0, 0]
    assert [row["escaped"] for row in rows] == ["0", "1", "2", "3", "4+"]
    assert rows[4]["low"] == 0
    assert rows[4]["high"] == pytest.approx(1 - 0.025 ** (1 / 5), rel=1e-9)
    factors = tree_compare.one_escaped(_paths(norms), [2.0, 4.0])
    assert [row["share"] for row in factors] == [0.4, 0]


def test_same_winner_counts_batches():
    a = _paths([[[1.0, 2, 3]], [[3.0, 2, 1]], [[1.0, 3, 2]], [[2.0, 1, 3]]])
    b = _paths([[[1.0, 2, 3]], [[1.0, 2, 3]], [[1.0, 3, 2]], [[3.0, 1, 2]]])
    found = tree_compare.same_winner(a, b)
    assert found["share"] == 0.5
    assert found["low"] < 0.5 < found["high"]
    cell = tree_compare.forest_cell(a, b, 7)
    assert (cell["n"], cell["d"], cell["batches"], cell["same"]) == (3, 7, 4, 0.5)
    for end, hits in (("lower", 1), ("upper", 2)):
        # At a one-sided limit, at least (or at most) two of four have just the probability of the error.
        tail = binom.sf(hits, 4, cell["same_lower"]) if end == "lower" else binom.cdf(hits, 4, cell["same_upper"])
        assert tail == pytest.approx(1e-3, rel=1e-6)


def test_symmetric_cell_on_made_up_norms():
    batch = np.array([1.0, -2.0, 2.0, -1.0])
    norms = np.array([[1.0, 1, 3, 1], [1, 1, 4, 1], [1, 5, 1, 1], [6, 1, 1, 1]])
    network = tree_transfer.NormPaths(np.array([3]), norms[None, None], np.zeros((1, 4)), np.ones((1, 4)))
    cell = tree_compare.symmetric_cell(batch, network)
    assert (cell["maximum"], cell["minimum"], cell["extreme"], cell["difference"]) == (0.5, 0.25, 0.75, 0.25)
    assert cell["difference_error"] == pytest.approx(math.sqrt(0.75 / 4))
    assert cell["agreement"] == pytest.approx(1 / 6)
    assert binom.sf(1, 4, cell["maximum_lower"]) == pytest.approx(1e-3, rel=1e-6)
    assert binom.cdf(1, 4, cell["minimum_upper"]) == pytest.approx(1e-3, rel=1e-6)
    one = tree_transfer.NormPaths(np.array([3]), norms[None, None, :1], np.zeros((1, 1)), np.ones((1, 1)))
    with pytest.raises(ValueError, match="network has 1 draws; whether winners agree needs at least two"):
        tree_compare.symmetric_cell(batch, one)


def test_agreement_of_pairs_has_the_error_it_says(seed):
    rng = np.random.default_rng(seed)
    for shares in ([0.5, 0.5], [0.8, 0.1, 0.1]):
        found = [tree_compare.pair_agreement(rng.choice(len(shares), size=60, p=shares)) for _ in range(400)]
        values, errors = np.array(found).T
        deviation = values - sum(share**2 for share in shares)
        assert abs(deviation.mean()) < 5 * values.std() / math.sqrt(400)
        assert values.std() < 1.25 * errors.mean()
        if shares == [0.5, 0.5]:
            # The same test rejects an estimate in which every draw also agrees with itself.
            wrong = (59 * values + 1) / 60 - 0.5
            assert wrong.mean() > 5 * wrong.std() / math.sqrt(400)
    draws = rng.integers(3, size=9)
    pairs = [a == b for i, a in enumerate(draws) for j, b in enumerate(draws) if i != j]
    assert tree_compare.pair_agreement(draws)[0] == pytest.approx(np.mean(pairs), rel=1e-12)
    assert tree_compare.pair_agreement(np.zeros(50, dtype=int)) == (1, 1 / 50)
    with pytest.raises(ValueError, match="winner has 1 entries; whether winners agree needs at least two"):
        tree_compare.pair_agreement(np.array([0]))


def test_tree_and_infinite_width_part_after_two_layers(seed):
    y = np.random.default_rng(seed).standard_normal((60, 6))
    depths = [1, 2, 40]
    rows = tree_compare.distance_path(
        tree_transfer.tree_paths(y, depths), tree_transfer.infinite_width_paths(y, depths)
    )
    assert [row["distance"] for row in rows[:2]] == [0, 0]
    assert rows[2]["distance"] > 0.1


def test_bad_arguments(unchecked):
    with pytest.raises(ValueError, match="a or b is empty"):
        tree_compare.distance_interval(np.array([]), np.ones(3))
    with pytest.raises(ValueError, match="error is 0; it must lie between 0 and 1"):
        tree_compare.distance_interval(np.ones(3), np.ones(3), 0)
    y = np.array([[0.0, 1.0, 3.0]])
    with pytest.raises(ValueError, match=r"toy has depths \[1\], real has depths \[2\]; they must be the same"):
        tree_compare.distance_path(tree_transfer.tree_paths(y, [1]), tree_transfer.tree_paths(y, [2]))
