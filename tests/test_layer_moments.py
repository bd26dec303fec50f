"""Tests of bnlib.layer_moments against layers drawn one by one and against the exact moments."""

import math

import pytest
import torch

from bnlib import cluster_growth, collapsed_cluster, invariant_geometry, layer_moments

DRAWS = 20_000


def definition(n: int, dimension: int, angle: float = 0.0) -> torch.Tensor:
    return torch.from_numpy(invariant_geometry.invariant_representation(n, dimension, angle))


def one_by_one(x: torch.Tensor, width: int, draws: int, generator: torch.Generator, variance: float) -> torch.Tensor:
    """Norms of row 0 after the layer, from weights that are drawn layer by layer."""
    norms = []
    for _ in range(draws):
        w = torch.randn(x.shape[1], width, generator=generator, dtype=x.dtype) * math.sqrt(variance / x.shape[1])
        h = x @ w
        norms.append((h - h.mean(dim=0)).clamp(min=0)[0].norm())
    return torch.stack(norms)


def test_same_law_as_layers_drawn_one_by_one(generator):
    x = definition(4, 3)
    many = layer_moments.sampled_moment(
        layer_moments.sample_layers(x, 3, DRAWS, generator=generator, weight_variance=2.0).outlier_norm
    )
    single = layer_moments.sampled_moment(one_by_one(x, 3, 2000, generator, 2.0))
    error = math.hypot(many.standard_error, single.standard_error)
    assert abs(many.mean - single.mean) < 5 * error
    wrong = layer_moments.sampled_moment(one_by_one(x, 3, 2000, generator, 3.0))
    assert abs(many.mean - wrong.mean) > 5 * math.hypot(many.standard_error, wrong.standard_error)


@pytest.mark.parametrize("draw", ["dense", "gram_root"])
@pytest.mark.parametrize("n", [2, 8])
def test_exact_moments(n, draw, generator):
    width = 6
    variance = 2 * float(invariant_geometry.alpha_invariance(n))
    sample = layer_moments.sample_layers(
        definition(n, width), width, DRAWS, generator=generator, weight_variance=variance, draw=draw
    )
    exact = invariant_geometry.exact_moments(n, width)
    for values, expected in (
        (sample.outlier_norm, exact.first_outlier),
        (sample.outlier_norm**2, exact.second_outlier),
        (sample.cluster_norm, exact.first_cluster),
        (sample.cluster_norm**2, exact.second_cluster),
    ):
        moment = layer_moments.sampled_moment(values)
        assert abs(moment.mean - float(expected)) < 5 * moment.standard_error
    first = layer_moments.sampled_moment(sample.outlier_norm)
    assert abs(first.mean - 1.0) > 5 * first.standard_error
    assert len(sample.outlier_norm) == DRAWS
    if draw == "dense":
        assert sample.largest_inner == 0.0


def test_mean_representation(generator):
    n, width = 5, 4
    variance = 2 * float(invariant_geometry.alpha_invariance(n))
    mean = layer_moments.sample_layers(
        definition(n, width), width, DRAWS, generator=generator, weight_variance=variance
    ).mean_representation
    assert mean.shape == (n, width)
    # every entry is sqrt(2 / width) / sqrt(2 pi) for the odd sample; the entries' standard deviation is below 1
    expected = math.sqrt(1 / (math.pi * width))
    assert (mean[0] - expected).abs().max() < 5 / math.sqrt(DRAWS)
    cosine = (mean[0] @ mean[1]) / (mean[0].norm() * mean[1].norm())
    assert cosine > 0.99  # the mean representation is not orthogonal at all


@pytest.mark.parametrize(("n", "width"), [(3, 4), (8, 16)])
def test_cluster_growth(n, width, generator):
    x = definition(n, n, 1e-7)
    growth = layer_moments.sampled_moment(layer_moments.sample_cluster_growth(x, width, DRAWS, generator=generator))
    assert abs(growth.mean - cluster_growth.growth_rate(n, width)) < 5 * growth.standard_error
    assert abs(growth.mean) > 5 * growth.standard_error  # no growth at all is rejected


