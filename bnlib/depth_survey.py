"""Tests of chapter 9 on training that need a search: depth scales, great depths at many rates, the choice of epsilon.

Each function is built so that its result can speak against the claim it serves: depths are searched without knowing
the theory, great depths are tried at several learning rates beside a shallow control, and an epsilon that was chosen
for its accuracy is judged on networks that had no part in the choice.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import mannwhitneyu
from torch import Tensor

from bnlib.trainability import Outcome, Setting
from bnlib.trainability_survey import (
    Generator,
    bootstrap_error,
    redrawn_depth,
    summary,
    train_once,
    trainable_depth,
)


def depth_search(
    split: tuple,
    setting: Setting,
    depths: Sequence[int],
    *,
    batch_size: int,
    width: int,
    steps: int,
    networks: int,
    generator: Generator,
    mark: float | int = 0.5,
) -> dict[str, Any]:
    """Train networks at growing depths until none of them reaches an accuracy.

    Args:
        split: see `bnlib.trainability_survey.split_data`.
        setting: of the networks.
        depths: increasing; the search ends at the first depth at which every network is below the mark.
        batch_size: samples a step.
        width: neurons a hidden layer.
        steps: how many.
        networks: how many at each depth.
        generator: makes a stream from labels.
        mark: accuracy.

    Returns:
        "depths" that were tried and "accuracies" of the networks there, None for a diverged network.

    Example:
        >>> import torch
        >>> from bnlib import seeds
        >>> from bnlib.data import digits
        >>> from bnlib.trainability_survey import split_data
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> sizes = dict(batch_size=32, width=8, steps=1, networks=2)
        >>> depth_search(split, Setting(), [2, 4], generator=lambda *key: seeds.generator(0, *key), **sizes)["depths"]
        [2]
    """
    tried, accuracies = [], []
    for depth in depths:
        stream = generator("depth search", setting.activation, setting.optimizer, depth)
        found = summary(*train_once(split, setting, depth, batch_size, width, steps, networks, stream))
        tried.append(depth)
        accuracies.append(found["accuracies"])
        if found["best"] < mark:
            break
    return {"depths": tried, "accuracies": accuracies}


def power_of_scale(
    scales: Sequence[float],
    searches: Sequence[dict[str, Any]],
    generator: np.random.Generator,
    *,
    mark: float | int = 0.5,
    samples: int = 400,
) -> dict[str, Any]:
    """The exponent with which the trainable depth grows with the predicted scale, and its standard error.

    Args:
        scales: predicted, different and positive, at least three.
        searches: of `depth_search`, one for each scale.
        generator: source of the randomness of the bootstrap over networks.
        mark: accuracy at which the trainable depth is read off, the same for all scales.
        samples: of the bootstrap.

    Returns:
        "depths" (None where accuracy does not cross the mark), "slope" of log depth over log scale by least squares
        (None if one is missing; 1 is proportionality, 0 a depth that does not know the scale); "bootstrap", its
        standard error over networks, None where fewer than half the samples have all depths; "scatter", its standard
        error from the depths' scatter about the line; and "error", the larger of the two.

    Raises:
        ValueError: fewer than three scales, or of another number than the searches.

    Example:
        >>> searches = [{"depths": [s, 3 * s], "accuracies": [[0.9, 0.9], [0.1, 0.1]]} for s in (1, 2, 4)]
        >>> found = power_of_scale([1.0, 2.0, 4.0], searches, np.random.default_rng(0), samples=9)
        >>> round(found["slope"], 12), found["depths"]
        (1.0, [2.0, 4.0, 8.0])
    """
    if len(scales) < 3 or len(scales) != len(searches):
        raise ValueError(f"scales must be at least 3, one for each search, got {len(scales)} for {len(searches)}.")
    x = np.log(scales)

    def slope(depths: Sequence[float | None]) -> float | None:
        return None if None in depths else float(np.polyfit(x, np.log(depths), 1)[0])

    means = [[float(np.mean([value or 0.0 for value in one])) for one in search["accuracies"]] for search in searches]
    depths = [trainable_depth(search["depths"], mean, mark=mark) for search, mean in zip(searches, means, strict=True)]
    found = slope(depths)
    drawn = [
        slope([redrawn_depth(search["depths"], search["accuracies"], generator, mark) for search in searches])
        for _ in range(samples)
    ]
    m = min(len(one) for search in searches for one in search["accuracies"])
    known = [value for value in drawn if value is not None]
    bootstrap = bootstrap_error(known, samples, m) if found is not None and m > 1 else None
    scatter = None if found is None else math.sqrt(np.polyfit(x, np.log(depths), 1, cov=True)[1][0, 0])
    return {
        "depths": depths,
        "slope": found,
        "bootstrap": bootstrap,
        "scatter": scatter,
        "error": None if bootstrap is None or scatter is None else max(bootstrap, scatter),
    }


def deep_and_shallow(
    split: tuple,
    settings: Sequence[Setting],
    rates: Sequence[Sequence[float]],
    depths: tuple[int, int],
    batch_sizes: Sequence[int],
    *,
    samples: int,
    width: int,
    generator: Generator,
) -> list[dict[str, Any]]:
    """Great depth beside a shallow control: every batch size sees equally many samples, at several learning rates.

    Args:
        split: see `bnlib.trainability_survey.split_data`.
        settings: one an optimizer.
        rates: learning rates of each of them.
        depths: shallow and deep.
        batch_sizes: of the training.
        samples: seen in the training, counted with repetition.
        width: neurons a hidden layer.
        generator: makes a stream from labels.

    Returns:
        Rows with "optimizer", "batch_size", "rate", "steps", and the accuracies "shallow" and "deep" of one network
        each (0 for a diverged one).

    Example:
        >>> import torch
        >>> from bnlib import seeds
        >>> from bnlib.data import digits
        >>> from bnlib.trainability_survey import split_data
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> options = dict(samples=64, width=8, generator=lambda *key: seeds.generator(0, *key))
        >>> rows = deep_and_shallow(split, [Setting()], [[0.1, 1.0]], (2, 4), [16, 32], **options)
        >>> [(row["batch_size"], row["rate"], row["steps"]) for row in rows]
        [(16, 0.1, 4), (16, 1.0, 4), (32, 0.1, 2), (32, 1.0, 2)]
    """
    rows = []
    for setting, chosen in zip(settings, rates, strict=True):
        for size in batch_sizes:
            steps = max(1, samples // size)
            several = replace(setting, learning_rate=tuple(chosen))
            accuracies = []
            for depth in depths:
                stream = generator("great depth", setting.optimizer, size, depth)
                found = summary(*train_once(split, several, depth, size, width, steps, len(chosen), stream))
                accuracies.append([value or 0.0 for value in found["accuracies"]])
            rows += [
                {
                    "optimizer": setting.optimizer,
                    "batch_size": size,
                    "rate": rate,
                    "steps": steps,
                    "shallow": shallow,
                    "deep": deep,
                }
                for rate, shallow, deep in zip(chosen, *accuracies, strict=True)
            ]
    return rows


def chosen_epsilon(
    split: tuple,
    setting: Setting,
    fractions: Sequence[float],
    critical: float | int,
    depth: int,
    *,
    batch_size: int,
    width: int,
    steps: int,
    networks: int,
    generator: Generator,
) -> dict[str, Any]:
    """Choose the best of several epsilons on some networks, and compare it with a tiny one on new networks.

    Args:
        split: see `bnlib.trainability_survey.split_data`.
        setting: of the networks; its own epsilon is the tiny one.
        fractions: of the critical epsilon, to choose from by the mean accuracy of two networks each.
        critical: epsilon.
        depth: hidden layers.
        batch_size: samples a step.
        width: neurons a hidden layer.
        steps: how many.
        networks: new ones, on each side of the comparison.
        generator: makes a stream from labels.

    Returns:
        "tried", rows with "fraction", "accuracy" and "accuracies" of the choice; the chosen "fraction" and "epsilon";
        "base" and "raised", see `bnlib.trainability_survey.summary`, of the new networks; "depth" and "activation";
        "p", of the one-sided rank test (Mann and Whitney, exact without ties) that the raised epsilon is no better.

    Example:
        >>> import torch
        >>> from bnlib import seeds
        >>> from bnlib.data import digits
        >>> from bnlib.trainability_survey import split_data
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> sizes = dict(batch_size=32, width=8, steps=2, networks=2, generator=lambda *key: seeds.generator(0, *key))
        >>> found = chosen_epsilon(split, Setting("tanh"), [0.5], 2.0, 3, **sizes)
        >>> found["epsilon"], len(found["raised"]["accuracies"])
        (1.0, 2)
    """
    label = f"{setting.activation} {setting.shift:g}"

    def trained(epsilon: float, count: int, part: str) -> dict[str, Any]:
        stream = generator("epsilon", label, part, f"{epsilon:g}")
        chosen = replace(setting, epsilon=epsilon)
        return summary(*train_once(split, chosen, depth, batch_size, width, steps, count, stream))

    tried = [{"fraction": fraction, **trained(fraction * critical, 2, "choice")} for fraction in fractions]
    best = max(tried, key=lambda row: row["accuracy"])["fraction"]
    base, raised = trained(setting.epsilon, networks, "test"), trained(best * critical, networks, "test")
    ranked = [[value or 0.0 for value in one["accuracies"]] for one in (raised, base)]
    return {
        "activation": setting.activation,
        "shift": setting.shift,
        "depth": depth,
        "tried": tried,
        "fraction": best,
        "epsilon": best * critical,
        "base": base,
        "raised": raised,
        "p": float(mannwhitneyu(*ranked, alternative="greater").pvalue),
    }


def part_of(outcome: Outcome, part: slice) -> Outcome:
    """The losses and probes of some of the networks that were trained together.

    Args:
        outcome: of a training whose probe is `bnlib.trainability.layer_gradients`.
        part: which networks.

    Returns:
        An `Outcome` whose network is that of all.

    Example:
        >>> import torch
        >>> from bnlib.trainability import Deep
        >>> empty = Deep((), (), (), torch.zeros(2, 1, 1), torch.zeros(2, 1, 1))
        >>> two = Outcome(empty, torch.zeros(1, 2), torch.zeros(2, dtype=torch.bool), ((0, {"a": torch.ones(2, 3)}),))
        >>> part_of(two, slice(0, 1)).probes[0][1]["a"].shape
        torch.Size([1, 3])
    """
    probes = tuple((step, {key: value[part] for key, value in probe.items()}) for step, probe in outcome.probes)
    return Outcome(outcome.network, outcome.losses[:, part], outcome.diverged[part], probes)


def layer_range(
    values: Float[Tensor, "networks layers"], generator: np.random.Generator, samples: int = 400
) -> dict[str, float | None]:
    """Largest over smallest layer of geometric means over networks, with a bootstrap error of the logarithm.

    Args:
        values: positive.
        generator: source of the randomness.
        samples: of the bootstrap.

    Returns:
        "ratio", and "error", the standard error of its logarithm (times sqrt(m / (m - 1)) for m networks; None for
        one network). A range of noisy means is too large rather than too small.

    Raises:
        ValueError: a value that is not positive.

    Example:
        >>> import torch
        >>> found = layer_range(torch.tensor([[1.0, 4.0, 2.0], [1.0, 4.0, 2.0]]), np.random.default_rng(0))
        >>> found["ratio"], found["error"] < 1e-9
        (4.0, True)
    """
    if not bool((values > 0).all()):
        raise ValueError(f"values must be positive, got {float(values.min())}.")
    logs = values.double().log().numpy(force=True)
    m = len(logs)
    drawn = [np.ptp(logs[generator.integers(0, m, m)].mean(axis=0)) for _ in range(samples)]
    # Rounded, so that a ratio of whole numbers stays one.
    ratio = float(np.round(np.exp(np.ptp(logs.mean(axis=0))), 12))
    return {"ratio": ratio, "error": float(np.std(drawn)) * math.sqrt(m / (m - 1)) if m > 1 else None}


def first_step_facts(outcome: Outcome, rate: float | int, generator: np.random.Generator) -> list[dict[str, Any]]:
    """What the first steps of SGD do to gradients and weights, layer by layer.

    Args:
        outcome: of a training with probes, the first of them before the first step.
        rate: learning rate.
        generator: source of the randomness of bootstraps.

    Returns:
        For each probe "step"; "range" and "range_error", see `layer_range`, of the weights' gradients over all layers;
        "moved", how many layers from the input on had rate * |gradient| > |weights| before the first step, and
        "moved_range", "moved_range_error" over these (None for fewer than two); "hump", the layer (from 1) with the
        largest relative gradient, and "lower_slope", "lower_slope_error", mean over networks of the slope per layer
        of its logarithm from the input to there (None for fewer than four layers); "grown", how many layers from the
        input on have weights of more than twice their initial length, and "grown_slope", "grown_slope_error" of the
        logarithm of that length over them (None for fewer than four).

    Example:
        >>> import torch
        >>> from bnlib.data import digits
        >>> from bnlib.trainability_survey import split_data
        >>> split = split_data(digits(), 0.8, torch.Generator().manual_seed(0))
        >>> found, _ = train_once(split, Setting(), 40, 64, 16, 1, 3, torch.Generator().manual_seed(1), (0, 1))
        >>> rows = first_step_facts(found, 0.1, np.random.default_rng(0))
        >>> rows[1]["range"] < rows[0]["range"], rows[1]["grown_slope"] < 0
        (True, True)
    """
    before = outcome.probes[0][1]
    moved = _leading(rate * before["weight_relative"].log().mean(dim=0).exp() > 1)
    rows = []
    for step, probe in outcome.probes:
        whole = layer_range(probe["weight"], generator)
        lower = layer_range(probe["weight"][:, :moved], generator) if moved > 1 else {"ratio": None, "error": None}
        relative = probe["weight_relative"].log()
        hump = int(relative.mean(dim=0).argmax()) + 1
        growth = (probe["weight_norm"] / before["weight_norm"]).log().mean(dim=0)
        grown = _leading(growth > math.log(2))
        lower_slope, lower_error = _slopes(relative[:, :hump])
        grown_slope, grown_error = _slopes(probe["weight_norm"][:, :grown].log())
        rows.append(
            {
                "step": step,
                "range": whole["ratio"],
                "range_error": whole["error"],
                "moved": moved,
                "moved_range": lower["ratio"],
                "moved_range_error": lower["error"],
                "hump": hump,
                "lower_slope": lower_slope,
                "lower_slope_error": lower_error,
                "grown": grown,
                "grown_slope": grown_slope,
                "grown_slope_error": grown_error,
            }
        )
    return rows


def _leading(flags: Tensor) -> int:
    return int(flags.long().cumprod(dim=0).sum())


def _slopes(logs: Tensor) -> tuple[float | None, float | None]:
    count, layers = logs.shape
    if layers < 4 or count < 2:
        return None, None
    slopes = np.polyfit(np.arange(layers), logs.numpy(force=True).T, 1)[0]
    return float(slopes.mean()), float(slopes.std(ddof=1) / math.sqrt(count))
