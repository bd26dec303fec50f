"""Sweeps: one function over many small named specs, on all cores or on a Dask cluster, kept by content.

A sweep calls a function once for each spec, and keeps every result in a file of its own as soon as it is there. The
file's name holds a hash of the spec, of the function's name, of the source of the function and of every module of
`bnlib` that it imports, and of the versions of torch and numpy: a changed spec or a changed program is computed again,
everything else is read back, after an interruption too.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch

from bnlib.parameters import ParameterError
from bnlib.progress import progress
from bnlib.records import RecordError, plain, write_json
from bnlib.sources import digest_of
from bnlib.sweep_workers import Outcome, call_in_processes, call_on_cluster, called, problem_of

WORKERS_VARIABLE = "BNLIB_WORKERS"
_NAMED_FAILURES = 3  # failed specs that the message spells out


class SweepError(RuntimeError):
    """A sweep that could not be finished; its message is one sentence, and what was finished is kept."""

    def _render_traceback_(self) -> list[str]:
        # IPython prints this in place of a traceback: what went wrong is in the spec or on the cluster.
        return [f"{type(self).__name__}: {self}"]


def available_workers() -> int:
    """How many processes a sweep uses by default: the CPUs that this process may use.

    The environment variable `BNLIB_WORKERS` sets another number; `make book` does, since it runs chapters side by side.

    Returns:
        A number of processes, at least 1.

    Raises:
        ValueError: the variable holds something other than a whole number from 1 on.

    Example:
        >>> available_workers() >= 1
        True
    """
    wanted = os.environ.get(WORKERS_VARIABLE, "")
    if wanted:
        if not wanted.isascii() or not wanted.isdigit() or int(wanted) < 1:
            raise ValueError(f"{WORKERS_VARIABLE} is {wanted!r}; valid is a whole number of processes, at least 1.")
        return int(wanted)
    # Not every system knows the affinity of a process.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sweep(
    function: Callable[[Any], Any],
    specs: Sequence[Any],
    *,
    folder: Path | str,
    scheduler: str = "",
    workers: int | None = None,
    label: str = "specs",
    timeout: int | float = 10,
) -> list[Any]:
    """Call a function once for each spec, in parallel, and read back what an earlier call has kept.

    Args:
        function: of one spec, at the top level of a module that can be imported; it returns what JSON can hold, and
            takes its randomness from a seed in the spec, so that a kept result is the result.
        specs: instances of a frozen dataclass with a field `name`, each name once.
        folder: where results are kept, one file a spec; made if it is not there.
        scheduler: address of a Dask scheduler, e.g. `"tcp://10.0.0.1:8786"`; empty for this machine. The workers need
            the same `bnlib`, which is checked, and no shared files.
        workers: processes on this machine; `available_workers()` by default. With 1, no process is started.
        label: what is counted in the progress lines.
        timeout: seconds to wait for the scheduler's answer.

    Returns:
        The results in the order of the specs, as JSON holds them.

    Raises:
        ValueError: a function, spec, or number of workers that cannot be used.
        SweepError: specs that failed (named, after the others are finished and kept), or a scheduler that cannot be
            reached.

    Example:
        >>> import tempfile
        >>> @dataclasses.dataclass(frozen=True)
        ... class Square:
        ...     name: str
        ...     side: int
        >>> def area(spec):
        ...     return spec.side**2
        >>> with tempfile.TemporaryDirectory() as kept:
        ...     sweep(area, [Square("small", 3), Square("large", 4)], folder=kept, workers=1)
        [9, 16]
    """
    _check(function, specs, workers)
    sources = {kind: digest_of(function, kind) for kind in {type(spec) for spec in specs}}
    keys = [_key(function, spec, sources[type(spec)]) for spec in specs]
    paths = [Path(folder) / f"{_file_name(spec.name)}.{key[:20]}.json" for spec, key in zip(specs, keys, strict=True)]
    results: list[Any] = [None] * len(specs)
    missing = []
    for index, (path, key) in enumerate(zip(paths, keys, strict=True)):
        kept = _read(path, key)
        if kept is None:
            missing.append(index)
        else:
            results[index] = kept["result"]
    if missing:
        todo = [specs[index] for index in missing]
        if scheduler:
            finished = _on_cluster(function, todo, sources, scheduler, timeout)
        else:
            processes = min(workers or available_workers(), len(todo))
            alone = (called(function, position, spec) for position, spec in enumerate(todo))
            finished = alone if processes == 1 else call_in_processes(function, todo, processes)
        text = f"{label} ({len(specs) - len(missing)} were there)" if len(missing) < len(specs) else label
        failures = {}
        with contextlib.closing(finished):  # also when this is interrupted: its processes end
            for position, value, problem in progress(finished, text, total=len(todo)):
                index = missing[position]
                if problem is None:
                    try:
                        value = plain(value, f"result of {specs[index].name}")
                    except RecordError as error:
                        problem = problem_of(error)
                if problem is not None:
                    failures[index] = f"{specs[index].name}: {problem}"
                    continue
                content = {"key": keys[index], "function": _name(function), "spec": _described(specs[index])}
                write_json(paths[index], {**content, "result": value})
                results[index] = _read(paths[index], keys[index])["result"]
        if failures:
            more = f"; and {len(failures) - _NAMED_FAILURES} more" if len(failures) > _NAMED_FAILURES else ""
            first = [failures[index] for index in sorted(failures)][:_NAMED_FAILURES]
            raise SweepError(
                f"{len(failures)} of {len(specs)} specs failed, the others are kept: {'; '.join(first)}{more}."
            )
    return results


def address(name: str, value: Any) -> str:
    """A kind for `bnlib.parameters.check`: the address of a Dask scheduler, or an empty string for this machine.

    Args:
        name: of the parameter.
        value: as it was given.

    Raises:
        ParameterError: anything else.

    Example:
        >>> address("scheduler", " tcp://10.0.0.1:8786 ")
        'tcp://10.0.0.1:8786'
    """
    text = value.strip() if isinstance(value, str) else value
    if not isinstance(text, str) or (text and not re.fullmatch(r"\w+://\S+", text)):
        raise ParameterError(
            f"parameter {name} is {value!r}, but it must be the address of a Dask scheduler, as in "
            "tcp://10.0.0.1:8786, or an empty string for this machine"
        )
    return text


# ------------------------------------------------------------------------------------------------- specs and keys


def _check(function: Callable, specs: Sequence[Any], workers: int | None) -> None:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, "__main__") or "<" in name or not callable(function):
        raise ValueError(
            f"function is {name or function!r} of {module}; valid is a function at the top level of a module that a "
            "worker can import."
        )
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ValueError(f"workers is {workers!r}; valid is a whole number of processes, at least 1.")
    seen = set()
    for spec in specs:
        frozen = (
            dataclasses.is_dataclass(spec) and not isinstance(spec, type) and type(spec).__dataclass_params__.frozen
        )
        if not frozen or not isinstance(getattr(spec, "name", None), str) or not spec.name:
            raise ValueError(f"specs contain {spec!r}; valid are instances of a frozen dataclass with a field name.")
        if spec.name in seen:
            raise ValueError(f"specs contain the name {spec.name!r} twice; valid are names that occur once.")
        seen.add(spec.name)


def _name(function: Callable) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _described(spec: Any) -> dict[str, Any]:
    fields = plain(dataclasses.asdict(spec), f"spec {spec.name}")
    return {"class": f"{type(spec).__module__}.{type(spec).__qualname__}", **fields}


def _key(function: Callable, spec: Any, sources: str) -> str:
    parts = [_name(function), _described(spec), sources, torch.__version__, numpy.__version__]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _file_name(name: str) -> str:
    """A spec's name as part of a file's name; the hash behind it keeps apart what this makes equal."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip(".-")[:80] or "spec"


