"""Measurements for Theorem 3: bookkeeping against naive counts, and the theorem itself on fresh batches."""

import numpy as np
import pytest
import torch

from bnlib.collinear import attainable_rank
from bnlib.rank_experiments import (
    WaitingTimes,
    accuracy_summary,
    attained_ranks,
    cone_batch,
    degenerate_batch,
    finite_or_none,
    fixed_batch_times,
    gaussian_waiting_times,
    lifted_batches,
    log_log_slope,
    mean_and_error,
    mean_rank_curve,
    near_collinear_cells,
    share_interval,
)


def example(lower, upper, kind="exact (plane)"):
    return WaitingTimes(
        times=np.array([4, 8]),
        gamma_lower=np.array(lower),
        gamma_upper=np.array(upper),
        kind=kind,
        n=2,
        input_dim=2,
    )


def test_cell_and_share_by_hand():
    found = example([0.5, 0.25], [0.5, 0.5])
    cell = found.cell()
    assert cell == {
        "n": 2,
        "input_dim": 2,
        "mean": 6.0,
        "standard_error": 2.0,
        "bound": (2 / 0.5 + 2 / 0.25) / 2,
        "bound_at_least": 2 / 0.5,
        "bound_kind": "exact (plane)",
    }
    assert found.share()["share_of_bound"] == (4 * 0.5 / 2 + 8 * 0.25 / 2) / 2
    assert found.share()["share_at_most"] == (4 * 0.5 / 2 + 8 * 0.5 / 2) / 2
    assert found.share()["share_at_most_error"] == 0.5
    assert found.share()["over_lower_bound"] == (4 * 0.5 + 8 * 0.5) / 2


def test_no_bound_where_full_rank_is_out_of_reach():
    cell = example([0.5, 0.25], [0.5, 0.5], kind=None).cell()
    assert cell["bound"] is None
    assert cell["bound_at_least"] is None
    assert cell["bound_kind"] is None


@pytest.mark.parametrize(
    ("n", "d", "kind"),
    [
        (3, 5, "exact (independent samples)"),
        (2, 2, "exact (independent samples)"),
        (5, 2, "exact (plane)"),
        (10, 8, "exact (general position)"),
        (20, 3, "certified lower bound (general position)"),
    ],
)
def test_theorem_3_on_fresh_batches(n, d, kind, generator):
    found = gaussian_waiting_times(n, d, 500 if n == 2 else 80, generator=generator)
    assert found.kind == kind
    assert (found.times >= n).all()
    assert (found.gamma_lower <= found.gamma_upper).all()
    mean, error = mean_and_error(found.times * found.gamma_lower / n)
    assert mean + 5 * error < 1  # the theorem, batch by batch
    mean, error = mean_and_error(found.times * found.gamma_upper)
    assert mean + 5 * error > 1  # the lower bound 1/γ


def test_each_draw_has_a_fresh_batch(generator):
    found = gaussian_waiting_times(6, 2, 30, generator=generator)
    assert len(set(found.gamma_lower.tolist())) > 5


def test_mean_rank_curve_equals_naive_counting(seed):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(1, 12, size=(7, 4)), axis=1)
    times[0, 3] = -1
    naive = [np.mean([sum(0 < t <= k for t in row) for row in times]) for k in range(1, 10)]
    assert mean_rank_curve(times, 9) == pytest.approx(naive)


def test_fixed_batch_times_have_one_row_a_draw(generator):
    found = fixed_batch_times(torch.eye(3, dtype=torch.float64), 5, generator=generator, target_rank=2)
    assert found.shape == (5, 2)


def test_share_interval_covers_and_refuses(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.binomial(500, 0.1))
    lower, upper = share_interval(count, 500)
    assert lower < 0.1 < upper
    assert not lower < 0.3 < upper
    assert share_interval(0, 10)[0] == 0.0
    assert share_interval(10, 10)[1] == 1.0


def test_degenerate_batches_are_degenerate(generator):
    batches = [degenerate_batch(6, 3, generator=generator) for _ in range(40)]
    assert all((batch == batch.round()).all() for batch in batches)
    short = [attainable_rank(batch.numpy()) < 6 for batch in batches]
    assert any(short)
    assert not all(short)


def test_attained_ranks_agree(generator):
    found = attained_ranks(24, 1500, generator=generator)
    assert all(one["attained"] == one["attainable"] for one in found)
    # Without counting antipodal pairs or repeated samples the ranks would not agree.
    assert any(one["attained"] < one["n"] for one in found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda g: gaussian_waiting_times(3, 1, 5, generator=g),
            r"input_dim must be at least 2, got 1: all samples on a line are collinear\.",
        ),
        (lambda g: gaussian_waiting_times(3, 2, 1, generator=g), r"draws must be at least 2, got 1\."),
        (lambda g: mean_and_error(np.array([1.0])), r"sample must hold at least two numbers, got 1\."),
        (lambda g: share_interval(3, 2), r"count must be from 0 to draws, got 3 of 2\."),
    ],
)
def test_bad_arguments_are_refused(call, message, generator):
    with pytest.raises(ValueError, match=message):
        call(generator)


def test_narrow_cone_needs_as_many_neurons_as_one_over_its_opening(generator):
    cells = near_collinear_cells(5, 2, [0.01, 0.001], 100, generator=generator)
    slope, error = log_log_slope(cells)
    assert abs(slope + 1) < 5 * error + 0.05
    assert abs(slope + 0.5) > 5 * error
    for cell in cells:
        assert 1 / cell["gamma_upper"] < cell["mean"] + 5 * cell["standard_error"]
        assert cell["mean"] - 5 * cell["standard_error"] < 5 / cell["gamma_lower"]


def test_independent_samples_do_not_mind_a_narrow_cone(generator):
    for cell in near_collinear_cells(3, 3, [1.0, 1e-4], 300, generator=generator):
        assert cell["gamma_lower"] == 0.5
        assert cell["mean"] - 5 * cell["standard_error"] < 6


def test_lifted_batches_by_hand(generator):
    x = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    x[:, 2] = 0
    found = lifted_batches(x, 5, 8, 60, generator=generator)
    assert found["input_rank_max"] == 2
    assert found["largest"] >= found["mean"] >= 5
    assert found["share_lower"] <= found["share_full"] <= found["share_upper"]
    assert lifted_batches(x, 5, found["largest"] * 1000, 60, generator=generator)["share_full"] == 1.0


def test_accuracy_summary_by_hand():
    found = accuracy_summary([1.0, 0.5, None], "test")
    assert found["test_mean"] == 0.5
    assert found["test_error"] == pytest.approx(np.std([1.0, 0.5, 0.0], ddof=1) / np.sqrt(3))
    assert (found["test_min"], found["test_max"]) == (0.0, 1.0)
    assert accuracy_summary([0.7], "test")["test_error"] is None
    assert finite_or_none(float("inf")) is None


def test_opening_must_be_positive(unchecked):
    with pytest.raises(ValueError, match="opening must be positive, got 0"):
        cone_batch(torch.eye(2), 0.0)
