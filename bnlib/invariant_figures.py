"""Pictures of the invariant geometry: its plane, moments, contraction, growth, and the collapsed state."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from bnlib.figures import COLORS, curves, line_style, marked_points

Values = Sequence | np.ndarray


def formula(expression: object) -> str:
    """A sympy expression as a line of plain text for a table.

    Example:
        >>> import sympy
        >>> n, alpha = sympy.symbols("n alpha")
        >>> formula(alpha * n**2 / (n - 1) ** 2)
        'α n²/(n - 1)²'
    """
    return str(expression).replace("**2", "²").replace("*", " ").replace("alpha", "α")


def draw_geometry(axes: Axes, plane: np.ndarray) -> None:
    """Definition 12 in its plane: the samples, their mean, and the recentered vectors as arrows.

    Args:
        axes: where to draw.
        plane: the batch, shape (n, 2), the odd sample first.
    """
    mean = plane.mean(axis=0)
    for row, color, marker, size in ((0, COLORS[3], "*", 14), (1, COLORS[0], "o", 9)):
        axes.plot(*plane[row], marker, color=color, markersize=size)
        axes.annotate("", xy=plane[row], xytext=mean, arrowprops={"arrowstyle": "->", "color": color, "linewidth": 2})
    axes.plot(*mean, "x", color="black", markersize=9)
    axes.annotate("odd sample $x_1$", plane[0], xytext=(8, -15), textcoords="offset points", ha="right")
    axes.annotate(r"cluster $\nu$ (all others)", plane[1], xytext=(10, 4), textcoords="offset points")
    axes.annotate("mean", mean, xytext=(4, -13), textcoords="offset points")
    axes.set_xlim(-0.15, 1.15)
    axes.set_ylim(-0.12, 0.3)
    axes.set_aspect("equal")
    axes.set_xlabel("along $x_1$")
    axes.set_ylabel(r"along $\nu$")


def draw_activities(axes: Axes, families: Sequence[tuple[str, str, int, Values, Values]]) -> None:
    """One mark a neuron: its activity for the odd sample against that for a cluster sample.

    Args:
        axes: where to draw.
        families: (name, marker, index of the color, activities for the odd sample, for a cluster sample).
    """
    for name, marker, index, odd, other in families:
        axes.plot(odd, other, marker, color=COLORS[index], markersize=3.5, linestyle="none", label=name, clip_on=False)
    axes.set_xlabel("activity for the odd sample")
    axes.set_ylabel("activity for a cluster sample")
    axes.legend()


def draw_points(axes: Axes, x: Values, means: Values, errors: Values, label: str) -> None:
    """Black diamonds with error bars: what was simulated."""
    axes.errorbar(x, means, yerr=errors, fmt="D", color="black", capsize=4, markersize=4, label=label)


def draw_first_moments(
    axes: Axes, widths: Values, exact: Values, sampled: Mapping[int, Mapping[str, int | float]]
) -> None:
    """How far the mean norm stays below 1, against the width.

    Args:
        axes: where to draw.
        widths: widths of the exact curve.
        exact: 1 - kappa_d at these widths.
        sampled: width to the mean deficit and its standard error; drawn with five of them.
    """
    axes.plot(widths, exact, color=COLORS[0], linewidth=2.5, label=r"exact, $1-\kappa_d$")
    axes.plot(widths, [5 / (8 * d) for d in widths], "--", color=COLORS[1], label="$5/(8d)$")
    draw_points(
        axes,
        list(sampled),
        [entry["mean"] for entry in sampled.values()],
        [5 * entry["standard_error"] for entry in sampled.values()],
        "simulated",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1e-4, 0.6)
    axes.set_xlabel("width $d$")
    axes.set_ylabel("1 − mean norm of the odd sample")
    axes.legend()


def draw_contraction(axes: Axes, ratios: np.ndarray, bands: Mapping[str, np.ndarray], definition: float) -> None:
    """Growth of squared distances inside the cluster against the distance of the odd sample.

    Args:
        axes: where to draw.
        ratios: R in units of n/(n-1).
        bands: name of a family to smallest, median and largest growth, shape (len(ratios), 3).
        definition: the ratio of Definition 12.
    """
    curves(
        axes,
        ratios,
        [(name, band[:, 1]) for name, band in bands.items()],
        bands=[(band[:, 0], band[:, 2]) for band in bands.values()],
    )
    axes.plot(ratios, 1 / ratios**2, ":", color="black", label=r"bound $\alpha$")
    axes.axhline(1.0, color="#555555", linewidth=0.8)
    axes.axvline(1.0, color="black", linewidth=1.2)
    axes.axvline(definition, color="black", linewidth=1.2, linestyle="--")
    axes.annotate(
        "Definition 12",
        (definition, 0.13),
        xytext=(-4, 0),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="bottom",
    )
    axes.annotate("hypothesis holds →", (1.0, 0.07), xytext=(5, 0), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([0.6, 1, 2, 3], ["0.6", "1", "2", "3"])
    axes.minorticks_off()
    axes.set_yticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    axes.set_xlabel("distance $R$ over $n/(n-1)$")
    axes.set_ylabel("growth of squared distance")
    axes.legend()


def draw_ratio_laws(
    axes: Axes, grid: np.ndarray, laws: Mapping[int, np.ndarray], sampled: Mapping[int, Values]
) -> None:
    """Distribution functions of the norm ratio in units of n-1: exact lines and simulated steps.

    Args:
        axes: where to draw.
        grid: factors of the exact curves.
        laws: width to exact probabilities on the grid.
        sampled: width to a simulated sample, drawn at every twentieth of its quantiles.
    """
    levels = np.linspace(0.05, 0.95, 19)
    for index, (width, law) in enumerate(laws.items()):
        style = line_style(index)
        marker = style.pop("marker")
        axes.plot(grid, law, label=f"width {width}", **style)
        axes.plot(np.quantile(sampled[width], levels), levels, marker, color=style["color"], markersize=4)
    axes.axvline(1.0, color="black", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.minorticks_off()
    axes.set_xlabel("norm ratio over $n-1$")
    axes.set_ylabel("share of layers below")
    axes.legend()


def draw_scale_walks(axes: Axes, walks: Mapping[int, tuple[float, np.ndarray]], *, first: int = 0) -> None:
    """The log of the scale along the depth: deciles of simulated networks and the exact drift.

    Args:
        axes: where to draw.
        walks: width to (exact mean step of log R, first, fifth and ninth decile of log R, shape (3, depth + 1)).
        first: index of the first width's color, so that a width keeps its color beside another panel.
    """
    axes.axhline(0.0, color="black", linewidth=1.0)
    for index, (width, (drift, deciles)) in enumerate(walks.items(), first):
        style = line_style(index)
        depths = np.arange(deciles.shape[1])
        marked = marked_points(len(depths), index)
        axes.plot(depths, drift * depths, label=f"width {width}", markevery=marked, **style)
        axes.fill_between(depths, deciles[0], deciles[2], color=style["color"], alpha=0.2, linewidth=0)
    axes.set_xlabel("depth (layers)")
    axes.set_ylabel(r"log of the scale, $\log(R_\ell/R_0)$")
    axes.legend()


def draw_density_ratios(axes: Axes, angles: np.ndarray, ratios: Mapping[int, np.ndarray]) -> None:
    """The density ratio of the proof against the angle, one curve a width.

    Args:
        axes: where to draw.
        angles: radians, from 0 to pi/2.
        ratios: width to the ratio at these angles.
    """
    curves(axes, np.degrees(angles), [(f"d = {width}", values) for width, values in ratios.items()])
    axes.set_xticks([0, 15, 30, 45, 60, 75, 90])
    axes.set_xlabel(r"$\varphi$ (degrees), $\sin^2\varphi = B/(B+C)$")
    axes.set_ylabel("density over that of $d=2$")


def draw_growth_rates(
    axes: Axes,
    widths: Values,
    rates: Mapping[int, Values],
    sampled: Sequence[tuple[int, float, float]],
    label: str = "simulated",
) -> None:
    """Growth rate of small differences over its infinite-width value, against the width.

    Args:
        axes: where to draw.
        widths: widths of the exact curves.
        rates: batch size to rate over log alpha at these widths.
        sampled: (width, measured rate over log alpha, half length of its error bar) of each simulated point.
        label: name of the simulated points in the legend.
    """
    for index, (n, values) in enumerate(rates.items(), 4):  # other colors than those of the panel above
        axes.plot(widths, values, label=f"n = {n}", markevery=marked_points(len(widths), index), **line_style(index))
    if sampled:
        draw_points(axes, *zip(*sampled, strict=True), label)
    axes.axhline(0.0, color="black", linewidth=1.0)
    axes.set_xscale("log")
    axes.set_xticks([2, 4, 16, 64, 256], ["2", "4", "16", "64", "256"])
    axes.minorticks_off()
    axes.set_xlabel("width $d$")
    axes.set_ylabel(r"growth rate over $\log\,\alpha$")
    axes.legend()


def draw_escape(axes: Axes, escape: Mapping[int, Mapping[str, np.ndarray]]) -> None:
    """Cluster angle against depth: the infinite-width map and deciles of simulated networks.

    Args:
        axes: where to draw.
        escape: batch size to `theory`, shape (depth + 1,), and `quantiles`, shape (3, depth), both in degrees.
    """
    for index, (n, entry) in enumerate(escape.items()):
        style = line_style(index)
        depths = np.arange(len(entry["theory"]))
        axes.plot(depths, entry["theory"], label=f"n = {n}", markevery=marked_points(len(depths), 0), **style)
        axes.fill_between(
            depths[1:], entry["quantiles"][0], entry["quantiles"][2], color=style["color"], alpha=0.3, linewidth=0
        )
    axes.set_yscale("log")
    axes.set_yticks([1, 3, 10, 30, 90], ["1", "3", "10", "30", "90"])
    axes.minorticks_off()
    axes.set_xlabel("depth (layers)")
    axes.set_ylabel("cluster angle (degrees)")
    axes.legend(ncols=2)


def draw_settled(axes: Axes, settled: Sequence[Mapping[str, int | float]], simulated: Mapping[int, np.ndarray]) -> None:
    """The cluster angle at which the escape ends, against batch size.

    Args:
        axes: where to draw.
        settled: entries with `n`, `cluster_angle_deg` and `three_pi_over_n_deg`.
        simulated: batch size to first, fifth and ninth decile in degrees.
    """
    curves(
        axes,
        [c["n"] for c in settled],
        [
            ("exact map", [c["cluster_angle_deg"] for c in settled]),
            (r"$3\pi/n$", [c["three_pi_over_n_deg"] for c in settled]),
        ],
    )
    if simulated:
        final = np.array(list(simulated.values()))
        errors = [final[:, 1] - final[:, 0], final[:, 2] - final[:, 1]]
        draw_points(axes, list(simulated), final[:, 1], errors, "simulated, width 1024")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([8, 16, 32, 64, 128], ["8", "16", "32", "64", "128"])
    axes.set_yticks([5, 10, 20, 40, 80], ["5", "10", "20", "40", "80"])
    axes.minorticks_off()
    axes.set_xlabel("batch size $n$")
    axes.set_ylabel("cluster angle (degrees)")
    axes.legend()


def draw_shares(axes: Axes, shares: np.ndarray, theory: Values | None, label: str, *, log: bool = False) -> None:
    """A share for each sample of a batch, the samples ordered by their norm: means with the range of the draws.

    Args:
        axes: where to draw.
        shares: shape (draws, n), samples ordered from the largest norm.
        theory: the infinite-width value of each sample, or None.
        label: what the share is.
        log: logarithmic vertical axis.
    """
    ranks = np.arange(1, shares.shape[1] + 1)
    low, high = np.quantile(shares, [0.1, 0.9], axis=0)
    axes.vlines(ranks, low, high, color=COLORS[0], linewidth=4, alpha=0.35, label="first to ninth decile")
    axes.plot(ranks, shares.mean(axis=0), "D", color="black", markersize=4, label="mean")
    if theory is not None:
        axes.plot(ranks, theory, "_", color=COLORS[3], markersize=12, markeredgewidth=2, label="infinite width")
    if log:
        axes.set_yscale("log")
    axes.set_xticks(ranks[:: max(1, math.ceil(len(ranks) / 16))])
    axes.set_xlabel("sample, from the largest norm")
    axes.set_ylabel(label)
    axes.legend()
