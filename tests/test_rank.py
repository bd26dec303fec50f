"""Theorem 3: waiting times against exact expectations, bounds against exact tails, and against each other."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import nbinom

from bnlib import rank
from bnlib.collinear import attainable_rank, exact_rank
from bnlib.finite_field import PRIME, residues
from bnlib.gamma import gamma_bounds
from bnlib.rank import (
    expected_neurons_bound,
    neurons_for_confidence,
    orthogonal_neurons_bound,
    rank_times,
    tail_bounds,
    two_sample_neurons,
)


def waiting_times(x: torch.Tensor, draws: int, generator: torch.Generator) -> torch.Tensor:
    return rank_times(x.expand(draws, *x.shape), generator=generator)[:, -1].double()


def standard_errors_off(sample: torch.Tensor, truth: float) -> float:
    return abs(sample.mean().item() - truth) / (sample.std().item() / math.sqrt(len(sample)))


def pair_at(angle: float) -> torch.Tensor:
    return torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)


def nearly_one_direction(n: int) -> torch.Tensor:
    return torch.ones(n, n, dtype=torch.float64) + 1e-9 * torch.eye(n, dtype=torch.float64)


# --- the simulation against naive references -----------------------------------------------------------------------


def test_activations_are_exact(seed):
    x = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[0, 0] = 0.0  # a zero sample is never active
    found = rank._activations(x, 7, torch.Generator().manual_seed(seed + 1))
    weights = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    for draw, j, k in itertools.product(range(2), range(5), range(7)):
        exact = sum(
            Fraction(a) * Fraction(b) for a, b in zip(x[draw, j].tolist(), weights[draw, :, k].tolist(), strict=True)
        )
        expected = exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME if exact > 0 else 0
        assert found[draw, j, k] == expected


def test_activity_is_decided_exactly_where_rounding_would_not(monkeypatch):
    # 1 * 1 + eps/4 * (-1) + ... : the exact product is negative by 2^-60, float64 sums to exactly zero.
    x = torch.tensor([[[1.0, 1.0, 1.0]]], dtype=torch.float64)
    w = torch.tensor([[[1.0], [-1.0], [-(2.0**-60)]]], dtype=torch.float64)
    for sign in (1.0, -1.0):
        monkeypatch.setattr(torch, "randn", lambda *_, sign=sign, **__: sign * w)
        active = rank._activations(x, 1, torch.Generator()).item() != 0
        assert active == (sign < 0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_times_are_those_of_the_ranks_of_prefixes(n, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    # Many repeated and zero columns, so that most neurons do not raise the rank.
    columns = rng.integers(0, 2, size=(4, n, 400)) * rng.integers(0, 2, size=(4, 1, 400))
    used = 0

    def given(batches, count, generator):
        nonlocal used
        used += count
        return residues(torch.from_numpy(columns[:, :, used - count : used].astype(float)))[: len(batches)]

    # The same columns for draws that go on together: stop the comparison at the draw that ends first.
    monkeypatch.setattr(rank, "_activations", given)
    times = rank_times(torch.ones(4, n, n, dtype=torch.float64), generator=torch.Generator(), max_neurons=8)
    for draw in range(4):
        ranks = [exact_rank(columns[draw, :, : k + 1].astype(float)) for k in range(8)]
        expected = [next((k + 1 for k, r in enumerate(ranks) if r >= target), -1) for target in range(1, n + 1)]
        assert times[draw].tolist() == expected


def test_times_of_many_chunks_are_those_of_the_ranks_of_prefixes(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    columns = (rng.random((6, 4000)) < 0.02).astype(float)
    used = 0

    def given(batches, count, generator):
        nonlocal used
        used += count
        return residues(torch.from_numpy(columns[None, :, used - count : used]))

    monkeypatch.setattr(rank, "_activations", given)
    monkeypatch.setattr(rank, "_ELEMENTS", 600)
    times = rank_times(torch.ones(1, 6, 6, dtype=torch.float64), generator=torch.Generator(), max_neurons=4000)[0]
    for target, time in enumerate(times.tolist(), 1):
        assert exact_rank(columns[:, :time]) == target
        assert time == 1 or exact_rank(columns[:, : time - 1]) == target - 1 or not columns[:, : time - 1].any()


def test_rank_stops_exactly_at_the_attainable_rank(seed, generator):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        x = rng.integers(-2, 3, size=(4, 2)).astype(float)
        x = np.vstack([x, -x[:2], 2 * x[2:3]])
        reachable = attainable_rank(x)
        times = rank_times(torch.from_numpy(x), generator=generator, max_neurons=3000)
        assert (times >= 0).sum() == reachable, x
        assert (times[:reachable].diff() > 0).all()


def test_three_antipodal_pairs_in_the_plane_have_rank_five_for_ever(generator):
    half = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    times = rank_times(torch.cat([half, -half]).expand(20, 6, 2), generator=generator, max_neurons=2000)
    assert (times[:, 4] > 0).all()
    assert (times[:, 5] == -1).all()
    # Two of the pairs are enough for full rank.
    two = rank_times(torch.cat([half[:2], -half[:2]]).expand(20, 4, 2), generator=generator, max_neurons=2000)
    assert (two[:, 3] > 0).all()


def test_powers_of_two_in_the_rows_change_nothing(seed):
    x = torch.randn(10, 6, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    scale = 2.0 ** torch.tensor([0.0, 300.0, -300.0, 31.0, -31.0, 1.0], dtype=torch.float64)[:, None]
    first, second = (rank_times(y, generator=torch.Generator().manual_seed(seed)) for y in (x, x * scale))
    assert (first == second).all()


def test_shapes_targets_and_precision(generator):
    x = torch.randn(2, 3, 4, 5, generator=generator)
    assert rank_times(x, generator=generator).shape == (2, 3, 4)
    assert rank_times(x, generator=generator, target_rank=2).shape == (2, 3, 2)
    assert (rank_times(x, generator=generator, max_neurons=2)[..., 2:] == -1).all()


# --- exact expectations ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.05, math.pi / 2, 3.0])
def test_two_samples_wait_as_long_as_computed(angle, generator):
    sample = waiting_times(pair_at(angle), 25_000, generator)
    assert standard_errors_off(sample, two_sample_neurons(angle)) < 5
    # The same test tells a formula apart that is wrong by five per cent.
    assert standard_errors_off(sample, 1.05 * two_sample_neurons(angle)) > 5


def test_opposite_samples_on_a_line_wait_three_neurons(generator):
    sample = waiting_times(torch.tensor([[1.0], [-1.0]], dtype=torch.float64), 20_000, generator)
    assert standard_errors_off(sample, 3.0) < 5
    assert standard_errors_off(sample, 2.8) > 5


def test_nearly_one_direction_attains_the_bound(generator):
    """Independent samples of nearly one direction: a neuron sees all or none, T is negative binomial with mean 2n."""
    n = 6
    sample = waiting_times(nearly_one_direction(n), 4000, generator)
    assert standard_errors_off(sample, expected_neurons_bound(n, 0.5)) < 5
    assert standard_errors_off(sample, orthogonal_neurons_bound(n)) > 5
    for k in (8, 12, 20):
        expected = nbinom.sf(k - n, n, 0.5)
        error = math.sqrt(expected * (1 - expected) / len(sample))
        assert abs((sample > k).double().mean().item() - expected) < 5 * error
        assert tail_bounds(n, 0.5, k).binomial == pytest.approx(expected, rel=1e-12)


def test_orthogonal_samples_stay_below_their_bound_and_above_n(generator):
    for n in (2, 4, 8):
        sample = waiting_times(torch.eye(n, dtype=torch.float64), 3000, generator)
        error = sample.std().item() / math.sqrt(len(sample))
        assert n <= sample.mean().item() < orthogonal_neurons_bound(n) + 5 * error
        assert sample.mean().item() + 5 * error < expected_neurons_bound(n, 0.5)
    # The constant of Erdos and Borwein.
    assert orthogonal_neurons_bound(60) - 60 == pytest.approx(1.6066951524152917)


# --- the theorem ------------------------------------------------------------------------------------------------------


def test_theorem_3_as_an_inequality(seed, generator):
    """For fixed batches of several kinds: 1/γ <= mean <= n/γ; with γ doubled the bound is broken."""
    cluster = torch.tensor([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.3]], dtype=torch.float64)
    for x in (cluster, torch.eye(4, dtype=torch.float64), nearly_one_direction(4)):
        sample = waiting_times(x, 1500, generator)
        gamma = gamma_bounds(x.numpy()).lower
        error = sample.std().item() / math.sqrt(len(sample))
        assert 1 / gamma - 5 * error <= sample.mean().item() <= expected_neurons_bound(4, gamma) + 5 * error
    assert sample.mean().item() > expected_neurons_bound(4, gamma) / 2 + 5 * error


def test_full_rank_at_the_promised_width(generator):
    n, failure = 5, 0.1
    sample = waiting_times(nearly_one_direction(n), 2000, generator)
    width = neurons_for_confidence(n, 0.5, failure)
    error = math.sqrt(failure * (1 - failure) / len(sample))
    assert (sample > width).double().mean().item() < failure + 5 * error
    # Two fifths of that width are not enough.
    assert (sample > 2 * width // 5).double().mean().item() > failure + 5 * error


def test_tail_bounds_are_ordered_and_above_the_exact_tail():
    for n, gamma, neurons in itertools.product((1, 3, 50), (0.5, 0.03), (0, 1, 7, 100, 1000, 5000)):
        found = tail_bounds(n, gamma, neurons)
        exact = nbinom.sf(neurons - n, n, gamma) if neurons >= n else 1.0
        assert found.binomial == pytest.approx(exact, rel=1e-9, abs=1e-300)
        assert found.binomial <= found.chernoff * (1 + 1e-9) <= found.simple * (1 + 1e-8) <= 1 + 1e-8


def test_the_promised_width_solves_its_equation():
    for n, gamma, failure in itertools.product((1, 8, 100), (0.5, 0.01), (0.5, 1e-3, 1e-12)):
        width = neurons_for_confidence(n, gamma, failure)
        assert tail_bounds(n, gamma, width).simple <= failure * (1 + 1e-9)
        assert tail_bounds(n, gamma, width - 1).simple > failure * (1 - 1e-9)
        assert width <= 2 * (n - math.log(failure)) / gamma + 1


def test_two_sample_limits():
    assert two_sample_neurons(1e-9) == pytest.approx(4.0)
    assert two_sample_neurons(math.pi / 2) == pytest.approx(28 / 9)
    assert two_sample_neurons(math.pi - 1e-9) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_neurons_bound(0, 0.5), r"n must be a batch size of at least 1, got 0\."),
        (lambda: expected_neurons_bound(2, 0.6), r"gamma must be in \(0, 1/2\], got 0\.6\."),
        (lambda: tail_bounds(2, 0.0, 3), r"gamma must be in \(0, 1/2\], got 0\.0\."),
        (lambda: tail_bounds(2, 0.5, -1), r"neurons must be a number of neurons of at least 0, got -1\."),
        (lambda: neurons_for_confidence(2, 0.5, 1.0), r"failure_probability must be in \(0, 1\), got 1\.0\."),
        (lambda: two_sample_neurons(0.0), r"angle must be in \(0, pi\) radians, got 0\.0\."),
        (lambda: orthogonal_neurons_bound(0), r"n must be a batch size of at least 1, got 0\."),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (torch.full((2, 2), math.nan), {}, r"x must hold finite numbers, got NaN or infinity\."),
        (torch.zeros(0, 2, 2), {}, r"without empty dimensions, got shape \(0, 2, 2\)\."),
        (torch.eye(2), {"target_rank": 3}, r"target_rank must be from 1 to the batch size 2, got 3\."),
        (torch.eye(2), {"target_rank": 0}, r"target_rank must be from 1 to the batch size 2, got 0\."),
        (torch.eye(2), {"max_neurons": 0}, r"max_neurons must be at least 1, got 0\."),
    ],
)
def test_bad_simulations_are_refused(x, options, message):
    with pytest.raises(ValueError, match=message):
        rank_times(x, generator=torch.Generator(), **options)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gpu_waits_as_long_as_computed(seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    sample = waiting_times(pair_at(1.0).cuda(), 20000, generator).cpu()
    assert standard_errors_off(sample, two_sample_neurons(1.0)) < 5
