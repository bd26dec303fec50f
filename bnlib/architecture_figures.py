"""Figures of chapter 11."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bnlib import figures
from bnlib.geometry_classes import CLASSES

# One fill a class, told apart without colour by its hatching.
_FILLS = {
    "symmetric": (figures.COLORS[4], ""),
    "outlier": (figures.COLORS[3], "//"),
    "collapse": (figures.COLORS[2], ""),
    "line": (figures.COLORS[6], "xx"),
    "other": ("#dddddd", ""),
    "broken": ("white", ".."),
}


def shares(cells: Sequence[Sequence[Mapping[str, Any]]], names: Sequence[str], titles: Sequence[str]) -> Figure:
    """Stacked bars of the share of draws in each class: a bar an architecture, a panel a list of cells.

    Args:
        cells: for each panel, one list of what `bnlib.architecture_tables.record_of` returned.
        names: what a bar is called: the key of the records.
        titles: of the panels.

    Returns:
        The figure.
    """
    most = max(len(panel) for panel in cells)
    figure, axes = figures.new_figure(rows=len(cells), height=0.24 * most + 0.9)
    for axis, panel, name, title in zip(axes[:, 0], cells, names, titles, strict=True):
        places = np.arange(len(panel))[::-1]
        left = np.zeros(len(panel))
        for kind in CLASSES:
            share = np.array([cell["counts"].get(kind, 0) / cell["draws"] for cell in panel])
            color, hatch = _FILLS[kind]
            axis.barh(
                places, share, left=left, height=0.75, color=color, hatch=hatch, edgecolor="black", lw=0.4, label=kind
            )
            left += share
        axis.set_yticks(places, [cell[name] for cell in panel])
        axis.set_xlim(0, 1)
        axis.set_xlabel("share of the draws")
        axis.set_title(title)
        axis.grid(False)
    axes[0, 0].legend(loc="lower center", bbox_to_anchor=(0.4, 1.1), ncols=3)
    return figure


def slope_map(
    cells: Mapping[int, Sequence[Mapping[str, Any]]], slopes: Sequence[float], angles: Sequence[float]
) -> Figure:
    """Share of draws with an outlier over the leaky slope, and the odd sample's angle beside a curve.

    Args:
        cells: batch size to what `record_of` returned for each slope.
        slopes: leaky slopes, increasing.
        angles: the angle of the theory for large batches, degrees, one a slope.

    Returns:
        The figure, two panels.
    """
    figure, axes = figures.new_figure(rows=2, height=2.7, sharex=True)
    for index, (n, row) in enumerate(cells.items()):
        share = np.array([cell["counts"].get("outlier", 0) / cell["draws"] for cell in row])
        low = np.array([cell["outlier_low"] for cell in row])
        high = np.array([cell["outlier_high"] for cell in row])
        style = figures.line_style(index)
        axes[0, 0].errorbar(
            slopes, share, yerr=[share - low, high - share], label=f"n = {n}", capsize=2, lw=1.2, **_thin(style)
        )
        measured = [np.nan if cell["odd_angle_deg"] is None else cell["odd_angle_deg"] for cell in row]
        axes[1, 0].plot(slopes, measured, ls="none", marker=style["marker"], color=style["color"], label=f"n = {n}")
    axes[1, 0].plot(slopes, angles, color="black", label="theory, large batches")
    axes[0, 0].set_ylabel("share of draws\nwith an outlier")
    axes[0, 0].set_ylim(-0.03, 1.03)
    axes[1, 0].set_ylabel("angle, odd sample to mean\nof the others [degrees]")
    axes[1, 0].set_xlabel("slope of the leaky ReLU below zero")
    for axis in axes[:, 0]:
        axis.legend()
    return figure


def _thin(style: Mapping[str, object]) -> dict[str, object]:
    return {"color": style["color"], "linestyle": style["linestyle"], "marker": style["marker"]}


def variance_map(
    shares_: np.ndarray,
    words: Sequence[Sequence[Sequence[str]]],
    activations: Sequence[str],
    variances: Sequence[float],
    titles: Sequence[str],
) -> Figure:
    """Share of draws with an outlier over the weight variance, with words written in: a panel each kind of network.

    Args:
        shares_: shape (panels, activations, variances).
        words: what is written below each share, same shape.
        activations: names of the rows.
        variances: of the columns.
        titles: of the panels.

    Returns:
        The figure.
    """
    figure, axes = figures.new_figure(rows=len(titles), height=0.72 * len(activations) + 0.9)
    for axis, panel, texts, title in zip(axes[:, 0], shares_, words, titles, strict=True):
        mesh = axis.imshow(panel, cmap="cividis", vmin=0, vmax=1, aspect="auto")
        for i, row in enumerate(texts):
            for j, word in enumerate(row):
                ink = figures.text_color(mesh.cmap(mesh.norm(panel[i, j])))
                axis.text(j, i, f"{panel[i, j]:.2f}\n{word}", ha="center", va="center", color=ink, fontsize=6.5)
        axis.set_yticks(range(len(activations)), activations)
        axis.set_xticks(range(len(variances)), [f"{v:g}" for v in variances])
        axis.set_xlabel("weight variance σ²")
        axis.set_title(title)
        axis.grid(False)
    return figure


def onsets(cells: Sequence[Mapping[str, Any]], depth: int) -> Figure:
    """Median depth from which on an outlier stays, with its interval: one line an architecture.

    Args:
        cells: `record_of` cells whose commonest class is the outlier.
        depth: of the networks.

    Returns:
        The figure.
    """
    figure, axes = figures.new_figure(height=0.2 * max(len(cells), 3) + 0.9)
    axis = axes[0, 0]
    places = np.arange(len(cells))[::-1]
    for place, cell in zip(places, cells, strict=True):
        low = cell["onset"] if cell["onset_low"] is None else cell["onset_low"]
        high = depth if cell["onset_high"] is None else cell["onset_high"]
        axis.plot([low, high], [place, place], color=figures.COLORS[0], lw=1.5)
        axis.plot([cell["onset"]], [place], marker="o", color=figures.COLORS[3])
    axis.set_yticks(places, [f"{cell['row']}: {cell['architecture'].split()[1]}" for cell in cells], fontsize=7)
    axis.set_xscale("log")
    axis.set_xlim(1, depth * 1.1)
    figures.plain_ticks(axis.xaxis)
    axis.set_xlabel("layer from which on there is an outlier")
    return figure
