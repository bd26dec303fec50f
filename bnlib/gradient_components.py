"""Networks against the three eigenvalues of the backward map: gradients that differ from sample to sample on purpose.

The gradient at the top is drawn with a covariance over the batch that has a part in each of the three spaces of
`bnlib.backward_operator`: G + strength (E_L + E_M), with E_L = G diag(u) G, E_M = u u^T - n/(n-1) G and u = (1, -1, 1,
-1, ...). Going down, the mean of each part over networks is multiplied by its own eigenvalue at every layer.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bnlib.backward_operator import backward_multipliers, monte_carlo_backward
from bnlib.gradient_theory import parsed_activation
from bnlib.gradients import normalized, torch_activation
from bnlib.mean_field_survey import Measured, extrapolated, jackknife

Generator = Callable[..., torch.Generator]
SPACES = ("average", "norms", "covariances")
_STRENGTH = 0.4  # the largest at which the covariance is positive semi-definite for every n is about 0.46


def directions(n: int) -> Float[np.ndarray, "3 n n"]:
    """G, E_L and E_M, mutually orthogonal matrices of the three spaces.

    Args:
        n: batch size, even and at least 4.

    Raises:
        ValueError: n is odd or below 4.

    Example:
        >>> g, norms, covariances = directions(6)
        >>> bool(abs((g * norms).sum()) < 1e-12), bool(abs((norms * covariances).sum()) < 1e-12)
        (True, True)
    """
    if n < 4 or n % 2:
        raise ValueError(f"n must be an even batch size of at least 4, got {n}.")
    centering, u = np.eye(n) - 1 / n, np.tile([1.0, -1.0], n // 2)
    return np.stack([centering, centering @ np.diag(u) @ centering, np.outer(u, u) - n / (n - 1) * centering])


def network_components(
    name: str, n: int, width: int, layers: int, draws: int, generator: torch.Generator, block: int = 10
) -> Float[Tensor, "draws layers 3"]:
    """The gradient's covariance over the batch, layer by layer, in networks that torch differentiates.

    Args:
        name: activation, see `bnlib.gradients.torch_activation`.
        n: batch size, even and at least 4.
        width: neurons a layer.
        layers: of each network, at least 2. The first does not see the fixed point.
        draws: networks.
        generator: source of the randomness, and the device.
        block: networks at once.

    Returns:
        Inner products of D D^T, D the gradient with respect to the pre-activations, with `directions`; layers from
        the input.

    Raises:
        ValueError: n is odd or below 4, or a size is too small.

    Example:
        >>> network_components("relu", 4, 16, 3, 2, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 3])
    """
    if min(width, draws, block) < 1 or layers < 2:
        raise ValueError(f"width and draws must be at least 1 and layers at least 2, got {width}, {draws}, {layers}.")
    spaces = directions(n)
    values, vectors = np.linalg.eigh(spaces[0] + _STRENGTH * (spaces[1] + spaces[2]))
    options = {"device": generator.device, "dtype": torch.float64}
    root = torch.tensor(vectors * np.sqrt(np.maximum(values, 0.0)), **options)
    wanted, phi, found = torch.tensor(spaces, **options), torch_activation(name), []
    for begin in range(0, draws, block):
        count = min(block, draws - begin)
        x = math.sqrt(n) * torch.eye(n, **options).expand(count, -1, -1)
        pre = []
        for _ in range(layers):
            weight = torch.randn(count, x.shape[-1], width, generator=generator, **options)
            h = x @ (weight * math.sqrt(2 / x.shape[-1]))
            if not h.requires_grad:
                h.requires_grad_()
            pre.append(h)
            x = phi(normalized(h, "RC+RS"))
        top = root @ torch.randn(count, n, width, generator=generator, **options)
        deltas = torch.autograd.grad((top * x).sum(), pre)
        found.append(torch.stack([torch.einsum("kiw,kjw,sij->ks", d, d, wanted) for d in deltas], dim=1))
    return torch.cat(found)


def component_growth(parts: Float[Tensor, "draws layers 3"]) -> dict[str, Measured]:
    """Growth per layer of each part going down: ratio of means over networks, from the highest layer to the second.

    Args:
        parts: of `network_components`, at least three layers.

    Returns:
        "average", "norms" and "covariances", with jackknife errors over networks.

    Raises:
        ValueError: fewer than three layers.

    Example:
        >>> parts = torch.tensor([9.0, 4.0, 1.0]).reshape(1, 3, 1).expand(2, 3, 3)
        >>> component_growth(parts)["norms"].mean
        4.0
    """
    layers = parts.shape[1]
    if layers < 3:
        raise ValueError(f"parts must hold at least three layers, got {layers}.")
    low, high = (parts[:, index].numpy(force=True) for index in (1, -1))

    def growth(index: int) -> Callable[[np.ndarray], float]:
        def estimate(means: np.ndarray) -> float:
            ratio = means[0] / means[1]
            return float(np.sign(ratio) * abs(ratio) ** (1 / (layers - 2)))

        return estimate

    return {
        space: jackknife(np.column_stack([low[:, index], high[:, index]]), growth(index))
        for index, space in enumerate(SPACES)
    }


def component_rows(
    names: Sequence[str], n: int, widths: Sequence[int], layers: int, draws: int, samples: int, generator: Generator
) -> list[dict[str, Any]]:
    """Theory, Monte Carlo and networks for the three eigenvalues.

    Args:
        names: activations.
        n: batch size, even and at least 6.
        widths: two, the second twice the first; a bias proportional to 1/width is removed.
        layers: of each network, at least 3.
        draws: networks a width.
        samples: batches of the Monte Carlo average.
        generator: makes a stream from labels, e.g. `Run.generator`.

    Returns:
        One row for each activation and space.

    Example:
        >>> from bnlib import seeds
        >>> rows = component_rows(["relu"], 6, [16, 32], 3, 20, 1000, lambda *key: seeds.generator(0, *key))
        >>> [row["space"] for row in rows]
        ['average', 'norms', 'covariances']
    """
    rows = []
    for name in names:
        phi = parsed_activation(name)
        theory = backward_multipliers(phi, n)
        stream = generator("components", name, "batches")
        seed = torch.randint(2**62, (1,), generator=stream, device=stream.device).item()
        average = monte_carlo_backward(phi, n, samples, np.random.default_rng(seed))
        pair = [
            component_growth(network_components(name, n, width, layers, draws, generator("components", name, width)))
            for width in widths
        ]
        for space in SPACES:
            exact, drawn = getattr(theory, space), average[space]
            limit = extrapolated(pair[0][space], pair[1][space])
            rows.append(
                {
                    "activation": name,
                    "n": n,
                    "space": space,
                    "theory": exact,
                    "monte_carlo": drawn.mean,
                    "monte_carlo_error": drawn.error,
                    "monte_carlo_z": (drawn.mean - exact) / drawn.error,
                    "network": limit.mean,
                    "network_error": limit.error,
                    "network_z": (limit.mean - exact) / limit.error,
                }
            )
    return rows
