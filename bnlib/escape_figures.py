"""Pictures of the chapter on finite width: escape times, where networks stay, who escapes, and the leaky slope."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bnlib.figures import COLORS, Values, curves, line_style

Cell = Mapping[str, Any]


def _bars(
    axes: Axes, x: Values, cells: Sequence[Cell], names: tuple[str, str, str], top: float | int, index: int
) -> None:
    """Points with intervals; an end that is not known runs to `top`, a point that is not known is a triangle there."""
    style = line_style(index)
    for place, cell in zip(x, cells, strict=True):
        middle, low, high = (cell[name] for name in names)
        lower = low if low is not None else (middle if middle is not None else top)
        upper = high if high is not None else (top if low is not None else lower)
        axes.plot([place, place], [lower, upper], color=style["color"], linewidth=1.2)
        if middle is None:
            axes.plot([place], [top], marker="^", color=style["color"], markerfacecolor="white", clip_on=False)
        else:
            axes.plot([place], [middle], marker=style["marker"], color=style["color"], linestyle="")


def _plain_layers(axis: Any, low: float | int, high: float | int) -> None:
    """Round numbers of layers in place of powers of ten."""
    ticks = [t for t in (5, 10, 20, 50, 100, 200, 300, 500, 1000) if low <= t <= high]
    axis.set_ticks(ticks, [str(t) for t in ticks])
    axis.set_ticks([], minor=True)


def escape_times(axes: Axes, cells: Sequence[Cell], depth: int) -> None:
    """Draw escape times against width: lines of the theory with its quartiles, points of networks with intervals.

    Args:
        axes: where to draw.
        cells: as `bnlib.escape_survey.escape_cell`; those without networks add to the lines only.
        depth: the last layer that is watched; points beyond are triangles at it.
    """
    for index, n in enumerate(sorted({cell["n"] for cell in cells})):
        rows = sorted((cell for cell in cells if cell["n"] == n), key=lambda cell: cell["width"])
        style = line_style(index)
        known = [cell for cell in rows if cell["theory_median"] is not None]
        axes.plot(
            [cell["width"] for cell in known],
            [cell["theory_median"] for cell in known],
            color=style["color"],
            linestyle=style["linestyle"],
            label=f"n = {n}",
        )
        axes.fill_between(
            [cell["width"] for cell in known],
            [cell["theory_lower"] for cell in known],
            [cell["theory_upper"] if cell["theory_upper"] is not None else depth for cell in known],
            color=style["color"],
            alpha=0.15,
            linewidth=0,
        )
        real = [cell for cell in rows if "times" in cell]
        _bars(axes, [cell["width"] for cell in real], real, ("median", "low", "high"), depth, index)
    axes.axhline(depth, color="#888888", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="width d (neurons)", ylabel="layers until escape")
    _plain_layers(axes.yaxis, axes.get_ylim()[0], depth)
    axes.legend()


def rescaled_times(axes: Axes, cells: Sequence[Cell], forms: Mapping[int, Any]) -> None:
    """Draw the theory's median escape times in its own units, time (1 - lambda) against width / d*.

    Args:
        axes: where to draw.
        cells: as `bnlib.escape_survey.escape_cell`.
        forms: batch size to `bnlib.escape.NormalForm`.
    """
    for index, n in enumerate(sorted({cell["n"] for cell in cells})):
        form = forms[n]
        rows = sorted(
            (cell for cell in cells if cell["n"] == n and cell["theory_median"] is not None),
            key=lambda cell: cell["width"],
        )
        axes.plot(
            [cell["width"] / form.crossover_width for cell in rows],
            [cell["theory_median"] * (1.0 - form.multiplier) for cell in rows],
            label=f"n = {n}",
            **line_style(index),
        )
    x = np.geomspace(*axes.get_xlim()) if axes.get_xscale() == "log" else np.geomspace(1e-4, 1.0)
    axes.plot(x[x < 1], 2.0 * x[x < 1] ** (1.0 / 3.0), color="#888888", linewidth=1, label="slope 1/3")
    axes.set(xscale="log", yscale="log", xlabel="width over crossover width, d/d*", ylabel="(1 − λ) · layers")
    axes.legend()


def predicted_against_observed(axes: Axes, cells: Sequence[Cell], depth: int) -> None:
    """Draw medians of networks against medians of the theory, one point a cell.

    Args:
        axes: where to draw.
        cells: as `bnlib.escape_survey.escape_cell`, with networks.
        depth: the last layer that is watched; what lies beyond is drawn there.
    """
    for index, n in enumerate(sorted({cell["n"] for cell in cells})):
        rows = [cell for cell in cells if cell["n"] == n]
        x = [cell["theory_median"] if cell["theory_median"] is not None else depth for cell in rows]
        _bars(axes, x, rows, ("median", "low", "high"), depth, index)
        style = line_style(index)
        axes.plot([], [], color=style["color"], marker=style["marker"], linestyle="", label=f"n = {n}")
    known = [cell[name] for cell in cells for name in ("theory_median", "median") if cell[name] is not None]
    ends = [min([0.5 * depth, *known]) * 0.8, depth]
    axes.plot(ends, ends, color="#888888", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="theory: median layers", ylabel="networks: median layers")
    for axis in (axes.xaxis, axes.yaxis):
        _plain_layers(axis, ends[0], depth)
    axes.legend()


def stays(axes: Axes, cells: Sequence[Cell], theory: Mapping[int, float]) -> None:
    """Draw the cluster angle of networks, in percent of the infinite-width value, against the width.

    Bars are two standard errors, s / sqrt(width networks) with one s, pooled over the widths of a batch size, as in
    `bnlib.escape_survey.to_infinite_width`: a cell of three networks does not know its own error.

    Args:
        axes: where to draw.
        cells: as `bnlib.escape_survey.stay_cell`.
        theory: batch size to cluster angle at infinite width, degrees.
    """
    for index, n in enumerate(sorted({cell["n"] for cell in cells})):
        rows = sorted((cell for cell in cells if cell["n"] == n), key=lambda cell: cell["width"])
        style = line_style(index)
        x = np.array([cell["width"] for cell in rows]) * 1.08 ** (index - 1.5)  # beside each other
        y = np.array([100.0 * cell["cluster_angle_deg"] / theory[n] for cell in rows])
        free = sum(cell["draws"] - 1 for cell in rows)
        square = sum((c["draws"] - 1) * c["width"] * c["cluster_angle_deg_sd"] ** 2 for c in rows) / free
        error = [200.0 * (square / (cell["width"] * cell["draws"])) ** 0.5 / theory[n] for cell in rows]
        axes.errorbar(x, y, yerr=error, label=f"n = {n}", capsize=2, **{**style, "linestyle": ""})
    axes.axhline(100.0, color="#888888", linewidth=1)
    axes.set(xscale="log", xlabel="width d (neurons)", ylabel="cluster angle (% of theory)")
    widths = sorted({cell["width"] for cell in cells})
    axes.set_xticks(widths, [str(width) for width in widths])
    axes.minorticks_off()
    axes.legend()


def both_orders(axes: Axes, found: Mapping[str, Any]) -> None:
    """Draw the angle of the largest sample against depth, several widths and infinite width.

    Args:
        axes: where to draw.
        found: as `bnlib.escape_survey.limits_in_both_orders`.
    """
    families = [(f"width {width}", curve) for width, curve in found["angle_deg"].items()]
    families.append(("infinite width", found["infinite_deg"]))
    curves(axes, np.arange(1, len(found["infinite_deg"]) + 1), families, logarithmic=True)
    for index, end in enumerate(found["last"].values()):
        if end["low"] is not None and end["high"] is not None:
            place = len(found["infinite_deg"]) * 1.06 ** (index + 1)  # beside each other, right of the last layer
            axes.plot([place, place], [end["low"], end["high"]], color=COLORS[index], linewidth=2)
    axes.set(xscale="log", xlabel="depth (layers)", ylabel="angle of the largest sample (degrees)")


def small_batches(axes: np.ndarray, cells: Sequence[Cell]) -> None:
    """Draw the share of networks that escaped once, and the share of late layers spent out, against the batch size.

    Args:
        axes: two panels, array of shape (2,).
        cells: as `bnlib.escape_survey.small_batch_cell`.
    """
    for index, width in enumerate(sorted({cell["width"] for cell in cells})):
        rows = sorted((cell for cell in cells if cell["width"] == width), key=lambda cell: cell["n"])
        x = np.array([cell["n"] for cell in rows]) + 0.12 * (index - 1)
        for panel, name in ((axes[0], "escaped"), (axes[1], "time_out")):
            y = np.array([cell[name] for cell in rows])
            if name == "escaped":
                error = [y - [cell["escaped_low"] for cell in rows], [cell["escaped_high"] for cell in rows] - y]
            else:
                error = [2.0 * (cell["time_out_error"] or 0.0) for cell in rows]
            panel.errorbar(x, y, yerr=error, label=f"width {width}", capsize=2, **line_style(index))
    for panel, label in (
        (axes[0], "share of networks\nthat escaped"),
        (axes[1], "share of late layers\nabove 85 degrees"),
    ):
        panel.set(xlabel="batch size n", ylabel=label, ylim=(-0.05, 1.05))
        panel.legend()


def leaky_states(axes: np.ndarray, slopes: Values, rows: Mapping[int, Sequence[Cell]]) -> None:
    """Draw the angle of the outlier, and the slowest multipliers, against the leaky slope.

    Args:
        axes: two panels, array of shape (2,).
        slopes: the leaky slopes.
        rows: batch size to one row a slope, with `outlier_angle_deg`, `outlier_multiplier`, `symmetric_multiplier`.
    """
    angles = [(f"n = {n}", [row["outlier_angle_deg"] for row in found]) for n, found in rows.items()]
    curves(axes[0], slopes, angles)
    axes[0].axhline(90.0, color="#888888", linewidth=1)
    axes[0].set(xlabel="leaky slope s", ylabel="outlier to cluster\nsample (degrees)", yticks=range(0, 181, 30))
    for index, (n, found) in enumerate(rows.items()):
        for name, label, dash in (("outlier", "outlier state", "-"), ("symmetric", "symmetric state", "--")):
            axes[1].plot(
                slopes,
                [row[f"{name}_multiplier"] for row in found],
                color=COLORS[index],
                linestyle=dash,
                label=f"n = {n}, {label}",
            )
    axes[1].set(xlabel="leaky slope s", ylabel="multiplier per layer")
    axes[1].legend()
