"""Growth of gradients at winner-take-all fixed points (BSB2) under gradient independence.

A state with a block of k winners and a cluster of n - k others (`bnlib.two_block`) is left alone by permutations inside
the two groups. The backward map P -> E[(n/|G h|^2) (G - v v^T) D P D (G - v v^T)] then maps combinations of the three
projections onto block, cluster and their difference q to combinations of them: a 3 x 3 matrix with entries of at least
zero (2 x 2 for one winner). Such a map takes its largest growth on an invariant P, so the largest eigenvalue is the
growth. It is averaged over draws. NumPy float64; this module does not import torch.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from bnlib.activations import Activation
from bnlib.gradient_survey import batch_in_state, numpy_stream
from bnlib.gradients import extrapolated, growth_per_layer, network_gradients
from bnlib.homogeneous import homogeneous
from bnlib.homogeneous_layer import homogeneous_transform
from bnlib.mean_field import GRADIENT_MINIMUM, gradient_growth
from bnlib.mean_field_survey import Measured, jackknife
from bnlib.two_block import BlockState, block_covariance, block_state, two_block_states

Generator = Callable[..., torch.Generator]


def broken_state(n: int, k: int, alpha: float | int) -> BlockState:
    """The state with k winners of networks with max(x, 0)^alpha and batch normalization.

    Args:
        n: batch size, at least 5.
        k: winners, 1 to n - 2.
        alpha: degree, positive.

    Returns:
        The state. For one winner it is the most broken of the fixed points, else what a strongly broken start leads to.

    Raises:
        ValueError: no state with one winner exists, or a size is out of range.

    Example:
        >>> round(broken_state(64, 1, 1).share, 3)
        0.106
    """
    phi = homogeneous(alpha)
    if k != 1:
        return block_state(n, k, phi, layers=2000)
    states = two_block_states(n, phi, lowest=-14.0)
    if not states:
        raise ValueError(f"n must be a batch size at which one winner is a fixed point, got {n} for degree {alpha}.")
    return BlockState(1, 1.0, states[0].ratio, states[0].share, 0.0)


def state_covariance(n: int, state: BlockState, alpha: float | int) -> Float[np.ndarray, "n n"]:
    """The centered covariance of a state with its true scale: that of one layer's output.

    Args:
        n: batch size.
        state: a fixed point.
        alpha: degree.

    Raises:
        ValueError: one layer changes the covariance by more than its scale, so that the state is no fixed point.

    Example:
        >>> symmetric = BlockState(1, 1.0, 1.0, 1 / 8, 0.0)
        >>> k = state_covariance(8, symmetric, 1)  # mu G
        >>> from bnlib.mean_field import relu_symmetric_fixed_point
        >>> abs(k[0, 0] * 8 / 7 / relu_symmetric_fixed_point(8).centered - 1).item() < 1e-9
        True
    """
    shape = block_covariance(n, state.k, state.inside_block, state.inside_cluster)
    after = homogeneous_transform(shape, homogeneous(alpha))
    after = after - after.mean(axis=0)
    after = after - after.mean(axis=1, keepdims=True)
    scale = float((after * shape).sum() / (shape**2).sum())
    if np.abs(after - scale * shape).max() > 1e-3 * np.abs(after).max():
        raise ValueError(f"state must be a fixed point, but a layer changes it: {state}.")
    return scale * shape


def block_growth_rate(
    phi: Activation,
    covariance: Float[np.ndarray, "n n"],
    k: int,
    draws: int,
    generator: np.random.Generator,
    parts: int = 50,
) -> Measured:
    """Growth of the squared gradient per layer at a state with k winners, averaged over drawn neurons.

    Args:
        phi: activation with its derivative.
        covariance: centered, invariant under permutations of the first k samples and of the others.
        k: winners, 1 to n - 2.
        draws: neurons, at least `parts`. Their factors have a variance if the rank of the covariance is above 4.
        generator: source of the randomness.
        parts: independent parts for the error.

    Returns:
        The largest eigenvalue of the averaged map, and its jackknife error.

    Raises:
        ValueError: draws is below parts, or k is out of range.

    Example:
        >>> from bnlib.activations import activation
        >>> from bnlib.mean_field import relu_gradient_growth, relu_symmetric_fixed_point
        >>> mu = relu_symmetric_fixed_point(16).centered
        >>> relu, rng = activation("relu"), np.random.default_rng(0)
        >>> found = block_growth_rate(relu, mu * (np.eye(16) - 1 / 16), 3, 20000, rng)
        >>> abs(found.mean - relu_gradient_growth(16)) < 5 * found.error < 0.2
        True
    """
    n = len(covariance)
    if not 1 <= k <= n - 2:
        raise ValueError(f"k must lie between 1 and {n - 2}, got {k}.")
    if draws < parts:
        raise ValueError(f"draws must be at least {parts}, got {draws}.")
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    tables = [_one_part(phi, root @ generator.standard_normal((n, draws // parts)), k) for _ in range(parts)]
    kinds = 3 if k > 1 else 2

    def largest(mean: np.ndarray) -> float:
        return float(np.linalg.eigvals(mean.reshape(kinds, kinds)).real.max())

    return jackknife(np.array([one.ravel() for one in tables]), largest)


def _one_part(phi: Activation, h: np.ndarray, k: int) -> np.ndarray:
    """Mean of (n/|h|^2) tr(P_a C P_b C^T) / tr P_a, C = (G - v v^T) D, over columns h, P_a invariant."""
    n = len(h)
    m = n - k
    h = h - h.mean(axis=0)
    square = (h**2).sum(axis=0)
    v = h / np.sqrt(square)
    slope = phi.derivative(math.sqrt(n) * v)
    q = np.r_[np.full(k, 1 / k), np.full(m, -1 / m)] * math.sqrt(k * m / n)
    block = np.r_[np.ones(k), np.zeros(m)]

    def inside(mask: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        weights = mask / mask.sum()
        return lambda w: mask[:, None] * (w - weights @ w)

    projections = {"q": (lambda w: np.outer(q, q @ w)), "cluster": inside(1 - block), "block": inside(block)}
    sizes = {"q": 1, "cluster": m - 1, "block": k - 1}
    names = [name for name in projections if sizes[name] > 0]
    table = np.empty((len(names), len(names)))
    for row, a in enumerate(names):
        image = projections[a](v)
        radial = (v * image).sum(axis=0)

        def form(w: np.ndarray, a: str = a, image: np.ndarray = image, radial: np.ndarray = radial) -> np.ndarray:
            """w^T (G - v v^T) P_a (G - v v^T) w, column by column."""
            along = (v * w).sum(axis=0)
            return (w * projections[a](w)).sum(axis=0) - 2 * (w * image).sum(axis=0) * along + along**2 * radial

        # The diagonal of (G - v v^T) P_a (G - v v^T), sample by sample.
        own = np.diagonal(projections[a](np.eye(n)))[:, None] - 2 * image * v + v**2 * radial
        for column, b in enumerate(names):
            if b == "q":
                values = form(slope * q[:, None])
            else:
                mask = block if b == "block" else 1 - block
                values = mask @ (slope**2 * own) - form(slope * mask[:, None]) / mask.sum()
            table[row, column] = (n / square * values).mean() / sizes[a]
    return table


def broken_rows(
    cases: Sequence[tuple[int, int, float | int]],
    widths: Sequence[int],
    layers: int,
    draws: int,
    samples: int,
    generator: Generator,
) -> list[dict[str, Any]]:
    """Theory and networks at winner-take-all fixed points of full rank, beside the symmetric fixed point.

    Args:
        cases: (batch size, winners, degree).
        widths: two, the second twice the first; a bias proportional to 1/width is removed.
        layers: of each network, at least 3.
        draws: networks a width, which start in the state.
        samples: neurons of the theory's average.
        generator: makes a stream from labels, e.g. `Run.generator`.

    Returns:
        Rows with the "share" of a winner in the norms, "theory" and its "error", "network", its "network_error" and
        "z" ("comparable" says whether (tr K)^2/|K|^2 > 4, below which factors have too heavy tails for it), and the
        growth at the symmetric states of the same batch ("symmetric") and of one with winners + 1 samples ("smaller",
        None below 4).

    Example:
        >>> from bnlib import seeds
        >>> rows = broken_rows([(64, 1, 1)], [16, 32], 4, 4, 1000, lambda *key: seeds.generator(0, *key))
        >>> rows[0]["theory"] > 1
        True
    """
    rows = []
    for n, k, alpha in cases:
        state = broken_state(n, k, alpha)
        covariance, phi = state_covariance(n, state, alpha), homogeneous(alpha).activation
        theory = block_growth_rate(phi, covariance, k, samples, numpy_stream(generator("broken", n, k, f"{alpha:g}")))
        pair = []
        for width in widths:
            stream = generator("broken networks", n, k, f"{alpha:g}", width)
            x = batch_in_state(covariance, draws, None, stream)
            found = network_gradients(x, width, layers, f"power {alpha:g}", generator=stream)
            pair.append(growth_per_layer(found.hidden))
        limit = extrapolated(*pair)
        rows.append(
            {
                "n": n,
                "winners": k,
                "alpha": float(alpha),
                "share": state.share,
                "theory": theory.mean,
                "error": theory.error,
                "wide": pair[1].mean,
                "network": limit.mean,
                "network_error": limit.standard_error,
                "z": (limit.mean - theory.mean) / math.hypot(limit.standard_error, theory.error),
                "comparable": bool(np.trace(covariance) ** 2 > 4 * (covariance**2).sum()),
                "symmetric": gradient_growth(phi, n),
                "smaller": gradient_growth(phi, k + 1) if k + 1 >= GRADIENT_MINIMUM else None,
            }
        )
    return rows
