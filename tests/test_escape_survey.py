"""Tests of bnlib.escape_survey and of its pictures: plain results, independence of cells, extrapolation, messages."""

import json
import math

import numpy as np
import pytest

from bnlib import escape, escape_figures, figures
from bnlib import escape_survey as survey


def test_escape_cell_is_plain_and_repeats(seed):
    cell = survey.escape_cell(9, 64, 60, 20, 60, seed=seed)
    assert json.loads(json.dumps(cell)) == cell
    assert survey.escape_cell(9, 64, 60, 20, 60, seed=seed) == cell
    assert survey.escape_cell(9, 64, 60, 20, 60, seed=seed + 1)["times"] != cell["times"]
    assert len(cell["times"]) == 20
    assert cell["escaped"] == np.mean([t > 0 for t in cell["times"]])
    alone = survey.escape_cell(9, 64, 60, 0, 60, seed=seed)
    assert alone["theory_median"] == cell["theory_median"]
    assert "times" not in alone


def test_nobody_passes_in_one_layer_of_a_wide_network(seed):
    cell = survey.escape_cell(8, 4096, 1, 8, 10, seed=seed)
    assert cell["median"] is None
    assert cell["theory_median"] is None
    assert cell["at"] == 1
    assert (cell["observed"], cell["predicted"]) == (0.0, 0.0)


def test_extrapolation_recovers_line_and_error(seed):
    random = np.random.default_rng(seed)
    z, wrong = [], []
    for _ in range(200):
        cells = []
        for width, draws in ((256, 20), (1024, 10), (4096, 5)):
            x = 3.0 + 40.0 / width + random.standard_normal(draws) * 2 / math.sqrt(width)
            cells.append({"width": width, "draws": draws, "x": x.mean(), "x_sd": x.std(ddof=1)})
        z.append(survey.to_infinite_width(cells, "x", 3.0)["z"])
        wrong.append(survey.to_infinite_width(cells, "x", 3.05)["z"])
    assert abs(np.mean(z)) < 5 / math.sqrt(200) * 1.1
    assert 0.75 < np.std(z) < 1.3
    assert abs(np.mean(wrong)) > 5 / math.sqrt(200) * 1.1
    with pytest.raises(ValueError, match="cells has 1 widths; valid is at least two"):
        survey.to_infinite_width(cells[:1], "x", 3.0)


def test_stay_cell(seed):
    cell = survey.stay_cell(16, 256, 12, seed=seed)
    assert json.loads(json.dumps(cell)) == cell
    assert cell["layers"] % 4 == 0
    error = cell["cluster_angle_deg_sd"] / math.sqrt(12)
    assert abs(cell["cluster_angle_deg"] - 30.0) < 5 * error + 1.5  # a bias of order 1/width besides
    assert cell["snapshot_theory_deg"] == pytest.approx(math.degrees(escape.cluster_fluctuation(256, 16)))


def test_small_batches(seed):
    cell = survey.small_batch_cell(3, 128, 80, 8, seed=seed)
    assert json.loads(json.dumps(cell)) == cell
    assert cell["escaped"] == (cell["draws"] - cell["censored"]) / cell["draws"]
    assert cell["time_out"] < 0.5


def test_input_decides_in_low_dimension(seed):
    near = survey.input_cell(12, 2, 2048, 40, 10, seed=seed)
    far = survey.input_cell(12, 4096, 2048, 5, 10, seed=seed)
    assert near["infinite"] > 0.5 > far["infinite"]
    assert near["push"] > 2
    assert far["push"] < 0.2


def test_orders(seed):
    found = survey.limits_in_both_orders(12, 4000, [32, 64], 20, 7, seed=seed)
    assert json.loads(json.dumps(found)) == found
    assert set(found["angle_deg"]) == {"32", "64"}
    assert 60 < found["infinite_deg"][-1] < 80
    assert found["input_push"] < 1


def test_pictures_of_everything(seed):
    cells = [survey.escape_cell(n, width, 25, 6, 20, seed=seed) for n in (8, 12) for width in (16, 2048)]
    forms = {n: escape.normal_form(n) for n in (8, 12)}
    figure, axes = figures.new_figure(rows=4)
    escape_figures.escape_times(axes[0, 0], cells, 25)
    escape_figures.rescaled_times(axes[1, 0], cells, forms)
    escape_figures.predicted_against_observed(axes[2, 0], cells, 25)
    orders = {
        "angle_deg": {"16": [60.0, 70.0]},
        "infinite_deg": [60.0, 61.0],
        "last": {"16": {"low": 65.0, "high": None}},
    }
    escape_figures.both_orders(axes[3, 0], orders)
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in axes.ravel())
    assert len(axes[0, 0].get_legend().get_texts()) == 2
    figures.close(figure)
    figure, axes = figures.new_figure(rows=5)
    escape_figures.stays(axes[0, 0], [survey.stay_cell(8, 64, 3, seed=seed)], {8: 54.65})
    small = [survey.small_batch_cell(n, 32, 30, 3, seed=seed) for n in (3, 4)]
    escape_figures.small_batches(axes[1:3, 0], small)
    row = {"outlier_angle_deg": 90.0, "outlier_multiplier": 0.9, "symmetric_multiplier": 0.95}
    escape_figures.leaky_states(axes[3:, 0], [0.0, 0.1], {8: [row, row]})
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in axes.ravel())
    figures.close(figure)


def test_draws():
    assert [survey.fewer_when_wide(10, width, least=2) for width in (1, 1024, 2048, 10**6)] == [10, 10, 5, 2]
    assert survey.fewer_when_wide(1, 10**6) == 1
