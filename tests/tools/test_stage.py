"""Staging: only what belongs together reaches the book."""

import json

import pytest
import yaml

from bnlib.records import load_claims
from tools.paths import ROOT, Refusal
from tools.stage import (
    claims_page,
    configuration,
    figure_bytes,
    fill,
    gather,
    modules_text,
    point_to_claims_page,
    verdict_page,
    verdict_rows,
    wanted_figures,
)

from .chapters import executed, results


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "tiny.ipynb").write_text(json.dumps(executed()))
    (tmp_path / "tiny.json").write_text(json.dumps(results()))
    return tmp_path


def test_a_good_pair_is_gathered(folders):
    notebooks, records = gather(["tiny"], folders, folders)
    assert list(notebooks) == list(records) == ["tiny"]


def test_another_run_is_refused(folders):
    (folders / "tiny.json").write_text(json.dumps(results(run_id="xyz")))
    with pytest.raises(Refusal, match="its results file is of run xyz"):
        gather(["tiny"], folders, folders)


def test_a_chapter_that_was_not_executed_is_refused(folders):
    with pytest.raises(Refusal, match="other has not been executed"):
        gather(["tiny", "other"], folders, folders)


def test_a_corrupt_results_file_is_refused(folders):
    (folders / "tiny.json").write_text('{"schema": 1,')
    with pytest.raises(Refusal, match="is corrupt"):
        gather(["tiny"], folders, folders)


def test_a_file_that_is_no_notebook_is_refused(folders):
    (folders / "tiny.ipynb").write_text("{}")
    with pytest.raises(Refusal, match=r"tiny\.ipynb is not a notebook"):
        gather(["tiny"], folders, folders)


def test_buttons_appear_only_with_a_public_address():
    text = (ROOT / "_config.yml").read_text()
    plain = yaml.safe_load(configuration(text, ""))
    assert "url" not in plain["repository"]
    assert not plain["sphinx"]["config"]["html_theme_options"]["use_repository_button"]
    assert not plain["sphinx"]["config"]["html_theme_options"]["launch_buttons"]["binderhub_url"]
    public = yaml.safe_load(configuration(text, "https://example.org/a/b"))
    assert public["repository"]["url"] == "https://example.org/a/b"
    assert public["sphinx"]["config"]["html_theme_options"]["use_repository_button"]
    assert public["sphinx"]["config"]["html_theme_options"]["launch_buttons"]["binderhub_url"]


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
    assert "No text at hand." in text
    with pytest.raises(Refusal, match="asks for claim c, which is not in"):
        fill("{{ verdict c }}", records, rows, "x.md")
    with pytest.raises(Refusal, match="there are verdict and measured"):
        fill("{{ colour a }}", records, rows, "x.md")


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


CLAIM = {
    "id": "a",
    "source": "ours",
    "where": "here",
    "statement": "x < y",
    "notebook": "01_tiny",
    "criterion": "x > 1",
}


def test_the_page_of_verdicts_shows_what_was_computed():
    outcome = {"verdict": "vacuous", "measured": {"value": 0.123456, "spread": "exact"}}
    records = {"01_tiny": results(claims={"a": outcome})}
    untested = {"id": "b", "source": "review", "where": "there", "statement": "z", "reason": "No text at hand."}
    rows = verdict_rows({"a": CLAIM, "b": untested}, records)
    assert [row["verdict"] for row in rows] == ["vacuous", "not tested"]
    page = verdict_page(rows)
    one = '<a href="verdicts.html?{}">1</a>'
    vacuous = ["–", one.format("source=ours&amp;verdict=vacuous"), one.format("verdict=vacuous")]
    assert "| verdict | review | ours | all |" in page
    assert f"| vacuous | {' | '.join(vacuous)} |" in page
    assert f"| **all** | {one.format('source=review')} | {one.format('source=ours')} | **2** |" in page
    assert "source=review&amp;verdict=not+tested" in page
    assert 'href="../notebooks/01_tiny.html#claim-a"' in page
    assert 'href="claims.html#a"' in page
    assert "value: 0.1235, spread: exact" in page
    assert "x &lt; y" in page
    assert "<td><small>No text at hand.</small></td>" in page
    assert 'data-source="ours" data-verdict="vacuous" data-chapter="01_tiny"' in page
    assert '<option value="01_tiny">1</option>' in page


def test_a_prose_page_shows_a_chapters_figure_again():
    text = "```{figure} figures/fig-01-x.png\n:name: a\n```\n"
    assert wanted_figures(text) == ["fig-01-x"]
    cell = {
        "metadata": {"mystnb": {"figure": {"name": "fig-01-x"}}},
        "outputs": [{"data": {"text/html": "-"}}, {"data": {"image/png": ["aGVs", "bG8=\n"]}}],
    }
    assert figure_bytes({"01": {"cells": [{"metadata": {}}, cell]}}, "fig-01-x") == b"hello"
    with pytest.raises(Refusal, match="fig-01-y, which no chapter draws"):
        figure_bytes({"01": {"cells": [cell]}}, "fig-01-y")


def test_the_page_of_the_claims_file_has_every_entry():
    page = claims_page((ROOT / "book" / "claims.yml").read_text())
    claims = load_claims()
    assert page.count('<pre class="claim"') == len(claims) > 0
    for name, claim in claims.items():
        assert f'id="{name}"' in page
        assert f"notebook: {claim['notebook']}" in page if "notebook" in claim else "reason:" in page


def test_a_claim_in_a_chapter_leads_to_its_entry():
    shown = '<a href="../book/claims.yml#a">a</a> and <code>../book/claims.yml#a</code>'
    notebook = {"cells": [{"outputs": [{"data": {"text/html": [shown]}}, {"text": "x"}]}, {"source": ""}]}
    html = point_to_claims_page(notebook)["cells"][0]["outputs"][0]["data"]["text/html"]
    assert html == '<a href="../book/claims.html#a">a</a> and <code>../book/claims.yml#a</code>'
