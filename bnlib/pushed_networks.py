"""Networks of finite width that start with one sample pushed out, and whether it stays so."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.data import symmetric_batch
from bnlib.ensembles import propagate
from bnlib.estimates import median_interval, quantile
from bnlib.layers import Stages


def pushed(
    n: int, width: int, depth: int, stages: Stages, *, factor: float, draws: int, generator: torch.Generator
) -> dict[str, Any]:
    """Start from orthogonal samples of which one is longer than the others, and see whether it stays so.

    Args:
        n: batch size, at least 3.
        width: neurons in every layer.
        depth: number of linear layers.
        stages: what follows each linear map.
        factor: length of that sample; the others have length 1.
        draws: number of independent networks.
        generator: source of the weights.

    Returns:
        `curves`: norm of that sample over the median norm of the others, its quantiles 0.1, 0.5 and 0.9 over
        the draws at every layer, a list of three lists, None where all the others are zero. After the last
        layer, `end` and `angle_deg`: median over the draws of that ratio, and of the angle between the sample
        and the mean of the others, degrees; with `end_low`, `end_high`, `angle_low`, `angle_high`, the ends
        of their 95 percent intervals, None with fewer than six draws.

    Raises:
        ValueError: n < 3, a factor that is not positive, fewer than one draw, or as
        `bnlib.ensembles.propagate`.

    Example:
        >>> from bnlib.layers import Stages
        >>> g = torch.Generator().manual_seed(0)
        >>> found = pushed(8, 256, 20, Stages.parse("RC+RS+NL"), factor=3.0, draws=9, generator=g)
        >>> found["curves"][1][0] > 1.5 > found["end_high"]
        True
    """
    if n < 3 or draws < 1:
        raise ValueError(f"n is {n} and draws is {draws}; valid is n >= 3 with at least 1 draw.")
    if not factor > 0:
        raise ValueError(f"factor is {factor}; valid is a positive number.")
    x = symmetric_batch(n, n, draws=draws).to(generator.device)
    x[:, 0] *= factor
    curves = []
    for state in propagate(x, width, depth, stages, generator=generator):
        norms = state.gram.diagonal(dim1=-2, dim2=-1).sqrt()
        ordered = norms[:, 1:].sort(dim=-1).values
        middle = (ordered[:, (n - 2) // 2] + ordered[:, (n - 1) // 2]) / 2
        curves.append((norms[:, 0] / middle).double().cpu().numpy())
    angles = angle_of_first(state.gram)
    end_low, end_high = median_interval(curves[-1])
    angle_low, angle_high = median_interval(angles)
    return {
        "curves": [[quantile(layer, level) for layer in curves] for level in (0.1, 0.5, 0.9)],
        "end": quantile(curves[-1], 0.5),
        "end_low": end_low,
        "end_high": end_high,
        "angle_deg": quantile(angles, 0.5),
        "angle_low": angle_low,
        "angle_high": angle_high,
    }


def angle_of_first(k: Float[Tensor, "draws n n"]) -> np.ndarray:
    """Angle between the first sample and the mean of the others, degrees; NaN where one of them is zero."""
    cross, square = k[:, 0, 1:].mean(dim=-1), k[:, 1:, 1:].mean(dim=(-2, -1))
    cosine = cross / (k[:, 0, 0] * square).sqrt()
    return cosine.clamp(-1, 1).arccos().rad2deg().double().cpu().numpy()
