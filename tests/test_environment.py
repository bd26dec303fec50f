"""What the ways to install have in common, and what a fresh package needs."""

import re
import subprocess
import sys
import tomllib

import yaml

from tools.lock import wanted
from tools.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_importing_the_library_needs_no_notebook_package():
    script = (
        "import sys, pkgutil, importlib, bnlib\n"
        "for module in pkgutil.iter_modules(bnlib.__path__):\n"
        "    importlib.import_module(f'bnlib.{module.name}')\n"
        "notebook = {'papermill', 'jupytext', 'nbformat', 'jupyter_book', 'myst_nb', 'IPython', 'ipykernel'}\n"
        "bad = notebook & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_theory_does_not_import_torch():
    script = (
        "import sys\n"
        "from bnlib import kernels, tree, tree_limit, invariant_geometry, planar_gamma\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 0


def test_the_lock_holds_every_requirement_but_torch_with_hashes_and_no_address():
    text = (ROOT / "requirements" / "lock.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9._-]+)==", text, re.M))
    for requirement in wanted(PROJECT):
        name = re.match(r"[A-Za-z0-9._-]+", requirement).group().lower().replace("_", "-")
        assert name in locked, name
    assert "torch" not in locked
    assert not re.search(r"https?:|file:|--index|--find|\+cpu", text)
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.M)
    assert all("--hash=sha256:" in block for block in blocks if "==" in block)


def test_jupyter_book_stays_below_two():
    assert any(re.fullmatch(r"jupyter-book>=1[^,]*,<2", entry) for entry in PROJECT["optional-dependencies"]["book"])


def test_the_conda_environment_installs_the_package_from_here():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, last = environment["dependencies"]
    assert last == {"pip": ["-e .[book]"]}
    assert conda == ["python=3.11", "pip", "make"]


def test_versions_agree():
    import bnlib

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert bnlib.__version__ == PROJECT["version"] == citation["version"]
