"""Two samples: the exact law of their norm ratio against networks and against plain sampling."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import beta, binom

from bnlib.data import gaussian_batch
from bnlib.falsification import follow
from bnlib.layers import Stages
from bnlib.two_samples import check_two_samples, norm_ratio_median, norm_ratio_tail, uniform_ranks


def ratios_of_networks(seed, stages, width, draws=1500, depth=4):
    g = torch.Generator().manual_seed(seed)
    x = gaussian_batch(2, 7, generator=g, draws=draws)
    return follow(x, width, depth, Stages.parse(stages), generator=g).top_over_second.numpy()


def standardized(hits, draws, probability):
    return abs(hits - draws * probability) / math.sqrt(draws * probability * (1 - probability))


@pytest.mark.parametrize(("stages", "rescaling"), [("RC+NL", False), ("RC+RS+NL", True)])
@pytest.mark.parametrize("width", [5, 24])
def test_networks_obey_the_law_in_every_layer(seed, stages, rescaling, width):
    ratios = ratios_of_networks(seed, stages, width)
    threshold = 1.3
    probability = norm_ratio_tail(threshold, width, rescaling=rescaling)
    other = norm_ratio_tail(threshold, width, rescaling=not rescaling)
    for layer in ratios:
        assert standardized(int((layer >= threshold).sum()), len(layer), probability) < 5
    # All layers together reject the law of the other kind of network.
    assert standardized(int((ratios >= threshold).sum()), ratios.size, other) > 5


def test_ratios_of_two_layers_are_independent(seed):
    first, second = np.log(ratios_of_networks(seed, "RC+NL", 16, draws=3000, depth=2))
    error = 1 / math.sqrt(len(first))
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 * error
    assert abs(np.corrcoef(first, 0.8 * first + 0.6 * second)[0, 1]) > 5 * error  # power: what a memory would look like


def test_the_median_has_half_of_the_probability_on_each_side():
    for width in (3, 10, 64, 1024):
        assert norm_ratio_tail(norm_ratio_median(width), width) == pytest.approx(0.5, abs=1e-9)


def test_wide_networks_have_the_ratio_of_the_normal_approximation():
    width = 40_000
    assert (norm_ratio_median(width) - 1) * math.sqrt(width) == pytest.approx(math.sqrt(3) * 0.674490, rel=0.01)


def test_one_neuron_leaves_one_sample_at_zero():
    assert norm_ratio_tail(1e9, 1) == 1.0
    assert norm_ratio_tail(1e9, 4) == pytest.approx(2 / 16, abs=1e-6)


def test_rescaling_counts_neurons():
    assert norm_ratio_tail(math.sqrt(3), 4, rescaling=True) == pytest.approx(2 * binom.pmf(3, 4, 0.5) + 2 / 16)


def test_errors():
    with pytest.raises(ValueError, match=r"ratio is 0\.5; valid is a number of at least 1\."):
        norm_ratio_tail(0.5, 8)
    with pytest.raises(ValueError, match=r"width is 0; valid is at least 1\."):
        norm_ratio_tail(2.0, 0)
    with pytest.raises(ValueError, match=r"width is 2; valid is at least 3\."):
        norm_ratio_median(2)


# --- the whole theorem against networks ---------------------------------------------------------------------------


def checked(seed, stages="RC+NL", width=24, draws=400, depth=12, change=lambda paths: paths):
    g = torch.Generator().manual_seed(seed)
    paths = follow(gaussian_batch(2, 7, generator=g, draws=draws), width, depth, Stages.parse(stages), generator=g)
    angle, ratio, longer = (v.numpy() for v in (paths.angle.rad2deg(), paths.top_over_second, paths.index))
    return check_two_samples(*change((angle, ratio, longer)), width)


def test_networks_pass_every_part_of_the_theorem(seed):
    for width in (24, 300):
        found = checked(seed, width=width)
        assert abs(found["least_angle_deg"] - 90) < 1e-6
        assert abs(found["largest_angle_deg"] - 90) < 1e-6
        assert (found["ratios"], found["zero_samples"]) == (4800, 0)
        assert min(found["ks_p"], found["layers_p"]) > 1e-6
        assert max(abs(found["lag_z"]), abs(found["lag_size_z"])) < 5


def test_another_law_in_all_layers_is_found(seed):
    """Rescaling has another law of the ratio."""
    assert checked(seed, "RC+RS+NL")["ks_p"] < 1e-6


def test_another_law_in_one_layer_is_found(seed):
    def change(paths):
        angle, ratio, longer = paths
        changed = ratio.copy()
        changed[3] = changed[3] ** 1.8
        return angle, changed, longer

    found = checked(seed, change=change)
    assert found["layers_p"] < 1e-6


def test_a_sample_that_stays_the_longer_one_is_found(seed):
    """Ratios as they are, but the longer sample mostly that of the layer before."""

    def change(paths):
        angle, ratio, longer = paths
        kept = longer.copy()
        kept[1::2, :300] = kept[0::2, :300]
        return angle, ratio, kept

    found = checked(seed, change=change)
    assert found["lag_z"] > 5
    assert found["ks_p"] > 1e-6


def test_ratios_that_remember_are_found_though_the_longer_sample_does_not(seed):
    def change(paths):
        angle, ratio, longer = paths
        kept = ratio.copy()
        kept[1::2] = kept[0::2]
        return angle, kept, longer

    assert checked(seed, change=change)["lag_size_z"] > 5


def test_ranks_are_the_distribution_function():
    for width in (3, 16, 1024):
        logs = np.log(norm_ratio_median(width)) * np.array([-3.0, -0.7, 0.2, 1.0, 2.5, 5.0])
        exact = [norm_ratio_tail(math.exp(abs(x)), width) / 2 for x in logs]
        expected = [tail if x < 0 else 1 - tail for x, tail in zip(logs, exact, strict=True)]
        assert uniform_ranks(logs, width) == pytest.approx(expected, abs=1e-4)
    assert uniform_ranks(np.array([-np.inf, np.inf]), 8).tolist() == [0.0, 1.0]


def test_the_tail_has_all_counts_that_matter():
    for width in (4, 100, 5000):
        counts = np.arange(1, width)
        inner = beta.sf(1.69 / 2.69, counts / 2, (width - counts) / 2)
        naive = 2 * (binom.pmf(counts, width, 0.5) @ inner + 0.5**width)
        assert norm_ratio_tail(1.3, width) == pytest.approx(naive, rel=1e-9, abs=1e-290)


def test_shapes_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"angle_deg, norm_ratio and longer have shapes .*; valid is one shape"):
        check_two_samples(np.zeros((2, 3)), np.ones((2, 3)), np.zeros((3, 2), dtype=int), 8)
