"""Progress of long work, for a terminal; staging removes these lines from the page."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")

MARK = "progress: "


def _seconds(duration: int | float) -> str:
    return f"{duration:.0f} s" if duration < 120 else f"{duration / 60:.0f} min"


def progress(
    items: Iterable[Item], label: str, *, total: int | None = None, every: int | float = 2.0
) -> Iterator[Item]:
    """Yield the items, and print now and then how many are done and how long the rest may take.

    Args:
        items: what to go through.
        label: what is being done, e.g. `"cells"`.
        total: how many items there are, when `items` has no length.
        every: seconds between two lines.

    Example:
        >>> list(progress([1, 2, 3], "squares", every=1e9))
        [1, 2, 3]
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    started = last = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if done and now - last >= every:
            last = now
            share = f"{done} of {total}" if total else f"{done}"
            rest = f", about {_seconds((now - started) / done * (total - done))} left" if total else ""
            print(f"{MARK}{label} {share} after {_seconds(now - started)}{rest}", file=sys.stderr, flush=True)
        yield item
