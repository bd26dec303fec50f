"""The chapters as papermill is called on them: bad parameters stop a run before any work, with one sentence."""

import ast
import subprocess
import sys

import pytest
import yaml

from tools.paths import NOTEBOOKS, PRESETS, ROOT, notebook_names

NAMES = notebook_names()
CHAPTERS = {
    "02_rank_theorem": {"batch_sizes", "input_dim", "n_trials"},
    "03_recentering_angles": {"batch_sizes", "width", "depth", "n_seeds"},
    "04_simplified_tree": {"batch", "depth"},
    "05_invariant_geometry": {"batch_sizes", "width", "n_seeds"},
    "06_falsification_test": {"batch_sizes", "widths", "depths", "n_seeds"},
}


def defaults(name):
    """The plain literals of a chapter's parameters cell."""
    text = (NOTEBOOKS / f"{name}.py").read_text()
    cell = next(part for part in text.split("\n# %%") if 'tags=["parameters"' in part.split("\n")[0])
    assignments = [node for node in ast.parse(cell.partition("\n")[2]).body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in assignments}


@pytest.mark.parametrize("name", NAMES)
def test_common_parameters_have_their_names_and_defaults(name):
    given = defaults(name)
    assert (given["device"], given["seed"], given["results_dir"]) == ("auto", 0, "build/runs")


@pytest.mark.parametrize("name", CHAPTERS)
def test_parameters_that_people_call_keep_their_names(name):
    assert CHAPTERS[name] <= set(defaults(name))


@pytest.mark.parametrize("name", NAMES)
def test_presets_change_known_parameters_only(name):
    files = sorted(PRESETS.glob(f"{name}.*.yml"))
    assert {path.stem.split(".")[1] for path in files} >= {"smoke", "paper"}
    for path in files:
        changes = yaml.safe_load(path.read_text()) or {}
        assert set(changes) <= set(defaults(name)) - {"device", "seed", "results_dir"}


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_defines_next_to_nothing(name):
    tree = ast.parse((NOTEBOOKS / f"{name}.py").read_text())
    assert sum(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(tree)) <= 2


def papermill(tmp_path, name, *arguments):
    """Run papermill as a reader would; returns the finished process and the last line of its standard error."""
    command = [sys.executable, "-m", "papermill", f"notebooks/{name}.ipynb", str(tmp_path / "out.ipynb")]
    done = subprocess.run([*command, "--no-progress-bar", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done, done.stderr.strip().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_papermill_refuses_an_unknown_parameter(tmp_path, name):
    done, last = papermill(tmp_path, name, "-p", "widht", "64", "-p", "results_dir", str(tmp_path / "results"))
    assert done.returncode != 0
    assert last.startswith("ParameterError: parameter widht (value 64) is not known")
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("06_falsification_test", ["-p", "batch_sizes", "[]"], "parameter batch_sizes is '[]', but it must be a list"),
        (
            "06_falsification_test",
            ["-p", "batch_sizes", "[1]"],
            "parameter batch_sizes is '[1]', but it must be a list",
        ),
        ("06_falsification_test", ["-y", "{depths: [0]}"], "parameter depths is [0], but it must be a list"),
        ("03_recentering_angles", ["-p", "width", "0"], "parameter width is 0, but it must be a whole number"),
        ("03_recentering_angles", ["-p", "width", "1e2"], "parameter width is 100.0, but it must be a whole number"),
        (
            "03_recentering_angles",
            ["-p", "device", "cuda:99"],
            "parameter device is 'cuda:99', but it must be auto, cpu",
        ),
        ("04_simplified_tree", ["-p", "batch", "[1, NaN]"], "parameter batch is '[1, NaN]', but it must be"),
        (
            "02_rank_theorem",
            ["-p", "results_dir", "README.md/x"],
            "parameter results_dir is 'README.md/x', but it must",
        ),
    ],
)
def test_papermill_refuses_an_impossible_value(tmp_path, name, arguments, sentence):
    folder = [] if "results_dir" in arguments else ["-p", "results_dir", str(tmp_path / "results")]
    done, last = papermill(tmp_path, name, *arguments, *folder)
    assert done.returncode != 0
    assert last.startswith(f"ParameterError: {sentence}"), last
    assert not (tmp_path / "results").exists()
