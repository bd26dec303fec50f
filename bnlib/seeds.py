"""Seeds: one number for a run, and an independent stream for each of its parts."""

import hashlib

import torch


def derive_seed(seed: int, *labels: str | int) -> int:
    """A seed for one part of a run, by a hash of the run's seed and the part's labels.

    Parts are independent of the order in which they run and of which other parts there are, so that an interrupted run
    resumes, and a run with one more batch size repeats the others' numbers.

    Args:
        seed: the run's seed, at least 0.
        *labels: what names the part, e.g. `"cells", 8, 256`.

    Returns:
        A whole number from 0 to 2⁶³ − 1.

    Example:
        >>> derive_seed(0, "cells", 8) == derive_seed(0, "cells", 8)
        True
        >>> derive_seed(0, "cells", 8) == derive_seed(0, "cells", 16)
        False
    """
    text = "\x1f".join(repr(part) for part in (seed, *labels))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *labels: str | int, device: str = "cpu") -> torch.Generator:
    """A torch generator for one part of a run, on the given device.

    Example:
        >>> import torch
        >>> torch.randn(2, generator=generator(0, "demo")).shape
        torch.Size([2])
    """
    return torch.Generator(device=device).manual_seed(derive_seed(seed, *labels))
