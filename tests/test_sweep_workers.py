"""Processes that call functions: one fresh Python each, whose answers nothing disturbs."""

import os
import sys
import time

import pytest

from bnlib.layers import Stages
from bnlib.sources import digest_of
from bnlib.sweep_workers import call_in_processes, call_on_cluster, called, problem_of
from tests import sweep_functions as functions
from tests.sweep_functions import Spec


def test_an_exception_in_one_line():
    assert problem_of(KeyError()) == "KeyError"
    assert problem_of(ValueError("one,\n  two.")) == "ValueError: one, two"


def test_a_call_and_a_call_that_fails():
    assert called(functions.odd_fails, 3, Spec("s", 2)) == (3, 2, None)
    assert called(functions.odd_fails, 4, Spec("s", 1)) == (4, None, "ValueError: value is 1; valid is an even number")
    with pytest.raises(KeyboardInterrupt):
        called(functions.interrupted, 0, Spec("s"))


def test_a_worker_does_not_run_the_script_that_started_it():
    """A worker's main module is its own: a plain script that sweeps is not run again by every worker."""
    results = list(call_in_processes(functions.main_file, [Spec("a"), Spec("b")], 2))
    assert sorted(position for position, _, _ in results) == [0, 1]
    assert all(value == ["", os.getpid()] for _, value, _ in results)


def test_giving_up_ends_the_processes():
    specs = [Spec(f"s{i}", i, "", 0.0 if i == 0 else 60.0) for i in range(4)]
    started = time.monotonic()
    calls = call_in_processes(functions.square, specs, 2)
    assert next(calls) == (0, {"value": 0}, None)
    calls.close()
    assert time.monotonic() - started < 50  # a minute's sleep was not waited for


def test_another_program_is_refused():
    digest = digest_of(functions.odd_fails, Spec)
    assert call_on_cluster(functions.odd_fails, 1, Spec("s", 2), digest) == (1, 2, None)
    position, value, problem = call_on_cluster(functions.odd_fails, 1, Spec("s", 2), "f" * 64)
    assert (position, value) == (1, None)
    assert "has other sources of bnlib; give it the same version" in problem
    assert digest_of(functions.odd_fails, Stages) != digest
    assert sys.modules["tests.sweep_functions"] is functions
