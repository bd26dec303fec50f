"""Initial laws: moments, known names, errors."""

import math

import pytest
import torch

from bnlib.geometry import outlier_summary
from bnlib.initialisations import (
    INITIALIZATIONS,
    cluster_and_outlier,
    dedicated_neurons,
    draw_bias,
    draw_weight,
    imposing_layer,
    initialization,
    nearest_of_rank,
    recentered_weight_scale,
)
from bnlib.layers import recenter


def z_of_variance(sample, variance):
    """How many standard errors the mean square of a sample lies from a variance."""
    squares = sample.flatten().square()
    return float((squares.mean() - variance).abs() / (squares.std() / math.sqrt(squares.numel())))


@pytest.mark.parametrize("name", INITIALIZATIONS)
def test_moments(name, generator):
    law = initialization(name)
    weight = draw_weight(name, 40, 80, generator=generator, draws=20)
    assert weight.shape == (20, 40, 80)
    variance = law.weight_variance(40, 80)
    assert z_of_variance(weight, variance) < 5
    assert abs(float(weight.mean())) < 5 * math.sqrt(variance / weight.numel())
    # The test has power: a law that takes the other fan, or misses a factor of two, is rejected.
    assert z_of_variance(weight, law.weight_variance(80, 40) * (1 if law.fan == "in" else 1.2)) > 5
    assert z_of_variance(weight, 2 * variance) > 5


@pytest.mark.parametrize("name", INITIALIZATIONS)
def test_shape_of_the_law(name, generator):
    # The fourth moment tells the normal law (3) from the uniform one (9/5).
    weight = draw_weight(name, 40, 80, generator=generator, draws=20).flatten()
    fourth = (weight / weight.square().mean().sqrt()) ** 4
    error = float(fourth.std()) / math.sqrt(fourth.numel())
    right, wrong = (3.0, 1.8) if initialization(name).law == "normal" else (1.8, 3.0)
    assert abs(float(fourth.mean()) - right) < 5 * error
    assert abs(float(fourth.mean()) - wrong) > 5 * error


def test_torch_default_is_that_of_nn_linear(generator, seed):
    # nn.Linear draws from the global generator, so compare laws: range and variance, for weights and biases.
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        linear = torch.nn.Linear(50, 4000, dtype=torch.float64)
    ours = draw_weight("torch default", 50, 4000, generator=generator)
    bias = draw_bias("torch default", 50, 4000, generator=generator)
    for theirs, mine in ((linear.weight.detach(), ours), (linear.bias.detach(), bias)):
        assert float(theirs.abs().max()) <= 1 / math.sqrt(50)
        assert float(mine.abs().max()) <= 1 / math.sqrt(50)
        assert z_of_variance(theirs, 1 / 150) < 5
        assert z_of_variance(mine, 1 / 150) < 5


def test_he_has_zero_biases_and_leaves_the_generator_alone(generator):
    before = generator.get_state()
    assert not draw_bias("he", 3, 5, generator=generator, draws=2).any()
    assert torch.equal(before, generator.get_state())


def test_same_seed_same_weights(seed):
    draws = [draw_weight("he", 4, 3, generator=torch.Generator().manual_seed(seed)) for _ in range(2)]
    assert torch.equal(*draws)


def test_nearest_of_rank(generator):
    weight = draw_weight("he", 6, 9, generator=generator, draws=3)
    reduced = nearest_of_rank(weight, 2)
    assert torch.linalg.matrix_rank(reduced).tolist() == [2, 2, 2]
    torch.testing.assert_close(reduced.square().sum(dim=(1, 2)), weight.square().sum(dim=(1, 2)))
    torch.testing.assert_close(nearest_of_rank(weight, 6), weight)
    # Up to its scale it is the best approximation: the residual is orthogonal to it.
    scale = (reduced * weight).sum(dim=(1, 2)) / reduced.square().sum(dim=(1, 2))
    residual = weight - scale[:, None, None] * reduced
    singular = torch.linalg.svdvals(weight)
    torch.testing.assert_close(residual.square().sum(dim=(1, 2)), singular[:, 2:].square().sum(dim=1))


def test_errors(generator, unchecked):
    known = "torch default, he, he uniform, lecun, glorot"
    with pytest.raises(ValueError, match=f"name must be an initialization, one of {known}, got 'kaiming'"):
        initialization("kaiming")
    with pytest.raises(ValueError, match="got None"):
        draw_weight(None, 2, 2, generator=generator)
    with pytest.raises(ValueError, match="fan_in must be a whole number of at least 1, got 0"):
        draw_weight("he", 0, 2, generator=generator)
    with pytest.raises(ValueError, match="draws must be a whole number of at least 1, got True"):
        draw_bias("he", 2, 2, generator=generator, draws=True)
    with pytest.raises(ValueError, match="rank must be from 1 to 2, the smaller dimension of the weights, got 3"):
        nearest_of_rank(torch.eye(2), 3)


