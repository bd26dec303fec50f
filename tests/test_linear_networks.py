"""Measured linear networks against their theory, and against networks by hand."""

import math

import jaxtyping
import numpy as np
import pytest
import torch

from bnlib import linear_networks as networks
from bnlib import linear_theory as theory
from bnlib.data import gaussian_batch, symmetric_batch, tied_batch
from bnlib.layers import Stages, apply_stages

RMS, PLAIN = Stages.parse("RMS"), Stages.parse("none")


@pytest.fixture
def unchecked():
    """Let wrong types reach our own checks also where this run checks annotations."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def errors_apart(values, expected):
    """Distance of a sample's mean from a number, in standard errors."""
    return abs(values.mean().item() - expected) / (values.std().item() / math.sqrt(len(values)))


@pytest.mark.parametrize(("n", "width"), [(2, 128), (4, 256), (8, 256)])
def test_stationary_gap_follows_theory(generator, n, width):
    """200 networks; theory is of leading order, so n/width is allowed besides five standard errors."""
    gaps = networks.stationary_gaps(n, width, draws=200, generator=generator)
    mean = theory.stationary_gap(n, width)[0]
    allowance = 5 * gaps.std().item() / math.sqrt(200) + mean * n / width
    assert abs(gaps.mean().item() - mean) < allowance
    # Power: the multiplier n/(n+1) in place of n/(n+2) is rejected.
    factor = math.sqrt((1 - (n / (n + 2)) ** 2) / (1 - (n / (n + 1)) ** 2))
    assert abs(gaps.mean().item() - mean * factor) > allowance


def test_stationary_gaps_run_in_groups_of_draws(generator, monkeypatch):
    monkeypatch.setitem(networks._ENTRIES_AT_ONCE, "cpu", 4 * 16 * 3)
    gaps = networks.stationary_gaps(4, 16, draws=7, generator=generator, measured=2)
    assert gaps.shape == (7,)
    assert len(set(gaps.tolist())) == 7


def test_wide_networks_follow_the_map_of_eigenvalues(generator):
    """Width 2000, 40 draws, a nearly collapsed batch: five standard errors and the fluctuation's own size."""
    x = symmetric_batch(4, 2000, cosine=0.999, generator=generator, draws=40)
    depths = [1, 2, 3, 5]
    curves = networks.linear_curves(x, 2000, depths, RMS, relative_tolerance=1e-6, generator=generator)
    path = theory.rescaled_gap_path(np.array([1 + 3 * 0.999, 0.001, 0.001, 0.001]), 5)
    floor = theory.stationary_gap(4, 2000)[0]
    for row, depth in zip(curves.gap, depths, strict=True):
        error = row.std().item() / math.sqrt(40)
        assert abs(row.mean().item() - path[depth]) < 5 * error + 2 * floor**2 / path[depth]
    # Power: one layer more or less is far outside.
    assert errors_apart(curves.gap[1], path[1]) > 20
    assert errors_apart(curves.gap[1], path[3]) > 20


def test_plain_linear_networks_spread_at_the_exact_rate(generator):
    """Width 32, n = 4, 200 draws: the log ratio of singular values grows by a digamma difference a layer."""
    x = gaussian_batch(4, 32, generator=generator, draws=200)
    curves = networks.linear_curves(x, 32, [100, 300], PLAIN, relative_tolerance=1e-6, generator=generator)
    rate = (curves.spread[1] - curves.spread[0]) / 200
    assert errors_apart(rate, theory.spread_rate(4, 32)) < 5
    assert errors_apart(rate, theory.spread_rate(4, 32) * 1.3) > 5
    # Gap and rank follow: the batch is nearly of rank one at depth 300, and rescaling prevents it.
    assert curves.gap[1].mean().item() > 0.8
    assert curves.rank[1].double().mean().item() < 4
    rescaled = networks.linear_curves(x, 32, [300], RMS, relative_tolerance=1e-6, generator=generator)
    assert rescaled.rank.eq(4).all()
    assert rescaled.gap.mean().item() < 0.4


@pytest.mark.parametrize("name", ["RMS", "STD", "RC+RS", "RC", "none"])
def test_linear_networks_never_raise_the_rank(generator, name):
    x = tied_batch(5, 20, [2, 2], generator=generator, draws=3)
    curves = networks.linear_curves(x, 20, [1, 60], Stages.parse(name), relative_tolerance=1e-9, generator=generator)
    assert (curves.rank <= 3 - ("RC" in name)).all()
    # A generic batch of rank three has no ties to keep; few layers, since rescaling amplifies rounding.
    x = gaussian_batch(6, 3, generator=generator, draws=3) @ gaussian_batch(3, 20, generator=generator, draws=3)
    curves = networks.linear_curves(
        x, 20, [1, 2, 3, 4, 5], Stages.parse(name), relative_tolerance=1e-9, generator=generator
    )
    assert (curves.rank == 3).all()


def test_rescaling_keeps_full_numerical_rank_in_wide_networks_only(generator):
    """Sixteen samples, depth 600: kept at width 256, above 16^2/2, and lost at width 32, below it."""
    ranks = {
        width: networks.linear_curves(
            gaussian_batch(16, width, generator=generator, draws=4), width, [600], RMS,
            relative_tolerance=1e-6, generator=generator,
        ).rank
        for width in (32, 256)
    }  # fmt: skip
    assert (ranks[256] == 16).all()
    assert (ranks[32] < 16).all()


