"""Where things lie, relative to the repository's root."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
PRESETS = NOTEBOOKS / "presets"
BOOK = ROOT / "book"


def notebook_names() -> list[str]:
    """The chapters' names without ending, in order."""
    return sorted(path.stem for path in NOTEBOOKS.glob("*.py"))


class Refusal(Exception):
    """Something that stops a script; its message is one sentence."""
