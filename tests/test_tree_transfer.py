"""Networks beside the tree: where they must agree, and where they must not."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import binom

from bnlib import tree, tree_transfer
from bnlib.layers import recenter, relu


@pytest.fixture
def batches(seed):
    return np.random.default_rng(seed).standard_normal((5, 6))


def test_tree_paths_are_the_tree(batches):
    paths = tree_transfer.tree_paths(batches, [1, 4, 9])
    limits = tree_transfer.tree_limits(batches)
    assert paths.norms.shape == (3, 5, 1, 6)
    for b, batch in enumerate(batches):
        for t, depth in enumerate((1, 4, 9)):
            np.testing.assert_array_equal(paths.norms[t, b, 0], tree.norms(tree.grow(batch, depth)))
        found = tree.limit(batch)
        np.testing.assert_array_equal(limits.norms[0, b, 0], found.geometry.norms)
        top = found.geometry.norms.argmax()
        others = np.delete(np.arange(6), top)
        mean_norm = math.sqrt(found.gram[np.ix_(others, others)].mean())
        assert limits.norm_ratio[b, 0] == pytest.approx(found.geometry.norms[top] / mean_norm, rel=1e-9)
        cosine = found.gram[top, others].mean() / (found.geometry.norms[top] * mean_norm)
        assert limits.gap[b, 0] == pytest.approx(math.asin(cosine), abs=1e-7)


def test_norms_of_tree_and_infinite_width_agree_for_two_layers_and_no_longer(batches):
    wide = tree_transfer.infinite_width_paths(batches, [1, 2, 3])
    ours = tree_transfer.tree_paths(batches, [1, 2, 3])
    # Both square norms are the diagonal of the recentered Gram matrix, and the first Gram matrices are the same.
    np.testing.assert_allclose(wide.norms[:2], ours.norms[:2], rtol=0, atol=1e-12)
    assert np.abs(wide.norms[2] - ours.norms[2]).max() > 1e-3


def test_infinite_width_is_the_mean_of_networks(seed):
    batch = np.random.default_rng(seed).standard_normal((1, 5))
    generator = torch.Generator().manual_seed(seed)
    found = tree_transfer.network_paths(batch, 256, [1, 2], draws=300, generator=generator)
    wide = tree_transfer.infinite_width_paths(batch, [1, 2])
    right, wrong = [], []
    for t in (0, 1):
        squares = found.norms[t, 0] ** 2
        error = squares.std(axis=0) / math.sqrt(300)
        # Normalizing each draw biases a share by O(1/width); twice that is allowed.
        right.append((np.abs(squares.mean(axis=0) - wide.norms[t, 0, 0] ** 2) / (5 * error + 2 / 256)).max())
        wrong.append((np.abs(squares.mean(axis=0) - 0.2) / (5 * error + 2 / 256)).max())
    assert max(right) < 1
    # The test tells this batch from one of equal norms.
    assert min(wrong) > 1


def test_networks_are_seeded_and_equal_a_plain_loop(seed):
    batch = np.random.default_rng(seed).standard_normal((2, 4))
    paths = [
        tree_transfer.network_paths(batch, 8, [1, 3], draws=2, generator=torch.Generator().manual_seed(seed))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(paths[0].norms, paths[1].norms)
    np.testing.assert_allclose(np.square(paths[0].norms).sum(axis=-1), 1, rtol=1e-12)
    # One layer is relu(+-c |w|) column by column, so above and below the mean the norms are proportional to |c|.
    x = relu(recenter(torch.from_numpy(batch)[:, :, None]).abs()).numpy()[..., 0]
    for b, values in enumerate(batch):
        for side in (values > values.mean(), values < values.mean()):
            shares = paths[0].norms[0, b][:, side] / x[b][side]
            np.testing.assert_allclose(shares, shares[:, :1] * np.ones_like(shares), rtol=1e-12)


def test_symmetric_batches_toss_a_coin(seed):
    half = np.array([0.3, 1.0, 2.0])
    symmetric = np.concatenate([half, -half])[None]
    skewed = symmetric + np.array([0, 0, 1.5, 0, 0, 0])
    distances = []
    for batch in (symmetric, skewed):
        generator = torch.Generator().manual_seed(seed)
        found = tree_transfer.network_paths(batch, 32, [4], draws=600, generator=generator)
        shares = tree_transfer.winner_shares(found.norms[-1], batch, np.array([2]))
        share, extreme = shares["maximum"].item(), shares["extreme"].item()
        distances.append(abs(share - extreme / 2) / math.sqrt(0.25 / 600))
    assert distances[0] < 5
    # The same test notices that the maximum lies farther out.
    assert distances[1] > 5


def test_counts_and_ratios():
    norms = np.array([[[1.0, 1.0, 1.0, 8.0, 4.0], [1.0, 1.0, 1.0, 1.0, 9.0]]])
    batches = np.array([[0.0, 1.0, 2.0, 5.0, -3.0]])
    assert tree_transfer.second_over_top(norms).tolist() == [[0.5, 1 / 9]]
    assert tree_transfer.escaped_points(norms).tolist() == [[2, 1]]
    assert tree_transfer.extremes_ratio(norms, batches).tolist() == [[0.5, 1 / 9]]
    shares = tree_transfer.winner_shares(norms, batches, np.array([4]))
    assert {name: share.tolist() for name, share in shares.items()} == {
        "extreme": [1.0],
        "maximum": [0.5],
        "predicted": [0.5],
        "agreement": [0.0],
    }
    with pytest.raises(ValueError, match="norms has 1 draws a batch; whether winners agree needs at least two"):
        tree_transfer.winner_shares(norms[:, :1], batches, np.array([4]))


def test_agreement_is_unbiased_for_few_draws(seed):
    rng = np.random.default_rng(seed)
    fair = np.eye(3)[rng.integers(2, size=(4000, 3))]
    share = tree_transfer.winner_shares(fair, np.tile([0.0, 1.0, 2.0], (4000, 1)), np.zeros(4000, dtype=int))
    error = share["agreement"].std() / math.sqrt(4000)
    assert abs(share["agreement"].mean() - 0.5) < 5 * error
    # The share of the most frequent winner of three draws has the mean 3/4.
    frequent = fair.mean(axis=1).max(axis=-1)
    assert abs(frequent.mean() - 0.5) > 5 * error
    naive = [
        np.mean([a == b for i, a in enumerate(w) for j, b in enumerate(w) if i != j]) for w in fair.argmax(axis=-1)
    ]
    np.testing.assert_allclose(share["agreement"], naive, rtol=1e-12)


def test_lower_limits_are_those_of_coins(seed):
    shares = (np.random.default_rng(seed).random(300) < 0.9).astype(float)
    lower = tree_transfer.lower_limit(shares)
    assert lower < 0.9
    # At the limit, as many successes have just the probability of the error.
    assert binom.sf(shares.sum() - 1, 300, lower) == pytest.approx(1e-3, rel=1e-6)
    assert tree_transfer.lower_limit(np.ones(300)) == pytest.approx(1e-3 ** (1 / 300), rel=1e-12)
    assert tree_transfer.lower_limit(np.full(3, 1 / 3)) == tree_transfer.lower_limit(np.array([1.0, 0, 0]))


def test_extremes_ratio_equals_a_loop(batches, seed):
    paths = np.random.default_rng(seed + 1).uniform(1, 2, (3, 5, 4, 6))
    found = tree_transfer.extremes_ratio(paths, batches)
    assert found.shape == (3, 5, 4)
    for t in range(3):
        for b, batch in enumerate(batches):
            for r in range(4):
                ends = sorted((paths[t, b, r, batch.argmax()], paths[t, b, r, batch.argmin()]))
                assert found[t, b, r] == ends[0] / ends[1]


def test_transfer_cell_on_made_up_norms():
    batches = np.array([[0.0, 1.0, 2.0, 3.0, 10.0], [0.0, 1.0, 2.0, 3.0, 9.0]])
    toy = np.array([[[3.0, 1, 1, 1, 6]], [[1.9, 1, 1, 1, 4]]])
    real = np.array([[[1.0, 1, 1, 1, 8], [8.0, 1, 1, 1, 4]], [[1.0, 1, 1, 1, 2.5], [1.0, 1, 9, 1, 1]]])
    end = tree_transfer.NormPaths(np.array([0]), toy[None], np.zeros((2, 1)), np.ones((2, 1)))
    gap = np.array([[0.0, -0.9], [0.8, 0.1]])
    network = tree_transfer.NormPaths(np.array([7]), real[None], gap, np.array([[0.9, 1.1], [3.0, 2.0]]))
    cell = tree_transfer.transfer_cell(batches, end, network)
    expected = {
        "n": 5,
        "batches": 2,
        "draws": 2,
        "tree_two": 0.5,
        "network_two": 0.25,
        "network_two_error": 0.5,
        "extreme": 0.75,
        "predicted": 0.5,
        "maximum": 0.5,
        "agreement": 0.0,
        "ratio_share": 0.75,
        # The bound is sqrt(2 pi) / 3 = 0.8355 radians.
        "gap_share": 0.75,
    }
    assert {name: cell[name] for name in expected} == expected
    # Each of the three shares adds up to 1.5 batches, rounded down to one of two.
    lower = tree_transfer.lower_limit(np.array([1.0, 0.0]))
    assert [cell[f"{name}_lower"] for name in ("extreme", "ratio_share", "gap_share")] == [lower] * 3
    assert cell["tree_second"] == pytest.approx((0.5 + 1.9 / 4) / 2)
    assert cell["network_second"] == pytest.approx((1 / 8 + 0.4) / 2)


def test_tree_shares_are_those_of_the_limits(seed):
    cell = tree_transfer.tree_shares(7, 40, rng=np.random.default_rng(seed))
    found = [tree.limit(batch) for batch in np.random.default_rng(seed).standard_normal((40, 7))]
    seconds = [np.sort(one.geometry.norms)[-2:] for one in found]
    assert cell["second"] == pytest.approx(np.median([a / b for a, b in seconds]))
    assert cell["two"] == np.mean([(one.geometry.norms >= 2 * one.geometry.norm_interior).sum() >= 2 for one in found])
    shares = [sorted((one.energy_min, one.energy_max)) for one in found]
    assert cell["energy_ratio"] == pytest.approx(np.median([a / b for a, b in shares]))
    assert cell["absorbed"] == np.mean([a / b < 1 / 36 for a, b in shares])
    with pytest.raises(ValueError, match="n is 2; without an interior point nothing can be compared"):
        tree_transfer.tree_shares(2, 4, rng=np.random.default_rng(seed))


def test_distribution_distance_equals_scipy(seed):
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(40), rng.standard_normal(70) + 0.5
    assert tree_transfer.distribution_distance(a, b) == pytest.approx(ks_2samp(a, b).statistic, rel=1e-12)
    assert tree_transfer.distribution_distance(a, a) == 0


@pytest.mark.parametrize("depths", [[0, 1], [2, 2], [3, 1], []])
def test_bad_depths(depths):
    batch = np.array([[0.0, 1.0, 3.0]])
    for call in (
        tree_transfer.tree_paths,
        tree_transfer.infinite_width_paths,
        lambda b, d: tree_transfer.network_paths(b, 4, d, draws=1, generator=torch.Generator()),
    ):
        with pytest.raises(ValueError, match="valid are ascending integers of at least 1"):
            call(batch, depths)


def test_standard_errors_never_vanish(seed):
    shares = np.random.default_rng(seed).uniform(0, 1, 50)
    mean, error = tree_transfer.mean_and_error(shares)
    assert mean == pytest.approx(sum(shares) / 50, rel=1e-12)
    assert error == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in shares) / 49 / 50), rel=1e-12)
    assert tree_transfer.mean_and_error(np.zeros(50)) == (0, 1 / 50)


def test_bad_counts():
    with pytest.raises(ValueError, match="draws is 0; at least one network a batch is needed"):
        tree_transfer.network_paths(np.ones((1, 2)), 4, [1], draws=0, generator=torch.Generator())
    with pytest.raises(ValueError, match="shares has 1 entries; a standard error needs at least two batches"):
        tree_transfer.mean_and_error(np.ones(1))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
def test_gpu_agrees_with_cpu_on_the_first_layer(seed):
    batch = np.random.default_rng(seed).standard_normal((1, 6))
    shares = []
    for device in ("cpu", "cuda"):
        generator = torch.Generator(device=device).manual_seed(seed)
        found = tree_transfer.network_paths(batch, 512, [1], draws=400, generator=generator)
        shares.append((found.norms[0, 0] ** 2).mean(axis=0))
    # Different streams of random numbers: five standard errors of a share, at most 0.5 / sqrt(512 * 400) * sqrt(2).
    np.testing.assert_allclose(shares[0], shares[1], atol=5 * 0.5 * math.sqrt(2 / (512 * 400)) * 2)
