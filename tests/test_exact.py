"""Exact numbers and their way to floats."""

import math
import random
import re
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from bnlib.exact import batch_parameter, geometry_from_gram, log_ratio, parse_batch, sort_batch, sqrt_ratio
from bnlib.parameters import ParameterError


def _naive_angles(vectors):
    """Angles in 60-digit decimals by the cosine, good as long as no angle is below 1e-20."""
    getcontext().prec = 60

    def dot(u, v):
        return sum(Decimal(a) * Decimal(b) for a, b in zip(u, v, strict=True))

    angles = [[math.nan] * len(vectors) for _ in vectors]
    for i, u in enumerate(vectors):
        for j, v in enumerate(vectors):
            sine = (dot(u, u) * dot(v, v) - dot(u, v) ** 2).sqrt()
            angles[i][j] = math.atan2(float(sine), float(dot(u, v)))
    return np.array(angles)


def test_geometry_of_vectors_equals_naive(seed):
    draw = random.Random(seed)
    vectors = [[draw.randrange(1, 10**6) for _ in range(5)] for _ in range(6)]
    gram = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in vectors] for u in vectors]
    counts, groups = (1, 2, 1, 1, 3, 1), (1, 0, 2, 3, 4, 5, 4, 1, 4)
    found = geometry_from_gram(gram, counts, groups)
    np.testing.assert_allclose(found.angles, _naive_angles(vectors)[np.ix_(groups, groups)], rtol=1e-14, atol=0)
    lengths = np.linalg.norm(np.array(vectors, dtype=float), axis=1)[list(groups)]
    np.testing.assert_allclose(found.norms, lengths / np.linalg.norm(lengths), rtol=1e-14)
    assert found.norm_min == found.norms[1]
    assert found.norm_max == found.norms[5]
    assert found.norm_interior == max(found.norms[[0, 2, 3, 4]])
    escaped = 5 if gram[5][5] >= gram[0][0] else 1
    assert found.gap == pytest.approx(max(math.pi / 2 - found.angles[escaped][[0, 2, 3, 4]]), rel=1e-12)


def test_geometry_of_a_zero_sample():
    found = geometry_from_gram([[4, 0, 0], [0, 0, 0], [0, 0, 9]], (1, 1, 1), (0, 1, 2))
    assert np.isnan(found.angles[1]).all()
    assert found.norm_interior == 0
    assert found.gap is None
    assert found.angle_extremes == math.pi / 2


def test_tiny_and_nearly_right_angles_keep_their_digits():
    step = 10**40
    gram = [[step**2 + 1, step**2, 1], [step**2, step**2, 0], [1, 0, 1]]
    angles = geometry_from_gram(gram, (1, 1, 1), (0, 1, 2)).angles
    assert angles[0, 1] == pytest.approx(1e-40, rel=1e-14)
    gap = geometry_from_gram([[1, 1, 0], [1, step**2, 0], [0, 0, 1]], (1, 1, 1), (0, 1, 2)).gap
    assert gap == pytest.approx(1e-40, rel=1e-14)


@pytest.mark.parametrize("digits", [0, 1, 15, 400, 5000])
def test_roots_and_logarithms_of_huge_integers(digits, seed):
    draw = random.Random(seed)
    p, q = draw.randrange(1, 10**6), draw.randrange(1, 10**6)
    huge = 10**digits + draw.randrange(10**6)
    assert sqrt_ratio(p * huge, q * huge) == pytest.approx(math.sqrt(p / q), rel=2**-51)
    assert sqrt_ratio(p, q * huge**2) * (10.0**digits if digits < 300 else 0) == (
        pytest.approx(math.sqrt(p / q) * (10**digits / huge), rel=2**-51) if digits < 300 else 0
    )
    assert log_ratio(p * huge, q * huge) == pytest.approx(math.log(p / q), rel=1e-12, abs=1e-12)
    getcontext().prec = 60
    expected = float((Decimal(p) / Decimal(q * huge)).ln())
    assert log_ratio(p, q * huge) == pytest.approx(expected, rel=1e-13, abs=1e-13)


def test_roots_are_exact_for_squares():
    for p, q in [(0, 1), (1, 1), (9, 4), (10**600, 4 * 10**600), (4, 10**2)]:
        root = math.isqrt(p) / math.isqrt(q)
        assert sqrt_ratio(p, q) == root


