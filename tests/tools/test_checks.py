"""Each check is fed a bad case and must complain; the good case must pass."""

import pytest

from tools.checks import check_claims, check_executed, check_html, check_pair, check_source

from .chapters import code, executed, results


def test_a_good_notebook_passes():
    assert check_executed(executed(), "tiny") == []
    assert check_pair(executed(), results(), "tiny") == []


def with_cell(index, **changes):
    notebook = executed()
    notebook["cells"][index] |= changes
    return notebook


def with_options(**options):
    notebook = executed()
    notebook["cells"][2]["metadata"]["mystnb"] |= options
    return notebook


ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}


@pytest.mark.parametrize(
    ("notebook", "complaint"),
    [
        (with_cell(1, outputs=[ERROR]), "tiny, cell 1: ValueError: no"),
        (executed(metadata={"papermill": {"exception": True}}), "tiny ended with an exception"),
        (with_cell(3, execution_count=None), "tiny, cell 3: was not executed"),
        (with_cell(3, execution_count=1), "tiny: its cells were not executed in order"),
        (with_cell(1, metadata={"papermill": {"status": "pending"}}), "tiny, cell 1: not completed"),
        (with_options(image={}), "tiny, cell 2: picture without alt text"),
        (with_options(image={"alt": ""}), "tiny, cell 2: picture without alt text"),
        (with_options(figure={"name": "fig-dot"}), "tiny, cell 2: picture without a caption"),
        (with_options(figure={"caption": "A dot."}), "tiny, cell 2: picture without a label"),
    ],
)
def test_bad_executed_notebooks_are_refused(notebook, complaint):
    assert complaint in check_executed(notebook, "tiny")


def test_an_empty_cell_need_not_be_executed():
    notebook = executed()
    notebook["cells"].append(code("", None, [], {}))
    assert check_executed(notebook, "tiny") == []


def test_a_results_file_of_another_run_is_refused():
    wanted = "tiny: its results file is of run xyz, the executed notebook of ['abc']"
    assert check_pair(executed(), results(run_id="xyz"), "tiny") == [wanted]
    assert "of none" in check_pair(executed(cells=[]), results(), "tiny")[0]


def test_a_source_needs_one_cell_of_parameters_and_no_outputs():
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# Tiny\n", "\n", "```\n", "# no title\n", "```\n"]}
    tagged = code("seed = 0", None, [], {"tags": ["parameters"]})
    assert check_source({"cells": [title, tagged]}, "tiny") == []
    assert check_source({"cells": [title]}, "tiny") == ["tiny has 0 cells tagged parameters instead of one"]
    assert "2 cells tagged parameters" in check_source({"cells": [title, tagged, tagged]}, "tiny")[0]
    dirty = code("seed = 0", 1, [], {"tags": ["parameters"]})
    assert check_source({"cells": [title, dirty]}, "tiny") == ["tiny, cell 1: committed with outputs"]
    assert "tiny has 2 titles" in check_source({"cells": [title, tagged, title]}, "tiny")[0]
    assert "tiny has 0 titles" in check_source({"cells": [tagged]}, "tiny")[0]


CLAIM = {"id": "a", "notebook": "tiny", "criterion": "x > 1"}


def test_verdicts_must_belong_to_the_claims_as_they_stand():
    judged = {"a": {"verdict": "confirmed", "measured": {}, "criterion": "x > 1"}}
    assert check_claims(results(claims=judged, values={"x": 2}), {"a": CLAIM}, "tiny") == []
    assert check_claims(results(), {"a": CLAIM}, "tiny") == ["tiny: claim a has no verdict"]
    assert "not one of its claims" in check_claims(results(claims=judged), {}, "tiny")[0]
    wrong = results(claims=judged, values={"x": 1})
    assert check_claims(wrong, {"a": CLAIM}, "tiny") == [
        "tiny: claim a is said to be confirmed, its values say refuted"
    ]
    moved = {"a": CLAIM | {"criterion": "x > 0"}}
    assert "was judged by another criterion" in check_claims(results(claims=judged), moved, "tiny")[0]


PAGE = '<html><body><h1 id="top">Tiny</h1><img src="dot.png" alt="One dot."><a href="#top">up</a></body></html>'


@pytest.fixture
def book(tmp_path):
    (tmp_path / "dot.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(PAGE)
    return tmp_path


def test_a_good_page_passes(book):
    assert check_html(book, ["index"]) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('src="dot.png"', 'src="gone.png"', "index.html: gone.png does not exist"),
        ('alt="One dot."', "", "index.html: picture dot.png has no alt text"),
        ('alt="One dot."', 'alt="../_images/dot.png"', "index.html: picture dot.png has no alt text"),
        (
            'src="dot.png"',
            'src="https://far.example/dot.png"',
            "index.html: loads https://far.example/dot.png from outside",
        ),
        (
            "<body>",
            '<body><script src="//far.example/a.js"></script>',
            "index.html: loads //far.example/a.js from outside",
        ),
        (
            "<body>",
            '<link rel="stylesheet" href="https://far.example/a.css"><body>',
            "index.html: loads https://far.example/a.css from outside",
        ),
        ('href="#top"', 'href="#bottom"', "index.html: #bottom points at nothing on its page"),
        ('href="#top"', 'href="gone.html"', "index.html: gone.html does not exist"),
        ("Tiny", "Traceback (most recent call last)", "index.html: shows a traceback"),
    ],
)
def test_bad_pages_are_refused(book, old, new, complaint):
    (book / "index.html").write_text(PAGE.replace(old, new))
    assert complaint in check_html(book, ["index"])


def test_a_missing_page_is_named(book):
    assert check_html(book, ["index", "notebooks/02"]) == ["page notebooks/02.html was not built"]


def test_a_style_sheet_that_loads_from_outside_is_refused(book):
    (book / "style.css").write_text("@import 'https://far.example/a.css'; a { background: url(//far.example/b.png) }")
    assert len(check_html(book, ["index"])) == 2


def test_a_link_to_the_outside_is_no_load(book):
    (book / "index.html").write_text(PAGE.replace('href="#top"', 'href="https://far.example/"'))
    assert check_html(book, ["index"]) == []
