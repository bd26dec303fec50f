"""The two draws against each other, against the exact law, and the root where roots are hard."""

import itertools
import math

import pytest
import scipy.stats
import torch

from bnlib import ensembles
from bnlib import geometry as geo
from bnlib.data import gaussian_batch, tied_batch
from bnlib.ensembles import choose_draw, gram_root, next_preactivation, propagate, record
from bnlib.layers import Stages, apply_stages, recenter

RC_NL = Stages.parse("RC+NL")


# --- the root ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 2), (5, 5), (5, 40), (12, 5), (40, 3)])
@pytest.mark.parametrize("recentered", [False, True])
def test_root_of_gaussian_batches(generator, n, d, recentered):
    x = gaussian_batch(n, d, generator=generator, draws=3)
    root = gram_root(x, recenter=recentered)
    assert root.shape == (3, n, min(n - recentered, d))
    y = recenter(x) if recentered else x
    assert ((root @ root.mT - y @ y.mT).abs() <= 1e-12 * x.square().sum(dim=(-2, -1))[:, None, None]).all()
    if recentered:
        assert root.sum(dim=-2).abs().max() < 1e-12 * n


@pytest.mark.parametrize("recentered", [False, True])
@pytest.mark.parametrize("ties", [[2], [2, 2], [6], [3, 3]])
@pytest.mark.parametrize("d", [3, 20])
def test_root_with_ties(generator, ties, d, recentered):
    x = tied_batch(6, d, ties, generator=generator)
    root = gram_root(x, recenter=recentered)
    y = recenter(x) if recentered else x
    assert (root @ root.mT - y @ y.mT).abs().max() < 1e-12 * (x @ x.mT).diagonal().max()
    # Equal samples have equal rows: to rounding, the angle between them is zero.
    assert (root[0] - root[1]).norm() <= 1e-14 * x.norm()


@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize("recentered", [False, True])
def test_root_keeps_the_angle_of_close_pairs(generator, apart, recentered):
    x = gaussian_batch(6, 50, generator=generator)
    for i, j in ((0, 1), (2, 5)):  # the last sample of a recentered root is made from the others
        across = gaussian_batch(2, 50, generator=generator)[0]
        x[j] = x[i] + apart * x[i].norm() * across / across.norm()
    y = recenter(x) if recentered else x
    root = gram_root(x, recenter=recentered)
    for i, j in ((0, 1), (2, 5)):
        expected = geo.pairwise_angles(y)[i, j].item()
        assert 0.05 * apart < expected < 20 * apart
        measured = geo.pairwise_angles(root)[i, j].item()
        assert measured == pytest.approx(expected, rel=max(1e-6, 1e-14 / apart))
    if apart == 1e-9:
        # The root by eigenvalues of the Gram matrix, clipped at zero, is the wrong variant: it exists, and is off.
        values, vectors = torch.linalg.eigh(y @ y.mT)
        clipped = vectors * values.clamp(min=0).sqrt()
        angles, true = geo.pairwise_angles(clipped), geo.pairwise_angles(y)
        assert max(abs(angles[i, j] / true[i, j] - 1) for i, j in ((0, 1), (2, 5))) > 1e-3


