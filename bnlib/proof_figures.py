"""Pictures of the proof of Theorem 14' (chapter 7)."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from bnlib.figures import COLORS, ink
from bnlib.outlier_fixed_points import log_drift
from bnlib.proof_check import LAST_SINGLE


def draw_cover(axes: Axes, certificate: Mapping[str, Any], n: int) -> None:
    """The map along the whole line of norm ratios for one n, over the boxes of the certificate.

    The curve is log(next u / u) over the norm ratio; above 0 the norm ratio falls. Boxes are drawn as strips below,
    one colour and one height for each kind, roots as dots.

    Args:
        axes: where to draw.
        certificate: the parsed file.
        n: batch size, 3 to 64.
    """
    m = n - 1
    entry = certificate["single"][n - 3]
    p = m * np.sin(np.linspace(0.03, np.pi / 2 - 0.02, 600))
    u = m * (m * m - p * p) / ((m - 1) * n * n * p * p)
    drift = log_drift(u, n)
    height, base = 0.08, -0.56
    above = np.where(drift > base + 3.3 * height, drift, np.nan)  # it would run through the strips
    axes.plot(p, above, color="black", linewidth=1.4)
    axes.axhline(0, color="#888888", linewidth=0.8)
    kinds = {"+": (0, 2), "-": (1, 1), "root": (3, 0)}
    for left, right, kind in entry["boxes"]:
        index, level = kinds[kind]
        color = COLORS[index]
        start, width = float(Fraction(left)), float(Fraction(right) - Fraction(left))
        axes.broken_barh([(start, width)], (base + level * height, height * 0.85), facecolor=color, edgecolor="white")
    for text, (index, level) in kinds.items():
        label = {"+": "F > 0", "-": "F < 0", "root": "one root, F′ ≠ 0"}[text]
        axes.text(
            m * 1.015, base + (level + 0.4) * height, label, color=ink(index), fontsize=8, va="center", clip_on=False
        )
    for root in entry["roots"]:
        hollow = root["name"] == "separatrix"
        axes.plot(
            float(Fraction(root["norm_ratio"][0])),
            0,
            "o",
            color="black",
            markerfacecolor="white" if hollow else "black",
        )
    axes.grid(False)  # its lines would run through the strips
    axes.set_ylim(base - 0.02, 0.3)
    axes.set_yticks([-0.2, 0, 0.2])
    axes.set_xlim(0, m)
    axes.set_title(f"n = {n}")
    axes.set_xlabel("norm ratio r")
    axes.set_ylabel("log(u′ / u)")


def draw_gaps(axes: Axes, proof: Mapping[str, Any]) -> None:
    """(n - 1)(1 - bound) over n for each block of the outlier state, and the bound for all n from 65 on.

    Args:
        axes: where to draw.
        proof: as from `outcome`, verified.
    """
    sizes = [int(n) for n, states in proof["roots"].items() if "outlier" in states]
    states = [proof["roots"][str(n)]["outlier"] for n in sizes]
    blocks = {
        "class": [state["multiplier"][1] for state in states],
        "cluster": [state["standard"] for state in states],
        "pairs": [state["pairs"] for state in states],
    }
    for index, (name, values) in enumerate(blocks.items()):
        gaps = [(n - 1) * (1 - value) for n, value in zip(sizes, values, strict=True)]
        style = {"color": COLORS[index], "marker": "os^"[index], "markersize": 3, "linestyle": ("-", "--", "-.")[index]}
        axes.plot(sizes, gaps, label=name, markevery=(3 * index, 9), **style)
    last = 2 * LAST_SINGLE
    axes.plot([LAST_SINGLE + 1, last], [proof["larger"]["gap"]] * 2, color=COLORS[3], linewidth=2.4)
    axes.annotate(
        "all n ≥ 65: at least this",
        (LAST_SINGLE + 1, proof["larger"]["gap"]),
        xytext=(0, -12),
        textcoords="offset points",
        fontsize=8,
        color=ink(3),
    )
    axes.set_xlabel("batch size n")
    axes.set_ylabel("(n − 1)(1 − multiplier)")
    axes.set_xlim(5, last)
    axes.set_ylim(0, 1.25)
    axes.legend(loc="lower right", title="bound of the multiplier")
