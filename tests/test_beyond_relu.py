"""Chapter 11's lists for its claims, its figures, and its criteria: each can come out confirmed, refuted and open."""

from types import SimpleNamespace

import pytest
import torch

from bnlib import beyond_relu as beyond
from bnlib.architectures import Architecture, chosen
from bnlib.criteria import decide
from bnlib.estimates import share_interval
from bnlib.figures import close
from bnlib.geometry_classes import Rule
from bnlib.records import load_claims

CLAIMS = {key: claim for key, claim in load_claims().items() if claim.get("notebook") == "11_beyond_relu"}


@pytest.fixture(scope="module")
def parameters(tmp_path_factory):
    return SimpleNamespace(
        batch_sizes=[4, 8],
        depth=5,
        draws=3,
        theory_layers=10,
        seed=0,
        device="cpu",
        scheduler="",
        results_dir=tmp_path_factory.mktemp("results"),
        slopes=[-1.0, 0.0, 0.5],
        slope_batch_sizes=[4, 8],
        variance_activations=["gelu", "tanh"],
        variances=[1.0, 4.0],
        map_batch_size=4,
        map_width=8,
    )


@pytest.fixture(scope="module")
def cells(parameters):
    rows = chosen(["ReLU", "ReLU, norm after", "residual, strength 1", "orthogonal weights", "tanh", "bias 0.1"])
    widths = {"dense": [4, 8], "convolution": [2, 3], "attention": [4, 6]}
    return beyond.table_of_architectures(rows, widths, parameters, Rule())


def test_every_cell_once_and_in_order(cells):
    assert len(cells) == 4 * sum(
        map(len, chosen(["ReLU", "ReLU, norm after", "residual, strength 1"]).values())
    ) + 4 * (3 + 4 + 4)
    first = cells[:4]
    assert [(cell["n"], cell["width"], cell["wide"]) for cell in first] == [
        (4, 4, False),
        (8, 4, False),
        (4, 8, True),
        (8, 8, True),
    ]
    assert {cell["row"] for cell in first} == {"ReLU"}


def test_the_same_architecture_in_two_rows_is_run_once(parameters):
    rows = {"a": (Architecture(),), "b": (Architecture(),)}
    two = beyond.table_of_architectures(rows, {"dense": [4, 8]}, parameters, Rule())
    assert len(two) == 8
    assert [{**cell, "row": ""} for cell in two[:4]] == [{**cell, "row": ""} for cell in two[4:]]


def test_chance_against_known_shares(seed):
    """Three points besides one on a line: the share by another stream; in space there is none."""
    rows = beyond.chance_table([4, 8], 96, 4000, Rule(), generator=torch.Generator().manual_seed(seed))
    share = {(row["batch"], row["n"]): row["outlier"] for row in rows}
    again = beyond.chance_table([4], 96, 40000, Rule(), generator=torch.Generator().manual_seed(seed + 500))[0][
        "outlier"
    ]
    error = (again * (1 - again) / 4000) ** 0.5
    assert abs(share["on a line", 4] - again) < 5 * 1.1 * error
    assert abs(share["on a line", 4] - share["on a line", 8]) > 5 * error  # the batch size matters
    assert share["in space", 8] == 0
    assert rows[-1]["symmetric"] == 1


def test_chance_in_parts(monkeypatch, seed):
    """A number of batches that is no multiple of what the memory holds: all of them are counted, and the same rule."""
    monkeypatch.setattr(beyond, "_ENTRIES", 70)
    line, space = beyond.chance_table([4], 20, 101, Rule(), generator=torch.Generator().manual_seed(seed))
    assert abs(line["outlier"] - 0.587) < 5 * (0.587 * 0.413 / 101) ** 0.5
    assert line["symmetric"] == 0.0
    assert 0 <= space["outlier"] < line["outlier"]
    assert [beyond._parts(*sizes) for sizes in ((7, 3), (6, 3), (2, 0))] == [[3, 3, 1], [3, 3], [1, 1]]


def test_agreement_counts_architectures():
    """Six cells of one architecture are one trial; the theory of the others is held against them for comparison."""
    one = {"architecture": "a", "decided": "outlier", "theory_symmetric": "symmetric", "theory_outlier": "outlier"}
    two = {"architecture": "b", "decided": "collapse", "theory_symmetric": "collapse", "theory_outlier": "collapse"}
    left_out = [{**one, "decided": "none"}, {**one, "architecture": "c", "theory_outlier": None}]
    found = beyond.agreement([one] * 6 + [two] + left_out)
    assert (found["decided"], found["agree"], found["architectures"], found["by_chance"]) == (7, 7, 2, 0)
    assert (found["low"], found["high"]) == share_interval(2, 2)
    half = beyond.agreement([one] * 3 + [{**two, "decided": "outlier"}] * 3)
    assert (half["agree"], half["by_chance"]) == (3, 0.5)
    assert (half["low"], half["high"]) == share_interval(1, 2)
    nothing = beyond.agreement(left_out)
    assert (nothing["decided"], nothing["low"], nothing["high"], nothing["by_chance"]) == (0, None, None, None)