def test_cluster_growth_leaves_out_layers_of_one_sign(generator):
    """At width 2 half of the layers show both the cluster and the odd sample to some neuron."""
    draws = 4000
    kept = len(layer_moments.sample_cluster_growth(definition(8, 8, 1e-7), 2, draws, generator=generator))
    error = math.sqrt(draws / 4)
    assert abs(kept - draws / 2) < 5 * error
    assert abs(kept - 3 * draws / 4) > 5 * error  # would be the count without the second condition


@pytest.mark.parametrize(("n", "width"), [(2, 3), (3, 2), (8, 6)])
def test_collapsed_path(n, width, generator):
    depth, draws = 6, 3000
    variance = 2 * float(invariant_geometry.alpha_invariance(n))
    path = layer_moments.sample_collapsed_path(
        definition(n, width), depth, draws, generator=generator, weight_variance=variance
    )
    assert path.tied.all()
    assert path.largest_inner < 1e-12
    step = collapsed_cluster.scale_step(n, width, variance)
    moment = layer_moments.sampled_moment(path.log_step.flatten())
    assert abs(moment.mean - step.mean) < 5 * moment.standard_error
    assert abs(moment.mean) > 5 * moment.standard_error  # the expected square is kept, the log is not
    squares = layer_moments.sampled_moment((path.log_step - step.mean).flatten() ** 2)
    assert abs(squares.mean - step.variance) < 5 * squares.standard_error
    mixed = path.log_ratio.isfinite()
    share = 1 - 2.0 ** (1 - width)
    assert abs(mixed.double().mean().item() - share) < 5 * math.sqrt(share * (1 - share) / mixed.numel())
    centered = path.log_ratio[mixed] - math.log(n - 1)
    assert abs(layer_moments.sampled_moment(centered).mean) < 5 * layer_moments.sampled_moment(centered).standard_error
    squares = layer_moments.sampled_moment(centered**2)
    assert abs(squares.mean - collapsed_cluster.log_ratio_variance(width)) < 5 * squares.standard_error
    assert abs(squares.mean - collapsed_cluster.log_ratio_variance(width + 2)) > 5 * squares.standard_error


@pytest.mark.parametrize("angle", [0.0, 1.0, math.pi / 2])
@pytest.mark.parametrize(("n", "width"), [(3, 3), (8, 6)])
def test_small_differences_grow_at_the_same_rate_in_every_direction(n, width, angle, generator):
    logs = layer_moments.sample_small_differences(n, width, 4, 10_000, generator=generator, start_angle=angle)
    for layer in logs:
        moment = layer_moments.sampled_moment(layer)
        assert abs(moment.mean - cluster_growth.growth_rate(n, width)) < 5 * moment.standard_error
    pooled = layer_moments.sampled_moment(logs.flatten())
    assert abs(pooled.mean - cluster_growth.growth_rate(n)) > 5 * pooled.standard_error


def test_small_differences_are_what_a_real_layer_does(generator):
    """The linear rule against a network of dense weights, for a cluster open by 1e-9 in a chosen direction."""
    n, width, size = 4, 5, 1e-9
    x = definition(n, width)
    e = x[0] - x[1]
    direction = torch.randn(width, generator=generator, dtype=x.dtype)
    opened = x.clone()
    opened[1] += size * direction
    opened[2] -= size * direction
    w = torch.randn(width, width, generator=generator, dtype=x.dtype)
    h = opened @ w
    y = torch.relu(h - h.mean(dim=0))
    z = e @ w
    expected = torch.where(z < 0, direction @ w, 0.0)
    torch.testing.assert_close((y[1] - y[2]) / (2 * size), expected, rtol=1e-5, atol=1e-5)
    across = torch.where(z < 0, z, (n - 1) * z) / n
    torch.testing.assert_close(y[0] - y[3], across, rtol=1e-5, atol=1e-5)


def test_chunks_make_no_difference(monkeypatch):
    x = definition(3, 2)
    monkeypatch.setattr(layer_moments, "_BLOCK_ENTRIES", 60)  # ten draws at a time
    sample = layer_moments.sample_layers(x, 2, 25, generator=torch.Generator().manual_seed(1))
    assert sample.outlier_norm.shape == sample.cluster_norm.shape == (25,)
    positive = sample.outlier_norm[sample.outlier_norm > 0].tolist()  # at width 2 one layer in four is silent
    assert len(set(positive)) == len(positive) > 10


