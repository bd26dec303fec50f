"""One style for all figures: opaque, colour-blind safe, legible on a phone and in grey."""

import base64
import html
import io
import sys
from collections.abc import Iterable, Sequence

import matplotlib

matplotlib.use("Agg")  # figures are shown by `show`, in a notebook only; a plain script needs no screen

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
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


def curves(
    axes: Axes,
    x: Values,
    families: Iterable[tuple[str, Values]],
    *,
    bands: Iterable[tuple[Values, Values]] | None = None,
    direct_labels: bool = False,
) -> None:
    """Draw named curves over one abscissa, with bands of uncertainty where given.

    Args:
        axes: where to draw.
        x: the abscissa, one value a point.
        families: (name, ordinates) of each curve.
        bands: (lower, upper) of each curve, in the same order.
        direct_labels: names at the curves' ends in place of a legend.
    """
    bands = list(bands) if bands is not None else None
    for index, (name, y) in enumerate(families):
        axes.plot(x, y, label=name, markevery=max(1, len(x) // 8), **line_style(index))
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
    limits: tuple[int | float, int | float] | None = None,
    format: str = ".0f",
) -> None:
    """Draw a table as colours with its numbers written in; nan cells stay blank.

    Args:
        axes: where to draw.
        table: values, shape (rows, columns).
        rows: names of the rows, from top.
        columns: names of the columns.
        row_label: what the rows are.
        column_label: what the columns are.
        value_label: what the numbers are, with their unit.
        limits: least and greatest value of the colour scale.
        format: how a number is written in its cell.
    """
    import seaborn as sns  # here only: it takes a second to import, and most chapters draw no heat map

    low, high = limits if limits is not None else (None, None)
    sns.heatmap(
        np.asarray(table, dtype=float),
        ax=axes,
        annot=True,
        fmt=format,
        annot_kws={"fontsize": 9},
        cmap="cividis",
        vmin=low,
        vmax=high,
        xticklabels=list(columns),
        yticklabels=list(rows),
        cbar_kws={"label": value_label},
        linewidths=0.5,
    )
    axes.set_xlabel(column_label)
    axes.set_ylabel(row_label)
    axes.tick_params(axis="y", rotation=0)
    axes.grid(False)  # its lines would run through the numbers


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
    """Show a table as the output of a cell; numbers are rounded to four digits.

    Args:
        rows: the cells, row by row; None shows as a dash.
        header: the columns' names, with units.
        caption: what the table holds.
    """
    rows = [[_cell(entry) for entry in row] for row in rows]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{entry}</td>" for entry in row) + "</tr>" for row in rows)
    text = (
        f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    _display({"text/html": f'<div class="numbers">{text}</div>', "text/plain": caption})


def _cell(entry: object) -> str:
    match entry:
        case None:
            return "–"
        case bool():
            return "yes" if entry else "no"
        case float() | np.floating():
            return f"{entry:.4g}"
    return html.escape(str(entry))
