"""Singular values of products of Jacobians, against torch's own Jacobian."""

import math

import pytest
import torch

from bnlib import jacobian_products, seeds
from bnlib.gradients import normalized, torch_activation


def test_jacobian_of_two_layers_is_that_of_torch(seed):
    n, width, phi = 5, 6, torch_activation("tanh")
    found = jacobian_products.singular_values(n, width, [1, 2], "tanh", seeds.generator(seed, "jacobian"), skip=1)
    stream = seeds.generator(seed, "jacobian")
    x = torch.randn(n, width, generator=stream, dtype=torch.float64)
    weights = [
        torch.randn(width, width, generator=stream, dtype=torch.float64) * math.sqrt(2 / width) for _ in range(3)
    ]

    def layers(x, chosen):
        for weight in chosen:
            x = phi(normalized(x @ weight, "RC+RS"))
        return x

    for depth, below, above in ((1, weights[:2], weights[2:]), (2, weights[:1], weights[1:])):
        full = torch.autograd.functional.jacobian(lambda x, above=above: layers(x, above), layers(x, below))
        exact = torch.linalg.svdvals(full.reshape(n * width, n * width))
        assert torch.allclose(found[depth], exact, atol=1e-10)
        assert int((exact > 1e-9).sum()) <= (n - 2) * width


def test_rows_and_refusals():
    rows = jacobian_products.spectrum_rows(["relu"], 6, 16, [1, 4], 4, lambda *key: seeds.generator(0, *key))
    assert rows[1]["growth"] > 1
    assert rows[1]["largest"] > rows[1]["median"]
    with pytest.raises(ValueError, match="networks must be at least 2, got 1"):
        jacobian_products.spectrum_rows(["relu"], 6, 8, [1], 1, lambda *key: seeds.generator(0, *key))
    with pytest.raises(ValueError, match="ascending numbers of at least 1, got \\[2, 1\\]"):
        jacobian_products.singular_values(4, 4, [2, 1], "relu", torch.Generator())
    with pytest.raises(ValueError, match="n must be a batch size of at least 3, got 2"):
        jacobian_products.singular_values(2, 4, [1], "relu", torch.Generator())