def test_quiet_neurons():
    x = torch.tensor([[4.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.01, 1.0]])
    assert layer_moments.quiet_neuron_share(x, 0.0).item() == pytest.approx(1 / 3)
    assert layer_moments.quiet_neuron_share(x, 0.1).item() == pytest.approx(2 / 3)
    assert layer_moments.quiet_neuron_share(torch.zeros(5, 2, 3), 0.0).tolist() == [1.0] * 5


def test_the_jackknife_knows_how_far_a_cosine_strays(generator):
    width, angle = 400, 1.0
    z = torch.randn(300, 2, width, generator=generator, dtype=torch.float64)
    rows = torch.stack([z[:, 0], math.cos(angle) * z[:, 0] + math.sin(angle) * z[:, 1]], dim=1)
    found = [layer_moments.sampled_cosine(pair) for pair in rows]
    cosines = torch.tensor([f.mean for f in found], dtype=torch.float64)
    errors = torch.tensor([f.standard_error for f in found], dtype=torch.float64)
    # delta method: the cosine of Gaussian coordinates has the deviation (1 - c^2)/sqrt(width)
    expected = math.sin(angle) ** 2 / math.sqrt(width)
    assert abs(cosines.mean().item() - math.cos(angle)) < 5 * expected / math.sqrt(300)
    assert abs(errors.mean().item() / expected - 1) < 0.05
    assert abs(cosines.std().item() / errors.mean().item() - 1) < 0.25  # six standard errors of a deviation of 300
    # the error of a single coordinate, without the average over them, is refused
    assert abs(errors.mean().item() * math.sqrt(width) / expected - 1) > 0.05


def test_the_cosine_of_two_rows(generator):
    rows = torch.randn(2, 7, generator=generator, dtype=torch.float64)
    found = layer_moments.sampled_cosine(rows)
    assert found.mean == pytest.approx(torch.cosine_similarity(rows[0], rows[1], dim=0).item())
    kept = [rows[:, [j for j in range(7) if j != k]] for k in range(7)]
    each = torch.stack([torch.cosine_similarity(r[0], r[1], dim=0) for r in kept])
    assert found.standard_error == pytest.approx((each.std().item()) * 6 / math.sqrt(7))
    assert layer_moments.sampled_cosine(torch.stack([rows[0], -3 * rows[0]])).standard_error < 1e-12


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda g: layer_moments.sampled_moment(torch.ones(1)),
            r"values must hold at least two draws .*got shape \(1,\)",
        ),
        (lambda g: layer_moments.sample_layers(torch.eye(2), 0, 5, generator=g), "width must be a whole number"),
        (lambda g: layer_moments.sample_layers(torch.eye(2), 3, 0, generator=g), "draws must be a whole number"),
        (lambda g: layer_moments.sample_layers(torch.ones(1, 2), 3, 5, generator=g), "x has 1 samples"),
        (
            lambda g: layer_moments.sample_cluster_growth(definition(4, 4), 3, 5, generator=g),
            "x must have different rows 1 and 2, got two equal samples.",
        ),
        (
            lambda g: layer_moments.sample_collapsed_path(torch.eye(3), 2, 2, generator=g),
            "x must hold one odd sample, first, and others that are equal to each other, got another batch.",
        ),
        (
            lambda g: layer_moments.sample_collapsed_path(definition(3, 3), 0, 2, generator=g),
            "depth must be a whole number of at least 1, got 0.",
        ),
        (
            lambda g: layer_moments.sample_collapsed_path(definition(3, 3), 1, 2, generator=g, weight_variance=0.0),
            "weight_variance must be positive and finite, got 0.0.",
        ),
        (
            lambda g: layer_moments.sample_small_differences(2, 3, 1, 2, generator=g),
            "n must be a whole number of at least 3, got 2.",
        ),
        (
            lambda g: layer_moments.sample_small_differences(3, 3, 1, 2, generator=g, start_angle=4.0),
            "start_angle must be between 0 and pi radians, got 4.0.",
        ),
        (
            lambda g: layer_moments.sampled_cosine(torch.ones(2, 1)),
            r"rows must be two vectors of at least two coordinates, got shape \(2, 1\)",
        ),
        (
            lambda g: layer_moments.quiet_neuron_share(torch.eye(2), -1.0),
            "relative_threshold must be 0 or more, got -1.0",
        ),
    ],
)
def test_messages(call, sentence, generator):
    with pytest.raises(ValueError, match=sentence):
        call(generator)
