"""The tables of claims: every verdict as it was computed, and where it was decided."""

from bnlib.records import load_claims
from tools.paths import ROOT
from tools.verdict_pages import claims_page, verdict_page, verdict_rows

from .chapters import CLAIM, results


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


def test_the_page_of_the_claims_file_has_every_entry():
    page = claims_page((ROOT / "book" / "claims.yml").read_text())
    claims = load_claims()
    assert page.count('<pre class="claim"') == len(claims) > 0
    for name, claim in claims.items():
        assert f'id="{name}"' in page
        assert f"notebook: {claim['notebook']}" in page if "notebook" in claim else "reason:" in page
