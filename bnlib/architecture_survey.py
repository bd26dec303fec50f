"""Networks of any architecture, classified layer by layer: the cells of chapter 11's table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bnlib import seeds
from bnlib.architecture_layers import layer
from bnlib.architectures import Architecture
from bnlib.ensembles import gaussian
from bnlib.geometry_classes import BROKEN, CLASSES, Rule, Shape, classify, settled_from, shape_of

_ENTRIES = 150_000  # entries of Gram matrices classified at once: 1.2 MB, which stays in the cache
_SMALL = 1e-200  # squared norms between this and its inverse are formed without care
# Pixels of a 4 x 4 torus, the smallest on which 3 x 3 weights do not see the whole image; tokens of a sequence.
PLACES = {"dense": 1, "convolution": 16, "attention": 4}


@dataclass(frozen=True)
class Cell:
    """One architecture at one batch size and width: a spec of `bnlib.sweeps`.

    Attributes:
        name: unique in a sweep.
        architecture: the line that `Architecture.parse` reads.
        n: batch size, at least 3.
        width: neurons, or channels.
        depth: layers or blocks.
        draws: independent draws of batch and weights.
        seed: of the run; the cell derives its own from it and from what it is.
        rule: the numbers of the rule of classes, in the order of `Rule`'s fields.
        device: where it is computed.
    """

    name: str
    architecture: str
    n: int
    width: int
    depth: int
    draws: int
    seed: int
    rule: tuple[float, ...] = tuple(vars(Rule()).values())
    device: str = "cpu"


def make_cell(
    spec: Architecture,
    n: int,
    width: int,
    *,
    depth: int,
    draws: int,
    seed: int,
    rule: Rule | None = None,
    device: str = "cpu",
) -> Cell:
    """A cell with its name.

    Args:
        spec: the architecture.
        n: batch size, at least 3.
        width: neurons, or channels.
        depth: layers or blocks, at least 1.
        draws: number of draws, at least 1.
        seed: of the run.
        rule: of the classes; the defaults without.
        device: a torch device.

    Raises:
        ValueError: a size that is too small.

    Example:
        >>> make_cell(Architecture(), 8, 64, depth=10, draws=2, seed=0).name
        'dense RC+NL, n=8, width=64'
    """
    for name, value, least in (("n", n, 3), ("width", width, 2), ("depth", depth, 1), ("draws", draws, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is {value!r}; valid is a whole number of at least {least}.")
    numbers = tuple(vars(rule or Rule()).values())
    return Cell(f"{spec.name}, n={n}, width={width}", spec.name, n, width, depth, draws, seed, numbers, device)


def run_cell(cell: Cell) -> dict[str, Any]:
    """Send the draws of a cell through their networks, and classify them after every layer.

    The scale is divided out where the architecture is homogeneous, and its logarithm kept; elsewhere it stays, since
    the activation sees it. A draw in which something stops being a finite number, or that becomes exactly zero, is
    reported as broken, with the layer, and does not disturb the others.

    Args:
        cell: the spec.

    Returns:
        `architecture`, `n`, `width`, `depth`, `draws`; and a list with an entry a draw of: `classes`, the class after
        the last layer; `settled`, the first layer from which on that is the class; `separation` (None where infinite or
        broken), `mean_angle_deg`, `odd_angle_deg`, after the last layer; `log10_norm`, of the root mean squared norm of
        the samples (None where zero or broken); `broken_at`, the layer and the word `overflow` or `zero`, or None.

    Example:
        >>> found = run_cell(make_cell(Architecture.parse("NL"), 4, 16, depth=60, draws=2, seed=0))
        >>> found["classes"]
        ['collapse', 'collapse']
    """
    spec, rule = Architecture.parse(cell.architecture), Rule(*cell.rule)
    stream = seeds.generator(cell.seed, cell.architecture, cell.n, cell.width, device=cell.device)
    places = PLACES[spec.layout]
    x = gaussian(cell.draws, cell.n, places, cell.width, generator=stream)
    x, log_scale = _scaled(x)[0], x.new_zeros(cell.draws)  # mean squared entry 1, as behind a normalization
    classes, grams, alive_at, shape = [], [], [], None
    broken: list[tuple[int, str] | None] = [None] * cell.draws
    alive = torch.ones(cell.draws, dtype=torch.bool, device=x.device)
    for depth in range(1, cell.depth + 1):
        h = layer(x, spec, cell.width, generator=stream)
        flat = h.flatten(2)
        gram = flat @ flat.mT
        squares = gram.diagonal(dim1=-2, dim2=-1).mean(dim=-1)
        if bool(((squares > _SMALL) & (squares < 1 / _SMALL)).all()):
            scale = (squares / (places * cell.width)).sqrt()
            gram, added = gram / squares[:, None, None], scale.log()
            scaled = h if spec.degree is None else h / scale[:, None, None, None]
        else:
            finite = torch.isfinite(h).flatten(1).all(dim=1)
            zero = (h == 0).flatten(1).all(dim=1)
            for draw in (alive & (~finite | zero)).nonzero().flatten().tolist():
                broken[draw] = (depth, "zero" if bool(zero[draw]) else "overflow")
            alive &= finite & ~zero
            # A broken draw goes on as some batch of its own, which nobody looks at.
            h = torch.where(alive[:, None, None, None], h, x.new_tensor(1.0))
            scaled, added = _scaled(h)
            flat = scaled.flatten(2)
            gram = flat @ flat.mT
        if spec.degree is None:
            x, log_scale = h, added
        else:
            x, log_scale = scaled, spec.degree * log_scale + added
        grams.append(gram)
        alive_at.append(alive.clone())
        if len(grams) * gram.numel() > _ENTRIES or depth == cell.depth:
            # Many layers at once: at small batches the calls cost more than the numbers.
            shape = shape_of(torch.stack(grams))
            found = classify(shape, rule)
            found[~torch.stack(alive_at)] = BROKEN
            classes.append(found.cpu().numpy())
            grams, alive_at = [], []
    shape = Shape(**{name: values[-1] for name, values in vars(shape).items()})
    table = np.concatenate(classes)
    whole = [number is None for number in broken]
    return {
        "architecture": cell.architecture,
        "n": cell.n,
        "width": cell.width,
        "depth": cell.depth,
        "draws": cell.draws,
        "classes": [CLASSES[k] for k in table[-1]],
        "settled": settled_from(table).tolist(),
        "separation": _numbers(shape.separation, whole),
        "mean_angle_deg": _numbers(torch.rad2deg(shape.mean_angle), whole),
        "odd_angle_deg": _numbers(torch.rad2deg(shape.odd_angle), whole),
        "log10_norm": _numbers((log_scale + math.log(places * cell.width) / 2) / math.log(10), whole),
        "broken_at": [None if entry is None else list(entry) for entry in broken],
    }


def _scaled(h: Float[Tensor, "draws n p d"]) -> tuple[Float[Tensor, "draws n p d"], Float[Tensor, "draws"]]:
    """The representation with mean squared entry one, and the log of the divisor, without squares of large numbers."""
    largest = h.abs().amax(dim=(1, 2, 3), keepdim=True)
    unit = h / largest
    scale = unit.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    return unit / scale, (largest.log() + scale.log()).flatten()


def _numbers(values: Float[Tensor, "draws"], whole: Sequence[bool]) -> list[float | None]:
    numbers = zip(values.tolist(), whole, strict=True)
    return [float(f"{number:.6g}") if good and math.isfinite(number) else None for number, good in numbers]
