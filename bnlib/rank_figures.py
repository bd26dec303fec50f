"""Pictures of the rank theorem: the circle of neurons, waiting times and bounds, rank and accuracy over depth."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import Wedge

from bnlib import figures
from bnlib.planar_gamma import Sector, small_gamma_probability
from bnlib.rank_experiments import share_interval

Cell = Mapping[str, Any]

_BESIDE_BLACK = (0, 1, 3)  # colors of up to three curves beside black points


def draw_circle(axes: Axes, x: Float[np.ndarray, "n 2"], found: Sequence[Sector]) -> None:
    """Draw samples as arrows and shade the sectors of neurons that are not silent.

    Args:
        axes: where to draw.
        x: samples of length about one, no unit.
        found: sectors from `bnlib.planar_gamma.sectors`.
    """
    for sector in found:
        begin, end = np.rad2deg(sector.begin), np.rad2deg(sector.begin + sector.width)
        shade = "white" if sector.silent else figures.COLORS[6]
        axes.add_patch(Wedge((0, 0), 1.25, begin, end, fc=shade, ec="#777777", lw=0.8))
    for j, sample in enumerate(x):
        axes.annotate("", sample, (0, 0), arrowprops={"arrowstyle": "-|>", "color": "black", "lw": 1.4})
        axes.text(*(1.38 * sample), f"$x_{j + 1}$", ha="center", va="center")
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal")
    axes.axis("off")


def draw_along_circle(
    axes: Axes, x: Float[np.ndarray, "n 2"], v: Sequence[Fraction | float | int], found: Sequence[Sector]
) -> None:
    """Draw the function of a neuron's direction that a coefficient vector gives, and shade where it is not silent.

    Args:
        axes: where to draw; the abscissa is the neuron's angle in degrees.
        x: samples, no unit.
        v: coefficients, scaled here to a largest one of 1.
        found: sectors from `bnlib.planar_gamma.sectors`.
    """
    around = np.linspace(0, 2 * np.pi, 1441)
    directions = np.stack([np.cos(around), np.sin(around)], axis=1)
    weights = np.array([float(entry) for entry in v])
    axes.plot(np.rad2deg(around), np.maximum(directions @ x.T, 0) @ (weights / np.abs(weights).max()), color="black")
    for sector in found:
        if not sector.silent:
            begin = np.rad2deg(sector.begin) % 360
            axes.axvspan(begin, begin + np.rad2deg(sector.width), color=figures.COLORS[6], alpha=0.6, lw=0)
    axes.set(xlabel="angle of the neuron w (degrees)", ylabel="$f_v(w)$", xlim=(0, 360), xticks=range(0, 361, 60))


def draw_tail(axes: Axes, name: str, found: Cell, draws: int) -> None:
    """Draw the simulated tail of the waiting time with its intervals, and the three bounds.

    Args:
        axes: where to draw.
        name: of the batch.
        found: `neurons`, `measured`, `gamma` and the bounds `binomial`, `chernoff`, `simple`.
        draws: number of draws behind `measured`.
    """
    for index, (kind, label) in enumerate(
        [("binomial", "binomial"), ("chernoff", "Chernoff"), ("simple", "simple form")]
    ):
        style = figures.line_style(index)
        color = figures.COLORS[_BESIDE_BLACK[index]]
        axes.plot(found["neurons"], found[kind], color=color, linestyle=style["linestyle"], label=label)
    shown = [(k, share) for k, share in zip(found["neurons"], found["measured"], strict=True) if share * draws >= 5]
    ends = [share_interval(round(share * draws), draws) for _, share in shown]
    errors = [[share - low, high - share] for (_, share), (low, high) in zip(shown, ends, strict=True)]
    axes.errorbar(
        [k for k, _ in shown],
        [share for _, share in shown],
        yerr=np.array(errors).reshape(-1, 2).T,
        fmt="o",
        color="black",
        ms=3,
        lw=0.8,
        label="simulated",
    )
    axes.set(
        yscale="log", ylim=(5e-4, 1.5), xlabel="neurons k", ylabel="P[T > k]", title=f"{name}, γ = {found['gamma']:.4g}"
    )


def draw_waiting_times(
    axes: Axes,
    abscissa: Sequence[float | int],
    cells: Sequence[Cell],
    lines: Sequence[tuple[str, Sequence[float | int]]],
) -> None:
    """Draw mean numbers of neurons with five standard errors on top of named curves, both axes logarithmic.

    Args:
        axes: where to draw.
        abscissa: one value a cell.
        cells: `mean` and `standard_error` of each.
        lines: name and ordinates of each curve, one value a cell.
    """
    for index, (name, values) in enumerate(lines):
        style = figures.line_style(index + 1) | {"color": figures.COLORS[(1, 0, 3)[index]]}
        axes.plot(abscissa, values, ms=4, label=name, **style)
    axes.errorbar(
        abscissa,
        [cell["mean"] for cell in cells],
        yerr=[5 * cell["standard_error"] for cell in cells],
        fmt="o",
        ms=5,
        color="black",
        label="simulated",
    )
    axes.set(xscale="log", yscale="log", ylabel="neurons until full rank")
    axes.legend()


def name_ticks(axes: Axes, values: Sequence[float | int]) -> None:
    """Write the values themselves at the ticks of a logarithmic abscissa."""
    axes.set_xticks(values)
    axes.set_xticklabels([str(value) for value in values])
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)


def draw_gamma_law(axes: Axes, gammas: Mapping[int, np.ndarray]) -> None:
    """Draw the distribution of γ for planar Gaussian batches, and its approximation at the small end.

    Args:
        axes: where to draw.
        gammas: batch size to values of γ.
    """
    for index, (n, values) in enumerate(gammas.items()):
        style = figures.line_style(index)
        ordered = np.sort(values)
        share = np.arange(1, len(ordered) + 1) / len(ordered)
        levels = np.geomspace(ordered[0] / 2, 0.5, 200)
        axes.step(ordered, share, where="post", color=style["color"], ls=style["linestyle"], label=f"n = {n}")
        axes.plot(levels, [small_gamma_probability(n, level) for level in levels], color=figures.ink(index), lw=0.9)
    axes.plot([], [], color="#444444", lw=0.9, label="approximation")
    axes.set(xscale="log", xlabel="level of γ", ylabel="share of batches below", ylim=(0, 1.02))
    axes.legend()


def draw_rank_over_depth(axes: Axes, cells: Sequence[Cell], title: str) -> None:
    """Draw the rank of the last hidden layer at initialization over depth, for each tolerance and two other measures.

    Means over networks, with bands from the least to the largest value of a network.

    Args:
        axes: where to draw.
        cells: cells of one configuration, see `bnlib.rank_training.depth_cell`.
        title: of the panel.
    """
    depths = [cell["depth"] for cell in cells]
    named = [
        (f"rank at {figures.scientific(float(one), 'g')}", [cell["rank"][one] for cell in cells])
        for one in cells[0]["rank"]
    ]
    named.append(("neurons not silent", [cell["live_neurons"] for cell in cells]))
    named.append(("effective rank (entropy)", [cell["effective"]["entropy"] for cell in cells]))
    for index, (name, values) in enumerate(named):
        style = figures.line_style(index)
        axes.plot(depths, [np.mean(one) for one in values], label=name, **style)
        low, high = [min(one) for one in values], [max(one) for one in values]
        axes.fill_between(depths, low, high, color=style["color"], alpha=0.15, lw=0)
    axes.set(xscale="log", ylim=(0, None), xlabel="hidden layers", ylabel="rank or neurons", title=title)
    name_ticks(axes, depths)


def draw_accuracy_over_depth(axes: Axes, cells: Mapping[str, Sequence[Cell]], which: str) -> None:
    """Draw accuracy over depth for each configuration: the mean as a line, every network as a dot.

    Args:
        axes: where to draw.
        cells: name of a configuration to its cells, see `bnlib.rank_training.depth_cell`.
        which: `"train"` or `"test"`.
    """
    for index, (name, family) in enumerate(cells.items()):
        style = figures.line_style(index)
        shift = 1.06 ** (index - (len(cells) - 1) / 2)  # beside each other, so that dots do not hide dots
        depths = [cell["depth"] * shift for cell in family]
        axes.plot(depths, [cell[f"{which}_mean"] for cell in family], label=name, **style)
        for depth, cell in zip(depths, family, strict=True):
            shares = [0.0 if one is None else one for one in cell[which]]
            axes.plot(
                [depth] * len(shares),
                shares,
                ls="none",
                marker=style["marker"],
                ms=3,
                mfc="none",
                color=style["color"],
                alpha=0.7,
            )
    axes.set(xscale="log", ylim=(0, 1.03), xlabel="hidden layers", ylabel=f"accuracy, {which} samples")
    name_ticks(axes, [cell["depth"] for cell in next(iter(cells.values()))])
