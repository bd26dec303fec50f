"""Random deep networks, many independent weight draws at once, one layer at a time.

With Gaussian weights the next layer depends on the batch only through its n x n Gram matrix: for any root R with
``R R' = X X'`` the product of R with a Gaussian matrix has the law of ``X W``. So a layer needs n x width random
numbers in place of d x width. Both draws are here; ``draw="auto"`` takes the cheaper one.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.layers import Stages, check_batch, rescale
from bnlib.layers import recenter as recenter_batch

Draw = Literal["auto", "dense", "gram_root"]

# Cholesky of the Gram is used where every sample's squared distance from the span of the samples before it exceeds
# this share of the largest squared norm: the Gram's rounding then disturbs no distance by more than about 1e-7.
_SAFE_PIVOT = 1e-8
# Cost of one Gaussian number in multiply-adds of a matrix product (measured: 200 to 600 on CPUs, float64), and of
# one multiply-add in the factorization.
_GAUSSIAN_COST, _FACTOR_COST = 300.0, 4.0
# Below this many numbers torch's own sampler is faster than eight operations on arrays.
_LEAST_BOX_MULLER = 2048
_COMPARED_ENTRIES = 4_000_000  # entries of candidate pairs of equal samples compared at once: 32 MB in float64
# Entries drawn at once: on a CPU the random block should stay in the cache.
_BLOCK_ENTRIES = {"cpu": 1 << 18, "cuda": 1 << 27}


@dataclass(frozen=True)
class LayerState:
    """A representation after the last stage of a layer, its scale divided out.

    Attributes:
        depth: number of linear layers so far, from 1.
        x: representation with mean squared row norm 1 (over the batch, draw by draw), shape (..., n, width); a draw
            whose representation is exactly zero stays zero.
        log_scale: natural log of the factor that was divided out: the representation of the unscaled network is
            ``exp(log_scale) * x``; shape (...), float64; minus infinity for a zero representation.
        gram: ``x @ x.mT``, shape (..., n, n).
    """

    depth: int
    x: Float[Tensor, "*draws n width"]
    log_scale: Float[Tensor, "*draws"]
    gram: Float[Tensor, "*draws n n"]


def gram_root(x: Float[Tensor, "*draws n d"], *, recenter: bool = False) -> Float[Tensor, "*draws n r"]:
    """A root R of the Gram matrix, ``R R' = X X'``, whatever the batch.

    Cholesky of the Gram where the samples are far enough from dependent; otherwise the transposed R factor of a QR
    decomposition of ``X'``, which exists for every batch (ties, n > d, zero samples) and keeps the angle of pairs
    that the Gram matrix itself cannot tell apart.

    Args:
        x: batch, shape (..., n, d).
        recenter: whether to take the root of the recentered batch ``G X`` instead.

    Returns:
        Root, shape (..., n, r) with r = min(n, d), or min(n - 1, d) if recentered; rows of a recentered root sum to
        zero.

    Raises:
        ValueError: fewer than two dimensions, n < 2, or entries that are not finite.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]], dtype=torch.float64)
        >>> root = gram_root(x)
        >>> root.shape, torch.allclose(root @ root.mT, x @ x.mT)
        (torch.Size([3, 2]), True)
    """
    _check_input(x)
    n, d = x.shape[-2:]
    flat = x.reshape(-1, n, d)
    root = _root(flat, flat @ flat.mT, recenter)
    return root.reshape(*x.shape[:-2], n, root.shape[-1])


def choose_draw(n: int, d: int, width: int) -> Literal["dense", "gram_root"]:
    """The draw that is expected to be faster, from operation counts.

    Dense weights need d x width Gaussian numbers and a product of n d width multiply-adds; the root needs n x width
    numbers, the Gram matrix, a factorization and a product of n n width.

    Args:
        n: batch size.
        d: width of the layer below.
        width: width of the layer.

    Returns:
        ``"dense"`` or ``"gram_root"``.

    Raises:
        ValueError: n < 2, d < 1 or width < 1.

    Example:
        >>> choose_draw(64, 1000, 1000), choose_draw(1000, 64, 1000)
        ('gram_root', 'dense')
    """
    for name, value, least in (("n", n, 2), ("d", d, 1), ("width", width, 1)):
        if value < least:
            raise ValueError(f"{name} is {value}; valid is an integer >= {least}.")
    dense = d * width * (_GAUSSIAN_COST + n)
    rank = min(n, d)
    root = rank * width * (_GAUSSIAN_COST + n) + n * rank * d * _FACTOR_COST
    return "dense" if dense <= root else "gram_root"


def next_preactivation(
    x: Float[Tensor, "*draws n d"],
    width: int,
    *,
    generator: torch.Generator,
    draw: Draw = "auto",
    weight_variance: float = 2.0,
    recenter: bool = False,
) -> Float[Tensor, "*draws n width"]:
    """One draw of ``X W`` with entries of W independent N(0, weight_variance / d), fresh in every leading index.

    Args:
        x: representation, shape (..., n, d).
        width: number of neurons of the layer.
        generator: source of randomness, on the device of x.
        draw: ``"dense"`` draws W; ``"gram_root"`` draws from the same law by a root of the Gram matrix; ``"auto"``
            takes the cheaper one.
        weight_variance: sigma squared; 2 is He's initialization.
        recenter: whether to return ``G X W``; recentering commutes with W, so the batch is recentered first.

    Returns:
        Preactivation, shape (..., n, width), in the dtype and on the device of x.

    Raises:
        ValueError: a batch that is not one, not finite or not on the generator's device, width < 1, a weight variance
            that is not positive, or an unknown draw.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> next_preactivation(torch.eye(2, 3), 5, generator=g).shape
        torch.Size([2, 5])
    """
    _check_device(x, generator)
    _check_input(x)
    _check_network(width, 1, weight_variance, draw)
    n, d = x.shape[-2:]
    flat = x.reshape(-1, n, d)
    h = _preactivation(flat, None, width, generator, draw, weight_variance, recenter)
    return _keep_ties(h, _first_equal(flat)).reshape(*x.shape[:-2], n, width)


def propagate(
    x: Float[Tensor, "*draws n d"],
    width: int,
    depth: int,
    stages: Stages,
    *,
    generator: torch.Generator,
    draw: Draw = "auto",
    weight_variance: float = 2.0,
) -> Iterator[LayerState]:
    """Send a batch through a random network, layer by layer.

    Each layer is ``X W`` with fresh weights N(0, weight_variance / d), then the stages. The scale is divided out
    after every layer and its log kept: the stages are positively homogeneous, so nothing else changes. With rescaling
    on, the scale of a layer does not depend on the layers below, and ``log_scale`` says just that.

    Args:
        x: input batch, shape (..., n, d); leading indices are independent draws (``expand`` one batch for many).
        width: number of neurons of every layer.
        depth: number of linear layers.
        stages: the stages after each linear map.
        generator: source of randomness, on the device of x.
        draw: as in :func:`next_preactivation`.
        weight_variance: sigma squared; 2 is He's initialization.

    Returns:
        An iterator over the states after layers 1, ..., depth.

    Raises:
        ValueError: as :func:`next_preactivation`, or depth < 1; at the call, not at the first layer.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x = torch.randn(10, 4, 16, generator=g, dtype=torch.float64)
        >>> [state.x.shape for state in propagate(x, 32, 2, Stages.parse("RC+NL"), generator=g)]
        [torch.Size([10, 4, 32]), torch.Size([10, 4, 32])]
    """
    _check_device(x, generator)
    _check_input(x)
    _check_network(width, depth, weight_variance, draw)
    return _layers(x, width, depth, stages, generator, draw, weight_variance)


def record(
    states: Iterable[LayerState], measurements: Mapping[str, Callable[[LayerState], Tensor]]
) -> dict[str, Tensor]:
    """Measure every state and keep the measurements only.

    Args:
        states: the states, for instance of :func:`propagate`.
        measurements: name to a function of one state that returns a tensor of shape (...).

    Returns:
        Name to the measurements of all states, stacked along a new first dimension, shape (depth, ...).

    Raises:
        ValueError: no states.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> x = torch.randn(10, 4, 16, generator=g, dtype=torch.float64)
        >>> states = propagate(x, 32, 3, Stages.parse("RC+NL"), generator=g)
        >>> record(states, {"log_scale": lambda state: state.log_scale})["log_scale"].shape
        torch.Size([3, 10])
    """
    rows: dict[str, list[Tensor]] = {name: [] for name in measurements}
    empty = True
    for state in states:
        empty = False
        for name, measure in measurements.items():
            rows[name].append(measure(state))
    if empty:
        raise ValueError("states is empty; valid is at least one layer.")
    return {name: torch.stack(values) for name, values in rows.items()}


def _layers(x, width, depth, stages, generator, draw, weight_variance) -> Iterator[LayerState]:
    """The generator behind :func:`propagate`."""
    draws, (n, d) = x.shape[:-2], x.shape[-2:]
    x = x.reshape(-1, n, d)
    largest = _positive_or_one(x.abs().amax(dim=(-2, -1)))
    x = x / largest[:, None, None]  # first, so that no square leaves the number range
    # Equal samples must stay equal bit by bit: rescaling amplifies rounding differences to order one within six layers.
    first_equal = _first_equal(x)
    x, k, log_scale = _divide_out_scale(x)
    log_scale = log_scale + largest.to(log_scale.dtype).log()
    for layer in range(1, depth + 1):
        # With the norm after the activation a representation is recentered already, from the first layer on.
        recentered = stages.recentering and (layer > 1 or not stages.norm_after)
        h = _preactivation(x, k, width, generator, draw, weight_variance, recentered)
        h = _keep_ties(h, first_equal)
        if stages.norm_after:
            h = h.relu_()
            if stages.recentering:
                h = recenter_batch(h)
        if stages.rescaling != "none":
            h = rescale(h, by="rms" if stages.recentering else stages.rescaling)
        if stages.nonlinearity == "relu" and not stages.norm_after:
            h = h.relu_()
        x, k, added = _divide_out_scale(h)
        log_scale = added if stages.rescaling != "none" else log_scale + added
        yield LayerState(layer, x.reshape(*draws, n, width), log_scale.reshape(draws), k.reshape(*draws, n, n))


def _divide_out_scale(h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Divide h, in place, by its root mean squared row norm; return it with its Gram matrix and the log."""
    k = h @ h.mT
    scale = (k.diagonal(dim1=-2, dim2=-1).mean(dim=-1)).sqrt()
    divisor = _positive_or_one(scale)[:, None, None]
    return h.div_(divisor), k.div_(divisor).div_(divisor), scale.double().log()


