"""Leaving the symmetric state, simulated twice: in real random networks, and in the theory of `bnlib.escape`.

The theory's batch is its Gram matrix K alone. A layer takes the infinite-width map of the recentered K and adds
Gaussian noise with the covariance that a layer of d neurons has at the symmetric state, scaled by the samples' norms:

    K' = V(C) + D^(1/2) Xi D^(1/2) / sqrt(d),      C = G K G,  D = diag(C).

It has no fitted number and costs n^2 a layer whatever the width. Both simulations take the positively homogeneous
activation with a leaky slope, and watch for the first layer at which the largest norm is `ratio` times the second
largest.
Torch; every random number comes from a generator; float64 on the CPU in the end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib import leaky
from bnlib.ensembles import gaussian
from bnlib.escape_noise import gram_fluctuations
from bnlib.geometry import outlier_summary_from_gram

_BLOCK = 1 << 18  # numbers drawn at once: the block should stay in the cache


@dataclass(frozen=True)
class Stay:
    """What networks that start in the outlier state of infinite width do, averaged over layers and over draws.

    Attributes:
        cluster_angle: mean over layers of the mean pairwise angle inside the cluster, radians, shape (draws,).
        outlier_angle: the same of the angle between the outlier and the mean of the others, radians, shape (draws,).
        norm_ratio: the same of the norm ratio of these two, shape (draws,).
        norm_ratio_sample: the same of the outlier's norm over the root mean square norm of the others, shape (draws,).
        final_cluster_angle: the cluster angle after the last layer, radians, shape (draws,).
    """

    cluster_angle: Float[np.ndarray, "draws"]
    outlier_angle: Float[np.ndarray, "draws"]
    norm_ratio: Float[np.ndarray, "draws"]
    norm_ratio_sample: Float[np.ndarray, "draws"]
    final_cluster_angle: Float[np.ndarray, "draws"]


def _check(gram: Tensor, width: int, depth: int, ratio: float | int, generator: torch.Generator) -> None:
    if gram.ndim != 3 or gram.shape[-1] != gram.shape[-2] or gram.shape[-1] < 3:
        raise ValueError(f"gram has the shape {tuple(gram.shape)}; valid is (draws, n, n) with n >= 3.")
    if not bool(torch.isfinite(gram).all()):
        raise ValueError("gram has entries that are not finite; valid are Gram matrices of finite batches.")
    for name, value in (("width", width), ("depth", depth)):
        if value < 1:
            raise ValueError(f"{name} is {value}; valid is a whole number of at least 1.")
    if not ratio > 1:
        raise ValueError(f"ratio is {ratio}; valid is a ratio of norms above 1.")
    if gram.device != generator.device:
        raise ValueError(
            f"gram is on {gram.device} and the generator on {generator.device}; valid is one device for both."
        )


def theory_passages(
    gram: Float[Tensor, "draws n n"],
    width: int,
    depth: int,
    *,
    generator: torch.Generator,
    ratio: float | int = 2.0,
    slope: float | int = 0.0,
) -> Int[np.ndarray, "draws"]:
    """First layer with one dominant norm, in the theory: infinite-width map plus Gaussian noise of size 1/sqrt(width).

    Args:
        gram: Gram matrices of the input batches, one a draw.
        width: number of neurons of every layer; it enters through the noise only.
        depth: layers that are watched.
        generator: source of the noise, on the device of gram.
        ratio: how many times the second-largest norm the largest one must be.
        slope: leaky slope b/a; 0 is ReLU.

    Returns:
        Layers from 1; 0 where none is among those watched (censored).

    Raises:
        ValueError: gram is not of shape (draws, n, n) with n >= 3 and finite, width or depth below 1, a ratio that is
        not above
            1, or a generator on another device.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> start = torch.eye(16, dtype=torch.float64).expand(50, 16, 16)
        >>> bool(20 < np.median(theory_passages(start, 256, 200, generator=g)) < 60)
        True
    """
    _check(gram, width, depth, ratio, generator)
    draw = _noise(gram.shape[-1], slope, generator)
    w = float(leaky.mixing(slope))

    def layer(k: Tensor) -> Tensor:
        c = _recenter(k)
        squares = c.diagonal(dim1=-2, dim2=-1).clamp(min=1e-300)
        norms = squares.sqrt()
        scale = norms[:, :, None] * norms[:, None, :]
        cosine = (c / scale).clamp(-1.0, 1.0)
        mapped = (1.0 - w) * ((1.0 - cosine**2).sqrt() + (math.pi - cosine.arccos()) * cosine) / math.pi + w * cosine
        mapped.diagonal(dim1=-2, dim2=-1).fill_(1.0)
        return scale * (mapped + draw(len(k)) / math.sqrt(width))

    return _first_passages(gram.double(), layer, depth, ratio)


def network_passages(
    gram: Float[Tensor, "draws n n"],
    width: int,
    depth: int,
    *,
    generator: torch.Generator,
    ratio: float | int = 2.0,
    slope: float | int = 0.0,
) -> Int[np.ndarray, "draws"]:
    """First layer with one dominant norm, in real networks of recentering and the activation.

    Given the Gram matrix of a batch, a layer of Gaussian weights is n x width Gaussian numbers times a root of the
    recentered Gram matrix; a draw that has passed is no longer simulated.

    Args:
        gram: Gram matrices of the input batches, one a draw.
        width: number of neurons of every layer.
        depth: layers that are watched.
        generator: source of the weights, on the device of gram.
        ratio: how many times the second-largest norm the largest one must be.
        slope: leaky slope b/a; 0 is ReLU.

    Returns:
        Layers from 1; 0 where none is among those watched (censored).

    Raises:
        ValueError: as `theory_passages`.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> start = torch.eye(16, dtype=torch.float64).expand(50, 16, 16)
        >>> bool(20 < np.median(network_passages(start, 256, 200, generator=g)) < 60)
        True
    """
    _check(gram, width, depth, ratio, generator)

    def layer(k: Tensor) -> Tensor:
        return next_gram(k, width, generator=generator, slope=slope)

    return _first_passages(gram.double(), layer, depth, ratio)


def next_gram(
    k: Float[Tensor, "draws n n"], width: int, *, generator: torch.Generator, slope: float | int = 0.0
) -> Float[Tensor, "draws n n"]:
    """Gram matrix after one random layer of recentering and the activation, from the Gram matrix before.

    Args:
        k: Gram matrices, shape (draws, n, n).
        width: number of neurons.
        generator: source of the weights, on the device of k.
        slope: leaky slope b/a; 0 is ReLU.

    Returns:
        Gram matrices, same shape, of trace 1; with the trace n a collapsed batch would leave the number range no
        earlier.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> k = next_gram(torch.eye(3, dtype=torch.float64)[None], 100, generator=g)
        >>> round(k.diagonal(dim1=-2, dim2=-1).sum().item(), 12)
        1.0
    """
    draws, n = k.shape[:2]
    frame = _centered_frame(n, k)
    root, failed = torch.linalg.cholesky_ex(frame.mT @ k @ frame)
    if bool(failed.any()):  # a collapsed cluster: an eigenvalue below rounding
        values, vectors = torch.linalg.eigh(frame.mT @ k @ frame)
        root = torch.where((failed > 0)[:, None, None], vectors * values.clamp(min=0).sqrt()[:, None, :], root)
    root = frame @ root
    after = torch.empty_like(k)
    # A single draw may exceed the cache: then its neurons come in blocks as well.
    columns = min(width, max(1, _BLOCK // (n - 1)))
    group = max(1, _BLOCK // ((n - 1) * columns))
    for first in range(0, draws, group):
        part = root[first : first + group]
        total = torch.zeros_like(after[first : first + group])
        for start in range(0, width, columns):
            h = part @ gaussian(len(part), n - 1, min(columns, width - start), generator=generator)
            h = h.relu_() if slope == 0 else torch.nn.functional.leaky_relu(h, float(slope))
            total += h @ h.mT
        after[first : first + group] = total
    return after / after.diagonal(dim1=-2, dim2=-1).sum(dim=-1)[:, None, None]


def _centered_frame(n: int, like: Tensor) -> Tensor:
    """Orthonormal columns that are orthogonal to the vector of ones, shape (n, n - 1)."""
    columns = torch.cat([like.new_ones(n, 1), torch.eye(n, n - 1, dtype=like.dtype, device=like.device)], dim=1)
    return torch.linalg.qr(columns)[0][:, 1:]


def _recenter(k: Tensor) -> Tensor:
    c = k - k.mean(dim=-1, keepdim=True)
    c = c - c.mean(dim=-2, keepdim=True)
    return (c + c.mT) / 2.0


def _first_passages(k: Tensor, layer, depth: int, ratio: float) -> np.ndarray:
    """Layer by layer until every draw has passed."""
    found = np.zeros(len(k), dtype=np.int64)
    running = np.arange(len(k))
    for number in range(1, depth + 1):
        k = layer(k)
        squares = k.diagonal(dim1=-2, dim2=-1)
        k = k / squares.sum(dim=-1)[:, None, None]
        top = squares.topk(2, dim=-1).values
        passed = (top[:, 0] > ratio * ratio * top[:, 1]).cpu()
        if bool(passed.any()):
            found[running[passed.numpy()]] = number
            running = running[~passed.numpy()]
            k = k[~passed.to(k.device)]
            if len(running) == 0:
                break
    return found


def _noise(n: int, slope: float | int, generator: torch.Generator):
    """A function that draws the matrices Xi: `count` of them, shape (count, n, n), for a width of one neuron."""
    parts = gram_fluctuations(n, slope)
    device = generator.device

    def root(covariance: np.ndarray) -> Tensor:
        values, vectors = np.linalg.eigh(covariance)
        return torch.from_numpy(vectors * np.sqrt(np.maximum(values, 0.0))).to(device)

    # Independent vectors lose the share 1/n of their variance when their mean is taken off.
    uniform, sample = root(parts.uniform), root(parts.sample * n / (n - 1.0))
    pair = math.sqrt(max(parts.pair, 0.0))
    above = torch.triu(torch.ones(n, n, dtype=torch.float64, device=device), 1)

    def draw(count: int) -> Tensor:
        both = gaussian(count, 2, generator=generator) @ uniform.mT
        each = gaussian(count, n, 2, generator=generator) @ sample.mT
        each = each - each.mean(dim=1, keepdim=True)
        xi = each[:, :, None, 1] + each[:, None, :, 1] + both[:, 1, None, None]
        if pair > 0:
            e = gaussian(count, n, n, generator=generator) * above * pair
            e = e + e.mT
            # Zero row sums: e_ij - r_i - r_j, r_i = (row sum - total / (2 (n-1))) / (n - 2).
            rows = e.sum(dim=-1)
            r = (rows - rows.sum(dim=-1, keepdim=True) / (2.0 * (n - 1.0))) / (n - 2.0)
            xi = xi + e - r[:, :, None] - r[:, None, :]
        xi.diagonal(dim1=-2, dim2=-1).copy_(each[:, :, 0] + both[:, :1])
        return xi

    return draw


def stay(
    n: int,
    width: int,
    *,
    burn: int,
    keep: int,
    draws: int,
    generator: torch.Generator,
    slope: float | int = 0.0,
    every: int = 4,
) -> Stay:
    """Send the outlier state of infinite width through real recentered networks and average what it becomes.

    Args:
        n: batch size with an outlier state, at least 7.
        width: number of neurons of every layer.
        burn: layers before the averages begin.
        keep: layers of the averages, at least `every`.
        draws: number of networks.
        generator: source of the weights.
        slope: leaky slope b/a; 0 is ReLU.
        every: the averages take every so many layers.

    Returns:
        Averages over the layers kept, network by network; angles in radians.

    Raises:
        ValueError: no outlier state for this n, or draws, keep, every or width out of range.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> stay(8, 256, burn=4, keep=8, draws=3, generator=g).cluster_angle.shape
        (3,)
    """
    if draws < 1 or every < 1 or keep < every or burn < 0 or width < 1:
        raise ValueError(
            f"draws is {draws}, width {width}, burn {burn}, keep {keep} and every {every}; "
            "valid is draws, width and every of at least 1, burn of at least 0 and keep of at least every."
        )
    k = torch.from_numpy(outlier_gram(n, slope)).to(generator.device).expand(draws, n, n)
    kept = []
    for number in range(1, burn + keep + 1):
        k = next_gram(k, width, generator=generator, slope=slope)
        if number > burn and (number - burn) % every == 0:
            summary = outlier_summary_from_gram(k)
            squares = k.diagonal(dim1=-2, dim2=-1)
            top = squares.gather(-1, summary.index[:, None])[:, 0]
            sample = (top * (n - 1) / (squares.sum(dim=-1) - top)).sqrt()
            kept.append(torch.stack([_inside(k, summary.index), summary.angle, summary.norm_ratio, sample]))
    measured = torch.stack(kept).cpu().numpy()
    inside, outside, ratio, sample = measured.mean(axis=0)
    return Stay(inside, outside, ratio, sample, measured[-1, 0])


def _inside(k: Tensor, index: Tensor) -> Tensor:
    """Mean pairwise angle of the samples other than `index`, from Gram matrices of shape (draws, n, n)."""
    n = k.shape[-1]
    norms = k.diagonal(dim1=-2, dim2=-1).sqrt()
    angles = (k / (norms[:, :, None] * norms[:, None, :])).clamp(-1.0, 1.0).arccos()
    inside = torch.ones_like(norms).scatter(-1, index[:, None], 0.0)
    pairs = inside[:, :, None] * inside[:, None, :] * (1.0 - torch.eye(n, dtype=k.dtype, device=k.device))
    return (angles * pairs).sum(dim=(-2, -1)) / ((n - 1) * (n - 2))


def outlier_gram(n: int, slope: float | int = 0.0) -> Float[np.ndarray, "n n"]:
    """Gram matrix of the outlier state at infinite width, the odd sample first and of norm 1.

    Args:
        n: batch size, at least 7.
        slope: leaky slope b/a, not 1; 0 is ReLU.

    Returns:
        Shape (n, n).

    Raises:
        ValueError: no outlier state for this n.

    Example:
        >>> round(1 / math.sqrt(outlier_gram(16)[1, 1]), 3)
        13.896
    """
    state = leaky.outlier_state(n, slope)
    if state is None:
        raise ValueError(f"n is {n}; valid is a batch size with an outlier state, at least 7.")
    other = 1.0 / state.norm_ratio
    k = np.full((n, n), other**2 * math.cos(state.cluster_angle))
    np.fill_diagonal(k, other**2)
    k[0, 1:] = k[1:, 0] = other * math.cos(state.outlier_angle)
    k[0, 0] = 1.0
    return k


def share_z(observed: Sequence[int], depth: int, predicted: Sequence[int]) -> dict[str, float]:
    """Share of draws that have passed by a depth, network against theory, in standard errors.

    Args:
        observed: passages of networks, 0 where censored; watched for at least `depth` layers.
        depth: the layer by which.
        predicted: passages in the theory, watched as long.

    Returns:
        `observed` and `predicted` shares, and `z`, their difference over its standard error: binomial, with the
        theory's share (kept off 0 and 1 by half a draw), and with the theory's own finite number of draws.

    Raises:
        ValueError: an empty sample.

    Example:
        >>> round(share_z([3, 5, 0, 9], 6, [2, 4, 6, 8])["z"], 2)
        -0.82
    """
    if len(observed) == 0 or len(predicted) == 0:
        raise ValueError("observed or predicted is empty; valid is at least one draw of each.")
    shares = [float(np.mean((np.asarray(t) > 0) & (np.asarray(t) <= depth))) for t in (observed, predicted)]
    safe = min(max(shares[1], 0.5 / len(predicted)), 1.0 - 0.5 / len(predicted))
    error = math.sqrt(safe * (1.0 - safe) * (1.0 / len(observed) + 1.0 / len(predicted)))
    return {"observed": shares[0], "predicted": shares[1], "z": (shares[0] - shares[1]) / error}


def orthogonal_grams(n: int, draws: int, *, device: str | torch.device = "cpu") -> Float[Tensor, "draws n n"]:
    """Gram matrices of orthonormal batches, the symmetric start.

    Example:
        >>> orthogonal_grams(3, 2).shape
        torch.Size([2, 3, 3])
    """
    return torch.eye(n, dtype=torch.float64, device=device).expand(draws, n, n)
