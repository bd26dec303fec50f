"""Tests of `bnlib.angles`: naive references first, then known values, degenerate cases, messages."""

import math

import numpy as np
import pytest
import torch

from bnlib import angles, kernels, seeds
from bnlib.data import gaussian_batch, symmetric_batch
from bnlib.ensembles import propagate
from bnlib.geometry import cluster_angle, mean_pairwise_angle
from bnlib.layers import Stages

DEGREES = 180 / math.pi


def parsed(name):
    return Stages.parse(name)


def naive_mean_angle(n, width, depth, draws, generator, *, recentering, scale):
    """Dense weights, plain loops over layers, arccos: the chapter's simulation written as naively as possible."""
    means = []
    for _ in range(draws):
        x = torch.randn(n, width, generator=generator, dtype=torch.float64)
        for _ in range(depth):
            h = x @ torch.randn(width, width, generator=generator, dtype=torch.float64) * math.sqrt(2 / width)
            if recentering:
                h = h - h.mean(dim=0)
            if scale == "rms":
                h = h / (h**2).mean(dim=0).sqrt()
            if scale == "std":
                h = h / h.std(dim=0, correction=0)
            x = h.clamp(min=0)
        unit = x / x.norm(dim=1, keepdim=True)
        pairs = torch.triu_indices(n, n, offset=1)
        means.append(torch.arccos((unit @ unit.T)[pairs[0], pairs[1]]).mean())
    return torch.stack(means)


NAIVE = {
    "NL": {"recentering": False, "scale": None},
    "RMS+NL": {"recentering": False, "scale": "rms"},
    "STD+NL": {"recentering": False, "scale": "std"},
    "RC+NL": {"recentering": True, "scale": None},
    "RC+RS+NL": {"recentering": True, "scale": "std"},
}


def standard_errors_apart(a, b):
    spread = math.sqrt(a.var().item() / len(a) + b.var().item() / len(b))
    return abs(a.mean().item() - b.mean().item()) / spread


class TestAngleCurves:
    @pytest.mark.parametrize("name", angles.STAGE_NAMES)
    def test_has_the_law_of_the_naive_simulation(self, name, seed):
        here = angles.angle_curves(
            5, 24, 4, parsed(name), draws=200, generator=seeds.generator(seed, name, "here"), depths=[4]
        ).mean_angle[0]
        naive = naive_mean_angle(5, 24, 4, 200, seeds.generator(seed, name, "naive"), **NAIVE[name])
        assert standard_errors_apart(here, naive) < 5

    def test_that_test_rejects_the_wrong_stage(self, seed):
        here = angles.angle_curves(
            5, 24, 4, parsed("RMS+NL"), draws=200, generator=seeds.generator(seed, "power"), depths=[4]
        ).mean_angle[0]
        wrong = naive_mean_angle(5, 24, 4, 200, seeds.generator(seed, "wrong"), **NAIVE["STD+NL"])
        assert standard_errors_apart(here, wrong) > 5

    def test_measures_each_wanted_depth(self, generator):
        curves = angles.angle_curves(4, 16, 6, parsed("RC+NL"), draws=3, generator=generator, depths=[6, 2, 2])
        assert curves.depths == (2, 6)
        for values in (curves.mean_angle, curves.outlier_angle, curves.cluster_angle, curves.top_over_second):
            assert values.shape == (2, 3)
        assert (curves.top_over_second >= 1).all()

    def test_one_layer_agrees_with_the_states_themselves(self, seed):
        curves = angles.angle_curves(6, 20, 3, parsed("RC+NL"), draws=7, generator=seeds.generator(seed), depths=[1, 3])
        again = seeds.generator(seed)
        batch = gaussian_batch(6, 20, generator=again, draws=7)
        states = list(propagate(batch, 20, 3, parsed("RC+NL"), generator=again))
        for row, state in ((0, states[0]), (1, states[2])):
            torch.testing.assert_close(curves.mean_angle[row], mean_pairwise_angle(state.x), equal_nan=True)
            torch.testing.assert_close(curves.cluster_angle[row], cluster_angle(state.x), equal_nan=True)

    def test_draws_in_groups_are_all_there(self, generator, monkeypatch):
        monkeypatch.setattr(angles, "_ENTRIES_AT_ONCE", {"cpu": 100})
        curves = angles.angle_curves(4, 16, 2, parsed("NL"), draws=5, generator=generator)
        assert curves.mean_angle.shape == (2, 5)
        assert len(set(curves.mean_angle[-1].tolist())) == 5

    def test_two_recentered_samples_are_orthogonal(self, generator):
        curves = angles.angle_curves(2, 64, 3, parsed("RC+NL"), draws=10, generator=generator)
        torch.testing.assert_close(curves.mean_angle, torch.full_like(curves.mean_angle, math.pi / 2))
        assert curves.cluster_angle.isnan().all()

    def test_a_zero_sample_has_no_angle(self, generator):
        curves = angles.angle_curves(3, 1, 4, parsed("RC+NL"), draws=6, generator=generator)
        assert curves.mean_angle[-1].isnan().all()

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"draws": 0}, r"draws must be a whole number of at least 1, got 0\."),
            ({"depths": []}, r"depths must be whole numbers from 1 to 3, got \[\]\."),
            ({"depths": [4]}, r"depths must be whole numbers from 1 to 3, got \[4\]\."),
            ({"n": 1}, "n"),
            ({"width": 0}, "d|width"),
        ],
    )
    def test_refuses(self, changes, sentence, generator):
        arguments = {"n": 4, "width": 8, "depth": 3, "stages": parsed("NL"), "draws": 2, **changes}
        with pytest.raises(ValueError, match=sentence):
            angles.angle_curves(**arguments, generator=generator)


