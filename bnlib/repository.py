"""Where the repository is, and which version of it runs."""

import subprocess
from functools import cache
from pathlib import Path


@cache
def repository_root() -> Path:
    """The folder of the clone that this package belongs to.

    It is found from the package's own place, or else upwards from the folder in which Python was started.

    Raises:
        FileNotFoundError: neither lies in a clone.

    Example:
        >>> (repository_root() / "book" / "claims.yml").is_file()
        True
    """
    starts = [Path(__file__).resolve().parent.parent, Path.cwd(), *Path.cwd().parents]
    for folder in starts:
        if (folder / "_config.yml").is_file() and (folder / "book" / "claims.yml").is_file():
            return folder
    raise FileNotFoundError(f"no clone of the repository above {Path.cwd()}; run this inside one")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository_root()), *arguments], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> str | None:
    """The commit that is checked out, as 40 hexadecimal digits; None outside git."""
    return _git("rev-parse", "HEAD")


def dirty() -> bool | None:
    """Whether tracked files differ from the commit, or new ones are there; None outside git."""
    status = _git("status", "--porcelain")
    return None if status is None else status != ""