def test_named_share_by_hand():
    assert beyond.named_share(
        [
            {"named": 3, "draws": 4, "counts": {"outlier": 3, "other": 1}},
            {"named": 4, "draws": 4, "counts": {"outlier": 4}},
        ]
    )["share"] == (7 / 8)


def record(architecture, decided, most=None, n=8, width=32, **more):
    return {
        "architecture": architecture,
        "decided": decided,
        "sure": decided,
        "most": most or decided,
        "n": n,
        "width": width,
        "onset_low": 1.0,
        "onset_high": 2.0,
        "outlier_low": 0.8,
        "outlier_high": 1.0,
        "wide": True,
        **more,
    }


def test_pairs_that_differ_in_one_setting():
    cells = [
        record("dense RC+NL", "outlier"),
        record("dense RC+NL weights=orthogonal", "outlier"),
        record("dense NL+RC", "none"),
        record("dense RC+RS+NL", "symmetric"),
        record("dense RC+RS+NL epsilon=1e-05", "collapse"),
        record("dense RC+NL bias=0.1", "outlier", width=64),
    ]
    rows = beyond.same_class(cells)
    assert {(row["kind"], row["stages"]): (row["both"], row["same"], row["differ"]) for row in rows} == {
        ("orthogonal", "RC+NL"): (True, True, False),
        ("epsilon", "RC+RS+NL"): (True, False, True),
        ("order", "RC"): (False, False, False),
    }
    # Different by the 95 percent interval alone is not enough to refute.
    cells[4]["sure"] = "none"
    assert not any(row["differ"] for row in beyond.same_class(cells))


def test_onsets_of_skip_connections():
    plain = record("dense RC+NL", "outlier", onset_low=10.0, onset_high=20.0)
    late = record("dense RC+NL residual=1", "outlier", onset_low=21.0, onset_high=30.0)
    few = record("dense RC+NL residual=0.2", "symmetric", outlier_low=0.0, outlier_high=0.3)
    rows = {row["strength"]: row for row in beyond.onset_pairs([plain, late, few])}
    assert (rows[1.0]["later"], rows[1.0]["fewer"], rows[1.0]["earlier"], rows[1.0]["more"]) == (
        True,
        False,
        False,
        False,
    )
    assert (rows[0.2]["later"], rows[0.2]["fewer"], rows[0.2]["block_low"]) == (False, True, None)
    assert beyond.onset_pairs([late, few]) == []


def test_figures_of_small_runs(cells, parameters):
    close(beyond.shares_figure(cells, 8))
    close(beyond.onset_figure(cells, 8, parameters.depth))
    slopes = beyond.slope_cells(parameters, Rule())
    assert {n: [cell["slope"] for cell in row] for n, row in slopes.items()} == {n: [-1, 0, 0.5] for n in (4, 8)}
    close(beyond.slope_figure(slopes, parameters.slopes))
    variances = beyond.variance_cells(parameters, Rule())
    assert [(cell["row"], cell["variance"]) for cell in variances] == 2 * [
        ("gelu", 1),
        ("gelu", 4),
        ("tanh", 1),
        ("tanh", 4),
    ]
    assert [cell["column"] for cell in variances] == ["RC"] * 4 + ["none"] * 4
    close(beyond.variance_figure(variances, parameters.variance_activations, parameters.variances))
    rows = beyond.scale_table(cells, 8)
    assert [row[:2] for row in rows] == [
        ["dense NL", 1],
        ["dense RC+NL", 1],
        ["dense NL activation=tanh", None],
        ["dense RC+NL activation=tanh", None],
    ]


# ---------------------------------------------------------------------------------------------------- criteria

SHARES = {"sure": (0.8, 1.0), "never": (0.0, 0.2), "open": (0.3, 0.7)}
# Claims that ask for most draws of a class: the records that they look at, and the class.
MAJORITIES = {
    "recentering-any-activation": ("outlier", {"column": "RC", "row": "GELU"}),
    "rescaling-symmetric": ("symmetric", {"column": "RC+RS", "row": "tanh"}),
    "no-norm-collapses": ("collapse", {"column": "none", "row": "ReLU"}),
    "recentering-convolution": ("outlier", {"column": "RC", "row": "convolution"}),
    "recentering-attention": ("outlier", {"column": "RC", "layout": "attention"}),
    "normalization-free-outlier": ("outlier", {"column": "none", "row": "standardized weights"}),
    "shifts-destroy-the-outlier": ("collapse", {"column": "RC", "row": "shift β = 0.1"}),
    "large-epsilon-brings-the-outlier": ("outlier", {"column": "RC+RS", "row": "ε = 1"}),
    "multiplier-below-one-stays": ("symmetric", {"column": "RC+RS", "row": "ReLU", "multiplier": 0.9}),
}
RARITIES = {
    "sample-norm-no-outlier": ("outlier", {"column": "LN", "row": "ReLU"}),
    "multiplier-above-one-leaves": ("symmetric", {"column": "RC+RS", "row": "square", "multiplier": 1.1}),
}


