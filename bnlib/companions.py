"""What the outlier owes to its companions: other samples in its batch, or constants in place of the batch."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bnlib import geometry
from bnlib.evaluation_mode import evaluation_outputs, evaluation_representations, population_statistics
from bnlib.falsification_rules import Thresholds
from bnlib.layers import Stages
from bnlib.training import Network, forward, hidden_representations
from bnlib.training_data import TrainingSet

# Chapter 6's: nearly orthogonal to the mean of the others, and much longer than the second.
THRESHOLDS = Thresholds()


def is_outlier(angle: Float[Tensor, "*any"], ratio: Float[Tensor, "*any"]) -> Bool[Tensor, "*any"]:
    """Whether the sample of largest norm is an outlier, by chapter 6's two thresholds; NaN counts as none.

    Args:
        angle: between it and the mean of the others, radians; at least 85 degrees are asked for.
        ratio: largest norm over the second-largest; at least two is asked for.

    Example:
        >>> is_outlier(torch.tensor([1.5, 1.4]), torch.tensor([3.0, 3.0])).tolist()
        [True, False]
    """
    return (angle >= math.radians(THRESHOLDS.angle_deg)) & (ratio >= THRESHOLDS.top_over_second)


def newcomers(
    x: Float[Tensor, "networks n d"], pool: Float[Tensor, "samples d"], count: int, *, generator: torch.Generator
) -> Float[Tensor, "networks count d"]:
    """Draw different samples of a pool that are not in a network's batch.

    Args:
        x: one batch a network.
        pool: where to draw from.
        count: how many for each network.
        generator: source of randomness.

    Raises:
        ValueError: the pool has too few others.

    Example:
        >>> pool = torch.arange(4.0)[:, None]
        >>> sorted(newcomers(pool[None, :2], pool, 2, generator=torch.Generator().manual_seed(0)).flatten().tolist())
        [2.0, 3.0]
    """
    member = (torch.cdist(x, pool.expand(len(x), *pool.shape), compute_mode="donot_use_mm_for_euclid_dist") == 0).any(1)
    if int((~member).sum(dim=1).min()) < count:
        raise ValueError(f"pool has {len(pool)} samples; valid are at least {count} that are not in the batch.")
    score = torch.rand(member.shape, generator=generator, device=generator.device) + 2 * member
    return pool[score.argsort(dim=1)[:, :count]]


def companions(
    network: Network,
    x: Float[Tensor, "networks n d"],
    pool: Float[Tensor, "samples d"],
    stages: Stages,
    alive: Bool[Tensor, "networks"],
    *,
    generator: torch.Generator,
    repeats: int = 8,
) -> dict[str, Any]:
    """Replace companions of the outlier, or the outlier itself, by other samples, in training mode.

    Args:
        network: parameters.
        x: one batch a network.
        pool: samples to replace with.
        stages: the stages of the hidden layers.
        alive: networks that count.
        generator: source of randomness.
        repeats: replacements a network; shares are averaged over them first, so that networks are independent.

    Returns:
        "started", how many networks have an outlier on their own batch; "chance", 1/n; "replaced", one entry each for
        1, n // 2 and n - 1 companions: "count", and mean and standard error over these networks of the shares "present"
        (an outlier is there) and "same" (it is the same sample); "removed": shares, when the outlier itself is
        replaced, of "newcomer" (the new sample is the outlier), "other" (an old one is) and "none". None where no
        network counts.

    Example:
        >>> from bnlib.training import initial_network
        >>> generator, stages = torch.Generator().manual_seed(0), Stages.parse("RC+NL")
        >>> net = initial_network("he", [4, 8, 8, 2], stages, generator=generator, networks=2, dtype=torch.float32)
        >>> pool = torch.randn(20, 4, generator=generator)
        >>> x, alive = pool[:8].view(2, 4, 4), torch.tensor([True, True])
        >>> found = companions(net, x, pool, stages, alive, generator=generator)
        >>> found["started"], [row["count"] for row in found["replaced"]]
        (0, [1, 2, 3])
    """
    n = x.shape[1]
    index, present = _outlier(_last(network, x, stages))
    good = present & alive
    networks = torch.arange(len(x), device=x.device)
    found: dict[str, Any] = {"started": int(good.sum()), "chance": 1 / n, "replaced": []}
    # Row 0 of the order is the outlier, then its companions in a random order.
    for count in sorted({1, n // 2, n - 1}):
        there, same = [], []
        for _ in range(repeats):
            order = _outlier_first(index, n, generator)
            replaced = x.gather(1, order[..., None].expand_as(x)).clone()
            replaced[:, 1 : 1 + count] = newcomers(x, pool, count, generator=generator)
            new, here = _outlier(_last(network, replaced, stages))
            there.append(here)
            same.append(here & (new == 0))
        row = {"count": count}
        found["replaced"].append(row | _shares({"present": there, "same": same}, good))
    outcomes: dict[str, list[Tensor]] = {"newcomer": [], "other": [], "none": []}
    for _ in range(repeats):
        replaced = x.clone()
        replaced[networks, index] = newcomers(x, pool, 1, generator=generator)[:, 0]
        new, here = _outlier(_last(network, replaced, stages))
        outcomes["newcomer"].append(here & (new == index))
        outcomes["other"].append(here & (new != index))
        outcomes["none"].append(~here)
    found["removed"] = _shares(outcomes, good)
    return found


def evaluation(
    network: Network,
    x: Float[Tensor, "networks n d"],
    data: TrainingSet,
    seen_batches: Sequence[Float[Tensor, "networks n d"]],
    stages: Stages,
    alive: Bool[Tensor, "networks"],
    *,
    generator: torch.Generator,
    repeats: int = 8,
) -> dict[str, Any]:
    """Compare training mode with evaluation mode on the same batches.

    Args:
        network: parameters.
        x: each network's own batch.
        data: the training set; fresh batches are drawn from it.
        seen_batches: the statistics of evaluation mode are averaged over these.
        stages: the stages of the hidden layers.
        alive: networks that count.
        generator: source of randomness.
        repeats: fresh batches a network; what is measured is averaged over them first.

    Returns:
        For "own" and "fresh" batches: mean and standard error over networks of the shares "train_present" and
        "evaluation_present" (an outlier is there), "same" (in both modes, and the same sample), "train_angle_deg" and
        "evaluation_angle_deg" (mean over networks), "train_loss", "evaluation_loss" and, with classes,
        "train_accuracy" and "evaluation_accuracy": one mean a network, None where not finite.

    Example:
        >>> from bnlib.training import initial_network
        >>> from bnlib.training_data import training_set
        >>> generator, stages = torch.Generator().manual_seed(0), Stages.parse("RC+NL")
        >>> data = training_set("random labels", 32, generator=generator)
        >>> net = initial_network("he", [64, 8, 8, 10], stages, generator=generator, networks=2, dtype=torch.float32)
        >>> x = data.x[:8].view(2, 4, 64)
        >>> found = evaluation(net, x, data, [x], stages, torch.tensor([True, True]), generator=generator)
        >>> found["own"]["train_loss"] == found["own"]["evaluation_loss"]
        True
    """
    statistics = population_statistics(network, seen_batches, stages)
    n, found = x.shape[1], {}
    order = torch.rand(repeats, len(x), len(data.x), generator=generator, device=generator.device)
    fresh = order.argsort(dim=-1)[..., :n]
    # The targets of the own batches are found again by the samples themselves.
    same_sample = torch.cdist(x, data.x.expand(len(x), *data.x.shape), compute_mode="donot_use_mm_for_euclid_dist")
    for label, groups in (("own", [same_sample.argmin(dim=-1)]), ("fresh", list(fresh))):
        there: dict[str, list[Tensor]] = {"train_present": [], "evaluation_present": [], "same": []}
        numbers: dict[str, list[Tensor]] = {}
        for which in groups:
            batch, targets = data.x[which], data.targets[which]
            seen = []
            for mode in ("train", "evaluation"):
                with torch.no_grad():
                    if mode == "train":
                        last, outputs = _last(network, batch, stages), forward(network, batch, stages)
                    else:
                        *_, last = evaluation_representations(network, batch, statistics, stages)
                        outputs = evaluation_outputs(network, batch, statistics, stages)
                    measured = {"loss": data.loss(outputs, targets).double()}
                    if data.classes:
                        measured["accuracy"] = (outputs.argmax(dim=-1) == targets).double().mean(dim=-1)
                summary = geometry.outlier_summary(last.double())
                measured["angle_deg"] = summary.angle.rad2deg()
                here = is_outlier(summary.angle, summary.top_over_second)
                seen.append((summary.index, here))
                there[f"{mode}_present"].append(here)
                for key, values in measured.items():
                    numbers.setdefault(f"{mode}_{key}", []).append(values)
            (first, one), (second, two) = seen
            there["same"].append(one & two & (first == second))
        row = _shares(there, alive)
        for key, values in numbers.items():
            mean = torch.stack(values).mean(dim=0)
            row[key] = [
                value if good and math.isfinite(value) else None
                for value, good in zip(mean.tolist(), alive.tolist(), strict=True)
            ]
        found[label] = row
    return found


def _last(network: Network, x: Tensor, stages: Stages) -> Tensor:
    with torch.no_grad():
        *_, last = hidden_representations(network, x, stages)
    return last


def _outlier(last: Tensor) -> tuple[Tensor, Tensor]:
    """The sample of largest norm, and whether it is an outlier."""
    found = geometry.outlier_summary(last.double())
    return found.index, is_outlier(found.angle, found.top_over_second)


def _outlier_first(index: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Random orders of the samples of each batch that begin with the given one."""
    score = torch.rand(len(index), n, generator=generator, device=generator.device)
    return score.scatter(1, index[:, None], -1.0).argsort(dim=1)


def _shares(hits: dict[str, list[Tensor]], good: Tensor) -> dict[str, float | None]:
    """Mean and standard error over the networks that count, of shares over repeats."""
    found: dict[str, float | None] = {}
    for name, values in hits.items():
        share = torch.stack(values).double().mean(dim=0)[good]
        found[name] = float(share.mean()) if len(share) else None
        found[f"{name}_error"] = float(share.std() / math.sqrt(len(share))) if len(share) > 1 else None
    return found
