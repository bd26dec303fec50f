"""Tests of `bnlib.activity`: naive references first, then known values, degenerate cases, messages."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from bnlib import activity, seeds
from bnlib.angles import STAGE_NAMES
from bnlib.layers import Stages


def parsed(name):
    return Stages.parse(name)


def naive_statistics(before):
    """One draw, (n, width), by plain loops."""
    n, width = before.shape
    columns = [before[:, j].numpy() for j in range(width)]
    skewness = [stats.skew(column) for column in columns if np.ptp(column) > 0]
    active = [int((column > 0).sum()) for column in columns]
    after = [column.clip(min=0) for column in columns]
    skewness_after = [stats.skew(column) for column in after if np.ptp(column) > 0]
    return {
        "skewness_before": stats.skew(before.numpy().ravel()),
        "skewness_after": stats.skew(before.numpy().clip(min=0).ravel()),
        "zero_fraction_after": (before.numpy() <= 0).mean(),
        "neuron_skewness_before": math.sqrt(np.mean(np.square(skewness))),
        "neuron_skewness_after": np.mean(skewness_after),
        "neuron_zero_deviation": np.std([(column == 0).mean() for column in after]),
        "mean_share": np.mean([column.mean() ** 2 for column in columns]) / np.mean(before.numpy() ** 2),
        "unanimous_share": sum(k in (0, n) for k in active) / width,
        "active_counts": [active.count(k) / width for k in range(n + 1)],
    }


class TestActivityStatistics:
    def test_agrees_with_plain_loops(self, generator):
        before = torch.randn(3, 5, 40, generator=generator, dtype=torch.float64)
        before[1, :, 7] = 1.5  # a neuron with equal activities
        found = activity.activity_statistics(activity.Activity(before, before.clamp(min=0)))
        for draw in range(3):
            for name, value in naive_statistics(before[draw]).items():
                np.testing.assert_allclose(getattr(found, name)[draw].numpy(), value, rtol=1e-10, atol=1e-12)

    def test_zeros_before_are_counted(self):
        before = torch.tensor([[[0.0, 1.0], [0.0, -1.0]]])
        found = activity.activity_statistics(activity.Activity(before, before.clamp(min=0)))
        assert found.zero_fraction_before.item() == 0.5
        assert found.zero_fraction_after.item() == 0.75

    def test_a_dead_layer_gives_nan_and_no_error(self):
        before = torch.zeros(1, 3, 4)
        found = activity.activity_statistics(activity.Activity(before, before))
        assert found.skewness_before.isnan().all()
        assert found.unanimous_share.item() == 1


class TestNeuronActivity:
    @pytest.mark.parametrize("name", STAGE_NAMES)
    def test_half_of_all_activities_are_zero_whatever_the_stages(self, name, seed):
        found = activity.neuron_activity(6, 50, 4, parsed(name), draws=300, generator=seeds.generator(seed, name))
        share = activity.activity_statistics(found).zero_fraction_after
        assert abs(share.mean() - 0.5) < 5 * share.std() / math.sqrt(300)

    def test_that_test_rejects_a_shifted_activity(self, seed):
        found = activity.neuron_activity(6, 50, 4, parsed("RC+RS+NL"), draws=300, generator=seeds.generator(seed))
        shifted = activity.Activity(found.before + 0.1, (found.before + 0.1).clamp(min=0))
        share = activity.activity_statistics(shifted).zero_fraction_after
        assert abs(share.mean() - 0.5) > 5 * share.std() / math.sqrt(300)

    @pytest.mark.parametrize("name", ["RC+NL", "RC+RS+NL"])
    def test_recentering_leaves_no_mean_and_no_unanimous_neuron(self, name, generator):
        found = activity.neuron_activity(5, 30, 3, parsed(name), draws=4, generator=generator)
        assert found.before.mean(dim=-2).abs().max() < 1e-12
        assert activity.activity_statistics(found).unanimous_share.max() == 0

    @pytest.mark.parametrize(("name", "scale"), [("RMS+NL", False), ("STD+NL", True), ("RC+RS+NL", True)])
    def test_rescaled_neurons_have_one_scale(self, name, scale, generator):
        before = activity.neuron_activity(5, 30, 2, parsed(name), draws=4, generator=generator).before
        moment = before.std(dim=-2, correction=0) if scale else before.square().mean(dim=-2).sqrt()
        ratio = moment / moment.mean(dim=-1, keepdim=True)
        torch.testing.assert_close(ratio, torch.ones_like(ratio))

    def test_the_unit_is_the_root_mean_square(self, generator):
        found = activity.neuron_activity(5, 30, 2, parsed("NL"), draws=4, generator=generator)
        torch.testing.assert_close(found.before.square().mean(dim=(-2, -1)), torch.ones(4, dtype=torch.float64))

    def test_orthogonal_samples_make_few_unanimous_neurons(self, seed):
        found = activity.neuron_activity(4, 2000, 1, parsed("NL"), draws=20, generator=seeds.generator(seed))
        share = activity.activity_statistics(found).unanimous_share
        assert abs(share.mean() - 2 / 2**4) < 5 * share.std() / math.sqrt(20)

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"depth": 0}, r"depth is 0; valid is an integer >= 1\."),
            ({"stages": Stages.parse("RC")}, r"stages must end with NL \(ReLU\), got 'RC'\."),
            ({"stages": Stages.parse("NL+RC")}, r"stages must end with NL \(ReLU\), got 'NL\+RC'\."),
            ({"n": 1}, "n"),
        ],
    )
    def test_refuses(self, changes, sentence, generator):
        arguments = {"n": 4, "width": 8, "depth": 3, "stages": parsed("NL"), "draws": 2, **changes}
        with pytest.raises(ValueError, match=sentence):
            activity.neuron_activity(**arguments, generator=generator)


class TestLargestSkewness:
    @pytest.mark.parametrize("n", [2, 3, 8, 50])
    def test_is_a_bound_that_one_odd_value_reaches(self, n, generator):
        values = torch.randn(2000, n, generator=generator, dtype=torch.float64) ** 3
        assert activity.skewness(values).max() <= activity.largest_skewness(n) + 1e-9
        odd = torch.full((n,), -7.0, dtype=torch.float64)
        odd[0] = 100.0
        assert activity.skewness(odd).item() == pytest.approx(activity.largest_skewness(n), abs=1e-9)

    def test_refuses(self):
        with pytest.raises(ValueError, match=r"n must be at least 2, got 1\."):
            activity.largest_skewness(1)


class TestLargestSamplePlane:
    def test_keeps_what_lies_in_the_plane(self, generator):
        flat = torch.tensor([[3.0, 0.0], [0.6, 1.0], [-0.2, 0.4]], dtype=torch.float64)
        frame = torch.linalg.qr(torch.randn(10, 2, generator=generator, dtype=torch.float64)).Q
        found = activity.largest_sample_plane(flat @ frame.T)
        torch.testing.assert_close(found.coordinates, flat / 3)
        assert found.index.item() == 0
        assert found.captured.item() == pytest.approx(1)

    def test_agrees_with_a_plain_gram_schmidt(self, generator):
        x = torch.randn(4, 6, 9, generator=generator, dtype=torch.float64)
        found = activity.largest_sample_plane(x)
        for draw in range(4):
            rows = x[draw].numpy()
            top = int(np.argmax(np.linalg.norm(rows, axis=1)))
            first = rows[top] / np.linalg.norm(rows[top])
            mean = np.delete(rows, top, axis=0).mean(axis=0)
            second = mean - (mean @ first) * first
            second /= np.linalg.norm(second)
            expected = rows @ np.stack([first, second], axis=1) / np.linalg.norm(rows[top])
            np.testing.assert_allclose(found.coordinates[draw].numpy(), expected, atol=1e-12)
            others = np.delete(rows, top, axis=0)
            seen = ((others @ first) ** 2 + (others @ second) ** 2).sum() / (others**2).sum()
            assert found.captured[draw].item() == pytest.approx(seen)

    def test_parallel_samples_have_no_second_coordinate(self):
        x = torch.tensor([[2.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
        found = activity.largest_sample_plane(x)
        assert found.coordinates.tolist() == [[1.0, 0.0], [0.5, 0.0], [0.5, 0.0]]
        assert found.captured.item() == 1

    def test_refuses(self):
        with pytest.raises(ValueError, match=r"x has d = 1; valid is a batch \(\.\.\., n, d\) with d >= 2\."):
            activity.largest_sample_plane(torch.ones(3, 1))
