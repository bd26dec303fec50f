r"""Named initial laws of a layer's weights and biases, and initial weights that are built from data.

The module is spelled as outside users import it; the prose keeps to the American spelling.

A law is told by its shape and its variance. The *fan-in* is the number of inputs of a neuron (the width of the layer
before), the fan-out the number of neurons of the next representation. PyTorch's default draws weights and biases from
$U(-1/\sqrt{f}, 1/\sqrt{f})$ with the fan-in $f$, hence with variance $1/(3f)$, a sixth of He's $2/f$.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
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


@dataclass(frozen=True)
class DedicatedNeurons:
    """A first layer in which every neuron belongs to one sample: a batch x goes to relu(x @ weight + bias).

    Attributes:
        weight: shape (d, neurons).
        bias: shape (1, neurons).
        owner: the sample of each neuron, shape (neurons,).
        isolated: whether the neuron is silent on every other sample that it was built from, shape (neurons,).
    """

    weight: Float[Tensor, "d neurons"]
    bias: Float[Tensor, "1 neurons"]
    owner: Int[Tensor, "neurons"]
    isolated: Bool[Tensor, "neurons"]


def dedicated_neurons(x: Float[Tensor, "samples d"], neurons: int) -> DedicatedNeurons:
    r"""Build a ReLU layer that gives each sample a neuron of its own, by our reading of the review's sentence.

    With the centered samples $c_i$ the neuron of sample $i$ has the direction $(C^{\mathsf T}C)^+ c_i$, so that its
    scores are the row $h_{i\cdot}$ of the hat matrix $H = C(C^{\mathsf T}C)^+C^{\mathsf T}$. If
    $h_{ii} > \max_{j\ne i}h_{ij}$, a threshold half-way between the two silences it on all other samples, and its own
    sample has the activity 1. This always holds for affinely independent samples, where
    $H = I - \mathbf 1\mathbf 1^{\mathsf T}/n$. Otherwise the threshold is put at $0.95\,h_{ii}$ and the neuron is
    shared. Neuron k belongs to sample k modulo the number of samples: where the layer has more neurons than there are
    samples, each has several; where it has fewer, the last samples have none.

    Args:
        x: different samples, at least 2.
        neurons: how many, at least 1.

    Returns:
        The layer, in the type of x; computed in float64.

    Raises:
        ValueError: fewer than two samples, no neuron, or a sample that equals the mean of all.

    Example:
        >>> layer = dedicated_neurons(torch.eye(3, 4, dtype=torch.float64), 3)
        >>> torch.relu(torch.eye(3, 4, dtype=torch.float64) @ layer.weight + layer.bias).round(decimals=9).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    _check_sizes(neurons=neurons)
    samples = len(x)
    if samples < 2:
        raise ValueError(f"x has {samples} samples; valid is a batch of at least 2.")
    centered = x.double() - x.double().mean(dim=0)
    owner = torch.arange(neurons, device=x.device) % samples
    directions = torch.linalg.pinv(centered)[:, owner]
    scores = centered @ directions
    own = scores[owner, torch.arange(neurons, device=x.device)]
    if not bool((own > 0).all()):
        raise ValueError("x holds a sample that equals the mean of all; valid are samples that differ from it.")
    others = scores.scatter(0, owner[None, :], -math.inf).amax(dim=0)
    isolated = own > others * (1 + 1e-9)
    margin = torch.where(isolated, (own - others) / 2, 0.05 * own)
    weight = directions / margin
    bias = 1 - own / margin - x.double().mean(dim=0) @ weight
    return DedicatedNeurons(weight.to(x.dtype), bias[None, :].to(x.dtype), owner, isolated)


def recentered_weight_scale(n: int) -> float:
    r"""Weight variance times the fan-in that keeps the outlier's scale under RC and ReLU.

    $2\alpha$ with $\alpha = n^2/(n^2-2n+2)$: Theorem 13 of arXiv 2412.02843. It moves no angle and no ratio of norms.

    Args:
        n: batch size, at least 2.

    Raises:
        ValueError: n < 2.

    Example:
        >>> round(recentered_weight_scale(16), 4)
        2.2655
    """
    if n < 2:
        raise ValueError(f"n is {n}; valid is a batch size of at least 2.")
    return 2 * n**2 / (n**2 - 2 * n + 2)


