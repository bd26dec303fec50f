"""Pictures of chapter 6: the test, its map, onsets and losses, and which sample it is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bnlib import figures
from bnlib.estimates import survival
from bnlib.falsification_rules import Thresholds
from bnlib.onset_laws import LAWS, law_median

Row = Mapping[str, Any]


def select(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows of a table of dictionaries whose entries are the wanted ones.

    Args:
        rows: the table.
        **wanted: key to value.

    Returns:
        The rows, in their order.

    Example:
        >>> select([{"n": 4, "width": 64}, {"n": 8, "width": 64}], n=8)
        [{'n': 8, 'width': 64}]
    """
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def _number(rows: Sequence[Row], key: str) -> float:
    """The entry of the only row, NaN where there is none or it was not measured."""
    value = rows[0].get(key) if rows else None
    return math.nan if value is None else float(value)


def with_interval(row: Row, value: str, low: str, high: str, form: str = ".4g") -> str:
    """A number with its interval as one cell of a table, a dash for what is not known.

    Args:
        row: holds the three.
        value: key of the number.
        low: key of the interval's lower end.
        high: key of its upper end.
        form: format of the numbers.

    Returns:
        The text.

    Example:
        >>> with_interval({"m": 45.0, "l": 41.0, "h": None}, "m", "l", "h")
        '45 [41, –]'
    """
    number, *ends = ("–" if row.get(key) is None else f"{row[key]:{form}}" for key in (value, low, high))
    return f"{number} [{', '.join(ends)}]"


_AT_RIGHT = {
    "xycoords": ("axes fraction", "data"),
    "textcoords": "offset points",
    "ha": "right",
    "fontsize": 8.5,
    "color": "#555555",
}
_ABOVE = {"loc": "lower center", "columnspacing": 1, "fontsize": 8.5, "frameon": False}


def _ticks(axes: Axes, values: Sequence[int | float]) -> None:
    """Ticks at the values themselves, on a logarithmic axis; those that crowd are left out, 1 is not."""
    shown = [float(v) for v in values if v == 1]
    for value in sorted(values, reverse=True):
        if all(max(value / other, other / value) >= 1.2 for other in shown):
            shown.append(value)
    shown.sort()
    axes.set_xticks(shown, [f"{v:g}" for v in shown])
    axes.minorticks_off()


def literal_figure(
    cells: Sequence[Row],
    details: Sequence[Row],
    depth: int,
    thresholds: Thresholds,
) -> Figure:
    """The test at one depth: angle, norm ratio and share of the draws, over batch size, a curve for each width.

    Args:
        cells: as `bnlib.falsification.cell`.
        details: as `bnlib.falsification.details`.
        depth: layers.
        thresholds: drawn as dashed lines.

    Returns:
        A figure with three panels, one below the other.
    """
    figure, axes = figures.new_figure(rows=3, sharex=True, height=2.7)
    widths = sorted({c["width"] for c in cells})
    sizes = sorted({c["n"] for c in cells})
    panels = (
        (axes[0, 0], cells, "angle_deg", cells, "angle_deg_q10", "angle_deg_q90"),
        (axes[1, 0], cells, "norm_ratio", details, "ratio_low", "ratio_high"),
        (axes[2, 0], details, "share", details, "share_low", "share_high"),
    )
    for index, width in enumerate(widths):
        shift = 1 + 0.03 * (index - (len(widths) - 1) / 2)
        at = np.array(sizes) * shift
        for panel, middle_source, middle_key, ends_source, low_key, high_key in panels:
            found = [select(middle_source, n=n, width=width, depth=depth) for n in sizes]
            bounds = [select(ends_source, n=n, width=width, depth=depth) for n in sizes]
            middle = np.array([_number(row, middle_key) for row in found])
            bars = np.abs([[_number(row, key) for row in bounds] for key in (low_key, high_key)] - middle)
            panel.errorbar(
                at, middle, bars, label=f"width {width}", capsize=2, elinewidth=1, **figures.line_style(index)
            )
    upper, middle_panel, lower = axes[:, 0]
    upper.axhline(thresholds.angle_deg, color="black", linestyle="--", linewidth=1)
    upper.set(ylabel="angle (degrees)", ylim=(50, 92), title=f"depth {depth}")
    upper.legend(ncols=4, bbox_to_anchor=(0.5, 1.1), **_ABOVE)
    line = np.geomspace(max(3, sizes[0]), max(4, sizes[-1]), 50)
    for law, name in ((line - 1, "$n-1$"), ((line - 2) / 3, "$(n-2)/3$")):
        middle_panel.plot(line, law, color="black", linestyle=":", linewidth=1)
        middle_panel.annotate(
            name, (line[-1], law[-1]), xytext=(3, -3), textcoords="offset points", annotation_clip=False, fontsize=8
        )
    middle_panel.set(yscale="log", ylabel="norm ratio", ylim=(0.8, None))
    lower.axhline(thresholds.share, color="black", linestyle="--", linewidth=1)
    lower.set(xscale="log", xlabel="batch size n", ylabel="share with outlier", ylim=(-0.03, 1.03))
    _ticks(lower, sizes)
    return figure


