"""Training sets by name: moments, labels, independence of the seed, errors."""

import math

import pytest
import torch

from bnlib.data import DataFileError
from bnlib.training_data import DATA_SETS, squared_error, training_set


def test_gaussian(generator):
    data = training_set("gaussian", 4000, generator=generator)
    assert data.x.shape == (4000, 64)
    assert data.targets.shape == (4000, 10)
    assert not data.classes
    for values in (data.x, data.targets):
        count = values.numel()
        assert abs(float(values.double().mean())) < 5 / math.sqrt(count)
        assert abs(float(values.double().square().mean()) - 1) < 5 * math.sqrt(2 / count)
        assert abs(float((2 * values.double()).square().mean()) - 1) > 5 * math.sqrt(2 / count)
    # Half the mean square of standard Gaussian targets is the loss of an output that is always zero.
    loss = squared_error(torch.zeros(1, 4000, 10), data.targets[None])
    assert abs(float(loss) - 0.5) < 5 * math.sqrt(0.5 / 40000)


def test_random_labels_have_nothing_to_do_with_the_inputs(generator):
    data = training_set("random labels", 2000, generator=generator)
    assert data.classes
    assert set(data.targets.tolist()) == set(range(10))
    means = torch.stack([data.x[data.targets == one].mean(dim=0) for one in range(10)])
    sizes = torch.bincount(data.targets, minlength=10)
    assert float((means * sizes[:, None].sqrt()).abs().max()) < 6  # 640 standard Gaussian numbers


def test_digits(generator):
    data = training_set("digits", 1797, generator=generator)
    torch.testing.assert_close(data.x.mean(dim=0), torch.zeros(64), atol=1e-5, rtol=0)
    assert float(data.x.square().mean()) == pytest.approx(1, abs=1e-5)
    again = training_set("digits", 1797, generator=torch.Generator().manual_seed(generator.initial_seed()))
    assert torch.equal(data.x, again.x)


def test_errors(generator, unchecked, tmp_path):
    known = "gaussian, random labels, digits, mnist, fashion_mnist, cifar10"
    assert ", ".join(DATA_SETS) == known
    with pytest.raises(ValueError, match=f"data must be one of {known}, got 'imagenet'"):
        training_set("imagenet", 10, generator=generator)
    with pytest.raises(ValueError, match="samples must be at most 1797, the size of digits, got 1798"):
        training_set("digits", 1798, generator=generator)
    with pytest.raises(ValueError, match="samples must be a whole number of at least 2, got 1"):
        training_set("gaussian", 1, generator=generator)
    with pytest.raises(DataFileError, match="MNIST needs the file"):
        training_set("mnist", 10, generator=generator, folder=str(tmp_path))
