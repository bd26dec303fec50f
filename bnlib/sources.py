"""Which files of this package a piece of code depends on: what decides whether a stored result is still good."""

import ast
import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

_PARENT = Path(__file__).resolve().parent.parent


@functools.lru_cache(maxsize=1024)  # by content: chapters share most of their modules
def _direct_imports(source: str) -> frozenset[Path]:
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "bnlib":
            names += [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names if alias.name.split(".")[0] == "bnlib"]
    paths = (_PARENT / (name.replace(".", "/") + ".py") for name in names)
    return frozenset(path for path in paths if path.is_file())


def imported_modules(source: str) -> set[Path]:
    """The files of `bnlib` that a script imports, directly or through others.

    Args:
        source: the script's text.

    Returns:
        Paths of the modules, the script itself not among them unless one of them imports it.

    Raises:
        SyntaxError: the text, or a module that it imports, is not Python.

    Example:
        >>> sorted(path.name for path in imported_modules("from bnlib.ensembles import propagate"))
        ['ensembles.py', 'layers.py']
    """
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        new = _direct_imports(waiting.pop()) - found
        found |= new
        waiting += [path.read_text() for path in new]
    return found


def source_digest(*files: Path) -> str:
    """A hash of some files and of all of `bnlib` that they import: content alone, never times or places.

    Args:
        *files: Python files.

    Returns:
        64 hexadecimal digits.

    Raises:
        OSError: a file that cannot be read.

    Example:
        >>> source_digest(Path(__file__)) == source_digest(Path(__file__), Path(__file__))
        True
    """
    texts = {path.read_text() for path in files}
    texts |= {path.read_text() for text in list(texts) for path in imported_modules(text)}
    digest = hashlib.sha256()
    for text in sorted(texts):
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.hexdigest()


def digest_of(*objects: type | Callable) -> str:
    """A hash of the modules in which some functions or classes are defined, and of all of `bnlib` that they import.

    Args:
        *objects: functions and classes at the top level of modules that have files.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> digest_of(imported_modules) == source_digest(Path(__file__))
        True
    """
    return source_digest(*(Path(sys.modules[thing.__module__].__file__) for thing in objects))