def map_figure(cells: Sequence[Row], key: str = "angle_deg") -> Figure:
    """The map: a panel for each width, batch sizes as rows and depths as columns.

    Args:
        cells: as `bnlib.falsification.cell`.
        key: which number.

    Returns:
        A figure with one heat map for each width, one below the other; what was not run stays blank.
    """
    widths = sorted({c["width"] for c in cells})
    sizes = sorted({c["n"] for c in cells})
    depths = sorted({c["depth"] for c in cells})
    figure, axes = figures.new_figure(rows=len(widths), height=3.0)
    for panel, width in zip(axes[:, 0], widths, strict=True):
        table = [[_number(select(cells, n=n, width=width, depth=d), key) for d in depths] for n in sizes]
        figures.heat_map(
            panel,
            np.array(table),
            rows=sizes,
            columns=depths,
            row_label="batch size n",
            column_label="depth",
            value_label="angle (degrees)",
            limits=(55, 90),
        )
        panel.set_title(f"width {width}")
    return figure


def corner_figure(
    panels: Sequence[tuple[str, Sequence[Row], int, str, str, tuple[int | float, int | float] | None, str]],
) -> Figure:
    """Heat maps over batch size and width, one below the other.

    Args:
        panels: for each its title, the rows of the table, the depth, the key, the color bar's label, the color
            limits (None: a logarithmic scale from 1 to the greatest number), and the format of the numbers.

    Returns:
        The figure; what was not run stays blank.
    """
    figure, axes = figures.new_figure(rows=len(panels), height=2.6)
    for panel, (title, rows, depth, key, label, limits, style) in zip(axes[:, 0], panels, strict=True):
        widths = sorted({row["width"] for row in rows})
        sizes = sorted({row["n"] for row in rows})
        table = [[_number(select(rows, n=n, width=w, depth=depth), key) for w in widths] for n in sizes]
        figures.heat_map(
            panel,
            np.array(table),
            rows=sizes,
            columns=widths,
            row_label="batch size n",
            column_label="width",
            value_label=label,
            limits=limits or (1, None),
            format=style,
            logarithmic=limits is None,
        )
        panel.set_title(title)
    return figure


def depth_figure(parts: Mapping[int, Row], states: Mapping[int, Any], width: int) -> Figure:
    """Angle and norm ratio along the depth, with the outlier state of infinite width at the right edge.

    Args:
        parts: batch size to what `bnlib.falsification.run_cell` returned.
        states: batch size to its outlier state, or None.
        width: for the title.

    Returns:
        A figure with two panels.
    """
    figure, axes = figures.new_figure(rows=2, sharex=True)
    for panel, name in ((axes[0, 0], "angle_deg"), (axes[1, 0], "norm_ratio")):
        for index, (n, part) in enumerate(parts.items()):
            scale = n - 1 if name == "norm_ratio" else 1
            low, middle, high = np.array(part["curves"][name], dtype=float) / scale
            layers = np.arange(1, len(middle) + 1)
            marked = figures.marked_points(len(layers), index)
            panel.plot(layers, middle, label=f"n = {n}", markevery=marked, **figures.line_style(index))
            panel.fill_between(layers, low, high, color=figures.COLORS[index], alpha=0.18, linewidth=0)
            if states.get(n) is not None:
                level = math.degrees(states[n].angle) if name == "angle_deg" else states[n].norm_ratio / scale
                ends = [0.93 * len(layers), 1.03 * len(layers)]
                panel.plot(ends, [level, level], color=figures.COLORS[index], linestyle=":", linewidth=2)
    axes[0, 0].set(ylabel="angle (degrees)", ylim=(50, 92), title=f"width {width}")
    axes[1, 0].set(xlabel="depth (layers)", ylabel="norm ratio over n − 1")
    axes[1, 0].legend(ncols=2)
    return figure


