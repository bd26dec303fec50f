"""Two samples: the exact law of their norm ratio against networks and against plain sampling."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import binom

from bnlib.data import gaussian_batch
from bnlib.falsification import follow
from bnlib.layers import Stages
from bnlib.two_samples import norm_ratio_median, norm_ratio_tail


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
