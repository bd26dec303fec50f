"""Chapter 6's pictures draw what they are given, blanks included."""

import math

import numpy as np
import pytest
import torch

from bnlib import falsification_figures as pictures
from bnlib import figures
from bnlib.estimates import kept_summary, onset_summary
from bnlib.falsification import run_cell
from bnlib.falsification_rules import Thresholds
from bnlib.layers import Stages
from bnlib.onset_laws import compare_laws
from bnlib.outlier_identity import dose_response, identity
from bnlib.outlier_states import outlier_state
from bnlib.pushed_networks import pushed

SIZES, WIDTHS = (8, 16), (8, 16, 24)


@pytest.fixture(scope="module")
def parts():
    g = torch.Generator().manual_seed(0)
    stages = Stages.parse("RC+NL")
    return {
        (n, w): run_cell(n, w, [5, 40] if n < 16 else [5], 7, stages, thresholds=Thresholds(), generator=g)
        for n in SIZES
        for w in WIDTHS
    }


def rows(parts, key):
    return [row for part in parts.values() for row in part[key]]


def test_literal_figure_has_a_curve_for_each_width(parts):
    figure = pictures.literal_figure(rows(parts, "cells"), rows(parts, "details"), 5, Thresholds())
    assert [len(panel.containers) for panel in figure.axes] == [3, 3, 3]
    figures.close(figure)


def test_maps_leave_blank_what_was_not_run(parts):
    figure = pictures.map_figure(rows(parts, "cells"))
    written = [len(panel.texts) for panel in figure.axes if panel.texts]
    assert written == [3, 3, 3]  # two depths for the smaller batch, one for the larger
    figures.close(figure)
    panel = ("title", rows(parts, "cells"), 40, "angle_deg", "angle", (55, 90), ".0f")
    figure = pictures.corner_figure([panel])
    assert len(figure.axes[0].texts) == 3
    figures.close(figure)


def test_arrivals_rise_and_kept_falls(parts):
    figure = pictures.arrivals_figure(parts, [8], WIDTHS)
    for line in figure.axes[0].lines:
        values = np.asarray(line.get_ydata(), dtype=float)
        assert (np.diff(values) >= 0).all()
        assert values[0] == 0
    figures.close(figure)
    summary = kept_summary([5, 6, 7, None], [20, None, 30, None], watched=40, hold=5, horizon=10)
    figure = pictures.kept_figure([{"n": 8, "width": 64, **summary}], [8], 10)
    values = np.asarray(figure.axes[0].lines[0].get_ydata(), dtype=float)
    assert values[0] == 1
    assert (np.diff(values) <= 0).all()
    figures.close(figure)


@pytest.mark.parametrize("observed", [True, False])
def test_onset_figure_with_and_without_laws(observed):
    onsets = [[20, 22, 24, 26, 28, 30, 32] if observed else [None] * 7 for _ in WIDTHS]
    found = [
        {"n": 16, "width": width} | onset_summary(cell, [False] * 7, latest=50)
        for width, cell in zip(WIDTHS, onsets, strict=True)
    ]
    laws = compare_laws({16: onsets}, list(WIDTHS), 100)
    figure = pictures.onset_figure(found, laws, [16], 100)
    assert len(figure.axes) == (2 if observed else 1)
    figures.close(figure)


def test_the_fitted_law_goes_through_its_own_medians():
    cells = [[20] * 9, [30] * 9, [40] * 9]
    widths = [64, 256, 1024]
    laws = compare_laws({16: cells}, widths, 100)
    found = [
        {"n": 16, "width": width} | onset_summary(cell, [False] * 9, latest=50)
        for width, cell in zip(widths, cells, strict=True)
    ]
    figure = pictures.onset_figure(found, laws, [16], 100)
    line = next(line for line in figure.axes[1].lines if len(line.get_xdata()) == 60)  # the logarithm is the first law
    assert np.interp(64, line.get_xdata(), line.get_ydata()) == pytest.approx(20, abs=0.5)
    assert np.interp(1024, line.get_xdata(), line.get_ydata()) == pytest.approx(40, abs=0.5)
    figures.close(figure)


def test_the_other_figures_draw(parts):
    g = torch.Generator().manual_seed(1)
    stages = Stages.parse("RC+RS+NL")
    thresholds = Thresholds()
    found = [
        identity(8, 12, 40, kind, batches=3, redraws=4, thresholds=thresholds, generator=g)
        for kind in ("gaussian", "symmetric")
    ]
    dose = dose_response(8, 12, 40, [0.5, 1, 2], networks=6, thresholds=thresholds, generator=g)
    push = {8: pushed(8, 12, 10, stages, factor=3.0, draws=6, generator=g)}
    for figure in (
        pictures.depth_figure({8: parts[8, 16]}, {8: outlier_state(8)}, 16),
        pictures.beside_figure([(8, parts[8, 16], parts[8, 8])], 16),
        pictures.push_figure(push, 12),
        pictures.push_figure({}, 12),
        pictures.identity_figure(found, {"gaussian": "Gaussian", "symmetric": "symmetric"}),
        pictures.dose_figure(dose),
    ):
        assert all(math.isfinite(end) for panel in figure.axes for end in panel.get_ylim())
        figures.close(figure)
