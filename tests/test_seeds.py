"""Seeds: parts of a run are reproducible and independent of each other."""

import torch

from bnlib.seeds import derive_seed, generator


def test_the_same_part_gets_the_same_stream(seed):
    first, second = (torch.randn(4, generator=generator(seed, "cells", 8)) for _ in range(2))
    assert torch.equal(first, second)


def test_parts_and_seeds_differ():
    drawn = {derive_seed(seed, label, n) for seed in range(20) for label in ("cells", "trial") for n in range(20)}
    assert len(drawn) == 20 * 2 * 20
    assert derive_seed(1, "23") != derive_seed(12, "3")
    assert derive_seed(0, 1) != derive_seed(0, "1")


def test_seeds_fit_a_torch_generator():
    assert all(0 <= derive_seed(seed) < 2**63 for seed in range(200))
