"""Building: warnings are errors, and a build that is still good is not repeated."""

import pytest

from tools.build import build, pages_of
from tools.paths import ROOT, Refusal
from tools.stage import mathjax_file

PAGE = "# Tiny\n\nA formula $x$, and a page on [the other](other.md).\n"


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "book" / "static").mkdir(parents=True)
    for name in ("favicon.svg", "logo.svg", "book.css", "punctuation.js"):
        (folder / "book" / "static" / name).write_bytes((ROOT / "book" / "static" / name).read_bytes())
    (folder / "book" / "static" / "tex-svg.js").write_bytes(mathjax_file().read_bytes())
    (folder / "book" / "references.bib").write_text("")
    (folder / "_config.yml").write_text((ROOT / "_config.yml").read_text())
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n  - file: book/other\n")
    (folder / "book" / "index.md").write_text(PAGE)
    (folder / "book" / "other.md").write_text("# Other\n\nText.\n")
    return folder


def test_a_good_site_is_built_once(site, tmp_path):
    folder = build(site, tmp_path / "out")
    assert (folder / "index.html").is_file()
    assert (folder / "book" / "other.html").is_file()
    before = (folder / "book" / "index.html").stat().st_mtime_ns
    build(site, tmp_path / "out")
    assert (folder / "book" / "index.html").stat().st_mtime_ns == before
    (site / "book" / "index.md").write_text(PAGE + "\nMore.\n")
    build(site, tmp_path / "out")
    assert "More." in (folder / "book" / "index.html").read_text()


@pytest.mark.parametrize(
    ("addition", "reason"),
    [
        ("A number: {glue:text}`other.md::gone:.1f`", "Glue"),
        ("![](gone.png)", "gone.png"),
        ("{numref}`fig-gone`", "fig-gone"),
        ('<div><img src="https://far.example/dot.png" alt="One dot."></div>', "from outside"),
        ('<div><img src="../_static/logo.svg"></div>', "has no alt text"),
        ("{cite}`nobody2000`", "nobody2000"),
        ("[away](gone.md)", "gone.md"),
    ],
)
def test_a_bad_site_is_refused(site, tmp_path, addition, reason):
    (site / "book" / "index.md").write_text(f"{PAGE}\n{addition}\n")
    with pytest.raises(Refusal, match=reason):
        build(site, tmp_path / "out")


def test_a_page_that_is_missing_is_refused(site, tmp_path):
    (site / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n  - file: book/gone\n")
    with pytest.raises(Refusal):
        build(site, tmp_path / "out")


def test_pages_of_a_table_of_contents():
    assert pages_of({"root": "a", "chapters": [{"file": "b"}]}) == ["a", "b"]
    assert pages_of({"root": "a", "parts": [{"chapters": [{"file": "b"}]}, {"chapters": [{"file": "c"}]}]}) == [
        "a",
        "b",
        "c",
    ]
