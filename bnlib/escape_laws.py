"""Is an escape time logarithmic, a power or exponential in the width? Laws fitted to censored times, and compared.

Every law has two constants; times scatter around it with an own spread at each width, so that no law gains from a
spread that changes. A law is compared with the others draw by draw (Vuong 1989), and with free values at every width,
which says whether it fits at all. NumPy float64.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq, minimize
from scipy.stats import chi2

from bnlib.likelihoods import likelihood_difference, lognormal_log_density

LAWS = ("logarithm", "power", "exponential")
_SCALES = (math.log(0.03), math.log(1.5))  # of log time: equal times must not have infinite density
_DROP = 1.920729  # of the log-likelihood, at the ends of a 95 percent interval for one constant

Waiting = Literal["lognormal", "exponential"]


@dataclass(frozen=True)
class GrowthLaw:
    """One law for a time as a function of the width d, fitted to times of which some are censored.

    Attributes:
        name: `"logarithm"` (a + b log d), `"power"` (a d^b) or `"exponential"` (a exp(b d)).
        log_likelihood: of the fit, natural logarithm.
        parameters: a and b.
        draw_log_likelihoods: that of each draw, shape (draws,), in the order of the widths.
        medians: width to the law's value: the median, or the mean for exponential waiting times, layers.
    """

    name: str
    log_likelihood: float
    parameters: tuple[float, float]
    draw_log_likelihoods: Float[np.ndarray, "draws"]
    medians: dict[int, float]


@dataclass(frozen=True)
class _Data:
    width: np.ndarray
    cell: np.ndarray
    log_time: np.ndarray
    seen: np.ndarray
    waiting: str
    sizes: np.ndarray


def _data(times: Mapping[int, Sequence[int]], depths: Mapping[int, int], waiting: str) -> _Data:
    if len(times) < 3:
        raise ValueError(f"times has {len(times)} widths; valid is at least three.")
    if waiting not in ("lognormal", "exponential"):
        raise ValueError(f"waiting is {waiting!r}; valid is 'lognormal' or 'exponential'.")
    if any(len(found) == 0 for found in times.values()):
        raise ValueError("times has a width without draws; valid is at least one draw at each width.")
    sizes = sorted(times)
    time = np.concatenate([np.asarray(times[d], dtype=float) for d in sizes])
    cell = np.repeat(np.arange(len(sizes)), [len(times[d]) for d in sizes])
    limit = np.array([float(depths[d]) for d in sizes])[cell]
    seen = time > 0
    log_time = np.log(np.where(seen, np.maximum(time, 1.0), limit))
    return _Data(np.array(sizes, dtype=float)[cell], cell, log_time, seen, waiting, np.array(sizes, dtype=float))


def _per_draw(data: _Data, log_value: np.ndarray, log_scale: np.ndarray | None) -> np.ndarray:
    """Log density of log time, or log probability of a later one, for each draw."""
    if log_scale is None:
        score = data.log_time - log_value[data.cell]
        return np.where(data.seen, score, 0.0) - np.exp(np.minimum(score, 700.0))
    spread = np.clip(log_scale, *_SCALES)[data.cell]
    return lognormal_log_density(data.log_time, data.seen, log_value[data.cell], spread)


def _log_values(name: str, p: np.ndarray, x: np.ndarray) -> np.ndarray:
    if name != "logarithm":
        return p[0] + p[1] * x
    line = p[0] + p[1] * x
    return np.log(np.logaddexp(0.0, line) + 1e-300)  # smooth and positive: a line above a few layers is left alone


def _start(data: _Data) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of a typical time and of a spread at each width."""
    cells = [data.log_time[data.cell == index] for index in range(len(data.sizes))]
    middle = np.array([float(np.median(found)) for found in cells])
    return middle, np.array([math.log(min(max(float(np.std(found)), 0.1), 1.0)) for found in cells])


