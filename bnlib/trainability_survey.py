"""Training runs of chapter 9 on small labeled data: depth and batch size, epsilon, activations, first steps.

Results are plain numbers for a results file. Networks are trained for a fixed number of steps, so that a small batch
sees fewer samples; accuracy is measured on samples that were not trained on, in batches of the training's size that
are normalized with their own statistics.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from bnlib.data import LabeledData
from bnlib.paired import sign_test
from bnlib.trainability import (
    Outcome,
    Setting,
    batch_accuracy,
    deep_networks,
    drawn_batches,
    layer_gradients,
    train_deep,
)

Generator = Callable[..., torch.Generator]


def split_data(
    data: LabeledData, share: float, generator: torch.Generator
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Shuffle labeled data, split it into training and held-out samples, and center and scale both parts.

    The mean of each feature and the common scale are those of the training samples: nothing of the held-out ones is
    used.

    Args:
        data: features and labels.
        share: of the samples to train on, above 0 and below 1.
        generator: source of the order, and the device.

    Returns:
        (features, labels) twice, float32.

    Raises:
        ValueError: share is not between 0 and 1.

    Example:
        >>> from bnlib.data import digits
        >>> train, test = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> len(train[0]), len(test[0])
        (1437, 360)
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be above 0 and below 1, got {share}.")
    x, y = data[0].flatten(1).float().to(generator.device), data[1].to(generator.device)
    order = torch.randperm(len(x), generator=generator, device=generator.device)
    x, y = x[order], y[order]
    cut = int(share * len(x))
    x = x - x[:cut].mean(dim=0)
    x = x / x[:cut].std()
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def train_once(
    split: tuple,
    setting: Setting,
    depth: int,
    batch_size: int,
    width: int,
    steps: int,
    networks: int,
    generator: torch.Generator,
    probe_steps: Sequence[int] = (),
) -> tuple[Outcome, torch.Tensor]:
    """Train independent networks and measure their accuracy on held-out samples.

    Args:
        split: see `split_data`.
        setting: of the networks.
        depth: hidden layers.
        batch_size: samples a step.
        width: neurons a hidden layer.
        steps: how many.
        networks: how many, each with its own weights and batches.
        generator: source of the randomness.
        probe_steps: after how many steps `bnlib.trainability.layer_gradients` is taken, on one further batch.

    Returns:
        The outcome and the accuracies, shape (networks,); NaN where outputs are not finite.

    Example:
        >>> from bnlib.data import digits
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> _, shares = train_once(split, Setting(), 2, 64, 16, 20, 2, torch.Generator().manual_seed(1))
        >>> bool((shares > 0.3).all())
        True
    """
    (x, y), held_out = split
    classes = int(max(y.max(), held_out[1].max())) + 1
    network = deep_networks(x.shape[1], width, depth, classes, setting, networks=networks, generator=generator)
    batches = drawn_batches(x, y, batch_size, steps + 1, networks=networks, generator=generator)
    outcome = train_deep(
        network,
        batches[:steps],
        setting,
        probe=lambda net: layer_gradients(net, *batches[-1], setting),
        probe_steps=probe_steps,
    )
    return outcome, batch_accuracy(outcome.network, *held_out, batch_size, setting)


def summary(outcome: Outcome, accuracies: torch.Tensor) -> dict[str, Any]:
    """Accuracies of networks with NaN told apart: a network whose loss is not finite counts as accuracy None.

    Args:
        outcome: of the training.
        accuracies: one a network.

    Returns:
        "accuracies" (None for a diverged network), "accuracy" (mean over networks, a diverged one counted as 0),
        "worst" and "best" of the networks (a diverged one again counted as 0) and "diverged" (how many).

    Example:
        >>> from bnlib.trainability import Deep
        >>> empty = Deep((), (), (), torch.zeros(2, 1, 1), torch.zeros(2, 1, 1))
        >>> diverged = torch.tensor([False, True])
        >>> summary(Outcome(empty, torch.zeros(1, 2), diverged, ()), torch.tensor([0.5, float("nan")]))
        {'accuracies': [0.5, None], 'accuracy': 0.25, 'worst': 0.0, 'best': 0.5, 'diverged': 1}
    """
    failed = outcome.diverged | ~accuracies.isfinite()
    values = [None if bad else value for value, bad in zip(accuracies.tolist(), failed.tolist(), strict=True)]
    return {
        "accuracies": values,
        "accuracy": sum(value or 0.0 for value in values) / len(values),
        "worst": min(value or 0.0 for value in values),
        "best": max(value or 0.0 for value in values),
        "diverged": int(failed.sum()),
    }


def trainable_depth(
    depths: Sequence[int], accuracies: Sequence[float], chance: float = 0.1, *, mark: float | int | None = None
) -> float | None:
    """Depth at which accuracy falls half-way from the shallowest network's to chance, interpolated linearly.

    Args:
        depths: increasing.
        accuracies: mean accuracy at each depth.
        chance: accuracy of guessing.
        mark: another accuracy to look for than the one half-way.

    Returns:
        The depth; None if accuracy stays above the mark, or the shallowest network did not learn (or not to the mark).

    Example:
        >>> trainable_depth([4, 8, 16], [0.9, 0.7, 0.3])
        12.0
    """
    if accuracies[0] < (3 * chance if mark is None else mark):
        return None
    mark = (accuracies[0] + chance) / 2 if mark is None else mark
    for index in range(1, len(depths)):
        if accuracies[index] < mark:
            high, low = accuracies[index - 1], accuracies[index]
            return depths[index - 1] + (depths[index] - depths[index - 1]) * (high - mark) / (high - low)
    return None


def trainable_depth_error(
    depths: Sequence[int],
    accuracies: Sequence[Sequence[float | None]],
    generator: np.random.Generator,
    samples: int = 400,
) -> float | None:
    """Standard error of `trainable_depth` over networks, by the bootstrap: networks are drawn anew at each depth.

    Args:
        depths: increasing.
        accuracies: of the networks at each depth, at least two; None counts as 0.
        generator: source of the randomness.
        samples: of the bootstrap.

    Returns:
        The spread, times sqrt(m / (m - 1)) for m networks, which the bootstrap of a mean leaves out; None where fewer
        than half the samples have a trainable depth.

    Raises:
        ValueError: fewer than two networks.

    Example:
        >>> trainable_depth_error([4, 8], [[0.9, 0.9], [0.2, 0.2]], np.random.default_rng(0))
        0.0
    """
    m = min(len(one) for one in accuracies)
    if m < 2:
        raise ValueError(f"accuracies must be of at least two networks at each depth, got {m}.")
    found = [redrawn_depth(depths, accuracies, generator) for _ in range(samples)]
    return bootstrap_error([one for one in found if one is not None], samples, m)


def redrawn_depth(
    depths: Sequence[int],
    accuracies: Sequence[Sequence[float | None]],
    generator: np.random.Generator,
    mark: float | int | None = None,
) -> float | None:
    """`trainable_depth` of one bootstrap sample: at each depth networks are drawn anew from those that were trained.

    Args:
        depths: increasing.
        accuracies: of the networks at each depth; None counts as 0.
        generator: source of the randomness.
        mark: as in `trainable_depth`.

    Example:
        >>> redrawn_depth([4, 8], [[0.9, 0.9], [0.1, 0.1]], np.random.default_rng(0), mark=0.5)
        6.0
    """
    tables = [np.array([value or 0.0 for value in one]) for one in accuracies]
    return trainable_depth(depths, [float(generator.choice(one, len(one)).mean()) for one in tables], mark=mark)


def bootstrap_error(values: Sequence[float], samples: int, networks: int) -> float | None:
    """Standard error from bootstrap samples of networks.

    Args:
        values: what the samples gave, those that gave something.
        samples: how many there were.
        networks: drawn in each of them, at least two.

    Returns:
        The spread, times sqrt(m / (m - 1)) for m networks, which the bootstrap of a mean leaves out; None where fewer
        than half the samples gave a value.

    Example:
        >>> bootstrap_error([1.0, 3.0], 2, 2) == math.sqrt(2), bootstrap_error([1.0], 3, 2)
        (True, None)
    """
    return float(np.std(values)) * math.sqrt(networks / (networks - 1)) if len(values) >= samples / 2 else None


def plain_rows(
    split: tuple,
    variances: Sequence[float],
    depth: int,
    *,
    batch_size: int,
    width: int,
    steps: int,
    networks: int,
    generator: Generator,
) -> list[dict[str, Any]]:
    """Train networks of tanh without batch normalization, at several variances of the weights.

    Args:
        split: see `split_data`.
        variances: sigma^2; 1 is critical for tanh.
        depth: hidden layers.
        batch_size: samples a step.
        width: neurons a hidden layer.
        steps: of Adam, at a learning rate of 0.001.
        networks: how many of each.
        generator: makes a stream from labels.

    Returns:
        Rows with "variance" and the keys of `summary`.

    Example:
        >>> from bnlib import seeds
        >>> from bnlib.data import digits
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> sizes = dict(batch_size=16, width=8, steps=2, networks=2)
        >>> rows = plain_rows(split, [0.5], 4, generator=lambda *key: seeds.generator(0, *key), **sizes)
        >>> rows[0]["variance"], len(rows[0]["accuracies"])
        (0.5, 2)
    """
    rows = []
    for variance in variances:
        setting = Setting("tanh", optimizer="adam", learning_rate=0.001, weight_variance=variance, batch_norm=False)
        found = train_once(
            split, setting, depth, batch_size, width, steps, networks, generator("plain", f"{variance:g}")
        )
        rows.append({"variance": float(variance), **summary(*found)})
    return rows


def equilibration(outcome: Outcome) -> list[dict[str, Any]]:
    """Gradients layer by layer at the probed steps: geometric means over networks.

    Args:
        outcome: of a training with `probe_steps`.

    Returns:
        For each probe "step", and for each key of `layer_gradients` the exponential of the mean logarithm by layer;
        "slope", the mean over networks of the least-squares slope of log |gradient of W| per layer (negative: larger
        at the input), its "slope_error", and the same of the relative gradient |gradient of W| / |W| as
        "relative_slope" and "relative_slope_error"; "weight_relative_error" and "gain_relative_error", standard errors
        of the mean logarithms by layer. Networks with a gradient that is zero or not finite are left out.

    Example:
        >>> from bnlib.data import digits
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> found, _ = train_once(split, Setting(), 8, 64, 16, 1, 3, torch.Generator().manual_seed(1), (0, 1))
        >>> [row["step"] for row in equilibration(found)], equilibration(found)[0]["slope"] < 0
        ([0, 1], True)
    """
    rows = []
    for step, probe in outcome.probes:
        good = (torch.stack([probe["weight"], probe["gain"]]) > 0).all(dim=2).all(dim=0)
        good &= torch.stack([value.isfinite().all(dim=1) for value in probe.values()]).all(dim=0)
        row: dict[str, Any] = {"step": step, "networks": int(good.sum())}
        logs = {key: value[good].log() for key, value in probe.items()}
        row |= {key: value.mean(dim=0).exp().tolist() if good.any() else None for key, value in logs.items()}
        for key in ("weight_relative", "gain_relative"):
            row[f"{key}_error"] = (
                (logs[key].std(dim=0) / math.sqrt(len(logs[key]))).tolist() if len(logs[key]) > 1 else None
            )
        for key, name in (("weight", "slope"), ("weight_relative", "relative_slope"), ("gain_relative", "gain_slope")):
            slopes = [float(np.polyfit(np.arange(len(one)), one.numpy(force=True), 1)[0]) for one in logs[key]]
            row[name] = sum(slopes) / len(slopes) if slopes else None
            row[f"{name}_error"] = float(np.std(slopes, ddof=1) / math.sqrt(len(slopes))) if len(slopes) > 1 else None
        rows.append(row)
    return rows


def acceleration(
    split: tuple,
    rates: Sequence[float],
    shifts: Sequence[float],
    epsilons: Sequence[float],
    *,
    depth: int,
    batch_size: int,
    width: int,
    steps: int,
    networks: int,
    generator: Generator,
) -> list[dict[str, Any]]:
    """Sweep learning rate, and initial shift (beta) or epsilon, with the same weights and batches in every cell.

    Args:
        split: see `split_data`.
        rates: learning rates of plain SGD.
        shifts: initial beta, at the first epsilon.
        epsilons: added to the variance, at the first shift.
        depth: hidden layers.
        batch_size: samples a step.
        width: neurons a hidden layer.
        steps: how many; the mean loss of the first half tells early progress.
        networks: seeds, each the same weights and batches in all cells.
        generator: makes a stream from labels.

    Returns:
        One row a cell with "rate", "shift", "epsilon", the median "accuracy", the median "early_loss" and all
        "early_losses" (None where not finite).

    Example:
        >>> from bnlib import seeds
        >>> from bnlib.data import digits
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> sizes = dict(depth=2, batch_size=32, width=8, steps=4, networks=2)
        >>> len(acceleration(split, [0.1], [0.0], [0.1], generator=lambda *key: seeds.generator(0, *key), **sizes))
        1
    """
    rows = []
    for rate in rates:
        cells = [(shift, epsilons[0]) for shift in shifts] + [(shifts[0], epsilon) for epsilon in epsilons[1:]]
        for shift, epsilon in cells:
            setting = replace(Setting(), learning_rate=rate, shift=shift, epsilon=epsilon)
            # The same stream in every cell: the seeds are paired.
            outcome, shares = train_once(split, setting, depth, batch_size, width, steps, networks, generator("sweep"))
            early = outcome.losses[: max(1, steps // 2)].mean(dim=0)
            rows.append(
                {
                    "rate": rate,
                    "shift": shift,
                    "epsilon": epsilon,
                    "accuracy": float(shares.nan_to_num(0.0).median()),
                    "early_loss": float(early.nan_to_num(1e9, 1e9).median()),
                    "early_losses": [float(one) if math.isfinite(one) else None for one in early.tolist()],
                    "diverged": int(outcome.diverged.sum()),
                }
            )
    return rows


def faster_seeds(rows: Sequence[dict[str, Any]], rate: float, changed: dict[str, float]) -> dict[str, Any]:
    """Compare one cell of `acceleration` with the plain one (smallest epsilon and shift) at the same learning rate.

    Args:
        rows: of `acceleration`.
        rate: learning rate.
        changed: "shift" and/or "epsilon" of the other cell; what is missing stays plain.

    Returns:
        "rate", the cell's "shift" and "epsilon", "faster" (seeds whose early loss is lower than the plain one's),
        "seeds", and the "gain", the median of plain minus changed early loss.

    Example:
        >>> base = {"rate": 1.0, "shift": 0.0, "epsilon": 0.0, "early_losses": [2.0, 2.0]}
        >>> rows = [base, base | {"shift": 0.5, "early_losses": [1.0, 3.0]}]
        >>> faster_seeds(rows, 1.0, {"shift": 0.5})["faster"]
        1
    """
    plain = {"shift": min(row["shift"] for row in rows), "epsilon": min(row["epsilon"] for row in rows)}

    def cell(wanted: dict[str, float]) -> dict[str, Any]:
        return next(row for row in rows if row["rate"] == rate and all(row[key] == wanted[key] for key in wanted))

    other = plain | changed
    pairs = [
        (a, b)
        for a, b in zip(cell(plain)["early_losses"], cell(other)["early_losses"], strict=True)
        if a is not None and b is not None
    ]
    gains = [a - b for a, b in pairs]
    return {
        "rate": rate,
        **other,
        "faster": sum(gain > 0 for gain in gains),
        "seeds": len(gains),
        "gain": float(np.median(gains)) if gains else None,
    }


def sign_tests(rows: Sequence[dict[str, Any]], level: float | int = 0.05) -> list[dict[str, Any]]:
    """Two-sided exact sign tests of several cells, corrected for their number by Holm's procedure.

    Args:
        rows: of `faster_seeds`.
        level: of all tests together.

    Returns:
        The rows with "p" (two-sided, of the cell alone), "holm" (adjusted), and "direction": 1 faster, -1 slower, 0
        undecided at the level.

    Example:
        >>> rows = sign_tests([{"faster": 12, "seeds": 12}, {"faster": 1, "seeds": 12}, {"faster": 6, "seeds": 12}])
        >>> [row["direction"] for row in rows]
        [1, -1, 0]
    """
    p = [sign_test(row["faster"], row["seeds"]) for row in rows]
    adjusted, reached = [1.0] * len(rows), 0.0
    for place, index in enumerate(sorted(range(len(rows)), key=lambda index: p[index])):
        reached = max(reached, min(1.0, (len(rows) - place) * p[index]))
        adjusted[index] = reached
    return [
        {
            **row,
            "p": one,
            "holm": holm,
            "direction": 0 if holm > level else (1 if 2 * row["faster"] > row["seeds"] else -1),
        }
        for row, one, holm in zip(rows, p, adjusted, strict=True)
    ]
