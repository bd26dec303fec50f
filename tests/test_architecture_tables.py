"""Tables of chapter 11: summaries against counting by hand, theory against known states, boxes in words."""

import pytest

from bnlib.architecture_survey import make_cell, run_cell
from bnlib.architecture_tables import (
    column_of,
    full_table,
    record_of,
    summary,
    take_away,
    theory,
    theory_agrees,
    verdict_of_cells,
)
from bnlib.architectures import Architecture
from bnlib.estimates import share_interval

FOUND = {
    "architecture": "dense RC+NL",
    "n": 8,
    "width": 32,
    "draws": 5,
    "classes": ["outlier", "outlier", "symmetric", "outlier", "broken"],
    "settled": [3, 9, 1, 5, 7],
    "separation": [4.0, 6.0, 1.0, None, None],
    "odd_angle_deg": [90.0, 88.0, 70.0, 89.0, None],
    "mean_angle_deg": [50.0, 50.0, 70.0, 50.0, None],
    "log10_norm": [None] * 5,
}
NOTHING = {"from_symmetric": None, "from_outlier": None, "multiplier": None}


def test_a_summary_by_hand():
    found = summary(FOUND)
    assert found["counts"] == {"symmetric": 1, "outlier": 3, "broken": 1}
    assert found["most"] == "outlier"
    assert (found["share"], found["low"], found["high"]) == (0.6, *share_interval(3, 5))
    assert found["onset"] == 5
    assert (found["separation"], found["odd_angle_deg"], found["log10_norm"]) == (4.0, 88.5, None)


def test_a_tie_goes_to_the_first_class():
    assert summary({**FOUND, "classes": ["collapse", "collapse", "outlier", "outlier", "other"]})["most"] == "outlier"


def test_a_record_by_hand():
    record = record_of("ReLU", Architecture.parse("NL+RC"), FOUND, wide=False, theory=NOTHING)
    assert (record["row"], record["column"], record["after"], record["wide"]) == ("ReLU", "RC", True, False)
    assert record["decided"] == "none"  # three of five may be fewer than half
    assert record["outlier"] == 0.6
    assert (record["symmetric_low"], record["symmetric_high"]) == share_interval(1, 5)
    assert record["collapse"] == record["collapse_low"] == 0.0
    assert (record["symmetric_sure_low"], record["symmetric_sure_high"]) == share_interval(1, 5, tail=0.0005)
    assert record["named"] == 4
    sure = {**FOUND, "classes": ["outlier"] * 20, "settled": [1] * 20, "draws": 20}
    whole = record_of("ReLU", Architecture(), sure, wide=True, theory=NOTHING)
    assert (whole["decided"], whole["sure"]) == ("outlier", "outlier")
    most = {**sure, "classes": ["outlier"] * 16 + ["other"] * 4}
    whole = record_of("ReLU", Architecture(), most, wide=True, theory=NOTHING)
    assert (whole["decided"], whole["sure"]) == ("outlier", "none")  # 16 of 20: by 95 percent, not by 99.9


def test_columns():
    lines = {"none": "none", "NL": "none", "RC+NL": "RC", "NL+RC+RS": "RC+RS", "LN+NL": "LN", "NL+RN": "RN"}
    for line, column in lines.items():
        assert column_of(Architecture.parse(line)) == column


def test_boxes_in_words():
    def cell(n, most, decided="same"):
        return {"n": n, "most": most, "decided": most if decided == "same" else decided}

    assert verdict_of_cells([cell(8, "outlier"), cell(4, "outlier")]) == "outlier"
    assert verdict_of_cells([cell(8, "outlier"), cell(4, "outlier", "none")]) == "outlier 4?, 8"
    assert verdict_of_cells([cell(32, "outlier"), cell(4, "symmetric"), cell(8, "symmetric", "none")]) == (
        "symmetric 4, 8?; outlier 32"
    )


def test_the_table_to_take_away():
    cells = [
        {"row": row, "column": column, "wide": wide, "n": 8, "most": most, "decided": most}
        for row, column, wide, most in (
            ("a", "RC", True, "outlier"),
            ("a", "RC", False, "line"),
            ("a", "LN", True, "collapse"),
            ("b", "RC+RS", True, "symmetric"),
        )
    ]
    assert take_away(cells) == [
        ["a", None, "outlier", None, "collapse", None],
        ["b", None, None, "symmetric", None, None],
    ]


def test_theory_of_known_states():
    relu = Architecture.parse("RC+NL")
    assert theory(relu, 16, layers=600) == {
        "from_symmetric": "symmetric",
        "from_outlier": "outlier",
        "multiplier": None,
    }
    assert theory(relu, 5, layers=600)["from_outlier"] == "symmetric"
    assert theory(Architecture.parse("NL"), 8, layers=600)["from_symmetric"] == "collapse"
    normed = theory(Architecture.parse("RC+RS+NL activation=square"), 16, layers=1)
    assert normed["multiplier"] > 1
    assert normed["from_symmetric"] == "other"
    # None where the neurons are not Gaussian, or more than the activation and the variance is changed.
    for line in ("RMS+NL", "convolution RC+NL", "RC+RS+NL residual=1", "RC+NL weights=orthogonal"):
        assert theory(Architecture.parse(line), 8, layers=10) == NOTHING


def test_agreement_with_the_theory():
    cell = {"decided": "outlier", "theory_symmetric": "symmetric", "theory_outlier": "outlier"}
    assert theory_agrees(cell) is True
    assert theory_agrees({**cell, "decided": "collapse"}) is False
    assert theory_agrees({**cell, "decided": "none"}) is None
    assert theory_agrees({**cell, "theory_symmetric": None, "theory_outlier": None}) is None


@pytest.mark.parametrize("line", ["NL", "RC+NL", "RC+RS+NL"])
def test_the_full_table_tells_every_cell(line, seed):
    spec = Architecture.parse(line)
    found = run_cell(make_cell(spec, 4, 8, depth=6, draws=3, seed=seed))
    row = full_table([record_of("ReLU", spec, found, wide=True, theory=theory(spec, 4, layers=20))])[0]
    assert row[:3] == [spec.name, 4, 8]
    assert len(row) == 9
