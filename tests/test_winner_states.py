"""States with winners and what networks keep of them: known values, wrong variants, bad input."""

import math

import numpy as np
import pytest

from bnlib.homogeneous import homogeneous
from bnlib.mean_field_survey import Measured, extrapolated, norm_shares
from bnlib.two_block import two_block_states
from bnlib.winner_states import (
    collapse_rates,
    heavy_start,
    late_spread,
    memory_of_start,
    spread_limits,
    winner_table,
)


def _draw(*labels):
    return np.random.default_rng([sum(map(ord, str(label))) for label in labels])


def test_no_winner_at_40_and_one_at_64():
    rows = winner_table([40, 64], 1, 800, _draw)
    assert [row["restored"] for row in rows] == [True, False]
    assert all(row["stable"] and row["residual"] < 1e-6 for row in rows)
    known = two_block_states(64, homogeneous(1), lowest=-14.0, points=120)[0]
    assert rows[1]["share"] == pytest.approx(64 * known.share, rel=1e-6)
    linear = winner_table([64], 1, 800, _draw, slope=1.0)[0]  # a linear layer has no winners
    assert linear["restored"]


def test_which_clusters_collapse():
    square = [collapse_rates(10, k, homogeneous(2)) for k in (1, 2, 3)]
    assert [row["bounded"] for row in square] == [False, False, True]
    assert square[0]["far"] / square[0]["near"] == pytest.approx(1e15, rel=1e-3)  # r'/r = C / sqrt(r)
    assert square[2]["collapses"]
    relu = collapse_rates(64, 3, homogeneous(1))
    assert relu["bounded"]
    assert not relu["collapses"]


def test_heavy_start():
    k = heavy_start(12, 5)
    assert norm_shares(k[None])[0] * 12 == pytest.approx(5)
    assert np.abs(k.sum(axis=0)).max() < 1e-12
    assert np.allclose(heavy_start(12, 1), np.eye(12) - 1 / 12)
    with pytest.raises(ValueError, match="size must be at least 1 and below n - 1 = 3, got 3"):
        heavy_start(4, 3)


def test_small_batches_forget_their_start():
    equal, winner = memory_of_start("relu", [8], [400], 5, 40, 4, _draw)
    assert (equal["start"], winner["start"]) == ("equal", "winner")
    assert winner["path"][0] > 2 > winner["greatest"] > 1
    assert equal["greatest"] < 2
    assert len(equal["path"]) == 8
    fast = memory_of_start("square", [12], [400], 5, 20, 4, _draw)  # a rapidly growing activation keeps a winner
    assert min(row["least"] for row in fast) > 2


def test_spreads_extrapolate_to_zero_below_the_instability():
    names = ["tanh", "square"]
    rows = late_spread(names, [8], [100, 400], 40, 6, _draw)
    tanh, square = spread_limits(rows)
    assert abs(tanh["limit"]) < 5 * tanh["error"] + 2e-3
    assert square["limit"] > 0.2 + 5 * square["error"]
    again = extrapolated(Measured(0.3, 0.1), Measured(0.2, 0.1))  # the rule of the chapter at twice the width
    base = {"activation": "a", "n": 8, "spread_error": 0.1}
    (found,) = spread_limits([base | {"width": 32, "spread": 0.3}, base | {"width": 64, "spread": 0.2}])
    assert found["limit"] == pytest.approx(again.mean)
    assert found["error"] == pytest.approx(again.error)
    assert spread_limits(rows[:1]) == []
    with pytest.raises(ValueError, match="networks must be at least 2, got 1"):
        late_spread(names, [8], [10], 4, 1, _draw)
    assert math.isfinite(rows[0]["spread_error"])