def arrivals_figure(parts: Mapping[tuple[int, int], Row], sizes: Sequence[int], widths: Sequence[int]) -> Figure:
    """Share of the draws whose onset has come, along the depth, by Kaplan and Meier, a curve for each width.

    Args:
        parts: (batch size, width) to what `bnlib.falsification.run_cell` returned.
        sizes: a panel for each.
        widths: a curve for each.

    Returns:
        The figure, one panel below the other.
    """
    figure, axes = figures.new_figure(rows=len(sizes), sharex=True, height=2.5)
    for panel, n in zip(axes[:, 0], sizes, strict=True):
        for index, width in enumerate(widths):
            part = parts[n, width]
            last = part["watched"]
            times = [last if onset is None else onset for onset in part["onsets"]]
            found = survival(times, [onset is not None for onset in part["onsets"]])
            _steps(panel, found, index, f"width {width}", last, arrived=True)
        panel.set(ylabel="share with onset", ylim=(-0.03, 1.03), title=f"n = {n}")
    axes[0, 0].legend(fontsize=9, ncols=2)
    axes[-1, 0].set(xlabel="depth (layers)")
    return figure


def kept_figure(kept: Sequence[Row], sizes: Sequence[int], horizon: int) -> Figure:
    """Share of the draws that still have the outlier, along the layers since its onset, by Kaplan and Meier.

    Args:
        kept: rows with `n`, `width` and what `bnlib.estimates.kept_summary` returned.
        sizes: a panel for each.
        horizon: layers; a dotted line marks it.

    Returns:
        The figure, one panel below the other.
    """
    figure, axes = figures.new_figure(rows=len(sizes), sharex=True, height=2.5)
    widths = sorted({row["width"] for row in kept})
    for panel, n in zip(axes[:, 0], sizes, strict=True):
        for row in select(kept, n=n):
            if row["durations"]:
                index = widths.index(row["width"])  # a width keeps its color in every panel
                found = survival(row["durations"], row["ended"])
                last = max(row["durations"])
                _steps(panel, found, index, f"width {row['width']}", last, arrived=False)
        panel.axvline(horizon, color="black", linestyle=":", linewidth=1)
        panel.set(ylabel="share kept", ylim=(-0.03, 1.05), title=f"n = {n}")
    drawn = {}  # a width may have no outlier to lose in one panel and some in another
    for panel in axes[:, 0]:
        drawn |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    order = sorted(drawn, key=lambda label: int(label.split()[-1]))
    handles = [drawn[label] for label in order]
    figure.legend(handles, order, **_ABOVE | {"loc": "outside upper center", "ncols": 4})
    axes[-1, 0].set(xlabel="layers since the onset")
    return figure


def _steps(axes: Axes, found: Row, index: int, label: str, last: int, *, arrived: bool) -> None:
    """A Kaplan-Meier curve as steps from its start to the last watched layer, with its band where it is defined."""
    times = np.array([0.0, *found["times"], last])
    parts = []
    for key in ("share", "low", "high"):
        values = [1.0, *(math.nan if v is None else v for v in found[key])]
        shares = np.array([*values, values[-1]])
        parts.append(1 - shares if arrived else shares)
    style = figures.line_style(index) | {"marker": "none"}
    axes.plot(times, parts[0], drawstyle="steps-post", label=label, **style)
    color = figures.COLORS[index % len(figures.COLORS)]
    axes.fill_between(times, parts[1], parts[2], step="post", color=color, alpha=0.18, linewidth=0)


