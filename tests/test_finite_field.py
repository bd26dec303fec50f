"""Arithmetic modulo the prime against Python's integers and fractions."""

from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch

from bnlib.collinear import exact_rank
from bnlib.finite_field import PRIME, eliminate, matmul, rank, residues


def naive_residue(value: float) -> int:
    exact = Fraction(value)
    return exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME


def test_the_modulus_is_prime():
    assert sympy.isprime(PRIME)
    assert sympy.n_order(2, PRIME) > 2000  # no two powers of two of float64 agree


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_residues_are_those_of_the_binary_fractions(dtype, generator):
    values = torch.randn(200, generator=generator, dtype=dtype) * 10 ** torch.linspace(-30, 30, 200, dtype=dtype)
    assert residues(values).tolist() == [naive_residue(value) for value in values.tolist()]


def test_residues_at_the_ends_of_the_range():
    extreme = [0.0, -0.0, 1.0, -1.0, 5e-324, 2.0**-1022, 1.7976931348623157e308, 0.1]
    assert residues(torch.tensor(extreme, dtype=torch.float64)).tolist() == [naive_residue(v) for v in extreme]


@pytest.mark.parametrize("inner", [1, 31, 32, 33, 200])
def test_matmul_equals_integers(inner, generator):
    a = torch.randint(PRIME, (2, 3, inner), generator=generator)
    b = torch.randint(PRIME, (2, inner, 4), generator=generator)
    a[0, 0], b[0, :, 0] = PRIME - 1, PRIME - 1  # the largest products
    expected = np.matmul(a.numpy().astype(object), b.numpy().astype(object)) % PRIME
    assert (matmul(a, b).numpy() == expected.astype(np.int64)).all()


def test_eliminate_clears_the_column(generator):
    rows = torch.randint(PRIME, (3, 4, 5), generator=generator)
    cleared = eliminate(rows, torch.tensor([0, 1, 3]), rows[:, :, 2])
    assert (cleared[:, :, 2] == 0).all()
    assert all((cleared[i, p] == 0).all() for i, p in enumerate([0, 1, 3]))
    expected = (int(rows[0, 0, 2]) * int(rows[0, 1, 4]) - int(rows[0, 1, 2]) * int(rows[0, 0, 4])) % PRIME
    assert cleared[0, 1, 4] == expected


def test_rank_equals_the_exact_rank(seed):
    rng = np.random.default_rng(seed)
    for true_rank in range(1, 6):
        x = (rng.integers(-9, 10, (6, true_rank)) @ rng.integers(-9, 10, (true_rank, 8))).astype(float)
        assert rank(residues(torch.from_numpy(x))) == exact_rank(x)


def test_rank_has_no_tolerance():
    near = torch.tensor([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]], dtype=torch.float64)
    assert rank(residues(near)) == 2
    assert torch.linalg.matrix_rank(near) == 1
