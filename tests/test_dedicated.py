"""Dedicated neurons: what the rows say of batches whose answer is known."""

import pytest
import torch

from bnlib.dedicated import dedicated_rows, representation_numbers


def test_representation_numbers():
    h = torch.tensor([[2.0, 0, 0, 0], [0, 3.0, 0, 0], [1.0, 1.0, 0, 0], [0, 0, 0, 0]])
    found = representation_numbers(h)
    assert found["silent"] == 0.25
    assert found["active"] == 4 / 16
    # Pairs of the three that speak: cosines 0, 1/sqrt 2, 1/sqrt 2.
    assert found["cosine"] == pytest.approx(2 / 3 / 2**0.5)
    assert representation_numbers(torch.zeros(2, 3)) == {"cosine": 0.0, "active": 0.0, "silent": 1.0}


def test_rows(generator):
    x = torch.randn(120, 10, generator=generator)
    rows = dedicated_rows(x[:60], [4, 11, 60], [None, 8], x[60:], repeats=3, generator=generator)
    assert [(row["samples"], row["neurons"], row["one_each"]) for row in rows[:2]] == [(4, 4, True), (4, 8, False)]
    for row in rows:
        if row["samples"] <= 11:
            # Eleven Gaussian samples in ten dimensions are affinely independent.
            assert row["isolated"] == 1
            assert row["cosine"] == 0
            assert row["active"] == pytest.approx(1 / row["samples"])
            assert row["silent"] == pytest.approx(max(0, 1 - row["neurons"] / row["samples"]))
            assert row["orthogonal"] == (row["silent"] == 0)
        assert 0 <= row["held_out_silent"] <= 1
        assert abs(row["he_active"] - 0.5) < 0.2
