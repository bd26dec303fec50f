r"""Training of fully connected networks by plain SGD, many independent networks at once.

Every tensor of a network has a leading dimension, one entry a network: one product, one gradient and one step serve
all of them, and since no entry of one network meets one of another, each is trained as if it were alone. A layer is
$xW + b$, then the stages that are switched on (`bnlib.layers.Stages`): recentering and rescaling over the batch, a
learned gain where there is rescaling, a learned shift where there is recentering (as in PyTorch's batch norm), ReLU.
The last layer is linear.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib.initialisations import draw_bias, draw_weight
from bnlib.layers import Stages

TORCH_EPS = 1e-5  # added to a variance by PyTorch's batch norm unless told otherwise


class Layer(NamedTuple):
    """The parameters of one layer of several networks.

    Attributes:
        weight: shape (networks, inputs, outputs); a batch x goes to x @ weight.
        bias: shape (networks, 1, outputs).
        gain: shape (networks, 1, outputs), multiplies the rescaled preactivation; None without rescaling.
        shift: shape (networks, 1, outputs), added after recentering and gain; None without recentering.
    """

    weight: Float[Tensor, "networks inputs outputs"]
    bias: Float[Tensor, "networks 1 outputs"]
    gain: Float[Tensor, "networks 1 outputs"] | None = None
    shift: Float[Tensor, "networks 1 outputs"] | None = None


Network = tuple[Layer, ...]
Loss = Callable[[Tensor, Tensor], Tensor]
Probe = Callable[[int, Network], Any]


@dataclass(frozen=True)
class Trained:
    """What a training run leaves.

    Attributes:
        network: the parameters after the last step.
        losses: loss of each step's batch before the step, shape (steps, networks); NaN or infinite after divergence.
        diverged_at: for each network the first step whose loss was not finite, -1 if there was none.
        probes: (step, what the probe returned), in order; step 0 is before training.
    """

    network: Network
    losses: Float[Tensor, "steps networks"]
    diverged_at: Int[Tensor, "networks"]
    probes: tuple[tuple[int, Any], ...]


def initial_network(
    name: str,
    widths: Sequence[int],
    stages: Stages,
    *,
    generator: torch.Generator,
    networks: int = 1,
    dtype: torch.dtype = torch.float64,
) -> Network:
    """Draw the initial parameters of independent networks.

    Args:
        name: the initial law, see `bnlib.initialisations.initialization`.
        widths: number of features of the input, of each hidden layer and of the output; at least two numbers.
        stages: the stages of the hidden layers; they decide which have a gain (1 at first) and a shift (0 at first).
        generator: source of randomness; the parameters lie on its device.
        networks: number of independent networks, at least 1.
        dtype: a floating-point type.

    Returns:
        One `Layer` for each pair of neighbors in `widths`.

    Raises:
        ValueError: an unknown law, fewer than two widths, a size below 1, or a normalization after the activation.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = initial_network("he", [4, 8, 3], Stages.parse("NL"), generator=generator)
        >>> [tuple(layer.weight.shape) for layer in network]
        [(1, 4, 8), (1, 8, 3)]
    """
    if len(widths) < 2:
        raise ValueError(f"widths must name the input, the hidden layers and the output, got {list(widths)}.")
    if stages.norm_after:
        raise ValueError(f"stages are {stages.name}; valid are stages with the normalization before the activation.")
    options = {"generator": generator, "draws": networks, "dtype": dtype}
    found = []
    for index, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        weight = draw_weight(name, fan_in, fan_out, **options)
        bias = draw_bias(name, fan_in, fan_out, **options)
        hidden = index < len(widths) - 2
        gain = torch.ones_like(bias) if hidden and stages.rescaling != "none" else None
        shift = torch.zeros_like(bias) if hidden and stages.recentering else None
        found.append(Layer(weight, bias, gain, shift))
    return tuple(found)


def select_networks(network: Network, chosen: slice | Sequence[int], *, dtype: torch.dtype | None = None) -> Network:
    """Return some of the networks, as another floating-point type if asked.

    Args:
        network: parameters of several networks.
        chosen: a slice or a list of indices along the leading dimension.
        dtype: the new type, or None for the same.

    Returns:
        Copies of the chosen networks' parameters.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = initial_network("he", [4, 3], Stages.parse("NL"), generator=generator, networks=5)
        >>> len(select_networks(network, slice(2))[0].weight)
        2
    """
    index = chosen if isinstance(chosen, slice) else list(chosen)
    return tuple(
        Layer(*(None if one is None else one[index].clone().to(dtype or one.dtype) for one in layer))
        for layer in network
    )


def normalize(
    h: Float[Tensor, "*networks n d"],
    layer: Layer,
    stages: Stages,
    *,
    eps: float | int = TORCH_EPS,
    reference: int | None = None,
) -> Float[Tensor, "*networks n d"]:
    """Apply the stages of a hidden layer with their learned gain and shift to a preactivation.

    Args:
        h: preactivation, samples in rows.
        layer: its gain and shift are used.
        stages: which stages are on.
        eps: added to the variance (or mean square), as PyTorch does, at least 0; with 0 a neuron that has the same
            value on all samples becomes NaN under rescaling, as there.
        reference: how many rows the statistics are taken from, the first ones; None for all. With a training set in
            these rows, the others are treated as in evaluation.

    Returns:
        The representation.

    Example:
        >>> h = torch.tensor([[[1.0], [3.0]]])
        >>> normalize(h, Layer(h, h), Stages.parse("RC+RS+NL"), eps=0.0).tolist()
        [[[0.0], [1.0]]]
    """
    if (
        stages.recentering
        and stages.rescaling != "none"
        and reference is None
        and h.ndim == 3
        and layer.shift is not None
    ):
        h = _batch_norm(h, layer, eps)
    elif stages.recentering or stages.rescaling != "none":
        seen = h if reference is None else h[..., :reference, :]
        mean = seen.mean(dim=-2, keepdim=True)
        if stages.recentering:
            h = h - mean
        if stages.rescaling != "none":
            deviation = seen if stages.rescaling == "rms" and not stages.recentering else seen - mean
            scale = (deviation.square().mean(dim=-2, keepdim=True) + eps).rsqrt()
            h = h * (scale if layer.gain is None else scale * layer.gain)
        if layer.shift is not None:
            h = h + layer.shift
    return torch.relu(h) if stages.nonlinearity == "relu" else h


def hidden_representations(
    network: Network,
    x: Float[Tensor, "*networks n d"],
    stages: Stages,
    *,
    eps: float | int = TORCH_EPS,
    reference: int | None = None,
) -> Iterator[Float[Tensor, "networks n width"]]:
    """Yield the representation of a batch after each hidden layer.

    Args:
        network: parameters of several networks.
        x: one batch for all networks, shape (n, d), or one a network, shape (networks, n, d).
        stages: the stages of the hidden layers.
        eps: see `normalize`.
        reference: see `normalize`.

    Yields:
        One representation a hidden layer.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = initial_network("he", [2, 5, 5, 3], Stages.parse("NL"), generator=generator)
        >>> x = torch.ones(4, 2, dtype=torch.float64)
        >>> [tuple(h.shape) for h in hidden_representations(network, x, Stages.parse("NL"))]
        [(1, 4, 5), (1, 4, 5)]
    """
    for layer in network[:-1]:
        x = normalize(_linear(layer, x), layer, stages, eps=eps, reference=reference)
        yield x


def forward(
    network: Network,
    x: Float[Tensor, "*networks n d"],
    stages: Stages,
    *,
    eps: float | int = TORCH_EPS,
    reference: int | None = None,
) -> Float[Tensor, "networks n outputs"]:
    """Return the outputs of the networks on a batch.

    Args:
        network: parameters of several networks.
        x: one batch for all networks, or one a network.
        stages: the stages of the hidden layers.
        eps: see `normalize`.
        reference: see `normalize`.

    Returns:
        The last, linear layer's outputs.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = initial_network("he", [2, 5, 3], Stages.parse("NL"), generator=generator, networks=2)
        >>> forward(network, torch.ones(4, 2, dtype=torch.float64), Stages.parse("NL")).shape
        torch.Size([2, 4, 3])
    """
    for representation in hidden_representations(network, x, stages, eps=eps, reference=reference):
        x = representation
    return _linear(network[-1], x)


def cross_entropy(
    outputs: Float[Tensor, "networks n classes"], labels: Int[Tensor, "networks n"]
) -> Float[Tensor, "networks"]:
    """Return the mean cross entropy of each network, in nats.

    Args:
        outputs: logits.
        labels: classes from 0.

    Returns:
        One loss a network.

    Example:
        >>> round(cross_entropy(torch.zeros(1, 4, 10), torch.zeros(1, 4, dtype=torch.long)).item(), 4)
        2.3026
    """
    picked = outputs.gather(-1, labels[..., None])[..., 0]
    return (outputs.logsumexp(dim=-1) - picked).mean(dim=-1)


def gradients(
    network: Network,
    x: Float[Tensor, "*networks n d"],
    targets: Tensor,
    stages: Stages,
    *,
    loss: Loss = cross_entropy,
    eps: float | int = TORCH_EPS,
) -> tuple[Float[Tensor, "networks"], Network]:
    """Return each network's loss on a batch and the gradient with respect to its own parameters.

    Args:
        network: parameters of several networks.
        x: the batch, statistics are its own.
        targets: what `loss` takes as its second argument.
        stages: the stages of the hidden layers.
        loss: maps outputs and targets to one number a network.
        eps: see `normalize`.

    Returns:
        The losses, and the gradients in the form of a network.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = initial_network("he", [2, 3], Stages.parse("NL"), generator=generator)
        >>> x, labels = torch.ones(4, 2, dtype=torch.float64), torch.zeros(1, 4, dtype=torch.long)
        >>> value, slope = gradients(network, x, labels, Stages.parse("NL"))
        >>> slope[0].weight.shape
        torch.Size([1, 2, 3])
    """
    leaves = tuple(
        Layer(*(None if one is None else one.detach().requires_grad_() for one in layer)) for layer in network
    )
    values = loss(forward(leaves, x, stages, eps=eps), targets)
    # The sum's gradient is each network's own: no parameter enters two of the summands.
    found = iter(torch.autograd.grad(values.sum(), [one for layer in leaves for one in layer if one is not None]))
    return values.detach(), tuple(Layer(*(None if one is None else next(found) for one in layer)) for layer in leaves)


def sgd_step(network: Network, slope: Network, learning_rate: float | int | Float[Tensor, "networks"]) -> Network:
    """Return the parameters minus the learning rate times the gradient: no momentum, no weight decay.

    Args:
        network: parameters of several networks.
        slope: gradients in the same form.
        learning_rate: one for all, or one a network.

    Returns:
        The new parameters.

    Example:
        >>> one = (Layer(torch.ones(1, 1, 1), torch.zeros(1, 1, 1)),)
        >>> sgd_step(one, one, 0.25)[0].weight.item()
        0.75
    """
    if isinstance(learning_rate, Tensor):
        learning_rate = learning_rate[:, None, None]
        return _combine(network, slope, lambda one, change: one - learning_rate * change)
    return _combine(network, slope, lambda one, change: torch.sub(one, change, alpha=learning_rate))


def shuffled_batches(
    samples: int, batch_size: int, epochs: int, *, networks: int, generator: torch.Generator
) -> Iterator[Int[Tensor, "networks batch"]]:
    """Yield indices of mini-batches: each network goes through the samples in its own random order, every epoch anew.

    Args:
        samples: number of training samples.
        batch_size: from 1 to `samples`; a smaller rest at the end of an epoch is left out.
        epochs: number of passes.
        networks: number of networks.
        generator: source of randomness.

    Yields:
        Indices of one batch for each network.

    Raises:
        ValueError: if batch_size is out of range.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> len(list(shuffled_batches(10, 4, 3, networks=2, generator=generator)))
        6
    """
    if not 1 <= batch_size <= samples:
        raise ValueError(f"batch_size must be from 1 to the number of samples {samples}, got {batch_size}.")
    for _ in range(epochs):
        order = torch.rand(networks, samples, generator=generator, device=generator.device).argsort(dim=1)
        for begin in range(0, samples - batch_size + 1, batch_size):
            yield order[:, begin : begin + batch_size]


def train(
    network: Network,
    batches: Iterable[tuple[Tensor, Tensor]],
    stages: Stages,
    learning_rate: float | int | Float[Tensor, "networks"],
    *,
    loss: Loss = cross_entropy,
    eps: float | int = TORCH_EPS,
    probe: Probe | None = None,
    probe_steps: Iterable[int] = (),
) -> Trained:
    """Train by plain SGD, one step a batch.

    A network whose loss is no longer finite goes on as NaN and is reported; the others are not touched by it. Training
    ends early when all have diverged.

    Args:
        network: initial parameters.
        batches: pairs of a batch and its targets, with a leading dimension for the networks.
        stages: the stages of the hidden layers, statistics over the batch.
        learning_rate: one for all, or one a network.
        loss: maps outputs and targets to one number a network.
        eps: see `normalize`.
        probe: called with the number of steps made so far and the parameters then.
        probe_steps: after how many steps the probe is called, 0 for the start.

    Returns:
        A `Trained`.

    Raises:
        ValueError: if a learning rate is not a positive number.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = initial_network("he", [2, 8, 2], Stages.parse("NL"), generator=generator)
        >>> x, labels = torch.eye(2, dtype=torch.float64)[None], torch.tensor([[0, 1]])
        >>> found = train(network, [(x, labels)] * 50, Stages.parse("NL"), 0.5)
        >>> bool(found.losses[-1] < 0.1 * found.losses[0])
        True
    """
    if not bool((torch.as_tensor(learning_rate) > 0).all()):
        raise ValueError(f"learning_rate must be positive, got {learning_rate}.")
    wanted, seen, losses = set(probe_steps), [], []
    count = len(network[0].weight)
    diverged_at = torch.full((count,), -1, dtype=torch.int64, device=network[0].weight.device)
    if probe is not None and 0 in wanted:
        seen.append((0, probe(0, network)))
    for step, (x, targets) in enumerate(batches):
        values, slope = gradients(network, x, targets, stages, loss=loss, eps=eps)
        losses.append(values)
        diverged_at = torch.where((diverged_at < 0) & ~values.isfinite(), step, diverged_at)
        if bool((diverged_at >= 0).all()):
            break
        network = sgd_step(network, slope, learning_rate)
        if probe is not None and step + 1 in wanted:
            seen.append((step + 1, probe(step + 1, network)))
    empty = network[0].weight.new_zeros(0, count)
    return Trained(network, torch.stack(losses) if losses else empty, diverged_at, tuple(seen))


def accuracy(
    network: Network,
    x: Float[Tensor, "n d"],
    labels: Int[Tensor, "n"],
    stages: Stages,
    *,
    statistics_of: Float[Tensor, "m d"] | None = None,
    eps: float | int = TORCH_EPS,
) -> Float[Tensor, "networks"]:
    """Return the share of samples whose largest output is that of their class.

    Args:
        network: parameters of several networks.
        x: samples, the same for all networks.
        labels: their classes.
        stages: the stages of the hidden layers.
        statistics_of: samples whose means and variances the stages use, the training set as a rule; None for x itself.
        eps: see `normalize`.

    Returns:
        One share a network, from 0 to 1; NaN for a network with an output that is not finite.

    Example:
        >>> layer = Layer(torch.eye(2)[None], torch.zeros(1, 1, 2))
        >>> accuracy((layer,), torch.eye(2), torch.tensor([0, 0]), Stages.parse("NL")).tolist()
        [0.5]
    """
    reference = None if statistics_of is None else len(statistics_of)
    together = x if statistics_of is None else torch.cat([statistics_of, x])
    with torch.no_grad():
        outputs = forward(network, together, stages, eps=eps, reference=reference)[:, -len(x) :]
    right = (outputs.argmax(dim=-1) == labels).to(outputs.dtype).mean(dim=-1)
    return torch.where(outputs.isfinite().all(dim=-1).all(dim=-1), right, torch.nan)


def _linear(layer: Layer, x: Float[Tensor, "*networks n inputs"]) -> Float[Tensor, "networks n outputs"]:
    if x.ndim == 2:
        x = x.expand(len(layer.weight), *x.shape)
    return torch.baddbmm(layer.bias, x, layer.weight)


def _batch_norm(h: Float[Tensor, "networks n d"], layer: Layer, eps: float) -> Float[Tensor, "networks n d"]:
    """RC and RS with gain and shift by PyTorch's own kernel, in half the time of single operations."""
    networks, n, d = h.shape
    columns = h.transpose(0, 1).reshape(n, networks * d)
    gain, shift = layer.gain.reshape(-1), layer.shift.reshape(-1)
    found = torch.nn.functional.batch_norm(columns, None, None, gain, shift, training=True, eps=eps)
    return found.view(n, networks, d).transpose(0, 1)


def _combine(network: Network, other: Network, rule: Callable[[Tensor, Tensor], Tensor]) -> Network:
    return tuple(
        Layer(*(None if a is None else rule(a, b) for a, b in zip(one, two, strict=True)))
        for one, two in zip(network, other, strict=True)
    )