def values(name, share, where):
    low, high = SHARES[share]
    cell = {"row": "", "layout": "dense", "wide": True, "n": 32, "multiplier": None, "theory_outlier": None, **where}
    for kind in ("symmetric", "outlier", "collapse"):
        for end in ("", "sure_"):
            cell |= {
                f"{kind}_{end}low": low if kind == name else 0.0,
                f"{kind}_{end}high": high if kind == name else 0.1,
            }
    return {"cells": [cell], "batch_sizes": [4, 32]}


@pytest.mark.parametrize("claim", [*MAJORITIES, *RARITIES])
def test_shares_decide(claim):
    name, where = (MAJORITIES | RARITIES)[claim]
    yes, no = ("sure", "never") if claim in MAJORITIES else ("never", "sure")
    criterion = CLAIMS[claim]["criterion"]
    assert decide(criterion, values(name, yes, where)) == "confirmed"
    assert decide(criterion, values(name, no, where)) == "refuted"
    assert decide(criterion, values(name, "open", where)) == "inconclusive"
    assert decide(criterion, values(name, yes, {"row": "nothing", "column": ""})) == "inconclusive"


def pair(kind, *, both=False, same=False, differ=False):
    where = {"kind": kind, "stages": "RC+RS", "n": 8, "wide": True}
    return {**where, "both": both, "same": same, "differ": differ}


@pytest.mark.parametrize(
    ("claim", "confirmed", "refuted", "inconclusive"),
    [
        (
            "three-words",
            {"depth": 200, "named": {"draws": 5000, "low": 0.95, "high": 0.97}},
            {"depth": 200, "named": {"draws": 5000, "low": 0.7, "high": 0.8}},
            {"depth": 12, "named": {"draws": 5000, "low": 0.7, "high": 0.8}},
        ),
        (
            "infinite-width-names-class",
            {"agreement": {"decided": 50, "low": 0.95, "high": 1.0}},
            {"agreement": {"decided": 50, "low": 0.5, "high": 0.7}},
            {"agreement": {"decided": 50, "low": 0.7, "high": 0.9}},
        ),
        (
            "skip-connections-delay",
            {"onset_pairs": [{"fewer": False, "later": True, "more": False, "earlier": False}]},
            {"onset_pairs": [{"fewer": False, "later": False, "more": False, "earlier": True}]},
            {"onset_pairs": [{"fewer": False, "later": False, "more": False, "earlier": False}]},
        ),
        *(
            (
                claim,
                {"same_class": [pair(kind, both=True, same=True)] * 3},
                {"same_class": [pair(kind, both=True, differ=True)]},
                {"same_class": [pair(kind, both=True)] * 3},
            )
            for claim, kind in (
                ("order-of-stages", "order"),
                ("orthogonal-weights-same", "orthogonal"),
                ("usual-settings-change-nothing", "epsilon"),
            )
        ),
    ],
)
def test_other_criteria(claim, confirmed, refuted, inconclusive):
    criterion = CLAIMS[claim]["criterion"]
    assert decide(criterion, confirmed) == "confirmed"
    assert decide(criterion, refuted) == "refuted"
    assert decide(criterion, inconclusive) == "inconclusive"


def test_criteria_of_the_maps():
    def share(kind, **where):
        low, high = SHARES[kind]
        ends = {"outlier_low": low, "outlier_high": high, "outlier_sure_low": low, "outlier_sure_high": high}
        return {**ends, **where}

    for claim, beyond_it in (("outlier-for-every-slope", 1.0), ("recentering-homogeneous", 0.6)):
        criterion = CLAIMS[claim]["criterion"]
        for kind, verdict in (("sure", "confirmed"), ("never", "refuted"), ("open", "inconclusive")):
            cells = [share("sure", n=32, slope=0.0), share(kind, n=32, slope=-1.0), share("never", n=8, slope=0.0)]
            cells.append(share("never", n=32, slope=beyond_it))
            assert decide(criterion, {"slope_cells": cells, "slope_largest": 32}) == verdict
    variance = CLAIMS["variance-decides"]["criterion"]
    for low, high, verdict in (
        ("never", "sure", "confirmed"),
        ("sure", "sure", "refuted"),
        ("never", "never", "refuted"),
        ("never", "open", "inconclusive"),
    ):
        cells = [share(low, row="gelu", variance=1, column="RC"), share(high, row="gelu", variance=4, column="RC")]
        assert decide(variance, {"variance_cells": cells}) == verdict
    tanh = CLAIMS["tanh-has-no-outlier"]["criterion"]
    for kind, verdict in (("never", "confirmed"), ("sure", "refuted"), ("open", "inconclusive")):
        assert decide(tanh, {"variance_cells": [share(kind, row="tanh", variance=2, column="RC")]}) == verdict


def test_every_claim_is_tried():
    tried = {*MAJORITIES, *RARITIES, "three-words", "infinite-width-names-class", "skip-connections-delay"}
    tried |= {"order-of-stages", "orthogonal-weights-same", "usual-settings-change-nothing"}
    tried |= {"outlier-for-every-slope", "recentering-homogeneous", "variance-decides", "tanh-has-no-outlier"}
    assert tried == set(CLAIMS)