def onset_figure(onset: Sequence[Row], laws: Row | None, sizes: Sequence[int], last: int) -> Figure:
    """Median onset against width, with the fitted laws of growth.

    Args:
        onset: rows with `n`, `width`, `median`, `low`, `high`, None beyond the last layer.
        laws: what `bnlib.onset_laws.compare_laws` returned, or None.
        sizes: batch sizes to draw.
        last: last layer.

    Returns:
        A figure with the medians in one panel, and under it the fitted laws for up to three batch sizes.
    """
    fitted = [n for n in sizes if laws is not None and n in laws["batch_sizes"]]
    fitted = sorted({fitted[0], fitted[len(fitted) // 2], fitted[-1]}) if fitted else []
    figure, axes = figures.new_figure(rows=2 if fitted else 1, height=3.4, sharex=True)
    _onset_points(axes[0, 0], onset, sizes, sizes, last)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), **_ABOVE | {"loc": "outside upper center", "ncols": 4})
    if fitted:
        panel = axes[1, 0]
        _onset_points(panel, onset, fitted, sizes, last, lines=False)
        widths = np.array(laws["widths"], dtype=float)
        fine = np.geomspace(widths[0], widths[-1], 60)
        middle = np.exp(np.mean(np.log(widths)))
        for index, law in enumerate(LAWS):
            for n in fitted:
                fit = laws["laws"][law]["fits"][str(n)]
                # The law is relative to the geometric mean of its widths; a symmetric grid keeps that mean.
                values = law_median(law, fit["level"], fit["slope"], fine * middle / np.exp(np.mean(np.log(fine))))
                dash = figures.DASHES[index]
                panel.plot(fine, values, color=figures.COLORS[sizes.index(n) % 7], linestyle=dash, linewidth=1.3)
            panel.plot([], [], color="#444444", linestyle=figures.DASHES[index], label=law)
        handles, labels = panel.get_legend_handles_labels()
        laws_only = [(h, label) for h, label in zip(handles, labels, strict=True) if label in LAWS]
        panel.legend(*zip(*laws_only, strict=True), loc="upper left", title="fitted law", fontsize=9)
    axes[-1, 0].set(xscale="log", xlabel="width")
    _ticks(axes[-1, 0], sorted({row["width"] for row in onset}))
    return figure


def _onset_points(
    axes: Axes, onset: Sequence[Row], sizes: Sequence[int], every: Sequence[int], last: int, lines: bool = True
) -> None:
    """Medians with intervals; color and place of a batch size by its rank among all of them, in whichever panel."""
    axes.axhline(last, color="#888888", linewidth=0.8)
    axes.annotate("last layer", (1, last), (-2, 6), **_AT_RIGHT)
    for n in sizes:
        index = every.index(n)
        rows = sorted(select(onset, n=n), key=lambda row: row["width"])
        middle = np.array([_number([row], "median") for row in rows])
        low = np.array([_number([row], "low") for row in rows])
        high = np.array([last if row["high"] is None else row["high"] for row in rows], dtype=float)
        at = np.array([row["width"] for row in rows]) * (1 + 0.05 * (index - (len(every) - 1) / 2))
        bars = np.maximum(np.nan_to_num(np.stack([middle - low, high - middle])), 0)
        style = figures.line_style(index) | ({} if lines else {"linestyle": "none"})
        axes.errorbar(at, middle, bars, label=f"n = {n}", capsize=2, elinewidth=1, **style)
        upward = {"color": style["color"], "linestyle": "none", "markersize": 7, "clip_on": False, "zorder": 4}
        late = np.isnan(middle)  # the median itself lies beyond
        begin = np.where(np.isnan(low), last, low)[late]
        axes.vlines(at[late], begin, last, color=style["color"], linewidth=1)
        open_end = ~late & np.array([row["high"] is None for row in rows])  # the bound alone lies beyond
        for chosen, fill in ((late, style["color"]), (open_end, "white")):
            if chosen.any():  # an empty line that is not clipped would upset the layout
                axes.plot(at[chosen], np.full(chosen.sum(), last), marker="^", markerfacecolor=fill, **upward)
    axes.set(ylabel="onset (layers)", ylim=(0, 1.14 * last))


def beside_figure(pairs: Sequence[tuple[int, Row, Row]], width: int) -> Figure:
    """Rescaling off beside rescaling on, along the depth: angle, and largest norm over the median norm.

    Args:
        pairs: batch size, and what `bnlib.falsification.run_cell` returned without and with rescaling.
        width: for the title.

    Returns:
        A figure with two panels.
    """
    figure, axes = figures.new_figure(rows=2, sharex=True)
    for panel, name in ((axes[0, 0], "angle_deg"), (axes[1, 0], "top_over_median")):
        for index, (n, *both) in enumerate(pairs):
            for part, dash, switch in zip(both, ("-", "--"), ("off", "on"), strict=True):
                low, middle, high = np.array(part["curves"][name], dtype=float)
                layers = np.arange(1, len(middle) + 1)
                style = figures.line_style(index) | {"linestyle": dash}
                label = f"n = {n}, RS {switch}"
                panel.plot(layers, middle, label=label, markevery=figures.marked_points(len(layers), index), **style)
                panel.fill_between(layers, low, high, color=figures.COLORS[index], alpha=0.15, linewidth=0)
    axes[0, 0].set(ylabel="angle (degrees)", ylim=(50, 92), title=f"width {width}")
    axes[1, 0].set(xlabel="depth (layers)", ylabel="largest norm / median")
    # A single sample besides the largest may be zero, and then no ratio is finite.
    if np.isfinite(axes[1, 0].dataLim.ymax):
        axes[1, 0].set_yscale("log")
        figures.plain_ticks(axes[1, 0].yaxis)
    handles, labels = axes[1, 0].get_legend_handles_labels()
    axes[0, 0].legend(handles, labels, ncols=3, bbox_to_anchor=(0.5, 1.08), **_ABOVE)
    return figure


def push_figure(pushes: Mapping[int, Row], width: int) -> Figure:
    """Norm of a pushed sample over the median of the others along the depth, a curve for each batch size.

    Args:
        pushes: batch size to what `bnlib.pushed_networks.pushed` returned.
        width: for the title.

    Returns:
        A figure with one panel.
    """
    figure, axes = figures.new_figure()
    if pushes:
        curve = {n: np.array(found["curves"], dtype=float) for n, found in pushes.items()}
        layers = range(1, len(next(iter(curve.values()))[1]) + 1)
        families = [(f"n = {n}", values[1]) for n, values in curve.items()]
        figures.curves(axes[0, 0], layers, families, bands=[(values[0], values[2]) for values in curve.values()])
        axes[0, 0].legend(ncols=5, bbox_to_anchor=(0.5, 1.08), **_ABOVE)
    axes[0, 0].set(xlabel="depth (layers)", ylabel="norm / median of the others", title=f"rescaling on, width {width}")
    return figure


def identity_figure(found: Sequence[Row], kinds: Mapping[str, str]) -> Figure:
    """Probability that two networks single out the same sample, for each kind of batch, beside chance.

    Args:
        found: rows as `bnlib.outlier_identity.identity` returns them.
        kinds: kind to its name in the legend.

    Returns:
        A figure with one panel.
    """
    figure, axes = figures.new_figure()
    places = sorted({(row["n"], row["width"]) for row in found})
    for index, (kind, label) in enumerate(kinds.items()):
        rows = [select(found, kind=kind, n=n, width=width) for n, width in places]
        middle = np.array([_number(row, "agreement") for row in rows])
        ends = np.array([[_number(row, key) for row in rows] for key in ("agreement_low", "agreement_high")])
        # The lower end of a Student interval can be negative, where a logarithmic axis has nothing.
        error = np.abs(np.maximum(ends, 1e-3) - middle)
        at = np.arange(len(places)) + 0.15 * (index - (len(kinds) - 1) / 2)
        style = figures.line_style(index) | {"linestyle": "none"}
        axes[0, 0].errorbar(at, middle, error, label=label, capsize=3, **style)
    for index, (n, _) in enumerate(places):
        label = "chance, 1/n" if index == 0 else None
        axes[0, 0].plot([index - 0.4, index + 0.4], [1 / n, 1 / n], color="black", linewidth=1.2, label=label)
    axes[0, 0].set(yscale="log", ylabel="probability of the same outlier", ylim=(0.015, 1.6))
    axes[0, 0].set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    axes[0, 0].set_xticks(range(len(places)), [f"n = {n}\nwidth {width}" for n, width in places])
    axes[0, 0].minorticks_off()
    axes[0, 0].legend(ncols=3, bbox_to_anchor=(0.5, 1.0), **_ABOVE)
    return figure


def dose_figure(rows: Sequence[Row]) -> Figure:
    """Share of the networks whose outlier is the scaled sample, against its length.

    Args:
        rows: as `bnlib.outlier_identity.dose_response` returns them.

    Returns:
        A figure with one panel; dotted lines mark chance.
    """
    figure, axes = figures.new_figure(height=3.6)
    panel = axes[0, 0]
    places = sorted({(row["n"], row["width"]) for row in rows})
    factors = sorted({row["factor"] for row in rows})
    for index, (n, width) in enumerate(places):
        found = sorted(select(rows, n=n, width=width), key=lambda row: row["factor"])
        middle = np.array([_number([row], "share") for row in found])
        ends = np.array([[_number([row], key) for row in found] for key in ("low", "high")])
        at = np.array([row["factor"] for row in found]) * (1 + 0.01 * (index - (len(places) - 1) / 2))
        style = figures.line_style(index)
        panel.errorbar(
            at, middle, np.abs(ends - middle), label=f"n = {n}, width {width}", capsize=2, elinewidth=1, **style
        )
    for n, side in zip(sorted({n for n, _ in places}), ("bottom", "top"), strict=False):
        panel.axhline(1 / n, color="#555555", linestyle=":", linewidth=1)
        panel.annotate(f"1/{n}", (1, 1 / n), (3, 0), va=side, annotation_clip=False, **_AT_RIGHT | {"ha": "left"})
    panel.set(xscale="log", xlabel="length of one sample (the others: 1)", ylabel="share in which it is the outlier")
    panel.set(ylim=(-0.03, 1.03))
    _ticks(panel, factors)
    panel.legend(loc="upper left", fontsize=9)
    return figure
