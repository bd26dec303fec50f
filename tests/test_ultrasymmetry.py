"""Operators that permutations leave alone: naive application, spectra, formulas, the layer's own derivative."""

import numpy as np
import pytest

from bnlib.ultrasymmetry import (
    PATTERNS,
    layer_eigenvalues,
    layer_operator,
    lifted_eigenvector_error,
    operator_facts,
    operator_matrix,
    pattern,
    projected_eigenvalues,
    semidirect,
    shared_spectrum_error,
    symmetric_basis,
)


def _random(seed):
    return dict(zip(PATTERNS, np.random.default_rng(seed).standard_normal(10).tolist(), strict=True))


def test_the_matrix_is_the_naive_sum(seed):
    n, c = 4, _random(seed)
    s = np.random.default_rng(seed).standard_normal((n, n))
    s = s + s.T
    naive = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            naive[i, j] = sum(c[pattern(i, j, k, m)] * s[k, m] for k in range(n) for m in range(n))
    basis = symmetric_basis(n)
    coordinates = operator_matrix(c, n) @ np.einsum("aij,ij->a", basis, s)
    assert np.einsum("a,aij->ij", coordinates, basis) == pytest.approx(naive, abs=1e-12)


@pytest.mark.parametrize("n", [5, 7])
def test_spectra_and_formulas(n, seed):
    c = _random(seed)
    facts = operator_facts(operator_matrix(c, n), projected_eigenvalues(c, n), n)
    assert sorted(facts.multiplicities) == sorted([1, 1, n - 1, n - 1, n * (n - 3) // 2])
    assert sorted(facts.centered_multiplicities) == sorted([1, n - 1, n * (n - 3) // 2])
    assert facts.formula_error < 1e-10
    assert facts.leakage < 1e-10
    assert facts.centered_asymmetry < 1e-12 < facts.asymmetry
    wrong = projected_eigenvalues(c, n) | {"M": projected_eigenvalues(c, n)["M"] + 0.1}
    assert operator_facts(operator_matrix(c, n), wrong, n).leakage > 1e-3  # power


def test_semidirect_operators():
    n, u, v, w = 6, 1.3, 0.4, 0.7
    found = projected_eigenvalues(semidirect(u, v, w), n)
    assert found["G"] == pytest.approx(((n - 1) * (u - 2 * v) + w) / n)
    assert found["L"] == pytest.approx(((n - 2) * (u - 2 * v) + 2 * w) / n)
    assert found["M"] == w


def test_the_layer():
    facts = operator_facts(layer_operator(5), layer_eigenvalues(5), 5)
    assert facts.formula_error < 1e-7
    assert facts.centered_asymmetry < 1e-7
    assert facts.asymmetry > 0.1
    assert facts.largest_cosine > 0.1
    assert shared_spectrum_error(5) < 1e-7


def test_lifted_eigenvectors(seed):
    assert lifted_eigenvector_error(4, np.random.default_rng(seed)) < 1e-8


def test_errors(unchecked):
    with pytest.raises(ValueError, match="got none for 12\\|34"):
        operator_matrix({name: 1.0 for name in PATTERNS[:-1]}, 4)
    with pytest.raises(ValueError, match="at least 4, got 3"):
        operator_matrix(_random(0), 3)
    with pytest.raises(ValueError, match="matrix must have shape"):
        operator_facts(np.eye(3), {}, 4)
    with pytest.raises(ValueError, match="at least 2, got 1"):
        symmetric_basis(1)
