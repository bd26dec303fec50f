"""Does the outlier survive training: networks that start with one, trained on one batch or on many.

Weights, batches and targets depend on the seed, the data and the sizes alone, so that specs that differ in the stages,
the learning rate or the kind of batches are paired network by network. Training is plain SGD in float32; what is
measured on a representation is measured in float64.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bnlib import geometry, seeds
from bnlib.companions import companions, evaluation, is_outlier
from bnlib.estimates import median_interval, share_interval
from bnlib.initialisations import initialization, recentered_weight_scale
from bnlib.layers import Stages
from bnlib.paired import paired_difference
from bnlib.training import Network, hidden_representations, initial_network, select_networks, shuffled_batches, train
from bnlib.training_data import DATA_SETS, OUTPUTS, TrainingSet, training_set

BATCHES = ("fixed", "resampled")
STARTS = ("outlier", "no outlier", "any")
VARIANCES = ("as drawn", "theorem 13")
RECENTERED = Stages.parse("RC+NL")
_CHUNKS = 30  # of candidates, before what was found must do


@dataclass(frozen=True)
class GeometrySpec:
    """One configuration of a training run.

    Attributes:
        name: unique in a sweep.
        stages: of each hidden layer, see `bnlib.layers.Stages.parse`.
        data: one of `bnlib.training_data.DATA_SETS`.
        data_folder: where image files are.
        samples: size of the training set; the first `batch_size` of each network's order are its measured batch.
        batch_size: samples a step, at least 3.
        width: neurons of a hidden layer.
        depth: hidden layers.
        initialization: an initial law, see `bnlib.initialisations.initialization`.
        variance: "as drawn", or "theorem 13": hidden weights rescaled to `recentered_weight_scale` over the fan-in.
        shift: whether a learned shift follows the recentering.
        learning_rate: of plain SGD.
        steps: how many.
        batches: "fixed", the measured batch in every step, or "resampled", mini-batches from the training set.
        start: "outlier" or "no outlier": networks whose last hidden layer has one, or none, under RC and ReLU alone,
            whatever the stages that are then trained; "any": no choice.
        networks: independent networks.
        seed: of all randomness.
        device: of the tensors.
    """

    name: str
    stages: str = "RC+NL"
    data: str = "digits"
    data_folder: str = "data"
    samples: int = 256
    batch_size: int = 16
    width: int = 64
    depth: int = 48
    initialization: str = "he"
    variance: str = "theorem 13"
    shift: bool = False
    learning_rate: float = 0.003
    steps: int = 300
    batches: str = "fixed"
    start: str = "outlier"
    networks: int = 12
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self):
        """Refuse what cannot be run, naming what is valid.

        Raises:
            ValueError: an unknown name, or a number that is too small.
        """
        Stages.parse(self.stages)
        initialization(self.initialization)
        for field, valid in (("data", DATA_SETS), ("batches", BATCHES), ("start", STARTS), ("variance", VARIANCES)):
            if getattr(self, field) not in valid:
                raise ValueError(f"{field} must be one of {', '.join(valid)}, got {getattr(self, field)!r}.")
        for field, least in (("batch_size", 3), ("width", 1), ("depth", 1), ("steps", 1), ("networks", 1)):
            if getattr(self, field) < least:
                raise ValueError(f"{field} must be at least {least}, got {getattr(self, field)}.")
        if self.samples < self.batch_size:
            raise ValueError(f"samples must be at least batch_size = {self.batch_size}, got {self.samples}.")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive and finite, got {self.learning_rate}.")


class Seen(NamedTuple):
    """A representation of each network's measured batch, in numbers; all of shape (networks,).

    Attributes:
        index: sample of largest norm.
        angle: between it and the mean of the others, radians.
        ratio: largest norm over the second-largest.
        cluster: mean pairwise angle among the others, radians.
        mean_angle: mean pairwise angle among all, radians.
        present: whether there is an outlier, see `bnlib.companions.is_outlier`.
        loss: on the batch.
        accuracy: on the batch, NaN without classes.
    """

    index: Int[Tensor, "networks"]
    angle: Float[Tensor, "networks"]
    ratio: Float[Tensor, "networks"]
    cluster: Float[Tensor, "networks"]
    mean_angle: Float[Tensor, "networks"]
    present: Bool[Tensor, "networks"]
    loss: Float[Tensor, "networks"]
    accuracy: Float[Tensor, "networks"]


def probe_steps(steps: int) -> list[int]:
    """Return after how many steps the geometry is looked at: 0, then about three times a decade, and the end.

    Example:
        >>> probe_steps(120)
        [0, 1, 3, 10, 30, 100, 120]
    """
    grid = {0, steps}
    for power in range(8):
        grid |= {10**power, 3 * 10**power}
    return sorted(step for step in grid if step <= steps)


def look(
    network: Network, x: Float[Tensor, "networks n d"], targets: Tensor, data: TrainingSet, stages: Stages
) -> Seen:
    """Measure the last hidden layer and the outputs of each network on its own batch, in training mode.

    Args:
        network: parameters.
        x: one batch a network.
        targets: its targets.
        data: gives the loss.
        stages: the stages of the hidden layers.

    Example:
        >>> spec = GeometrySpec("small", depth=2, width=8, networks=2, batch_size=4, samples=8, start="any")
        >>> network, x, targets, data, stages = start_networks(spec)
        >>> look(network, x, targets, data, stages).angle.shape
        torch.Size([2])
    """
    with torch.no_grad():
        *_, last = hidden_representations(network, x, stages)
        outputs = last @ network[-1].weight + network[-1].bias
        loss = data.loss(outputs, targets)
        if data.classes:
            accuracy = (outputs.argmax(dim=-1) == targets).double().mean(dim=-1)
        else:
            accuracy = torch.full_like(loss, math.nan).double()
        last = last.double()
        found = geometry.outlier_summary(last)
        return Seen(
            found.index,
            found.angle,
            found.top_over_second,
            geometry.cluster_angle(last),
            geometry.mean_pairwise_angle(last),
            is_outlier(found.angle, found.top_over_second),
            loss.double(),
            torch.where(outputs.isfinite().flatten(1).all(dim=1), accuracy, math.nan),
        )


def start_networks(
    spec: GeometrySpec,
) -> tuple[Network, Float[Tensor, "networks n d"], Tensor, TrainingSet, Stages]:
    """Draw data, batches and initial parameters, and choose the networks by how they start.

    Candidates are drawn and kept, in order, if they start as `spec.start` says; where too few are found after many, the
    rest are taken as they come (a network too shallow for an outlier has none).

    Args:
        spec: the configuration.

    Returns:
        The networks, their measured batches and targets, the training set, the stages.

    Example:
        >>> spec = GeometrySpec("small", depth=2, width=8, networks=2, batch_size=4, samples=8, start="any")
        >>> start_networks(spec)[1].shape
        torch.Size([2, 4, 64])
    """
    stages = Stages.parse(spec.stages)
    stream = _streams(spec)
    data = training_set(spec.data, spec.samples, generator=stream("data"), folder=spec.data_folder)
    widths = [data.x.shape[1], *[spec.width] * spec.depth, OUTPUTS]
    weights, orders = stream("weights"), stream("measured batches")
    kept: list[tuple[Network, Tensor]] = []
    spare: list[tuple[Network, Tensor]] = []
    for _ in range(_CHUNKS if spec.start != "any" else 1):
        drawn = initial_network(
            spec.initialization, widths, RECENTERED, generator=weights, networks=spec.networks, dtype=torch.float32
        )
        drawn = _rescaled(drawn, spec)
        which = torch.rand(spec.networks, spec.samples, generator=orders, device=orders.device).argsort(dim=1)
        which = which[:, : spec.batch_size]
        present = look(drawn, data.x[which], data.targets[which], data, RECENTERED).present
        wanted = {"outlier": present, "no outlier": ~present, "any": torch.ones_like(present)}[spec.start]
        for index, good in enumerate(wanted.tolist()):
            (kept if good else spare).append((select_networks(drawn, [index]), which[index]))
        if len(kept) >= spec.networks:
            break
    chosen = (kept + spare)[: spec.networks]
    network = tuple(_joined(layers, stages, spec.shift) for layers in zip(*(one for one, _ in chosen), strict=True))
    which = torch.stack([order for _, order in chosen])
    return network, data.x[which], data.targets[which], data, stages


def run_geometry(spec: GeometrySpec) -> dict[str, Any]:
    """Train the networks of a configuration and follow the geometry of their measured batches.

    Args:
        spec: the configuration.

    Returns:
        JSON-able values: "name", "stages", "data", "batch_size", "depth", "learning_rate", "batches", "shift" and
        "start" of the spec; "networks"; "diverged" (networks whose loss became infinite or NaN: that ends them, and is
        counted in every share below as "not there"); "rows", one a probed step, see `summarize`; "started", how many
        had an outlier at the start under the trained stages; "weight_change" and "perturbed" (see `perturbed`);
        "companions" and "evaluation" at the start and at the end (see `bnlib.companions`); "networks_seen", the raw
        numbers of the first and the last step.

    Example:
        >>> spec = GeometrySpec("small", depth=2, width=8, networks=2, batch_size=4, samples=8, steps=3, start="any")
        >>> found = run_geometry(spec)
        >>> [row["step"] for row in found["rows"]], found["diverged"]
        ([0, 1, 3], 0)
    """
    network, x, targets, data, stages = start_networks(spec)
    stream = _streams(spec)

    def measured(_: int, one: Network) -> tuple[Seen, Network]:
        return look(one, x, targets, data, stages), one

    if spec.batches == "fixed":
        batches = itertools.repeat((x, targets), spec.steps)
    else:
        epochs = math.ceil(spec.steps / (spec.samples // spec.batch_size))
        orders = shuffled_batches(
            spec.samples, spec.batch_size, epochs, networks=spec.networks, generator=stream("orders")
        )
        batches = ((data.x[order], data.targets[order]) for order in itertools.islice(orders, spec.steps))
    found = train(
        network,
        batches,
        stages,
        spec.learning_rate,
        loss=data.loss,
        probe=measured,
        probe_steps=[step for step in probe_steps(spec.steps) if step != spec.steps],
    )
    # Training stops early where all have diverged: the end is looked at in any case.
    end = measured(spec.steps, found.network)
    probes = [(step, *one) for step, one in found.probes] + [(spec.steps, *end)]
    first, last = probes[0][1], end[0]
    alive = torch.stack([one.loss.isfinite() for _, one, _ in probes]).all(dim=0) & (found.diverged_at < 0)
    rows = [summarize(step, first, seen, spec.batch_size) for step, seen, _ in probes]
    changes = {}
    for step, seen, other in probes:
        if step in (1, spec.steps):
            changes["first" if step == 1 else "last"] = perturbed(
                network, other, x, targets, data, stages, seen.loss.isfinite(), stream("perturbation", step)
            )
    seen_batches = [x] if spec.batches == "fixed" else _some_batches(spec, data, stream("statistics"))
    ends = {}
    for label, one in (("start", network), ("end", found.network)):
        here = alive if label == "end" else torch.ones_like(alive)
        ends[label] = {
            "companions": companions(one, x, data.x, stages, here, generator=stream("companions")),
            "evaluation": evaluation(one, x, data, seen_batches, stages, here, generator=stream("fresh")),
        }
    described = ("name", "stages", "data", "batch_size", "depth", "width", "learning_rate", "batches", "shift", "start")
    return {
        **{field: getattr(spec, field) for field in described},
        "networks": spec.networks,
        "steps": spec.steps,
        "started": int(first.present.sum()),
        "diverged": int((~alive).sum()),
        "rows": rows,
        "changes": changes,
        "companions": {label: one["companions"] for label, one in ends.items()},
        "evaluation": {label: one["evaluation"] for label, one in ends.items()},
        "networks_seen": {"start": plain_numbers(first), "end": plain_numbers(last)},
    }


def summarize(step: int, first: Seen, seen: Seen, n: int) -> dict[str, Any]:
    """Compare the geometry after some steps with that at the start, network by network.

    Args:
        step: how many steps.
        first: at the start.
        seen: now.
        n: batch size.

    Returns:
        "step"; "finite" (networks whose loss is finite); "present" (with an outlier); of those that started with one,
        "started" in number: "kept" (have one) and "same" (have one, and it is the same sample), with exact 95 percent
        intervals "kept_low", ... of the shares; of those that started without: "born"; "chance", 1/n; medians with
        intervals of "angle_deg", "ratio", "cluster_deg", "mean_angle_deg", "loss" and "accuracy"; "cluster_change_deg":
        paired differences of the cluster's angle over the networks that have an outlier at both times.

    Example:
        >>> one = torch.ones(3, dtype=torch.float64)
        >>> seen = Seen(one.long(), one, one, one, one, one > 0, one, one)
        >>> found = summarize(5, seen, seen._replace(index=torch.tensor([1, 1, 2])), 4)
        >>> found["kept"], found["same"]
        (3, 2)
    """
    finite = seen.loss.isfinite()
    present = seen.present & finite
    kept = present & first.present
    same = kept & (seen.index == first.index)
    started = int(first.present.sum())
    row: dict[str, Any] = {
        "step": step,
        "networks": len(finite),
        "finite": int(finite.sum()),
        "present": int(present.sum()),
        "started": started,
        "kept": int(kept.sum()),
        "same": int(same.sum()),
        "born": int((present & ~first.present).sum()),
        "chance": 1 / n,
    }
    for name, of in (("present", len(finite)), ("kept", started), ("same", started), ("born", len(finite) - started)):
        row[f"{name}_low"], row[f"{name}_high"] = share_interval(row[name], of)
    for name, values in (
        ("angle_deg", seen.angle.rad2deg()),
        ("ratio", seen.ratio),
        ("cluster_deg", seen.cluster.rad2deg()),
        ("mean_angle_deg", seen.mean_angle.rad2deg()),
        ("loss", seen.loss),
        ("accuracy", seen.accuracy),
    ):
        good = values[finite & values.isfinite()]
        row[name] = float(good.median()) if len(good) else None
        row[f"{name}_low"], row[f"{name}_high"] = median_interval(good.cpu().numpy())
    both = [
        (a, b) if good else (None, None)
        for a, b, good in zip(
            first.cluster.rad2deg().tolist(), seen.cluster.rad2deg().tolist(), kept.tolist(), strict=True
        )
    ]
    row["cluster_change_deg"] = paired_difference([a for a, _ in both], [b for _, b in both])
    return row


def perturbed(
    start: Network,
    end: Network,
    x: Float[Tensor, "networks n d"],
    targets: Tensor,
    data: TrainingSet,
    stages: Stages,
    alive: Bool[Tensor, "networks"],
    generator: torch.Generator,
) -> dict[str, Any]:
    """Compare what training changed with random changes of the same size: a control.

    To each hidden weight matrix of the start a Gaussian matrix is added that has the Frobenius norm of the change that
    training made to it.

    Args:
        start: initial parameters.
        end: parameters later.
        x: the measured batches.
        targets: their targets.
        data: gives the loss.
        stages: the stages of the hidden layers.
        alive: networks that count: those that have not diverged.
        generator: source of randomness.

    Returns:
        "relative_change", the median over networks of |change| / |weights| over all hidden layers together; "started",
        "kept" and "same" under the random change, over networks that started with an outlier and did not diverge;
        "trained_kept" and "trained_same", the same under training; "only_noise" and "only_trained", how many keep the
        same outlier under one of the two changes and not under the other.

    Example:
        >>> spec = GeometrySpec("small", depth=2, width=8, networks=2, batch_size=4, samples=8, start="any")
        >>> network, x, targets, data, stages = start_networks(spec)
        >>> alive, generator = torch.ones(2, dtype=torch.bool), torch.Generator().manual_seed(0)
        >>> perturbed(network, network, x, targets, data, stages, alive, generator)["relative_change"]
        0.0
    """
    changed, moved, size = [], 0.0, 0.0
    for before, after in zip(start[:-1], end[:-1], strict=True):
        length = torch.linalg.matrix_norm(after.weight - before.weight)
        noise = torch.randn(before.weight.shape, generator=generator, device=generator.device)
        noise = noise * (length / torch.linalg.matrix_norm(noise))[:, None, None]
        changed.append(before._replace(weight=before.weight + noise))
        moved, size = moved + length.double().square(), size + before.weight.double().square().sum(dim=(1, 2))
    first = look(start, x, targets, data, stages)
    there = first.present & alive
    found: dict[str, Any] = {"started": int(there.sum())}
    relative = (moved / size).sqrt()[alive]
    found["relative_change"] = float(relative.median()) if len(relative) else None
    kept_same = []
    for prefix, network in (("", (*changed, start[-1])), ("trained_", end)):
        seen = look(network, x, targets, data, stages)
        kept = seen.present & there
        kept_same.append(kept & (seen.index == first.index))
        found[f"{prefix}kept"] = int(kept.sum())
        found[f"{prefix}same"] = int(kept_same[-1].sum())
    noise_only, trained_only = kept_same[0] & ~kept_same[1], kept_same[1] & ~kept_same[0]
    found |= {"only_noise": int(noise_only.sum()), "only_trained": int(trained_only.sum())}
    return found


def plain_numbers(seen: Seen) -> dict[str, list]:
    """Return the numbers of each network as JSON holds them, angles in degrees, None where not finite.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> plain_numbers(Seen(one.long(), one, one, one, one, one > 0, one, one * math.nan))["accuracy"]
        [None]
    """
    degrees = {"angle": "angle_deg", "cluster": "cluster_deg", "mean_angle": "mean_angle_deg"}
    found: dict[str, list] = {}
    for name, values in seen._asdict().items():
        numbers = (values.rad2deg() if name in degrees else values).tolist()
        found[degrees.get(name, name)] = [
            None if isinstance(one, float) and not math.isfinite(one) else one for one in numbers
        ]
    return found


def _streams(spec: GeometrySpec):
    """Independent streams that do not depend on what is compared: stages, rate, kind of batches."""
    common = (spec.data, spec.samples, spec.batch_size, spec.width, spec.depth, spec.start)
    return lambda *labels: seeds.generator(spec.seed, "training geometry", *common, *labels, device=spec.device)


def _rescaled(network: Network, spec: GeometrySpec) -> Network:
    if spec.variance == "as drawn":
        return network
    wanted, found = recentered_weight_scale(spec.batch_size), []
    for layer in network[:-1]:
        _, fan_in, fan_out = layer.weight.shape
        drawn = initialization(spec.initialization).weight_variance(fan_in, fan_out) * fan_in
        found.append(layer._replace(weight=layer.weight * math.sqrt(wanted / drawn)))
    return (*found, network[-1])


def _joined(layers: tuple, stages: Stages, shift: bool) -> Any:
    """One layer of several networks out of single ones, with the gain and shift of the trained stages."""
    weight, bias = torch.cat([one.weight for one in layers]), torch.cat([one.bias for one in layers])
    hidden = layers[0].shift is not None
    return layers[0]._replace(
        weight=weight,
        bias=bias,
        gain=torch.ones_like(bias) if hidden and stages.rescaling != "none" else None,
        shift=torch.zeros_like(bias) if hidden and stages.recentering and shift else None,
    )


def _some_batches(spec: GeometrySpec, data: TrainingSet, generator: torch.Generator) -> list[Tensor]:
    count = 32
    return [
        data.x[
            torch.rand(spec.networks, spec.samples, generator=generator, device=generator.device).argsort(dim=1)[
                :, : spec.batch_size
            ]
        ]
        for _ in range(count)
    ]
