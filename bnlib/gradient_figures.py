"""Figures of chapter 9: growth of gradients, small batches, epsilon, trainability and the first steps."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from bnlib.figures import COLORS, MARKERS, curves, heat_map, ink, line_style
from bnlib.mean_field import linear_gradient_growth, relu_gradient_growth


def growth_by_batch(axes: Axes, rows: Sequence[Mapping[str, Any]], largest: int) -> None:
    """Draw the growth factor over the batch size: two theory curves, the limit, and networks with error bars.

    Args:
        axes: the panel.
        rows: of `gradient_survey.activation_rows`; those of "relu" and "identity" are drawn.
        largest: right end of the curves.
    """
    sizes = np.geomspace(4, largest, 80)
    for index, (name, label, rate) in enumerate(
        (("relu", "ReLU, theory", relu_gradient_growth), ("identity", "linear, theory", linear_gradient_growth))
    ):
        axes.plot(sizes, [rate(n) for n in sizes], color=COLORS[index], linestyle=("-", "--")[index], label=label)
        chosen = [row for row in rows if row["activation"] == name]
        axes.errorbar(
            [row["n"] for row in chosen],
            [row["network"] for row in chosen],
            yerr=[2 * row["network_error"] for row in chosen],
            fmt=MARKERS[index],
            color=ink(index),
            capsize=3,
            linestyle="none",
            label=f"{'ReLU' if name == 'relu' else 'linear'}, networks",
        )
    axes.axhline(math.pi / (math.pi - 1), color="black", linewidth=0.9, linestyle=":")
    axes.annotate(r"$\pi/(\pi-1)$", (largest, math.pi / (math.pi - 1)), ha="right", va="bottom")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("batch size $n$")
    axes.set_ylabel("growth of squared gradient per layer")
    axes.legend()


def growth_by_activation(axes: Axes, table: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw theory for many activations as bars, networks as dots.

    Args:
        axes: the panel.
        table: rows with "activation" and "growth", all at one batch size.
        rows: of `gradient_survey.activation_rows` at that batch size.
    """
    order = sorted(table, key=lambda row: row["growth"])
    names = [row["activation"] for row in order]
    axes.barh(names, [row["growth"] - 1 for row in order], left=1, color="#bcd6ea", edgecolor=COLORS[0], label="theory")
    found = [row for row in rows if row["activation"] in names]
    axes.errorbar(
        [row["network"] for row in found],
        [row["activation"] for row in found],
        xerr=[2 * row["network_error"] for row in found],
        fmt="o",
        color="black",
        capsize=3,
        linestyle="none",
        label="networks",
    )
    axes.set_xlabel("growth of squared gradient per layer")
    axes.legend(loc="lower right")


def small_batches(
    axes: Sequence[Axes],
    means: Sequence[Mapping[str, Any]],
    theory: float | int,
    rows: Sequence[Mapping[str, Any]],
    per_doubling: float | int,
) -> None:
    """Draw sample means at four samples and typical growth over width at three.

    Args:
        axes: two panels.
        means: of `gradient_theory.sample_mean_convergence`.
        theory: expectation of those means.
        rows: of `gradient_survey.small_batch_rows`.
        per_doubling: predicted rise at three samples when the width doubles.
    """
    sizes = [row["size"] for row in means]
    axes[0].plot(sizes, [row["median"] for row in means], **line_style(0), label="median of sample means")
    axes[0].fill_between(
        sizes,
        [row["low"] for row in means],
        [row["high"] for row in means],
        color=COLORS[0],
        alpha=0.2,
        label="middle half",
    )
    axes[0].axhline(theory, color="black", linestyle=":", label="expectation")
    axes[0].set_xscale("log")
    axes[0].set_xlabel("neurons averaged, $n = 4$")
    axes[0].set_ylabel("growth of squared gradient per layer")
    axes[0].legend(loc="lower right")
    three = [row for row in rows if row["n"] == 3]
    widths = [row["width"] for row in three]
    for index, (key, error, label) in enumerate(
        (("typical", "error", "networks, exp of mean log"), ("median", "median_error", "independent weights, median"))
    ):
        axes[1].errorbar(
            widths,
            [row[key] for row in three],
            yerr=[2 * row[error] for row in three],
            fmt=MARKERS[index],
            color=ink(index),
            capsize=3,
            label=label,
        )
    first = three[0]
    axes[1].plot(
        widths,
        [first["median"] + per_doubling * math.log2(w / widths[0]) for w in widths],
        color="black",
        linestyle=":",
        label="predicted slope through the first median",
    )
    axes[1].set_xscale("log", base=2)
    axes[1].set_xlabel("width, $n = 3$")
    axes[1].set_ylabel("growth of squared gradient per layer")
    axes[1].set_ylim(top=1.45 * max(row["typical"] + 2 * row["error"] for row in three))  # room for the legend
    axes[1].legend(loc="upper left")