class TestDepthGrid:
    def test_starts_at_one_ends_at_depth_and_increases(self):
        for depth in (1, 2, 3, 17, 1000):
            grid = angles.depth_grid(depth)
            assert grid[0] == 1
            assert grid[-1] == depth
            assert list(grid) == sorted(set(grid))

    def test_is_about_as_long_as_asked(self):
        assert 30 <= len(angles.depth_grid(10_000, 40)) <= 40

    def test_refuses(self):
        with pytest.raises(ValueError, match=r"depth must be a whole number of layers, 1 or more, got 0\."):
            angles.depth_grid(0)
        with pytest.raises(ValueError, match=r"points must be at least 2, got 1\."):
            angles.depth_grid(10, 1)


class TestWidenedAngles:
    def test_begins_as_the_narrow_network_does(self, seed):
        found = angles.widened_angles(
            5, 12, 4, parsed("STD+NL"), wider=50, more=2, draws=3, generator=seeds.generator(seed)
        )
        narrow = angles.angle_curves(
            5, 12, 4, parsed("STD+NL"), draws=3, generator=seeds.generator(seed), depths=[1, 2, 3, 4]
        )
        assert found.shape == (6, 3)
        torch.testing.assert_close(found[:4], narrow.mean_angle, equal_nan=True)

    def test_wide_layers_follow_the_infinite_width_map(self, seed):
        found = angles.widened_angles(
            2, 40, 1, parsed("NL"), wider=40_000, more=1, draws=30, generator=seeds.generator(seed)
        )
        # one pair a draw, so that the map applies to each draw; an angle fluctuates by about 1/sqrt(width)
        drift = found[1] - torch.from_numpy(kernels.relu_angle(found[0].numpy()))
        assert drift.abs().max() < 5 / math.sqrt(40_000)
        assert (found[1] - found[0]).abs().max() > 10 / math.sqrt(40_000)


