"""Pictures of chapter 8: multipliers, convergence, broken symmetry, two batches, inference."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bnlib.activations import activation
from bnlib.cross_batch import correlation_map
from bnlib.figures import COLORS, ink, label_line_end, line_style
from bnlib.homogeneous import homogeneous, instability_degree
from bnlib.outlier_fixed_points import outlier_state, saddle_node, separatrix
from bnlib.two_block import critical_batch_size, onset_degree, two_block_states


def multiplier_curves(axes: Axes, scan: Mapping[str, Mapping[str, Any]], key: str, label: str) -> None:
    """One multiplier over the batch size, a curve for each activation, with a line at 1.

    Args:
        axes: where to draw.
        scan: activation to batch size (as a string) to a dictionary with `key`.
        key: of the multiplier.
        label: of the ordinate.
    """
    axes.axhline(1.0, color="#888888", linewidth=1.0)
    ends = []
    for index, (name, values) in enumerate(scan.items()):
        sizes = [int(n) for n in values]
        heights = [values[n][key] for n in values]
        axes.plot(sizes, heights, **line_style(index), label=name)
        ends.append(heights[-1])
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.set_xlabel("batch size n")
    axes.set_ylabel(label)


def convergence_curves(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Norm fluctuations over the layers, with straight lines at the predicted rate.

    Args:
        axes: where to draw, ordinate logarithmic.
        rows: with n, path and lambda_L.
    """
    for index, row in enumerate(rows):
        path = np.array(row["path"]) / row["path"][0]
        layers = np.arange(len(path))
        style = line_style(index)
        half = len(path) // 2
        line = path[half] * row["lambda_L"] ** (layers[half:] - half)
        # A wide pale band behind the curve: visible under every color, and in grey.
        axes.semilogy(layers[half:], line, color="#c4c4c4", linewidth=7.0, solid_capstyle="butt", zorder=1)
        axes.semilogy(layers, path, color=style["color"], linestyle="-", zorder=2)
        label_line_end(axes, layers, path, f"n = {row['n']}", index)
    axes.set_xlabel("layers after the first")
    axes.set_ylabel("norm fluctuations")
    axes.margins(x=0.12)


def _branch(sizes: np.ndarray, slope: float) -> tuple[list[float], list[float]]:
    outer, inner = [], []
    for n in sizes:
        states = two_block_states(float(n), homogeneous(1, 1, slope), lowest=-14.0, points=120)
        ratios = [_norm_ratio(state.share, float(n)) for state in states]
        outer.append(ratios[0] if ratios else math.nan)
        inner.append(ratios[1] if len(ratios) > 1 else math.nan)
    return outer, inner


def _norm_ratio(share: float, n: float) -> float:
    """Norm of the winner over that of another sample, both centered."""
    return math.sqrt(share * (n - 1) / (1 - share))