def test_rescaling_by_standard_deviations_collapses_the_angles(generator):
    x = gaussian_batch(8, 500, generator=generator, draws=20)
    angles = {
        name: networks.linear_curves(
            x, 500, [20], Stages.parse(name), relative_tolerance=1e-6, generator=generator
        ).mean_angle
        for name in ("RMS", "STD")
    }
    assert angles["STD"].mean().item() < math.radians(20)
    assert errors_apart(angles["RMS"], math.pi / 2) < 6


def test_uncentered_growth_is_the_one_of_a_wide_layer(generator):
    """Width 20 000, n = 13, 50 draws: energy along 1 over energy across it, after one layer of STD."""
    x = symmetric_batch(13, 13, draws=50)
    x = apply_stages(x @ torch.randn(50, 13, 20_000, generator=generator, dtype=torch.float64), Stages.parse("STD"))
    along = x.mean(dim=-2).square().sum(dim=-1) * 13
    across = x.square().sum(dim=(-2, -1)) - along
    assert errors_apart(along / across * 12, theory.uncentered_growth(13)) < 5
    assert errors_apart(along / across * 12, 1.0) > 5


def test_power_law_recovers_exponent_and_error(seed):
    """500 noisy fits: unbiased, and as scattered as the error says."""
    rng = np.random.default_rng(seed)
    widths = np.array([10, 20, 80, 500])
    true = 3 * widths**-0.5
    errors = true * [0.02, 0.05, 0.01, 0.03]
    fits = np.array(
        [
            networks.power_law(widths.tolist(), (true + errors * rng.standard_normal(4)).tolist(), errors.tolist())
            for _ in range(500)
        ]
    )
    error = fits[:, 1].mean()
    assert abs(fits[:, 0].mean() + 0.5) < 5 * error / math.sqrt(500) + error / 20
    assert abs(fits[:, 0].std() / error - 1) < 5 / math.sqrt(1000) + 0.02


def test_recentering_acts_once_in_linear_networks_only(generator):
    x = gaussian_batch(6, 24, generator=generator, draws=3)
    for name in ("RC", "RC+RS"):
        distance = networks.recentering_once_or_always(x, 24, 20, Stages.parse(name), generator=generator)
        assert distance.shape == (20, 3)
        assert distance.max() < 1e-9
    for name in ("RC+NL", "RC+RS+NL"):
        distance = networks.recentering_once_or_always(x, 24, 20, Stages.parse(name), generator=generator)
        assert (distance[0] == 0).all()
        assert distance[1:].min() > 0.05


def test_batch_norm_difference_sees_epsilon_and_dtype(generator):
    x = gaussian_batch(16, 30, generator=generator)
    assert networks.batch_norm_difference(x) < 1e-13
    assert networks.batch_norm_difference(x.float()) < 1e-5
    assert networks.batch_norm_difference(x * 0.01, epsilon=1e-5) > 1e-2
    # The difference of a column is its largest entry times 1 - sqrt(v/(v + eps)).
    v = x.var(dim=0, correction=0)
    expected = ((1 - (v / (v + 0.3)).sqrt()) * apply_stages(x, Stages.parse("RC+RS")).abs().amax(dim=0)).max()
    assert networks.batch_norm_difference(x, epsilon=0.3) == pytest.approx(expected.item(), rel=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x, g: networks.linear_curves(x, 4, [1], Stages.parse("NL"), relative_tolerance=0.1, generator=g),
            "stages are NL",
        ),
        (lambda x, g: networks.linear_curves(x, 4, [], RMS, relative_tolerance=0.1, generator=g), r"depths are \[\]"),
        (
            lambda x, g: networks.linear_curves(x, 4, [0, 2], RMS, relative_tolerance=0.1, generator=g),
            r"depths are \[0, 2\]",
        ),
        (lambda x, g: networks.stationary_gaps(4, 8, draws=0, generator=g), "draws and measured are 0 and 10"),
        (lambda x, g: networks.stationary_gaps(1, 8, draws=2, generator=g), "n must be a batch size of at least 2"),
        (
            lambda x, g: networks.recentering_once_or_always(x, 4, 3, RMS, generator=g),
            "stages are RMS; valid are stages with RC",
        ),
        (lambda x, g: networks.recentering_once_or_always(x, 4, 1, Stages.parse("RC"), generator=g), "depth is 1"),
        (lambda x, g: networks.power_law([8], [1.0], [0.1]), r"widths are \[8\]; valid are two different widths"),
        (lambda x, g: networks.power_law([8, 9], [1.0, 0.0], [0.1, 0.1]), "valid are numbers > 0"),
        (lambda x, g: networks.batch_norm_difference(x[0], epsilon=0.0), "epsilon is 0.0; valid is a number > 0"),
        (lambda x, g: networks.batch_norm_difference(x[0, :1]), "x has 1 samples"),
    ],
)
def test_bad_arguments_are_named(unchecked, generator, call, message):
    with pytest.raises(ValueError, match=message):
        call(gaussian_batch(3, 4, generator=generator, draws=2), generator)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gpu_agrees_with_theory(seed):
    """On a GPU other random numbers: 200 networks of width 256, five standard errors and n/width."""
    g = torch.Generator("cuda").manual_seed(seed)
    gaps = networks.stationary_gaps(4, 256, draws=200, generator=g).cpu()
    mean = theory.stationary_gap(4, 256)[0]
    assert abs(gaps.mean().item() - mean) < 5 * gaps.std().item() / math.sqrt(200) + mean * 4 / 256
    x = gaussian_batch(6, 24, generator=g)
    assert networks.recentering_once_or_always(x, 24, 10, Stages.parse("RC"), generator=g).max() < 1e-9