class TestDrawStatistics:
    def test_agrees_with_numpy(self, generator):
        values = torch.randn(3, 4, 25, generator=generator, dtype=torch.float64)
        found = angles.draw_statistics(values)
        table = values.numpy()
        np.testing.assert_allclose(found.mean, table.mean(axis=-1), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.standard_error, table.std(axis=-1, ddof=1) / 5, rtol=1e-12)
        np.testing.assert_allclose(found.median, np.median(table, axis=-1))
        np.testing.assert_allclose(found.q10, np.quantile(table, 0.1, axis=-1))
        np.testing.assert_allclose(found.q90, np.quantile(table, 0.9, axis=-1))
        assert (found.undefined_share == 0).all()

    def test_leaves_out_and_counts_what_is_not_finite(self):
        found = angles.draw_statistics(torch.tensor([1.0, math.nan, 3.0, math.inf]))
        assert found.mean == 2
        assert found.median == 2
        assert found.undefined_share == 0.5
        assert found.standard_error == pytest.approx(1.0)

    def test_one_draw_has_no_standard_error(self):
        found = angles.draw_statistics(torch.tensor([[5.0]]))
        assert found.mean == 5
        assert np.isnan(found.standard_error)

    def test_nothing_finite(self):
        found = angles.draw_statistics(torch.full((2, 3), math.nan))
        assert np.isnan(found.mean).all()
        assert np.isnan(found.median).all()
        assert (found.undefined_share == 1).all()

    def test_refuses_no_draws(self):
        with pytest.raises(ValueError, match=r"values has shape \(2, 0\); valid is \(\.\.\., draws\)"):
            angles.draw_statistics(torch.empty(2, 0))


def test_none_stands_for_what_is_not_finite():
    assert angles.none_if_undefined(np.array([[1.0, np.nan], [np.inf, 2.0]])) == [[1.0, None], [None, 2.0]]
    assert angles.none_if_undefined(np.float64(3.0)) == 3.0
    assert angles.none_if_undefined(None) is None
    assert angles.none_if_undefined(np.empty(0)) == []


class TestLimitAngle:
    @pytest.mark.parametrize(
        ("name", "n", "degrees"),
        [
            ("NL", 8, 0),
            ("STD+NL", 8, 0),
            ("RMS+NL", 8, 60.107),
            ("RMS+NL", math.inf, 58.7525),
            ("RC+RS+NL", 8, 75.5145),
            ("RC+RS+NL", 2, 90),
            ("RC+RS+NL", math.inf, math.degrees(math.acos(1 / math.pi))),
        ],
    )
    def test_known_values(self, name, n, degrees):
        assert math.degrees(angles.limit_angle(parsed(name), n)) == pytest.approx(degrees, abs=1e-3)

    def test_recentering_alone_has_none(self):
        assert angles.limit_angle(parsed("RC+NL"), 8) is None

    def test_refuses(self):
        with pytest.raises(ValueError, match=r"n must be a batch size of at least 2, got 1\."):
            angles.limit_angle(parsed("RC+NL"), 1)
        with pytest.raises(ValueError, match=r"stages must end with NL \(ReLU\), got 'RC\+RS'\."):
            angles.limit_angle(parsed("RC+RS"), 8)


