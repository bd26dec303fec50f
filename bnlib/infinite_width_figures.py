"""Pictures of the infinite-width theory: fixed points, multipliers, several outliers, large batches, basins."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bnlib.figures import COLORS, ink, line_style, marked_points
from bnlib.many_outliers import many_outlier_saddle_node, many_outlier_states
from bnlib.outlier_asymptotics import EXPANSIONS, expansion_value
from bnlib.outlier_class import class_geometry, next_state
from bnlib.outlier_fixed_points import log_drift, outlier_state, saddle_node, separatrix, symmetric_state

_STABLE = {"color": COLORS[0], "linestyle": "-", "linewidth": 2.2}
_UNSTABLE = {"color": COLORS[3], "linestyle": "--", "linewidth": 1.8}


def branch_sizes(largest: float | int, points: int | float = 160) -> list[float]:
    """Real batch sizes for a bifurcation diagram: dense above the saddle-node, even in the logarithm beyond.

    Args:
        largest: the last one, at least 10.
        points: how many beyond 3.

    Returns:
        Ascending batch sizes from 3 on.

    Example:
        >>> sizes = branch_sizes(64)
        >>> sizes[0], round(sizes[-1])
        (3.0, 64)
    """
    fold = saddle_node().n
    near = fold + np.geomspace(1e-6, 0.5, int(points) // 3)
    far = np.geomspace(fold + 0.5, float(largest), int(points) - len(near))[1:]
    return [3.0, fold - 1e-9, *near.tolist(), *far.tolist()]


def bifurcation(axes: Axes, branches: Mapping[str, Any], dots: Sequence[int]) -> None:
    """The figure of the chapter: norm ratio of all fixed points of the class over real batch sizes.

    Args:
        axes: where to draw; both axes logarithmic.
        branches: as `bnlib.outlier_fixed_points.bifurcation_branches`.
        dots: whole batch sizes to be marked.
    """
    n = np.array(branches["n"])
    outlier = np.array([np.nan if v is None else v for v in branches["outlier"]], dtype=float)
    between = np.array([np.nan if v is None else v for v in branches["separatrix"]], dtype=float)
    upper = np.where(np.isnan(between), n - 1, between)  # shaded: the two basins
    axes.fill_between(n, 1.0, upper, color="#888888", alpha=0.12, linewidth=0)
    axes.fill_between(n, between, n - 1, where=~np.isnan(between), color=COLORS[0], alpha=0.12, linewidth=0)
    axes.plot(n, n - 1, **{**_UNSTABLE, "linestyle": ":"})
    axes.plot(n, outlier, **_STABLE)
    axes.plot(n, between, **_UNSTABLE)
    axes.plot(n, np.ones_like(n), **_STABLE)
    fold_n, fold_ratio = branches["saddle_node"]
    axes.plot([fold_n], [fold_ratio], "D", color="black", markersize=6)
    where = (fold_n, fold_ratio)
    axes.annotate(
        f"saddle-node, n = {fold_n:.3f}", where, xytext=(9, 2), textcoords="offset points", va="center", fontsize=9
    )
    for size in dots:
        axes.plot([size], [1.0], "o", color=COLORS[0], markersize=4)
        if size > fold_n:
            axes.plot([size], [outlier_state(size).norm_ratio], "o", color=COLORS[0], markersize=4)
            axes.plot(
                [size], [separatrix(size).norm_ratio], "o", color="white", markeredgecolor=COLORS[3], markersize=4
            )
    _arrow(axes, 4.3, 0.86 * 3.3, 1.12)  # arrows: where the layers move a batch of the class
    _arrow(axes, 7.4, 0.96 * separatrix(7.4).norm_ratio, 1.03)
    for size in (69.0, 640.0):
        if size < n[-1]:
            _arrow(axes, size, 1.25 * separatrix(size).norm_ratio, 0.85 * outlier_state(size).norm_ratio)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("batch size n (real numbers; dots: whole ones)")
    axes.set_ylabel("norm of the distinguished sample / of another")
    ticks = [
        t
        for t in (3, 4, 5, 6, 7, 8, 10, 16, 32, 64, 128, 256, 512, 1024)
        if t <= n[-1] * 1.01 and not (n[-1] > 100 and t in (4, 6, 7, 10))
    ]
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.minorticks_off()
    heights = [t for t in (1, 2, 5, 10, 30, 100, 300, 1000) if t <= n[-1]]
    axes.set_yticks(heights, [str(t) for t in heights])
    reach = math.log(n[-1] / 3.0)
    for x, y, text, index, where in (
        (3.0 * math.exp(0.56 * reach), 3.0 * math.exp(0.38 * reach), "outlier state (stable)", 0, "left"),
        (3.0 * math.exp(0.55 * reach), 0.8, "symmetric state (stable)", 0, "center"),
        (3.0 * math.exp(0.56 * reach), 1.35, "separatrix (unstable)", 3, "left"),
        (3.0, 3.0 * math.exp(0.33 * reach), "collapsed cluster\n(unstable)", 3, "left"),
    ):
        axes.text(x, y, text, color=ink(index), fontsize=9, ha=where, va="center")
    axes.set_ylim(0.64, 1.25 * n[-1])


def _arrow(axes: Axes, x: float | int, start: float | int, end: float | int) -> None:
    axes.annotate(
        "", xy=(x, end), xytext=(x, start), arrowprops={"arrowstyle": "->", "color": "#666666", "linewidth": 1.2}
    )


def drift_curves(axes: Axes, sizes: Sequence[float | int]) -> None:
    """How a layer changes the norm ratio, over the norm ratio, for some batch sizes; zeros are fixed points.

    Args:
        axes: where to draw; the abscissa is logarithmic.
        sizes: batch sizes.
    """
    axes.axhline(0.0, color="black", linewidth=0.8)
    for index, n in enumerate(sizes):
        u = np.geomspace(1e-3 / n**3, (n - 1) / n, 500)
        before, after = class_geometry(0.0, u, n), class_geometry(0.0, np.asarray(next_state(u, n)), n)
        ratio = np.sqrt(before.outlier_square / before.cluster_square)
        change = np.sqrt(after.outlier_square / after.cluster_square) / ratio - 1.0
        style = line_style(index) | {"marker": None}
        axes.plot(ratio, 100.0 * change, label=f"n = {n:g}", **style)
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 3, 5, 8], ["1", "2", "3", "5", "8"])
    axes.minorticks_off()
    axes.set_xlabel("norm ratio before the layer")
    axes.set_ylabel("change of the norm ratio (%)")
    axes.legend()


def multiplier_curves(axes: Axes, table: Sequence[Mapping[str, Any]]) -> None:
    """Distance of the multipliers from 1 over the batch size, for the outlier state and the symmetric state.

    Args:
        axes: where to draw; both axes logarithmic.
        table: for each batch size `n` and the multipliers `class`, `cluster`, `cluster pairs` (outlier state),
            `symmetric` (leading) and `separatrix` (of the class, above 1).
    """
    n = [row["n"] for row in table]
    for index, (key, name) in enumerate(
        (
            ("class", "outlier state, inside the class"),
            ("cluster", "outlier state, one weight a sample"),
            ("cluster pairs", "outlier state, pairs"),
            ("symmetric", "symmetric state, leading"),
            ("separatrix", "separatrix, above 1"),
        )
    ):
        marked = marked_points(len(n), index)
        axes.plot(n, [abs(1.0 - row[key]) for row in table], label=name, markevery=marked, **line_style(index))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("batch size n")
    axes.set_ylabel("distance of the multiplier from 1")
    axes.legend(fontsize=9)


def many_outlier_branches(axes: Axes, outliers: Sequence[int], largest: float | int, points: int = 40) -> None:
    """Norm ratio of the states with k equal outliers over the batch size; names at the curves' right ends.

    Args:
        axes: where to draw; both axes logarithmic.
        outliers: numbers of outliers, 1 among them or not.
        largest: the last batch size.
        points: batch sizes a curve.
    """
    for index, k in enumerate(outliers):
        fold = many_outlier_saddle_node(k) if k > 1 else saddle_node().n
        near = fold + np.geomspace(1e-3, 0.5, points // 4 + 1)
        sizes = np.r_[near, np.geomspace(fold + 0.5, float(largest), points)[1:]]
        rows = []
        for n in sizes:
            if k == 1:
                rows.append((n, outlier_state(n).norm_ratio, separatrix(n).norm_ratio))
            else:
                states = [s.norm_ratio for s in many_outlier_states(float(n), k) if s.norm_ratio > 1]
                if len(states) == 2:
                    rows.append((n, *states))
        x, upper, lower = (np.array(column) for column in zip(*rows, strict=True))
        style = {"color": COLORS[index % len(COLORS)]}
        axes.plot(x, upper, linestyle="-" if k == 1 else "--", linewidth=2.2 if k == 1 else 1.6, **style)
        axes.plot(x, lower, linestyle=":", **style)
        name = "k = 1, stable" if k == 1 else f"k = {k}, {k - 1} way{'s' if k > 2 else ''} out"
        axes.annotate(
            name,
            (x[-1], upper[-1]),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=ink(index),
            fontsize=9,
            annotation_clip=False,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [t for t in (6, 8, 12, 16, 24, 32, 48, 64) if t <= largest]
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.minorticks_off()
    axes.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    axes.set_xlabel("batch size n")
    axes.set_ylabel("norm ratio")


def large_batches(axes: Sequence[Axes] | np.ndarray, largest: float | int, points: int = 60) -> None:
    """Two scaled quantities over the batch size, with their limits and expansions.

    Args:
        axes: two axes: n times the cluster angle; n times the separatrix's excess over 1.
        largest: the last batch size.
        points: batch sizes a curve.
    """
    sizes = np.geomspace(7, float(largest), points)
    angle = next(e for e in EXPANSIONS if e.name == "cluster_angle")
    ratio = next(e for e in EXPANSIONS if e.name == "norm_ratio" and e.kind == "separatrix")
    panels = (
        (
            [n * outlier_state(n).cluster_angle for n in sizes],
            [n * expansion_value(angle, n) for n in sizes],
            3 * math.pi,
        ),
        (
            [n * (separatrix(n).norm_ratio - 1) for n in sizes],
            [n * (expansion_value(ratio, n) - 1) for n in sizes],
            math.pi - 2,
        ),
    )
    labels = ("n × cluster angle\n(radians)", "n × (norm ratio of\nthe separatrix − 1)")
    limits = ("limit 3π", "limit π − 2")
    for panel, (exact, series, limit), label, name in zip(axes, panels, labels, limits, strict=True):
        panel.axhline(limit, color="black", linewidth=1.0, linestyle=":")
        panel.plot(sizes, exact, label="fixed point", **(line_style(0) | {"marker": None}))
        panel.plot(sizes, series, label="expansion, three terms in 1/n", **(line_style(1) | {"marker": None}))
        panel.annotate(name, (sizes[0], limit), xytext=(2, 4), textcoords="offset points", fontsize=9)
        panel.set_xscale("log")
        panel.set_xlabel("batch size n")
        panel.set_ylabel(label)
        panel.legend()


def basin_scatter(axes: Axes, points: Mapping[str, Sequence[tuple[float, bool]]]) -> None:
    """Outcome of whole batches over where they start, relative to the separatrix.

    Args:
        axes: where to draw.
        points: for each batch size, pairs of (excess of the start over 1 in units of the separatrix's, ended with an
            outlier).
    """
    axes.axvline(1.0, color="black", linewidth=1.0, linestyle=":")
    count = len(points)
    for index, found in enumerate(points.values()):
        style = line_style(index)
        for out, fill in ((True, style["color"]), (False, "white")):
            x = [start for start, end in found if end == out]
            spread = np.linspace(-0.28, 0.28, max(2, len(x)))[: len(x)]
            axes.plot(
                x, index + spread, style["marker"], markerfacecolor=fill, markeredgecolor=style["color"], markersize=4.5
            )
    axes.set_yticks(range(count), [f"n = {n}" for n in points])
    axes.set_xscale("log")
    axes.set_xlabel("(largest norm / others − 1), in units of the separatrix's")
    axes.plot([], [], "o", color="#444444", label="ended with an outlier")
    axes.plot([], [], "o", markerfacecolor="white", markeredgecolor="#444444", label="ended symmetric")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2)


def drift_at_infinity(axes: Axes, sizes: Sequence[float | int]) -> None:
    """Scaled change of the norm ratio a layer near the symmetric state: n^2 times it, over n times the excess over 1.

    Args:
        axes: where to draw.
        sizes: batch sizes; the limit of the scaled curves is drawn too.
    """
    x = np.linspace(0.0, 2.2, 120)
    rate = (math.pi - 2) / (2 * (math.pi - 1))
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.plot(x, x * x / (2 * (math.pi - 1)) - rate * x, color="#999999", linewidth=4, label="limit")
    for index, n in enumerate(sizes):
        top = symmetric_state(n).u
        u = np.array([_state_of_ratio(1 + v / n, n) for v in x[1:]])
        after = u * np.exp(log_drift(np.minimum(u, top), n))
        g = class_geometry(0.0, after, n)
        change = np.sqrt(g.outlier_square / g.cluster_square) - (1 + x[1:] / n)
        axes.plot(x[1:], n * n * change, label=f"n = {n:g}", **(line_style(index) | {"marker": None}))
    axes.set_xlabel("n × (norm ratio − 1)")
    axes.set_ylabel("n² × change of the\nnorm ratio per layer")
    axes.legend()


def _state_of_ratio(ratio: float | int, n: float | int) -> float:
    """The state u with a given norm ratio: P/Q = ratio^2 solved for u."""
    m = n - 1.0
    return ((m / n / ratio) ** 2 - 1.0 / n**2) * m / (m - 1.0)
