"""Pictures of the simplified tree: the neurons themselves, and the intervals that they are."""

from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from bnlib.exact import Batch, parse_batch
from bnlib.figures import COLORS
from bnlib.tree import partition

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
