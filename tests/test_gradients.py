"""Measured gradients: against the formula of one layer, finite differences, exact zeros, messages."""

import math

import numpy as np
import pytest
import torch

from bnlib import gradients
from bnlib.gradient_theory import parsed_activation
from bnlib.mean_field import relu_gradient_growth


def naive_network(x, width, layers, name, generator, epsilon=0.0, normalization="RC+RS"):
    """The same network with weights as leaves: hidden and weight gradients by autograd on everything."""
    phi, weights, pre, representation = gradients.torch_activation(name), [], [], x
    for _ in range(layers):
        fan_in = representation.shape[-1]
        weight = torch.randn(fan_in, width, generator=generator, dtype=x.dtype) * math.sqrt(2 / fan_in)
        weights.append(weight.requires_grad_())
        pre.append(representation @ weight)
        representation = phi(gradients.normalized(pre[-1], normalization, epsilon))
    loss = (torch.randn(representation.shape, generator=generator, dtype=x.dtype) * representation).sum()
    slopes = torch.autograd.grad(loss, pre + weights)
    return [one.square().sum() for one in slopes[:layers]], [one.square().sum() for one in slopes[layers:]]


@pytest.mark.parametrize("normalization", ["RC+RS", "RC", "RMS", "none"])
def test_norms_are_those_of_autograd_with_weights_as_leaves(normalization, generator, seed):
    x = torch.randn(1, 6, 9, generator=generator, dtype=torch.float64)
    found = gradients.network_gradients(
        x, 12, 4, "tanh", generator=torch.Generator().manual_seed(seed), normalization=normalization
    )
    other = torch.Generator().manual_seed(seed)
    hidden, weights = naive_network(x[0], 12, 4, "tanh", other, normalization=normalization)
    assert torch.allclose(found.hidden[0], torch.stack(hidden))
    assert torch.allclose(found.weights[0], torch.stack(weights))


def test_two_samples_have_no_gradient_below_the_top(generator):
    x = torch.randn(3, 2, 10, generator=generator, dtype=torch.float64)
    exact = gradients.network_gradients(x, 16, 4, "relu", generator=generator)
    assert float(exact.hidden.max()) < 1e-20
    assert float(gradients.network_gradients(x, 16, 4, "relu", generator=generator, epsilon=0.1).hidden.min()) > 1e-20


def test_growth_in_networks_is_the_theory(seed):
    stream = torch.Generator().manual_seed(seed)
    x = torch.randn(12, 16, 256, generator=stream, dtype=torch.float64)
    growth = gradients.growth_per_layer(gradients.network_gradients(x, 256, 6, "relu", generator=stream).hidden)
    theory = relu_gradient_growth(16)
    assert abs(growth.mean - theory) < 5 * growth.standard_error + 0.02
    assert abs(growth.mean - math.sqrt(theory)) > 5 * growth.standard_error + 0.02  # norms for squared norms


def test_growth_does_not_depend_on_the_weight_variance(seed):
    x = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = [
        gradients.growth_per_layer(
            gradients.network_gradients(
                x, 16, 4, "relu", generator=torch.Generator().manual_seed(seed), weight_variance=value
            ).hidden
        ).mean
        for value in (0.3, 3.0)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-10)


def test_extrapolation_removes_what_is_proportional_to_one_over_width():
    pair = [gradients.Growth(2 + 8 / width, 0.1) for width in (64, 128)]
    found = gradients.extrapolated(*pair)
    assert found.mean == pytest.approx(2)
    assert found.standard_error == pytest.approx(0.1 * math.sqrt(5))


def test_standard_error_has_the_right_size(seed):
    stream = torch.Generator().manual_seed(seed)
    logs = 0.1 * torch.randn(2000, 20, 2, generator=stream, dtype=torch.float64)
    found = [gradients.growth_per_layer(one.exp(), skip=0) for one in logs]
    spread = np.std([one.mean for one in found])
    assert 0.9 < np.mean([one.standard_error for one in found]) / spread < 1.1


def test_numpy_and_torch_activations_agree():
    x = np.linspace(-3, 3, 13)
    for name in (
        "identity",
        "relu",
        "abs",
        "tanh",
        "sigmoid",
        "gelu",
        "silu",
        "sin",
        "leaky 0.3",
        "power 2.5",
        "tanh 0.5",
    ):
        assert np.allclose(parsed_activation(name)(x), gradients.torch_activation(name)(torch.tensor(x)).numpy())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, g: gradients.network_gradients(x[:, :1], 4, 3, "relu", generator=g), "at least two samples"),
        (lambda x, g: gradients.network_gradients(x, 0, 3, "relu", generator=g), "width must be at least 1"),
        (lambda x, g: gradients.network_gradients(x, 4, 3, "sigh", generator=g), "name must be one of"),
        (lambda x, g: gradients.network_gradients(x, 4, 3, "relu", generator=g, weight_variance=0), "must be positive"),
        (lambda x, g: gradients.growth_per_layer(torch.zeros(2, 4)), "zero or not a number"),
        (lambda x, g: gradients.growth_per_layer(torch.ones(1, 4)), "two networks and two layers"),
        (lambda x, g: gradients.normalized(x, "RS"), "normalization must be RC[+]RS, RC, RMS or none, got 'RS'"),
        (lambda x, g: gradients.normalized(x, "RC", -1.0), "epsilon must be at least 0, got -1.0"),
        (lambda x, g: gradients.torch_activation("leaky x"), "name must end in a number"),
        (lambda x, g: gradients.extrapolated(gradients.Growth(1.0, 0.1), gradients.Growth(1.0, 0.1), 1), "above 1"),
    ],
)
def test_messages(call, message, generator, unchecked):
    x = torch.randn(1, 4, 5, generator=generator, dtype=torch.float64)
    with pytest.raises(ValueError, match=message):
        call(x, generator)
