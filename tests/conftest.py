"""Fixtures shared by all tests: the seed, and what the machine has."""

import os
import random

import jaxtyping
import pytest


def _seeds() -> list[int]:
    """The seeds of this run: BNLIB_SEED is a number from 0 to 99, `any` or `all`; 0 without it."""
    wanted = os.environ.get("BNLIB_SEED", "0")
    if wanted == "all":
        return list(range(100))
    if wanted == "any":
        return [random.SystemRandom().randrange(100)]
    return [int(wanted)]


def pytest_generate_tests(metafunc):
    """Give every test that asks for `seed` each seed of this run."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", _seeds())


@pytest.fixture
def generator(seed):
    """A torch generator on the CPU, seeded with the seed of this run."""
    import torch

    return torch.Generator().manual_seed(seed)


@pytest.fixture
def unchecked():
    """Switch the annotations' run-time checks off, as for a user: the functions' own messages are tested."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