def _best(
    data: _Data, log_values, start: np.ndarray, log_spread: np.ndarray, *, polish: bool = True
) -> tuple[np.ndarray, float]:
    """Maximize over the law's constants and, for log-normal times, a spread at each width."""
    count = len(start)

    def loss(p: np.ndarray) -> float:
        scales = p[count:] if data.waiting == "lognormal" else None
        return -float(_per_draw(data, log_values(p[:count]), scales).sum())

    first = np.concatenate([start, log_spread]) if data.waiting == "lognormal" else start
    bounds = [(None, None)] * count + [_SCALES] * (len(first) - count)
    options = {"maxiter": 200, "ftol": 1e-11, "gtol": 1e-6}
    found = minimize(loss, first, method="L-BFGS-B", bounds=bounds, options=options)
    if polish:
        found = minimize(loss, found.x, method="L-BFGS-B", bounds=bounds, options=options)
    return found.x, -float(found.fun)


def _coordinate(name: str, sizes: np.ndarray) -> tuple[np.ndarray, float, float]:
    raw = sizes if name == "exponential" else np.log(sizes)
    return (raw - raw.mean()) / raw.std(), float(raw.mean()), float(raw.std())


def _fit(name: str, data: _Data) -> tuple[GrowthLaw, np.ndarray]:
    x, center, spread = _coordinate(name, data.sizes)
    middle, log_spread = _start(data)
    slope, level = np.polyfit(x, np.exp(middle) if name == "logarithm" else middle, 1)
    if name == "logarithm":  # start from a line that is positive at every width
        slope = min(slope, (level - 0.3 * float(np.exp(middle).min())) / -float(x.min()))
    p, total = _best(data, lambda q: _log_values(name, q, x), np.array([level, slope]), log_spread)
    values = _log_values(name, p, x)
    slope = p[1] / spread
    offset = p[0] - slope * center
    draws = _per_draw(data, values, p[2:] if data.waiting == "lognormal" else None)
    medians = {int(d): float(math.exp(value)) for d, value in zip(data.sizes, values, strict=True)}
    a = offset if name == "logarithm" else math.exp(offset)
    return GrowthLaw(name, total, (float(a), float(slope)), draws, medians), p


def growth_laws(
    times: Mapping[int, Sequence[int]], depths: Mapping[int, int], *, waiting: Waiting = "lognormal"
) -> dict[str, GrowthLaw]:
    """Is a time logarithmic, a power or exponential in the width? Maximum likelihood, censored times included.

    Args:
        times: width to passages in layers, 0 where censored.
        depths: width to the layers that were watched.
        waiting: distribution of the times around their law: log-normal around the median with an own spread at each
            width, or exponential with the law as its mean, as for rare escapes at a constant rate.

    Returns:
        The three laws by name, each with equally many fitted numbers, so that their log-likelihoods compare directly.

    Raises:
        ValueError: fewer than three widths, a width without draws, or an unknown distribution.

    Example:
        >>> found = growth_laws({64: [40, 44], 512: [80, 88], 4096: [160, 176]}, {64: 500, 512: 500, 4096: 500})
        >>> max(found, key=lambda name: found[name].log_likelihood), round(found["power"].parameters[1], 2)
        ('power', 0.33)
    """
    data = _data(times, depths, waiting)
    return {name: _fit(name, data)[0] for name in LAWS}


