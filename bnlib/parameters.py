"""Parameters of a notebook: checked once, before any work, and converted.

A notebook has one cell tagged `parameters` with plain literals. papermill may replace some of them: as YAML (`-y`,
`-f`), or through `-p` as a string, which is parsed as JSON where a list is expected. papermill itself runs a name that
it does not know with exit status 0, so the line after the parameters is `parameters = check(globals(), ...)`.
"""

import difflib
import json
import math
import re
import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bnlib.repository import repository_root

Kind = Callable[[str, Any], Any]

# What an interactive session itself puts among the names of a notebook.
_SESSION_NAMES = frozenset({"In", "Out", "get_ipython", "exit", "quit", "open"})


class ParameterError(ValueError):
    """A parameter of a notebook that cannot be used; its message is one sentence."""

    def _render_traceback_(self) -> list[str]:
        # IPython prints this in place of a traceback: the reader's mistake is in the call, not in the library.
        return [f"{type(self).__name__}: {self}"]


def _fail(name: str, value: Any, valid: str) -> None:
    raise ParameterError(f"parameter {name} is {value!r}, but {valid}")


def listed(name: str, value: Any, valid: str) -> Any:
    """A list that is not empty, given as one or as a string that holds one in JSON: for kinds that hold lists.

    Args:
        name: of the parameter.
        value: as it was given.
        valid: what would be valid, as the end of the sentence "parameter x is ..., but ...".

    Raises:
        ParameterError: anything else.

    Example:
        >>> listed("batch_sizes", "[4, 8]", "it must be a list")
        [4, 8]
    """
    parsed = value
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            _fail(name, value, valid)
    if not isinstance(parsed, list | tuple) or len(parsed) == 0:
        _fail(name, value, valid)
    return list(parsed)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _range_words(minimum: int | float | None, maximum: int | float | None) -> str:
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}"
    if minimum is not None:
        return f" of at least {minimum}"
    return "" if maximum is None else f" of at most {maximum}"


def _outside(value: int | float, minimum: int | float | None, maximum: int | float | None) -> bool:
    return (minimum is not None and value < minimum) or (maximum is not None and value > maximum)


def integer(minimum: int | None = None, maximum: int | None = None) -> Kind:
    """A whole number between two bounds (both included).

    Example:
        >>> integer(minimum=2)("batch_size", 8)
        8
    """
    valid = f"it must be a whole number{_range_words(minimum, maximum)}"

    def convert(name: str, value: Any) -> int:
        if not _is_integer(value) or _outside(value, minimum, maximum):
            _fail(name, value, valid)
        return value

    return convert


def integers(minimum: int | None = None, maximum: int | None = None, at_least: int = 1) -> Kind:
    """A list of `at_least` or more different whole numbers; also as a string that holds it in JSON.

    Example:
        >>> integers(minimum=2)("batch_sizes", "[4, 8]")
        [4, 8]
    """
    few = "" if at_least == 1 else f"{at_least} or more "
    example = [8 * 2**i for i in range(max(2, at_least))]
    valid = f"it must be a list of {few}different whole numbers{_range_words(minimum, maximum)}, such as {example}"

    def convert(name: str, value: Any) -> list[int]:
        parsed = listed(name, value, valid)
        for entry in parsed:
            if not _is_integer(entry) or _outside(entry, minimum, maximum):
                _fail(name, value, valid)
        if len(set(parsed)) < len(parsed) or len(parsed) < at_least:
            _fail(name, value, valid)
        return parsed

    return convert


def number(minimum: int | float | None = None, maximum: int | float | None = None) -> Kind:
    """A finite number between two bounds (both included), returned as a float.

    Example:
        >>> number(minimum=0)("weight_variance", 2)
        2.0
    """
    valid = f"it must be a finite number{_range_words(minimum, maximum)}"

    def convert(name: str, value: Any) -> float:
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        if not usable or not math.isfinite(value) or _outside(value, minimum, maximum):
            _fail(name, value, valid)
        return float(value)

    return convert


def numbers(minimum: int | float | None = None, maximum: int | float | None = None) -> Kind:
    """A list of finite numbers between two bounds (both included), returned as floats; also as a string in JSON.

    Example:
        >>> numbers(0, 1)("fractions", "[0.5, 1]")
        [0.5, 1.0]
    """
    one = number(minimum, maximum)
    valid = f"it must be a list of numbers{_range_words(minimum, maximum)}"

    def convert(name: str, value: Any) -> list[float]:
        return [one(name, entry) for entry in listed(name, value, valid)]

    return convert