def epsilon_curves(axes: Axes, rows: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]]) -> None:
    """Draw growth of the gradient, and growth over signal multiplier, against epsilon in units of the critical one.

    Args:
        axes: the panel.
        rows: with "n", "fraction" (epsilon / critical), "growth" and "relative".
        points: of `gradient_survey.epsilon_rows`, with "fraction" added.
    """
    sizes = sorted({row["n"] for row in rows})
    for index, n in enumerate(sizes):
        chosen = [row for row in rows if row["n"] == n]
        x = [row["fraction"] for row in chosen]
        style = line_style(index) | {"marker": None}
        axes.plot(x, [row["growth"] for row in chosen], **style, label=f"gradient, $n={n}$")
        style |= {"linewidth": 0.9, "alpha": 0.8}
        axes.plot(x, [row["relative"] for row in chosen], **style)
    last = max(rows, key=lambda row: (row["fraction"], row["relative"]))
    axes.annotate(
        "relative to the signal",
        (last["fraction"], last["relative"]),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9,
    )
    for row in points:
        index = sizes.index(row["n"]) if row["n"] in sizes else 0
        axes.errorbar(
            [row["fraction"]],
            [row["network"]],
            yerr=[2 * row["network_error"]],
            fmt=MARKERS[index],
            color=ink(index),
            capsize=3,
        )
    axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xlabel(r"$\varepsilon/\varepsilon_c$")
    axes.set_ylabel("growth of squared gradient per layer")
    axes.legend()


def trainability_map(
    axes: Axes, cells: Sequence[Mapping[str, Any]], scales: Mapping[int, float], factor: float | int, title: str
) -> None:
    """Draw mean accuracy over depth and batch size, with the predicted depth scale times a factor as bars.

    Args:
        axes: the panel.
        cells: with "depth", "batch_size" and "accuracy", one for each pair.
        scales: predicted depth scale of each batch size.
        factor: multiplies the scales.
        title: of the panel.
    """
    depths = sorted({cell["depth"] for cell in cells})
    sizes = sorted({cell["batch_size"] for cell in cells})
    found = {(cell["depth"], cell["batch_size"]): cell["accuracy"] for cell in cells}
    table = np.array([[found[depth, size] for size in sizes] for depth in depths])
    heat_map(
        axes,
        table,
        rows=depths,
        columns=sizes,
        row_label="depth (hidden layers)",
        column_label="batch size",
        value_label="accuracy on held-out digits",
        limits=(0.1, 1.0),
        format=".2f",
    )
    # Rows are at 0.5, 1.5, ...: depths in between are placed by linear interpolation.
    heights = np.interp([factor * scales[size] for size in sizes], depths, np.arange(len(depths)) + 0.5)
    for column, height in enumerate(heights):  # in the left third of a cell, the number in the rest
        axes.plot([column + 0.03, column + 0.32], [height, height], color="white", linewidth=5, solid_capstyle="butt")
        axes.plot([column + 0.03, column + 0.32], [height, height], color="#D55E00", linewidth=2.5)
    for text in axes.texts:
        text.set_x(text.get_position()[0] + 0.16)
    axes.set_title(title)


