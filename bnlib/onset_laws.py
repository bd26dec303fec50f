"""How the onset of the outlier grows with the width: three laws, compared by likelihood, censored draws included."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2

from bnlib.likelihoods import likelihood_difference, lognormal_log_density

Onsets = Sequence[int | float | None]

# Each with two parameters for each batch size. The cube root is the book's heuristic for large batches.
LAWS = ("logarithm", "power", "cube root")
_LEAST_SCALE, _LARGEST_SCALE = (
    0.03,
    1.5,
)  # of log onset: a cell whose draws agree exactly must not have infinite density
_OBSERVED = 5  # a cell with fewer observed onsets says where the median is not, and nothing about its own scale


def law_median(law: str, level: float, slope: float, widths: np.ndarray) -> np.ndarray:
    """Median onset at each width under a law, relative to the geometric middle of the widths.

    Args:
        law: one of `LAWS`: level + slope log2(w), level w^slope, or level + slope (w^(1/3) - 1), where w is the width
            over the geometric mean of the widths.
        level: median in the middle, in layers.
        slope: the other parameter.
        widths: increasing widths.

    Returns:
        Medians in layers, shape of the widths, at least 1.

    Raises:
        ValueError: an unknown law.

    Example:
        >>> law_median("logarithm", 50.0, 10.0, np.array([32, 64, 128])).round(6).tolist()
        [40.0, 50.0, 60.0]
    """
    relative = widths / np.exp(np.mean(np.log(widths)))
    match law:
        case "logarithm":
            found = level + slope * np.log2(relative)
        case "power":
            found = level * relative**slope
        case "cube root":
            found = level + slope * (np.cbrt(relative) - 1)
        case _:
            raise ValueError(f"law is {law!r}; valid is one of {', '.join(LAWS)}.")
    return np.maximum(found, 1.0)


def log_likelihoods(onsets: Onsets, last: int, median: float, scale: float) -> np.ndarray:
    """Log-likelihood of each draw of one cell, with a log-normal onset.

    Args:
        onsets: layers, None for a draw without an onset up to `last`.
        last: last layer at which an onset could be seen.
        median: of the onset, layers.
        scale: standard deviation of its logarithm.

    Returns:
        Log density (of the logarithm) of an observed onset, log probability of a later one for a censored draw.

    Example:
        >>> log_likelihoods([None], 100, 100.0, 0.3).round(4).tolist()
        [-0.6931]
    """
    return _log_likelihoods(*_prepared(onsets, last), median, scale)


def _prepared(onsets: Onsets, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the onsets, of `last` where censored, and which are censored."""
    logs = np.log(np.array([last if onset is None else onset for onset in onsets], dtype=float))
    return logs, np.array([onset is None for onset in onsets])


def _log_likelihoods(logs: np.ndarray, censored: np.ndarray, median: float, scale: float) -> np.ndarray:
    return lognormal_log_density(logs, ~censored, math.log(median), math.log(scale))


def _total_of(cell: tuple[np.ndarray, np.ndarray], median: float, log_scale: float) -> float:
    scale = math.exp(min(max(log_scale, math.log(_LEAST_SCALE)), math.log(_LARGEST_SCALE)))
    return float(_log_likelihoods(*cell, median, scale).sum())


def _minimize(function, start: np.ndarray) -> np.ndarray:
    found = minimize(function, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-5, "fatol": 1e-7})
    again = minimize(function, found.x, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-9})
    return again.x


def fit_law(law: str, cells: Sequence[Onsets], widths: Sequence[int], last: int) -> dict[str, Any]:
    """Fit one law to the onsets of one batch size by maximum likelihood, each width with its own scale.

    Args:
        law: one of `LAWS`, or `"free"`: a median for each width.
        cells: onsets of the draws at each width, None for censored.
        widths: increasing.
        last: last layer at which an onset could be seen.

    Returns:
        `medians` at each width, layers; `parameters` (level, slope) or None for `free`; `log_likelihoods`: one array
        for each width.

    Raises:
        ValueError: fewer than three widths, a width without draws, or as `law_median`.

    Example:
        >>> cells = [[39, 40, 41] * 4, [49, 50, 51] * 4, [59, 60, 61] * 4]
        >>> fit = fit_law("logarithm", cells, [64, 256, 1024], 200)
        >>> [round(value) for value in fit["parameters"]]
        [50, 5]
    """
    if len(widths) < 3:
        raise ValueError(f"widths is {list(widths)}; valid is at least three.")
    if any(len(cell) == 0 for cell in cells):
        raise ValueError("cells has an empty list; valid is at least one draw at each width.")
    sizes = np.asarray(widths, dtype=float)
    starts = [_start(cell, last) for cell in cells]
    if law == "free":
        medians, scales = [], []
        for cell, (median, scale) in zip(cells, starts, strict=True):
            if all(onset is None for onset in cell):
                medians.append(1e9)
                scales.append(math.log(_LEAST_SCALE))
                continue
            data = _prepared(cell, last)
            start = np.array([math.log(median), scale])
            best = _minimize(lambda p, data=data: -_total_of(data, math.exp(p[0]), p[1]), start)
            medians.append(math.exp(best[0]))
            scales.append(best[1])
        parameters = None
    else:
        middle, steps = np.array([median for median, _ in starts]), np.log2(sizes) - np.mean(np.log2(sizes))
        slope = float(steps @ middle / (steps @ steps))
        level = float(middle.mean())
        first = (
            {"logarithm": slope, "power": slope / level / math.log(2), "cube root": 2 * slope}[law]
            if law in LAWS
            else 0
        )
        unit = {"power": 0.1}.get(law, 5.0)

        prepared = [_prepared(cell, last) for cell in cells]

        def loss(p: np.ndarray) -> float:
            fitted = law_median(law, math.exp(p[0]), unit * p[1], sizes)
            totals = (_total_of(c, m, s) for c, m, s in zip(prepared, fitted, p[2:], strict=True))
            return -sum(totals)

        best = _minimize(loss, np.array([math.log(level), first / unit, *(scale for _, scale in starts)]))
        parameters = (math.exp(best[0]), float(unit * best[1]))
        medians, scales = law_median(law, *parameters, sizes).tolist(), best[2:]
    bounded = np.clip(np.exp(scales), _LEAST_SCALE, _LARGEST_SCALE)
    return {
        "medians": [float(m) for m in medians],
        "parameters": parameters,
        "log_likelihoods": [log_likelihoods(c, last, m, s) for c, m, s in zip(cells, medians, bounded, strict=True)],
    }