class TestWideAnglePath:
    @pytest.mark.parametrize("name", angles.STAGE_NAMES)
    @pytest.mark.parametrize("theta0", [math.pi / 2, 0.5])
    def test_is_what_very_wide_layers_do(self, name, theta0, seed):
        n, width = 6, 4000
        path = angles.wide_angle_path(parsed(name), n, 3, theta0)
        batch = symmetric_batch(n, n, cosine=math.cos(theta0), draws=40)
        states = list(propagate(batch, width, 3, parsed(name), generator=seeds.generator(seed, name)))
        found = torch.stack([mean_pairwise_angle(state.x) for state in states])
        error = found.std(dim=1) / math.sqrt(40)
        # a width of 4000 leaves a bias of the order of 1/width, a fifth of these standard errors and less
        assert ((found.mean(dim=1) - torch.from_numpy(path[1:])).abs() < 5 * error + 2 / width).all()

    def test_that_test_tells_the_two_rescalings_apart(self, seed):
        path = angles.wide_angle_path(parsed("STD+NL"), 6, 1, 0.5)
        batch = symmetric_batch(6, 6, cosine=math.cos(0.5), draws=40)
        state = next(propagate(batch, 4000, 1, parsed("RMS+NL"), generator=seeds.generator(seed)))
        found = mean_pairwise_angle(state.x)
        assert abs(found.mean() - path[1]) > 5 * found.std() / math.sqrt(40) + 2 / 4000

    def test_rms_goes_to_its_fixed_point(self):
        path = angles.wide_angle_path(parsed("RMS+NL"), 8, 80)
        assert path[-1] == pytest.approx(angles.limit_angle(parsed("RMS+NL"), 8), abs=1e-12)

    def test_std_of_three_samples_has_no_limit(self):
        assert angles.wide_angle_path(parsed("STD+NL"), 3, 2) is None

    def test_depth_zero_is_the_input(self):
        assert angles.wide_angle_path(parsed("RC+RS+NL"), 8, 0, 1.0).tolist() == [1.0]

    def test_refuses(self):
        with pytest.raises(ValueError, match="depth must be a whole number of layers, 0 or more, got -1"):
            angles.wide_angle_path(parsed("NL"), 8, -1)


class TestEscapedState:
    @pytest.mark.parametrize("n", [7, 8, 20, 64])
    def test_is_a_fixed_point_of_the_whole_gram_map(self, n):
        state = angles.escaped_state(n)
        norms = np.array([state.norm_ratio] + [1.0] * (n - 1))
        cosines = np.full((n, n), math.cos(state.cluster_angle))
        cosines[0, :] = cosines[:, 0] = math.cos(state.outlier_angle)
        np.fill_diagonal(cosines, 1.0)
        k = cosines * np.outer(norms, norms)
        after = kernels.recentered_relu_kernel(k)
        np.testing.assert_allclose(after / after[0, 0], k / k[0, 0], rtol=1e-9, atol=1e-13)

    @pytest.mark.parametrize(
        ("n", "ratio", "outlier", "cluster"),
        [(7, 3.849, 86.24, 61.37), (8, 5.105, 87.54, 54.65), (32, 30.385, 89.952, 15.88), (64, 62.674, 89.994, 8.18)],
    )
    def test_known_values(self, n, ratio, outlier, cluster):
        state = angles.escaped_state(n)
        assert state.norm_ratio == pytest.approx(ratio, abs=5e-4)
        assert math.degrees(state.outlier_angle) == pytest.approx(outlier, abs=5e-3)
        assert math.degrees(state.cluster_angle) == pytest.approx(cluster, abs=5e-3)
        assert state.mean_angle == pytest.approx((2 * state.outlier_angle + (n - 2) * state.cluster_angle) / n)
        assert state.residual < 1e-13

    @pytest.mark.parametrize("n", [3, 4, 5, 6])
    def test_small_batches_have_none(self, n):
        assert angles.escaped_state(n) is None

    def test_refuses(self):
        with pytest.raises(ValueError, match=r"n must be a batch size of at least 3, got 2\."):
            angles.escaped_state(2)
        with pytest.raises(ValueError, match="n must be finite"):
            angles.escaped_state(math.inf)
        with pytest.raises(ValueError, match=r"The escaped state is not reached: the residual is .* after 3\."):
            angles.escaped_state(8, max_layers=3)


class TestBatchSizesWithAngle:
    def test_an_interval_around_the_angle_of_one_size(self):
        angle = angles.limit_angle(parsed("RC+RS+NL"), 9)
        assert angles.batch_sizes_with_angle(parsed("RC+RS+NL"), angle - 1e-9, angle + 1e-9, range(2, 20)) == [9]

    def test_recentering_alone_has_no_such_angle(self):
        assert angles.batch_sizes_with_angle(parsed("RC+NL"), 0, math.pi, [4, 8]) == []

    def test_refuses(self):
        with pytest.raises(ValueError, match=r"low must be below high, got 1 and 1\."):
            angles.batch_sizes_with_angle(parsed("RC+NL"), 1, 1, [4])
