"""Initial laws: moments, known names, errors."""

import math

import pytest
import torch

from bnlib.initializations import INITIALIZATIONS, draw_bias, draw_weight, initialization, nearest_of_rank


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
