"""Figures of chapter 10: survival along training, companions, neural collapse, time to accuracy, dedicated neurons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bnlib.figures import COLORS, MARKERS, ink, line_style

Row = Mapping[str, Any]


def _steps_axis(axes: Axes, last: int) -> None:
    axes.set_xscale("symlog", linthresh=1, linscale=0.6)
    axes.set_xlim(-0.15, 1.4 * last)
    ticks = [0] + [10**power for power in range(6) if 10**power <= last]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xlabel("steps of training")


def survival(axes: Axes, run: Row, title: str, resampled: Row | None = None) -> None:
    """Draw the shares of networks that keep an outlier, and that keep the same one, with exact intervals.

    Args:
        axes: the panel.
        run: of `bnlib.training_geometry.run_geometry`, on fixed batches.
        title: of the panel.
        resampled: the run of the same networks on resampled batches, of which the second share is drawn too.
    """
    rows = run["rows"]
    steps = [row["step"] for row in rows]
    curves = [(rows, "kept", "an outlier"), (rows, "same", "the same outlier")]
    if resampled is not None:
        curves.append((resampled["rows"], "same", "the same, resampled batches"))
    for index, (found, key, label) in enumerate(curves):
        at = [row["step"] for row in found]
        shares = np.array([row[key] / row["started"] if row["started"] else np.nan for row in found])
        low = np.array([np.nan if row[f"{key}_low"] is None else row[f"{key}_low"] for row in found])
        high = np.array([np.nan if row[f"{key}_high"] is None else row[f"{key}_high"] for row in found])
        axes.plot(at, shares, label=label, **line_style(index))
        axes.fill_between(at, low, high, color=COLORS[index], alpha=0.18, linewidth=0)
    axes.axhline(rows[0]["chance"], color="black", linestyle=":", linewidth=1)
    axes.annotate("chance", (steps[-1], rows[0]["chance"]), ha="right", va="bottom", fontsize=9)
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("share of networks")
    axes.set_title(title, loc="right")
    _steps_axis(axes, steps[-1])
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=8)


def along_training(axes: Axes, runs: Sequence[tuple[str, Row]], key: str, label: str) -> None:
    """Draw the median of a quantity over the steps, one curve a run, with the intervals of the medians.

    Args:
        axes: the panel.
        runs: names and runs of `run_geometry`.
        key: of a row.
        label: of the axis.
    """
    last = 1
    for index, (name, run) in enumerate(runs):
        rows = [row for row in run["rows"] if row[key] is not None]
        if not rows:
            continue
        steps = [row["step"] for row in rows]
        last = max(last, steps[-1])
        axes.plot(steps, [row[key] for row in rows], label=name, **line_style(index))
        known = [row for row in rows if row[f"{key}_low"] is not None and row[f"{key}_high"] is not None]
        axes.fill_between(
            [row["step"] for row in known],
            [row[f"{key}_low"] for row in known],
            [row[f"{key}_high"] for row in known],
            color=COLORS[index % len(COLORS)],
            alpha=0.15,
            linewidth=0,
        )
    axes.set_ylabel(label)
    _steps_axis(axes, last)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def companions(axes: Axes, rows: Sequence[Row], title: str) -> None:
    """Draw the share of outliers that stay over the number of replaced companions, with two standard errors.

    Args:
        axes: the panel.
        rows: of `bnlib.training_survey.companion_rows`, all of one data set.
        title: of the panel.
    """
    groups: dict[str, list[Row]] = {}
    for row in rows:
        label = "before training" if row["time"] == "start" else f"after training, {row['batches']} batches"
        if row["time"] == "start" and row["batches"] != "fixed":
            continue  # the same networks and batches as with fixed batches
        groups.setdefault(label, []).append(row)
    for index, (label, found) in enumerate(groups.items()):
        good = [row for row in found if row["same"] is not None]
        if not good:
            continue
        style = line_style(index)
        axes.errorbar(
            [row["count"] for row in good],
            [row["same"] for row in good],
            yerr=[2 * (row["same_error"] or 0) for row in good],
            capsize=3,
            label=label,
            **style,
        )
    axes.set_ylim(-0.05, 1.05)
    axes.set_xlabel("companions replaced")
    axes.set_ylabel("share in which it stays")
    axes.set_title(title, loc="right")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=8)


def collapse_curves(axes: Sequence[Axes] | np.ndarray, cells: Sequence[Row]) -> None:
    """Draw spread within classes, and distance from the simplex, over the steps: medians over networks.

    Args:
        axes: two panels.
        cells: runs of `bnlib.neural_collapse.run_collapse`.
    """
    for panel, key, label in zip(
        axes, ("within", "simplex_gap"), ("spread within classes (NC1)", "distance from the simplex (NC2)"), strict=True
    ):
        last = 1
        for index, one in enumerate(cells):
            rows = [row for row in one["rows"] if row[key] is not None]
            steps = [row["step"] for row in rows]
            last = max([last, *steps])
            panel.plot(steps, [row[key] for row in rows], label=one["name"], **line_style(index))
        panel.set_yscale("log")
        panel.set_ylabel(label)
        _steps_axis(panel, last)
    axes[0].legend()


def times(axes: Axes, arms: Sequence[Row], names: Sequence[str]) -> None:
    """Draw the steps to the target of every network, one column an arm, one marker a size of the training set.

    Args:
        axes: the panel.
        arms: runs of `bnlib.time_to_accuracy.run_arm`.
        names: the arms, in their order.
    """
    sizes = sorted({one["samples"] for one in arms})
    last = max(one["steps"] for one in arms)
    for index, size in enumerate(sizes):
        shown = False
        for column, name in enumerate(names):
            for one in arms:
                if one["arm"] != name or one["samples"] != size:
                    continue
                at = column + (index - (len(sizes) - 1) / 2) * 0.24
                jitter = np.linspace(-0.07, 0.07, len(one["times"]))
                values = [1.25 * last if time is None else time for time in one["times"]]
                axes.scatter(
                    at + jitter,
                    values,
                    s=14,
                    marker=MARKERS[index],
                    color=ink(index),
                    label=None if shown else f"{size} samples",
                    zorder=3,
                )
                shown = True
    axes.axhline(1.12 * last, color="#888888", linewidth=0.8, linestyle="--")
    axes.annotate("not reached", (-0.45, 1.27 * last), fontsize=9, va="bottom")
    axes.set_yscale("log")
    axes.set_ylim(top=1.7 * last)
    axes.set_xticks(range(len(names)), [name.replace(" ", "\n", 1) for name in names], fontsize=8)
    axes.set_ylabel("steps to the target")
    axes.legend(loc="lower center", ncols=3, fontsize=8, bbox_to_anchor=(0.5, 1.0))


def dedicated(axes: Sequence[Axes] | np.ndarray, rows: Sequence[Row]) -> None:
    """Draw what dedicated neurons leave silent, and how orthogonal they are, over the size of the training set.

    Args:
        axes: two panels.
        rows: of `bnlib.dedicated.dedicated_rows`.
    """
    fixed = next((row["neurons"] for row in rows if not row["one_each"]), 0)
    groups = (
        ("silent", True, "training samples, a neuron each"),
        ("held_out_silent", True, "held-out samples, a neuron each"),
        ("silent", False, f"training samples, {fixed} neurons"),
        ("held_out_silent", False, f"held-out samples, {fixed} neurons"),
    )
    for index, (key, one_each, label) in enumerate(groups):
        found = [row for row in rows if row["one_each"] == one_each]
        axes[0].plot([row["samples"] for row in found], [row[key] for row in found], label=label, **line_style(index))
    own = [row for row in rows if row["one_each"]]
    sizes = [row["samples"] for row in own]
    axes[1].plot(sizes, [row["active"] for row in own], label="active neurons, dedicated", **line_style(0))
    axes[1].plot(sizes, [row["he_active"] for row in own], label="active neurons, He", **line_style(1))
    axes[1].plot(sizes, [row["he_cosine"] for row in own], label="mean cosine, He", **line_style(2))
    axes[1].plot(
        sizes, [row["held_out_cosine"] for row in own], label="mean cosine, dedicated, held out", **line_style(3)
    )
    axes[0].set_ylabel("share of silent samples")
    axes[1].set_ylabel("share or cosine")
    axes[1].set_yscale("log")
    for panel in axes:
        panel.set_xscale("log", base=2)
        panel.set_xlabel("samples in the training set")
        panel.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=1)
