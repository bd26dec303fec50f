"""Speed and size of the random-network ensembles, as ratios measured in one run.

    python benchmarks/ensembles.py              draws against dense weights, and the ensemble of record
    python benchmarks/ensembles.py --million    the network of width 1 000 000 as well, with its peak memory

Every ratio is the median of five runs of each side, taken in turn, so that a slow moment of the machine meets both.
"""

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable

import torch

from bnlib import geometry
from bnlib.ensembles import choose_draw, next_preactivation, propagate, record
from bnlib.layers import Stages

RUNS = 5
Row = tuple[str, str, str, str]  # what, measured, wanted, remark


def alternating_medians(*calls: Callable[[], object]) -> list[float]:
    """Median seconds of each call, over alternating runs, after one of each to warm up."""
    for call in calls:
        call()
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(RUNS):
        for call, times in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]


def draw_seconds(n: int, d: int, width: int, recenter: bool) -> tuple[float, float]:
    """Median seconds of one layer by dense weights and by the Gram root, a draw.

    A run of either side has as many draws as take about a fifth of a second, so that neither is a matter of luck.
    """
    generator = torch.Generator().manual_seed(0)

    def call(draw, draws):
        x = torch.randn(draws, n, d, generator=generator, dtype=torch.float64)
        return lambda: next_preactivation(x, width, generator=generator, draw=draw, recenter=recenter)

    counts = []
    for draw in ("dense", "gram_root"):
        once = call(draw, 1)
        once()
        start = time.perf_counter()
        once()
        counts.append(min(400, max(1, round(0.2 / (time.perf_counter() - start)))))
    dense, root = alternating_medians(call("dense", counts[0]), call("gram_root", counts[1]))
    return dense / counts[0], root / counts[1]


def draw_rows() -> list[Row]:
    """The draws alone: same precision, same threads."""
    rows = []
    for n, width, wanted in ((32, 1000, None), (64, 1000, 6), (128, 1000, None), (32, 4096, 20)):
        dense, root = draw_seconds(n, width, width, recenter=True)
        rows.append(
            (
                f"one recentered layer, n = {n}, width {width}: dense / Gram root",
                f"{dense / root:.1f} x",
                "" if wanted is None else f">= {wanted} x",
                f"auto takes {choose_draw(n, width, width)}",
            )
        )
    return rows


def choice_rows() -> list[Row]:
    """Where dense weights are faster, and what `auto` costs against the better of the two."""
    rows = []
    for d in (64, 1000):
        for n in (d // 8, d // 4, d // 2, 3 * d // 4, d, 2 * d):
            dense, root = draw_seconds(n, d, d, recenter=False)
            chosen = choose_draw(n, d, d)
            cost = (dense if chosen == "dense" else root) / min(dense, root)
            rows.append(
                (
                    f"one layer, n = {n}, width {d}: dense / Gram root",
                    f"{dense / root:.2f} x",
                    "",
                    f"auto takes {chosen}: {cost:.2f} times the faster one",
                )
            )
    return rows


def ensemble_rows(draws: int = 100, depth: int = 30) -> list[Row]:
    """The ensemble of record: n = 64, width 1000, measured at every layer."""
    generator = torch.Generator().manual_seed(0)
    measurements = {
        "angle": lambda state: geometry.mean_pairwise_angle(state.x, gram=state.gram),
        "norm_ratio": lambda state: geometry.outlier_summary(state.x).norm_ratio,
        "effective_rank": lambda state: geometry.effective_rank(state.x, gram=state.gram),
    }
    start, cpu = time.perf_counter(), time.process_time()
    x = torch.randn(draws, 64, 1000, generator=generator, dtype=torch.float64)
    states = propagate(x, 1000, depth, Stages.parse("RC+NL"), generator=generator, draw="gram_root")
    record(states, measurements)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    what = f"{draws} draws, n = 64, width 1000, depth {depth}, angles, norm ratios and effective rank at every layer"
    return [(what, f"{seconds:.1f} s", "<= 10 s", f"{cpu:.1f} s of CPU time")]


def million_rows(width: int = 1_000_000, depth: int = 30) -> list[Row]:
    """One network of width 1 000 000, in a process of its own, so that the peak of memory is its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        seconds, gigabytes, angle = pool.apply(_million, (width, depth, torch.get_num_threads()))
    remark = f"{seconds:.0f} s; mean angle {angle:.2f} degrees"
    return [(f"n = 32, width {width}, depth {depth}: peak memory", f"{gigabytes:.2f} GB", "< 4 GB", remark)]


def _million(width: int, depth: int, threads: int) -> tuple[float, float, float]:
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    start = time.perf_counter()
    x = torch.randn(32, 1000, generator=generator, dtype=torch.float64)
    for state in propagate(x, width, depth, Stages.parse("RC+NL"), generator=generator):
        angle = geometry.mean_pairwise_angle(state.x, gram=state.gram)
    seconds = time.perf_counter() - start
    # Linux counts in units of 1024 bytes.
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, float(angle.rad2deg())


def print_table(rows: list[Row]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", action="store_true", help="also run width 1 000 000 (about a minute)")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="threads for both sides of every ratio (default 1; two are slower on a busy machine)",
    )
    parser.add_argument("--small", action="store_true", help="a short trial")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, float64, {options.threads} threads, median of {RUNS} alternating runs")
    rows = draw_rows() + ([] if options.small else choice_rows())
    rows += ensemble_rows(draws=10 if options.small else 100)
    if options.million:
        rows += million_rows()
    print_table([("what", "measured", "wanted", "remark"), *rows])


if __name__ == "__main__":
    main()
