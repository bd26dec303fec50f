"""Agreement between networks on the outlier: against counting pairs, and at chance where symmetry demands it."""

import itertools
import math

import pytest
import torch

from bnlib.estimates import share_interval
from bnlib.falsification import Thresholds
from bnlib.outlier_identity import (
    _ends_of_a_line,
    _uniform_p,
    dose_response,
    identity,
    pair_agreement,
    student_interval,
)


def test_pair_agreement_agrees_with_counting_pairs(seed):
    g = torch.Generator().manual_seed(seed)
    index = torch.randint(0, 5, (7, 12), generator=g)
    valid = torch.rand(7, 12, generator=g) < 0.7
    estimates = []
    for row, mask in zip(index.tolist(), valid.tolist(), strict=True):
        kept = [i for i, ok in zip(row, mask, strict=True) if ok]
        pairs = list(itertools.combinations(kept, 2))
        if pairs:
            estimates.append(sum(a == b for a, b in pairs) / len(pairs))
    mean = sum(estimates) / len(estimates)
    error = math.sqrt(sum((e - mean) ** 2 for e in estimates) / (len(estimates) - 1) / len(estimates))
    assert pair_agreement(index, valid) == pytest.approx((mean, error))


def test_pair_agreement_is_unbiased(seed):
    """Uniform choices among 4: the estimate from few redraws is 1/4, and that of the plug-in formula is not."""
    g = torch.Generator().manual_seed(seed)
    index = torch.randint(0, 4, (4000, 3), generator=g)
    mean, error = pair_agreement(index, torch.ones_like(index, dtype=torch.bool))
    assert abs(mean - 0.25) < 5 * error
    shares = torch.nn.functional.one_hot(index, 4).double().mean(dim=1)
    assert abs(float((shares**2).sum(dim=1).mean()) - 0.25) > 5 * error


def test_pair_agreement_needs_two_batches_with_two_draws():
    index = torch.zeros(3, 4, dtype=torch.long)
    valid = torch.zeros(3, 4, dtype=torch.bool)
    assert pair_agreement(index, valid) is None
    valid[0] = True
    valid[1, 0] = True
    assert pair_agreement(index, valid) is None
    valid[2, :2] = True
    assert pair_agreement(index, valid) == (1.0, 0.0)


def test_pair_agreement_refuses_different_shapes():
    with pytest.raises(ValueError, match=r"valid has shape \(1, 2\); valid is that of index, \(1, 3\)\."):
        pair_agreement(torch.zeros(1, 3, dtype=torch.long), torch.ones(1, 2, dtype=torch.bool))


def run(kind, seed, **changes):
    settings = {"n": 12, "width": 32, "depth": 80, "batches": 8, "redraws": 30, "thresholds": Thresholds()} | changes
    return identity(kind=kind, generator=torch.Generator().manual_seed(seed), **settings)


def test_symmetric_batches_agree_by_chance_and_a_line_does_not(seed):
    symmetric, line = run("symmetric", seed), run("line", seed)
    # Uniform and independent choices: the standard deviation of the estimate is known, not estimated from few batches.
    draws = 30 * symmetric["share_with_outlier"]
    error = math.sqrt(2 / (8 * draws * (draws - 1)) * (1 / 12) * (11 / 12))
    assert abs(symmetric["agreement"] - 1 / 12) < 6 * error
    assert abs(line["agreement"] - 1 / 12) > 6 * error
    assert symmetric["share_farthest"] is None
    assert symmetric["share_extreme"] is None
    assert line["share_extreme"] > 2 / 12


def test_student_intervals_cover_where_two_standard_errors_do_not(seed):
    g = torch.Generator().manual_seed(seed)
    sample = torch.randn(4000, 4, generator=g, dtype=torch.float64)
    means, errors = sample.mean(dim=1), sample.std(dim=1) / 2
    ends = [student_interval(m, e, 4) for m, e in zip(means.tolist(), errors.tolist(), strict=True)]
    covered = sum(low <= 0 <= high for low, high in ends)
    error = math.sqrt(4000 * 0.95 * 0.05)
    assert abs(covered - 0.95 * 4000) < 5 * error
    assert abs(int((means.abs() <= 2 * errors).sum()) - 0.95 * 4000) > 5 * error
    with pytest.raises(ValueError, match=r"count is 1; valid is at least 2 batches\."):
        student_interval(0.5, 0.1, 1)


