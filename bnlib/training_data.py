"""Data sets to train on, by name: Gaussian inputs with Gaussian or random labels, digits, and images from files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.data import cifar10, digits, fashion_mnist, mnist
from bnlib.training import Loss, cross_entropy

OUTPUTS = 10
_DIMENSION = 64  # of the Gaussian inputs: that of the digits
_IMAGES: dict[str, Callable[[str], Any]] = {
    "digits": lambda folder: digits(),
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10": cifar10,
}
DATA_SETS = ("gaussian", "random labels", *_IMAGES)


@dataclass(frozen=True)
class TrainingSet:
    """Samples with their targets, for ten outputs.

    Attributes:
        x: samples, shape (samples, d), float32; images are centered pixel by pixel, and one number scales all pixels
            to mean square one.
        targets: classes 0 to 9, shape (samples,), or Gaussian numbers, shape (samples, 10).
        loss: cross entropy, or `squared_error`; of outputs and targets, one number a network.
    """

    x: Float[Tensor, "samples d"]
    targets: Tensor
    loss: Loss

    @property
    def classes(self) -> bool:
        """Whether the targets are classes."""
        return self.targets.ndim == 1


def squared_error(
    outputs: Float[Tensor, "networks n outputs"], targets: Float[Tensor, "networks n outputs"]
) -> Float[Tensor, "networks"]:
    """Return half the squared error per output number, averaged over the samples.

    Args:
        outputs: of the networks.
        targets: real numbers.

    Returns:
        One loss a network.

    Example:
        >>> squared_error(torch.zeros(1, 2, 3), torch.ones(1, 2, 3)).item()
        0.5
    """
    return (outputs - targets).square().mean(dim=(1, 2)) / 2


def training_set(name: str, samples: int, *, generator: torch.Generator, folder: str = "data") -> TrainingSet:
    """Return samples to train on.

    Args:
        name: one of `DATA_SETS`. "gaussian": standard Gaussian inputs and ten independent standard Gaussian labels
            each; "random labels": the same inputs with random classes; else images with their classes.
        samples: how many; images are drawn without replacement.
        generator: source of randomness; the samples lie on its device.
        folder: where the files of mnist, fashion_mnist and cifar10 are.

    Returns:
        The data.

    Raises:
        ValueError: an unknown name, or a number of samples that is not there.

    Example:
        >>> found = training_set("digits", 200, generator=torch.Generator().manual_seed(0))
        >>> found.x.shape, round(float(found.x.square().mean()), 3), found.classes
        (torch.Size([200, 64]), 1.0, True)
    """
    if name not in DATA_SETS:
        raise ValueError(f"data must be one of {', '.join(DATA_SETS)}, got {name!r}.")
    options = {"generator": generator, "device": generator.device}
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise ValueError(f"samples must be a whole number of at least 2, got {samples!r}.")
    if name not in _IMAGES:
        x = torch.randn(samples, _DIMENSION, **options)
        if name == "gaussian":
            return TrainingSet(x, torch.randn(samples, OUTPUTS, **options), squared_error)
        return TrainingSet(x, torch.randint(OUTPUTS, (samples,), **options), cross_entropy)
    features, labels = _IMAGES[name](folder)
    if samples > len(features):
        raise ValueError(f"samples must be at most {len(features)}, the size of {name}, got {samples}.")
    chosen = torch.randperm(len(features), **options)[:samples]
    x = features.flatten(1).to(generator.device)[chosen]
    x = x - x.mean(dim=0)
    x = (x / x.square().mean().sqrt()).float()
    return TrainingSet(x, labels.to(generator.device)[chosen], cross_entropy)
