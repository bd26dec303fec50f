"""One style for all figures: opaque, colour-blind safe, legible on a phone and in grey."""

import base64
import html
import io
import math
import re
import sys
from collections.abc import Iterable, Sequence

import matplotlib

matplotlib.use("Agg")  # figures are shown by `show`, in a notebook only; a plain script needs no screen

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure

Values = Sequence | np.ndarray

WIDTH_INCHES = 5.2
DOTS_PER_INCH = 200
# Okabe and Ito's colours, in an order whose greys differ as well; lines differ by dash and marker besides.
COLORS = ("#0072B2", "#E69F00", "#000000", "#D55E00", "#56B4E9", "#009E73", "#CC79A7")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_STYLE = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "axes.prop_cycle": matplotlib.cycler(color=COLORS),
}


def new_figure(rows: int = 1, columns: int = 1, *, height: int | float = 3.2, **options) -> tuple[Figure, np.ndarray]:
    """A figure in the book's style.

    Args:
        rows: panels below each other (the rule: a phone shows them at full width).
        columns: panels beside each other; at most two stay legible on a phone.
        height: inches a row.
        **options: passed to `matplotlib.pyplot.subplots`, e.g. `sharex=True`.

    Returns:
        The figure and an array of axes of shape (rows, columns).

    Example:
        >>> figure, axes = new_figure(rows=2)
        >>> axes.shape
        (2, 1)
        >>> close(figure)
    """
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(WIDTH_INCHES, height * rows), squeeze=False, dpi=DOTS_PER_INCH, **options
        )
    return figure, axes


def line_style(index: int) -> dict[str, object]:
    """Colour, dash and marker of the index-th curve: never by colour alone.

    Example:
        >>> line_style(0)["marker"]
        'o'
    """
    count = len(COLORS)
    return {
        "color": COLORS[index % count],
        "linestyle": DASHES[(index + index // count) % count],
        "marker": MARKERS[index % count],
    }


def ink(index: int) -> tuple[float, float, float]:
    """The colour of the index-th curve, dark enough for text on white.

    Example:
        >>> max(ink(1)) < max(to_rgb(COLORS[1]))
        True
    """
    color = to_rgb(COLORS[index % len(COLORS)])
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], color))
    return tuple(channel * min(1.0, 0.38 / max(luminance, 1e-9)) for channel in color)


def label_line_end(axes: Axes, x: Values, y: Values, text: str, index: int) -> None:
    """Write a curve's name at its last point, in its colour."""
    axes.annotate(
        text,
        (x[-1], y[-1]),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        color=ink(index),
        fontsize=9,
        annotation_clip=False,
    )