def layer_curves(axes: Axes, probes: Sequence[Mapping[str, Any]], key: str, label: str, unit: str = "step") -> None:
    """Draw a norm layer by layer on a logarithmic scale, one curve a probe.

    Args:
        axes: the panel.
        probes: of `trainability_survey.equilibration`.
        key: which of its lists.
        label: of the vertical axis.
        unit: what a probe's number counts.
    """
    drawn = [probe for probe in probes if probe[key] is not None]
    depth = len(drawn[0][key])
    curves(axes, np.arange(1, depth + 1), [(f"{unit} {probe['step']}", probe[key]) for probe in drawn])
    axes.set_yscale("log")
    axes.set_xlabel("layer (1 at the input)")
    axes.set_ylabel(label)
    axes.legend(ncols=2)


def cures(axes: Sequence[Axes], epsilon: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> None:
    """Draw accuracy of deep networks against epsilon, and against the predicted growth for other activations.

    Args:
        axes: two panels.
        epsilon: rows with "shift", "depth", "epsilon", "critical", "accuracy" and "accuracies".
        other: rows with "activation", "growth", "accuracy", "accuracies" and "family".
    """
    for index, shift in enumerate(sorted({row["shift"] for row in epsilon})):
        rows = [row for row in epsilon if row["shift"] == shift]
        style = line_style(index)
        axes[0].plot(
            [row["epsilon"] for row in rows],
            [row["accuracy"] for row in rows],
            **style,
            label=rf"$\beta = {shift:g}$, {rows[0]['depth']} layers",
        )
        for row in rows:
            seen = [value for value in row["accuracies"] if value is not None]
            axes[0].plot([row["epsilon"]] * len(seen), seen, ".", color=style["color"], markersize=4)
        axes[0].axvline(rows[0]["critical"], color=style["color"], linestyle=":", linewidth=1.2)
    axes[0].set_xscale("log")
    axes[0].set_xlabel(r"$\varepsilon$ (dotted: predicted $\varepsilon_c$)")
    axes[0].set_ylabel("accuracy")
    axes[0].legend(loc="center left")
    for index, family in enumerate(dict.fromkeys(row["family"] for row in other)):
        rows = sorted((row for row in other if row["family"] == family), key=lambda row: row["growth"])
        axes[1].plot(
            [row["growth"] for row in rows], [row["accuracy"] for row in rows], **line_style(index), label=family
        )
        for row in rows:
            seen = [value for value in row["accuracies"] if value is not None]
            axes[1].plot([row["growth"]] * len(seen), seen, ".", color=COLORS[index], markersize=4)
            word, _, number = row["activation"].partition(" ")
            text = number or ("0" if word == "relu" else "1")  # gain of tanh, slope of the leaky ReLU
            axes[1].annotate(
                text,
                (row["growth"], row["accuracy"]),
                xytext=(7, (-12, 5)[index % 2]),
                textcoords="offset points",
                color=ink(index),
                fontsize=9,
            )
    axes[1].set_xlabel("predicted growth of squared gradient per layer")
    axes[1].set_ylabel("accuracy")
    axes[1].legend()


def depth_over_scale(axes: Axes, points: Sequence[Mapping[str, Any]]) -> None:
    """Draw trainable depths over predicted scales, one series an optimizer, with lines of slope one through them.

    Args:
        axes: the panel.
        points: rows with "optimizer", "activation", "scale" and "depth" (None is left out).
    """
    for index, optimizer in enumerate(dict.fromkeys(row["optimizer"] for row in points)):
        rows = [row for row in points if row["optimizer"] == optimizer and row["depth"] is not None]
        if not rows:
            continue
        rows = sorted(rows, key=lambda row: row["scale"])
        scales, depths = [row["scale"] for row in rows], [row["depth"] for row in rows]
        name = {"sgd": "SGD", "adam": "Adam"}.get(optimizer, optimizer)
        axes.plot(scales, depths, **line_style(index) | {"linestyle": "none"}, label=name)
        factor = math.exp(np.mean(np.log(depths) - np.log(scales)))
        axes.plot(scales, [factor * scale for scale in scales], ":", color=COLORS[index], linewidth=1.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):  # plain numbers instead of powers of ten
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(r"predicted scale $\xi = 1/\log\lambda$ (layers)")
    axes.set_ylabel("trainable depth (layers)")
    if axes.get_lines():
        axes.legend()


def epsilon_choice(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw accuracies over the fraction of the critical epsilon: the choice as dots, new networks as marks.

    Args:
        axes: the panel.
        rows: of `depth_survey.chosen_epsilon`.
    """
    for index, row in enumerate(rows):
        style = line_style(index)
        for one in row["tried"]:
            seen = [value or 0.0 for value in one["accuracies"]]
            axes.plot(
                [one["fraction"] + 0.012 * (index - 1)] * len(seen), seen, ".", color=style["color"], markersize=4
            )
        name = row["activation"] + (rf", $\beta = {row['shift']:g}$" if row["shift"] else "")
        pair = [row["base"], row["raised"]]
        means = [one["accuracy"] for one in pair]
        errors = [[one["accuracy"] - one["worst"] for one in pair], [one["best"] - one["accuracy"] for one in pair]]
        x = [0.012 * (index - 1), row["fraction"] + 0.012 * (index - 1)]
        axes.errorbar(x, means, yerr=errors, **style, capsize=3, label=f"{name}, {row['depth']} layers")
    axes.set_xlabel(r"$\varepsilon/\varepsilon_c$")
    axes.set_ylabel("accuracy")
    axes.set_ylim(0, 1.35)  # room for the legend
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.legend(loc="upper left")


def jacobian_spectra(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw what products of layer Jacobians do: root mean square, largest and median singular value over depth.

    Args:
        axes: the panel.
        rows: of `jacobian_products.spectrum_rows`, of one activation.
    """
    depths = [row["depth"] for row in rows]
    families = [
        ("largest", [row["largest"] for row in rows]),
        ("root mean square", [math.sqrt(row["mean_square"]) for row in rows]),
        ("median (of the nonzero)", [row["median"] for row in rows]),
    ]
    curves(axes, depths, families)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.set_xlabel("layers multiplied")
    axes.set_ylabel("singular value")
    axes.set_title(rows[0]["activation"])


def arithmetic_paths(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw squared gradients of one network from the top layer down, in several arithmetics, without the lowest layer.

    Args:
        axes: the panel.
        rows: of `power_networks.arithmetic_rows`, of one width.
    """
    for index, row in enumerate(rows):
        # The lowest layer sees the input, whose scale is another.
        shown = [one for one in row["path"][:-1] if one is not None]
        axes.plot(range(len(shown)), shown, **line_style(index), label=row["arithmetic"])
    axes.axhline(0, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("layers below the top")
    axes.set_ylabel(r"$\log_{10}$ squared gradient")
    axes.legend(loc="lower left")


def backward_eigenvalues(axes: Axes, sizes: Sequence[int], values: Mapping[str, Sequence[float]]) -> None:
    """Draw the three eigenvalues of the backward map over the batch size.

    Args:
        axes: the panel.
        sizes: batch sizes.
        values: name of a space to its eigenvalues.
    """
    curves(axes, list(sizes), list(values.items()), direct_labels=False)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("batch size $n$")
    axes.set_ylabel("eigenvalue")
    axes.legend()


def signed(z: float | None) -> str | None:
    """A z-score for a table: sign and two decimals, zero without a sign; None stays None.

    Args:
        z: the score.

    Example:
        >>> signed(-1.239), signed(-0.001), signed(None)
        ('−1.24', '0.00', None)
    """
    if z is None:
        return None
    text = f"{z:+.2f}"
    return "0.00" if text.strip("+-") == "0.00" else text.replace("-", "−")


def with_error(value: float | None, error: float | None) -> str | None:
    """A measured number for a table, with as many decimals as two digits of its standard error need.

    Args:
        value: the number; None stays None.
        error: its standard error, positive; None for a number without one.

    Example:
        >>> with_error(1.58432, 0.00309), with_error(12.3, 4.56), with_error(None, None)
        ('1.5843 ± 0.0031', '12.3 ± 4.6', None)
    """
    if value is None:
        return None
    if not error:
        return f"{value:.4g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}".replace("-", "−")
