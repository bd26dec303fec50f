"""Criteria: the small language says what it says, refuses the rest, and is never met by measuring nothing."""

import pytest

from bnlib.criteria import CriterionError, NotMeasured, decide, evaluate

VALUES = {
    "share": 0.7,
    "angles": {"8": 75.5, "16": 73.4},
    "cells": [{"n": 4, "angle": 61.0}, {"n": 32, "angle": 89.5}],
    "nothing": None,
    "empty": [],
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("share > 0.5 and not share > 0.9", True),
        ("0.5 < share <= 0.7", True),
        ("0.5 < share < 0.6", False),
        ("angles['8'] - angles['16']", 75.5 - 73.4),
        ("-share + 2 ** 3 / 4 * 1", 1.3),
        ("max([c['angle'] for c in cells]) == 89.5", True),
        ("all(c['angle'] > 85 for c in cells if c['n'] >= 8)", True),
        ("any(c['angle'] > 90 for c in cells)", False),
        ("len(cells) == 2", True),
        ("sqrt(4) + log(1) + abs(-1) + min(3, 4) + median([1, 2, 9]) + sum([1, 1])", 10.0),
        ("'yes' if share > 0.5 else 'no'", "yes"),
        ("4 in [c['n'] for c in cells]", True),
        ("cells[0]['n']", 4),
    ],
)
def test_expressions(expression, value):
    expected = pytest.approx(value) if isinstance(value, float) else value
    assert evaluate(expression, VALUES) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "open('x')",
        "share.__class__",
        "(lambda: 1)()",
        "[c for c in cells for d in cells]",
        "f'{share}'",
        "share; share",
        "share := 3",
        "{'a': 1}",
        "share >",
        "1 is 1",
        "max(cells, key=len)",
        "b'bytes'",
    ],
)
def test_everything_else_is_outside_the_language(expression):
    with pytest.raises(CriterionError):
        evaluate(expression, VALUES)


@pytest.mark.parametrize(
    "expression", ["gone > 1", "angles['4'] > 1", "cells[7]", "nothing > 1", "all(c > 1 for c in empty)"]
)
def test_what_was_not_measured_decides_nothing(expression):
    with pytest.raises(NotMeasured):
        evaluate(expression, VALUES)
    assert decide(expression, VALUES) == "inconclusive"


def test_types_that_do_not_fit_are_an_error_and_no_verdict():
    with pytest.raises(CriterionError, match="cannot be evaluated"):
        decide("share > 'text'", VALUES)


def test_a_share_of_nothing_was_not_measured():
    with pytest.raises(NotMeasured, match="divides by zero: nothing was measured"):
        evaluate("share / len(empty)", VALUES)
    assert decide({"refuted": "share / len(empty) < 1", "confirmed": "share > 0"}, VALUES) == "inconclusive"


def test_verdicts_follow_the_order_of_the_rules():
    assert decide("share > 0.5", VALUES) == "confirmed"
    assert decide("share > 0.9", VALUES) == "refuted"
    assert decide({"refuted": "share < 0.5", "vacuous": "len(cells) == 0"}, VALUES) == "inconclusive"
    assert decide({"vacuous": "share > 0", "confirmed": "share > 0"}, VALUES) == "vacuous"
    with pytest.raises(CriterionError, match="verdict 'true' does not exist"):
        decide({"true": "share > 0"}, VALUES)
