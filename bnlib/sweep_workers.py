"""Processes that call functions for a sweep on this machine.

A worker is a fresh Python that reads calls from its standard input and writes the answers to its standard output. It
knows nothing of the script that started it (a process of `multiprocessing` would run that script again), and imports
no more than the functions' own modules.
"""

import contextlib
import importlib
import os
import pickle
import platform
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from bnlib.sources import digest_of

TRIES = 3  # of a call whose worker died, before the call is blamed

Outcome = tuple[int, Any, str | None]  # position of the spec, value, and what went wrong


def problem_of(error: BaseException) -> str:
    r"""An exception in one line.

    Example:
        >>> problem_of(ValueError("two\nlines."))
        'ValueError: two lines'
    """
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def called(function: Callable[[Any], Any], position: int, spec: Any) -> Outcome:
    """Call a function, and turn what it raises into a line.

    Args:
        function: of one spec.
        position: goes through to the answer.
        spec: the argument.

    Returns:
        The position, the value, and what went wrong, of which one is None.

    Example:
        >>> called(abs, 0, -2), called(abs, 1, "x")[2]
        ((0, 2, None), "TypeError: bad operand type for abs(): 'str'")
    """
    try:
        return position, function(spec), None
    except Exception as error:
        return position, None, problem_of(error)


def call_in_processes(function: Callable[[Any], Any], specs: Sequence[Any], workers: int) -> Iterator[Outcome]:
    """Call a function for each spec in a pool of processes.

    Args:
        function: at the top level of a module that can be imported.
        specs: the arguments, which can be pickled.
        workers: number of processes, at least 1.

    Yields:
        Position, value and problem, as they come.

    Example:
        >>> sorted(call_in_processes(abs, [-1, "x"], 1))
        [(0, 1, None), (1, None, "TypeError: bad operand type for abs(): 'str'")]
    """
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    made = [_Worker() for _ in range(workers)]
    for worker in made:
        idle.put(worker)

    def one(position: int) -> Outcome:
        worker = idle.get()
        try:
            return position, *worker.call(function, specs[position])
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(one, position) for position in range(len(specs))]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            # The rest is given up when the sweep is interrupted: ending the processes frees the waiting threads.
            for future in futures:
                future.cancel()
            for worker in made:
                worker.stop()


def call_on_cluster(function: Callable[[Any], Any], position: int, spec: Any, digest: str) -> Outcome:
    """On a worker of a cluster: refuse to compute with another program than the one that asked.

    Args:
        function: of one spec.
        position: goes through to the answer.
        spec: the argument.
        digest: `bnlib.sources.digest_of` the function and the spec's class where the sweep runs.

    Returns:
        The position, the value, and what went wrong, of which one is None.

    Example:
        >>> from bnlib.layers import Stages
        >>> call_on_cluster(problem_of, 0, Stages(), "another")[2].endswith("give it the same version")
        True
    """
    if digest_of(function, type(spec)) != digest:
        return position, None, f"the worker on {platform.node()} has other sources of bnlib; give it the same version"
    return called(function, position, spec)


class _Worker:
    """A process that calls functions, one after the other; a new one is started in place of one that died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen | None = None
        self._stopped = False

    def call(self, function: Callable[[Any], Any], spec: Any) -> tuple[Any, str | None]:
        """The function's value for a spec, or what went wrong."""
        status: int | None = None
        for _ in range(TRIES):
            if self._stopped:
                break
            process = self._started()
            try:
                pickle.dump((function.__module__, function.__qualname__, pickle.dumps(spec)), process.stdin)
                process.stdin.flush()
                return pickle.load(process.stdout)
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                status = process.wait()
                self._close(process)
        return None, f"its worker died {TRIES} times, the last time with exit status {status}"

    def _started(self) -> subprocess.Popen:
        if self._process is None:
            # One thread each: the processes already fill the machine.
            threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from bnlib.sweep_workers import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._process

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self._stopped = True
        if (process := self._process) is not None:
            process.kill()
            process.wait()
            self._close(process)

    def _close(self, process: subprocess.Popen) -> None:
        self._process = None
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what had not been sent to a dead process cannot be sent
                stream.close()


def serve() -> None:
    """The life of a worker: calls read from the standard input, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that sweeps, and it ends this one
    # What a function prints must not run into the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            module, name, pickled = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            function = getattr(importlib.import_module(module), name)
            answer = called(function, 0, pickle.loads(pickled))[1:]
            written = pickle.dumps(answer)
        except Exception as error:
            written = pickle.dumps((None, problem_of(error)))
        try:
            answers.write(written)
            answers.flush()
        except BrokenPipeError:
            return  # nobody listens any more