def marked_points(count: int, index: int, *, logarithmic: bool = False) -> list[int]:
    """Which points of the index-th curve carry its marker: about eight, at other places than those of its neighbors.

    Args:
        count: points of the curve, at least 1.
        index: of the curve.
        logarithmic: whether the abscissa 1, 2, ..., count is drawn logarithmically.

    Returns:
        Ascending indices of points.

    Example:
        >>> marked_points(5, 1), marked_points(32, 1), marked_points(100, 0, logarithmic=True)
        ([0, 1, 2, 3, 4], [1, 5, 9, 13, 17, 21, 25, 29], [0, 1, 3, 6, 14, 29, 59])
    """
    step = max(1, count // 8)
    if logarithmic and step > 1:
        shift = 2.0 ** (index % 4 / 4)
        return sorted({round(shift * 2**k * count / 107) - 1 for k in range(16)} & set(range(count)))
    return list(range(index % step, count, step))


def plain_ticks(axis: Axis) -> None:
    """Write plain numbers (0.2, 0.5, 1, ...) at a logarithmic axis between its present limits, in place of powers.

    Example:
        >>> figure, axes = new_figure()
        >>> axes[0, 0].set(yscale="log", ylim=(0.3, 30)) and plain_ticks(axes[0, 0].yaxis)
        >>> [label.get_text() for label in axes[0, 0].get_yticklabels()]
        ['0.5', '1', '2', '5', '10', '20']
        >>> close(figure)
    """
    low, high = sorted(axis.get_view_interval())
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [tick for k in decades for s in steps if low <= (tick := float(f"{s}e{k}")) <= high]
        if len(ticks) <= 7:
            break
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def curves(
    axes: Axes,
    x: Values,
    families: Iterable[tuple[str, Values]],
    *,
    bands: Iterable[tuple[Values, Values]] | None = None,
    direct_labels: bool = False,
    logarithmic: bool = False,
) -> None:
    """Draw named curves over one abscissa, with bands of uncertainty where given.

    Args:
        axes: where to draw.
        x: the abscissa, one value a point.
        families: (name, ordinates) of each curve.
        bands: (lower, upper) of each curve, in the same order.
        direct_labels: names at the curves' ends in place of a legend.
        logarithmic: markers at places that are even on a logarithmic abscissa.
    """
    bands = list(bands) if bands is not None else None
    for index, (name, y) in enumerate(families):
        marked = marked_points(len(x), index, logarithmic=logarithmic)
        axes.plot(x, y, label=name, markevery=marked, **line_style(index))
        if bands is not None:
            axes.fill_between(x, *bands[index], color=COLORS[index % len(COLORS)], alpha=0.18, linewidth=0)
        if direct_labels:
            label_line_end(axes, x, y, name, index)
    if not direct_labels:
        axes.legend()


def heat_map(
    axes: Axes,
    table: np.ndarray,
    *,
    rows: Sequence[object],
    columns: Sequence[object],
    row_label: str,
    column_label: str,
    value_label: str,
    limits: tuple[int | float | None, int | float | None] | None = None,
    format: str = ".0f",
    logarithmic: bool = False,
) -> None:
    """Draw a table as colours with its numbers written in, dark or white by the cell's luminance; nan stays blank.

    Args:
        axes: where to draw.
        table: values, shape (rows, columns).
        rows: names of the rows, from top.
        columns: names of the columns.
        row_label: what the rows are.
        column_label: what the columns are.
        value_label: what the numbers are, with their unit.
        limits: least and greatest value of the colour scale; None takes it from the table.
        format: how a number is written in its cell.
        logarithmic: whether the colour scale is (the values are then positive).
    """
    import seaborn as sns  # here only: it takes a second to import, and most chapters draw no heat map

    low, high = limits if limits is not None else (None, None)
    values = np.asarray(table, dtype=float)
    scale = {"norm": LogNorm(low, high)} if logarithmic else {"vmin": low, "vmax": high}
    sns.heatmap(
        values,
        ax=axes,
        annot=True,
        fmt=format,
        annot_kws={"fontsize": 9},
        cmap="cividis",
        **scale,
        xticklabels=list(columns),
        yticklabels=list(rows),
        cbar_kws={"label": value_label},
        linewidths=0.5,
    )
    axes.set_xlabel(column_label)
    axes.set_ylabel(row_label)
    axes.tick_params(axis="y", rotation=0)
    axes.grid(False)  # its lines would run through the numbers
    mesh = axes.collections[0]
    for text, value in zip(axes.texts, values[np.isfinite(values)], strict=True):
        text.set_color(text_color(mesh.cmap(mesh.norm(value))))
    if logarithmic:
        plain_ticks(mesh.colorbar.ax.yaxis)


def text_color(ground: Sequence[float]) -> str:
    """Black or white, whichever stands out more against a ground (relative luminance of the WCAG).

    Args:
        ground: red, green and blue from 0 to 1; a fourth number is left aside.

    Example:
        >>> text_color((1.0, 0.9, 0.2)), text_color((0.0, 0.13, 0.3))
        ('black', 'white')
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in ground[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"  # where both contrasts are the same


def star_and_circles(axes: Axes, points: np.ndarray, index: int) -> None:
    """Draw a batch in a plane: one sample as a star, the others as circles, over two thin axes.

    Args:
        axes: the panel.
        points: coordinates, shape (n, 2); rows that are not finite are left out.
        index: the row of the star.

    Raises:
        ValueError: index is not a row of points.
    """
    if not 0 <= index < len(points):
        raise ValueError(f"index is {index}; valid is a row of points, 0 to {len(points) - 1}.")
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.axvline(0, color="#888888", linewidth=0.8)
    others = np.delete(points, index, axis=0)
    axes.scatter(others[:, 0], others[:, 1], s=22, facecolor="none", edgecolor=COLORS[0], linewidth=1.1)
    axes.scatter(*points[index], s=90, marker="*", color=COLORS[3], edgecolor="black", linewidth=0.6, zorder=3)


def number_points(axes: Axes, points: np.ndarray, numbers: Sequence[int] | None = None) -> None:
    """Write numbers beside points so that they cover neither each other nor a point, on thin leaders where far.

    Call it when the axes' limits are set and the figure's other parts are there.

    Args:
        axes: the panel.
        points: coordinates, shape (n, 2).
        numbers: rows of points to be numbered, counted from 0 and written from 1; all by default.

    Example:
        >>> figure, axes = new_figure()
        >>> number_points(axes[0, 0], np.array([[0.5, 0.5], [0.5, 0.501]]))
        >>> [text.get_text() for text in axes[0, 0].texts]
        ['1', '2']
        >>> close(figure)
    """
    axes.figure.draw_without_rendering()  # the layout settles where a point lies on the page
    at = axes.transData.transform(np.asarray(points, dtype=float)) * 72 / axes.figure.dpi
    directions = np.exp(2j * np.pi * np.arange(1, 17) / 16)
    taken: list[np.ndarray] = []
    for row in range(len(at)) if numbers is None else numbers:
        size = np.array([5.2 * len(str(row + 1)), 8.0])  # of the number, in points
        places = [at[row] + r * np.array([z.real, z.imag]) for r in (8, 12, 17, 23, 30) for z in directions]
        place = next(
            (
                p
                for p in places
                if (np.abs(at - p) > size / 2 + 2.5).any(axis=1).all()
                and all((np.abs(other[:2] - p) > (size + other[2:]) / 2).any() for other in taken)
            ),
            places[0],
        )
        taken.append(np.concatenate([place, size]))
        far = np.hypot(*(place - at[row])) > 9
        axes.annotate(
            str(row + 1),
            points[row],
            xytext=place - at[row],
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": "#888888", "linewidth": 0.6, "shrinkA": 0} if far else None,
        )


def show(figure: Figure) -> None:
    """Show a figure as the output of a cell, and close it; in a plain script it is only closed.

    The picture has an opaque background, so that a dark page leaves it as it is.
    """
    buffer = io.BytesIO()
    with plt.rc_context(_STYLE):
        figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, facecolor="white")
    plt.close(figure)
    picture = base64.b64encode(buffer.getvalue()).decode()
    _display({"image/png": picture, "text/plain": "<figure>"})


def _display(bundle: dict[str, str]) -> None:
    """Show something as the output of a notebook's cell; a plain script has nowhere to show it."""
    if (session := sys.modules.get("IPython")) is not None and session.get_ipython() is not None:
        session.display.display(bundle, raw=True)


def close(figure: Figure) -> None:
    """Forget a figure without showing it."""
    plt.close(figure)


def table(rows: Iterable[Sequence[object]], *, header: Sequence[str], caption: str) -> None:
    """Show a table as the output of a cell; numbers are rounded to four digits, columns of words stand left.

    Args:
        rows: the cells, row by row; None shows as a dash.
        header: the columns' names, with units.
        caption: what the table holds.
    """
    rows = [[_cell(entry) for entry in row] for row in rows]
    sides = [' class="text"' if _holds_words([row[k] for row in rows]) else "" for k in range(len(header))]
    head = "".join(f"<th{side}>{_powers(html.escape(name))}</th>" for name, side in zip(header, sides, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{entry}</td>" for entry, side in zip(row, sides, strict=True)) + "</tr>"
        for row in rows
    )
    text = (
        f"<table><caption>{_powers(html.escape(caption))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    _display({"text/html": f'<div class="numbers">{text}</div>', "text/plain": caption})


def _cell(entry: object) -> str:
    match entry:
        case None:
            return "–"
        case bool():
            return "yes" if entry else "no"
        case float() | np.floating():
            return scientific(float(entry)) if not 1e4 <= abs(entry) < 1e7 else f"{float(f'{entry:.4g}'):.0f}"
    return _powers(html.escape(str(entry)))


def or_zero(value: float | int | None, rounding: float | int = 1e-12) -> float | int | str | None:
    """A number for a table, or the words "0 (to rounding)" where rounding is all that is left of it.

    Args:
        value: the number, or None.
        rounding: what rounding can leave of an exact zero, same unit.

    Example:
        >>> or_zero(0.5), or_zero(2e-14), or_zero(0.0), or_zero(None)
        (0.5, '0 (to rounding)', 0.0, None)
    """
    return "0 (to rounding)" if value and abs(value) < rounding else value


def scientific(value: float | int, format: str = ".4g") -> str:
    """A number as text, its power of ten written as such.

    Args:
        value: the number.
        format: of the number, as in a format string.

    Example:
        >>> scientific(0.25), scientific(1e-5), scientific(2.34e-14, ".1e"), scientific(0, ".1e"), scientific(-1.5)
        ('0.25', '10⁻⁵', '2.3·10⁻¹⁴', '0', '-1.5')
    """
    return _powers(f"{value:{format}}")


_POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]\d+)(?![\w.]*\w)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _powers(text: str) -> str:
    """Write 1.2e-05 as 1.2·10⁻⁵, wherever it stands in a text."""

    def written(found: re.Match) -> str:
        factor, power = found[1], str(int(found[2])).translate(_RAISED)
        if float(factor) == 0:
            return "0"
        factor = factor if power != "⁰" else f"{float(factor):g}"
        return factor if power == "⁰" else f"10{power}" if float(factor) == 1 else f"{factor}·10{power}"

    return _POWER.sub(written, text)


_NUMBERS_ALONE = re.compile(r"(?:\b(?:to|of|inf|nan)\b|[\d\s.,;:+±·×*/%°∞<>()\[\]|=−–⁻⁰¹²³⁴⁵⁶⁷⁸⁹-])*")


def _holds_words(cells: Sequence[str]) -> bool:
    """Whether most cells of a column, dashes aside, are more than numbers."""
    written = [html.unescape(cell) for cell in cells if cell not in ("–", "")]
    words = [cell for cell in written if not _NUMBERS_ALONE.fullmatch(cell)]
    return 2 * len(words) > len(written)
