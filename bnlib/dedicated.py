"""What a layer of dedicated neurons makes of the samples that it was built from, and of others."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.initialisations import dedicated_neurons, draw_weight


def representation_numbers(h: Float[Tensor, "n width"]) -> dict[str, float]:
    """Describe a representation after a ReLU: how orthogonal, how sparse.

    Args:
        h: representation of samples, not all zero.

    Returns:
        "cosine", mean absolute cosine over pairs of samples that are not silent (0 if there is none); "active", mean
        share of neurons that are positive; "silent", share of samples for which no neuron is.

    Example:
        >>> found = representation_numbers(torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
        >>> found["cosine"], round(found["active"], 3), round(found["silent"], 3)
        (0.0, 0.333, 0.333)
    """
    positive = h > 0
    spoken = h[positive.any(dim=1)].double()
    unit = spoken / torch.linalg.vector_norm(spoken, dim=1, keepdim=True)
    count = len(unit)
    pairs = (unit @ unit.mT).abs().fill_diagonal_(0).sum()
    return {
        "cosine": float(pairs) / (count * (count - 1)) if count > 1 else 0.0,
        "active": float(positive.double().mean()),
        "silent": float((~positive.any(dim=1)).double().mean()),
    }


def dedicated_rows(
    x: Float[Tensor, "samples d"],
    sizes: Sequence[int],
    widths: Sequence[int | None],
    held_out: Float[Tensor, "others d"],
    *,
    repeats: int,
    generator: torch.Generator,
) -> list[dict[str, Any]]:
    """Build dedicated neurons for training sets of several sizes and look at the first representation.

    Args:
        x: samples to choose from.
        sizes: sizes of the training set, each at most len(x).
        widths: numbers of neurons; None for one a sample.
        held_out: samples that no layer is built from.
        repeats: random training sets of each size.
        generator: source of randomness.

    Returns:
        One row a size and width with "samples", "neurons", "one_each" (whether the width was None), "repeats" and, each
        a mean over the training sets with its standard error "..._error": "isolated" (share of neurons that are silent
        on all samples but their own), "orthogonal" (whether all pairs of samples are orthogonal exactly), and the
        numbers of `representation_numbers` for the training set, for the held-out samples ("held_out_...") and for a
        layer with He's weights and the training set ("he_...").

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(40, 16, generator=generator)
        >>> rows = dedicated_rows(x[:20], [8], [None], x[20:], repeats=3, generator=generator)
        >>> rows[0]["isolated"], rows[0]["orthogonal"], rows[0]["active"]
        (1.0, 1.0, 0.125)
    """
    rows = []
    for size in sizes:
        for width in widths:
            neurons, lists = width or size, {}
            for _ in range(repeats):
                order = torch.rand(len(x), generator=generator, device=x.device).argsort()[:size]
                batch = x[order]
                layer = dedicated_neurons(batch, neurons)
                own = torch.relu(batch @ layer.weight + layer.bias)
                he = draw_weight("he", x.shape[1], neurons, generator=generator, dtype=x.dtype)[0]
                numbers = {"isolated": float(layer.isolated.double().mean())}
                numbers |= representation_numbers(own)
                numbers["orthogonal"] = float(numbers["cosine"] == 0 and numbers["silent"] == 0)
                for prefix, h in (
                    ("held_out_", torch.relu(held_out @ layer.weight + layer.bias)),
                    ("he_", torch.relu(batch @ he)),
                ):
                    numbers |= {f"{prefix}{key}": value for key, value in representation_numbers(h).items()}
                for key, value in numbers.items():
                    lists.setdefault(key, []).append(value)
            row: dict[str, Any] = {
                "samples": size,
                "neurons": neurons,
                "one_each": width is None,
                "repeats": repeats,
            }
            for key, values in lists.items():
                sample = torch.tensor(values, dtype=torch.float64)
                row[key] = float(sample.mean())
                row[f"{key}_error"] = float(sample.std() / repeats**0.5) if repeats > 1 else None
            rows.append(row)
    return rows
