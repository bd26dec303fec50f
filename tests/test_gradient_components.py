"""Gradients that differ from sample to sample, in networks: parts, growth, refusals."""

import numpy as np
import pytest
import torch

from bnlib import gradient_components as components
from bnlib import seeds


def test_directions_lie_in_their_spaces():
    for n in (4, 10):
        spaces = components.directions(n)
        assert np.abs(spaces.sum(axis=2)).max() < 1e-12
        assert np.abs(np.diagonal(spaces[2])).max() < 1e-12  # M: zero diagonal
        products = np.einsum("aij,bij->ab", spaces, spaces)
        assert np.abs(products - np.diag(np.diagonal(products))).max() < 1e-10
        assert np.linalg.eigvalsh(spaces[0] + 0.4 * (spaces[1] + spaces[2])).min() > -1e-12


def test_networks_have_the_three_eigenvalues(seed):
    rows = components.component_rows(["tanh"], 8, [64, 128], 3, 150, 4000, lambda *key: seeds.generator(seed, *key))
    for row in rows:
        assert abs(row["monte_carlo_z"]) < 5
        assert abs(row["network_z"]) < 5
    average, _, covariances = rows
    # The power of the test: with one eigenvalue for all spaces the last would be seen to differ.
    assert abs(covariances["network"] - average["theory"]) > 5 * covariances["network_error"]


def test_growth_of_a_negative_part_and_refusals():
    parts = torch.tensor([[[-4.0] * 3, [-2.0] * 3, [1.0] * 3]]).expand(3, 3, 3)
    assert components.component_growth(parts)["norms"].mean == pytest.approx(-2.0)
    with pytest.raises(ValueError, match="at least three layers, got 2"):
        components.component_growth(parts[:, :2])
    with pytest.raises(ValueError, match="n must be an even batch size of at least 4, got 5"):
        components.directions(5)
    with pytest.raises(ValueError, match="layers at least 2, got 8, 2, 1"):
        components.network_components("relu", 4, 8, 1, 2, torch.Generator())
