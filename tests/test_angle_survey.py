"""The chapter's measurements: against direct computation, and the networks whose equality they test."""

import math

import pytest
import torch

from bnlib import angle_survey, kernels, seeds, stage_order
from bnlib.angles import angle_curves
from bnlib.layers import Stages
from bnlib.pair_collapse import pair_step


def test_depth_cell_summarizes_the_curves(seed):
    stages = Stages.parse("NL")
    cell = angle_survey.depth_cell(5, 40, 24, stages, draws=6, generator=seeds.generator(seed))
    curves = angle_curves(5, 40, 24, stages, draws=6, generator=seeds.generator(seed), depths=cell["depths"])
    degrees = torch.rad2deg(curves.mean_angle)
    assert cell["mean"] == pytest.approx(degrees.mean(dim=-1).tolist())
    assert cell["standard_error"][-1] == pytest.approx(degrees[-1].std().item() / math.sqrt(6))
    assert {1, 10, 12, 24} <= set(cell["depths"])
    fall = (degrees[cell["depths"].index(12)] / degrees[-1]).log2()
    assert cell["exponent"] == pytest.approx(fall.mean().item())
    assert cell["top_over_second"] == pytest.approx(curves.top_over_second[-1].quantile(0.5).item())
    # of six draws the 95 percent interval of a median is the whole sample
    ratios = curves.top_over_second[-1].tolist()
    assert (cell["top_over_second_low"], cell["top_over_second_high"]) == (min(ratios), max(ratios))
    assert cell["outlier_deg_low"] <= cell["outlier_deg"] <= cell["outlier_deg_high"]


def test_a_single_layer_has_no_exponent(generator):
    cell = angle_survey.depth_cell(4, 16, 1, Stages.parse("RC+NL"), draws=3, generator=generator)
    assert cell["exponent"] is None
    assert cell["depths"] == (1,)


@pytest.mark.parametrize("name", ["NL+RC+RS", "NL+RMS"])
def test_layer_points_meet_the_theory(name, seed):
    cell = angle_survey.layer_point_cell(
        8, 800, 20, Stages.parse(name), draws=20, generator=seeds.generator(seed, name)
    )
    points = stage_order.resting_points(name, 8)
    for key, angle in (("after_norm", points.after_norm), ("after_relu", points.after_relu)):
        gap = abs(cell[f"{key}_deg"] - math.degrees(angle))
        assert gap < 5 * cell[f"{key}_standard_error_deg"] + 256 / 800
        # the resting angle with the norm before the activation, behind the other point, is refused
        other = points.after_relu if key == "after_norm" else points.after_norm
        assert abs(cell[f"{key}_deg"] - math.degrees(other)) > 5 * cell[f"{key}_standard_error_deg"] + 256 / 800


@pytest.mark.parametrize(("norm", "same"), [("RC", True), ("RC+RS", False), ("RMS", False), ("STD", False)])
def test_only_recentering_may_change_sides(norm, same, seed):
    gap = angle_survey.order_gap(norm, n=6, width=48, depth=8, generator=seeds.generator(seed, norm))
    assert gap < 1e-10 if same else gap > 1e-2


def test_pair_steps_follow_the_exact_law(seed):
    found = angle_survey.pair_steps(40, draws=4000, generator=seeds.generator(seed))
    step = pair_step(40)
    assert abs(found["log_mean"] - step.drift) < 5 * found["log_mean_standard_error"]
    # three times the drift is refused
    assert abs(found["log_mean"] - 3 * step.drift) > 5 * found["log_mean_standard_error"]


def test_tolerances_name_ranges():
    degrees = [(n, math.degrees(kernels.batch_norm_angle(n))) for n in range(2, 60)]
    assert angle_survey.tolerance_row(degrees, 75, [2.5]) == ["6 to 29"]
    assert angle_survey.tolerance_row([(2, 1.0), (3, 9.0), (4, 1.2)], 1, [0.5, 0.0]) == ["2, 4", "2"]
    assert angle_survey.tolerance_row([(2, 1.0)], 5, [1]) == ["none"]


def test_messages(generator):
    with pytest.raises(ValueError, match=r"stages must have the norm after the activation, got 'RC\+NL'\."):
        angle_survey.layer_point_cell(4, 8, 2, Stages.parse("RC+NL"), draws=2, generator=generator)
    with pytest.raises(ValueError, match="degrees is empty"):
        angle_survey.tolerance_row([], 60, [1])
