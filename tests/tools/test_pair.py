"""Pairs: made one way, always the same bytes, and out of step when they are."""

import json

from tools.pair import out_of_step, paired
from tools.paths import NOTEBOOKS, notebook_names

from .chapters import GOOD, write_chapter


def test_the_pair_is_deterministic_and_has_no_outputs(tmp_path):
    notebook = write_chapter(tmp_path, GOOD)
    assert notebook.read_text() == paired(tmp_path / "tiny.py")
    content = json.loads(notebook.read_text())
    assert [cell["id"] for cell in content["cells"]] == ["cell-000", "cell-001", "cell-002"]
    assert all(cell["outputs"] == [] for cell in content["cells"] if cell["cell_type"] == "code")
    assert content["cells"][1]["metadata"]["tags"] == ["parameters"]


def test_a_pair_out_of_step_is_named(tmp_path):
    notebook = write_chapter(tmp_path, GOOD)
    assert out_of_step(["tiny"], tmp_path) == []
    (tmp_path / "tiny.py").write_text(GOOD.replace("seed = 0", "seed = 1"))
    assert out_of_step(["tiny"], tmp_path) == [
        "notebooks/tiny.ipynb is out of step with notebooks/tiny.py; run `make pair`"
    ]
    notebook.unlink()
    assert "out of step" in out_of_step(["tiny"], tmp_path)[0]


def test_a_notebook_without_its_script_is_named(tmp_path):
    write_chapter(tmp_path, GOOD, "lonely").with_suffix(".py").unlink()
    assert "lonely.ipynb has no script" in out_of_step([], tmp_path)[0]


def test_the_repository_is_in_step():
    assert out_of_step(notebook_names(), NOTEBOOKS) == []
