"""Who wins: shares, selection by the input, blocks, precision, mixtures; bad input."""

import numpy as np
import pytest

from bnlib.activations import activation
from bnlib.mean_field import forward_multipliers
from bnlib.symmetry_breaking import (
    centered_shares,
    ends_in_blocks,
    favored_input,
    linear_mixtures,
    mixed_with_identity,
    precision_rows,
    selection_at_infinite_width,
    selection_in_networks,
    winners,
)


def test_shares_and_winners(seed):
    x = np.random.default_rng(seed).standard_normal((3, 6, 9))
    k = x @ x.transpose(0, 2, 1)
    shares = centered_shares(k)
    centered = x - x.mean(axis=1, keepdims=True)
    naive = (centered**2).sum(axis=2)
    assert shares == pytest.approx(naive / naive.sum(axis=1, keepdims=True))
    assert winners(np.eye(5)).item() == 5
    assert winners(np.diag([9.0, 1, 1, 1, 1])).item() == 1


def test_selection_at_infinite_width():
    found = selection_at_infinite_width(6, 8, 1e-1, 30)
    assert found["right"] == 6
    assert found["share"] > 0.3
    assert found["unbroken"] == pytest.approx(1 / 6, abs=1e-6)
    assert selection_at_infinite_width(6, 1, 1e-2, 20)["share"] < 0.18  # below the threshold nobody wins


def test_selection_in_networks(seed):
    rows = selection_in_networks(6, 4, [0.0, 6.0], 150, 10, 40, np.random.default_rng(seed))
    assert rows[0]["places"] >= 3
    assert rows[0]["won"] <= rows[1]["won"]


def test_the_end_is_a_block(seed):
    (row,) = ends_in_blocks(6, 4, 1, 40, np.random.default_rng(seed))
    assert row["k"] < 6
    assert row["pattern"] < 0.2
    assert favored_input(4, 1.0, 3)[3, 3] == 2


def test_precision_follows_the_same_networks(seed):
    rows = precision_rows(8, 30, [60], 8, 3, np.random.default_rng(seed))
    assert [row["precision"] for row in rows] == ["float64", "float32"]
    for row in rows:
        assert row["finite"] == 1
        assert 0 <= row["exact"] <= 1
        assert row["one"] + row["two"] <= 1
    mild = precision_rows(8, 1, [60], 8, 3, np.random.default_rng(seed))
    assert all(row["exact"] == 0 for row in mild if np.isfinite(row["exact"]))  # power: ReLU loses no digits


def test_mixtures():
    phi = activation("square")
    assert mixed_with_identity(phi, 1.0)(np.array([3.0])).tolist() == [3.0]
    (row,) = linear_mixtures([phi], [16], [0.0, 1.0])
    assert row["values"] == pytest.approx([forward_multipliers(phi, 16).norms, 15 / 17])
    (bounded,) = linear_mixtures([activation("tanh")], [16], [0.0, 0.5])
    assert not bounded["falls"]
    assert not bounded["unstable"]


def test_errors(unchecked):
    generator = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at least 5, got 4"):
        selection_at_infinite_width(4, 2, 0.1)
    with pytest.raises(ValueError, match="size must be positive and finite, got 0"):
        selection_at_infinite_width(6, 2, 0.0)
    with pytest.raises(ValueError, match="at least 5, got 4"):
        selection_in_networks(4, 2, [0.0], 8, 2, 2, generator)
    with pytest.raises(ValueError, match="at least 5, got 4"):
        ends_in_blocks(4, 2, 1, 2, generator)
    with pytest.raises(ValueError, match="depth must be at least 4, got 3"):
        precision_rows(6, 2, [8], 3, 1, generator)
    with pytest.raises(ValueError, match="part must lie between 0 and 1, got 2"):
        mixed_with_identity(activation("relu"), 2)
