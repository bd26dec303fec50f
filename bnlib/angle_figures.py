"""Pictures of the chapter on angles: curves over depth, batch sizes and widths, layer maps, histograms, projections."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from bnlib import figures

BINS = np.linspace(-4.0, 4.0, 65)  # of a histogram of activities, in root mean squares


_COLOR_ORDER = (0, 1, 5, 3, 4)  # of the five rows; black is kept for the theory's lines


def row_style(index: int) -> dict[str, object]:
    """Color, dash and marker of the index-th row of the chapter's table; none is black.

    Example:
        >>> row_style(2)["marker"], row_style(2)["color"] == figures.COLORS[5]
        ('^', True)
    """
    return figures.line_style(index) | {"color": figures.COLORS[_COLOR_ORDER[index % len(_COLOR_ORDER)]]}


def plain_number(value: float | int | None, digits: int = 2) -> str:
    """A number as text with a fixed number of digits, a true minus sign, and never a negative zero; None as a dash.

    Example:
        >>> plain_number(-0.001), plain_number(-0.25), plain_number(None)
        ('0.00', '−0.25', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def _numbers(values: Iterable) -> np.ndarray:
    """Recorded numbers as an array, None as nan."""
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def depth_curves(
    axes: Axes, cells: Mapping[str, Mapping], theory: Mapping[str, Sequence | None], *, title: str
) -> None:
    """Mean angle over depth with its band from the 10 % to the 90 % quantile, one curve a stage combination.

    Args:
        axes: where to draw.
        cells: name to a cell of `bnlib.angle_survey.depth_cell`.
        theory: name to angles in degrees at depths 1, 2, ..., or None where there is no such curve.
        title: of the panel.
    """
    label = "infinite width"  # once in the legend
    for index, (name, cell) in enumerate(cells.items()):
        style = row_style(index)
        marked = slice(index % 4, None, 4)  # rows that coincide keep their markers apart
        axes.plot(cell["depths"], _numbers(cell["mean"]), label=name, markevery=marked, **style)
        low, high = _numbers(cell["q10"]), _numbers(cell["q90"])
        axes.fill_between(cell["depths"], low, high, color=style["color"], alpha=0.18, linewidth=0)
        if (path := theory[name]) is not None:
            axes.plot(np.arange(1, len(path) + 1), path, color="black", linewidth=0.9, zorder=4, label=label)
            label = None
    axes.set(xscale="log", ylim=(0, 95), ylabel="mean pairwise angle (degrees)", title=title)


def essay_bands(axes: Axes, half_width: float | int = 2.5) -> None:
    """Grey bands around the essay's two angles, 60 and 75 degrees."""
    for center in (60, 75):
        axes.axhspan(center - half_width, center + half_width, color="#bbbbbb", alpha=0.5, linewidth=0)


def measured_points(axes: Axes, x: Sequence, mean: Iterable, error: Iterable, *, index: int, label: str) -> None:
    """Means with two standard errors, in the color and with the marker of the index-th row."""
    style = row_style(index)
    axes.errorbar(
        x,
        _numbers(mean),
        yerr=2 * _numbers(error),
        color=style["color"],
        marker=style["marker"],
        linestyle="none",
        capsize=3,
        label=label,
    )


def batch_size_ticks(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis of batch sizes, with the sizes themselves as its ticks."""
    axes.set(xscale="log", xlabel="batch size n")
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()


def layer_maps(
    axes: Axes,
    before: np.ndarray,
    maps: Mapping[str, np.ndarray],
    points: Mapping[str, Sequence[tuple]],
    *,
    limit: float | int = 98,
) -> None:
    """The angle after a layer against the angle before it, with the diagonal, and measured or sampled points.

    Args:
        axes: where to draw.
        before: angles before the layer, degrees.
        maps: name to angles after it, degrees.
        points: name (of a map) to (angle before, angle after, standard error), degrees.
        limit: end of both axes, degrees.
    """
    axes.plot([0, limit], [0, limit], color="#888888", linewidth=1)
    for index, (name, after) in enumerate(maps.items()):
        style = row_style(index)
        axes.plot(before, after, label=name, color=style["color"], linestyle=style["linestyle"])
        if name in points:
            x, y, error = zip(*points[name], strict=True)
            measured_points(axes, x, y, error, index=index, label="_")
    axes.set(xlim=(0, limit), ylim=(0, limit))
    axes.set(xlabel="angle before the layer (degrees)", ylabel="angle after the layer (degrees)")


def width_panel(
    axes: Axes,
    widths: Sequence[int],
    cells: Mapping[str, Sequence[Mapping]],
    theory: Mapping[str, float | None],
    title: str,
) -> None:
    """Mean angle against width, stage by stage; at the right end, infinite width.

    Args:
        axes: where to draw.
        widths: the widths, ascending.
        cells: name to one mapping a width, with `mean_deg` and `standard_error_deg`.
        theory: name to the angle of infinite width at the same depth in degrees, or None.
        title: of the panel.
    """
    places = [*widths, 2 * widths[-1]]
    for index, (name, row) in enumerate(cells.items()):
        style = row_style(index)
        mean, error = (_numbers(cell[key] for cell in row) for key in ("mean_deg", "standard_error_deg"))
        axes.errorbar(widths, mean, yerr=2 * error, capsize=3, label=name, **style)
        if theory[name] is not None:
            axes.plot(places[-1], theory[name], color=style["color"], marker=style["marker"], markerfacecolor="none")
    axes.axvline(np.sqrt(widths[-1] * places[-1]), color="#888888", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", ylim=(-3, 100), xlabel="width", ylabel="mean pairwise angle (degrees)", title=title)
    axes.set_xticks(places, [*map(str, widths), "∞"])
    axes.minorticks_off()


def rise_panel(axes: Axes, rows: Mapping[int, Sequence[tuple]], *, title: str) -> None:
    """By how much a layer moves an angle, against the angle before it, one curve a batch size.

    Args:
        axes: where to draw.
        rows: batch size to (angle before, rise, standard error), degrees.
        title: of the panel.
    """
    axes.axhline(0, color="#888888", linewidth=1)
    for index, (n, row) in enumerate(rows.items()):
        x, y, error = (np.array(column, dtype=float) for column in zip(*row, strict=True))
        axes.errorbar(x, y, yerr=2 * error, capsize=2, label=f"n = {n}", **figures.line_style(index))
    axes.set(xlabel="angle before the layer (degrees)", ylabel="angle after minus before (degrees)", title=title)
    axes.legend()


def widened_curves(
    axes: Axes, widened: Mapping[str, np.ndarray], control: np.ndarray, labels: Sequence[str], *, depth: int, title: str
) -> None:
    """Angle over depth in networks that become wide at a depth, with band, and in networks that do not."""
    layers = np.arange(1, len(control) + 1)
    axes.plot(layers, widened["mean"], color=figures.COLORS[0], label=labels[0])
    axes.plot(layers, control, color=figures.COLORS[1], linestyle="--", label=labels[1])
    axes.fill_between(layers, widened["q10"], widened["q90"], color=figures.COLORS[0], alpha=0.2, linewidth=0)
    axes.axvline(depth, color="#555555", linestyle=":", linewidth=1.2)
    axes.set(ylim=(0, None), xlabel="depth (linear layers)", ylabel="mean pairwise angle (degrees)", title=title)
    axes.legend()


def plane_panel(axes: Axes, picture: Mapping) -> None:
    """A batch in the plane of its largest sample (star) and the mean of the others (circles).

    Args:
        axes: where to draw.
        picture: `coordinates` (n pairs), `index` of the largest, `captured` share or None, `stages` and `depth`.
    """
    points = np.array(picture["coordinates"], dtype=float)
    others = np.delete(points, picture["index"], axis=0)
    axes.scatter(others[:, 0], others[:, 1], s=22, facecolor="none", edgecolor=figures.COLORS[0], linewidth=1.1)
    axes.scatter(*points[picture["index"]], s=90, marker="*", color=figures.COLORS[3], edgecolor="black", linewidth=0.6)
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.axvline(0, color="#888888", linewidth=0.8)
    share = "none" if picture["captured"] is None else f"{100 * picture['captured']:.0f} %"
    axes.set(
        title=f"{picture['stages']}, depth {picture['depth']}\nshare in the plane: {share}",
        xlim=(-0.25, 1.15),
        ylim=(-0.35, 1.05),
    )


def histogram(values) -> np.ndarray:
    """Share of the activities in each bin of `BINS`; what lies outside counts in the total.

    Args:
        values: a tensor or array of activities, any shape.

    Returns:
        Shares, shape (64,).

    Example:
        >>> float(histogram(np.array([0.01, 0.02, 9.0, -9.0])).max())
        0.5
    """
    flat = np.asarray(values).ravel()
    return np.histogram(flat, bins=BINS)[0] / flat.size


def histogram_panel(axes: Axes, shares: np.ndarray, *, title: str, text: str = "", logarithmic: bool = True) -> None:
    """One histogram of activities, with a remark in its corner."""
    axes.stairs(shares, BINS, fill=True, color=figures.COLORS[0], linewidth=0)
    axes.text(0.97, 0.95, text, transform=axes.transAxes, ha="right", va="top", fontsize=8.5)
    if logarithmic:
        axes.set(yscale="log", ylim=(1e-5, 6))
        axes.yaxis.set_minor_locator(NullLocator())  # in eight panels they take longer to draw than all the rest
    axes.set(xlim=(BINS[0], BINS[-1]), title=title)
    axes.set_axisbelow(True)


def count_panel(axes: Axes, shares: np.ndarray, *, title: str) -> None:
    """Share of the neurons that are active on 0, 1, ..., n samples."""
    axes.bar(np.arange(len(shares)), shares, width=0.85, color=figures.COLORS[0], linewidth=0)
    axes.set(title=title, yscale="log", ylim=(1e-4, 1.5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_axisbelow(True)


def with_error(value: float | int | None, error: float | int | None) -> str:
    """A number with its standard error as text, rounded to two digits of the error; a mere rounding error as zero.

    Args:
        value: the number, or None where nothing was measured.
        error: its standard error, same unit; None or 0 where there is none.

    Returns:
        Text for a table.

    Example:
        >>> with_error(63.7213, 2.379), with_error(75.4939, 0.0353), with_error(1.087e-05, 1.2e-06)
        ('63.7 ± 2.4', '75.494 ± 0.035', '(1.09 ± 0.12)·10⁻⁵')
    """
    if value is None:
        return "–"
    if figures.or_zero(value) != value:
        return figures.or_zero(value)
    if not error:
        return f"{value:.4g}"
    digits = 1 - math.floor(math.log10(error))
    if digits > 5:
        if value == 0:
            return f"0 ± {figures.scientific(error, '.0e')}"
        power = math.floor(math.log10(abs(value)))
        shown = max(0, digits + power)
        ten = figures.scientific(float(f"1e{power}"), ".0e")
        return f"({value / 10.0**power:.{shown}f} ± {error / 10.0**power:.{shown}f})·{ten}"
    digits = max(digits, 0)
    return f"{value:.{digits}f} ± {error:.{digits}f}"
