"""Which sample becomes the outlier: the input's doing or the weights'."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from bnlib.data import gaussian_batch, symmetric_batch
from bnlib.falsification import Thresholds, follow
from bnlib.layers import Stages, recenter


def pair_agreement(index: Int[Tensor, "batches redraws"], valid: Bool[Tensor, "..."]) -> tuple[float, float] | None:
    """How often two independent networks single out the same sample of the same batch.

    For each batch with m valid draws, of which c_i single out sample i, the unbiased estimate is sum c_i
    (c_i - 1) / (m (m - 1)); batches with fewer than two valid draws are left out, and the others have equal
    weight.

    Args:
        index: which sample, for each batch (row) and network (column).
        valid: which draws have an outlier.

    Returns:
        The mean over batches and its standard error, or None with fewer than two usable batches.

    Raises:
        ValueError: shapes that differ.

    Example:
        >>> index = torch.tensor([[0, 0, 1], [2, 2, 2]])
        >>> mean, error = pair_agreement(index, torch.ones(2, 3, dtype=torch.bool))
        >>> round(mean, 4), round(error, 4)
        (0.6667, 0.3333)
    """
    if index.shape != valid.shape:
        raise ValueError(f"valid has shape {tuple(valid.shape)}; valid is that of index, {tuple(index.shape)}.")
    estimates = []
    for row, mask in zip(index, valid, strict=True):
        counts = torch.bincount(row[mask]).double()
        total = counts.sum()
        if total >= 2:
            estimates.append(float((counts * (counts - 1)).sum() / (total * (total - 1))))
    if len(estimates) < 2:
        return None
    return float(np.mean(estimates)), float(np.std(estimates, ddof=1) / math.sqrt(len(estimates)))


def identity(
    n: int,
    width: int,
    depth: int,
    kind: str,
    *,
    batches: int,
    redraws: int,
    thresholds: Thresholds,
    generator: torch.Generator,
) -> dict[str, Any]:
    """Hold batches fixed, redraw all weights, and ask which sample becomes the outlier of a recentered ReLU network.

    Args:
        n: batch size, at least 3.
        width: neurons in every layer.
        depth: number of linear layers.
        kind: `gaussian` (independent entries, of the network's width), `symmetric` (orthogonal samples of
            equal norm; chance decides) or `line` (Gaussian samples on a line).
        batches: number of batches.
        redraws: number of networks for each batch.
        thresholds: a draw has an outlier if it passes both the angle (degrees) and the largest over the
            second-largest norm.
        generator: source of batches and weights.

    Returns:
        `n`, `width`, `depth`, `kind`, `batches`, `redraws`; `chance`, that is 1/n; `share_with_outlier` of
        all draws; `agreement` and `standard_error` as in `pair_agreement`; and among the draws with an
        outlier, as means over batches, `share_farthest`: it is the sample that lies farthest from the batch
        mean in the input, and `share_extreme` (with `share_extreme_error`, its standard error): it is one of
        the two ends of the line. None where the question makes no sense or there are too few outliers.

    Raises:
        ValueError: an unknown kind, n < 3, or fewer than two batches or redraws.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> found = identity(12, 32, 80, "line", batches=3, redraws=8, thresholds=Thresholds(), generator=g)
        >>> found["share_extreme"] > 2 / 12  # more often than two samples chosen at random
        True
    """
    if n < 3:
        raise ValueError(f"n is {n}; valid is a batch size of at least 3.")
    if batches < 2 or redraws < 2:
        raise ValueError(f"batches is {batches} and redraws is {redraws}; valid is at least 2 of each.")
    if kind == "symmetric":
        x = symmetric_batch(n, n, draws=batches).to(generator.device)
    elif kind in ("gaussian", "line"):
        x = gaussian_batch(n, width if kind == "gaussian" else 1, generator=generator, draws=batches)
    else:
        raise ValueError(f'kind is {kind!r}; valid is "gaussian", "symmetric" or "line".')
    paths = follow(x.repeat_interleave(redraws, dim=0), width, depth, Stages.parse("RC+NL"), generator=generator)
    valid = (paths.angle[-1].rad2deg() > thresholds.angle_deg) & (
        paths.top_over_second[-1] >= thresholds.top_over_second
    )
    index, valid = paths.index[-1].view(batches, redraws), valid.view(batches, redraws)
    agreement = pair_agreement(index, valid)
    distance = torch.linalg.vector_norm(recenter(x), dim=-1).cpu()
    line = x[..., 0].cpu()
    ends = torch.stack([line.argmin(dim=-1), line.argmax(dim=-1)], dim=-1)
    farthest = _share(index == distance.argmax(dim=-1)[:, None], valid)
    extreme = _share((index[..., None] == ends[:, None]).any(dim=-1), valid)
    return {
        "n": n,
        "width": width,
        "depth": depth,
        "kind": kind,
        "batches": batches,
        "redraws": redraws,
        "chance": 1 / n,
        "share_with_outlier": float(valid.double().mean()),
        "agreement": agreement[0] if agreement else None,
        "standard_error": agreement[1] if agreement else None,
        "share_farthest": farthest[0] if kind != "symmetric" else None,
        "share_extreme": extreme[0] if kind == "line" else None,
        "share_extreme_error": extreme[1] if kind == "line" else None,
    }


def _share(hits: Tensor, valid: Tensor) -> tuple[float | None, float | None]:
    """Mean over batches of the share of hits among the valid draws, and its standard error over batches."""
    usable = valid.any(dim=1)
    if int(usable.sum()) < 2:
        return None, None
    shares = ((hits & valid).sum(dim=1) / valid.sum(dim=1))[usable].double()
    return float(shares.mean()), float(shares.std() / math.sqrt(len(shares)))
