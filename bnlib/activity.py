"""What single neurons see of a batch: activity before and after the non-linearity, and where the largest sample lies.

A neuron's activities over a batch are a column of the representation. They are looked at in the last layer of a random
network, before and after ReLU, pooled over neurons and neuron by neuron.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib.data import gaussian_batch
from bnlib.ensembles import next_preactivation, propagate
from bnlib.geometry import skewness, zero_fraction
from bnlib.layers import Stages, apply_stages, check_batch, relu


@dataclass(frozen=True)
class Activity:
    """Activities of a layer's neurons over the batch.

    Attributes:
        before: input of the non-linearity, after recentering and rescaling where these are on, shape (draws, n,
            width), in units of its root mean square over the draw; a draw that is exactly zero stays zero.
        after: output of ReLU, same unit, shape (draws, n, width).
    """

    before: Float[Tensor, "draws n width"]
    after: Float[Tensor, "draws n width"]


@dataclass(frozen=True)
class ActivityStatistics:
    """Statistics of the activities, draw by draw.

    Attributes:
        skewness_before: skewness of all activities before ReLU, pooled over neurons and samples, shape (draws,).
        skewness_after: the same after ReLU.
        zero_fraction_before: share of activities before ReLU that are exactly zero, shape (draws,).
        zero_fraction_after: the same after ReLU.
        neuron_skewness_before: root mean square over neurons of the skewness of one neuron's activities over the
            batch, before ReLU, shape (draws,); neurons with equal activities are left out.
        neuron_skewness_after: mean over neurons of the same after ReLU, shape (draws,); neurons that are silent on the
            whole batch, or have equal activities, are left out.
        neuron_zero_deviation: standard deviation over neurons (divisor: their number) of the share of the batch on
            which a neuron is zero after ReLU, shape (draws,).
        mean_share: share of the second moment before ReLU that lies in the neurons' means over the batch, shape
            (draws,); 0 after recentering.
        unanimous_share: share of neurons that are positive on all samples or on none, shape (draws,).
        active_counts: share of neurons that are positive on exactly k samples, k = 0..n, shape (draws, n + 1).
    """

    skewness_before: Float[Tensor, "draws"]
    skewness_after: Float[Tensor, "draws"]
    zero_fraction_before: Float[Tensor, "draws"]
    zero_fraction_after: Float[Tensor, "draws"]
    neuron_skewness_before: Float[Tensor, "draws"]
    neuron_skewness_after: Float[Tensor, "draws"]
    neuron_zero_deviation: Float[Tensor, "draws"]
    mean_share: Float[Tensor, "draws"]
    unanimous_share: Float[Tensor, "draws"]
    active_counts: Float[Tensor, "draws counts"]


@dataclass(frozen=True)
class LargestSamplePlane:
    """A batch seen in the plane of its largest sample and the mean of the others.

    Attributes:
        coordinates: first coordinate along the sample of largest norm, second along the part of the mean of the
            others that is orthogonal to it, in units of the largest norm, shape (..., n, 2).
        index: which sample has the largest norm, shape (...).
        captured: share of the other samples' squared norm that lies in the plane, shape (...).
    """

    coordinates: Float[Tensor, "*draws n two"]
    index: Int[Tensor, "*draws"]
    captured: Float[Tensor, "*draws"]


def neuron_activity(
    n: int, width: int, depth: int, stages: Stages, *, draws: int, generator: torch.Generator
) -> Activity:
    """Simulate random networks on Gaussian batches and keep the last layer's activities.

    Args:
        n: batch size.
        width: number of neurons of every layer, and dimension of the input.
        depth: number of linear layers; the activities are those of the last one.
        stages: the stages after each linear map; the last one must be ReLU.
        draws: number of independent draws, each with a fresh batch and fresh He weights.
        generator: source of randomness; the simulation runs on its device.

    Returns:
        The activities before and after ReLU.

    Raises:
        ValueError: n < 2, width, depth or draws < 1, or stages without ReLU.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> activity = neuron_activity(4, 100, 3, Stages.parse("RC+NL"), draws=2, generator=g)
        >>> activity.after.shape, bool((activity.after == activity.before.clamp(min=0)).all())
        (torch.Size([2, 4, 100]), True)
    """
    if stages.nonlinearity != "relu" or stages.norm_after:
        raise ValueError(f"stages must end with NL (ReLU), got {stages.name!r}.")
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ValueError(f"depth is {depth!r}; valid is an integer >= 1.")
    x = gaussian_batch(n, width, generator=generator, draws=draws)
    for state in propagate(x, width, depth - 1, stages, generator=generator) if depth > 1 else ():
        x = state.x
    h = next_preactivation(x, width, generator=generator, recenter=stages.recentering)
    # Recentered already: recentering once more would change the activities by rounding only.
    before = apply_stages(h, replace(stages, recentering=False, nonlinearity="identity"))
    scale = before.square().mean(dim=(-2, -1), keepdim=True).sqrt()
    before = before / torch.where(scale > 0, scale, 1.0)
    return Activity(before=before, after=relu(before))


def activity_statistics(activity: Activity) -> ActivityStatistics:
    """Skewness, zeros and sign patterns of the activities.

    Args:
        activity: activities before and after ReLU.

    Returns:
        The statistics, draw by draw.

    Example:
        >>> before = torch.tensor([[[-1.0, 2.0], [3.0, 2.0]]])
        >>> found = activity_statistics(Activity(before=before, after=before.clamp(min=0)))
        >>> found.unanimous_share.item(), found.active_counts.tolist(), found.zero_fraction_after.item()
        (0.5, [[0.0, 0.5, 0.5]], 0.25)
    """
    before, after = activity.before, activity.after
    n = before.shape[-2]
    by_neuron = skewness(before.mT)
    counts = (before > 0).sum(dim=-2)
    shares = torch.stack([(counts == k).to(before.dtype).mean(dim=-1) for k in range(n + 1)], dim=-1)
    mean_square = before.mean(dim=-2).square().mean(dim=-1)
    return ActivityStatistics(
        skewness_before=skewness(before.flatten(-2)),
        skewness_after=skewness(after.flatten(-2)),
        zero_fraction_before=zero_fraction(before.flatten(-2)),
        zero_fraction_after=zero_fraction(after.flatten(-2)),
        neuron_skewness_before=by_neuron.square().nanmean(dim=-1).sqrt(),
        neuron_skewness_after=skewness(after.mT).nanmean(dim=-1),
        neuron_zero_deviation=(after == 0).to(after.dtype).mean(dim=-2).std(dim=-1, correction=0),
        mean_share=mean_square / before.square().mean(dim=(-2, -1)),
        unanimous_share=shares[..., 0] + shares[..., -1],
        active_counts=shares,
    )


def largest_skewness(n: int) -> float:
    """Largest skewness that n numbers can have, (n - 2) / sqrt(n - 1).

    One value stands apart and the n - 1 others agree (a theorem with proof in the chapter on recentering and angles;
    divisor n in all moments).

    Args:
        n: how many numbers, at least 2.

    Returns:
        The bound.

    Raises:
        ValueError: n < 2.

    Example:
        >>> x = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0], dtype=torch.float64)
        >>> largest_skewness(5), round(skewness(x).item(), 12)
        (1.5, 1.5)
    """
    if not n >= 2:
        raise ValueError(f"n must be at least 2, got {n}.")
    return (n - 2) / math.sqrt(n - 1)


def largest_sample_plane(x: Float[Tensor, "*draws n d"]) -> LargestSamplePlane:
    """Project a batch on the plane of its largest sample and the mean of the others.

    The plane is chosen by the data: the largest sample lies on the first axis by construction, and what the other
    samples have outside the plane is not seen; `captured` says how much of them is seen.

    Args:
        x: batch, shape (..., n, d), d >= 2.

    Returns:
        Coordinates in units of the largest norm, the index of the largest sample, and the captured share. Where the
        mean of the others is parallel to the largest sample, or all are zero, second coordinates are 0 or NaN.

    Raises:
        ValueError: fewer than two dimensions, n < 2, or d < 2.

    Example:
        >>> x = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, -1.0]])
        >>> plane = largest_sample_plane(x)
        >>> plane.coordinates.tolist(), plane.captured.item()
        ([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]], 0.5)
    """
    check_batch(x)
    n, d = x.shape[-2:]
    if d < 2:
        raise ValueError(f"x has d = {d}; valid is a batch (..., n, d) with d >= 2.")
    norms = torch.linalg.vector_norm(x, dim=-1)
    index = norms.argmax(dim=-1)
    largest = norms.amax(dim=-1, keepdim=True)
    rows = x / largest[..., None]
    first = rows.gather(-2, index[..., None, None].expand(*index.shape, 1, d))
    weights = torch.full_like(norms, 1 / (n - 1)).scatter(-1, index[..., None], 0.0)
    mean = weights[..., None, :] @ rows
    second = mean - (mean @ first.mT) * first
    length = torch.linalg.vector_norm(second, dim=-1, keepdim=True)
    second = torch.where(length > 0, second / length, 0.0)
    coordinates = rows @ torch.cat([first, second], dim=-2).mT
    total = rows.square().sum(dim=(-2, -1)) - 1
    seen = coordinates.square().sum(dim=(-2, -1)) - 1
    return LargestSamplePlane(coordinates=coordinates, index=index, captured=seen / total)
