r"""What Figure 2's cells come to: means, counts of networks with exact intervals, differences with theirs."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from bnlib.rank_experiments import mean_and_error, share_interval

NEAR_PERFECT = 0.99  # training accuracy, our reading of "near-perfect"
ERROR = 0.05  # on each side of the interval of a share
DIFFERENCE_ERROR = 0.005  # on each side of the interval of a difference of means
_FEWEST = 3  # networks on each side, below which a difference is not judged


def count_interval(count: int, networks: int, name: str) -> dict[str, float | int]:
    """Return a count of networks, and the exact interval of the share that it estimates, by name.

    Args:
        count: networks with a property.
        networks: all of them, at least 1.
        name: begins the keys.

    Returns:
        `<name>_count`, `<name>_low`, `<name>_high`: Clopper and Pearson's, error 0.05 on each side. Five of five
        networks put more than one half into it.

    Raises:
        ValueError: if count is not from 0 to networks.

    Example:
        >>> [round(one, 3) for one in count_interval(5, 5, "trained").values()]
        [5, 0.549, 1.0]
    """
    low, high = share_interval(count, networks, error=ERROR)
    return {f"{name}_count": count, f"{name}_low": low, f"{name}_high": high}


def cell_summary(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of `bnlib.rank_training.depth_cell` as the results file holds it: lists, and what they come to.

    Args:
        cell: what `depth_cell` returned.

    Returns:
        The cell without the deviations of single layers, and for each tolerance `rank_mean`, `rank_error`, for each
        definition `effective_mean`, `effective_error`, further `live_mean`, `live_error`; `lost_mean`, `lost_error`,
        `lost_max`: the share by which a network's rank at the finest tolerance is below its number of neurons that are
        not silent; `train_median`; `grid_max`, the best accuracy met in the search for a learning rate; `networks`;
        and by `count_interval` `trained` (networks that reached the training accuracy 0.99) and `rank_one` (networks
        of rank one at every tolerance).

    Example:
        >>> lists = {"rank": {"0.1": [1, 3]}, "effective": {"entropy": [2.0, 2.0]}, "live_neurons": [4, 6]}
        >>> found = cell_summary({**lists, "train": [1.0, None, 0.5], "grid": [{"accuracy_max": 0.9}]})
        >>> found["rank_mean"], found["live_error"], found["train_median"], found["trained_count"]
        ({'0.1': 2.0}, 1.0, 0.5, 1)
    """
    found = {key: value for key, value in cell.items() if not key.startswith("deviation")}
    for name in ("rank", "effective"):
        pairs = {key: mean_and_error(np.array(values)) for key, values in cell[name].items()}
        found[f"{name}_mean"] = {key: mean for key, (mean, _) in pairs.items()}
        found[f"{name}_error"] = {key: error for key, (_, error) in pairs.items()}
    live = np.array(cell["live_neurons"])
    found["live_mean"], found["live_error"] = mean_and_error(live)
    ranks = np.array(list(cell["rank"].values()))
    lost = 1 - ranks.max(axis=0) / np.maximum(live, 1)
    found["lost_mean"], found["lost_error"] = mean_and_error(lost)
    found["lost_max"] = float(lost.max())
    found["grid_max"] = max(one["accuracy_max"] for one in cell["grid"])
    shares = counted(cell["train"])
    found["train_median"] = float(np.median(shares))
    found["networks"] = len(shares)
    reached = sum(share >= NEAR_PERFECT for share in shares)
    lines = int((ranks == 1).all(axis=0).sum())
    return found | count_interval(reached, len(shares), "trained") | count_interval(lines, ranks.shape[1], "rank_one")


def counted(shares: Sequence[float | int | None]) -> list[float | int]:
    """Return accuracies with 0 for a network that diverged.

    Example:
        >>> counted([0.5, None])
        [0.5, 0.0]
    """
    return [0.0 if share is None else share for share in shares]


