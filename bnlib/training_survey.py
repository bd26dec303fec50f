"""What chapter 10 makes of its runs: rows for tables and criteria, paired differences between configurations."""

from collections.abc import Sequence
from typing import Any

from bnlib.estimates import share_interval
from bnlib.paired import paired_difference, paired_times, sign_test

Row = dict[str, Any]
_STRICT = 0.001  # tail of an interval that is one of many: about twenty of them together miss with 2 percent a side


def cell(cells: Sequence[Row], name: str) -> Row:
    """Return the result of a configuration by its name.

    Raises:
        ValueError: no configuration of that name; the message lists those that there are.

    Example:
        >>> cell([{"name": "base", "networks": 3}], "base")["networks"]
        3
    """
    for one in cells:
        if one["name"] == name:
            return one
    raise ValueError(f"name must be one of {', '.join(one['name'] for one in cells)}, got {name!r}.")


def survival_row(one: Row, step: int | None = None) -> Row:
    """Condense a run of `bnlib.training_geometry.run_geometry` to one row: what was left at a step.

    Args:
        one: the run.
        step: a probed step; None for the last.

    Returns:
        The configuration, the row of that step (without its paired differences), "start_cluster_deg", the median angle
        within the cluster at the start, and "change", "change_low", "change_high": the median paired change of that
        angle in degrees, with its interval; at the end of the run "fitted", how many networks have less than a tenth
        of the loss that they started with, and, of those that started with an outlier, "fitted_started" and
        "fitted_kept" in number, with the exact interval "fitted_low", "fitted_high" of the share; likewise
        "finite_started", "finite_kept" and their interval for the networks that did not diverge. "again_low" and
        "again_high": exact interval of the share, among the networks that kept an outlier, in which it is the same
        sample. "..._lowest" and "..._highest" of "present" and of "finite": the same at 99.8 percent, for rules that
        look for one row out of many.

    Raises:
        ValueError: a step that was not probed.

    Example:
        >>> row = {"step": 0, "cluster_deg": 30.0, "cluster_change_deg": {"median": 0.0, "low": None, "high": None}}
        >>> survival_row({"name": "base", "rows": [row]})["start_cluster_deg"]
        30.0
    """
    steps = [row["step"] for row in one["rows"]]
    if step is not None and step not in steps:
        raise ValueError(f"step must be one of {steps}, got {step}.")
    row = one["rows"][-1 if step is None else steps.index(step)]
    described = {
        key: one[key]
        for key in ("name", "stages", "data", "batch_size", "depth", "learning_rate", "batches", "shift", "start")
        if key in one
    }
    change = row["cluster_change_deg"]
    described |= _ended(one.get("networks_seen"))
    if "kept" in row:
        described["again_low"], described["again_high"] = share_interval(row["same"], row["kept"])
        strict = share_interval(row["present"], row["networks"], tail=_STRICT)
        described["present_lowest"], described["present_highest"] = strict
    return {
        **described,
        "diverged": one.get("diverged"),
        **{key: value for key, value in row.items() if key != "cluster_change_deg"},
        "start_cluster_deg": one["rows"][0]["cluster_deg"],
        "change": change["median"],
        "change_low": change["low"],
        "change_high": change["high"],
    }


def _ended(seen: Row | None) -> Row:
    """Of the networks that did not diverge, and of those that fitted their batch: how many kept an outlier."""
    if seen is None:
        return {}
    first, last = seen["start"], seen["end"]
    pairs = list(zip(first["loss"], last["loss"], strict=True))
    found: Row = {}
    for name, good in (
        ("finite", [b is not None for _, b in pairs]),
        ("fitted", [b is not None and b < 0.1 * a for a, b in pairs]),
    ):
        started = [fine and there for fine, there in zip(good, first["present"], strict=True)]
        kept = sum(fine and there for fine, there in zip(started, last["present"], strict=True))
        found |= {f"{name}_started": sum(started), f"{name}_kept": kept}
        found[f"{name}_low"], found[f"{name}_high"] = share_interval(kept, sum(started))
        found[f"{name}_lowest"], found[f"{name}_highest"] = share_interval(kept, sum(started), tail=_STRICT)
        if name == "fitted":
            found[name] = sum(good)
    return found


