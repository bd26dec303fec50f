"""The exact law of a small angle's step at finite width, against simulated layers and the chi law."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from bnlib import pair_collapse, seeds
from bnlib.ensembles import propagate
from bnlib.geometry import mean_pairwise_angle
from bnlib.layers import Stages


@pytest.mark.parametrize("width", [24, 100])
def test_step_against_simulated_layers(width, seed):
    x = torch.randn(4000, 1, 6, generator=seeds.generator(seed, "point"), dtype=torch.float64)
    y = x + 1e-7 * torch.randn(4000, 1, 6, generator=seeds.generator(seed, "other"), dtype=torch.float64)
    batch = torch.cat([x, y], dim=-2)
    state = next(propagate(batch, width, 1, Stages.parse("NL"), generator=seeds.generator(seed, width)))
    logs = (mean_pairwise_angle(state.x) / mean_pairwise_angle(batch)).log()
    step = pair_collapse.pair_step(width)
    error = logs.std() / math.sqrt(4000)
    assert abs(logs.mean() - step.drift) < 5 * error
    assert abs(logs.var() - step.variance) < 5 * step.variance * math.sqrt(4 / 4000)
    # twice the variance is another law (all neurons active): rejected
    assert abs(logs.var() - step.variance / 2) > 5 * step.variance * math.sqrt(4 / 4000)


@pytest.mark.parametrize("width", [2, 3, 12])
def test_step_against_the_chi_law(width):
    drift, square, total = 0.0, 0.0, 0.0
    for k in range(2, width + 1):
        weight = math.comb(width, k) / 2**width
        top, bottom = stats.chi2(k - 1), stats.chi2(k)
        logs = [law.expect(lambda v: 0.5 * math.log(v)) for law in (top, bottom)]
        squares = [law.expect(lambda v: 0.25 * math.log(v) ** 2) for law in (top, bottom)]
        drift += weight * (logs[0] - logs[1])
        square += weight * (squares[0] + squares[1] - 2 * logs[0] * logs[1])
        total += weight
    step = pair_collapse.pair_step(width)
    assert step.drift == pytest.approx(drift / total, abs=1e-5)
    assert step.variance == pytest.approx(square / total - (drift / total) ** 2, abs=1e-4)
    assert step.lost == pytest.approx(1 - total, abs=1e-12)


def test_wide_layers():
    step = pair_collapse.pair_step(10_000)
    np.testing.assert_allclose([step.drift * 1e4, step.variance * 1e4], [-1, 2], atol=1e-3)
    assert step.lost == 0
    with pytest.raises(ValueError, match=r"width must be at least 2, got 1\."):
        pair_collapse.pair_step(1)
