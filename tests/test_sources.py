"""Which files a piece of code depends on, and the hash of what stands in them."""

from pathlib import Path

import pytest

import bnlib
from bnlib import sources
from bnlib.sources import imported_modules, source_digest

HERE = Path(bnlib.__file__).parent


def test_modules_are_followed_through_others():
    found = imported_modules("import numpy\nfrom bnlib import records\nimport bnlib.layers")
    assert {HERE / "records.py", HERE / "repository.py", HERE / "criteria.py", HERE / "layers.py"} <= found
    assert HERE / "ensembles.py" not in found
    assert imported_modules("import numpy") == set()
    assert imported_modules("") == set()


def test_the_digest_is_of_content(tmp_path, monkeypatch):
    package = tmp_path / "bnlib"
    package.mkdir()
    (package / "low.py").write_text("x = 1\n")
    (package / "high.py").write_text("from bnlib.low import x\n")
    (package / "other.py").write_text("y = 1\n")
    monkeypatch.setattr(sources, "_PARENT", tmp_path)
    sources._direct_imports.cache_clear()
    script = tmp_path / "script.py"
    script.write_text("from bnlib import high\n")
    before = source_digest(script)
    (tmp_path / "elsewhere.py").write_text(script.read_text())
    assert source_digest(tmp_path / "elsewhere.py") == before  # neither name nor time
    (package / "other.py").write_text("y = 2\n")
    assert source_digest(script) == before
    (package / "low.py").write_text("x = 2\n")
    assert source_digest(script) != before
    sources._direct_imports.cache_clear()


def test_a_file_that_is_missing_or_not_python(tmp_path):
    with pytest.raises(OSError, match="missing"):
        source_digest(tmp_path / "missing.py")
    with pytest.raises(SyntaxError):
        imported_modules("from bnlib import")
