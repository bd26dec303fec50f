"""Sampling one recentered ReLU layer many times: norms, inner products and the growth of a small cluster.

The neurons of a layer are independent, so `draws` layers of a width are one layer of `draws * width` neurons, cut into
pieces: one matrix product for thousands of layers. Batches have the odd sample in row 0.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bnlib.ensembles import Draw, gaussian, next_preactivation
from bnlib.layers import check_batch

_BLOCK_ENTRIES = 1 << 24  # numbers held at once: 128 MB in double precision


@dataclass(frozen=True)
class SampledMoment:
    """A mean over independent draws.

    Attributes:
        mean: the average.
        standard_error: standard deviation over the square root of the number of draws.
    """

    mean: float
    standard_error: float


@dataclass(frozen=True)
class LayerSample:
    """What many independent layers made of one batch.

    Attributes:
        outlier_norm: norm of row 0 after the layer, shape (draws,).
        cluster_norm: norm of the mean of the other rows, shape (draws,).
        largest_inner: largest |x_0' . x_i'| over all draws and other rows.
        mean_representation: average over the draws of the representation itself, shape (n, width).
    """

    outlier_norm: Float[Tensor, " draws"]
    cluster_norm: Float[Tensor, " draws"]
    largest_inner: float
    mean_representation: Float[Tensor, "n width"]


@dataclass(frozen=True)
class CollapsedPath:
    """Networks that start from an exactly collapsed cluster, without any rescaling.

    Attributes:
        log_ratio: log of norm of row 0 over norm of row 1, shape (depth, draws); plus or minus infinity where no neuron
            carries the cluster or the odd sample.
        log_step: log of R'^2 / R^2 over each layer, shape (depth, draws), R the distance of row 0 to row 1.
        tied: whether rows 1, 2, ... are equal to the last bit after the last layer, shape (draws,).
        largest_inner: largest |x_0' . x_i'| over all layers, draws and other rows, in units of R'^2.
    """

    log_ratio: Float[Tensor, "depth draws"]
    log_step: Float[Tensor, "depth draws"]
    tied: Bool[Tensor, " draws"]
    largest_inner: float


def sampled_moment(values: Float[Tensor, " draws"]) -> SampledMoment:
    """Mean and standard error of independent draws.

    Args:
        values: one number a draw, shape (draws,), at least two.

    Returns:
        The mean and its standard error.

    Raises:
        ValueError: fewer than two draws.

    Example:
        >>> sampled_moment(torch.tensor([1.0, 3.0]))
        SampledMoment(mean=2.0, standard_error=1.0)
    """
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"values must hold at least two draws in one dimension, got shape {tuple(values.shape)}.")
    return SampledMoment(values.mean().item(), (values.std() / math.sqrt(len(values))).item())


def _representations(
    x: Tensor, width: int, draws: int, generator: torch.Generator, draw: Draw, weight_variance: float
) -> Iterator[Tensor]:
    """Representations after the layer, shape (n, some draws, width), until there are `draws` of them."""
    _check_counts(width=width, draws=draws)
    n = len(x)
    chunk = max(1, _BLOCK_ENTRIES // (n * width))
    for first in range(0, draws, chunk):
        count = min(chunk, draws - first)
        h = next_preactivation(
            x, count * width, generator=generator, draw=draw, weight_variance=weight_variance, recenter=True
        )
        yield h.relu_().view(n, count, width)


def sample_layers(
    x: Float[Tensor, "n d"],
    width: int,
    draws: int,
    *,
    generator: torch.Generator,
    weight_variance: float = 2.0,
    draw: Draw = "auto",
) -> LayerSample:
    """Send one batch through `draws` independent layers of Gaussian weights, recentering and ReLU.

    Args:
        x: batch, shape (n, d), the odd sample in row 0; the weights have variance weight_variance / d.
        width: neurons of each layer.
        draws: number of independent layers.
        generator: source of randomness, on the device of x.
        weight_variance: 2 alpha in the notation of Theorems 13 and 14.
        draw: as in `ensembles.next_preactivation`.

    Returns:
        Norms draw by draw, the largest inner product and the mean representation.

    Raises:
        ValueError: x is no finite batch, or width, draws or weight_variance is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]], dtype=torch.float64)
        >>> sample = sample_layers(x, 2, 1000, generator=torch.Generator().manual_seed(0), weight_variance=18 / 5)
        >>> sample.largest_inner, abs(sampled_moment(sample.outlier_norm**2).mean - 1) < 0.3
        (0.0, True)
    """
    _check_single(x)
    outlier, cluster, largest = [], [], 0.0
    total = x.new_zeros(len(x), width)
    for y in _representations(x, width, draws, generator, draw, weight_variance):
        outlier.append(torch.linalg.vector_norm(y[0], dim=-1))
        cluster.append(torch.linalg.vector_norm(y[1:].mean(dim=0), dim=-1))
        largest = max(largest, (y[1:] * y[0]).sum(dim=-1).abs().max().item())
        total += y.sum(dim=1)
    return LayerSample(torch.cat(outlier), torch.cat(cluster), largest, total / draws)


def sample_cluster_growth(
    x: Float[Tensor, "n d"], width: int, draws: int, *, generator: torch.Generator, draw: Draw = "auto"
) -> Float[Tensor, " draws"]:
    """Log-growth over one layer of |x_1 - x_2|^2 / |x_0 - nu|^2, the squared size of the cluster, draw by draw.

    Rows 1 and 2 are two cluster samples, nu is the mean of all rows but row 0. Draws in which no neuron sees the two
    samples, which makes them equal, or none sees the odd sample, are left out (2^-width each for a small cluster).

    Args:
        x: batch, shape (n, d), n at least 3, the odd sample in row 0, rows 1 and 2 different.
        width: neurons of each layer.
        draws: number of independent layers.
        generator: source of randomness, on the device of x.
        draw: as in `ensembles.next_preactivation`.

    Returns:
        Natural logs, shape (draws kept,); the weight variance drops out.

    Raises:
        ValueError: n < 3, rows 1 and 2 equal, x not finite, or width or draws < 1.

    Example:
        >>> x = torch.tensor([[1.0, 0, 0], [0, 0.5, 1e-6], [0, 0.5, -1e-6]], dtype=torch.float64)
        >>> growth = sample_cluster_growth(x, 1000, 10, generator=torch.Generator().manual_seed(0))
        >>> abs(growth.mean().item() - math.log(9 / 5)) < 0.2  # alpha of a batch of three
        True
    """
    _check_single(x, minimum=3)
    before = (x[1] - x[2]).square().sum() / (x[0] - x[1:].mean(dim=0)).square().sum()
    if not before > 0:
        raise ValueError("x must have different rows 1 and 2, got two equal samples.")
    logs = []
    for y in _representations(x, width, draws, generator, draw, 2.0):
        inside = (y[1] - y[2]).square().sum(dim=-1)
        across = (y[0] - y[1:].mean(dim=0)).square().sum(dim=-1)
        seen = (inside > 0) & (y[0] > 0).any(dim=-1)
        logs.append((inside[seen] / across[seen] / before).log())
    return torch.cat(logs)


def sample_collapsed_path(
    x: Float[Tensor, "n width"],
    depth: int,
    draws: int,
    *,
    generator: torch.Generator,
    weight_variance: float = 2.0,
) -> CollapsedPath:
    """Send a collapsed cluster through `draws` square networks of recentering and ReLU, in plain arithmetic.

    Nothing keeps equal rows equal but the arithmetic itself. After each layer the batch is divided by R, which is
    recorded, so that no number leaves the range.

    Args:
        x: batch, shape (n, width), rows 1, 2, ... equal and different from row 0.
        depth: number of layers.
        draws: number of networks.
        generator: source of randomness, on the device of x.
        weight_variance: sigma squared; the weights have variance sigma^2 / width.

    Returns:
        Norm ratios and steps of the scale, layer by layer, and what is left of the ties.

    Raises:
        ValueError: x is no finite batch of one odd sample and equal others, depth or draws < 1, or weight_variance is
            not positive and finite.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]], dtype=torch.float64)
        >>> path = sample_collapsed_path(x, 5, 100, generator=torch.Generator().manual_seed(0))
        >>> path.log_ratio.shape, bool(path.tied.all())
        (torch.Size([5, 100]), True)
    """
    _check_single(x)
    _check_counts(depth=depth, draws=draws)
    if not 0 < weight_variance < math.inf:
        raise ValueError(f"weight_variance must be positive and finite, got {weight_variance}.")
    if not (x[1:] == x[1]).all() or (x[0] == x[1]).all():
        raise ValueError(
            "x must hold one odd sample, first, and others that are equal to each other, got another batch."
        )
    width = x.shape[1]
    x = (x / torch.linalg.vector_norm(x[0] - x[1])).expand(draws, -1, -1)
    ratios, steps, largest = [], [], 0.0
    for _ in range(depth):
        weights = gaussian(draws, width, width, generator=generator, dtype=x.dtype)
        h = (x @ weights) * math.sqrt(weight_variance / width)
        y = torch.relu(h - h.mean(dim=-2, keepdim=True))
        distance = torch.linalg.vector_norm(y[:, 0] - y[:, 1], dim=-1)
        x = y / distance[:, None, None]
        ratios.append((torch.linalg.vector_norm(x[:, 0], dim=-1) / torch.linalg.vector_norm(x[:, 1], dim=-1)).log())
        steps.append(2.0 * distance.log())
        largest = max(largest, (x[:, 1:] * x[:, :1]).sum(dim=-1).abs().max().item())
    tied = (x[:, 1:] == x[:, 1:2]).all(dim=-1).all(dim=-1)
    return CollapsedPath(torch.stack(ratios), torch.stack(steps), tied, largest)


def sample_small_differences(
    n: int,
    width: int,
    depth: int,
    draws: int,
    *,
    generator: torch.Generator,
    start_angle: float = math.pi / 2,
) -> Float[Tensor, "depth draws"]:
    """Log-growth of an infinitely small difference inside a collapsed cluster, layer by layer of square networks.

    The layers are exactly linear in the difference D between two cluster samples: with e = x_1 - nu of length 1 and
    z = e.w, y = D.w / |D|, one has D' = |D| y where z < 0 and 0 elsewhere, e' = z/n there and (n-1)/n z elsewhere.
    Layers in which all z have one sign are drawn again.

    Args:
        n: batch size, at least 3.
        width: inputs and neurons of each layer, at least 2.
        depth: number of layers.
        draws: number of independent networks.
        generator: source of randomness.
        start_angle: angle between D and e before the first layer in radians, in [0, pi].

    Returns:
        Natural log of (|D'|^2 / R'^2) / (|D|^2 / R^2) over each layer, shape (depth, draws).

    Raises:
        ValueError: n < 3, width < 2, depth or draws < 1, or start_angle outside [0, pi].

    Example:
        >>> logs = sample_small_differences(8, 1000, 5, 20, generator=torch.Generator().manual_seed(0))
        >>> logs.shape, abs(logs.mean().item() - math.log(32 / 25)) < 0.05  # alpha of a batch of eight
        (torch.Size([5, 20]), True)
    """
    _check_counts(depth=depth, draws=draws)
    for name, value, least in (("n", n, 3), ("width", width, 2)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if not 0.0 <= start_angle <= math.pi:
        raise ValueError(f"start_angle must be between 0 and pi radians, got {start_angle}.")
    cosine = torch.full((draws, 1), math.cos(start_angle), dtype=torch.float64, device=generator.device)
    growth = []
    for _ in range(depth):
        z = _mixed_signs(draws, width, generator)
        other = gaussian(draws, width, generator=generator)
        y = cosine * z + (1.0 - cosine.square()).clamp(min=0.0).sqrt() * other
        inside = torch.where(z < 0, y, 0.0)
        across = torch.where(z < 0, z, (n - 1.0) * z) / n
        a, r = inside.square().sum(dim=1, keepdim=True), across.square().sum(dim=1, keepdim=True)
        growth.append((a / r).log().squeeze(1))
        cosine = ((inside * across).sum(dim=1, keepdim=True) / (a * r).sqrt()).clamp(-1.0, 1.0)
    return torch.stack(growth)


def _mixed_signs(draws: int, width: int, generator: torch.Generator) -> Tensor:
    """Standard Gaussian rows of `width` entries, given that each row holds both signs."""
    z = gaussian(draws, width, generator=generator)
    while True:
        one_sided = ((z < 0).all(dim=1) | (z > 0).all(dim=1)).nonzero().squeeze(1)
        if not len(one_sided):
            return z
        z[one_sided] = gaussian(len(one_sided), width, generator=generator)


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")


def sampled_cosine(rows: Float[Tensor, "2 width"]) -> SampledMoment:
    """Cosine of two rows whose coordinates are independent and alike, with its jackknife standard error.

    The neurons of a layer of independent Gaussian weights are independent draws of one law, and so are the coordinates
    of an average over such layers. Leaving out one coordinate at a time shows how far their chance moves the cosine.

    Args:
        rows: two vectors, shape (2, width), width at least 2.

    Returns:
        The cosine and its standard error; NaN if a row is zero.

    Raises:
        ValueError: another shape, or fewer than two coordinates.

    Example:
        >>> sampled_cosine(torch.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]], dtype=torch.float64)).standard_error < 1e-12
        True
    """
    if rows.ndim != 2 or len(rows) != 2 or rows.shape[1] < 2:
        raise ValueError(f"rows must be two vectors of at least two coordinates, got shape {tuple(rows.shape)}.")
    inner, squares = rows[0] * rows[1], rows.square()
    cosine = inner.sum() / squares.sum(dim=1).prod().sqrt()
    left_out = (inner.sum() - inner) / (squares.sum(dim=1, keepdim=True) - squares).prod(dim=0).sqrt()
    width = rows.shape[1]
    error = (left_out - left_out.mean()).square().sum() * (width - 1) / width
    return SampledMoment(cosine.item(), error.sqrt().item())


def quiet_neuron_share(x: Float[Tensor, "*draws n d"], relative_threshold: float) -> Float[Tensor, "*draws"]:
    """Share of neurons that are quiet for more than half of the batch.

    Quiet: at most relative_threshold times the root mean square of all activities of the representation.

    Args:
        x: representation after ReLU, shape (..., n, d).
        relative_threshold: 0 counts exact zeros only.

    Returns:
        Shares in [0, 1], shape (...).

    Raises:
        ValueError: fewer than two dimensions, n < 2, or a negative threshold.

    Example:
        >>> quiet_neuron_share(torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), 0.1).item()
        0.5
    """
    check_batch(x)
    if not relative_threshold >= 0:
        raise ValueError(f"relative_threshold must be 0 or more, got {relative_threshold}.")
    scale = x.square().mean(dim=(-2, -1), keepdim=True).sqrt()
    quiet = x <= relative_threshold * scale
    return (quiet.to(x.dtype).mean(dim=-2) > 0.5).to(x.dtype).mean(dim=-1)


def _check_single(x: Tensor, minimum: int = 2) -> None:
    check_batch(x, minimum=minimum)
    if x.ndim != 2:
        raise ValueError(f"x must be one batch of shape (n, d), got shape {tuple(x.shape)}.")
