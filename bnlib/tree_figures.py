"""Pictures of the simplified tree: the neurons themselves, the intervals that they are, and where the energy goes."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from bnlib.exact import Batch, parse_batch, sort_batch
from bnlib.figures import COLORS, line_style, marked_points, plain_ticks
from bnlib.tree import energy_shares, geometry, layers, limit, partition

# By number of distinct values; grey, light and dark fills with hatching differ without color.
_FILLS = ((2, "#dddddd", ""), (3, COLORS[5], "///"), (4, COLORS[0], ""))
_NAMES = {2: "2 values", 3: "3 values", 4: "4 values or more"}


def neuron_values(batch: Batch, depth: int) -> np.ndarray:
    """Return all 2 ** depth neurons on the samples in ascending order of the input.

    Args:
        batch: n numbers or strings such as "7/2".
        depth: number of layers, 0 to 20; 0 is the batch, shifted to minimum 0.

    Returns:
        Shape (2 ** depth, n), in the order of the tree: first child ReLU(v - mean v), second ReLU(mean v - v).

    Raises:
        ValueError: if the batch is not valid or `depth` is outside 0 to 20.

    Example:
        >>> neuron_values([0, 1, 5], 1)
        array([[0., 0., 3.],
               [2., 1., 0.]])
    """
    values = sorted(parse_batch(batch))
    found = {}
    for low, high, upward in partition(batch, depth):
        found[low, high] = [
            float(min(max(y, low), high) - low if upward else high - min(max(y, low), high)) for y in values
        ]
    order = [(min(values), max(values), True)]
    for level in range(1, depth + 1):
        pieces = partition(batch, level)
        # Piece 2i is below the cut of piece i, piece 2i + 1 above; a neuron that is turned down swaps its children.
        parents = partition(batch, level - 1)
        halves = {(low, high): (pieces[2 * i], pieces[2 * i + 1]) for i, (low, high, _) in enumerate(parents)}
        order = [
            child for low, high, upward in order for child in (halves[low, high][::-1] if upward else halves[low, high])
        ]
    return np.array([found[low, high] for low, high, _ in order])


def draw_tree(axes: Axes, batch: Batch, depth: int) -> None:
    """Draw the tree down to a depth: every neuron as bars, one a sample in ascending order of the input.

    Args:
        axes: where to draw.
        batch: n numbers or strings such as "7/2".
        depth: number of layers, at most 3 to stay legible.
    """
    columns = 2**depth
    for level in range(depth + 1):
        rows = neuron_values(batch, level)
        step = columns / len(rows)
        for index, row in enumerate(rows):
            center = (index + 0.5) * step
            _draw_neuron(axes, center, -1.5 * level, row, width=min(0.42 * step, 1.3))
            if level:
                parent = (index // 2 + 0.5) * 2 * step
                axes.plot([parent, center], [-1.5 * level + 1.4, -1.5 * level + 0.95], color="#666666", linewidth=0.8)
                sign = "+" if index % 2 == 0 else "−"
                where = ((parent + center) / 2, -1.5 * level + 1.17)
                axes.annotate(sign, where, (0, 7), textcoords="offset points", ha="center", va="center", fontsize=9)
        axes.text(-0.1, -1.5 * level + 0.4, f"{level}", ha="right", va="center", fontsize=9)
    axes.text(-0.1, 1.1, "depth", ha="right", va="center", fontsize=9)
    axes.set_xlim(-0.5, columns)
    axes.set_ylim(-1.5 * depth - 0.1, 1.2)
    axes.axis("off")


def _draw_neuron(axes: Axes, center: float, base: float, row: np.ndarray, width: float) -> None:
    count = len(row)
    heights = 0.85 * row / max(row.max(), 1e-300)
    edges = np.linspace(center - width, center + width, count + 1)
    axes.bar(edges[:-1], heights, width=np.diff(edges) * 0.85, bottom=base, align="edge", color=COLORS[0])
    axes.plot([edges[0], edges[-1]], [base, base], color="black", linewidth=0.8)


def draw_partition(axes: Axes, batch: Batch, depth: int) -> None:
    """Draw the intervals of all neurons, layer by layer, filled by their number of distinct values.

    Args:
        axes: where to draw; the abscissa is the batch's own unit.
        batch: n numbers or strings such as "7/2".
        depth: number of layers, at most 8 to stay legible.
    """
    values = sorted(set(parse_batch(batch)))
    for level in range(depth + 1):
        for low, high, _ in partition(batch, level):
            _, color, hatch = _FILLS[min(_distinct(values, low, high), 4) - 2]
            axes.add_patch(
                Rectangle(
                    (float(low), level - 0.32),
                    float(high - low),
                    0.64,
                    facecolor=color,
                    hatch=hatch,
                    edgecolor="black",
                    linewidth=0.5,
                )
            )
    for value in values:
        axes.axvline(float(value), color="black", linewidth=0.8, linestyle=":")
    span = float(values[-1] - values[0])
    axes.set_xlim(float(values[0]) - 0.02 * span, float(values[-1]) + 0.02 * span)
    axes.set_ylim(depth + 0.5, -0.5)
    axes.set_yticks(range(depth + 1))
    axes.set_xlabel("input value (dotted: the batch)")
    axes.set_ylabel("depth (layers)")
    axes.grid(False)
    handles = [Patch(facecolor=c, hatch=h, edgecolor="black", label=_NAMES[count]) for count, c, h in _FILLS]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=3)


def _distinct(values: list[Fraction], low: Fraction, high: Fraction) -> int:
    return 2 + sum(low < value < high for value in values)


def draw_energies(axes: Axes, batch: Batch, depth: int) -> None:
    """Draw the share of the energy on each gap, and on the neurons with more than two values, over depth.

    Args:
        axes: where to draw; logarithmic shares, the two outermost gaps thick.
        batch: n numbers or strings such as "7/2".
        depth: number of layers, at least 1.
    """
    found = [energy_shares(layer) for layer in layers(batch, depth)]
    shares, rest = np.array([one for one, _ in found]), np.array([other for _, other in found])
    counts = sort_batch(batch).counts
    above = sum(counts) - np.cumsum(counts)[:-1]
    steps = np.arange(1, depth + 1)
    for gap in range(shares.shape[1]):
        outer = gap in (0, shares.shape[1] - 1)
        axes.plot(
            steps,
            np.where(shares[:, gap] > 1e-14, shares[:, gap], np.nan),
            label=f"{above[gap]} above",
            markevery=marked_points(depth, gap),
            **{**line_style(gap), "linewidth": 2.8 if outer else 1.1},
        )
    visible = np.where(rest > 1e-14, rest, np.nan)
    axes.plot(steps, visible, color="#666666", linestyle="-", linewidth=1.1, label="neurons of 3 values or more")
    axes.set_yscale("log")
    axes.set_xlabel("depth (layers)")
    axes.set_ylabel("share of the energy")
    axes.legend(
        ncols=3, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.17), title="gap with … samples above it"
    )


def draw_limit(norms: Axes, gaps: Axes, batch: Batch, depth: int) -> None:
    """Draw norms and the gap to 90 degrees over depth, with their limits dashed.

    Args:
        norms: where to draw the norms of maximum, minimum and the largest other sample.
        gaps: where to draw the gap between the larger extreme and an interior sample, radians.
        batch: n numbers or strings such as "7/2".
        depth: number of layers, at least 1.
    """
    chosen = set(np.geomspace(1, depth, 40).astype(int).tolist())
    seen = [(layer.depth, geometry(layer)) for layer in layers(batch, depth) if layer.depth in chosen]
    end = limit(batch).geometry
    fields = {"norm_max": "largest input", "norm_min": "smallest input", "norm_interior": "largest other norm"}
    for index, (field, label) in enumerate([*fields.items(), ("gap", None)]):
        axes = gaps if field == "gap" else norms
        points = [(at, getattr(shape, field)) for at, shape in seen if getattr(shape, field)]
        if points:
            style = line_style(index)
            axes.plot(*zip(*points, strict=True), label=label, **{**style, "linestyle": "-"})
            axes.axhline(getattr(end, field), color=style["color"], linestyle="--", linewidth=1)
            axes.set_yscale("log")
    for axes in (norms, gaps):
        if axes.get_yscale() == "log":
            plain_ticks(axes.yaxis)
    norms.set_ylabel("norm (squares sum to 1)")
    norms.legend()
    gaps.set_ylabel("gap to 90° (radians)")
    gaps.set_xlabel("depth (layers)")


def draw_survey(
    axes: Axes, rows: Sequence[dict], side: str, kinds: Sequence[str], sharp: Sequence[float] | None
) -> None:
    """Draw the norm ratio of every batch of a survey against the batch size, beside the bound 3/(n-2).

    Args:
        axes: where to draw; both axes logarithmic, the kinds side by side at each size.
        rows: what `bnlib.tree_survey.survey` returns.
        side: "larger" or "smaller", the extreme that the ratio refers to.
        kinds: the kinds of batches, in the order of the markers.
        sharp: the sharp bound at each size, drawn dashed; None leaves it out.
    """
    sizes = np.array(sorted({row["n"] for row in rows}), dtype=float)
    for index, kind in enumerate(kinds):
        members = [row for row in rows if row["kind"] == kind]
        places = [row["n"] * (1 + 0.05 * (index - 2)) for row in members]
        style = {**line_style(index), "linestyle": "none"}
        axes.plot(places, [row[f"ratio_{side}"] for row in members], label=kind, markersize=3.5, **style)
    axes.plot(sizes, np.minimum(3 / (sizes - 2), 2), color="black", label="3/(n − 2)")
    if sharp is not None:
        axes.plot(sizes, sharp, color="black", linestyle="--", label="sharp")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{n:.0f}" for n in sizes])
    axes.minorticks_off()
    plain_ticks(axes.yaxis)
    axes.set_xlabel("batch size n")
    axes.set_title(f"{side} extreme")