def test_root_of_an_outlier_with_a_tight_cluster(generator):
    """The state of recentered networks: one long sample, the others short and nearly parallel."""
    direction = gaussian_batch(2, 300, generator=generator)
    x = direction[1] / 63 + gaussian_batch(64, 300, generator=generator) * 1e-4
    x[0] = direction[0]
    for recentered in (False, True):
        y = recenter(x) if recentered else x
        root = gram_root(x, recenter=recentered)
        torch.testing.assert_close(geo.pairwise_angles(root), geo.pairwise_angles(y), rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("recentered", [False, True])
def test_root_of_collapsed_and_zero_batches(recentered):
    for value in (0.0, 0.1, 1e150, 1e-200):
        x = torch.full((5, 8), value, dtype=torch.float64)
        root = gram_root(x, recenter=recentered)
        assert root.isfinite().all()
        if recentered or value == 0:
            assert root.eq(0).all()
        else:
            assert root.norm(dim=-1).tolist() == pytest.approx([value * math.sqrt(8)] * 5)


@pytest.mark.parametrize("scale", [1e-200, 1e-90, 1e90, 1e200])
def test_root_over_the_whole_number_range(generator, scale):
    x = gaussian_batch(4, 9, generator=generator)
    for recentered in (False, True):
        root, scaled = gram_root(x, recenter=recentered), gram_root(x * scale, recenter=recentered)
        torch.testing.assert_close(geo.pairwise_angles(scaled), geo.pairwise_angles(root), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(scaled.abs() / scale, root.abs(), rtol=1e-9, atol=1e-12)


def test_root_treats_easy_and_hard_draws_of_one_stack_alike(generator):
    easy = gaussian_batch(4, 9, generator=generator)
    hard = tied_batch(4, 9, 3, generator=generator)
    stacked = gram_root(torch.stack([easy, hard, easy]))
    for root, x in zip(stacked, (easy, hard, easy), strict=True):
        assert torch.equal(root, gram_root(x))


# --- the law ----------------------------------------------------------------------------------------------------


def layer_statistics(h):
    """Statistics of one preactivation, draw by draw, that between them see every part of its law that we use."""
    rows = h.square().sum(dim=-1)
    after = torch.relu(h)  # a recentered batch has its largest sample opposite to the others' mean, always
    summary = geo.outlier_summary(after)
    return {
        "mean angle": geo.mean_pairwise_angle(after),
        "squared mean angle": geo.mean_pairwise_angle(after) ** 2,
        "outlier angle": summary.angle,
        "log norm ratio": summary.norm_ratio.log(),
        "log top over second": summary.top_over_second.log(),
        "log energy": rows.sum(dim=-1).log(),
        "second moment of sample 0": rows[:, 0],
        "second moment of the last sample": rows[:, -1],
        "product of samples 0 and 1": (h[:, 0] * h[:, 1]).sum(dim=-1),
        "squared product of samples 0 and 1": (h[:, 0] * h[:, 1]).sum(dim=-1) ** 2,
        "product of neurons 0 and 1": (h[..., 0] * h[..., 1]).sum(dim=-1),
        "fourth moment": h[:, 0].pow(4).mean(dim=-1),
    }


def largest_deviation(one, other):
    """Largest difference of two samples' means, in standard errors, over all statistics."""
    finite = {name: (a[a.isfinite()], other[name][other[name].isfinite()]) for name, a in one.items()}
    return max(
        (
            abs(a.mean() - b.mean()).item() / math.sqrt((a.var() / len(a) + b.var() / len(b)).item()),
            name,
        )
        for name, (a, b) in finite.items()
    )


DRAWS = 6000


def law_batch(generator):
    """A batch of six samples of unequal norms, two of them close, in twenty dimensions."""
    x = gaussian_batch(6, 20, generator=generator)
    x[1] = x[0] + 0.2 * x[1]
    return x * torch.tensor([1.0, 1.0, 2.0, 0.5, 1.0, 1.5], dtype=torch.float64)[:, None]


@pytest.mark.parametrize("recentered", [False, True])
def test_both_draws_have_the_same_law(generator, recentered):
    """6000 draws of each; power: the same comparison sees each of these wrong roots, and a variance 5 per cent off."""
    x = law_batch(generator)
    many = x.expand(DRAWS, 6, 20)
    options = {"generator": generator, "recenter": recentered}
    dense = layer_statistics(next_preactivation(many, 24, draw="dense", **options))
    drawn = layer_statistics(next_preactivation(many, 24, draw="gram_root", **options))
    deviation, name = largest_deviation(dense, drawn)
    assert deviation < 5, name

    root = gram_root(x, recenter=recentered)
    k = root @ root.T
    wrong_roots = {
        "variance off by 5 per cent": root * 1.05**0.5,
        "diagonal of the Gram only": torch.diag(k.diagonal().sqrt()),
        "the Gram itself": k / k.norm() ** 0.5,
        "the other recentering": gram_root(x, recenter=not recentered),
    }
    if not recentered:
        wrong_roots["transposed"] = root.T
    for wrong, left in wrong_roots.items():
        h = left @ torch.randn(DRAWS, left.shape[1], 24, generator=generator, dtype=torch.float64) * (2 / 20) ** 0.5
        deviation, _ = largest_deviation(dense, layer_statistics(h))
        assert deviation > 5, wrong


@pytest.mark.parametrize("count", [1, 5, 2047, 2048, 2049, 100_001])
def test_gaussian_numbers_have_the_gaussian_law(seed, count):
    """Kolmogorov-Smirnov on up to 100 001 numbers, however many at a time; power: rejects a scale 5 per cent off."""
    generator = torch.Generator().manual_seed(seed)
    rounds = min(-(-100_001 // count), 2000)
    z = torch.cat([ensembles.gaussian(count, generator=generator) for _ in range(rounds)])
    assert z.isfinite().all()
    assert scipy.stats.kstest(z.numpy(), "norm").pvalue > 1e-7
    if len(z) > 100_000:
        assert scipy.stats.kstest(z.numpy() * 1.05, "norm").pvalue < 1e-7
    # The two numbers of one pair, and neighbors, are uncorrelated, and so are their squares.
    half = len(z) // 2
    for a, b in ((z[:half], z[half : 2 * half]), (z[:-1], z[1:])):
        for f in (lambda v: v, lambda v: v.square() - 1, lambda v: v.abs() - math.sqrt(2 / math.pi)):
            products = f(a) * f(b)
            assert abs(products.mean()) < 5 * products.std() / math.sqrt(len(products))


def test_gaussian_numbers_reach_the_tails(generator):
    z = ensembles.gaussian(1_000_000, generator=generator).abs()
    # Beyond 4: 63.3 expected of a million; Poisson within five standard errors.
    assert abs((z > 4).sum().item() - 63.3) < 5 * math.sqrt(63.3)
    assert (z > 4.4).any()  # 10.8 expected


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
def test_draws_are_fresh_in_every_leading_index(generator, draw):
    """Draws that shared their weights would have correlated entries; the correlation of 3000 pairs is zero."""
    x = law_batch(generator).expand(6000, 6, 20)
    h = next_preactivation(x, 3, generator=generator, draw=draw)[:, :, 0]

    def correlation(a, b):
        return (a * b).mean(dim=0) / (a.square().mean(dim=0) * b.square().mean(dim=0)).sqrt()

    assert correlation(h[:3000], h[3000:]).abs().max() < 5 / math.sqrt(3000)
    neighbors = h[::2], h[1::2]
    assert correlation(*neighbors).abs().max() < 5 / math.sqrt(3000)
    shared = torch.cat([h[:3000], 0.1 * h[:3000] + 0.9 * h[3000:]])
    assert correlation(shared[:3000], shared[3000:]).abs().max() > 5 / math.sqrt(3000)


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
@pytest.mark.parametrize("recentered", [False, True])
def test_second_and_fourth_moments_are_exact(generator, draw, recentered):
    """E H H' = width s2/d K, and Var of an entry of H H' is width (s2/d)^2 (K_ii K_jj + K_ij^2), Isserlis."""
    x = law_batch(generator)
    width, variance = 7, 1.3
    many = x.expand(DRAWS, 6, 20)
    h = next_preactivation(many, width, generator=generator, draw=draw, weight_variance=variance, recenter=recentered)
    y = recenter(x) if recentered else x
    k = y @ y.T
    squares = k.diagonal()
    spread = ((squares[:, None] * squares + k**2) * width).sqrt() * variance / 20

    def deviation(products, weight_variance):
        expected = width * weight_variance / 20 * k
        return ((products.mean(dim=0) - expected) / spread).abs().max().item() * math.sqrt(DRAWS)

    products = h @ h.mT
    assert deviation(products, variance) < 5
    assert deviation(products, variance * 1.1) > 5  # power: a variance 10 per cent off is seen


@pytest.mark.parametrize("name", ["NL", "RC+NL", "RMS+NL", "RC+RS+NL", "RMS", "NL+RC", "NL+RMS", "NL+RC+RS"])
def test_both_draws_have_the_same_law_after_three_layers(generator, name):
    """3000 draws of each, a fresh batch for each; power: narrower networks (20 for 24) are told apart."""
    stages = Stages.parse(name)

    def statistics(draw, width):
        x = gaussian_batch(5, 12, generator=generator, draws=3000)
        *_, state = propagate(x, width, 3, stages, generator=generator, draw=draw)
        summary = geo.outlier_summary(state.x)
        out = {
            "mean angle": geo.mean_pairwise_angle(state.x),
            "log norm ratio": summary.norm_ratio.log(),
            "top over second": summary.top_over_second.clamp(max=10),
            "effective rank": geo.effective_rank(state.x),
        }
        if stages.rescaling == "none":
            out["log scale"] = state.log_scale
        return {key: value[value.isfinite()] for key, value in out.items()}

    dense = statistics("dense", 24)
    deviation, key = largest_deviation(dense, statistics("gram_root", 24))
    assert deviation < 5, key
    assert largest_deviation(dense, statistics("gram_root", 16))[0] > 5


def test_close_pairs_spread_as_with_dense_weights(generator):
    """A pair 1e-9 apart, behind one layer: the ratio of angles has the same law by both draws."""
    x = gaussian_batch(4, 30, generator=generator)
    x[1] = x[0] + 1e-9 * x[1]
    before = geo.pairwise_angles(x)[0, 1].item()

    def growth(draw):
        h = next_preactivation(x.expand(1500, 4, 30), 40, generator=generator, draw=draw)
        return {"log growth": (geo.pairwise_angles(h)[:, 0, 1] / before).log()}

    dense = growth("dense")
    assert largest_deviation(dense, growth("gram_root"))[0] < 5
    assert largest_deviation(dense, {"log growth": dense["log growth"] + 0.06})[0] > 5


# --- propagation ------------------------------------------------------------------------------------------------


def by_hand(x, width, depth, stages, generator, variance=2.0):
    """The unscaled network, with the weights that the dense draw takes from the generator."""
    for _ in range(depth):
        w = ensembles.gaussian(x.shape[-1], width, generator=generator) * (variance / x.shape[-1]) ** 0.5
        x = apply_stages(x @ w, stages)
        yield x


@pytest.mark.parametrize(
    "name",
    ["none", "NL", "RC", "RC+NL", "RMS+NL", "STD+NL", "RC+RS+NL", "RMS", "NL+RC", "NL+RMS", "NL+STD", "NL+RC+RS"],
)
@pytest.mark.parametrize("variance", [2.0, 0.5])
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e7])
def test_the_scale_times_the_state_is_the_unscaled_network(generator, seed, name, variance, size):
    stages = Stages.parse(name)
    x = gaussian_batch(5, 16, generator=generator) * size
    states = propagate(
        x,
        32,
        6,
        stages,
        generator=torch.Generator().manual_seed(seed),
        draw="dense",
        weight_variance=variance,
    )
    expected = by_hand(x, 32, 6, stages, torch.Generator().manual_seed(seed), variance)
    for depth, (state, unscaled) in enumerate(zip(states, expected, strict=True), start=1):
        assert state.depth == depth
        torch.testing.assert_close(state.log_scale.exp() * state.x, unscaled, rtol=1e-8, atol=1e-9 * unscaled.norm())
        assert state.x.square().sum(dim=-1).mean().item() == pytest.approx(1)
        torch.testing.assert_close(state.gram, state.x @ state.x.mT, rtol=1e-10, atol=1e-13)


def test_log_scale_survives_where_the_product_underflows(generator):
    """Weight variance 1/100: squared norms shrink by about 200 a layer, and 400 layers leave the number range."""
    x = gaussian_batch(3, 64, generator=generator, draws=20)
    *_, state = propagate(x, 64, 400, Stages.parse("NL"), generator=generator, weight_variance=0.01)
    rate = state.log_scale.mean().item() / 400
    # Half a log of the kept energy a layer: 0.005, and a little less by Jensen's inequality at width 64.
    assert 0.5 * math.log(0.005) - 0.05 < rate < 0.5 * math.log(0.005)
    assert state.x.isfinite().all()
    assert math.exp(2 * state.log_scale.max().item()) == 0


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_the_input_may_be_anywhere_in_the_number_range(generator, seed, scale):
    x = gaussian_batch(4, 8, generator=generator)
    *_, small = propagate(x * scale, 16, 2, RC_NL, generator=torch.Generator().manual_seed(seed))
    *_, plain = propagate(x, 16, 2, RC_NL, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(small.x, plain.x, rtol=1e-9, atol=1e-12)
    assert (small.log_scale - plain.log_scale).item() == pytest.approx(math.log(scale))


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
def test_zero_representations_stay_zero_and_are_flagged(generator, draw):
    collapsed = torch.ones(2, 4, 6, dtype=torch.float64)
    collapsed[1] = gaussian_batch(4, 6, generator=generator)
    for state in propagate(collapsed, 8, 3, RC_NL, generator=generator, draw=draw):
        assert state.x[0].eq(0).all()
        assert state.log_scale[0] == -math.inf
        assert state.log_scale[1].isfinite()


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
@pytest.mark.parametrize("name", ["RC+NL", "RMS", "RC+RS", "RMS+NL", "none", "NL+RC", "NL+RC+RS", "NL+STD"])
def test_tied_samples_stay_equal_bit_by_bit(generator, draw, name):
    """Rescaling takes the square root of small differences: rounding would part tied samples within six layers."""
    x = tied_batch(7, 10, [2, 3], generator=generator, draws=3)[:, [0, 2, 5, 1, 3, 6, 4]]
    for state in propagate(x, 20, 40, Stages.parse(name), generator=generator, draw=draw):
        for i, j in ((0, 3), (1, 4), (1, 6)):
            assert torch.equal(state.x[:, i], state.x[:, j])
        for i, j in ((0, 1), (2, 5), (2, 0)):
            assert not torch.equal(state.x[:, i], state.x[:, j])


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
def test_ties_are_found_by_equality_and_not_by_closeness(generator, draw, monkeypatch):
    x = gaussian_batch(6, 9, generator=generator, draws=2)
    x[0, 4] = x[0, 1]
    x[1, 5] = x[1, 0] = x[1, 3]
    x[1, 2] = x[1, 0]
    x[1, 2, 7] *= 1 + 1e-12
    for entries in (4_000_000, 9):  # at once, and pair by pair
        monkeypatch.setattr(ensembles, "_COMPARED_ENTRIES", entries)
        assert ensembles._first_equal(x).tolist() == [[0, 1, 2, 3, 1, 5], [0, 1, 2, 0, 4, 0]]
    assert ensembles._first_equal(x[:, :4, :]).tolist() == [[0, 1, 2, 3], [0, 1, 2, 0]]
    assert ensembles._first_equal(gaussian_batch(6, 9, generator=generator, draws=2)) is None
    h = next_preactivation(x, 12, generator=generator, draw=draw)
    assert torch.equal(h[1, 5], h[1, 0])
    assert not torch.equal(h[1, 2], h[1, 0])


def test_recentering_acts_in_the_first_layer_only(generator, seed):
    """Linear networks: with the same weights, recentering everywhere equals recentering the input once."""
    x = gaussian_batch(6, 12, generator=generator)
    runs = {}
    for name, start in (("RC", x), ("none", recenter(x)), ("nothing", x)):
        stages = Stages.parse("RC" if name == "RC" else "none")
        *_, runs[name] = propagate(start, 16, 8, stages, generator=torch.Generator().manual_seed(seed), draw="dense")
    torch.testing.assert_close(runs["RC"].x, runs["none"].x, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(runs["RC"].log_scale, runs["none"].log_scale, rtol=0, atol=1e-10)
    assert (runs["RC"].x - runs["nothing"].x).abs().max() > 1e-2


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
@pytest.mark.parametrize(("draws", "n", "d", "width"), [(7, 3, 5, 11), (1, 6, 30, 50)])
def test_blocks_of_draws_and_of_columns_cover_everything(generator, monkeypatch, draw, draws, n, d, width):
    monkeypatch.setitem(ensembles._BLOCK_ENTRIES, "cpu", 64)
    x = gaussian_batch(n, d, generator=generator, draws=draws)
    h = next_preactivation(x, width, generator=generator, draw=draw)
    assert h.shape == (draws, n, width)
    assert h.isfinite().all()
    assert (h != 0).all()
    assert len(set(h[..., 0, :].flatten().tolist())) == draws * width


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
def test_leading_dimensions_are_kept(generator, draw):
    x = gaussian_batch(4, 6, generator=generator, draws=6).reshape(2, 3, 4, 6)
    *_, state = propagate(x, 5, 2, Stages.parse("RMS"), generator=generator, draw=draw)
    assert (state.x.shape, state.log_scale.shape, state.gram.shape) == ((2, 3, 4, 5), (2, 3), (2, 3, 4, 4))
    *_, single = propagate(x[0, 0], 5, 2, Stages.parse("RMS"), generator=generator, draw=draw)
    assert (single.x.shape, single.log_scale.shape) == ((4, 5), ())


def test_float32_stays_float32(generator):
    x = gaussian_batch(4, 6, generator=generator, draws=2).float()
    for draw in ("dense", "gram_root"):
        *_, state = propagate(x, 8, 3, RC_NL, generator=generator, draw=draw)
        assert state.x.dtype == torch.float32
        assert state.log_scale.dtype == torch.float64


def test_randomness_comes_from_the_generator_only(generator, seed):
    x = gaussian_batch(4, 6, generator=generator)
    state, before = torch.get_rng_state(), x.clone()
    one = next_preactivation(x, 8, generator=torch.Generator().manual_seed(seed))
    two = next_preactivation(x, 8, generator=torch.Generator().manual_seed(seed))
    list(propagate(x, 8, 3, RC_NL, generator=generator))
    assert torch.equal(one, two)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(x, before)


def test_states_may_be_kept(generator):
    """No state shares memory with a later one."""
    x = gaussian_batch(4, 6, generator=generator)
    kept = list(propagate(x, 6, 4, Stages.parse("RC+NL"), generator=generator))
    for a, b in itertools.combinations(kept, 2):
        assert not torch.equal(a.x, b.x)
        assert a.x.data_ptr() != b.x.data_ptr()


def test_choice_of_draw():
    assert choose_draw(32, 4096, 4096) == "gram_root"
    assert choose_draw(64, 1000, 1000) == "gram_root"
    assert choose_draw(32, 1000, 1_000_000) == "gram_root"
    for n, d, width in ((64, 64, 64), (64, 2, 1000), (1000, 64, 64), (8, 8, 8), (2, 1, 1)):
        assert choose_draw(n, d, width) == "dense"


def test_record_stacks_measurements(generator):
    x = gaussian_batch(4, 6, generator=generator, draws=5)
    states = list(propagate(x, 7, 3, RC_NL, generator=generator))
    measured = record(states, {"depth": lambda s: torch.tensor(s.depth), "rank": lambda s: geo.effective_rank(s.x)})
    assert measured["depth"].tolist() == [1, 2, 3]
    assert torch.equal(measured["rank"][1], geo.effective_rank(states[1].x))
    with pytest.raises(ValueError, match="states is empty; valid is at least one layer"):
        record([], {})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": torch.ones(1, 4)}, "x has 1 samples"),
        ({"x": torch.ones(4)}, "x has 1 dimensions"),
        ({"x": torch.ones(3, 4, device="meta")}, "generator is on cpu and x on meta; valid is one device for both"),
        ({"x": torch.tensor([[1.0], [math.nan]])}, "x contains NaN or infinity"),
        ({"x": torch.tensor([[1.0], [math.inf]])}, "x contains NaN or infinity"),
        ({"width": 0}, "width is 0; valid is an integer >= 1"),
        ({"width": 2.5}, "width is 2.5; valid is an integer >= 1"),
        ({"depth": 0}, "depth is 0; valid is an integer >= 1"),
        ({"weight_variance": 0.0}, "weight_variance is 0.0; valid is a finite number > 0"),
        ({"weight_variance": math.inf}, "weight_variance is inf"),
        ({"draw": "fast"}, 'draw must be "auto", "dense" or "gram_root", not \'fast\''),
    ],
)
def test_bad_arguments_are_named_at_the_call(unchecked, generator, options, message):
    arguments = {"x": torch.ones(3, 4), "width": 5, "depth": 2, "stages": RC_NL, "generator": generator}
    with pytest.raises(ValueError, match=message):
        propagate(**(arguments | options))
    if "depth" not in options:
        del arguments["depth"], arguments["stages"]
        with pytest.raises(ValueError, match=message):
            next_preactivation(**(arguments | options))


def test_choose_draw_refuses():
    with pytest.raises(ValueError, match="n is 1; valid is an integer >= 2"):
        choose_draw(1, 5, 5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("draw", ["dense", "gram_root"])
def test_gpu_agrees_with_cpu(generator, seed, draw):
    """Roots agree to 1e-11 relative; draws are other random numbers of the same law, within 5 standard errors."""
    x = gaussian_batch(6, 100, generator=generator, draws=500)
    x[0, 1] = x[0, 0]
    for recentered in (False, True):
        here, there = (gram_root(y, recenter=recentered) for y in (x, x.cuda()))
        torch.testing.assert_close((there @ there.mT).cpu(), here @ here.mT, rtol=1e-11, atol=1e-10)

    def statistics(device):
        g = torch.Generator(device).manual_seed(seed)
        *_, state = propagate(x.to(device), 100, 5, RC_NL, generator=g, draw=draw)
        return {
            "angle": geo.mean_pairwise_angle(state.x).cpu(),
            "log scale": state.log_scale.cpu(),
            "norm ratio": geo.outlier_summary(state.x).norm_ratio.log().cpu(),
        }

    deviation, name = largest_deviation(
        {k: v[1:] for k, v in statistics("cpu").items()}, {k: v[1:] for k, v in statistics("cuda").items()}
    )
    assert deviation < 5, name
