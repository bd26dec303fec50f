"""Networks with large powers of ReLU: states, arithmetics, refusals."""

import math

import numpy as np
import pytest
import torch

from bnlib import power_networks, seeds
from bnlib.rank_one_gradients import LayerNorms


def test_torchs_batch_norm_and_the_written_out_one_agree(seed):
    drawn = power_networks.drawn_network(6, 20, 4, None, torch.Generator().manual_seed(seed))
    written = power_networks.power_network(*drawn, 2, "float64")
    own = power_networks.power_network(*drawn, 2, "float64, torch")
    for one, other in zip(written, own, strict=True):
        assert one.log_square == pytest.approx(other.log_square, abs=1e-5)


def test_gradients_vanish_at_rank_one_and_rounding_slows_it_down(seed):
    rows = power_networks.arithmetic_rows(10, 30, [40], 40, 6, 4, 1e-3, lambda *key: seeds.generator(seed, *key))
    found = {row["arithmetic"]: row for row in rows}
    assert found["exact"]["networks"] >= 3
    assert abs(found["exact"]["median"] - found["exact"]["theory"]) < 2  # decades; medians of heavy-tailed factors
    assert abs(found["exact"]["cluster"] - found["exact"]["theory"]) < 2
    assert found["exact"]["greatest"] < found["float64"]["least"] < found["float64"]["greatest"] < -15
    assert found["float64"]["greatest"] < found["float32"]["least"] < 0


def test_fates_tell_states_apart():
    rows = power_networks.fates(10, 1, [64], 5, 2, lambda *key: seeds.generator(0, *key))
    assert {row["state"] for row in rows} == {"several winners"}  # ReLU: the symmetric state, in truth
    assert all(0 < row["decades"] < 1 for row in rows)


def test_states_and_decades():
    one = [LayerNorms(0.5, 5.0), LayerNorms(1e-9, -20.0), LayerNorms(0.0, -10.0)]
    assert power_networks.state_of(one) == "one winner"
    assert power_networks.decades_per_layer(one) == pytest.approx(-10 / math.log(10))
    overflow = [LayerNorms(0.5, math.nan), LayerNorms(0.5, 1.0)]
    assert power_networks.state_of(overflow) == "not finite"
    assert power_networks.decades_per_layer(overflow) is None
    assert power_networks.relative_path(overflow) == [0.0, None]


def test_constant_gradients_and_medians():
    rows = power_networks.rank_one_rows(10, [2], [100], 400, np.random.default_rng(0))
    assert rows[0]["constant"] < 1e-25
    assert abs(rows[0]["z"]) < 5


def test_refusals(unchecked):
    drawn = power_networks.drawn_network(4, 4, 2, None, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=r"arithmetic must be one of float64, .* got 'float16'"):
        power_networks.power_network(*drawn, 2, "float16")