def _read(path: Path, key: str) -> dict[str, Any] | None:
    """What is kept, or None where there is nothing, or nothing that can be used."""
    try:
        content = json.loads(path.read_text())
        return content if content["key"] == key and "result" in content else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


# ------------------------------------------------------------------------------------------------------- a cluster


def _on_cluster(
    function: Callable, specs: Sequence[Any], sources: dict[type, str], scheduler: str, timeout: int | float
) -> Iterator[Outcome]:
    try:
        import distributed
    except ImportError:
        raise SweepError(
            "scheduler needs the package distributed, which is not installed; install the optional extra cluster."
        ) from None
    try:
        client = distributed.Client(scheduler, timeout=timeout, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise SweepError(
            f"scheduler is {scheduler!r}, where no Dask scheduler answered within {timeout:g} s ({problem_of(error)}); "
            "valid is the address of one that runs, or an empty string for this machine."
        ) from None
    with client:
        # A worker that is lost takes its calls with it: Dask gives them to another one. All that came back is kept.
        run = uuid.uuid4().hex  # so that nobody else's call has the same key
        futures = {}
        for position, spec in enumerate(specs):
            key = f"{spec.name}-{run}"
            futures[
                client.submit(call_on_cluster, function, position, spec, sources[type(spec)], key=key, pure=False)
            ] = position
        for future in distributed.as_completed(futures, loop=client.loop):
            position = futures[future]
            if future.status == "finished":
                yield future.result()
            elif future.status in ("cancelled", "lost"):
                raise SweepError(
                    f"scheduler {scheduler!r} was lost before all specs were finished; what was finished is kept, and "
                    "the same call goes on from there."
                )
            else:
                yield position, None, problem_of(future.exception())
            future.release()
