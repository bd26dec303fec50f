r"""Named initial laws of a layer's weights and biases.

A law is told by its shape and its variance. The *fan-in* is the number of inputs of a neuron (the width of the layer
before), the fan-out the number of neurons of the next representation. PyTorch's default draws weights and biases from
$U(-1/\sqrt{f}, 1/\sqrt{f})$ with the fan-in $f$, hence with variance $1/(3f)$, a sixth of He's $2/f$.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Law = Literal["normal", "uniform"]
Fan = Literal["in", "average"]


@dataclass(frozen=True)
class Initialization:
    r"""An initial law: weights of mean zero and variance `weight_scale` / fan, biases likewise or zero.

    Attributes:
        name: what the field calls it.
        law: `"normal"` or `"uniform"` (symmetric about zero), for weights and biases.
        weight_scale: variance of a weight times the fan, positive, no unit.
        fan: `"in"`, or `"average"` of fan-in and fan-out.
        bias_scale: variance of a bias times the fan-in, 0 for zero biases.
        source: where the law comes from.
    """

    name: str
    law: Law
    weight_scale: float
    fan: Fan
    bias_scale: float
    source: str

    def weight_variance(self, fan_in: int, fan_out: int) -> float:
        """Return the variance of a weight of a layer from `fan_in` to `fan_out` features."""
        return self.weight_scale / (fan_in if self.fan == "in" else (fan_in + fan_out) / 2)

    def bias_variance(self, fan_in: int) -> float:
        """Return the variance of a bias of a layer with `fan_in` inputs."""
        return self.bias_scale / fan_in


INITIALIZATIONS: dict[str, Initialization] = {
    one.name: one
    for one in (
        Initialization("torch default", "uniform", 1 / 3, "in", 1 / 3, "nn.Linear of PyTorch"),
        Initialization("he", "normal", 2.0, "in", 0.0, "He et al., arXiv 1502.01852"),
        Initialization("he uniform", "uniform", 2.0, "in", 0.0, "He et al., arXiv 1502.01852, as a uniform law"),
        Initialization("lecun", "normal", 1.0, "in", 0.0, "LeCun et al., Efficient BackProp (1998)"),
        Initialization("glorot", "normal", 1.0, "average", 0.0, "Glorot and Bengio (2010)"),
    )
}


def initialization(name: str) -> Initialization:
    """Return the initial law of a name.

    Args:
        name: one of `INITIALIZATIONS`, in any case.

    Returns:
        The law.

    Raises:
        ValueError: if the name is not known; the message lists the known ones.

    Example:
        >>> initialization("he").weight_variance(128, 64)
        0.015625
        >>> round(3 * 128 * initialization("torch default").weight_variance(128, 64), 12)
        1.0
    """
    found = INITIALIZATIONS.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"name must be an initialization, one of {', '.join(INITIALIZATIONS)}, got {name!r}.")
    return found


def draw_weight(
    name: str,
    fan_in: int,
    fan_out: int,
    *,
    generator: torch.Generator,
    draws: int = 1,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "draws fan_in fan_out"]:
    """Draw the weight matrices of one layer; a batch x with samples in rows goes to x @ W.

    Args:
        name: an initial law, see `initialization`.
        fan_in: inputs of a neuron, at least 1.
        fan_out: number of neurons, at least 1.
        generator: source of randomness; the weights lie on its device.
        draws: number of independent networks, at least 1.
        dtype: a floating-point type.

    Returns:
        Independent entries of the law.

    Raises:
        ValueError: an unknown name, or a size below 1.

    Example:
        >>> draw_weight("he", 3, 2, generator=torch.Generator().manual_seed(0)).shape
        torch.Size([1, 3, 2])
    """
    law = initialization(name)
    _check_sizes(fan_in=fan_in, fan_out=fan_out, draws=draws)
    return _draw(law.law, law.weight_variance(fan_in, fan_out), (draws, fan_in, fan_out), generator, dtype)


def draw_bias(
    name: str,
    fan_in: int,
    fan_out: int,
    *,
    generator: torch.Generator,
    draws: int = 1,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "draws 1 fan_out"]:
    """Draw the biases of one layer, to be added to every row of x @ W.

    Args:
        name: an initial law, see `initialization`.
        fan_in: inputs of a neuron, at least 1.
        fan_out: number of neurons, at least 1.
        generator: source of randomness; it is not touched where the law's biases are zero.
        draws: number of independent networks, at least 1.
        dtype: a floating-point type.

    Returns:
        Independent entries of the law.

    Raises:
        ValueError: an unknown name, or a size below 1.

    Example:
        >>> draw_bias("he", 3, 2, generator=torch.Generator().manual_seed(0)).tolist()
        [[[0.0, 0.0]]]
    """
    law = initialization(name)
    _check_sizes(fan_in=fan_in, fan_out=fan_out, draws=draws)
    return _draw(law.law, law.bias_variance(fan_in), (draws, 1, fan_out), generator, dtype)


def nearest_of_rank(
    weight: Float[Tensor, "*draws fan_in fan_out"], rank: int
) -> Float[Tensor, "*draws fan_in fan_out"]:
    """Replace weight matrices by their nearest ones of a lower rank, scaled to the Frobenius norm that they had.

    Args:
        weight: matrices, no unit.
        rank: from 1 to the smaller dimension.

    Returns:
        The first `rank` terms of each singular value decomposition, rescaled.

    Raises:
        ValueError: if the rank is out of range.

    Example:
        >>> reduced = nearest_of_rank(torch.diag(torch.tensor([2.0, 1.0])), 1)
        >>> torch.linalg.matrix_rank(reduced).item(), round(reduced.norm().item() ** 2, 5)
        (1, 5.0)
    """
    smaller = min(weight.shape[-2:])
    if not 1 <= rank <= smaller:
        raise ValueError(f"rank must be from 1 to {smaller}, the smaller dimension of the weights, got {rank}.")
    left, singular, right = torch.linalg.svd(weight, full_matrices=False)
    scale = torch.linalg.vector_norm(singular, dim=-1) / torch.linalg.vector_norm(singular[..., :rank], dim=-1)
    return scale[..., None, None] * (left[..., :rank] * singular[..., None, :rank]) @ right[..., :rank, :]


def _draw(law: Law, variance: float, shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    if variance == 0:
        return torch.zeros(shape, dtype=dtype, device=generator.device)
    if law == "normal":
        return math.sqrt(variance) * torch.randn(shape, generator=generator, device=generator.device, dtype=dtype)
    half_width = math.sqrt(3 * variance)
    return half_width * (2 * torch.rand(shape, generator=generator, device=generator.device, dtype=dtype) - 1)


def _check_sizes(**sizes: int) -> None:
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
