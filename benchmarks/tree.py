"""Time the exact tree: 64 distinct random integers to depth 1000, and the limit to 12 digits with its bound.

Run as `python benchmarks/tree.py`; each row is the time of one task beside the time that it may take.
"""

import random
import time
from collections.abc import Callable

from bnlib import tree


def _seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def _integers(n: int, seed: int) -> list[int]:
    return random.Random(seed).sample(range(10**6), n)


def _to_twelve_digits(batch: list[int]) -> None:
    found = tree.limit(batch)
    if found.relative_error > 1e-12:
        raise RuntimeError(f"The limit is only known to {found.relative_error:.1e}.")


def rows(n: int = 64, depth: int = 1000, seed: int = 1000) -> list[dict]:
    """Return one row a task: `task`, `seconds`, `allowed` (seconds) and `share`, their ratio."""
    batch = _integers(n, seed)
    state = tree.grow(batch, depth)
    tasks = [
        (f"tree: grow n = {n} to depth {depth}", 10.0, lambda: tree.grow(batch, depth)),
        (f"tree: exact Gram matrix at depth {depth}", None, lambda: tree.gram(state)),
        (f"tree: norms and angles at depth {depth}", None, lambda: tree.geometry(state)),
        (f"tree: limit of n = {n} to 12 digits", 5.0, lambda: _to_twelve_digits(batch)),
    ]
    found = []
    for name, allowed, task in tasks:
        seconds = _seconds(task)
        share = None if allowed is None else seconds / allowed
        found.append({"task": name, "seconds": seconds, "allowed": allowed, "share": share})
    return found


def main() -> None:
    print(f"{'task':<48}{'seconds':>10}{'allowed':>10}{'share':>8}")
    for row in rows():
        allowed = "" if row["allowed"] is None else f"{row['allowed']:.0f}"
        share = "" if row["share"] is None else f"{row['share']:.3f}"
        print(f"{row['task']:<48}{row['seconds']:>10.3f}{allowed:>10}{share:>8}")


if __name__ == "__main__":
    main()