def test_dedicated_neurons_of_affinely_independent_samples(generator):
    x = torch.randn(9, 8, generator=generator, dtype=torch.float64) + 3
    for neurons in (9, 20, 5):
        layer = dedicated_neurons(x, neurons)
        h = torch.relu(x @ layer.weight + layer.bias)
        expected = torch.zeros(9, neurons, dtype=torch.float64)
        expected[layer.owner, torch.arange(neurons)] = 1
        torch.testing.assert_close(h, expected, atol=1e-8, rtol=0)
        assert bool(layer.isolated.all())


def test_dedicated_neurons_beyond_the_dimension(generator):
    # In the plane a strict maximum of a linear function is a corner of the hull: inner points share their neuron.
    x = torch.tensor([[0.0, 0], [4, 0], [0, 4], [4, 4], [2.2, 1.9]], dtype=torch.float64)
    layer = dedicated_neurons(x, 5)
    h = torch.relu(x @ layer.weight + layer.bias)
    torch.testing.assert_close(h.diagonal(), torch.ones(5, dtype=torch.float64))
    assert layer.isolated.tolist() == [True] * 4 + [False]
    assert ((h > 0).sum(dim=0) == 1).tolist() == layer.isolated.tolist()
    assert h[:, 4].count_nonzero() > 1


def test_imposing_layer(generator):
    x = torch.randn(2, 6, 5, generator=generator, dtype=torch.float64)
    target = torch.rand(2, 6, 7, generator=generator, dtype=torch.float64)
    weight, bias = imposing_layer(x, target)
    torch.testing.assert_close(x @ weight + bias, target)
    # One sample more than dimensions allow: least squares with an intercept, as numpy has it.
    weight, bias = imposing_layer(x[0, :, :3], target[0])
    design = torch.cat([x[0, :, :3], torch.ones(6, 1, dtype=torch.float64)], dim=1)
    best = torch.linalg.lstsq(design, target[0]).solution
    torch.testing.assert_close(weight, best[:3])
    torch.testing.assert_close(bias, best[3:])


def test_cluster_and_outlier_is_recentering_on_its_batch(generator):
    x = torch.randn(3, 7, 10, generator=generator, dtype=torch.float64)
    layers = cluster_and_outlier(x, 20, 6, generator=generator, draws=3)
    plain = recentered = x
    for weight, bias in layers:
        plain = torch.relu(plain @ weight + bias)
        recentered = torch.relu(recenter(recentered @ weight))
    torch.testing.assert_close(plain, recentered)
    other = torch.randn(3, 7, 10, generator=generator, dtype=torch.float64)
    weight, bias = layers[0]
    assert not torch.allclose(torch.relu(other @ weight + bias), torch.relu(recenter(other @ weight)))


def test_skipped_layers_impose_the_outlier_state(generator):
    x = torch.randn(4, 16, 40, generator=generator, dtype=torch.float64)
    deep = cluster_and_outlier(x, 256, 3, generator=generator, draws=4, skipped=200)
    shallow = cluster_and_outlier(x, 256, 3, generator=generator, draws=4)
    ratios = []
    for layers in (deep, shallow):
        h = x
        for weight, bias in layers:
            h = torch.relu(h @ weight + bias)
        ratios.append(outlier_summary(h))
    assert bool((ratios[0].angle > math.radians(85)).all())
    assert bool((ratios[0].top_over_second > 5).all())
    assert not bool((ratios[1].angle > math.radians(85)).any())


def test_recentered_weight_scale():
    assert recentered_weight_scale(2) == 4.0
    assert recentered_weight_scale(10**6) == pytest.approx(2, abs=1e-5)


def test_errors_of_the_constructions(generator, unchecked):
    with pytest.raises(ValueError, match="x has 1 samples; valid is a batch of at least 2"):
        dedicated_neurons(torch.ones(1, 3), 2)
    with pytest.raises(ValueError, match="neurons must be a whole number of at least 1, got 0"):
        dedicated_neurons(torch.eye(3), 0)
    with pytest.raises(ValueError, match="x holds a sample that equals the mean of all"):
        dedicated_neurons(torch.tensor([[0.0], [1.0], [2.0]]), 3)
    with pytest.raises(ValueError, match="depth must be a whole number of at least 1, got 0"):
        cluster_and_outlier(torch.eye(3), 4, 0, generator=generator)
    with pytest.raises(ValueError, match="n is 1; valid is a batch size of at least 2"):
        recentered_weight_scale(1)
