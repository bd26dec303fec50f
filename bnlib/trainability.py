"""Which networks train: deep batch-normalized networks of any activation, many at once, under SGD or Adam.

`bnlib.training` trains the networks of chapter 2 (identity or ReLU, plain SGD). Here the activation, the epsilon, the
initial gain (gamma) and shift (beta) and the optimizer are free. All tensors have a leading dimension, one entry a
network; both optimizers act entry by entry, so each network is trained as if it were alone. There is no bias before
batch normalization, since it would drop out.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import batch_norm

from bnlib.gradients import torch_activation
from bnlib.training import cross_entropy, shuffled_batches


@dataclass(frozen=True)
class Setting:
    """How a family of networks is built and trained.

    Attributes:
        activation: a name of `bnlib.gradients.torch_activation`.
        epsilon: added to the variance, at least 0.
        gain: initial gamma.
        shift: initial beta.
        optimizer: "sgd" (plain) or "adam".
        learning_rate: positive; a tuple holds one for each network.
        weight_variance: sigma^2 of the initial weights, variance sigma^2 / inputs.
        batch_norm: whether there is batch normalization before each activation; without it, gain and shift stay.
    """

    activation: str = "relu"
    epsilon: float | int = 1e-5
    gain: float | int = 1.0
    shift: float | int = 0.0
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: float | int | tuple[float | int, ...] = 0.1
    weight_variance: float | int = 2.0
    batch_norm: bool = True

    def __post_init__(self):
        """Refuse what cannot be trained with.

        Raises:
            ValueError: in one sentence.
        """
        torch_activation(self.activation)
        if self.optimizer not in ("sgd", "adam"):
            raise ValueError(f"optimizer must be sgd or adam, got {self.optimizer!r}.")
        rates = self.learning_rate if isinstance(self.learning_rate, tuple) else (self.learning_rate,)
        if not rates or not all(0 < rate < math.inf for rate in rates):
            raise ValueError(f"learning_rate must be positive and finite, got {self.learning_rate}.")
        if not 0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon must be at least 0 and finite, got {self.epsilon}.")


class Deep(NamedTuple):
    """Parameters of several networks.

    Attributes:
        weights: one tensor a hidden layer, (networks, inputs, width).
        gains: gamma, one tensor a hidden layer, (networks, 1, width).
        shifts: beta, one tensor a hidden layer, (networks, 1, width).
        readout: (networks, width, classes).
        bias: (networks, 1, classes).
    """

    weights: tuple[Tensor, ...]
    gains: tuple[Tensor, ...]
    shifts: tuple[Tensor, ...]
    readout: Tensor
    bias: Tensor

    def leaves(self) -> list[Tensor]:
        """All parameters in one list."""
        return [*self.weights, *self.gains, *self.shifts, self.readout, self.bias]


@dataclass(frozen=True)
class Outcome:
    """What a training run leaves.

    Attributes:
        network: parameters after the last step.
        losses: of each step's batch before the step, (steps, networks); not finite after divergence.
        diverged: which networks had a loss that is not finite, (networks,).
        probes: (steps made so far, what the probe returned).
    """

    network: Deep
    losses: Float[Tensor, "steps networks"]
    diverged: Tensor
    probes: tuple[tuple[int, Any], ...]


def deep_networks(
    inputs: int,
    width: int,
    depth: int,
    classes: int,
    setting: Setting,
    *,
    networks: int,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
) -> Deep:
    """Draw initial parameters.

    Args:
        inputs: features of a sample.
        width: neurons of a hidden layer.
        depth: hidden layers, each with batch normalization.
        classes: outputs.
        setting: gives the weights' variance, gain and shift.
        networks: how many.
        generator: source of the randomness; the parameters lie on its device.
        dtype: a floating-point type.

    Raises:
        ValueError: a size is below 1.

    Example:
        >>> net = deep_networks(4, 8, 3, 2, Setting(), networks=2, generator=torch.Generator().manual_seed(0))
        >>> [tuple(w.shape) for w in net.weights]
        [(2, 4, 8), (2, 8, 8), (2, 8, 8)]
    """
    for name, value in {
        "inputs": inputs,
        "width": width,
        "depth": depth,
        "classes": classes,
        "networks": networks,
    }.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    options = {"generator": generator, "device": generator.device, "dtype": dtype}
    weights = []
    for layer in range(depth):
        fan_in = inputs if layer == 0 else width
        draw = torch.randn(networks, fan_in, width, **options)
        weights.append(draw * math.sqrt(setting.weight_variance / fan_in))
    plain = {"device": generator.device, "dtype": dtype}
    gains = tuple(torch.full((networks, 1, width), float(setting.gain), **plain) for _ in range(depth))
    shifts = tuple(torch.full((networks, 1, width), float(setting.shift), **plain) for _ in range(depth))
    readout = torch.randn(networks, width, classes, **options) / math.sqrt(width)
    return Deep(tuple(weights), gains, shifts, readout, torch.zeros(networks, 1, classes, **plain))


def outputs(network: Deep, x: Float[Tensor, "networks n d"], setting: Setting) -> Float[Tensor, "networks n classes"]:
    """Logits of a batch, normalized with its own statistics unless the setting is without batch normalization.

    Args:
        network: parameters.
        x: one batch a network.
        setting: activation and epsilon.

    Example:
        >>> net = deep_networks(4, 8, 3, 2, Setting(), networks=2, generator=torch.Generator().manual_seed(0))
        >>> outputs(net, torch.randn(2, 5, 4), Setting()).shape
        torch.Size([2, 5, 2])
    """
    phi = torch_activation(setting.activation)
    x = x.mT  # neurons before samples, so that each neuron of each network is one channel of torch's kernel
    for weight, gain, shift in zip(network.weights, network.gains, network.shifts, strict=True):
        h = weight.mT @ x
        if setting.batch_norm:
            channels = h.reshape(1, -1, h.shape[-1])
            channels = batch_norm(channels, None, None, gain.flatten(), shift.flatten(), True, 0.0, setting.epsilon)
            x = phi(channels).view(h.shape)
        else:
            x = phi(h * gain.mT + shift.mT)
    return x.mT @ network.readout + network.bias


def train_deep(
    network: Deep,
    batches: Iterable[tuple[Tensor, Tensor]],
    setting: Setting,
    *,
    probe: Callable[[Deep], Any] | None = None,
    probe_steps: Iterable[int] = (),
) -> Outcome:
    """Train by plain SGD or by Adam (torch's defaults apart from the learning rate).

    Args:
        network: initial parameters; they are not changed.
        batches: pairs of a batch and its labels, with a leading dimension for the networks.
        setting: activation, epsilon, optimizer and learning rate.
        probe: called with the parameters after each number of steps in `probe_steps`; 0 is the start.
        probe_steps: see `probe`.

    Returns:
        An `Outcome`; a network whose loss became NaN or infinite is marked there and does not touch the others.

    Raises:
        ValueError: a tuple of learning rates of another length than there are networks.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> net = deep_networks(2, 16, 2, 2, Setting(), networks=1, generator=generator)
        >>> x, y = torch.randn(1, 8, 2, generator=generator), torch.tensor([[0, 1] * 4])
        >>> found = train_deep(net, [(x, y)] * 60, Setting())
        >>> bool(found.losses[-1] < found.losses[0]), found.diverged.tolist()
        (True, [False])
    """
    parts = [[one.detach().clone().requires_grad_() for one in group] for group in network[:3]]
    last = [network.readout.detach().clone().requires_grad_(), network.bias.detach().clone().requires_grad_()]
    current = Deep(*(tuple(group) for group in parts), *last)
    step_of = _sgd_step if setting.optimizer == "sgd" else _AdamStep(current.leaves())
    rate = setting.learning_rate
    if isinstance(rate, tuple):
        if len(rate) != len(network.bias):
            raise ValueError(
                f"learning_rate must hold one rate for each of {len(network.bias)} networks, got {len(rate)}."
            )
        rate = torch.tensor(rate, dtype=network.bias.dtype, device=network.bias.device)[:, None, None]
    wanted, seen, losses = set(probe_steps), [], []
    if probe is not None and 0 in wanted:
        seen.append((0, probe(current)))
    for step, (x, labels) in enumerate(batches):
        values = cross_entropy(outputs(current, x, setting), labels)
        slopes = torch.autograd.grad(values.sum(), current.leaves())
        with torch.no_grad():
            step_of(current.leaves(), slopes, rate)
        losses.append(values.detach())
        if probe is not None and step + 1 in wanted:
            seen.append((step + 1, probe(current)))
    stacked = torch.stack(losses) if losses else network.bias.new_zeros(0, len(network.bias))
    done = Deep(
        *(tuple(one.detach() for one in group) for group in current[:3]), *(one.detach() for one in current[3:])
    )
    return Outcome(done, stacked, (~stacked.isfinite()).any(dim=0), tuple(seen))


def _sgd_step(leaves: Sequence[Tensor], slopes: Sequence[Tensor], rate: float | int | Tensor) -> None:
    for leaf, slope in zip(leaves, slopes, strict=True):
        leaf.sub_(slope * rate) if isinstance(rate, Tensor) else leaf.sub_(slope, alpha=rate)


class _AdamStep:
    """Adam with the constants of arXiv 1412.6980. Written out, since importing torch.optim takes longer than a run."""

    def __init__(self, leaves: Sequence[Tensor]):
        self._first = [torch.zeros_like(leaf) for leaf in leaves]
        self._second = [torch.zeros_like(leaf) for leaf in leaves]
        self._steps = 0

    def __call__(self, leaves: Sequence[Tensor], slopes: Sequence[Tensor], rate: float | int | Tensor) -> None:
        self._steps += 1
        first_bias, second_bias = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        for leaf, slope, first, second in zip(leaves, slopes, self._first, self._second, strict=True):
            first.lerp_(slope, 0.1)
            second.mul_(0.999).addcmul_(slope, slope, value=0.001)
            leaf.sub_(first / (second / second_bias).sqrt_().add_(1e-8) * (rate / first_bias))


def drawn_batches(
    x: Float[Tensor, "samples d"],
    labels: Int[Tensor, "samples"],
    batch_size: int,
    steps: int,
    *,
    networks: int,
    generator: torch.Generator,
) -> list[tuple[Tensor, Tensor]]:
    """Mini-batches for a given number of steps, every network in its own random order, without replacement per epoch.

    Args:
        x: samples.
        labels: their classes.
        batch_size: from 2 to the number of samples.
        steps: how many batches.
        networks: how many networks.
        generator: source of the randomness.

    Raises:
        ValueError: batch_size or steps is out of range.

    Example:
        >>> x, y = torch.randn(10, 3), torch.zeros(10, dtype=torch.long)
        >>> found = drawn_batches(x, y, 4, 5, networks=2, generator=torch.Generator().manual_seed(0))
        >>> len(found), found[0][0].shape
        (5, torch.Size([2, 4, 3]))
    """
    if not 2 <= batch_size <= len(x):
        raise ValueError(f"batch_size must be from 2 to the number of samples {len(x)}, got {batch_size}.")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}.")
    epochs = math.ceil(steps / (len(x) // batch_size))
    order = shuffled_batches(len(x), batch_size, epochs, networks=networks, generator=generator)
    return [(x[index], labels[index]) for index, _ in zip(order, range(steps), strict=False)]


def batch_accuracy(
    network: Deep,
    x: Float[Tensor, "samples d"],
    labels: Int[Tensor, "samples"],
    batch_size: int,
    setting: Setting,
    *,
    most: int = 20,
) -> Float[Tensor, "networks"]:
    """Share of samples classified correctly, in batches of one size that are normalized with their own statistics.

    Args:
        network: parameters.
        x: samples that were not trained on.
        labels: their classes.
        batch_size: as in training.
        setting: activation and epsilon.
        most: at most so many batches.

    Returns:
        One share a network; NaN for a network with an output that is not finite.

    Example:
        >>> net = deep_networks(3, 8, 2, 2, Setting(), networks=2, generator=torch.Generator().manual_seed(0))
        >>> batch_accuracy(net, torch.randn(9, 3), torch.zeros(9, dtype=torch.long), 4, Setting()).shape
        torch.Size([2])
    """
    count = len(network.bias)
    shares = []
    with torch.no_grad():
        for begin in range(0, min(len(x) - batch_size + 1, most * batch_size), batch_size):
            found = outputs(network, x[begin : begin + batch_size].expand(count, -1, -1), setting)
            right = (found.argmax(dim=-1) == labels[begin : begin + batch_size]).to(found.dtype).mean(dim=-1)
            shares.append(torch.where(found.isfinite().flatten(1).all(dim=1), right, torch.nan))
    return torch.stack(shares).mean(dim=0)


def layer_gradients(
    network: Deep, x: Float[Tensor, "networks n d"], labels: Int[Tensor, "networks n"], setting: Setting
) -> dict[str, Float[Tensor, "networks depth"]]:
    """Norms of the gradients and of the parameters, layer by layer.

    Args:
        network: parameters.
        x: one batch a network.
        labels: their classes.
        setting: activation and epsilon.

    Returns:
        "weight" and "gain": Frobenius norms of the gradients with respect to W and gamma; "weight_norm", "gain_norm":
        of the parameters; "weight_relative", "gain_relative": their ratios. Layers from the input.

    Example:
        >>> net = deep_networks(3, 8, 2, 2, Setting(), networks=2, generator=torch.Generator().manual_seed(0))
        >>> found = layer_gradients(net, torch.randn(2, 4, 3), torch.zeros(2, 4, dtype=torch.long), Setting())
        >>> found["weight"].shape
        torch.Size([2, 2])
    """
    parts = [tuple(one.detach().requires_grad_() for one in group) for group in network[:3]]
    leaves = Deep(*parts, *(one.detach() for one in network[3:]))
    loss = cross_entropy(outputs(leaves, x, setting), labels).sum()
    slopes = torch.autograd.grad(loss, [*leaves.weights, *leaves.gains])
    depth = len(leaves.weights)
    found = {}
    for name, values, gradient in (("weight", leaves.weights, slopes[:depth]), ("gain", leaves.gains, slopes[depth:])):
        norm = torch.stack([one.detach().double().flatten(1).norm(dim=1) for one in values], dim=1)
        slope = torch.stack([one.double().flatten(1).norm(dim=1) for one in gradient], dim=1)
        found |= {name: slope, f"{name}_norm": norm, f"{name}_relative": slope / norm}
    return found
