"""Which sample becomes the outlier: the input's doing or the weights'."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from scipy.stats import chisquare
from scipy.stats import t as student
from torch import Tensor

from bnlib.data import gaussian_batch, symmetric_batch
from bnlib.estimates import CONFIDENCE, share_interval
from bnlib.falsification import Trajectories, digits_batch, follow
from bnlib.falsification_rules import Thresholds
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


def student_interval(mean: float, standard_error: float, count: int) -> tuple[float, float]:
    """95 percent interval of a mean over a few batches, by Student's t.

    Args:
        mean: of the batches' values.
        standard_error: of that mean, estimated from the same batches.
        count: number of batches, at least 2.

    Returns:
        Lower and upper end.

    Raises:
        ValueError: fewer than two batches.

    Example:
        >>> [round(end, 3) for end in student_interval(1.0, 0.1, 9)]
        [0.769, 1.231]
    """
    if count < 2:
        raise ValueError(f"count is {count}; valid is at least 2 batches.")
    reach = float(student.ppf((1 + CONFIDENCE) / 2, count - 1)) * standard_error
    return mean - reach, mean + reach


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
            equal norm; chance decides), `line` (Gaussian samples on a line) or `digits` (random subsets of
            scikit-learn's digits).
        batches: number of batches.
        redraws: number of networks for each batch.
        thresholds: a draw has an outlier if it passes both the angle (degrees) and the largest over the
            second-largest norm.
        generator: source of batches and weights.

    Returns:
        `n`, `width`, `depth`, `kind`, `batches`, `redraws`; `chance`, that is 1/n; `share_with_outlier` of
        all draws, with the ends `outlier_low`, `outlier_high` of its exact 95 percent interval (exact for the
        symmetric kind, whose draws are independent; elsewhere draws share batches); `agreement` and
        `standard_error` as in `pair_agreement`, with `agreement_low`, `agreement_high` by Student's t over
        batches; `uniform_p`, for the symmetric kind only: p-value of the chi-squared test that every sample is
        equally often the outlier; and among the draws with an
        outlier, as means over batches, `share_farthest` (with `share_farthest_error`): it is the sample that lies
        farthest from the batch mean in the input, `share_longest`: it has the largest norm in the input, and
        `share_extreme` (with `share_extreme_error`, its standard error): it is one of the two ends of the line;
        `extreme_misses` is the number of draws in which it is not, and `extreme_low`, `extreme_high` the wider of
        Student's interval over batches and the exact interval of the pooled share, cut at 1. None where the
        question makes no sense or there are too few outliers.

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
    elif kind == "digits":
        x = digits_batch(n, batches, generator=generator)
    else:
        raise ValueError(f'kind is {kind!r}; valid is "gaussian", "symmetric", "line" or "digits".')
    paths = follow(x.repeat_interleave(redraws, dim=0), width, depth, Stages.parse("RC+NL"), generator=generator)
    index, valid = paths.index[-1].view(batches, redraws), _has_outlier(paths, thresholds).view(batches, redraws)
    agreement = pair_agreement(index, valid)
    distance = torch.linalg.vector_norm(recenter(x), dim=-1).cpu()
    line = x[..., 0].cpu()
    ends = torch.stack([line.argmin(dim=-1), line.argmax(dim=-1)], dim=-1)
    farthest = _share(index == distance.argmax(dim=-1)[:, None], valid)
    longest = _share(index == torch.linalg.vector_norm(x, dim=-1).cpu().argmax(dim=-1)[:, None], valid)
    at_an_end = (index[..., None] == ends[:, None]).any(dim=-1)
    extreme = _share(at_an_end, valid) if kind == "line" else (None, None)
    usable = int((valid.sum(dim=1) >= 2).sum())
    between = student_interval(*agreement, usable) if agreement else (None, None)
    outlier_low, outlier_high = share_interval(int(valid.sum()), valid.numel())
    return {
        "n": n,
        "width": width,
        "depth": depth,
        "kind": kind,
        "batches": batches,
        "redraws": redraws,
        "chance": 1 / n,
        "share_with_outlier": float(valid.double().mean()),
        "outlier_low": outlier_low,
        "outlier_high": outlier_high,
        "agreement": agreement[0] if agreement else None,
        "standard_error": agreement[1] if agreement else None,
        "agreement_low": between[0],
        "agreement_high": between[1],
        "uniform_p": _uniform_p(index[valid], n) if kind == "symmetric" else None,
        "share_farthest": farthest[0] if kind != "symmetric" else None,
        "share_farthest_error": farthest[1] if kind != "symmetric" else None,
        "share_longest": longest[0] if kind != "symmetric" else None,
        "share_extreme": extreme[0],
        "share_extreme_error": extreme[1],
        **_ends_of_a_line(at_an_end, valid, extreme),
    }


def _uniform_p(chosen: Tensor, n: int) -> float | None:
    """Chi-squared test that every one of n samples is chosen equally often; None below five expected choices each."""
    counts = torch.bincount(chosen, minlength=n).numpy()
    return float(chisquare(counts).pvalue) if counts.sum() >= 5 * n else None


def _ends_of_a_line(
    hits: Tensor, valid: Tensor, share: tuple[float | None, float | None]
) -> dict[str, int | float | None]:
    """How often the outlier is no end of the line, and an interval that respects batches and small numbers alike."""
    if share[0] is None:
        return {"extreme_misses": None, "extreme_low": None, "extreme_high": None}
    total, found = int(valid.sum()), int((hits & valid).sum())
    exact = share_interval(found, total)
    over_batches = student_interval(*share, int(valid.any(dim=1).sum()))
    return {
        "extreme_misses": total - found,
        "extreme_low": max(0.0, min(exact[0], over_batches[0])),
        "extreme_high": min(1.0, max(exact[1], over_batches[1])),
    }


def _share(hits: Tensor, valid: Tensor) -> tuple[float | None, float | None]:
    """Mean over batches of the share of hits among the valid draws, and its standard error over batches."""
    usable = valid.any(dim=1)
    if int(usable.sum()) < 2:
        return None, None
    shares = ((hits & valid).sum(dim=1) / valid.sum(dim=1))[usable].double()
    return float(shares.mean()), float(shares.std() / math.sqrt(len(shares)))


def _has_outlier(paths: Trajectories, thresholds: Thresholds) -> Tensor:
    """Which draws show the outlier after the last layer: near a right angle, and twice as long as the second."""
    near = paths.angle[-1].rad2deg() > thresholds.angle_deg
    return near & (paths.top_over_second[-1] >= thresholds.top_over_second)


def dose_response(
    n: int,
    width: int,
    depth: int,
    factors: Sequence[int | float],
    *,
    networks: int,
    thresholds: Thresholds,
    generator: torch.Generator,
) -> list[dict[str, Any]]:
    """How often a sample becomes the outlier, as a function of its length alone.

    The batch is symmetric (orthogonal samples of length 1) but for one sample, which is longer or shorter by a
    factor; every network has fresh weights. At factor 1 the probability is 1/n (theorem of chapter 6).

    Args:
        n: batch size, at least 3.
        width: neurons in every layer.
        depth: number of linear layers.
        factors: lengths of that sample, positive.
        networks: number of networks for each factor.
        thresholds: of the angle (degrees) and of the largest over the second-largest norm: what an outlier is.
        generator: source of the weights.

    Returns:
        For each factor `n`, `width`, `depth`, `factor`, `networks`, `with_outlier` (networks that have one),
        `hits` (it is that sample), `share` of the networks with an outlier, its exact 95 percent interval `low`,
        `high`, and `chance`, 1/n; None where no network has an outlier.

    Raises:
        ValueError: n < 3, no networks, no factors, or a factor that is not positive.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> found = dose_response(8, 16, 80, [0.2, 5.0], networks=20, thresholds=Thresholds(), generator=g)
        >>> found[0]["hits"] < found[1]["hits"]
        True
    """
    if n < 3 or networks < 1:
        raise ValueError(f"n is {n} and networks is {networks}; valid is n >= 3 with at least 1 network.")
    if len(factors) == 0 or not all(factor > 0 for factor in factors):
        raise ValueError(f"factors is {list(factors)}; valid is at least one, all positive.")
    rows = []
    for factor in factors:
        x = symmetric_batch(n, n, draws=networks).to(generator.device)
        x[:, 0] *= factor
        paths = follow(x, width, depth, Stages.parse("RC+NL"), generator=generator)
        valid = _has_outlier(paths, thresholds)
        hits, total = int((valid & (paths.index[-1] == 0)).sum()), int(valid.sum())
        low, high = share_interval(hits, total)
        rows.append(
            {"n": n, "width": width, "depth": depth, "factor": float(factor), "networks": networks}
            | {"with_outlier": total, "hits": hits, "share": hits / total if total else None}
            | {"low": low, "high": high, "chance": 1 / n}
        )
    return rows
