"""The learning rate of Figure 2's networks: a grid that is thinned while it trains (successive halving)."""

import itertools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bnlib.layers import Stages
from bnlib.rank_experiments import finite_or_none
from bnlib.training import Network, accuracy, select_networks, shuffled_batches, train


def rate_search(
    network: Network,
    x: Float[Tensor, "samples d"],
    y: Int[Tensor, "samples"],
    stages: Stages,
    learning_rates: Sequence[float | int],
    *,
    batch_size: int,
    rounds: Sequence[int],
    generator: torch.Generator,
) -> list[dict[str, float | int | None]]:
    """Train the same starts on the same batches with every rate of a grid, and drop the worse half round by round.

    A rate is better if its loss, the mean over all networks and over the batches of the last epoch, is less; a rate at
    which some network diverged comes after all others, the smaller one first. What remains trains on from where it is.
    The search ends with the last round, or earlier when a single rate is left.

    Args:
        network: initial parameters of the networks that serve for the search alone.
        x: training samples; training runs in their type.
        y: their classes.
        stages: the stages of the hidden layers.
        learning_rates: the grid, without repetition.
        batch_size: samples a step.
        rounds: numbers of epochs, counted from the start and increasing, after which the grid is thinned.
        generator: source of the order of the samples.

    Returns:
        For each rate, in the order given: `rate`; `epochs` it was trained; `loss` (nats, None if a network diverged);
        `accuracy_min`, `accuracy_max`, the least and the largest training accuracy of a network at that time (0 after
        divergence).

    Raises:
        ValueError: if the grid is empty or the rounds do not increase from at least 1.

    Example:
        >>> from bnlib.rank_training import configuration, draw_networks, standardized_digits
        >>> generator, split = torch.Generator().manual_seed(0), standardized_digits()
        >>> network = draw_networks(configuration("He"), 64, 8, 1, networks=2, generator=generator)
        >>> options = {"batch_size": 128, "rounds": [1, 2, 3], "generator": generator}
        >>> rates = [0.001, 0.01, 0.1]
        >>> found = rate_search(network, split.train_x.float(), split.train_y, Stages.parse("NL"), rates, **options)
        >>> [one["epochs"] for one in found], best_rate(found)
        ([1, 2, 2], 0.1)
    """
    if len(learning_rates) == 0:
        raise ValueError("learning_rates must hold at least one rate, got an empty list.")
    if len(rounds) == 0 or rounds[0] < 1 or any(b <= a for a, b in itertools.pairwise(rounds)):
        raise ValueError(f"rounds must increase from at least 1 epoch, got {list(rounds)}.")
    count, steps = len(network[0].weight), len(x) // batch_size
    found: dict[float, dict[str, float | int | None]] = {}
    left = list(learning_rates)
    running = select_networks(network, [*range(count)] * len(left), dtype=x.dtype)
    done = 0
    for epochs in rounds:
        orders = shuffled_batches(len(x), batch_size, epochs - done, networks=count, generator=generator)
        batches = ((x[one].repeat(len(left), 1, 1), y[one].repeat(len(left), 1)) for one in orders)
        each = torch.tensor(left, device=x.device, dtype=x.dtype).repeat_interleave(count)
        trained = train(running, batches, stages, each)
        shares = accuracy(trained.network, x, y, stages, statistics_of=x).nan_to_num(0.0).view(len(left), count)
        # A loss that became infinite or NaN stays so in the mean.
        losses = trained.losses[-steps:].mean(dim=0).view(len(left), count).mean(dim=1).tolist()
        steady = (trained.diverged_at < 0).view(len(left), count).all(dim=1).tolist()
        for rate, loss, fine, ones in zip(left, losses, steady, shares.tolist(), strict=True):
            found[rate] = {
                "rate": rate,
                "epochs": epochs,
                "loss": finite_or_none(loss) if fine else None,
                "accuracy_min": min(ones),
                "accuracy_max": max(ones),
            }
        kept = sorted(left, key=lambda rate: _order(found[rate]))[: (len(left) + 1) // 2]
        if len(left) == 1 or len(kept) == 1:
            break
        where = [left.index(rate) for rate in kept]
        running = select_networks(trained.network, [one * count + k for one in where for k in range(count)])
        left, done = kept, epochs
    return [found[rate] for rate in learning_rates]


def best_rate(search: Sequence[dict[str, float | int | None]]) -> float | int:
    """Return the rate that a search chose: of those that trained longest the one with the least loss.

    Args:
        search: what `rate_search` returned.

    Returns:
        The rate; the smallest if all of them diverged.

    Example:
        >>> best_rate([{"rate": 0.1, "epochs": 2, "loss": 0.5}, {"rate": 1.0, "epochs": 2, "loss": None}])
        0.1
    """
    longest = max(one["epochs"] for one in search)
    return min((one for one in search if one["epochs"] == longest), key=_order)["rate"]


def edge_of_grid(rate: float | int, learning_rates: Sequence[float | int]) -> str:
    """Say whether a rate is the largest or the smallest of its grid, so that one beyond it might have been better.

    Returns:
        "upper", "lower" or "inside"; with a single rate "only".

    Example:
        >>> edge_of_grid(0.3, [0.1, 0.3]), edge_of_grid(0.1, [0.03, 0.1, 0.3])
        ('upper', 'inside')
    """
    if len(learning_rates) == 1:
        return "only"
    return {max(learning_rates): "upper", min(learning_rates): "lower"}.get(rate, "inside")


def _order(one: dict[str, float | int | None]) -> tuple[float, float]:
    loss = math.inf if one["loss"] is None else one["loss"]
    return loss, one["rate"]