def rationals(minimum_length: int = 2) -> Kind:
    """A list of exact rational numbers: whole numbers, decimals, or strings such as "7/2".

    A decimal is read as it is written: 0.1 is one tenth, not the binary number nearest to it.

    Example:
        >>> rationals()("batch", '[0, 0.1, "7/2"]')
        [Fraction(0, 1), Fraction(1, 10), Fraction(7, 2)]
    """
    valid = f'it must be a list of at least {minimum_length} numbers, or of strings such as "7/2"'

    def convert(name: str, value: Any) -> list[Fraction]:
        parsed = listed(name, value, valid)
        if len(parsed) < minimum_length:
            _fail(name, value, valid)
        exact = []
        for entry in parsed:
            if isinstance(entry, bool) or not isinstance(entry, int | float | str | Fraction):
                _fail(name, value, valid)
            try:
                # A large exponent would be written out in full: a number of that size is a slip of the pen.
                if re.search(r"e[+-]?\d{4,}", str(entry), re.I):
                    raise ValueError
                exact.append(Fraction(str(entry).replace(" ", "")))
            except (ValueError, ZeroDivisionError):
                _fail(name, value, valid)
        return exact

    return convert


def one_of(*choices: str) -> Kind:
    """One of a few words.

    Example:
        >>> one_of("dense", "gram_root")("draw", "dense")
        'dense'
    """
    valid = f"it must be one of {', '.join(choices)}"

    def convert(name: str, value: Any) -> str:
        if value not in choices:
            _fail(name, value, valid)
        return value

    return convert


def folder_name(name: str, value: Any) -> str:
    """The name of a folder, which need not be there.

    Example:
        >>> folder_name("data_folder", "data")
        'data'
    """
    if not isinstance(value, str) or not value.strip():
        _fail(name, value, "it must be the name of a folder")
    return value


def device(name: str, value: Any) -> str:
    """A torch device that is there; `auto` is the first GPU where there is one and the CPU elsewhere.

    Example:
        >>> device("device", "cpu")
        'cpu'
    """
    import torch

    valid = "it must be auto, cpu, or a GPU of this machine such as cuda or cuda:0"
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if value == "auto":
        return "cuda" if count else "cpu"
    present = ["cpu"] + (["cuda"] if count else []) + [f"cuda:{index}" for index in range(count)]
    if value not in present:
        _fail(name, value, f"{valid}; this machine has {', '.join(present)}")
    return value


def writable_folder(name: str, value: Any) -> Path:
    """A folder that can be written, made if it is not there; a relative path starts at the repository's root."""
    valid = "it must be a folder that can be written"
    if not isinstance(value, str) or not value.strip():
        _fail(name, value, valid)
    folder = repository_root() / value
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        _fail(name, value, f"{valid} ({problem.strerror or problem})")
    return folder


COMMON: Mapping[str, Kind] = {
    "device": device,
    "seed": integer(minimum=0, maximum=2**63 - 1),
    "results_dir": writable_folder,
}


def check(namespace: Mapping[str, Any], **kinds: Kind) -> SimpleNamespace:
    """Check and convert the parameters of a notebook.

    Args:
        namespace: the notebook's `globals()`, right after its parameters cell: every plain value in it must be a known
            parameter.
        **kinds: for each of the notebook's own parameters, its kind, e.g. `integers(minimum=2)`. `device`, `seed` and
            `results_dir` are common to all notebooks and need not be given.

    Returns:
        The converted values as attributes.

    Raises:
        ParameterError: an unknown name, a missing one, a wrong type or an impossible value, in one sentence.

    Example:
        >>> given = {"device": "cpu", "seed": 0, "results_dir": "build/runs", "width": 64}
        >>> check(given, width=integer(minimum=1)).width
        64
    """
    known = {**COMMON, **kinds}
    given = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_")
        and name not in _SESSION_NAMES
        and (value is None or isinstance(value, bool | int | float | str | list | tuple | dict))
    }
    for name, value in given.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the known ones are {', '.join(sorted(known))}"
            raise ParameterError(f"parameter {name} (value {value!r}) is not known; {hint}")
    for name in known:
        if name not in given:
            value = namespace.get(name)
            _fail(name, value, "it must be a plain literal in the cell tagged parameters")
    # The folder last: nothing is made on the disk for a call that is refused.
    order = sorted(known, key=lambda name: name == "results_dir")
    return SimpleNamespace(**{name: known[name](name, given[name]) for name in order})
