"""What prose pages are filled with: computed, linked, and refused where it does not exist."""

import pytest

from tools.fills import fill, modules_text
from tools.paths import ROOT, Refusal
from tools.verdict_pages import verdict_rows

from .chapters import CLAIM, results


def test_a_page_that_asks_for_nothing_known_is_refused():
    assert fill("a {{ run_table }} b", {}, [], "x.md").startswith("a | chapter")
    with pytest.raises(Refusal, match=r"book/x.md asks for gone"):
        fill("{{ gone }}", {}, [], "x.md")


def test_a_prose_page_tells_a_verdict():
    untested = {"id": "b", "source": "review", "where": "there", "statement": "z", "reason": "No text at hand."}
    records = {"01_tiny": results(claims={"a": {"verdict": "vacuous", "measured": {"value": 2.0}}})}
    rows = verdict_rows({"a": CLAIM, "b": untested}, records)
    text = fill("{{ verdict a }}, {{ measured a }}; {{ verdict b }}, {{ measured b }}", records, rows, "x.md")
    assert '<a class="told" href="../notebooks/01_tiny.html#claim-a">vacuous</a>' in text
    assert "value: 2" in text
    assert '<a class="told" href="claims.html#b">not tested</a>' in text
    assert '<span class="reason">No text at hand.</span>' in text
    with pytest.raises(Refusal, match="asks for claim c, which is not in"):
        fill("{{ verdict c }}", records, rows, "x.md")
    with pytest.raises(Refusal, match="there are verdict and measured"):
        fill("{{ colour a }}", records, rows, "x.md")


def test_a_prose_page_lists_the_passages_of_a_source(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.fills.BOOK", tmp_path)
    text = 'review:\n  - {passage: "comment < 1", claims: [a, b]}\n  - {passage: "comment 2", claims: [b]}\n'
    (tmp_path / "passages.yml").write_text(text)
    untested = {"id": "b", "source": "review", "where": "there", "statement": 'z "', "reason": "No text at hand."}
    records = {"01_tiny": results(claims={"a": {"verdict": "vacuous", "measured": {"value": 2.0}}})}
    rows = verdict_rows({"a": CLAIM, "b": untested}, records)
    page = fill("x\n\n{{ passages review }}\n", records, rows, "x.md")
    assert "2 passages, judged by 2 claims" in page
    assert page.count("<tr><td>comment ") == 2
    assert "comment &lt; 1" in page
    assert '<a class="told" href="../notebooks/01_tiny.html#claim-a">vacuous</a>' in page
    assert page.count('<a href="claims.html#b" title="z &quot;">b</a>: <a class="told"') == 2
    # A blank line would end the block of HTML in the middle of the table.
    assert "\n\n" not in page[page.index("<details") : page.index("</details>")]
    with pytest.raises(Refusal, match="the passages of essay; there are review"):
        fill("{{ passages essay }}", records, rows, "x.md")
    with pytest.raises(Refusal, match="asks for claim b, which is not in"):
        fill("{{ passages review }}", records, rows[:1], "x.md")


def test_the_module_table_lists_every_module_once():
    table = modules_text()
    for path in (ROOT / "bnlib").glob("[!_]*.py"):
        assert table.count(f"| `{path.stem}` |") == 1
    assert "| many | `records` |" in table
    assert "| 4 | `tree_forest` |" in table


def test_the_replication_card_is_filled_from_the_runs():
    made = {"device": "cpu", "device_name": "X", "threads": 1, "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"}
    tiny = {"environment": made, "parameters": {"seed": 7}}
    other = {"environment": made | {"device": "cuda", "device_name": "Y"}, "parameters": {"seed": 7}}
    records = {"01_tiny": tiny, "02_tiny": tiny, "03_tiny": other}
    assert fill("{{ devices }}", records, [], "x.md") == "cpu (X), 1 thread(s); cuda (Y), 1 thread(s)"
    assert fill("{{ versions }}", records, [], "x.md") == "Python 3.11.7, torch 2.13.0, numpy 2.4.6"
    assert fill("{{ seeds }}", records, [], "x.md") == "7"


def test_what_is_not_tested_is_listed_with_its_reason():
    untested = {"id": "b", "source": "review", "where": "there", "statement": "P(x|y)", "reason": "No text at hand."}
    rows = verdict_rows({"a": CLAIM, "b": untested}, {})
    text = fill("{{ untested }}", {}, rows, "x.md")
    assert r"| its review | P(x\|y) (there) | No text at hand. |" in text
    assert "x < y" not in text
