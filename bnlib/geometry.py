"""What the geometry of a representation looks like: angles, norm ratios, the outlier, ranks, gaps.

Every function takes a representation ``(..., n, d)``, samples in rows, and treats leading dimensions as independent
draws. Angles are in radians. Functions with a ``gram`` argument take the Gram matrix of ``x`` where it is at hand,
which saves the one expensive product. A sample that is exactly zero has no direction: its angles are NaN.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib.layers import check_batch

_GATHERED_ENTRIES = 4_000_000  # entries of the explicit pair differences held at once: 32 MB in float64


@dataclass(frozen=True)
class OutlierSummary:
    """The sample of largest norm, seen against the others.

    Attributes:
        index: which sample has the largest norm, shape (...), integers.
        angle: angle between that sample and the mean of the others, radians, shape (...).
        norm_ratio: its norm over the norm of the mean of the others, shape (...).
        top_over_second: largest norm over second-largest norm, shape (...).
    """

    index: Int[Tensor, "*draws"]
    angle: Float[Tensor, "*draws"]
    norm_ratio: Float[Tensor, "*draws"]
    top_over_second: Float[Tensor, "*draws"]


def gram(x: Float[Tensor, "*draws n d"]) -> Float[Tensor, "*draws n n"]:
    """Inner products between the samples, ``x x'``.

    Args:
        x: batch, shape (..., n, d).

    Returns:
        The Gram matrix, shape (..., n, n), exactly symmetric.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> gram(torch.tensor([[3.0, 0.0], [1.0, 2.0]])).tolist()
        [[9.0, 3.0], [3.0, 5.0]]
    """
    check_batch(x)
    k = x @ x.mT
    # Blocked products are symmetric only to rounding.
    return k.tril() + k.tril(-1).mT


def pairwise_angles(
    x: Float[Tensor, "*draws n d"], *, gram: Float[Tensor, "*draws n n"] | None = None
) -> Float[Tensor, "*draws n n"]:
    """Angles between all pairs of samples, accurate at both ends of the half circle.

    With unit vectors u, v the angle is ``2 atan2(|u - v|, |u + v|)``. Both lengths come from the Gram matrix where
    that is accurate, and from the vectors themselves for pairs that are nearly parallel or nearly opposite, where the
    cosine has lost its digits.

    Args:
        x: batch, shape (..., n, d).
        gram: the Gram matrix of x, if at hand.

    Returns:
        Radians in [0, pi], shape (..., n, n), symmetric, with a zero diagonal; NaN in the row and column of a zero
        sample.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [1.0, 1e-9]], dtype=torch.float64)
        >>> f"{pairwise_angles(x)[0, 1].item():.6e}"
        '1.000000e-09'
    """
    check_batch(x)
    k, x = _safe_gram(x, gram)
    n = x.shape[-2]
    norm = k.diagonal(dim1=-2, dim2=-1).sqrt()
    unit = torch.where(norm > 0, norm, math.nan)
    cosine = k / (unit[..., :, None] * unit[..., None, :])
    angles = 2 * torch.atan2((1 - cosine).clamp(min=0).sqrt(), (1 + cosine).clamp(min=0).sqrt())
    # The cosine's rounding error over the angle is the angle's error: below this angle use the vectors.
    close = (1 - cosine.abs()).triu(1) < torch.finfo(x.dtype).eps ** (1 / 3)
    close &= torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
    if close.any():
        _replace_close_pairs(angles, close, x, norm)
    diagonal = torch.where(norm > 0, 0.0, math.nan).to(x.dtype)
    angles.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
    return angles


def mean_pairwise_angle(
    x: Float[Tensor, "*draws n d"], *, gram: Float[Tensor, "*draws n n"] | None = None
) -> Float[Tensor, "*draws"]:
    """Mean over the n(n-1)/2 pairs of the angle between two samples.

    It is the mean of angles, not the angle of the mean cosine.

    Args:
        x: batch, shape (..., n, d).
        gram: the Gram matrix of x, if at hand.

    Returns:
        Radians, shape (...); NaN where a sample is zero.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> f"{mean_pairwise_angle(torch.eye(3, dtype=torch.float64)).item():.6f}"
        '1.570796'
    """
    n = x.shape[-2]
    return pairwise_angles(x, gram=gram).sum(dim=(-2, -1)) / (n * (n - 1))


def outlier_summary(x: Float[Tensor, "*draws n d"]) -> OutlierSummary:
    """The sample of largest norm against the mean of the others.

    Args:
        x: batch, shape (..., n, d).

    Returns:
        Index, angle in radians, norm ratio and top-over-second norm ratio, each of shape (...); the angle is NaN and
        a ratio infinite or NaN where a vector it needs is zero.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> summary = outlier_summary(torch.tensor([[0.0, 5.0], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64))
        >>> summary.index.item(), round(math.degrees(summary.angle.item()), 6), summary.norm_ratio.item()
        (0, 90.0, 5.0)
    """
    check_batch(x)
    n = x.shape[-2]
    norms = torch.linalg.vector_norm(x, dim=-1)
    top = norms.topk(2, dim=-1)
    index = top.indices[..., 0]
    weights = torch.full_like(norms, 1 / (n - 1)).scatter(-1, index[..., None], 0.0)
    mean = (weights[..., None, :] @ x)[..., 0, :]
    outlier = x.gather(-2, index[..., None, None].expand(*index.shape, 1, x.shape[-1]))[..., 0, :]
    return OutlierSummary(
        index=index,
        angle=angle_between(outlier, mean),
        norm_ratio=top.values[..., 0] / torch.linalg.vector_norm(mean, dim=-1),
        top_over_second=top.values[..., 0] / top.values[..., 1],
    )


def outlier_summary_from_gram(k: Float[Tensor, "*draws n n"]) -> OutlierSummary:
    """The outlier summary of a batch of which only the Gram matrix is known.

    Args:
        k: Gram matrix, shape (..., n, n). Angles below the square root of the rounding error are lost in it.

    Returns:
        As :func:`outlier_summary`.

    Raises:
        ValueError: not square, or n < 2.

    Example:
        >>> k = torch.tensor([[25.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
        >>> outlier_summary_from_gram(k).norm_ratio.item()
        5.0
    """
    _check_gram(k)
    n = k.shape[-1]
    squares = k.diagonal(dim1=-2, dim2=-1)
    top = squares.topk(2, dim=-1)
    index = top.indices[..., 0]
    weights = torch.full_like(squares, 1 / (n - 1)).scatter(-1, index[..., None], 0.0)
    against = (k @ weights[..., None])[..., 0]  # inner products of every sample with the mean of the others
    mean_square = (weights * against).sum(dim=-1).clamp(min=0)
    inner = against.gather(-1, index[..., None])[..., 0]
    top_square = top.values[..., 0]
    cosine = inner / (top_square.sqrt() * mean_square.sqrt())
    return OutlierSummary(
        index=index,
        angle=2 * torch.atan2((1 - cosine).clamp(min=0).sqrt(), (1 + cosine).clamp(min=0).sqrt()),
        norm_ratio=(top_square / mean_square).sqrt(),
        top_over_second=(top_square / top.values[..., 1]).sqrt(),
    )


def cluster_angle(
    x: Float[Tensor, "*draws n d"], *, gram: Float[Tensor, "*draws n n"] | None = None
) -> Float[Tensor, "*draws"]:
    """Mean pairwise angle among the samples other than the one of largest norm.

    Args:
        x: batch, shape (..., n, d), n >= 3.
        gram: the Gram matrix of x, if at hand.

    Returns:
        Radians, shape (...); NaN where one of these samples is zero.

    Raises:
        ValueError: fewer than two dimensions, or n < 3.

    Example:
        >>> x = torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
        >>> round(math.degrees(cluster_angle(x).item()), 6)
        90.0
    """
    check_batch(x, minimum=3)
    n = x.shape[-2]
    angles = pairwise_angles(x, gram=gram)
    index = torch.linalg.vector_norm(x, dim=-1).argmax(dim=-1)
    keep = torch.ones(*index.shape, n, dtype=torch.bool, device=x.device).scatter(-1, index[..., None], False)
    kept = torch.where(keep[..., :, None] & keep[..., None, :], angles, 0.0)
    return kept.sum(dim=(-2, -1)) / ((n - 1) * (n - 2))


def angle_between(u: Float[Tensor, "*draws d"], v: Float[Tensor, "*draws d"]) -> Float[Tensor, "*draws"]:
    """Angle between two vectors, ``2 atan2(|u/|u| - v/|v||, |u/|u| + v/|v||)``.

    Args:
        u: vector, shape (..., d).
        v: vector, shape (..., d).

    Returns:
        Radians in [0, pi], shape (...), relative accuracy near rounding at both ends; NaN if a vector is zero.

    Example:
        >>> angle_between(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])).item()
        nan
    """
    u = u / torch.linalg.vector_norm(u, dim=-1, keepdim=True)
    v = v / torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    return 2 * torch.atan2(torch.linalg.vector_norm(u - v, dim=-1), torch.linalg.vector_norm(u + v, dim=-1))


def numerical_rank(x: Float[Tensor, "*draws n d"], relative_tolerance: float) -> Int[Tensor, "*draws"]:
    """Number of singular values above a share of the largest one.

    The answer depends on the tolerance, so it has no default: name it wherever the rank is quoted.

    Args:
        x: batch, shape (..., n, d).
        relative_tolerance: the share, in [0, 1).

    Returns:
        Integers in 0..min(n, d), shape (...); 0 for a zero batch.

    Raises:
        ValueError: fewer than two dimensions, n < 2, or a tolerance outside [0, 1).

    Example:
        >>> numerical_rank(torch.diag(torch.tensor([1.0, 0.1, 0.001])), 0.01).item()
        2
    """
    check_batch(x)
    if not 0 <= relative_tolerance < 1:
        raise ValueError(f"relative_tolerance is {relative_tolerance}; valid is a number in [0, 1).")
    s = torch.linalg.svdvals(x)
    return (s > relative_tolerance * s[..., :1]).sum(dim=-1)


def effective_rank(
    x: Float[Tensor, "*draws n d"],
    kind: Literal["participation", "participation_singular", "entropy"] = "participation",
    *,
    gram: Float[Tensor, "*draws n n"] | None = None,
) -> Float[Tensor, "*draws"]:
    """Effective number of directions, by one of three definitions that differ widely.

    With singular values s_i of x: ``"participation"`` is ``(sum s^2)^2 / sum s^4``, that is ``tr(K)^2 / |K|_F^2`` of
    the Gram matrix K; ``"participation_singular"`` is ``(sum s)^2 / sum s^2``; ``"entropy"`` is
    ``exp(-sum p log p)`` with ``p = s / sum s`` (Roy & Vetterli 2007).

    Args:
        x: batch, shape (..., n, d).
        kind: the definition.
        gram: the Gram matrix of x, if at hand; used by ``"participation"`` only.

    Returns:
        A number in [1, min(n, d)], shape (...); NaN for a zero batch.

    Raises:
        ValueError: fewer than two dimensions, n < 2, or an unknown kind.

    Example:
        >>> effective_rank(torch.eye(3, dtype=torch.float64)).item()
        3.0
    """
    check_batch(x)
    if kind == "participation":
        k = x @ x.mT if gram is None else gram
        trace = k.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return trace**2 / k.square().sum(dim=(-2, -1))
    if kind == "participation_singular":
        s = torch.linalg.svdvals(x)
        return (s.sum(dim=-1) / torch.linalg.vector_norm(s, dim=-1)) ** 2
    if kind == "entropy":
        s = torch.linalg.svdvals(x)
        return torch.exp(torch.special.entr(s / s.sum(dim=-1, keepdim=True)).sum(dim=-1))
    raise ValueError(f'kind must be "participation", "participation_singular" or "entropy", not {kind!r}.')


def orthogonality_gap(
    x: Float[Tensor, "*draws n d"], *, gram: Float[Tensor, "*draws n n"] | None = None
) -> Float[Tensor, "*draws"]:
    """Distance of the normalized Gram matrix from orthogonal samples, ``| K/|x|_F^2 - I/n |_F``.

    Source: Daneshmand, Joudaki & Bach, arXiv 2106.03970, who call it V.

    Args:
        x: batch, shape (..., n, d).
        gram: the Gram matrix of x, if at hand.

    Returns:
        A number in [0, sqrt(1 - 1/n)], shape (...): 0 for orthogonal samples of equal norm, the upper end for rank
        one; NaN for a zero batch.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> orthogonality_gap(torch.eye(4, dtype=torch.float64)).item()
        0.0
    """
    check_batch(x)
    n = x.shape[-2]
    k = x @ x.mT if gram is None else gram
    trace = k.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    identity = torch.eye(n, dtype=k.dtype, device=k.device) / n
    return torch.linalg.matrix_norm(k / trace[..., None, None] - identity)


def isometry_gap(x: Float[Tensor, "*draws n d"]) -> Float[Tensor, "*draws"]:
    """Log of the arithmetic over the geometric mean of the Gram matrix's eigenvalues.

    Source: Meterez, Joudaki, Orabona, Immer, Rätsch & Daneshmand, arXiv 2310.02012.

    Args:
        x: batch, shape (..., n, d).

    Returns:
        A number in [0, inf], shape (...): 0 for orthogonal samples of equal norm, infinite for rank below n.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> isometry_gap(torch.ones(2, 3)).item()
        inf
    """
    check_batch(x)
    n, d = x.shape[-2:]
    s = torch.linalg.svdvals(x)
    # A singular value at rounding level is zero: its log would be a large number that means nothing.
    full = (s[..., -1] > s[..., 0] * torch.finfo(s.dtype).eps * max(n, d)) & (n <= d)
    gap = torch.log((s**2).mean(dim=-1)) - 2 * torch.log(s).mean(dim=-1)
    return torch.where(full, gap, math.inf)


def active_fraction(x: Float[Tensor, "*draws n d"]) -> Float[Tensor, "*draws n"]:
    """Share of neurons that are positive, sample by sample.

    Args:
        x: batch after the non-linearity, shape (..., n, d).

    Returns:
        Shares in [0, 1], shape (..., n).

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> active_fraction(torch.tensor([[1.0, 0.0], [2.0, 3.0]])).tolist()
        [0.5, 1.0]
    """
    check_batch(x)
    return (x > 0).to(x.dtype).mean(dim=-1)


def energy_share(x: Float[Tensor, "*draws n d"]) -> Float[Tensor, "*draws n"]:
    """Share of each sample in the squared norm of the batch.

    Args:
        x: batch, shape (..., n, d).

    Returns:
        Shares that sum to one, shape (..., n); NaN for a zero batch.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> energy_share(torch.tensor([[1.0, 0.0], [0.0, 3.0]], dtype=torch.float64)).tolist()
        [0.1, 0.9]
    """
    check_batch(x)
    squares = x.square().sum(dim=-1)
    return squares / squares.sum(dim=-1, keepdim=True)


def zero_fraction(x: Float[Tensor, "*rest samples"]) -> Float[Tensor, "*rest"]:
    """Share of exact zeros along the last dimension.

    Args:
        x: activities, shape (..., samples).

    Returns:
        Shares in [0, 1], shape (...).

    Example:
        >>> zero_fraction(torch.tensor([0.0, 1.0, 0.0, -2.0])).item()
        0.5
    """
    return (x == 0).to(x.dtype).mean(dim=-1)


def skewness(x: Float[Tensor, "*rest samples"]) -> Float[Tensor, "*rest"]:
    """Third central moment over the cubed standard deviation (divisor: number of samples), last dimension.

    Args:
        x: activities, shape (..., samples).

    Returns:
        The skewness, shape (...); NaN where all values agree.

    Example:
        >>> skewness(torch.tensor([-1.0, 0.0, 1.0])).item()
        0.0
    """
    centered = x - x[..., :1]
    centered = centered - centered.mean(dim=-1, keepdim=True)
    return (centered**3).mean(dim=-1) / (centered**2).mean(dim=-1) ** 1.5


def _check_gram(k: Tensor) -> None:
    """Refuse what is not a stack of square matrices of size two or more."""
    if k.ndim < 2 or k.shape[-1] != k.shape[-2] or k.shape[-1] < 2:
        raise ValueError(f"k has shape {tuple(k.shape)}; valid is a Gram matrix (..., n, n) with n >= 2.")


def _safe_gram(x: Tensor, k: Tensor | None) -> tuple[Tensor, Tensor]:
    """The Gram matrix, and x with its rows rescaled where their squares leave the number range."""
    k = gram(x) if k is None else k
    squares = k.diagonal(dim1=-2, dim2=-1)
    safe_range = torch.finfo(x.dtype).tiny ** 0.5
    if bool(((squares > safe_range) & (squares < 1 / safe_range)).all()):
        return k, x
    largest = x.abs().amax(dim=-1, keepdim=True)
    x = x / torch.where(largest > 0, largest, 1.0)
    return gram(x), x


def _replace_close_pairs(angles: Tensor, close: Tensor, x: Tensor, norm: Tensor) -> None:
    """Overwrite, in place, the angles of the marked pairs by the ones of explicit unit vectors."""
    n, d = x.shape[-2:]
    flat_x, flat_norm = x.reshape(-1, n, d), norm.reshape(-1, n)
    flat_angles = angles.view(-1, n, n)
    pairs = close.reshape(-1, n, n).nonzero()
    for part in pairs.split(max(1, _GATHERED_ENTRIES // d)):
        b, i, j = part.unbind(dim=1)
        u = flat_x[b, i] / flat_norm[b, i, None]
        v = flat_x[b, j] / flat_norm[b, j, None]
        exact = 2 * torch.atan2(torch.linalg.vector_norm(u - v, dim=-1), torch.linalg.vector_norm(u + v, dim=-1))
        flat_angles[b, i, j] = exact
        flat_angles[b, j, i] = exact
