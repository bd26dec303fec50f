r"""Exact linear algebra of floats, modulo a prime: rank without a tolerance, in batches, on any device.

A float is a binary fraction $M 2^e$ and so has a residue modulo an odd prime. Sums and products of residues are the
residues of exact sums and products: nothing is rounded. A rank modulo a prime is never larger than the true rank, and
smaller only if the prime divides every minor of the true rank's size, a coincidence of about one in two thousand
million for numbers with random digits.
"""

from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

# The largest prime below 2^31 other than 2^31 - 1, modulo which powers of two would repeat after 31 steps.
PRIME = 2_147_483_629

_MANTISSA_BITS = 53
_SMALLEST_EXPONENT = -1200
_CHUNK = 32  # 32 products below 2^31 * 2^16 add up to less than 2^53: exact in float64


@cache
def _powers_of_two(device: str) -> Int[Tensor, "exponents"]:
    """Residues of 2^e for every exponent e of a float64."""
    powers = [pow(2, exponent, PRIME) for exponent in range(_SMALLEST_EXPONENT, 1100)]
    return torch.tensor(powers, dtype=torch.int64, device=device)


def residues(x: Float[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Return the residue of each float, as the binary fraction that it is.

    Args:
        x: finite numbers, float32 or float64, any shape, no unit.

    Returns:
        Int64, the same shape, from 0 to PRIME - 1.

    Example:
        >>> half = residues(torch.tensor([0.5, -1.0], dtype=torch.float64))
        >>> (2 * half[0] % PRIME).item(), (half[1] + 1).item() == PRIME
        (1, True)
    """
    mantissa, exponent = torch.frexp(x.double())
    integer = torch.ldexp(mantissa, torch.tensor(_MANTISSA_BITS, device=x.device)).to(torch.int64)
    power = _powers_of_two(str(x.device))[exponent.to(torch.int64) - _MANTISSA_BITS - _SMALLEST_EXPONENT]
    return integer % PRIME * power % PRIME


def matmul(a: Int[Tensor, "*batch m k"], b: Int[Tensor, "*batch k n"]) -> Int[Tensor, "*batch m n"]:
    """Return the matrix product of residues.

    The right factor is split into halves of 16 bits, so that float64 products and sums are exact and the fast
    floating-point routines can be used.

    Args:
        a: residues, int64.
        b: residues, int64, the same leading dimensions.

    Returns:
        The residues of the product.

    Example:
        >>> a = torch.full((1, 1), PRIME - 1)
        >>> matmul(a, a).item()
        1
    """
    low, high = (b & 0xFFFF).double(), (b >> 16).double()
    left = a.double()
    total = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=torch.int64, device=a.device)
    for begin in range(0, a.shape[-1], _CHUNK):
        part = left[..., begin : begin + _CHUNK]
        low_product = (part @ low[..., begin : begin + _CHUNK, :]).to(torch.int64)
        high_product = (part @ high[..., begin : begin + _CHUNK, :]).to(torch.int64)
        total += low_product + ((high_product % PRIME) << 16)
        total %= PRIME
    return total


def eliminate(
    rows: Int[Tensor, "draws m k"], pivot_row: Int[Tensor, "draws"], column: Int[Tensor, "draws m"]
) -> Int[Tensor, "draws m k"]:
    """Combine the rows of each matrix with its pivot row so that `column` becomes zero, the pivot row included.

    Row l becomes column[pivot] * row l - column[l] * pivot row.

    Args:
        rows: residues, one matrix a draw.
        pivot_row: index of the pivot row of each draw.
        column: the column to clear, its pivot entry not zero.

    Returns:
        The new rows; the pivot row is zero.

    Example:
        >>> rows = torch.tensor([[[1, 5], [2, 7]]])
        >>> eliminate(rows, torch.tensor([0]), rows[:, :, 0])
        tensor([[[         0,          0],
                 [         0, 2147483626]]])
    """
    pivot = column.gather(1, pivot_row[:, None])
    chosen = rows.gather(1, pivot_row[:, None, None].expand(-1, 1, rows.shape[-1]))
    return (pivot[:, :, None] * rows % PRIME - column[:, :, None] * chosen % PRIME) % PRIME


def rank(matrix: Int[Tensor, "*draws m k"]) -> Int[Tensor, "*draws"]:
    """Return the rank modulo the prime of each matrix of residues.

    Args:
        matrix: residues, int64.

    Returns:
        Int64, from 0 to min(m, k).

    Example:
        >>> rank(residues(torch.tensor([[1.0, 2.0], [0.5, 1.0]], dtype=torch.float64))).item()
        1
    """
    rows = matrix.reshape(-1, *matrix.shape[-2:])
    found = torch.zeros(len(rows), dtype=torch.int64, device=matrix.device)
    for index in range(rows.shape[-1]):
        column = rows[:, :, index]
        has_pivot = (column != 0).any(dim=1)
        cleared = eliminate(rows, (column != 0).to(torch.int64).argmax(dim=1), column)
        rows = torch.where(has_pivot[:, None, None], cleared, rows)
        found += has_pivot
    return found.reshape(matrix.shape[:-2])
