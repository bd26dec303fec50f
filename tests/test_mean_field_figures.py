"""The chapter's pictures draw what they are given."""

import numpy as np
import pytest

from bnlib import figures
from bnlib import mean_field_figures as pictures


@pytest.fixture
def axes():
    figure, panels = figures.new_figure()
    yield panels[0, 0]
    figures.close(figure)


def test_multipliers(axes):
    pictures.multiplier_curves(axes, {"relu": {"4": {"L": 0.5}, "8": {"L": 0.7}}}, "L", "x")
    assert axes.lines[1].get_ydata().tolist() == [0.5, 0.7]


def test_convergence(axes):
    pictures.convergence_curves(axes, [{"n": 8, "path": [2.0, 1.0, 0.5, 0.25], "lambda_L": 0.5}])
    assert axes.lines[1].get_ydata().tolist() == [1.0, 0.5, 0.25, 0.125]
    assert axes.lines[0].get_ydata() == pytest.approx([0.25, 0.125])


def test_shares_and_inference(axes):
    pictures.share_curves(axes, [{"activation": "relu", "path": [1.0, 2.0]}])
    assert axes.lines[1].get_xdata().tolist() == [1, 11]
    pictures.inference_curves(
        axes, {"1": {"accuracy": 0.9, "accuracy_error": 0.1}, "2": {"accuracy": 0.8, "accuracy_error": 0.1}}
    )


def test_two_starts_and_the_continuation():
    figure, panels = figures.new_figure(rows=3)
    rows = [{"width": 32, "start": "equal", "path": [1.0, 1.1]}, {"width": 32, "start": "winner", "path": [3.0, 2.0]}]
    pictures.memory_curves(panels[0, 0], rows)
    assert [line.get_linestyle() for line in panels[0, 0].lines[1:]] == ["--", "-"]
    assert panels[0, 0].lines[2].get_xdata().tolist() == [1, 6]
    stages = [{"t": 0.0, "fold": 6.1, "norm_ratio": 60.0}, {"t": 1.0, "fold": 51.4, "norm_ratio": None}]
    pictures.continuation(panels[1, 0], panels[2, 0], stages)
    assert panels[1, 0].lines[0].get_ydata().tolist() == [6.1, 51.4]
    assert panels[2, 0].lines[0].get_ydata().tolist() == [60.0]
    figures.close(figure)


def test_correlations(axes):
    pictures.correlation_curves(axes, ["relu"], 8)
    values = axes.lines[1].get_ydata()
    assert values[0] == 0
    assert values[-1] == pytest.approx(1)


def test_norm_ratio_of_shares():
    assert pictures._norm_ratio(0.25, 4.0) == pytest.approx(1)
    assert pictures._norm_ratio(0.75, 4.0) == pytest.approx(3)
    outer, inner = pictures._branch(np.array([60.0]), 0.0)
    assert outer[0] > inner[0] > 1