def slope_interval(
    name: str,
    times: Mapping[int, Sequence[int]],
    depths: Mapping[int, int],
    *,
    waiting: Waiting = "lognormal",
) -> tuple[float | None, float | None]:
    """95 percent interval of a law's slope b, from its profile likelihood.

    Args:
        name: one of `LAWS`.
        times: as `growth_laws`.
        depths: as `growth_laws`.
        waiting: as `growth_laws`.

    Returns:
        Lower and upper end; None for an end that the data leave open.

    Raises:
        ValueError: an unknown law, or as `growth_laws`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> drawn = np.exp(0.2 * rng.standard_normal((3, 50)))
        >>> times = {d: (9 * d**0.3 * x).round().astype(int).tolist() for d, x in zip((64, 256, 1024), drawn)}
        >>> low, high = slope_interval("power", times, dict.fromkeys(times, 500))
        >>> low < 0.3 < high < low + 0.1
        True
    """
    if name not in LAWS:
        raise ValueError(f"name is {name!r}; valid is one of {', '.join(LAWS)}.")
    data = _data(times, depths, waiting)
    fit, best = _fit(name, data)
    x, _, spread = _coordinate(name, data.sizes)
    _, log_spread = _start(data)
    scales = best[2:] if data.waiting == "lognormal" else log_spread

    def shortfall(p1: float) -> float:
        _, total = _best(
            data,
            lambda q: _log_values(name, np.array([q[0], p1]), x),
            best[:1],
            np.asarray(scales, dtype=float),
            polish=False,
        )
        return fit.log_likelihood - total - _DROP

    ends: list[float | None] = []
    for sign in (-1.0, 1.0):
        step = 0.05 * max(abs(best[1]), 0.1)
        for _ in range(8):
            if shortfall(best[1] + sign * step) > 0:
                root = brentq(lambda s, sign=sign: shortfall(best[1] + sign * s), 0.0, step, xtol=0.01 * step)
                ends.append(float((best[1] + sign * root) / spread))
                break
            step *= 2.0
        else:
            ends.append(None)
    return ends[0], ends[1]


def compared_laws(
    times: Mapping[int, Sequence[int]], depths: Mapping[int, int], *, waiting: Waiting = "lognormal"
) -> dict[str, Any]:
    """The three laws beside each other: fits, how well each fits at all, and differences with their standard errors.

    The standard error of a difference of log-likelihoods is that of a sum of independent draws, its variance taken
    within each width (Vuong 1989). The deviance compares a law with free values at every width.

    Args:
        times: as `growth_laws`.
        depths: as `growth_laws`.
        waiting: as `growth_laws`.

    Returns:
        `laws`: name to `log_likelihood`, `parameters` (a, b), `deviance`, `degrees` of freedom, `p_value`
        (chi-squared) and `medians`; `slope_low`, `slope_high`: power and exponential to the ends of
        the slope's interval; `against`:
        "power over logarithm" and so on for all ordered pairs, to `difference`, `standard_error` and `z`; `draws` and
        `censored`.

    Raises:
        ValueError: as `growth_laws`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> drawn = np.exp(0.2 * rng.standard_normal((3, 50)))
        >>> times = {d: (9 * d**0.3 * x).round().astype(int).tolist() for d, x in zip((64, 512, 4096), drawn)}
        >>> found = compared_laws(times, dict.fromkeys(times, 500))
        >>> found["against"]["power over exponential"]["z"] > 3, found["laws"]["power"]["p_value"] > 1e-3
        (True, True)
    """
    data = _data(times, depths, waiting)
    fits = {name: _fit(name, data)[0] for name in LAWS}
    middle, log_spread = _start(data)
    _, free = _best(data, lambda q: q, middle, log_spread)
    free = max(free, *(fit.log_likelihood for fit in fits.values()))
    degrees = len(data.sizes) - 2
    laws, low, high = {}, {}, {}
    for name, fit in fits.items():
        deviance = 2.0 * (free - fit.log_likelihood)
        laws[name] = {
            "log_likelihood": fit.log_likelihood,
            "parameters": fit.parameters,
            "deviance": deviance,
            "degrees": degrees,
            "p_value": float(chi2.sf(deviance, degrees)),
            "medians": fit.medians,
        }
        if name != "logarithm":
            low[name], high[name] = slope_interval(name, times, depths, waiting=waiting)
    ends = np.flatnonzero(np.diff(data.cell)) + 1  # the draws stand in the order of the widths
    by_cell = {name: np.split(fit.draw_log_likelihoods, ends) for name, fit in fits.items()}
    against = {}
    for first, second in itertools.permutations(LAWS, 2):
        against[f"{first} over {second}"] = likelihood_difference(by_cell[first], by_cell[second])
    return {
        "laws": laws,
        "slope_low": low,
        "slope_high": high,
        "against": against,
        "draws": len(data.seen),
        "censored": int((~data.seen).sum()),
    }
