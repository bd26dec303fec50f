"""The rules of the falsification test: which cells show the outlier, how the norm ratio grows, and the verdict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bnlib.estimates import growth, share_interval

Status = Literal["holds", "fails", "undecided"]


@dataclass(frozen=True)
class Thresholds:
    """What counts as the geometry of the claim; the book's values stand in `book/claims.yml`.

    Attributes:
        angle_deg: least angle between the outlier and the mean of the others, degrees.
        top_over_second: least ratio of the largest to the second-largest norm.
        exponent: exponent p of norm ratio ~ n^p that "at least linear" means.
        exponent_margin: how far below `exponent` the lower end of its interval may lie where it holds.
        hold: number of consecutive layers that make a passage.
        share: least share of the draws in which both rules hold at once.
    """

    angle_deg: float = 85.0
    top_over_second: float = 2.0
    exponent: float = 1.0
    exponent_margin: float = 0.1
    hold: int = 10
    share: float = 0.5

    def __post_init__(self):
        if not 0 < self.angle_deg < 180:
            raise ValueError(f"angle_deg is {self.angle_deg}; valid is an angle between 0 and 180 degrees.")
        if isinstance(self.hold, bool) or not isinstance(self.hold, int) or self.hold < 1:
            raise ValueError(f"hold is {self.hold!r}; valid is a whole number of layers, at least 1.")
        if not 0 < self.share < 1:
            raise ValueError(f"share is {self.share}; valid is a share of the draws between 0 and 1.")


def status(low: float | None, high: float | None, threshold: float) -> Status:
    """Whether a median is known to be at or above a threshold, known to be below it, or neither.

    Args:
        low: lower end of its interval, None if not known.
        high: upper end, None if not known.
        threshold: in the same unit.

    Returns:
        `holds` if the whole interval is at or above, `fails` if it is below, `undecided` otherwise.

    Example:
        >>> status(86.0, 89.0, 85.0), status(80.0, 84.0, 85.0), status(80.0, 89.0, 85.0)
        ('holds', 'fails', 'undecided')
    """
    if low is not None and low >= threshold:
        return "holds"
    return "fails" if high is not None and high < threshold else "undecided"


def cell_status(detail: Mapping[str, Any], thresholds: Thresholds) -> Status:
    """Whether a cell shows one outlier, near a right angle to the mean of the others, in enough of its draws.

    Three rules: the median angle, the median of the largest over the second-largest norm, and the share of
    the draws in which both thresholds are reached at once. The last is skipped where the draws were not counted for
    this angle.

    Args:
        detail: as `bnlib.falsification.details` returns it.
        thresholds: of the angle (degrees), of the largest over the second-largest norm, and of the share.

    Returns:
        `fails` if one is known to fail, `holds` if all are known to hold, `undecided` otherwise.

    Example:
        >>> detail = {"angle_low": 88.0, "angle_high": 89.0, "top_low": 1.5, "top_high": 1.9}
        >>> cell_status(detail, Thresholds())
        'fails'
    """
    statuses = [
        status(detail["angle_low"], detail["angle_high"], thresholds.angle_deg),
        status(detail["top_low"], detail["top_high"], thresholds.top_over_second),
    ]
    hits = detail.get("joint", {}).get(f"{thresholds.angle_deg:g}")
    if hits is not None:
        statuses.append(status(*share_interval(hits, detail["draws"]), thresholds.share))
    return _worst(statuses)


def _worst(statuses: Iterable[Status]) -> Status:
    found = set(statuses)
    return next(word for word in ("fails", "undecided", "holds") if word in found)


def growth_table(
    parts: Mapping[tuple[int, int], Mapping[str, Any]], depth: int, *, generator: np.random.Generator
) -> list[dict[str, Any]]:
    """Exponent of the norm ratio as a power of the batch size, at one depth, for each width.

    Args:
        parts: (batch size, width) to what `run_cell` returned.
        depth: one of the depths of the parts.
        generator: source of the bootstrap.

    Returns:
        A list of `depth`, `width`, `from_n`, `exponent`, `low`, `high` (95 percent interval): the fit over
        the batch sizes from `from_n` on, for every `from_n` that leaves at least three.

    Example:
        >>> parts = {(n, 64): {"norm_ratios": {"30": [n - 1.0] * 9}} for n in (8, 16, 32)}
        >>> row = growth_table(parts, 30, generator=np.random.default_rng(0))[0]
        >>> row["from_n"], round(row["exponent"], 2)
        (8, 1.07)
    """
    rows = []
    for width in sorted({width for _, width in parts}):
        sizes = sorted(n for n, other in parts if other == width)
        for first in range(len(sizes) - 2):
            ratios = {n: parts[n, width]["norm_ratios"][str(depth)] for n in sizes[first:]}
            fit = growth(ratios, generator=generator)
            if fit is not None:
                numbers = {"exponent": fit.value, "low": fit.low, "high": fit.high}
                rows.append({"depth": depth, "width": width, "from_n": sizes[first], **numbers})
    return rows


def verdict_at(
    all_details: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], depth: int, thresholds: Thresholds
) -> dict[str, Any]:
    """Apply the rules at one depth over all batch sizes and widths.

    The claim speaks of large batches, so it gets the benefit of the doubt for small ones. Let `from_n` be the
    smallest batch size such that every cell from it on holds and, at every width, the norm ratio grows at
    least linearly from it on (a fit takes at least three batch sizes).

    * `confirmed`: `from_n` is the smallest batch size of the run; `confirmed under conditions`: it is larger;
    * `refuted`: a cell of the largest batch size is known to fail, or the growth is known to be slower than
      linear, at some width, from every batch size on from which all cells hold and growth can be fitted;
    * `inconclusive` otherwise.

    Args:
        all_details: as `details` returns them; those of other depths are ignored.
        rows: as `growth_table` returns them; likewise those of widths without any cell.
        depth: the depth to judge.
        thresholds: the rules' numbers.

    Returns:
        `depth`, `verdict`, `from_n` (or None), and `failing`, `undecided`, `holding`: numbers of cells.

    Raises:
        ValueError: no cell of that depth.

    Example:
        >>> sure = {"angle_low": 88.0, "angle_high": 89.0, "top_low": 5.0, "top_high": 9.0}
        >>> found = [{"n": n, "width": 64, "depth": 30, **sure} for n in (8, 16, 32)]
        >>> rows = [{"depth": 30, "width": 64, "from_n": 8, "exponent": 1.05, "low": 1.0, "high": 1.1}]
        >>> verdict_at(found, rows, 30, Thresholds())["verdict"]
        'confirmed'
    """
    here = [detail for detail in all_details if detail["depth"] == depth]
    if not here:
        raise ValueError(f"depth is {depth}; valid is a depth for which there are cells.")
    sizes = sorted({detail["n"] for detail in here})
    statuses = [cell_status(detail, thresholds) for detail in here]
    by_size = {n: _worst(s for s, detail in zip(statuses, here, strict=True) if detail["n"] == n) for n in sizes}
    widths = {detail["width"] for detail in here}
    # A width whose cells are not judged must not judge the growth either.
    fits = [row for row in rows if row["depth"] == depth and row["width"] in widths]
    growths = {n: _growth_status(fits, n, widths, thresholds) for n in sizes}
    verdict, from_n = _verdict(by_size, growths)
    return {
        "depth": depth,
        "verdict": verdict,
        "from_n": from_n,
        "failing": statuses.count("fails"),
        "undecided": statuses.count("undecided"),
        "holding": statuses.count("holds"),
    }


def _growth_status(
    rows: Sequence[Mapping[str, Any]], from_n: int, widths: set[int], thresholds: Thresholds
) -> Status | None:
    """Whether growth from a batch size on is at least linear at every width; None where there is no fit at all."""
    found = [row for row in rows if row["from_n"] == from_n]
    if not found:
        return None
    if any(row["high"] < thresholds.exponent for row in found):
        return "fails"
    least = thresholds.exponent - thresholds.exponent_margin
    known = {row["width"] for row in found if row["low"] >= least}
    return "holds" if known >= widths else "undecided"


def _verdict(by_size: Mapping[int, Status], growths: Mapping[int, Status | None]) -> tuple[str, int | None]:
    sizes = sorted(by_size)
    if by_size[sizes[-1]] == "fails":
        return "refuted", None
    candidates = [n for n in sizes if all(by_size[m] == "holds" for m in sizes if m >= n) and growths[n] is not None]
    from_n = next((n for n in candidates if growths[n] == "holds"), None)
    if from_n is not None:
        return ("confirmed" if from_n == sizes[0] else "confirmed under conditions"), from_n
    if candidates and all(growths[n] == "fails" for n in candidates):
        return "refuted", None
    return "inconclusive", None


def verdicts_by_width(
    all_details: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], depth: int, thresholds: Thresholds
) -> dict[int, dict[str, Any]]:
    """The verdict at one depth for each width alone: where the claim holds from can differ from width to width.

    Args:
        all_details: as in `verdict_at`.
        rows: as in `verdict_at`.
        depth: the depth to judge.
        thresholds: the rules' numbers.

    Returns:
        Width to what `verdict_at` says of it, in increasing order.

    Raises:
        ValueError: no cell of that depth.

    Example:
        >>> sure = {"angle_low": 88.0, "angle_high": 89.0, "top_low": 5.0, "top_high": 9.0}
        >>> found = [{"n": n, "width": 64, "depth": 30, **sure} for n in (8, 16, 32)]
        >>> verdicts_by_width(found, [], 30, Thresholds())[64]["verdict"]
        'inconclusive'
    """
    here = [detail for detail in all_details if detail["depth"] == depth]
    if not here:
        raise ValueError(f"depth is {depth}; valid is a depth for which there are cells.")
    return {
        width: verdict_at([detail for detail in here if detail["width"] == width], rows, depth, thresholds)
        for width in sorted({detail["width"] for detail in here})
    }
