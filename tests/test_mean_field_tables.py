"""The chapter's tables: sizes, agreement, and that they can disagree."""

import numpy as np
import pytest

from bnlib.mean_field_tables import (
    blocks,
    comparison,
    method_differences,
    named,
    shift_changes,
    solutions_of_cosine_map,
    transform_accuracy,
    width_fates,
)


def _draw(*labels):
    return np.random.default_rng(abs(hash(labels)) % 2**32 if labels else 0)


def test_all_methods_agree():
    rows = method_differences([6])
    assert {row["method"] for row in rows} == {"closed form", "Laplace", "Gegenbauer", "Fourier"}
    for row in rows:
        assert abs(row["difference"]) < 1e-9 * max(1, abs(row["value"])), row


def test_transform_accuracy(seed):
    found = transform_accuracy(12, np.random.default_rng(seed), repeats=1)
    assert found["known"] < 1e-12
    assert found["unequal"] < 1e-9


def test_comparison_leaves_out_what_vanishes():
    def draw(*labels):
        return np.random.default_rng(len(labels) + len(labels[1]))

    rows = comparison(["tanh"], 5, 500, 32, 14, 4, draw)
    assert [row["quantity"] for row in rows] == [
        "diagonal",
        "off_diagonal",
        "lambda_L",
        "lambda_M",
        "cross_batch_decay",
    ]
    for row in rows:
        assert row["network_z"] == pytest.approx((row["network"] - row["theory"]) / row["network_error"])


def test_solutions():
    assert [solutions_of_cosine_map(alpha) for alpha in (0.5, 0.8, 1, 1.3, 6)] == [2, 2, 1, 2, 2]


def test_shifts_leave_everything_but_the_common_part():
    found = shift_changes(["relu"], 9, 2.0)["relu"]
    assert found["largest_change"] < 1e-9
    assert found["common"] > 1


def test_winners():
    def draw(*labels):
        return np.random.default_rng(0)

    rows = blocks(10, [3], 2, draw)
    assert [row["k"] for row in rows] == [1, 2]
    assert rows[0]["share"] > rows[1]["share"] > 0.4
    wide, narrow = width_fates(10, [1], [2000, 40], 12, 4, draw)
    assert wide["median"] < narrow["median"]


def test_names():
    assert named("leaky relu 0.25")(np.array([-4.0])).tolist() == [-1.0]
    with pytest.raises(ValueError, match="valid are"):
        named("swash")