def test_choices_of_symmetric_batches_are_uniform_and_those_of_others_are_not_asked(seed):
    found = run("symmetric", seed)
    assert found["uniform_p"] > 1e-6
    assert found["outlier_low"] < found["share_with_outlier"] <= found["outlier_high"]
    assert (found["outlier_low"], found["outlier_high"]) == share_interval(
        round(240 * found["share_with_outlier"]), 240
    )
    assert run("gaussian", seed)["uniform_p"] is None
    assert run("symmetric", seed, batches=2, redraws=2)["uniform_p"] is None
    # Power: choices that prefer one sample as much as twice are rejected.
    uneven = torch.cat([torch.arange(12).repeat(20), torch.zeros(60, dtype=torch.long)])
    assert _uniform_p(uneven, 12) < 1e-6


def test_ends_of_a_line_have_an_interval_even_without_a_miss():
    hits, valid = torch.ones(9, 20, dtype=torch.bool), torch.ones(9, 20, dtype=torch.bool)
    found = _ends_of_a_line(hits, valid, (1.0, 0.0))
    assert (found["extreme_misses"], found["extreme_high"]) == (0, 1.0)
    assert found["extreme_low"] == share_interval(180, 180)[0] > 0.97
    hits[0] = False  # one batch in which it never is: known less well than 20 misses of 180 draws would be
    found = _ends_of_a_line(hits, valid, (8 / 9, 1 / 9))
    assert found["extreme_misses"] == 20
    assert found["extreme_low"] == pytest.approx(student_interval(8 / 9, 1 / 9, 9)[0])
    assert _ends_of_a_line(hits, valid, (None, None))["extreme_low"] is None


def test_identity_without_an_outlier_says_so(seed):
    found = run("gaussian", seed, depth=1)
    assert found["share_with_outlier"] == 0
    assert found["agreement"] is None
    assert found["share_farthest"] is None


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("cauchy", {}, r"kind is 'cauchy'; valid is \"gaussian\", \"symmetric\", \"line\" or \"digits\"\."),
        ("line", {"n": 2}, r"n is 2; valid is a batch size of at least 3\."),
        ("line", {"redraws": 1}, r"batches is 8 and redraws is 1; valid is at least 2 of each\."),
    ],
)
def test_identity_refuses(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        run(kind, 0, **changes)


# --- length alone -------------------------------------------------------------------------------------------------


def test_length_alone_is_chance_at_one_and_decides_at_four(seed):
    found = dose_response(
        12,
        24,
        80,
        [1.0, 4.0],
        networks=200,
        thresholds=Thresholds(),
        generator=torch.Generator().manual_seed(seed),
    )
    at_one, at_four = found
    error = math.sqrt(at_one["with_outlier"] * (1 / 12) * (11 / 12))
    assert abs(at_one["hits"] - at_one["with_outlier"] / 12) < 5 * error
    assert abs(at_four["hits"] - at_four["with_outlier"] / 12) > 5 * error
    assert (at_one["low"], at_one["high"]) == share_interval(at_one["hits"], at_one["with_outlier"])


def test_length_without_any_outlier_says_so(seed):
    found = dose_response(
        12, 24, 1, [1.0], networks=5, thresholds=Thresholds(), generator=torch.Generator().manual_seed(seed)
    )
    assert (found[0]["with_outlier"], found[0]["share"], found[0]["low"]) == (0, None, None)


@pytest.mark.parametrize(
    ("n", "factors", "message"),
    [
        (2, [1.0], r"n is 2 and networks is 5; valid is n >= 3 with at least 1 network\."),
        (8, [], r"factors is \[\]; valid is at least one, all positive\."),
        (8, [1.0, 0.0], r"factors is \[1\.0, 0\.0\]; valid is at least one, all positive\."),
    ],
)
def test_dose_response_refuses(n, factors, message):
    with pytest.raises(ValueError, match=message):
        dose_response(n, 8, 3, factors, networks=5, thresholds=Thresholds(), generator=torch.Generator().manual_seed(0))


def test_identity_on_digits_knows_the_longest_sample(seed):
    found = run("digits", seed, batches=4, redraws=10)
    assert 0 <= found["share_longest"] <= 1
    assert found["share_extreme"] is None