def control_rows(cells: Sequence[Row]) -> list[Row]:
    """Compare training with random changes of the same size, with exact intervals of the shares that keep the sample.

    Args:
        cells: runs of `run_geometry`.

    Returns:
        One row a run and time ("first" step, "last" step): "relative_change", "started", and the shares "trained_same"
        and "random_same" with "..._low", "..._high"; None where no network started with an outlier.

    Example:
        >>> change = {"started": 4, "same": 4, "trained_same": 1, "relative_change": 0.1}
        >>> change |= {"only_noise": 3, "only_trained": 0}
        >>> row = control_rows([{"name": "base", "data": "digits", "changes": {"first": change}}])[0]
        >>> row["random_same"], row["trained_same"]
        (1.0, 0.25)
    """
    rows = []
    for one in cells:
        for time, change in one["changes"].items():
            row: Row = {"name": one["name"], "data": one["data"], "time": time}
            row |= {key: change[key] for key in ("relative_change", "started", "only_noise", "only_trained")}
            told = change["only_noise"] + change["only_trained"]
            row["p_value"] = sign_test(change["only_noise"], told)
            for key, count in (("trained_same", change["trained_same"]), ("random_same", change["same"])):
                row[key] = count / change["started"] if change["started"] else None
                row[f"{key}_low"], row[f"{key}_high"] = share_interval(count, change["started"])
            rows.append(row)
    return rows


def companion_rows(cells: Sequence[Row]) -> list[Row]:
    """List the shares of outliers that stay when companions are replaced, before and after training.

    Args:
        cells: runs of `run_geometry`.

    Returns:
        One row a run, time ("start", "end") and number of replaced companions, with what `bnlib.companions.companions`
        measured, "all", whether every companion was replaced, and the shares of "newcomer", "other" and "none" when the
        outlier itself is.

    Example:
        >>> measured = {"started": 2, "replaced": [{"count": 3, "same": 0.5}], "removed": {"none": 1.0}}
        >>> rows = companion_rows([{"name": "b", "data": "d", "batches": "fixed", "companions": {"start": measured}}])
        >>> rows[0]["same"], rows[0]["all"], rows[0]["none"]
        (0.5, True, 1.0)
    """
    rows = []
    for one in cells:
        for time, measured in one["companions"].items():
            most = max(entry["count"] for entry in measured["replaced"])
            for entry in measured["replaced"]:
                rows.append(
                    {
                        **{key: one[key] for key in ("name", "data", "batches")},
                        "time": time,
                        "started": measured["started"],
                        **entry,
                        "all": entry["count"] == most,
                        **measured["removed"],
                    }
                )
    return rows


def mode_rows(cells: Sequence[Row]) -> list[Row]:
    """Compare training mode with evaluation mode, before and after training, on own and on fresh batches.

    Args:
        cells: runs of `run_geometry`.

    Returns:
        One row a run, time and kind of batch: the shares of `bnlib.companions.evaluation`, and, network by network, the
        paired differences evaluation minus training mode of "angle_deg", "loss" and "accuracy" as "..._difference" (see
        `bnlib.paired.paired_difference`), each with the two means "..._train", "..._evaluation" over the pairs.

    Example:
        >>> measured = {"train_present": 1.0, "train_loss": [1.0, 2.0], "evaluation_loss": [2.0, 4.0]}
        >>> one = {"name": "b", "stages": "RC+NL", "data": "d", "batches": "fixed"}
        >>> row = mode_rows([one | {"evaluation": {"end": {"own": measured}}}])[0]
        >>> row["loss_difference"]["mean"], row["loss_train"]
        (1.5, 1.5)
    """
    rows = []
    for one in cells:
        for time, kinds in one["evaluation"].items():
            for kind, measured in kinds.items():
                row: Row = {key: one[key] for key in ("name", "stages", "data", "batches")}
                row |= {"time": time, "kind": kind}
                row |= {key: value for key, value in measured.items() if not isinstance(value, list)}
                for key in ("angle_deg", "loss", "accuracy"):
                    first, second = measured.get(f"train_{key}"), measured.get(f"evaluation_{key}")
                    if first is None or second is None:
                        continue
                    row[f"{key}_difference"] = paired_difference(first, second)
                    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
                    for index, mode in enumerate(("train", "evaluation")):
                        row[f"{key}_{mode}"] = sum(pair[index] for pair in pairs) / len(pairs) if pairs else None
                rows.append(row)
    return rows