def contraction(cell: dict[str, Any]) -> dict[str, Any]:
    r"""Return the factor by which one layer changes what differs between the samples, in the deeper half of a network.

    With $D_\ell = \lVert GX_\ell\rVert$ and $L$ hidden layers it is $(D_L/D_h)^{1/(L - h)}$ with
    $h = \lceil L/2\rceil$, for each network; means and standard errors are over the networks.

    Args:
        cell: what `depth_cell` returned, with at least two hidden layers.

    Returns:
        `configuration`, `from_layer`, `to_layer`, `factor`, `factor_error`, `networks`, and `share_first`,
        `share_last`: the mean of $\lVert GX\rVert / \lVert X\rVert$ at layer h and at layer L.

    Raises:
        ValueError: if there is a single hidden layer.

    Example:
        >>> two = {"configuration": "He", "deviation_norm": [[2.0, 1.0], [2.0, 1.0]], "deviation": [[0.2, 0.1]] * 2}
        >>> found = contraction(two)
        >>> round(found["factor"], 12), found["from_layer"], found["to_layer"]
        (0.5, 1, 2)
    """
    norms, shares = np.array(cell["deviation_norm"]), np.array(cell["deviation"])
    depth = norms.shape[1]
    if depth < 2:
        raise ValueError(f"cell must have at least 2 hidden layers, got {depth}.")
    half = (depth + 1) // 2
    factor, error = mean_and_error((norms[:, -1] / norms[:, half - 1]) ** (1 / (depth - half)))
    return {
        "configuration": cell["configuration"],
        "from_layer": half,
        "to_layer": depth,
        "factor": factor,
        "factor_error": error,
        "networks": len(norms),
        "share_first": float(shares[:, half - 1].mean()),
        "share_last": float(shares[:, -1].mean()),
    }


def mean_difference(
    first: Sequence[float | int], second: Sequence[float | int]
) -> dict[str, float | int | bool | None]:
    """Return how much the mean of one sample exceeds that of another, with Welch's interval.

    Args:
        first: one sample, any unit.
        second: the other, same unit.

    Returns:
        `first`, `second`: the numbers of values; `judged`: whether both are at least 3; if so `difference`, its
        standard `error`, `low` and `high` (Welch and Satterthwaite's interval, error 0.005 on each side), else None.

    Example:
        >>> found = mean_difference([0.9, 0.91, 0.92], [0.8, 0.81, 0.82])
        >>> round(found["difference"], 9), round(found["low"], 3), round(found["high"], 3)
        (0.1, 0.062, 0.138)
    """
    sizes = {"first": len(first), "second": len(second)}
    if min(len(first), len(second)) < _FEWEST:
        return sizes | {"judged": False, "difference": None, "error": None, "low": None, "high": None}
    (one, one_error), (two, two_error) = mean_and_error(np.array(first)), mean_and_error(np.array(second))
    error, difference = math.hypot(one_error, two_error), one - two
    reach = 0.0
    if error > 0:
        freedom = error**4 / (one_error**4 / (len(first) - 1) + two_error**4 / (len(second) - 1))
        reach = float(student.ppf(1 - DIFFERENCE_ERROR, freedom)) * error
    return sizes | {
        "judged": True,
        "difference": difference,
        "error": error,
        "low": difference - reach,
        "high": difference + reach,
    }


def differences_in_test(
    first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]], *, trained_only: bool
) -> list[dict[str, Any]]:
    """Return, depth by depth, how much higher the first configuration's mean test accuracy is than the second's.

    Args:
        first: cells of one configuration, with `train` and `test`, one accuracy a network.
        second: cells of another, of the same depths.
        trained_only: whether to take only the networks with training accuracy 0.99 or more; otherwise all are taken,
            and a network that diverged counts as zero.

    Returns:
        `depth` and the entries of `mean_difference`.

    Example:
        >>> one = {"depth": 1, "train": [1.0, 1.0, 1.0], "test": [0.9, 0.9, 0.9]}
        >>> two = {"depth": 1, "train": [1.0, 1.0, None], "test": [0.8, 0.8, None]}
        >>> [differences_in_test([one], [two], trained_only=only)[0]["judged"] for only in (False, True)]
        [True, False]
    """

    def values(cell: dict[str, Any]) -> list[float | int]:
        pairs = zip(counted(cell["train"]), counted(cell["test"]), strict=True)
        return [test for train, test in pairs if train >= NEAR_PERFECT or not trained_only]

    return [
        {"depth": one["depth"]} | mean_difference(values(one), values(two))
        for one, two in zip(first, second, strict=True)
    ]
