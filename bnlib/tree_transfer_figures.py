"""Pictures of the simplified model beside real networks."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from bnlib.figures import COLORS, line_style, plain_ticks


def draw_energy_ratio(axes: Axes, n: int) -> None:
    """Draw the limit's norm ratio, cluster over extreme, against the ratio of the two limiting energies.

    Args:
        axes: where to draw; both axes logarithmic, the bound 3/(n-2) dotted.
        n: batch size, at least 4; unique extremes.
    """
    share = np.geomspace(1e-5, 1, 200)
    spread = (n - 1) ** 2
    for index, (name, square) in enumerate(
        {"larger": (1 + share) / (spread + share), "smaller": (1 + share) / (spread * share + 1)}.items()
    ):
        style = {**line_style(index), "marker": None}
        axes.plot(share, np.sqrt(square), label=f"against the {name} extreme", **style)
    axes.axhline(3 / (n - 2), color="black", linestyle=":", label="3/(n − 2)")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("smaller / larger limiting energy")
    axes.set_ylabel("norm ratio, cluster / extreme")
    plain_ticks(axes.yaxis)
    axes.set_title(f"n = {n}")
    axes.legend()


def draw_paths(
    axes: Axes, depths: Sequence[int], named: Mapping[str, Float[np.ndarray, "t networks"]], title: str
) -> None:
    """Draw medians over networks against depth, with the middle half of the last family as a band.

    Args:
        axes: where to draw; logarithmic depth, ordinate from 0 to 1.
        depths: the depths, shape (t,).
        named: for each family its values, shape (t, networks).
        title: of the panel.
    """
    for index, (name, values) in enumerate(named.items()):
        axes.plot(depths, np.median(values, axis=1), label=name, **line_style(index))
    band = np.quantile(values, [0.25, 0.75], axis=1)
    axes.fill_between(depths, *band, color=line_style(index)["color"], alpha=0.18, linewidth=0)
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set_ylim(0, 1)
    axes.set_ylabel("smaller / larger extreme")
    axes.set_title(title)


def draw_distributions(axes: Axes, named: Mapping[str, Float[np.ndarray, " networks"]], title: str) -> None:
    """Draw distribution functions as steps: the share of networks with at most the value on the abscissa.

    Args:
        axes: where to draw.
        named: for each family its values.
        title: of the panel.
    """
    for index, (name, sample) in enumerate(named.items()):
        values = np.sort(np.asarray(sample, dtype=float))
        steps = np.arange(len(values) + 1) / len(values)
        style = line_style(3 * index)
        dashes = ["-", "--", ":"][index % 3]
        axes.step([values[0], *values], steps, where="post", label=name, color=style["color"], linestyle=dashes)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("share with at most this")
    axes.set_title(title)


def draw_distance_paths(axes: Axes, named: Mapping[str, Sequence[dict]], threshold: int | float) -> None:
    """Draw distances of distributions against depth, with their 95 percent intervals as bands.

    Args:
        axes: where to draw; logarithmic depth.
        named: for each family what `bnlib.tree_compare.distance_path` returns.
        threshold: where to draw a dotted line.
    """
    for index, (name, rows) in enumerate(named.items()):
        depths = [row["depth"] for row in rows]
        style = line_style(index)
        axes.plot(depths, [row["distance"] for row in rows], label=name, **style)
        low, high = ([row[end] for row in rows] for end in ("low", "high"))
        axes.fill_between(depths, low, high, color=style["color"], alpha=0.1, linewidth=0)
        axes.plot(depths, low, color=style["color"], linewidth=0.7, alpha=0.7)
        axes.plot(depths, high, color=style["color"], linewidth=0.7, alpha=0.7)
    axes.axhline(threshold, color="black", linestyle=":", linewidth=1)
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set_ylim(0, 1)
    axes.set_xlabel("depth (layers)")
    axes.set_ylabel("distance of distributions")
    axes.legend()


def draw_escaped(axes: Axes, named: Mapping[str, Sequence[dict]], title: str) -> None:
    """Draw the shares of batches by their number of escaped points, as bars with 95 percent intervals.

    Args:
        axes: where to draw.
        named: for each family what `bnlib.tree_compare.escaped_shares` returns.
        title: of the panel.
    """
    width = 0.8 / len(named)
    for index, (name, rows) in enumerate(named.items()):
        places = np.arange(len(rows)) + (index - (len(named) - 1) / 2) * width
        shares = np.array([row["share"] for row in rows])
        errors = np.clip([shares - [row["low"] for row in rows], [row["high"] for row in rows] - shares], 0, None)
        axes.bar(
            places,
            shares,
            width,
            yerr=errors,
            capsize=2,
            label=name,
            color=COLORS[3 * index % len(COLORS)],
            hatch=["", "///"][index % 2],
            edgecolor="black",
            linewidth=0.6,
            error_kw={"linewidth": 0.9},
        )
    axes.set_xticks(range(len(rows)), [row["escaped"] for row in rows])
    axes.set_axisbelow(True)
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("share of batches")
    axes.set_title(title)
