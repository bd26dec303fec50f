"""Rows for tables and criteria: selection, pairing, intervals, empty cells, errors."""

import pytest

from bnlib import training_survey as survey
from bnlib.estimates import share_interval
from bnlib.training_geometry import GeometrySpec, run_geometry


def test_rows_of_a_real_run(seed):
    sizes = dict(depth=20, width=16, batch_size=8, samples=24, networks=3, steps=3, seed=seed)
    runs = [
        run_geometry(GeometrySpec(name, batches=batches, **sizes))
        for name, batches in (("one", "fixed"), ("two", "resampled"))
    ]
    row = survey.survival_row(survey.cell(runs, "two"))
    assert row["step"] == 3
    assert row["batches"] == "resampled"
    assert "cluster_change_deg" not in row
    assert survey.survival_row(runs[0], 0)["kept"] == runs[0]["started"]
    assert len(survey.companion_rows(runs)) == 2 * 2 * 3
    modes = survey.mode_rows(runs)
    assert len(modes) == 2 * 2 * 2
    own = [row for row in modes if row["name"] == "one" and row["kind"] == "own"]
    assert all(abs(row["loss_difference"]["mean"]) < 1e-5 for row in own)
    assert [row["time"] for row in survey.control_rows(runs)] == ["first", "last"] * 2


def test_fitted_networks_only():
    row = {"step": 0, "cluster_deg": 30.0, "cluster_change_deg": {"median": 0.0, "low": None, "high": None}}
    seen = {
        "start": {"loss": [2.0, 2.0, 2.0, 2.0], "present": [True, True, False, True]},
        "end": {"loss": [0.1, 0.1, 0.1, None], "present": [True, False, True, True]},
    }
    found = survey.survival_row({"name": "a", "rows": [row], "networks_seen": seen})
    assert (found["fitted"], found["fitted_started"], found["fitted_kept"]) == (3, 2, 1)
    assert (found["fitted_low"], found["fitted_high"]) == share_interval(1, 2)
    assert (found["finite_started"], found["finite_kept"]) == (2, 1)
    assert found["finite_highest"] == share_interval(1, 2, tail=0.001)[1]


def test_shares_among_those_that_kept_an_outlier():
    row = {"step": 0, "cluster_deg": 30.0, "cluster_change_deg": {"median": 0.0, "low": None, "high": None}}
    found = survey.survival_row(
        {"name": "a", "rows": [row | {"networks": 9, "started": 8, "kept": 6, "same": 2, "present": 7}]}
    )
    assert (found["again_low"], found["again_high"]) == share_interval(2, 6)
    assert found["present_lowest"] == share_interval(7, 9, tail=0.001)[0]
    assert found["present_lowest"] < share_interval(7, 9)[0]


def test_control_intervals():
    change = {"started": 10, "same": 9, "trained_same": 2, "relative_change": 0.1}
    change |= {"only_noise": 8, "only_trained": 1}
    row = survey.control_rows([{"name": "a", "data": "d", "changes": {"last": change}}])[0]
    assert (row["random_same_low"], row["random_same_high"]) == share_interval(9, 10)
    assert (row["trained_same"], row["trained_same_high"]) == (0.2, share_interval(2, 10)[1])
    assert row["p_value"] == pytest.approx(2 * (1 + 9) / 2**9)
    empty = {"started": 0, "same": 0, "trained_same": 0, "relative_change": None}
    empty |= {"only_noise": 0, "only_trained": 0}
    row = survey.control_rows([{"name": "a", "data": "d", "changes": {"last": empty}}])[0]
    assert row["random_same"] is None
    assert row["random_same_low"] is None


def test_compare_collapse_is_paired():
    cells = [
        {"name": "a", "start": {"within": [1.0, 2.0, None]}, "end": {"within": [0.5, 1.0, 3.0]}},
        {"name": "b", "start": {"within": [3.0, 3.0, 1.0]}, "end": {"within": [0.0, 0.0, 0.0]}},
    ]
    rows = survey.compare_collapse(cells, "within", [("a", "start", "a", "end"), ("a", "end", "b", "start")])
    assert [(row["pairs"], row["mean"]) for row in rows] == [(2, -0.75), (3, pytest.approx(2.5 / 3))]
    assert rows[1]["first"] == "a, end"
    assert rows[1]["second"] == "b, start"


def test_compare_times_by_size():
    arms = [
        {"arm": arm, "samples": size, "times": times}
        for size, arm, times in (
            (8, "he", [10, 20, None]),
            (8, "batch norm", [5, 25, None]),
            (16, "he", [10, 10, 10]),
            (16, "batch norm", [None, 5, 5]),
        )
    ]
    rows = survey.compare_times(arms, [("he", "batch norm"), ("he", "recentering")])
    assert [(row["samples"], row["sooner"], row["later"], row["ties"], row["pairs"]) for row in rows] == [
        (8, 1, 1, 1, 2),
        (16, 2, 1, 0, 2),
    ]


def test_imposed_rows():
    group = {"present": 3, "networks": 4, "angle_deg": 89.0, "mean_angle_deg": None}
    arms = [{"arm": "cluster and outlier", "samples": 8, "start": {"reference": group}}, {"arm": "he"}]
    (row,) = survey.imposed_rows(arms)
    assert (row["low"], row["high"]) == share_interval(3, 4)
    assert row["group"] == "reference"


def test_errors():
    with pytest.raises(ValueError, match="name must be one of a, b, got 'c'"):
        survey.cell([{"name": "a"}, {"name": "b"}], "c")
    with pytest.raises(ValueError, match=r"step must be one of \[0\], got 5"):
        survey.survival_row({"name": "a", "rows": [{"step": 0}]}, 5)
