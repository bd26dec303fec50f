"""Make notebooks/NN_name.ipynb from notebooks/NN_name.py: one way, without outputs, always the same bytes.

python -m tools.pair            write all pairs
python -m tools.pair --check    only say which are out of step
"""

import argparse
import json
import sys
from pathlib import Path

import jupytext

from tools.paths import NOTEBOOKS, notebook_names


def paired(source: Path) -> str:
    """The text of the notebook that belongs to a percent script."""
    notebook = jupytext.read(source, fmt="py:percent")
    cells = []
    for index, cell in enumerate(notebook.cells):
        # Identifiers by position: jupytext draws random ones, and a pair must not change when nothing did.
        plain = {
            "cell_type": cell.cell_type,
            "id": f"cell-{index:03d}",
            "metadata": dict(cell.metadata),
            "source": cell.source.splitlines(keepends=True),
        }
        if cell.cell_type == "code":
            plain |= {"execution_count": None, "outputs": []}
        cells.append(plain)
    content = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def out_of_step(names: list[str], folder: Path = NOTEBOOKS) -> list[str]:
    """One sentence for each notebook that is missing or differs from what its script makes."""
    problems = []
    for name in names:
        notebook = folder / f"{name}.ipynb"
        if not notebook.is_file() or notebook.read_text() != paired(folder / f"{name}.py"):
            problems.append(f"notebooks/{name}.ipynb is out of step with notebooks/{name}.py; run `make pair`")
    for notebook in sorted(folder.glob("*.ipynb")):
        if not notebook.with_suffix(".py").is_file():
            problems.append(f"notebooks/{notebook.name} has no script beside it; the .py is the source")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = options.names or notebook_names()
    if options.check:
        problems = out_of_step(names)
        print("\n".join(problems), file=sys.stderr)
        return 1 if problems else 0
    for name in names:
        target = NOTEBOOKS / f"{name}.ipynb"
        text = paired(NOTEBOOKS / f"{name}.py")
        if not target.is_file() or target.read_text() != text:
            target.write_text(text)
            print(f"notebooks/{name}.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