def bridge(axes: Axes, points: int, largest: float | int = 512.0) -> None:
    """The norm of one distinguished sample over another's, at fixed points, with and without rescaling.

    Args:
        axes: where to draw; both axes logarithmic.
        points: batch sizes on each curve.
        largest: batch size.
    """
    fold = saddle_node().n
    sizes = fold + np.geomspace(1e-4, float(largest) - fold, points)
    style = {"linewidth": 2.0}
    axes.plot(sizes, [outlier_state(n).norm_ratio for n in sizes], color=COLORS[0], **style)
    axes.plot(sizes, [separatrix(n).norm_ratio for n in sizes], color=COLORS[0], linestyle="--")
    axes.annotate("without rescaling\n(RC+NL)", (7.5, 130), color=ink(0), fontsize=9)
    critical = critical_batch_size(homogeneous(1))
    sizes = critical + np.geomspace(0.02, float(largest) - critical, points)
    outer, inner = _branch(sizes, 0.0)
    axes.plot(sizes, outer, color=COLORS[3], **style)
    axes.plot(sizes, inner, color=COLORS[3], linestyle="--")
    axes.annotate("with rescaling\n(RC+RS+NL)", (70, 1.75), color=ink(3), fontsize=9, ha="left", va="center")
    axes.axhline(1.0, color="black", linewidth=2.0)
    for at in (fold, critical):
        axes.axvline(at, color="#888888", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([4, 8, 16, 32, 64, 128, 256, 512], ["4", "8", "16", "32", "64", "128", "256", "512"])
    axes.minorticks_off()
    axes.set_xlim(4, float(largest) * 1.1)
    axes.set_yticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
    axes.set_xlabel("batch size n")
    axes.set_ylabel("norm of the winner / of another")


def degree_plane(axes: Axes, points: int) -> None:
    """Where in the plane of batch size and degree BSB1 is unstable, and where one winner exists.

    Args:
        axes: where to draw.
        points: batch sizes.
    """
    sizes = np.geomspace(6.0, 256.0, points)
    unstable = [instability_degree(n) for n in sizes]
    onset = [onset_degree(n) for n in sizes]
    axes.plot(sizes, unstable, color=COLORS[0], linewidth=2.0)
    axes.plot(sizes, onset, color=COLORS[3], linestyle="--", linewidth=2.0)
    axes.axhline(1.0, color="black", linewidth=1.0, linestyle=":")
    axes.set_yscale("log")
    axes.annotate("ReLU", (6.1, 0.995), fontsize=9, va="top")
    axes.annotate("BSB1 unstable", (30, 1.5), fontsize=9, color=ink(0))
    axes.annotate("no winner", (6.1, 1.1), fontsize=9, color=ink(3))
    axes.set_xscale("log")
    axes.set_xticks([6, 8, 16, 32, 64, 128, 256], ["6", "8", "16", "32", "64", "128", "256"])
    ticks = [0.9, 1.0, 1.2, 1.5, 2.0, 2.5]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(0.9, 2.6)
    axes.set_xlabel("batch size n")
    axes.set_ylabel("degree α")


def share_curves(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Largest share of one sample over the layers.

    Args:
        axes: where to draw.
        rows: as `winner_states.late_spread`.
    """
    axes.axhline(1.0, color="#888888", linewidth=1.0)
    for index, row in enumerate(rows):
        layers = 1 + 10 * np.arange(len(row["path"]))
        axes.plot(layers, row["path"], markevery=max(1, len(layers) // 6), **line_style(index), label=row["activation"])
    axes.set_xlabel("layer")
    axes.set_ylabel("n × largest share")
    axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))


def memory_curves(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Largest share of one sample over the layers, from two starts, at several widths.

    Args:
        axes: where to draw.
        rows: as `winner_states.memory_of_start`, of one batch size.
    """
    axes.axhline(1.0, color="#888888", linewidth=1.0)
    widths = sorted({row["width"] for row in rows})
    for row in rows:
        index = widths.index(row["width"])
        equal = row["start"] == "equal"
        label = None if equal else f"width {row['width']}"
        style = {**line_style(index), "linestyle": "--" if equal else "-", "label": label}
        layers = 1 + 5 * np.arange(len(row["path"]))
        axes.plot(layers, row["path"], markevery=max(1, len(layers) // 6), **style)
    axes.set_xlabel("layer")
    axes.set_ylabel("n × largest share")
    axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))


def continuation(births: Axes, norms: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """The births of the one-winner state, and the state at one batch size, between recentering and normalization.

    Args:
        births: where to draw the batch sizes.
        norms: where to draw the norm of the winner over another sample's.
        rows: as `rescaling_bridge.branch`.
    """
    births.plot([row["t"] for row in rows], [row["fold"] for row in rows], **line_style(0))
    births.set_ylabel("least batch size")
    births.set_ylim(bottom=0)
    known = [row for row in rows if row["norm_ratio"] is not None]
    norms.semilogy([row["t"] for row in known], [row["norm_ratio"] for row in known], **line_style(1))
    norms.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    norms.minorticks_off()
    norms.set_ylabel("winner's norm / another's")
    norms.set_xlabel("t: 0 recentering alone, 1 batch normalization")


def correlation_curves(axes: Axes, names: Sequence[str], n: int) -> None:
    """F(rho) of two batches for several activations, with the diagonal.

    Args:
        axes: where to draw.
        names: of activations.
        n: batch size.
    """
    rho = np.linspace(0, 1, 41)
    axes.plot(rho, rho, color="#888888", linewidth=1.0)
    for index, name in enumerate(names):
        style = {**line_style(index), "marker": None}
        axes.plot(rho, correlation_map(activation(name), n, rho), **style, label=name)
    axes.set_xlabel("correlation ρ of two batches before a layer")
    axes.set_ylabel("after it")
    axes.legend()


def inference_curves(axes: Axes, table: Mapping[str, Mapping[str, float]]) -> None:
    """Accuracy of exact inference over depth, with two standard errors.

    Args:
        axes: where to draw.
        table: depth (as a string) to accuracy and accuracy_error.
    """
    depths = [int(d) for d in table]
    accuracy = [table[str(d)]["accuracy"] for d in depths]
    errors = [2 * table[str(d)]["accuracy_error"] for d in depths]
    axes.errorbar(depths, accuracy, yerr=errors, capsize=3, **line_style(0))
    axes.axhline(0.5, color="#888888", linewidth=1.0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [str(d) for d in depths])
    axes.set_xlabel("layers of batch normalization and ReLU")
    axes.set_ylabel("test accuracy")