def compare_collapse(cells: Sequence[Row], measure: str, pairs: Sequence[tuple[str, str, str, str]]) -> list[Row]:
    """Compare a measure of neural collapse between configurations or times, network by network.

    Args:
        cells: runs of `bnlib.neural_collapse.run_collapse`.
        measure: a field of `bnlib.neural_collapse.Collapse`.
        pairs: (name, time, name, time) with times "start" or "end": the second minus the first.

    Returns:
        One row a pair: "measure", "first", "second", and the paired difference.

    Example:
        >>> cells = [{"name": "a", "start": {"cosine": [0.0, 0.5]}, "end": {"cosine": [1.0, 2.0]}}]
        >>> compare_collapse(cells, "cosine", [("a", "start", "a", "end")])[0]["mean"]
        1.25
    """
    rows = []
    for first, when, second, then in pairs:
        a, b = cell(cells, first)[when][measure], cell(cells, second)[then][measure]
        rows.append(
            {"measure": measure, "first": f"{first}, {when}", "second": f"{second}, {then}"} | paired_difference(a, b)
        )
    return rows


def compare_times(arms: Sequence[Row], pairs: Sequence[tuple[str, str]]) -> list[Row]:
    """Compare the steps to the target between ways to start, network by network, at each size of the training set.

    Args:
        arms: runs of `bnlib.time_to_accuracy.run_arm`.
        pairs: (first arm, second arm): the second minus the first.

    Returns:
        One row a pair and size: the counts and sign test of `bnlib.paired.paired_times`, and the median difference in
        steps with its interval over the networks that reached the target under both.

    Example:
        >>> arms = [{"arm": "he", "samples": 8, "times": [5, 10]}, {"arm": "batch norm", "samples": 8, "times": [4, 4]}]
        >>> row = compare_times(arms, [("he", "batch norm")])[0]
        >>> row["sooner"], row["median"]
        (2, -3.5)
    """
    rows = []
    for size in sorted({one["samples"] for one in arms}):
        times = {one["arm"]: one["times"] for one in arms if one["samples"] == size}
        for first, second in pairs:
            if first not in times or second not in times:
                continue
            steps = paired_difference(times[first], times[second])
            rows.append(
                {
                    "samples": size,
                    "first": first,
                    "second": second,
                    **paired_times(times[first], times[second]),
                    **{key: steps[key] for key in ("pairs", "median", "low", "high")},
                }
            )
    return rows


def imposed_rows(arms: Sequence[Row], arm: str = "cluster and outlier") -> list[Row]:
    """How many networks of an arm start with an outlier, on the reference batch and on others, with exact intervals.

    Args:
        arms: runs of `run_arm`.
        arm: which.

    Returns:
        One row a size and group: "samples", "group", "present", "networks", "low", "high", "angle_deg".

    Example:
        >>> group = {"present": 2, "networks": 2, "angle_deg": 90.0, "mean_angle_deg": 20.0}
        >>> imposed_rows([{"arm": "cluster and outlier", "samples": 8, "start": {"reference": group}}])[0]["high"]
        1.0
    """
    rows = []
    for one in arms:
        if one["arm"] != arm:
            continue
        for group, found in one["start"].items():
            low, high = share_interval(found["present"], found["networks"])
            rows.append({"samples": one["samples"], "group": group, **found, "low": low, "high": high})
    return rows
