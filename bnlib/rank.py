r"""Theorem 3: how many random ReLU neurons it takes until the representation of a batch has full rank.

Neurons are independent; neuron $w$ adds the column $\mathrm{ReLU}(Xw)$. $\gamma(X)$ is the least probability, over
$v \ne 0$, that a neuron is not orthogonal to $v$ (`bnlib.gamma`). Given the neurons so far, take $v$ orthogonal to all
of them: the next neuron raises the rank with probability at least γ. So the number $T$ of neurons until rank $n$ is at
most a sum of $n$ independent geometric waiting times, $E\,T \le n/\gamma$ and $P[T > k] \le P[\mathrm{Bin}(k, \gamma)
< n]$.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from jaxtyping import Float, Int
from scipy.stats import binom
from torch import Tensor

from bnlib import finite_field

_ELEMENTS = 2_000_000  # numbers held at once by the simulation, a matter of memory only


class RankError(ValueError):
    """Arguments for which the waiting time until full rank is not defined."""


@dataclass(frozen=True)
class TailBounds:
    """Three upper bounds of the probability that full rank takes more than k neurons, from sharp to simple.

    Attributes:
        binomial: P[Bin(k, γ) <= n - 1], the exact tail of a sum of n geometric waiting times.
        chernoff: exp(-n (λ - 1 - ln λ)) with λ = kγ/n; 1 where λ <= 1.
        simple: exp(-(kγ - n)² / (2kγ)); 1 where kγ <= n.
    """

    binomial: float
    chernoff: float
    simple: float


def expected_neurons_bound(n: int, gamma: float) -> float:
    r"""Return n/γ, an upper bound of the expected number of neurons until full rank.

    Theorem 3 of arXiv 2412.02843, with γ as in `bnlib.gamma`. For independent samples of nearly one direction the bound
    2n is attained in the limit; 1/γ is a lower bound for every batch.

    Args:
        n: batch size, at least 1.
        gamma: γ(X) or a lower bound of it, in (0, 1/2].

    Returns:
        A number of neurons.

    Raises:
        ValueError: if n < 1 or gamma is not in (0, 1/2].

    Example:
        >>> expected_neurons_bound(8, 0.5)
        16.0
    """
    _check_n_gamma(n, gamma)
    return n / gamma


def orthogonal_neurons_bound(n: int) -> float:
    r"""Return $\sum_{k=1}^n 1/(1 - 2^{-k})$, an upper bound of the expected number of neurons for orthogonal samples.

    While the rank is $n - k$, the vectors orthogonal to all neurons so far have at least $k$ samples in their supports;
    a neuron that does not raise the rank is silent on all of these, which has probability at most $2^{-k}$. The bound
    is below $n + 1.607$ (our derivation).

    Args:
        n: batch size, at least 1.

    Returns:
        A number of neurons.

    Raises:
        ValueError: if n < 1.

    Example:
        >>> round(orthogonal_neurons_bound(64) - 64, 4)
        1.6067
    """
    _check_n_gamma(n, 0.5)
    return math.fsum(1 / (1 - 2.0**-k) for k in range(1, n + 1))


def two_sample_neurons(angle: float) -> float:
    r"""Return the exact expected number of neurons until two samples at a given angle have rank 2.

    A neuron is active for both with probability $q = (\pi - \theta)/(2\pi)$, for neither with the same, for the first
    only or the second only with $\theta/(2\pi)$ each; hence $(1 - q + q + 2\theta(1 - q)/\pi)/(1 - q)^2$ after the two
    stages are added up: $1/(1-q) + [q/(1-q) + 2\theta/\pi]/(1-q)$. At 90° it is 28/9; towards 0 it tends to
    4 = n/γ (our derivation).

    Args:
        angle: between the samples, radians, in (0, π).

    Returns:
        A number of neurons.

    Raises:
        ValueError: if the angle is not in (0, π).

    Example:
        >>> round(9 * two_sample_neurons(math.pi / 2), 9)
        28.0
    """
    if not 0 < angle < math.pi:
        raise ValueError(f"angle must be in (0, pi) radians, got {angle}.")
    q = (math.pi - angle) / (2 * math.pi)
    return (1 + q / (1 - q) + 2 * angle / math.pi) / (1 - q)


def tail_bounds(n: int, gamma: float, neurons: int) -> TailBounds:
    r"""Return upper bounds of the probability that full rank takes more than a given number of neurons.

    $T$ is stochastically at most a sum $S$ of $n$ independent geometric times of success probability γ, and $S > k$
    means fewer than $n$ successes in $k$ trials. With $E e^{sG} \le (1 - s/\gamma)^{-1}$ for $0 \le s < \gamma$ and
    $s = \gamma(1 - 1/\lambda)$, Chernoff gives $P[S > \lambda n/\gamma] \le e^{-n(\lambda - 1 - \ln\lambda)}$, and
    $\lambda - 1 - \ln\lambda \ge (\lambda - 1)^2/(2\lambda)$ the simple form. Our derivation of the high-probability
    form of Theorem 3 (arXiv 2412.02843, Appendix B); the paper's equation 28 is not at hand.

    Args:
        n: batch size, at least 1.
        gamma: γ(X) or a lower bound of it, in (0, 1/2].
        neurons: k, at least 0.

    Returns:
        The three `TailBounds`.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> bounds = tail_bounds(8, 0.5, 32)
        >>> bounds.binomial < bounds.chernoff < bounds.simple < 0.2
        True
    """
    _check_n_gamma(n, gamma)
    if neurons < 0:
        raise ValueError(f"neurons must be a number of neurons of at least 0, got {neurons}.")
    binomial = float(binom.cdf(n - 1, neurons, gamma))
    excess = neurons * gamma / n
    if excess <= 1:
        return TailBounds(binomial, 1.0, 1.0)
    return TailBounds(
        binomial,
        math.exp(-n * (excess - 1 - math.log(excess))),
        math.exp(-n * (excess - 1) ** 2 / (2 * excess)),
    )


def neurons_for_confidence(n: int, gamma: float, failure_probability: float) -> int:
    r"""Return a width that gives full rank with probability at least 1 − ε, by the simple Chernoff form.

    The equation $(k\gamma - n)^2 = 2k\gamma \ln(1/\varepsilon)$ has the root
    $k\gamma = n + \ln(1/\varepsilon) + \sqrt{(n + \ln(1/\varepsilon))^2 - n^2}$, which is at most
    $2(n + \ln(1/\varepsilon))$. Our derivation, see `tail_bounds`.

    Args:
        n: batch size, at least 1.
        gamma: γ(X) or a lower bound of it, in (0, 1/2].
        failure_probability: ε, in (0, 1).

    Returns:
        A number of neurons.

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> neurons_for_confidence(8, 0.5, 1e-3)
        55
    """
    _check_n_gamma(n, gamma)
    if not 0 < failure_probability < 1:
        raise ValueError(f"failure_probability must be in (0, 1), got {failure_probability}.")
    total = n - math.log(failure_probability)
    return math.ceil((total + math.sqrt(total**2 - n**2)) / gamma)


def rank_times(
    x: Float[Tensor, "*draws n d"],
    *,
    generator: torch.Generator,
    target_rank: int | None = None,
    max_neurons: int = 1_000_000,
) -> Int[Tensor, "*draws target"]:
    r"""Simulate neurons one after the other and return how many it took to reach each rank.

    Weights are standard Gaussian float64 numbers; their variance changes no rank. The rank is that of the exact
    activations of these numbers, found modulo a prime (`bnlib.finite_field`): no tolerance enters. A neuron is taken
    for dependent by mistake about once in two thousand million, and never for independent.

    Args:
        x: batches, rows are samples, leading dimensions are independent draws.
        generator: source of the weights, on the device of x.
        target_rank: where to stop; the batch size if None. A rank that is out of reach (see
            `bnlib.collinear.attainable_rank`) costs max_neurons neurons.
        max_neurons: where to give up.

    Returns:
        Int64: entry r - 1 is the number of neurons when rank r was first reached, -1 if it was not.

    Raises:
        ValueError: if x is not a batch of finite numbers, or target_rank or max_neurons is out of range.

    Example:
        >>> rank_times(torch.eye(3, dtype=torch.float64), generator=torch.Generator().manual_seed(0)).shape
        torch.Size([3])
    """
    target = _checked_target(x, target_rank, max_neurons)
    batches = _scaled(x.reshape(-1, *x.shape[-2:]).double())
    group = max(1, 4 * _ELEMENTS // x.shape[-2] ** 2)
    times = [_grouped_times(part, generator, target, max_neurons) for part in batches.split(group)]
    return torch.cat(times).reshape(*x.shape[:-2], target)


def _grouped_times(
    batches: Float[Tensor, "draws n d"], generator: torch.Generator, target: int, max_neurons: int
) -> Int[Tensor, "draws target"]:
    """The times of as many draws as memory holds at once."""
    draws, n, d = batches.shape
    times = torch.full((draws, target), -1, dtype=torch.int64, device=batches.device)
    ranks = torch.zeros(draws, dtype=torch.int64, device=batches.device)
    running = torch.arange(draws, device=batches.device)
    # Rows that are orthogonal to all neurons so far, modulo the prime; zero rows are padding.
    complement = torch.eye(n, dtype=torch.int64, device=batches.device).repeat(draws, 1, 1)
    done = 0
    while len(running) and done < max_neurons:
        # The first neurons nearly all raise the rank: small chunks keep the elimination small. Later waits are long,
        # and a chunk as long as the wait so far wastes at most half; memory is the limit.
        count = max(8, n // 4) if done < 2 * n else done
        count = min(count, max_neurons - done, max(16, _ELEMENTS // (len(running) * max(n, d))))
        neurons = _activations(batches[running], count, generator)
        complement = _absorb(complement, neurons, done, times, ranks, running)
        done += count
        keep = ranks[running] < target
        running, complement = running[keep], complement[keep]
    return times


def _absorb(
    complement: Int[Tensor, "draws m n"],
    neurons: Int[Tensor, "draws n count"],
    done: int,
    times: Int[Tensor, "all target"],
    ranks: Int[Tensor, "all"],
    running: Int[Tensor, "draws"],
) -> Int[Tensor, "draws left n"]:
    """Take a chunk of neurons in: enter times and ranks in place, return the new complement without padding."""
    products = finite_field.matmul(complement, neurons)
    while True:
        raises = (products != 0).any(dim=1)
        hit = raises.any(dim=1) & (ranks[running] < times.shape[1])
        if not hit.any():
            break
        first = raises.to(torch.int64).argmax(dim=1)
        column = products.gather(2, first[:, None, None].expand(-1, products.shape[1], 1))[:, :, 0]
        pivot = (column != 0).to(torch.int64).argmax(dim=1)
        cleared = finite_field.eliminate(torch.cat([complement, products], dim=2), pivot, column)
        complement = torch.where(hit[:, None, None], cleared[:, :, : complement.shape[2]], complement)
        products = torch.where(hit[:, None, None], cleared[:, :, complement.shape[2] :], products)
        times[running[hit], ranks[running[hit]]] = done + first[hit] + 1
        ranks[running[hit]] += 1
    filled = (complement != 0).any(dim=2)
    order = filled.to(torch.int64).argsort(dim=1, descending=True, stable=True)
    left = max(1, int(filled.sum(dim=1).max()))
    return complement.gather(1, order[:, :left, None].expand(-1, -1, complement.shape[2]))


def _activations(
    batches: Float[Tensor, "draws n d"], count: int, generator: torch.Generator
) -> Int[Tensor, "draws n count"]:
    """Residues of ReLU(X w) for `count` new neurons w of each draw; which are active is decided exactly."""
    draws, _, d = batches.shape
    weights = torch.randn(draws, d, count, generator=generator, device=batches.device, dtype=torch.float64)
    rounded = batches @ weights
    margin = (d + 2) * torch.finfo(torch.float64).eps
    scale = batches.norm(dim=2)[:, :, None] * weights.norm(dim=1)[:, None, :]
    active = rounded > 0
    for draw, j, k in ((rounded.abs() <= margin * scale) & (scale > 0)).nonzero().tolist():
        active[draw, j, k] = _exact_sign(batches[draw, j], weights[draw, :, k])
    return finite_field.matmul(finite_field.residues(batches), finite_field.residues(weights)) * active


def _exact_sign(x: Float[Tensor, "d"], w: Float[Tensor, "d"]) -> bool:
    """Whether w·x > 0 for these binary fractions: rounding decides about once in 10^15 pairs otherwise."""
    return sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), w.tolist(), strict=True)) > 0


def _scaled(batches: Float[Tensor, "draws n d"]) -> Float[Tensor, "draws n d"]:
    """Scale each row by a power of two, exactly, to entries of order one: this changes no rank."""
    _, exponent = torch.frexp(batches.abs().amax(dim=2, keepdim=True))
    return torch.ldexp(batches, -exponent)


def _checked_target(x: Tensor, target_rank: int | None, max_neurons: int) -> int:
    if x.ndim < 2 or 0 in x.shape:
        raise RankError(f"x must have shape (..., n, d) without empty dimensions, got shape {tuple(x.shape)}.")
    if not torch.isfinite(x).all():
        raise RankError("x must hold finite numbers, got NaN or infinity.")
    n = x.shape[-2]
    target = n if target_rank is None else target_rank
    if not 1 <= target <= n:
        raise RankError(f"target_rank must be from 1 to the batch size {n}, got {target}.")
    if max_neurons < 1:
        raise RankError(f"max_neurons must be at least 1, got {max_neurons}.")
    return target


def _check_n_gamma(n: int, gamma: float) -> None:
    if n < 1:
        raise ValueError(f"n must be a batch size of at least 1, got {n}.")
    if not 0 < gamma <= 0.5:
        raise ValueError(f"gamma must be in (0, 1/2], got {gamma}.")
