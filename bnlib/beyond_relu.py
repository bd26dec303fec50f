"""What chapter 11 runs and reads off: its sweeps, and the lists from which its claims are judged."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from bnlib import architecture_figures as pictures
from bnlib.architecture_survey import make_cell, run_cell
from bnlib.architecture_tables import record_of, theory, theory_agrees
from bnlib.architectures import Architecture
from bnlib.ensembles import gaussian
from bnlib.estimates import share_interval
from bnlib.geometry_classes import CLASSES, Rule, classify, shape_of
from bnlib.leaky import mixing
from bnlib.sweeps import sweep

Record = Mapping[str, Any]
_ENTRIES = 4_000_000  # coordinates or inner products at once: 32 MB
_NO_THEORY = {"from_symmetric": None, "from_outlier": None, "multiplier": None}


def chance_table(
    batch_sizes: Sequence[int], dimension: int, draws: int, rule: Rule, *, generator: torch.Generator
) -> list[dict[str, Any]]:
    """What the rule says of points that no network has touched.

    Args:
        batch_sizes: numbers of points.
        dimension: of the space, for the points that are not on a line.
        draws: batches of each kind.
        rule: of the classes.
        generator: source of the points.

    Returns:
        Rows with `batch` (`on a line`, independent Gaussian positions on a line; `in space`), `n`, and the shares
        `outlier`, with `outlier_low` and `outlier_high`, its interval, and `symmetric`. The rule for lines is switched
        off: the question is what it would say of networks that are on their way to a line.

    Example:
        >>> rows = chance_table([8], 96, 500, Rule(), generator=torch.Generator().manual_seed(0))
        >>> rows[1]["outlier"], rows[1]["symmetric"]
        (0.0, 1.0)
    """
    rows = []
    for batch in ("on a line", "in space"):
        for n in batch_sizes:
            d = 1 if batch == "on a line" else dimension
            found = np.concatenate(
                [_classes_by_chance(part, n, d, rule, generator) for part in _parts(draws, _ENTRIES // (n * max(n, d)))]
            )
            hits = int((found == CLASSES.index("outlier")).sum())
            low, high = share_interval(hits, draws)
            rows.append(
                {
                    "batch": batch,
                    "n": n,
                    "outlier": hits / draws,
                    "outlier_low": low,
                    "outlier_high": high,
                    "symmetric": float((found == CLASSES.index("symmetric")).mean()),
                }
            )
    return rows


def _parts(total: int, largest: int) -> list[int]:
    """A total in parts of at most a given size: as many points as the memory holds at once."""
    largest = max(largest, 1)
    return [largest] * (total // largest) + [total % largest] * (total % largest > 0)


def _classes_by_chance(draws: int, n: int, dimension: int, rule: Rule, generator: torch.Generator) -> np.ndarray:
    x = gaussian(draws, n, dimension, generator=generator)
    # Without the rule for lines: the question is what separations alone would say of points on one.
    shape = shape_of(x @ x.mT)
    shape = type(shape)(**{**vars(shape), "line_angle": torch.full_like(shape.line_angle, 1.0)})
    return classify(shape, rule).cpu().numpy()


def table_of_architectures(
    rows: Mapping[str, Sequence[Architecture]],
    widths: Mapping[str, Sequence[int]],
    parameters: SimpleNamespace,
    rule: Rule,
) -> list[dict[str, Any]]:
    """Run every architecture at every batch size and both widths of its layout.

    Args:
        rows: name of the row to its architectures.
        widths: layout to two widths, the smaller one first.
        parameters: of the notebook: `batch_sizes`, `depth`, `draws`, `theory_layers`, `seed`, `device`, `scheduler` and
            `results_dir`.
        rule: of the classes.

    Returns:
        `bnlib.architecture_tables.record_of` each cell, in the order of rows, architectures, widths, batch sizes.
    """
    places = [
        (row, spec, width, n)
        for row, specs in rows.items()
        for spec in specs
        for width in widths[spec.layout]
        for n in parameters.batch_sizes
    ]
    found = _run([(spec, n, width) for _, spec, width, n in places], parameters, rule, "cells")
    known: dict[tuple[str, int], dict[str, Any]] = {}
    records = []
    for (row, spec, width, n), result in zip(places, found, strict=True):
        if (spec.name, n) not in known:
            known[spec.name, n] = theory(spec, n, layers=parameters.theory_layers, rule=rule)
        wide = width == widths[spec.layout][-1]
        records.append(record_of(row, spec, result, wide=wide, theory=known[spec.name, n]))
    return records


def _run(cells: Sequence[tuple[Architecture, int, int]], parameters: SimpleNamespace, rule: Rule, label: str) -> list:
    sizes = {"depth": parameters.depth, "draws": parameters.draws, "seed": parameters.seed}
    made = [make_cell(spec, n, width, rule=rule, device=parameters.device, **sizes) for spec, n, width in cells]
    unique = {cell.name: cell for cell in made}  # the same architecture may stand in two rows
    results = sweep(
        run_cell,
        list(unique.values()),
        folder=parameters.results_dir / "sweeps",
        scheduler=parameters.scheduler,
        workers=None if parameters.device == "cpu" else 1,  # one process a GPU
        label=label,
    )
    by_name = dict(zip(unique, results, strict=True))
    return [by_name[cell.name] for cell in made]


def named_share(cells: Sequence[Record]) -> dict[str, Any]:
    """Share of all draws that are symmetric, an outlier or collapsed, with its interval, and the draws of each class.

    Example:
        >>> named_share([{"named": 9, "draws": 10, "counts": {"outlier": 9, "line": 1}}])["share"]
        0.9
    """
    hits, draws = sum(cell["named"] for cell in cells), sum(cell["draws"] for cell in cells)
    low, high = share_interval(hits, draws)
    counts = {name: sum(cell["counts"].get(name, 0) for cell in cells) for name in CLASSES}
    return {"draws": draws, "share": hits / draws, "low": low, "high": high, "counts": counts}


def agreement(cells: Sequence[Record]) -> dict[str, Any]:
    """How many decided cells show a class to which the infinitely wide network goes (maps only, not multipliers).

    Cells of one architecture are alike, and are no independent evidence: the interval is the exact one of as many
    trials as there are architectures, with the same share.

    Args:
        cells: `record_of` every cell.

    Returns:
        `decided` and `agree`, cells; `architectures`, of which these are; `low` and `high`, the 95 percent interval of
        the share, None without cells; `by_chance`, the share of agreement if every cell is held against the theory of
        every other architecture's cells instead, None without two architectures.

    Example:
        >>> cell = {"decided": "outlier", "theory_symmetric": "symmetric", "theory_outlier": "outlier"}
        >>> agreement([{"architecture": "dense RC+NL", **cell}])["agree"]
        1
    """
    known = [cell for cell in cells if cell["theory_outlier"] is not None and theory_agrees(cell) is not None]
    agree = sum(theory_agrees(cell) for cell in known)
    trials = len({cell["architecture"] for cell in known})
    # The share of the cells, as a number of trials: rounded down for the lower end, up for the upper one.
    low, _ = share_interval(agree * trials // max(len(known), 1), trials)
    _, high = share_interval(-(-agree * trials // max(len(known), 1)), trials)
    others = [
        theory_agrees({**theirs, "decided": cell["decided"]})
        for cell in known
        for theirs in known
        if theirs["architecture"] != cell["architecture"]
    ]
    by_chance = sum(others) / len(others) if others else None
    found = {"decided": len(known), "agree": agree, "architectures": trials, "low": low, "high": high}
    return {**found, "by_chance": by_chance}


def _by_architecture(cells: Sequence[Record]) -> dict[tuple[str, int, int], Record]:
    return {(cell["architecture"], cell["n"], cell["width"]): cell for cell in cells}


_PAIRS = (
    ("orthogonal", "dense {} weights=orthogonal", "dense {}", ("NL", "RC+NL", "RC+RS+NL")),
    ("epsilon", "dense {} epsilon=1e-05", "dense {}", ("RC+RS+NL",)),
    ("bias", "dense {} bias=0.1", "dense {}", ("RC+NL", "RC+RS+NL")),
    ("order", "dense NL+{}", "dense {}+NL", ("RC", "RC+RS")),
)


def same_class(cells: Sequence[Record]) -> list[dict[str, Any]]:
    """Pairs of cells that differ in one setting, with the classes that both show.

    Args:
        cells: `record_of` every cell.

    Returns:
        Rows with `kind` (orthogonal, epsilon, bias, order), `stages`, `n`, `width`, `wide`, the decided classes
        `changed` and `usual`, `both` (whether both are decided), `same` (whether they are the same, both decided) and
        `differ` (whether they differ, both decided by the 99.9 percent interval).

    Example:
        >>> same_class([])
        []
    """
    found = _by_architecture(cells)
    rows = []
    for kind, changed, usual, stages in _PAIRS:
        for text in stages:
            for (name, n, width), cell in found.items():
                other = found.get((usual.format(text), n, width))
                if name == changed.format(text) and other is not None:
                    both = "none" not in (cell["decided"], other["decided"])
                    row = {"kind": kind, "stages": text, "n": n, "width": width, "wide": cell["wide"], "both": both}
                    row |= {"changed": cell["decided"], "usual": other["decided"]}
                    sure = "none" not in (cell["sure"], other["sure"])
                    row["same"] = both and cell["decided"] == other["decided"]
                    rows.append({**row, "differ": sure and cell["sure"] != other["sure"]})
    return rows


def onset_pairs(cells: Sequence[Record]) -> list[dict[str, Any]]:
    """Recentered blocks with a skip connection against layers without, at the largest batch size.

    Args:
        cells: `record_of` every cell.

    Returns:
        Rows with `strength`, `width`; `plain_low`, `plain_high`, `block_low`, `block_high`, intervals of the median
        onset of the outlier, None where there is none; `fewer` and `more`: whether the share of draws with an outlier
        is known to be smaller (larger) with the skip connection; `later` and `earlier`, likewise of the onset.

    Example:
        >>> onset_pairs([])
        []
    """
    found = _by_architecture(cells)
    rows = []
    for (name, n, width), block in found.items():
        text, _, strength = name.partition(" residual=")
        plain = found.get(("dense RC+NL", n, width))
        if text != "dense RC+NL" or not strength or plain is None or n != max(cell["n"] for cell in cells):
            continue
        ends = {
            f"{kind}_{end}": cell[f"onset_{end}"] if cell["most"] == "outlier" else None
            for kind, cell in (("plain", plain), ("block", block))
            for end in ("low", "high")
        }
        known = None not in ends.values()
        rows.append(
            {
                "strength": float(strength),
                "width": width,
                **ends,
                "fewer": block["outlier_high"] < plain["outlier_low"],
                "more": block["outlier_low"] > plain["outlier_high"],
                "later": known and ends["block_low"] > ends["plain_high"],
                "earlier": known and ends["block_high"] < ends["plain_low"],
            }
        )
    return rows


def slope_cells(parameters: SimpleNamespace, rule: Rule) -> dict[int, list[dict[str, Any]]]:
    """Recentered leaky ReLU networks over the slope.

    Args:
        parameters: of the notebook; `slopes`, `slope_batch_sizes` and `map_width` besides.
        rule: of the classes.

    Returns:
        Batch size to `record_of` each slope, with `slope`.
    """
    specs = {slope: Architecture.parse(f"RC+NL activation=leaky:{slope:g}") for slope in parameters.slopes}
    places = [(n, slope) for n in parameters.slope_batch_sizes for slope in parameters.slopes]
    found = _run([(specs[slope], n, parameters.map_width) for n, slope in places], parameters, rule, "slopes")
    table: dict[int, list[dict[str, Any]]] = {n: [] for n in parameters.slope_batch_sizes}
    for (n, slope), result in zip(places, found, strict=True):
        record = record_of("leaky ReLU", specs[slope], result, wide=True, theory=_NO_THEORY)
        table[n].append({"slope": float(slope), **record})
    return table


def slope_figure(cells: Mapping[int, Sequence[Record]], slopes: Sequence[float]) -> Figure:
    """The figure of `slope_cells`, with arccos(-w) beside the angles."""
    angles = np.degrees(np.arccos(-np.asarray([mixing(slope) for slope in slopes])))
    return pictures.slope_map(cells, slopes, angles.tolist())


VARIANCE_STAGES = ("RC+NL", "NL")


def variance_cells(parameters: SimpleNamespace, rule: Rule) -> list[dict[str, Any]]:
    """Networks of activations without homogeneity, recentered and without a norm, over the weight variance.

    Args:
        parameters: of the notebook; `variance_activations`, `variances`, `map_batch_size` and `map_width` besides.
        rule: of the classes.

    Returns:
        `record_of` each, with `variance`; stages by stages, activation by activation.
    """
    n = parameters.map_batch_size
    places = [
        (name, v, Architecture.parse(f"{stages} activation={name} weight_variance={v:g}"))
        for stages in VARIANCE_STAGES
        for name in parameters.variance_activations
        for v in parameters.variances
    ]
    found = _run([(spec, n, parameters.map_width) for _, _, spec in places], parameters, rule, "variances")
    records = []
    for (name, v, spec), result in zip(places, found, strict=True):
        known = theory(spec, n, layers=parameters.theory_layers, rule=rule)
        records.append({"variance": float(v), **record_of(name, spec, result, wide=True, theory=known)})
    return records


def variance_figure(cells: Sequence[Record], activations: Sequence[str], variances: Sequence[float]) -> Figure:
    """The figure of `variance_cells`: a panel with recentering, and one without a norm."""
    shape = (len(VARIANCE_STAGES), len(activations), len(variances))
    shares = np.array([cell["outlier"] for cell in cells]).reshape(shape)
    words = [(cell["most"], cell["theory_outlier"]) for cell in cells]
    names = np.array([f"{most}\n({known})" for most, known in words], dtype=object).reshape(shape)
    titles = ["recentering only", "no norm"]
    return pictures.variance_map(shares, names.tolist(), activations, variances, titles)


def shares_figure(cells: Sequence[Record], n: int) -> Figure:
    """Stacked bars with recentering only, and with batch norm, at one batch size and the larger width."""
    panels, titles = [], []
    for column, title in (("RC", "recentering only (RC)"), ("RC+RS", "batch norm (RC+RS)")):
        panel = [cell for cell in cells if cell["column"] == column and cell["wide"] and cell["n"] == n]
        if panel:
            panels.append(panel)
            titles.append(f"{title}, n = {n}")
    return pictures.shares(panels, ["row"] * len(panels), titles)


def onset_figure(cells: Sequence[Record], n: int, depth: int) -> Figure:
    """Onsets of the outlier at one batch size and the larger width."""
    here = [cell for cell in cells if cell["most"] == "outlier" and cell["n"] == n and cell["wide"]]
    return pictures.onsets(sorted(here, key=lambda cell: cell["onset"]), depth)


def scale_table(cells: Sequence[Record], n: int) -> list[list[Any]]:
    """Scales at one batch size and the larger width: what was divided out, and what was not.

    Args:
        cells: `record_of` every cell.
        n: batch size.

    Returns:
        Rows of architecture, degree of homogeneity, median log10 of the norm, classes, broken draws, for the dense
        architectures with no norm, RC, or RC+RS before the activation, and no other setting than the activation.

    Example:
        >>> scale_table([], 8)
        []
    """
    table = []
    for cell in cells:
        spec = Architecture.parse(cell["architecture"])
        plain = Architecture(stages=spec.stages, activation=spec.activation)
        if cell["n"] == n and cell["wide"] and spec == plain and cell["column"] in ("none", "RC") and not cell["after"]:
            counts = ", ".join(f"{name} {count}" for name, count in cell["counts"].items())
            table.append(
                [cell["architecture"], spec.degree, cell["log10_norm"], counts, cell["counts"].get("broken", 0)]
            )
    return table
