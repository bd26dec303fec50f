"""What the cells of chapter 11 say together: shares with intervals, onsets, and the theory beside them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from bnlib.activation_maps import applies, limit_gram, near_symmetric, with_outlier
from bnlib.architectures import Architecture, nonlinearity
from bnlib.estimates import median_interval, quantile, share_interval
from bnlib.geometry_classes import CLASSES, Rule, classify, shape_of
from bnlib.mean_field import forward_multipliers

COLUMNS = ("none", "RC", "RC+RS", "LN", "RN")
# Tail of the interval by which one cell among many may refute a claim about all of them: 99.9 percent.
SURE_TAIL = 0.0005


def summary(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a cell's draws say together.

    Args:
        found: what `run_cell` returned.

    Returns:
        `architecture`, `n`, `width`, `draws`; `counts`, class to draws, of those that occur; `most`, the commonest
        class (the first of `CLASSES` in a tie); `share`, `low`, `high`: its share with the exact 95 percent interval;
        `onset`, `onset_low`, `onset_high`: median, with its interval, of the layers from which on the draws of that
        class have it; `separation`, `odd_angle_deg`, `mean_angle_deg`, `log10_norm`: medians over all draws that have
        them.

    Example:
        >>> from bnlib.architecture_survey import make_cell, run_cell
        >>> found = run_cell(make_cell(Architecture.parse("NL"), 4, 16, depth=60, draws=8, seed=0))
        >>> summary(found)["most"], round(summary(found)["low"], 3)
        ('collapse', 0.631)
    """
    counts = Counter(found["classes"])
    most = max(CLASSES, key=lambda name: (counts[name], -CLASSES.index(name)))
    low, high = share_interval(counts[most], found["draws"])
    onsets = [float(depth) for depth, name in zip(found["settled"], found["classes"], strict=True) if name == most]
    onset_low, onset_high = median_interval(onsets)
    medians = {}
    for name in ("separation", "odd_angle_deg", "mean_angle_deg", "log10_norm"):
        values = [value for value in found[name] if value is not None]
        medians[name] = quantile(values, 0.5) if values else None
    return {
        **{name: found[name] for name in ("architecture", "n", "width", "draws")},
        "counts": {name: counts[name] for name in CLASSES if counts[name]},
        "most": most,
        "share": counts[most] / found["draws"],
        "low": low,
        "high": high,
        "onset": quantile(onsets, 0.5),
        "onset_low": onset_low,
        "onset_high": onset_high,
        **medians,
    }


def theory(spec: Architecture, n: int, *, layers: int, rule: Rule | None = None) -> dict[str, Any]:
    """What infinitely wide networks of an architecture do with a batch that is nearly symmetric, and with an outlier.

    Without rescaling over the batch: the map of `bnlib.activation_maps`, from both starts, classified by the same rule.
    Linear networks are left out: infinitely wide ones change nothing. With RC+RS+NL: whether the symmetric fixed point
    is stable in all directions, by the multipliers of `bnlib.mean_field`; what lies beyond is not asked.

    Args:
        spec: the architecture.
        n: batch size, at least 4.
        layers: of the map.
        rule: of the classes.

    Returns:
        `from_symmetric`, `from_outlier`: classes, None where there is no theory; `multiplier`: the larger of the two
        multipliers of the rescaled network, else None.

    Example:
        >>> theory(Architecture.parse("RC+NL"), 8, layers=1000)["from_outlier"]
        'outlier'
        >>> round(theory(Architecture.parse("RC+RS+NL"), 8, layers=1)["multiplier"], 4)
        0.7436
    """
    found: dict[str, Any] = {"from_symmetric": None, "from_outlier": None, "multiplier": None}
    linear = "NL" not in spec.tokens or spec.activation == "identity"
    if applies(spec) and not linear:
        for name, start in (("from_symmetric", near_symmetric()), ("from_outlier", with_outlier(n))):
            k = torch.from_numpy(limit_gram(start, n, spec, layers=layers).matrix(n))
            found[name] = CLASSES[int(classify(shape_of(k / k.diagonal().max()), rule))]
    elif spec == Architecture(stages="RC+RS+NL", activation=spec.activation, weight_variance=spec.weight_variance):
        multipliers = forward_multipliers(nonlinearity(spec.activation), n)
        found["multiplier"] = max(multipliers.norms, multipliers.covariances)
        found["from_symmetric"] = "symmetric" if found["multiplier"] < 1 else "other"
    return found