def test_parse_is_exact():
    batch = parse_batch([1, "7/2", "0.1", 0.1, np.float64(0.5), np.int64(-3), Fraction(1, 3), " -2 ", "1e-3"])
    third = Fraction(1, 3)
    tenth = Fraction(0.1)
    half = Fraction(1, 2)
    assert tenth != Fraction(1, 10)
    expected = (Fraction(1), Fraction(7, 2), Fraction(1, 10), tenth, half, Fraction(-3), third, Fraction(-2))
    assert batch == (*expected, Fraction(1, 1000))
    assert parse_batch(np.array([1.5, 2.0])) == (Fraction(3, 2), Fraction(2))
    assert parse_batch([10**5000, 0])[0] == 10**5000


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ([], "batch is empty; recentering needs at least two samples."),
        ([3], "batch has only one entry; recentering needs at least two samples."),
        ([2, "4/2", 2.0], "batch has 3 equal entries; the tree needs at least two different values."),
        ("1, 2", "batch is '1, 2'; give a list of numbers or of strings"),
        (7, "batch is 7; give a list of numbers or of strings"),
        (None, "batch is None; give a list of numbers or of strings"),
        ({1: 2, 3: 4}, "give a list of numbers or of strings"),
        ([1, math.nan], "batch[1] is nan; each entry must be a finite number"),
        ([-math.inf, 1], "batch[0] is -inf; each entry must be a finite number"),
        ([1, "nan"], "batch[1] is 'nan'; each entry must be a finite number"),
        ([1, "inf"], "batch[1] is 'inf'; each entry must be a finite number"),
        ([1, "1/0"], "batch[1] is '1/0'; each entry must be a finite number"),
        ([1, "seven"], "batch[1] is 'seven'; each entry must be a finite number"),
        ([1, "1e999999999"], "batch[1] is '1e999999999'; each entry must be a finite number"),
        ([1, True], "batch[1] is True; each entry must be a finite number"),
        ([1, None], "batch[1] is None; each entry must be a finite number"),
        ([1, 2j], "batch[1] is 2j; each entry must be a finite number"),
        ([[1, 2], [3, 4]], "batch[0] is [1, 2]; each entry must be a finite number"),
        (np.ones((2, 2)), "batch[0] is [1.0, 1.0]; each entry must be a finite number"),
        (np.float64(3.0), "batch is 3.0; give a list of numbers or of strings"),
    ],
)
def test_bad_batches_are_refused_in_one_sentence(batch, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        parse_batch(batch)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [[1, "4/4", 1.0], "[2, 2]"])
def test_a_parameter_with_equal_entries_is_refused(value):
    sentence = f"parameter batch is {value!r}, but it must hold at least two different numbers"
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        batch_parameter("batch", value)


@pytest.mark.parametrize("value", [[], [1], "1, 2", [1, None], [1, "nan"], [1, math.inf], 3, None, [1, True]])
def test_a_parameter_that_is_no_batch_is_refused(value):
    with pytest.raises(ParameterError, match=r"^parameter batch is .*, but it must be a list of at least 2 numbers"):
        batch_parameter("batch", value)


def test_sorting_forgets_place_and_unit(seed):
    draw = random.Random(seed)
    batch = [Fraction(draw.randrange(-50, 50), 7) for _ in range(9)] + [Fraction(100)]
    found = sort_batch(batch)
    low = min(batch)
    assert [low + found.values[g] * found.unit for g in found.groups] == batch
    assert found.values[0] == 0
    assert math.gcd(*found.values) == 1
    assert sum(found.counts) == len(batch)
    moved = sort_batch([10**400 * (y + 3) for y in batch])
    assert (moved.values, moved.counts, moved.groups) == (found.values, found.counts, found.groups)


@pytest.mark.parametrize("arguments", [(-1, 1), (1, 0), (1, -1)])
def test_roots_refuse_negative_numbers(arguments):
    with pytest.raises(ValueError, match="non-negative numerator and a positive denominator"):
        sqrt_ratio(*arguments)


@pytest.mark.parametrize("arguments", [(0, 1), (1, 0)])
def test_logarithms_refuse_zero(arguments):
    with pytest.raises(ValueError, match="two positive integers"):
        log_ratio(*arguments)