def imposing_layer(
    x: Float[Tensor, "*draws n d"], target: Float[Tensor, "*draws n width"]
) -> tuple[Float[Tensor, "*draws d width"], Float[Tensor, "*draws 1 width"]]:
    """Return the affine map of least norm that takes a batch closest to a given one.

    For affinely independent samples (at most d + 1 of them) the target is met exactly, and a ReLU leaves it alone if it
    is not negative.

    Args:
        x: batch.
        target: where each sample shall go.

    Returns:
        Weight and bias, computed in float64, in the type of x.

    Example:
        >>> weight, bias = imposing_layer(torch.eye(3), torch.tensor([[5.0], [0.0], [1.0]]))
        >>> (torch.eye(3) @ weight + bias).flatten().round(decimals=4).tolist()
        [5.0, 0.0, 1.0]
    """
    mean, center = x.double().mean(dim=-2, keepdim=True), target.double().mean(dim=-2, keepdim=True)
    weight = torch.linalg.pinv(x.double() - mean) @ (target.double() - center)
    return weight.to(x.dtype), (center - mean @ weight).to(x.dtype)


def cluster_and_outlier(
    x: Float[Tensor, "*draws n d"],
    width: int,
    depth: int,
    *,
    generator: torch.Generator,
    draws: int = 1,
    skipped: int = 0,
) -> tuple[tuple[Float[Tensor, "draws inputs width"], Float[Tensor, "draws 1 width"]], ...]:
    """Draw ReLU layers that give one batch the cluster and the outlier of recentered layers, without normalization.

    Layer by layer the weights are Gaussian with the variance of `recentered_weight_scale`, and the bias of a neuron is
    minus its mean pre-activation on the batch. On this batch the network is, exactly, the one with recentering and the
    same weights; on other samples the biases are constants. With `skipped` layers the first layer is the affine map
    that takes the batch to where so many recentered layers take it (see `imposing_layer`), so that a shallow network
    starts in the outlier state as well. The essay on arXiv 2412.02843 asks for such an initialization; this one is
    ours. Biases from data are those of Salimans and Kingma (arXiv 1602.07868, section 3).

    Args:
        x: the reference batch, at least two samples: one for all networks, or one a network.
        width: neurons of each layer.
        depth: number of layers.
        generator: source of randomness.
        draws: number of independent networks.
        skipped: recentered layers that the first layer stands for; 0 for none.

    Returns:
        Weight and bias of each layer, in the type of x.

    Raises:
        ValueError: a size that is too small.

    Example:
        >>> x = torch.eye(3, dtype=torch.float64)
        >>> layers = cluster_and_outlier(x, 5, 2, generator=torch.Generator().manual_seed(0), draws=2)
        >>> [tuple(weight.shape) for weight, _ in layers]
        [(2, 3, 5), (2, 5, 5)]
    """
    _check_sizes(width=width, depth=depth, draws=draws)
    scale = recentered_weight_scale(x.shape[-2])
    batch = x.expand(draws, *x.shape[-2:])

    def drawn(here: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fan_in = here.shape[-1]
        weight = _draw("normal", scale / fan_in, (draws, fan_in, width), generator, x.dtype)
        h = here @ weight
        bias = -h.mean(dim=-2, keepdim=True)
        return weight, bias, torch.relu(h + bias)

    found, here = [], batch
    for _ in range(skipped):
        here = drawn(here)[2]
        # The scale is free, and lost in many layers: the norm of the batch stays as it was.
        here = here * (torch.linalg.matrix_norm(batch) / torch.linalg.matrix_norm(here))[:, None, None]
    if skipped:
        found.append(imposing_layer(batch, here))
    while len(found) < depth:
        weight, bias, here = drawn(here)
        found.append((weight, bias))
    return tuple(found)


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