def column_of(spec: Architecture) -> str:
    """The column of the table in which an architecture stands: what its stages normalize, whatever their order.

    Example:
        >>> [column_of(Architecture.parse(line)) for line in ("NL", "NL+RC+RS", "LN+NL", "RN+NL", "RMS+NL")]
        ['none', 'RC+RS', 'LN', 'RN', 'RMS']
    """
    norms = [token for token in spec.tokens if token != "NL"]
    return "+".join(norms) or "none"


def record_of(row: str, spec: Architecture, found: Mapping[str, Any], *, wide: bool, theory: Mapping[str, Any]) -> dict:
    """A cell as the results file holds it, for criteria: `summary`, and what the cell is, and every class's share.

    Args:
        row: of the table.
        spec: the architecture.
        found: what `run_cell` returned.
        wide: whether this is the larger width.
        theory: what `theory` returned.

    Returns:
        `summary`'s entries; `row`, `layout`, `column`, `activation`, `after` (whether the norm comes behind NL),
        `wide`, `theory_symmetric`, `theory_outlier`, `multiplier`; `decided`, the class whose share is at least one
        half with its whole interval, or `none`; `sure`, likewise with the 99.9 percent interval; for symmetric,
        outlier and collapse, `<class>`, `<class>_low` and `<class>_high`, the share of that class with its exact
        95 percent interval, and `<class>_sure_low` and `<class>_sure_high`, the exact 99.9 percent one, for claims that
        one cell among many can refute; `named`: draws in one of the three.

    Example:
        >>> from bnlib.architecture_survey import make_cell, run_cell
        >>> spec = Architecture.parse("NL")
        >>> found = run_cell(make_cell(spec, 4, 16, depth=80, draws=8, seed=0))
        >>> record_of("ReLU", spec, found, wide=True, theory=theory(spec, 4, layers=200))["decided"]
        'collapse'
    """
    whole = summary(found)
    counts = whole["counts"]
    intervals = {}
    for name in ("symmetric", "outlier", "collapse"):
        hits = counts.get(name, 0)
        low, high = share_interval(hits, found["draws"])
        intervals |= {name: hits / found["draws"], f"{name}_low": low, f"{name}_high": high}
        low, high = share_interval(hits, found["draws"], tail=SURE_TAIL)
        intervals |= {f"{name}_sure_low": low, f"{name}_sure_high": high}
    sure_low, _ = share_interval(counts.get(whole["most"], 0), found["draws"], tail=SURE_TAIL)
    return {
        "row": row,
        "layout": spec.layout,
        "column": column_of(spec),
        "activation": spec.activation,
        "after": spec.tokens[:1] == ("NL",) and spec.normalized,
        "wide": wide,
        "theory_symmetric": theory["from_symmetric"],
        "theory_outlier": theory["from_outlier"],
        "multiplier": theory["multiplier"],
        **whole,
        "decided": whole["most"] if whole["low"] >= 0.5 else "none",
        "sure": whole["most"] if sure_low >= 0.5 else "none",
        **intervals,
        "named": sum(counts.get(name, 0) for name in ("symmetric", "outlier", "collapse")),
    }