def _start(cell: Onsets, last: int) -> tuple[float, float]:
    """A median and a log scale to start from."""
    logs = np.log([1.2 * last if onset is None else onset for onset in cell])
    spread = float(np.clip(np.std(logs), 2 * _LEAST_SCALE, 0.5))
    return float(np.exp(np.median(logs))), math.log(spread)


def compare_laws(onsets: Mapping[int, Sequence[Onsets]], widths: Sequence[int], last: int) -> dict[str, Any] | None:
    """Which law of growth with the width describes the onsets better: likelihood ratios and fits.

    All laws have two parameters for each batch size, so their likelihoods compare directly. The standard error of a
    difference of log-likelihoods is that of a sum of independent draws (Vuong 1989), its variance taken within each
    cell. The deviance compares a law with free medians at every width.

    Args:
        onsets: batch size to one list of onsets (layers, None for censored) for each of the widths.
        widths: increasing.
        last: last layer at which an onset could be seen.

    Returns:
        `batch_sizes` that were used: those with at least 5 observed onsets at three widths or more; `widths`;
        `draws`, `censored`; `laws`: law to `log_likelihood`, `deviance`, `degrees` of freedom and `p_value`
        (chi-squared) against free medians, and `fits`: batch size to `level`, `slope`, `medians`, `deviance`;
        `against`: for each other law, `difference`: log-likelihood of the logarithm minus that law's, its
        `standard_error`, and `z`; `power_over_cube_root`: the same for log-likelihood of the power minus that of the
        cube root, so that every pair of laws is compared. None with fewer than three widths or no usable batch size.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> medians = {64: 40, 256: 50, 1024: 60, 4096: 70}
        >>> cells = [(m * np.exp(0.1 * rng.standard_normal(40))).round().astype(int).tolist() for m in medians.values()]
        >>> found = compare_laws({16: cells}, list(medians), 200)
        >>> found["against"]["power"]["difference"] > 0
        True
    """
    enough = {n: cells for n, cells in onsets.items() if sum(_observed(cell) >= _OBSERVED for cell in cells) >= 3}
    if len(widths) < 3 or not enough:
        return None
    fits = {law: {n: fit_law(law, cells, widths, last) for n, cells in enough.items()} for law in (*LAWS, "free")}
    per_draw = {law: [part for fit in found.values() for part in fit["log_likelihoods"]] for law, found in fits.items()}
    totals = {law: sum(_total(fit) for fit in found.values()) for law, found in fits.items()}
    degrees = (len(widths) - 2) * len(enough)
    laws = {}
    for law in LAWS:
        deviance = max(0.0, 2 * (totals["free"] - totals[law]))
        laws[law] = {
            "log_likelihood": totals[law],
            "deviance": deviance,
            "degrees": degrees,
            "p_value": float(chi2.sf(deviance, degrees)),
            "fits": {
                str(n): {
                    "level": fit["parameters"][0],
                    "slope": fit["parameters"][1],
                    "medians": fit["medians"],
                    "deviance": max(0.0, 2 * (_total(fits["free"][n]) - _total(fit))),
                }
                for n, fit in fits[law].items()
            },
        }
    return {
        "batch_sizes": list(enough),
        "widths": list(widths),
        "draws": sum(len(cell) for cells in enough.values() for cell in cells),
        "censored": sum(len(cell) - _observed(cell) for cells in enough.values() for cell in cells),
        "laws": laws,
        "against": {
            law: likelihood_difference(per_draw["logarithm"], per_draw[law]) for law in LAWS if law != "logarithm"
        },
        "power_over_cube_root": likelihood_difference(per_draw["power"], per_draw["cube root"]),
    }


def _total(fit: Mapping[str, Any]) -> float:
    return float(sum(part.sum() for part in fit["log_likelihoods"]))


def _observed(cell: Onsets) -> int:
    return sum(onset is not None for onset in cell)
