"""Multipliers in all directions: closed forms against autodiff of the textbook map, and against differences."""

import math

import numpy as np
import pytest
import torch

from bnlib.infinite_width import next_distances
from bnlib.many_outliers import many_outlier_states
from bnlib.outlier_fixed_points import collapsed_state, fixed_points, outlier_state, separatrix
from bnlib.state_stability import (
    all_multipliers,
    brute_force_multipliers,
    class_distances,
    class_stability,
    standard_block,
    symmetric_stability,
    whole_number,
)


def autodiff_multipliers(squared):
    """Eigenvalues of squared distances -> squared distances by torch, through Grams and cosines; no symmetry used."""
    n = len(squared)
    rows, columns = np.triu_indices(n, 1)
    center = torch.eye(n, dtype=torch.float64) - 1.0 / n

    def layer(flat):
        d = torch.zeros(n, n, dtype=torch.float64)
        d = d.index_put((torch.tensor(rows), torch.tensor(columns)), flat)
        k = -center @ (d + d.T) @ center / 2
        diagonal = k.diagonal()
        scale = torch.sqrt(diagonal[:, None] * diagonal[None, :])
        c = (k / scale)[rows, columns]
        j = (torch.sqrt(1 - c * c) + (math.pi - torch.acos(c)) * c) / math.pi
        return diagonal[rows] + diagonal[columns] - 2 * scale[rows, columns] * j

    flat = torch.tensor(squared[rows, columns])
    jacobian = torch.autograd.functional.jacobian(layer, flat).numpy()
    growth = float((layer(flat) / flat).mean())
    values = np.linalg.eigvals(jacobian) / growth
    return values[np.argsort(-np.abs(values))]


@pytest.mark.parametrize("n", [3, 4, 5, 7, 8, 9, 12, 16, 24])
def test_one_outlier_against_autodiff(n):
    for state in fixed_points(n)[1:]:
        oracle = autodiff_multipliers(class_distances(0.0, state.u, n))
        closed = all_multipliers(class_stability(0.0, state.u, n))
        assert len(closed) == len(oracle) == n * (n - 1) // 2
        np.testing.assert_allclose(np.sort(closed), np.sort(oracle.real), atol=1e-9)
        assert np.abs(oracle.imag).max() < 1e-9


@pytest.mark.parametrize("n", [3, 4, 8, 24])
def test_symmetric_state_against_autodiff(n):
    oracle = autodiff_multipliers(np.ones((n, n)) - np.eye(n))
    np.testing.assert_allclose(np.sort(all_multipliers(symmetric_stability(n))), np.sort(oracle.real), atol=1e-11)


@pytest.mark.parametrize(("n", "k"), [(10, 2), (12, 3), (16, 4), (24, 7)])
def test_several_outliers_against_autodiff(n, k):
    states = many_outlier_states(n, k)
    assert len(states) == 2
    for state in states:
        oracle = autodiff_multipliers(class_distances(state.p, state.u, n, k))
        closed = all_multipliers(class_stability(state.p, state.u, n, k))
        np.testing.assert_allclose(np.sort(closed), np.sort(oracle.real), atol=1e-9)


def test_differences_of_the_full_map_agree_too():
    for state in fixed_points(8)[1:]:
        numeric = brute_force_multipliers(next_distances, class_distances(0.0, state.u, 8))
        np.testing.assert_allclose(
            np.sort(numeric.real), np.sort(all_multipliers(class_stability(0.0, state.u, 8))), atol=1e-9
        )


def test_the_oracle_would_see_a_wrong_block():
    """Without its last term the standard block gives other eigenvalues."""
    state = outlier_state(8)
    closed = np.sort(all_multipliers(class_stability(0.0, state.u, 8)))
    oracle = np.sort(autodiff_multipliers(class_distances(0.0, state.u, 8)).real)
    wrong = closed.copy()
    wrong[wrong < 0.3] *= 1.001  # six of the 28
    assert np.abs(closed - oracle).max() < 1e-10 < 1e-4 < np.abs(wrong - oracle).max()


def test_symmetric_state_as_one_outlier_among_equals():
    """The S_n blocks and the S_(n-1) blocks describe the same matrix."""
    n = 9
    by_class = np.sort(all_multipliers(class_stability(0.0, (n - 1) / n, n)))
    np.testing.assert_allclose(by_class, np.sort(all_multipliers(symmetric_stability(n))), atol=1e-12)


@pytest.mark.parametrize("n", [7, 8, 16, 64, 1024, 7.5])
def test_outlier_state_is_stable_and_separatrix_has_one_way_out(n):
    stable = class_stability(0.0, outlier_state(n).u, n)
    assert stable.spectral_radius < 1
    assert stable.unstable_directions == 0
    between = class_stability(0.0, separatrix(n).u, n)
    assert between.unstable_directions == 1
    assert between.block("class").multipliers[0] > 1
    assert symmetric_stability(n).spectral_radius < 1


def test_known_radii():
    assert class_stability(0.0, outlier_state(8).u, 8).spectral_radius == pytest.approx(0.931, abs=5e-4)
    assert class_stability(0.0, outlier_state(16).u, 16).spectral_radius == pytest.approx(0.943, abs=5e-4)
    assert symmetric_stability(8).spectral_radius == pytest.approx(0.956, abs=5e-4)
    assert symmetric_stability(64).spectral_radius == pytest.approx(0.9957, abs=5e-5)


def test_the_collapsed_cluster_is_unstable_in_every_direction_that_opens_it():
    for n in (5, 8, 64):
        found = class_stability(0.0, 0.0, n)
        alpha = n * n / (n * n - 2 * n + 2)
        assert found.block("class").multipliers[0] == pytest.approx(alpha, rel=1e-12)
        assert found.block("cluster pairs").multipliers[0] == pytest.approx(alpha, rel=1e-12)
        assert found.spectral_radius == pytest.approx(collapsed_state(n).multiplier, rel=1e-12)


def test_multiplicities_count_all_directions():
    for n, k in ((3, 1), (4, 1), (4, 2), (5, 2), (6, 3), (9, 4), (10, 8)):
        found = class_stability(0.4, 0.7, n, k)
        assert sum(b.multiplicity * len(b.multipliers) for b in found.blocks) + 1 == n * (n - 1) / 2
    assert class_stability(0.4, 0.7, 4).block("outliers") is None


def test_standard_block_of_two_equal_kinds():
    """Four orthogonal directions paired: own = other = 2; the line y = -other x is kept."""
    block = standard_block(2.0, 2.0, 4.0, 1.1, 0.7, 0.4)
    x, y = block @ [1.0, -2.0]
    assert y == pytest.approx(-2.0 * x)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: class_stability(0.0, 0.1, 2), "n must be a batch size of at least 3, got 2"),
        (lambda: class_stability(0.0, -1.0, 8), "u must be a ratio of squared distances"),
        (lambda: symmetric_stability(2.5), "n must be a batch size of at least 3, got 2.5"),
        (lambda: class_distances(0.0, 0.1, 7.5), "n must be a whole number where samples are counted, got 7.5"),
        (lambda: class_distances(0.0, 0.1, 8, 9), "k must be 1 or a number of distinguished samples"),
        (lambda: whole_number("n", math.nan), "n must be"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
