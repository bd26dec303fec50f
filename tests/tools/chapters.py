"""Tiny chapters, good and bad, for the tests of the scripts behind make."""

import json
from pathlib import Path

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="  # one pixel
)
CLAIM = {
    "id": "a",
    "source": "ours",
    "where": "here",
    "statement": "x < y",
    "notebook": "01_tiny",
    "criterion": "x > 1",
}
HEAD = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

"""
GOOD = (
    HEAD
    + """# %% [markdown]
# # Tiny
#
# The number is {glue:text}`number:.1f`.

# %% tags=["parameters"]
device = "auto"
seed = 0
results_dir = "build/runs"

# %%
import json, pathlib, sys
from IPython.display import display
print("progress: half", file=sys.stderr)
print("kept")
pathlib.Path(results_dir).mkdir(parents=True, exist_ok=True)
record = {"schema": 1, "notebook": "tiny", "run_id": "abc", "values": {"number": 1.5}, "claims": {},
          "parameters": {"seed": seed}, "environment": {"preset": "laptop", "device": "cpu", "seconds": 0.1}}
pathlib.Path(results_dir, "tiny.json").write_text(json.dumps(record))
display({"text/plain": "run abc"}, raw=True, metadata={"bnlib": {"run_id": "abc"}})
display({"application/papermill.record/text/plain": "1.5"}, raw=True,
        metadata={"scrapbook": {"name": "number", "mime_prefix": "application/papermill.record/"}})
"""
)
FAILING = GOOD + '\n# %%\nraise ValueError("the cell failed on purpose")\n'


def write_chapter(folder: Path, text: str, name: str = "tiny") -> Path:
    """Write a chapter as script and notebook; returns the notebook's path."""
    from tools.pair import paired

    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    (folder / f"{name}.ipynb").write_text(paired(folder / f"{name}.py"))
    return folder / f"{name}.ipynb"


def executed(**changes) -> dict:
    """An executed notebook in good order, as plain dictionaries: two code cells, one of them with a picture."""
    picture = {"output_type": "display_data", "data": {"image/png": PICTURE}, "metadata": {}}
    foot = {"output_type": "display_data", "data": {"text/plain": "run abc"}, "metadata": {"bnlib": {"run_id": "abc"}}}
    options = {"figure": {"caption": "A dot.", "name": "fig-dot"}, "image": {"alt": "One dot."}}
    done = {"papermill": {"status": "completed"}}
    notebook = {
        "cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Tiny"},
            code("seed = 0", 1, [], {"tags": ["parameters"], **done}),
            code("draw()", 2, [picture], {"mystnb": options, **done}),
            code("finish()", 3, [foot], dict(done)),
        ],
        "metadata": {"papermill": {"exception": None}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.loads(json.dumps(notebook | changes))


def code(source: str, count: int | None, outputs: list, metadata: dict) -> dict:
    """One code cell."""
    return {
        "cell_type": "code",
        "id": f"c{count}",
        "metadata": metadata,
        "source": source,
        "execution_count": count,
        "outputs": outputs,
    }


def results(**changes) -> dict:
    """A results file that belongs to `executed()`."""
    return {
        "schema": 1,
        "notebook": "tiny",
        "run_id": "abc",
        "parameters": {"seed": 0},
        "environment": {"preset": "laptop", "device": "cpu", "seconds": 0.1},
        "values": {},
        "claims": {},
    } | changes