def _first_equal(x: Tensor) -> Tensor | None:
    """For each sample of (draws, n, d) the first sample of its batch that equals it, or None where nothing is tied."""
    draws, n, d = x.shape
    # One number a sample finds the candidates; only these are compared entry by entry.
    weights = torch.arange(1, d + 1, dtype=x.dtype, device=x.device).cos()
    key = x @ weights
    allowance = torch.finfo(x.dtype).eps ** 0.5 * torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    near = (key[:, :, None] - key[:, None, :]).abs() <= allowance
    candidates = near.tril(-1).nonzero()
    first = torch.arange(n, device=x.device).repeat(draws, 1)
    tied = False
    for part in candidates.split(max(1, _COMPARED_ENTRIES // d)):
        b, i, j = part.unbind(dim=1)
        equal = (x[b, i] == x[b, j]).all(dim=-1)
        if bool(equal.any()):
            tied = True
            first.view(-1).scatter_reduce_(0, (b * n + i)[equal], j[equal], "amin")
    return first if tied else None


def _keep_ties(h: Tensor, first_equal: Tensor | None) -> Tensor:
    """Give every tied sample the row of the first one that equals it."""
    return h if first_equal is None else h.gather(-2, first_equal[..., None].expand_as(h))


def _positive_or_one(scale: Tensor) -> Tensor:
    """The scale, or one where it is zero: a zero representation stays zero."""
    return torch.where(scale > 0, scale, torch.ones_like(scale))


def _preactivation(x, k, width, generator, draw, weight_variance, recenter) -> Tensor:
    """X W or G X W for x of shape (draws, n, d) that has been checked; k is its Gram matrix, if known."""
    n, d = x.shape[-2:]
    if draw == "auto":
        draw = choose_draw(n, d, width)
    if draw == "dense":
        left = recenter_batch(x) if recenter else x
    else:
        wide = x.double()
        left = _root(wide, wide @ wide.mT if k is None or k.dtype != wide.dtype else k, recenter).to(x.dtype)
    return _times_gaussian(left, width, generator, math.sqrt(weight_variance / d))


def _times_gaussian(left: Tensor, width: int, generator: torch.Generator, std: float) -> Tensor:
    """``left @ Z`` with fresh Z of entries N(0, std^2) for each draw, in blocks of draws or of columns."""
    draws, n, inner = left.shape
    entries = _BLOCK_ENTRIES.get(left.device.type, _BLOCK_ENTRIES["cuda"])
    group = max(1, entries // (inner * width))
    columns = width if group > 1 else max(1, min(width, entries // inner))
    out = left.new_empty(draws, n, width)
    left = left * std
    buffer = left.new_empty(
        min(group, draws) * inner * columns
    )  # used again: fresh memory costs as much as the product
    for first in range(0, draws, group):
        block = left[first : first + group]
        for start in range(0, width, columns):
            stop = min(start + columns, width)
            z = buffer[: len(block) * inner * (stop - start)].view(len(block), inner, stop - start)
            _fill_gaussian(z, generator)
            if columns == width:
                torch.bmm(block, z, out=out[first : first + group])  # straight into its place
            else:
                out[first : first + group, :, start:stop] = block @ z
    return out


def gaussian(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Tensor:
    """Independent standard Gaussian numbers: the source of every weight.

    In float64 on a CPU by Box and Muller's method on whole arrays, which takes half the time of torch's own sampler;
    otherwise by torch's own sampler.

    Args:
        *shape: shape of the result.
        generator: source of randomness; the result lies on its device.
        dtype: floating-point type.

    Returns:
        The numbers, of the shape asked for.

    Example:
        >>> gaussian(2, 3, generator=torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3])
    """
    out = torch.empty(shape, dtype=dtype, device=generator.device)
    _fill_gaussian(out, generator)
    return out


def _fill_gaussian(out: Tensor, generator: torch.Generator) -> None:
    """Overwrite a contiguous array with independent standard Gaussian numbers."""
    count = out.numel()
    if out.dtype != torch.float64 or out.device.type != "cpu" or count < _LEAST_BOX_MULLER:
        out.normal_(generator=generator)
        return
    flat, half = out.view(-1), count // 2
    flat.uniform_(generator=generator)
    radius, angle = flat[:half], flat[half : 2 * half]
    radius.neg_().log1p_().mul_(-2).sqrt_()  # of 1 - u, which is never zero
    angle.mul_(2 * math.pi)
    sine = angle.sin()
    angle.cos_().mul_(radius)
    radius.mul_(sine)
    flat[2 * half :].normal_(generator=generator)  # the odd one


def _root(x: Tensor, k: Tensor, recenter: bool) -> Tensor:
    """Root of the Gram matrix k of x, or of the recentered x, for shape (draws, n, d)."""
    n, d = x.shape[-2:]
    # The recentered Gram is singular by nature. Its first n - 1 samples determine the last one.
    kept = n - 1 if recenter else n
    if kept > d:
        return _complete(_qr_root(x, kept, recenter), recenter)
    scale = k.diagonal(dim1=-2, dim2=-1).amax(dim=-1)
    if recenter:
        rows = k.mean(dim=-1, keepdim=True)
        k = k - rows - rows.mT + rows.mean(dim=-2, keepdim=True)
    root, info = torch.linalg.cholesky_ex(k[..., :kept, :kept])
    pivot = root.diagonal(dim1=-2, dim2=-1).square().amin(dim=-1)
    unsafe = ~((info == 0) & (pivot > _SAFE_PIVOT * scale))  # so that a NaN counts as unsafe
    if unsafe.any():
        root[unsafe] = _qr_root(x[unsafe], kept, recenter)
    return _complete(root, recenter)


def _qr_root(x: Tensor, kept: int, recenter: bool) -> Tensor:
    """Transposed R factor of the first samples, recentered or not."""
    y = (recenter_batch(x) if recenter else x)[..., :kept, :]
    return torch.linalg.qr(y.mT, mode="r").R.mT


def _complete(root: Tensor, recenter: bool) -> Tensor:
    """Append the last row of a recentered root: minus the sum of the others."""
    return torch.cat([root, -root.sum(dim=-2, keepdim=True)], dim=-2) if recenter else root


def _check_device(x: Tensor, generator: torch.Generator) -> None:
    if x.device.type != generator.device.type:
        raise ValueError(f"generator is on {generator.device} and x on {x.device}; valid is one device for both.")


def _check_input(x: Tensor) -> None:
    check_batch(x)
    # A sum is finite unless an entry is not, or the sum itself overflows: one cheap pass in the usual case.
    if not bool(torch.isfinite(x.sum())) and not bool(torch.isfinite(x).all()):
        raise ValueError("x contains NaN or infinity; valid is a batch of finite numbers.")


def _check_network(width: int, depth: int, weight_variance: float, draw: str) -> None:
    for name, value in (("width", width), ("depth", depth)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; valid is an integer >= 1.")
    if not (math.isfinite(weight_variance) and weight_variance > 0):
        raise ValueError(f"weight_variance is {weight_variance}; valid is a finite number > 0.")
    if draw not in ("auto", "dense", "gram_root"):
        raise ValueError(f'draw must be "auto", "dense" or "gram_root", not {draw!r}.')