def verdict_of_cells(cells: Sequence[Mapping[str, Any]]) -> str:
    """What one box of the table to take away says: the classes, each with the batch sizes at which it is commonest.

    Args:
        cells: `record_of` each batch size, one width.

    Returns:
        For example `"symmetric 4; outlier 8?, 32"`, with a question mark where the share may be below one half; the
        class alone where it is the same, beyond doubt, at every batch size.

    Example:
        >>> row = {"most": "outlier", "decided": "outlier"}
        >>> verdict_of_cells([{"n": 8, **row}, {"n": 32, **row}])
        'outlier'
        >>> verdict_of_cells([{"n": 8, "most": "other", "decided": "none"}, {"n": 32, **row}])
        'other 8?; outlier 32'
    """
    groups: dict[str, list[str]] = {}
    for cell in sorted(cells, key=lambda cell: cell["n"]):
        doubt = "" if cell["decided"] == cell["most"] else "?"
        groups.setdefault(cell["most"], []).append(f"{cell['n']}{doubt}")
    if len(groups) == 1 and not any("?" in size for sizes in groups.values() for size in sizes):
        return next(iter(groups))
    return "; ".join(f"{name} {', '.join(sizes)}" for name, sizes in groups.items())


def take_away(cells: Sequence[Mapping[str, Any]]) -> list[list[str | None]]:
    """The table to take away: a row an architecture, a column each for none, RC, RC+RS, LN and RN.

    Args:
        cells: `record_of` every cell; the wider width is shown.

    Returns:
        Rows: the name, and a text a column, None where nothing was run.

    Example:
        >>> take_away([{"row": "a", "column": "RC", "wide": True, "n": 8, "most": "outlier", "decided": "outlier"}])
        [['a', None, 'outlier', None, None, None]]
    """
    rows = list(dict.fromkeys(cell["row"] for cell in cells))
    table = []
    for row in rows:
        here = [cell for cell in cells if cell["row"] == row and cell["wide"]]
        columns = [[cell for cell in here if cell["column"] == column] for column in COLUMNS]
        table.append([row, *(verdict_of_cells(found) if found else None for found in columns)])
    return table


def full_table(cells: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Every cell in a row, for the table with all numbers.

    Args:
        cells: `record_of` every cell.

    Returns:
        Rows of: architecture, n, width, classes with counts, share of the commonest with its interval, onset with its
        interval, median separation, median angle of the odd sample, theory.

    Example:
        >>> from bnlib.architecture_survey import make_cell, run_cell
        >>> spec = Architecture.parse("NL")
        >>> found = run_cell(make_cell(spec, 4, 16, depth=80, draws=8, seed=0))
        >>> full_table([record_of("ReLU", spec, found, wide=True, theory=theory(spec, 4, layers=200))])[0][3]
        'collapse 8'
    """
    table = []
    for cell in cells:
        counts = ", ".join(f"{name} {count}" for name, count in cell["counts"].items())
        share = f"{cell['share']:.2f} ({cell['low']:.2f}–{cell['high']:.2f})"
        ends = [cell["onset_low"], cell["onset_high"]]
        onset = f"{cell['onset']:.0f}" + ("" if None in ends else f" ({ends[0]:.0f}–{ends[1]:.0f})")
        known = [cell["theory_symmetric"], cell["theory_outlier"]]
        told = None if known[0] is None else " / ".join(name or "–" for name in known)
        numbers = [None if cell[name] is None else f"{cell[name]:.3g}" for name in ("separation", "odd_angle_deg")]
        table.append([cell["architecture"], cell["n"], cell["width"], counts, share, onset, *numbers, told])
    return table


def theory_agrees(cell: Mapping[str, Any]) -> bool | None:
    """Whether a decided cell shows a class to which the infinitely wide network goes; None where that cannot be said.

    Example:
        >>> theory_agrees({"decided": "outlier", "theory_symmetric": "symmetric", "theory_outlier": "outlier"})
        True
    """
    known = [name for name in (cell["theory_symmetric"], cell["theory_outlier"]) if name is not None]
    if cell["decided"] == "none" or not known:
        return None
    return cell["decided"] in known
