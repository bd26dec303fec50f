"""Ways to start a network, compared by the steps that they need to reach an accuracy, and by what they make of data.

Every arm sees the same training set and the same order of samples, so that arms are paired network by network; all
networks of a size share one training set, and differ in weights, order and reference batch. Each arm trains with the
learning rate of a common grid at which other networks, which are used for nothing else, did best.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib import geometry, seeds
from bnlib.companions import is_outlier
from bnlib.estimates import censored_quantile
from bnlib.initialisations import cluster_and_outlier, dedicated_neurons, recentered_weight_scale
from bnlib.layers import Stages
from bnlib.training import (
    Layer,
    Network,
    forward,
    hidden_representations,
    initial_network,
    select_networks,
    shuffled_batches,
    train,
)
from bnlib.training_data import DATA_SETS, OUTPUTS, TrainingSet, training_set

# How a network starts, and the stages of its hidden layers.
ARMS: dict[str, str] = {
    "he": "NL",
    "batch norm": "RC+RS+NL",
    "recentering": "RC+NL",
    "dedicated neurons": "NL",
    "cluster and outlier": "NL",
}
SKIPPED = 200  # recentered layers that the first layer of "cluster and outlier" stands for
_PROBED = 128  # training samples that the accuracy is measured on


@dataclass(frozen=True)
class ArmSpec:
    """One way to start networks, on a training set of one size.

    Attributes:
        name: unique in a sweep.
        arm: one of `ARMS`.
        data: a data set with classes, see `bnlib.training_data.DATA_SETS`.
        data_folder: where image files are.
        samples: size of the training set.
        batch_size: samples a step; the reference batch of "cluster and outlier" has as many.
        width: neurons of a hidden layer.
        depth: hidden layers.
        learning_rates: the grid.
        steps: how many.
        target: accuracy to reach on samples of the training set, in training mode.
        every: steps between two looks at the accuracy.
        networks: networks that are compared.
        selection: further networks that choose the learning rate.
        seed: of all randomness.
        device: of the tensors.
    """

    name: str
    arm: str
    data: str = "digits"
    data_folder: str = "data"
    samples: int = 128
    batch_size: int = 32
    width: int = 64
    depth: int = 12
    learning_rates: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)
    steps: int = 200
    target: float = 0.9
    every: int = 5
    networks: int = 12
    selection: int = 3
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self):
        """Refuse what cannot be run.

        Raises:
            ValueError: an unknown name, or a number out of range.
        """
        if self.arm not in ARMS:
            raise ValueError(f"arm must be an initialization, one of {', '.join(ARMS)}, got {self.arm!r}.")
        valid = [name for name in DATA_SETS if name != "gaussian"]
        if self.data not in valid:
            raise ValueError(f"data must be one of {', '.join(valid)}, got {self.data!r}.")
        if self.samples < self.batch_size:
            raise ValueError(f"samples must be at least batch_size = {self.batch_size}, got {self.samples}.")
        if not self.learning_rates or min(self.learning_rates) <= 0:
            raise ValueError(f"learning_rates must be positive numbers, at least one, got {self.learning_rates}.")
        for field, least in (("batch_size", 3), ("width", 1), ("depth", 1), ("steps", 1), ("every", 1)):
            if getattr(self, field) < least:
                raise ValueError(f"{field} must be at least {least}, got {getattr(self, field)}.")


def start(spec: ArmSpec, data: TrainingSet, networks: int, *, part: str) -> tuple[Network, Stages]:
    """Draw the networks of an arm.

    Args:
        spec: the configuration.
        data: the training set.
        networks: how many.
        part: label of the stream, so that selection and comparison have networks of their own.

    Returns:
        The networks and the stages that they are trained with.

    Example:
        >>> spec = ArmSpec("small", "cluster and outlier", samples=8, batch_size=4, width=8, depth=2)
        >>> data = training_set("digits", 8, generator=torch.Generator().manual_seed(0))
        >>> network, stages = start(spec, data, 2, part="comparison")
        >>> len(network), stages.name
        (3, 'NL')
    """
    stages = Stages.parse(ARMS[spec.arm])
    widths = [data.x.shape[1], *[spec.width] * spec.depth, OUTPUTS]
    weights = _stream(spec, part, "weights")
    network = initial_network("he", widths, stages, generator=weights, networks=networks, dtype=torch.float32)
    if spec.arm == "recentering":
        scale = math.sqrt(recentered_weight_scale(spec.batch_size) / 2)
        hidden = [layer._replace(weight=layer.weight * scale, shift=None) for layer in network[:-1]]
        network = (*hidden, network[-1])
    elif spec.arm == "dedicated neurons":
        first = dedicated_neurons(data.x, spec.width)
        # The scale is free: that of He's layer, which keeps the mean squared norm, over samples that are not silent.
        own = torch.relu(data.x @ first.weight + first.bias).square().sum(dim=1)
        scale = (data.x.square().sum(dim=1).mean() / own[own > 0].mean()).sqrt()
        network = (
            Layer(*(scale * one.expand(networks, -1, -1) for one in (first.weight, first.bias))),
            *network[1:],
        )
    elif spec.arm == "cluster and outlier":
        hidden = cluster_and_outlier(
            data.x[reference_batches(spec, networks, part=part)],
            spec.width,
            spec.depth,
            generator=weights,
            draws=networks,
            skipped=SKIPPED,
        )
        network = (*(Layer(weight, bias) for weight, bias in hidden), network[-1])
    return network, stages


def reference_batches(spec: ArmSpec, networks: int, *, part: str) -> Int[Tensor, "networks batch"]:
    """Return the indices of each network's reference batch.

    Example:
        >>> reference_batches(ArmSpec("small", "he", samples=8, batch_size=4), 3, part="comparison").shape
        torch.Size([3, 4])
    """
    stream = _stream(spec, part, "reference")
    order = torch.rand(networks, spec.samples, generator=stream, device=stream.device).argsort(dim=1)
    return order[:, : spec.batch_size]


def train_arm(
    spec: ArmSpec, data: TrainingSet, networks: int, rates: Float[Tensor, "rates"], *, part: str
) -> dict[str, Tensor]:
    """Train the networks of an arm with each learning rate and note when they reach the target.

    Args:
        spec: the configuration.
        data: the training set.
        networks: how many.
        rates: learning rates.
        part: see `start`.

    Returns:
        Of shape (rates, networks): "reached", the number of steps at the first look at which the accuracy is the target
        or above (infinite if it never is); "loss", the mean over the last ten steps (infinite after divergence);
        "accuracy" at the end; "diverged".

    Example:
        >>> spec = ArmSpec("small", "he", samples=8, batch_size=4, width=8, depth=2, steps=5)
        >>> data = training_set("digits", 8, generator=torch.Generator().manual_seed(0))
        >>> train_arm(spec, data, 2, torch.tensor([0.1]), part="comparison")["reached"].shape
        torch.Size([1, 2])
    """
    network, stages = start(spec, data, networks, part=part)
    count = len(rates)
    network = select_networks(network, list(range(networks)) * count)
    epochs = math.ceil(spec.steps / (spec.samples // spec.batch_size))
    orders = shuffled_batches(
        spec.samples, spec.batch_size, epochs, networks=networks, generator=_stream(spec, part, "orders")
    )
    batches = (order.repeat(count, 1) for _, order in zip(range(spec.steps), orders, strict=False))
    probed = _probe_batches(spec)

    def accuracy(_: int, one: Network) -> Tensor:
        return in_batches(one, data, probed, stages)

    looks = range(0, spec.steps + 1, spec.every)
    found = train(
        network,
        ((data.x[batch], data.targets[batch]) for batch in batches),
        stages,
        rates.repeat_interleave(networks),
        loss=data.loss,
        probe=accuracy,
        probe_steps=looks,
    )
    alive = found.diverged_at < 0
    reached = torch.full((count * networks,), math.inf, dtype=torch.float64, device=alive.device)
    for step, shares in reversed(found.probes):
        reached = torch.where(shares >= spec.target, float(step), reached)
    last = found.losses[-10:].double().mean(dim=0)
    last = torch.where(alive & last.isfinite(), last, math.inf)
    values = {"reached": reached, "loss": last, "accuracy": accuracy(0, found.network), "diverged": ~alive}
    return {name: value.view(count, networks) for name, value in values.items()}


def in_batches(
    network: Network, data: TrainingSet, batches: Int[Tensor, "batches n"], stages: Stages
) -> Float[Tensor, "networks"]:
    """Return the share of samples classified correctly, batch by batch in training mode.

    Args:
        network: parameters.
        data: a training set with classes.
        batches: indices, the same for all networks.
        stages: the stages of the hidden layers.

    Returns:
        One share a network, 0 where an output is not finite.

    Example:
        >>> data = training_set("digits", 8, generator=torch.Generator().manual_seed(0))
        >>> spec = ArmSpec("small", "he", samples=8, batch_size=4, width=8, depth=2)
        >>> network, stages = start(spec, data, 2, part="comparison")
        >>> in_batches(network, data, torch.arange(8).view(2, 4), stages).shape
        torch.Size([2])
    """
    shares = []
    with torch.no_grad():
        for batch in batches:
            outputs = forward(network, data.x[batch], stages)
            right = (outputs.argmax(dim=-1) == data.targets[batch]).double().mean(dim=-1)
            shares.append(torch.where(outputs.isfinite().flatten(1).all(dim=1), right, 0.0))
    return torch.stack(shares).mean(dim=0)


def run_arm(spec: ArmSpec) -> dict[str, Any]:
    """Choose the learning rate of an arm, train its networks with it, and look at their geometry at the start.

    The rate is the one at which the selection networks' median number of steps is smallest; ties, as where none reaches
    the target, are decided by the median loss of the last steps.

    Args:
        spec: the configuration.

    Returns:
        JSON-able values: "name", "arm", "samples", "depth" and other fields of the spec; "grid", one entry a rate;
        "rate"; "at_edge", whether it is an end of the grid; "times", one a network, None where the target was not
        reached; "median", their median (None if censored); "reached" and "diverged", how many; "accuracy", one a
        network at the end; "start", see `start_geometry`.

    Example:
        >>> spec = ArmSpec("small", "he", samples=8, batch_size=4, width=8, depth=2, steps=5, networks=2, selection=1)
        >>> len(run_arm(spec)["times"])
        2
    """
    data = training_set(spec.data, spec.samples, generator=_stream(spec, "data"), folder=spec.data_folder)
    rates = torch.tensor(spec.learning_rates, device=spec.device)
    trial = train_arm(spec, data, spec.selection, rates, part="selection")
    times = trial["reached"].quantile(0.5, dim=1, interpolation="lower").tolist()
    losses = trial["loss"].quantile(0.5, dim=1, interpolation="lower").tolist()
    best = min(range(len(rates)), key=lambda index: (times[index], losses[index], index))
    found = train_arm(spec, data, spec.networks, rates[best : best + 1], part="comparison")
    reached = [int(time) if math.isfinite(time) else None for time in found["reached"][0].tolist()]
    fields = ("name", "arm", "data", "samples", "batch_size", "width", "depth", "steps", "target", "networks")
    return {
        **{field: getattr(spec, field) for field in fields},
        "grid": [
            {"rate": rate, "time": time if math.isfinite(time) else None, "loss": loss if math.isfinite(loss) else None}
            for rate, time, loss in zip(spec.learning_rates, times, losses, strict=True)
        ],
        "rate": spec.learning_rates[best],
        "at_edge": len(rates) > 1 and best in (0, len(rates) - 1),
        "times": reached,
        "median": censored_quantile(reached, 0.5),
        "reached": sum(time is not None for time in reached),
        "diverged": int(found["diverged"].sum()),
        "accuracy": found["accuracy"][0].tolist(),
        "start": start_geometry(spec, data),
    }


def start_geometry(spec: ArmSpec, data: TrainingSet) -> dict[str, Any]:
    """Look at the last hidden layer before training: on each network's reference batch and on other samples.

    Args:
        spec: the configuration.
        data: the training set.

    Returns:
        For "reference" and, where the training set has as many others, "others" (a batch of samples outside the
        reference batch): "present", how many networks have an outlier, "angle_deg" (its median angle to the mean of
        the others) and "mean_angle_deg" (median over networks of the mean pairwise angle), "networks".

    Example:
        >>> spec = ArmSpec("small", "cluster and outlier", samples=8, batch_size=4, width=8, depth=2, networks=2)
        >>> data = training_set("digits", 8, generator=torch.Generator().manual_seed(0))
        >>> sorted(start_geometry(spec, data))
        ['others', 'reference']
    """
    network, stages = start(spec, data, spec.networks, part="comparison")
    which = reference_batches(spec, spec.networks, part="comparison")
    member = torch.zeros(spec.networks, spec.samples, dtype=torch.bool, device=which.device).scatter(1, which, True)
    groups = {"reference": which}
    if spec.samples >= 2 * spec.batch_size:
        groups["others"] = member.double().argsort(dim=1, stable=True)[:, : spec.batch_size]
    found = {}
    for label, batch in groups.items():
        with torch.no_grad():
            *_, last = hidden_representations(network, data.x[batch], stages)
        last = last.double()
        summary = geometry.outlier_summary(last)
        angles = geometry.mean_pairwise_angle(last).rad2deg()
        found[label] = {
            "present": int(is_outlier(summary.angle, summary.top_over_second).sum()),
            "angle_deg": _median(summary.angle.rad2deg()),
            "mean_angle_deg": _median(angles),
            "networks": spec.networks,
        }
    return found


def _median(values: Tensor) -> float | None:
    good = values[values.isfinite()]
    return float(good.median()) if len(good) else None


def _probe_batches(spec: ArmSpec) -> Tensor:
    """The first samples of the training set, which is in random order, cut into batches."""
    count = max(1, min(_PROBED, spec.samples) // spec.batch_size)
    return torch.arange(count * spec.batch_size, device=spec.device).view(count, spec.batch_size)


def _stream(spec: ArmSpec, *labels: str) -> torch.Generator:
    """Streams that do not depend on the arm: arms are paired."""
    sizes = (spec.data, spec.samples, spec.batch_size, spec.width, spec.depth)
    return seeds.generator(spec.seed, "time to accuracy", *sizes, *labels, device=spec.device)
