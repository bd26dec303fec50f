"""Printed numbers: rounding at the border, signs, refusals."""

import math

import pytest

from bnlib.published_numbers import agrees, comparison


@pytest.mark.parametrize(
    ("printed", "value", "expected"),
    [
        ("1.467", math.pi / (math.pi - 1), True),
        ("1.466", math.pi / (math.pi - 1), False),
        ("50", 50.4, True),
        ("50", 51, False),
        ("-0.5", -0.5, True),
        ("-0.5", 0.5, False),
        ("0.0039", 14 / 13, False),
        ("1.13", math.nan, False),
    ],
)
def test_agreement_to_the_printed_digits(printed, value, expected):
    assert agrees(printed, value) is expected


def test_rows_and_refusal():
    (row,) = comparison([("a source", "a number", "1.5", 1)])
    assert row == {"source": "a source", "quantity": "a number", "printed": "1.5", "ours": 1.0, "agrees": False}
    with pytest.raises(ValueError, match=r"printed must be a decimal number such as 1\.467, got 'many'"):
        agrees("many", 1.0)
