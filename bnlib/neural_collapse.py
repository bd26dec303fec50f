"""Neural collapse: what classes look like in the last hidden layer, before and after training."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib import geometry, seeds
from bnlib.companions import is_outlier
from bnlib.initialisations import recentered_weight_scale
from bnlib.layers import Stages
from bnlib.training import Network, hidden_representations, initial_network, train
from bnlib.training_data import DATA_SETS, OUTPUTS, training_set


class Collapse(NamedTuple):
    """Measures of neural collapse (Papyan, Han and Donoho, arXiv 2008.08186), each of shape (networks,).

    Attributes:
        within: NC1, tr(S_W S_B^+) / K with the covariances within and between classes: 0 when classes are points.
        norm_spread: standard deviation over mean of the norms of the centered class means: 0 when equal.
        cosine: mean cosine between two centered class means; for any means of equal norm it is -1/(K-1).
        simplex_gap: mean of |cosine + 1/(K-1)| over pairs: 0 exactly for the directions of the simplex.
    """

    within: Float[Tensor, "networks"]
    norm_spread: Float[Tensor, "networks"]
    cosine: Float[Tensor, "networks"]
    simplex_gap: Float[Tensor, "networks"]


def class_means(
    h: Float[Tensor, "networks n width"], labels: Int[Tensor, "networks n"], classes: int
) -> Float[Tensor, "networks classes width"]:
    """Return the mean of each class; NaN for a class without samples.

    Args:
        h: representation.
        labels: classes from 0.
        classes: how many.

    Example:
        >>> class_means(torch.tensor([[[1.0], [3.0], [5.0]]]), torch.tensor([[0, 0, 1]]), 2).flatten().tolist()
        [2.0, 5.0]
    """
    member = torch.nn.functional.one_hot(labels, classes).to(h.dtype)
    return (member.mT @ h) / member.sum(dim=1)[..., None]


def collapse(h: Float[Tensor, "networks n width"], labels: Int[Tensor, "networks n"], classes: int) -> Collapse:
    """Measure neural collapse on balanced classes.

    Args:
        h: representation, float64 for accuracy.
        labels: classes from 0, each equally often.
        classes: at least 2.

    Returns:
        The four measures; NaN where the class means coincide.

    Raises:
        ValueError: classes of different sizes.

    Example:
        >>> h = torch.eye(3, dtype=torch.float64).repeat(1, 2, 1)
        >>> found = collapse(h, torch.tensor([[0, 1, 2, 0, 1, 2]]), 3)
        >>> [round(abs(one.item()), 9) for one in found]
        [0.0, 0.0, 0.5, 0.0]
    """
    sizes = torch.nn.functional.one_hot(labels, classes).sum(dim=1)
    if not bool((sizes == sizes[:, :1]).all()) or int(sizes.min()) < 1:
        raise ValueError("labels hold classes of different sizes; valid are classes that are equally frequent.")
    means = class_means(h, labels, classes)
    centered = means - means.mean(dim=1, keepdim=True)
    deviation = h - means.gather(1, labels[..., None].expand(*labels.shape, h.shape[-1]))
    # tr(S_W S_B^+) by the singular vectors of the centered means, of which there are at most K - 1.
    _, singular, right = torch.linalg.svd(centered / math.sqrt(classes), full_matrices=False)
    good = singular > 1e-9 * singular[:, :1]
    inverse = torch.where(good, singular, torch.inf).pow(-2)
    along = (deviation @ right.mT).square().mean(dim=1)
    norms = torch.linalg.vector_norm(centered, dim=-1)
    unit = centered / norms[..., None]
    cosines = unit @ unit.mT
    off = ~torch.eye(classes, dtype=torch.bool, device=h.device)
    pairs = cosines[:, off]
    return Collapse(
        (along * inverse).sum(dim=1) / classes,
        norms.std(dim=1, correction=0) / norms.mean(dim=1),
        pairs.mean(dim=1),
        (pairs + 1 / (classes - 1)).abs().mean(dim=1),
    )


@dataclass(frozen=True)
class CollapseSpec:
    """One configuration: networks trained on one balanced batch until long after it is fitted.

    Attributes:
        name: unique in a sweep.
        stages: of each hidden layer.
        data: a data set with classes, see `bnlib.training_data.DATA_SETS`.
        data_folder: where image files are.
        per_class: samples of each of the ten classes.
        width: neurons of a hidden layer.
        depth: hidden layers.
        shift: whether a learned shift follows the recentering.
        learning_rate: of plain SGD on the whole batch.
        steps: how many.
        networks: independent networks, each with its own batch.
        seed: of all randomness; specs of the same sizes share weights and batches.
        device: of the tensors.
    """

    name: str
    stages: str = "RC+NL"
    data: str = "digits"
    data_folder: str = "data"
    per_class: int = 4
    width: int = 64
    depth: int = 8
    shift: bool = False
    learning_rate: float = 0.03
    steps: int = 600
    networks: int = 12
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self):
        """Refuse what cannot be run.

        Raises:
            ValueError: an unknown name, data without classes, or a number that is too small.
        """
        Stages.parse(self.stages)
        valid = [name for name in DATA_SETS if name != "gaussian"]
        if self.data not in valid:
            raise ValueError(f"data must be one of {', '.join(valid)}, got {self.data!r}.")
        for field, least in (("per_class", 2), ("width", 1), ("depth", 1), ("steps", 1), ("networks", 1)):
            if getattr(self, field) < least:
                raise ValueError(f"{field} must be at least {least}, got {getattr(self, field)}.")


def run_collapse(spec: CollapseSpec) -> dict[str, Any]:
    """Train on one balanced batch a network and measure its classes at the start and along the way.

    Args:
        spec: the configuration.

    Returns:
        JSON-able values: fields of the spec; "diverged"; "rows", one a probed step, with medians over the networks that
        are still finite of the measures of `collapse`, of "loss" and "accuracy", and "outlier", how many have an
        outlier; "start" and "end": for each measure one number a network (None where not finite).

    Example:
        >>> found = run_collapse(CollapseSpec("small", depth=1, width=16, steps=2, networks=2, per_class=2))
        >>> [row["step"] for row in found["rows"]], len(found["end"]["simplex_gap"])
        ([0, 1, 2], 2)
    """
    stages = Stages.parse(spec.stages)
    sizes = (spec.data, spec.per_class, spec.width, spec.depth)

    def stream(*labels: str) -> torch.Generator:
        return seeds.generator(spec.seed, "neural collapse", *sizes, *labels, device=spec.device)

    pool = training_set(spec.data, _pool_size(spec), generator=stream("data"), folder=spec.data_folder)
    which = balanced(pool.targets, spec.per_class, networks=spec.networks, generator=stream("batches"))
    x, labels = pool.x[which], pool.targets[which]
    widths = [x.shape[-1], *[spec.width] * spec.depth, OUTPUTS]
    drawn = initial_network(
        "he", widths, stages, generator=stream("weights"), networks=spec.networks, dtype=torch.float32
    )
    # Recentering without rescaling starts with the variance that keeps the outlier's norm; it moves no angle.
    scale = math.sqrt(recentered_weight_scale(x.shape[1]) / 2) if stages.name == "RC+NL" else 1.0
    hidden = [
        layer._replace(weight=layer.weight * scale, shift=layer.shift if spec.shift else None) for layer in drawn[:-1]
    ]
    network = (*hidden, drawn[-1])

    def probe(_: int, one: Network) -> dict[str, Tensor]:
        with torch.no_grad():
            *_, last = hidden_representations(one, x, stages)
            outputs = last @ one[-1].weight + one[-1].bias
            loss = pool.loss(outputs, labels).double()
            fine = loss.isfinite() & last.isfinite().flatten(1).all(dim=1)
            last = torch.where(fine[:, None, None], last, 0.0).double()
            found = geometry.outlier_summary(last)
            values = collapse(last, labels, OUTPUTS)._asdict()
            values |= {"loss": loss, "accuracy": (outputs.argmax(dim=-1) == labels).double().mean(dim=-1)}
            values["outlier"] = is_outlier(found.angle, found.top_over_second).double()
            return {key: torch.where(fine, value, math.nan) for key, value in values.items()}

    half = spec.steps // 2
    steps = sorted({0, 1, spec.steps // 30, spec.steps // 10, half, spec.steps} | {10, 100} & set(range(spec.steps)))
    found = train(
        network,
        itertools.repeat((x, labels), spec.steps),
        stages,
        spec.learning_rate,
        probe=probe,
        probe_steps=steps[:-1],
    )
    probes = [*found.probes, (spec.steps, probe(spec.steps, found.network))]
    rows = []
    for step, values in probes:
        row: dict[str, Any] = {"step": step}
        for key, numbers in values.items():
            good = numbers[numbers.isfinite()]
            if key == "outlier":
                row[key] = int(good.sum())
            else:
                row[key] = float(good.median()) if len(good) else None
        rows.append(row)
    fields = ("name", "stages", "data", "per_class", "width", "depth", "shift", "learning_rate", "networks", "steps")
    return {
        **{field: getattr(spec, field) for field in fields},
        "diverged": int((found.diverged_at >= 0).sum()),
        "rows": rows,
        "start": _numbers(probes[0][1]),
        "end": _numbers(probes[-1][1]),
    }


def balanced(
    labels: Int[Tensor, "samples"], per_class: int, *, networks: int, generator: torch.Generator
) -> Int[Tensor, "networks batch"]:
    """Draw batches in which each of the ten classes occurs equally often, sorted by class.

    Args:
        labels: classes 0 to 9 of all samples.
        per_class: samples of a class.
        networks: how many batches.
        generator: source of randomness.

    Returns:
        Indices.

    Raises:
        ValueError: a class with too few samples.

    Example:
        >>> labels = torch.arange(30) % 10
        >>> labels[balanced(labels, 2, networks=1, generator=torch.Generator().manual_seed(0))][0, :4].tolist()
        [0, 0, 1, 1]
    """
    parts = []
    for one in range(OUTPUTS):
        members = (labels == one).nonzero().flatten()
        if len(members) < per_class:
            raise ValueError(f"per_class is {per_class}, but class {one} has {len(members)} samples.")
        order = torch.rand(networks, len(members), generator=generator, device=generator.device).argsort(dim=1)
        parts.append(members[order[:, :per_class]])
    return torch.cat(parts, dim=1)


def _pool_size(spec: CollapseSpec) -> int:
    return max(1000, 40 * spec.per_class)


def _numbers(values: dict[str, Tensor]) -> dict[str, list[float | None]]:
    return {
        key: [value if math.isfinite(value) else None for value in numbers.tolist()] for key, numbers in values.items()
    }
