"""The list of passages: no passage of a source is left out, and every claim of that source is somebody's judgment."""

from pathlib import Path

import pytest
import yaml

from bnlib.records import load_claims

PASSAGES = Path(__file__).parents[1] / "book" / "passages.yml"
# How many passages a source has, and whose claims may judge them: its own, this book's, and for the key facts,
# which hold the abstract, the paper's as well.
SOURCES = {
    "mean_field": (109, {"mean_field", "ours"}),
    "key_facts": (17, {"key_facts", "paper", "ours"}),
}


@pytest.fixture(scope="module")
def passages():
    return yaml.safe_load(PASSAGES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def claims():
    return load_claims()


def test_every_source_of_the_list_is_counted(passages):
    assert set(passages) == set(SOURCES)


@pytest.mark.parametrize("source", SOURCES)
def test_the_number_of_passages_is_fixed_and_no_locator_stands_twice(passages, source):
    entries = passages[source]
    assert len(entries) == SOURCES[source][0]
    assert all(set(entry) == {"passage", "claims"} for entry in entries)
    assert len({entry["passage"] for entry in entries}) == len(entries)


def test_bullets_are_numbered_in_order(passages):
    for number, entry in enumerate(passages["mean_field"], start=1):
        assert entry["passage"].endswith(f" (bullet {number})"), entry["passage"]


@pytest.mark.parametrize("source", SOURCES)
def test_every_passage_is_judged_by_claims_that_exist(passages, claims, source):
    for entry in passages[source]:
        named = entry["claims"]
        assert named, f"{entry['passage']} names no claim"
        assert len(set(named)) == len(named), f"{entry['passage']} names a claim twice"
        for name in named:
            assert name in claims, f"{entry['passage']}: no claim {name}"
            assert claims[name]["source"] in SOURCES[source][1], f"{entry['passage']}: {name} is of another source"
        untested = ["reason" in claims[name] for name in named]
        assert untested == sorted(untested), f"{entry['passage']}: claims that a run decides come first"


@pytest.mark.parametrize("source", SOURCES)
def test_every_claim_of_the_source_judges_a_passage(passages, claims, source):
    named = {name for entry in passages[source] for name in entry["claims"]}
    own = {name for name, claim in claims.items() if claim["source"] == source}
    assert own <= named, f"no passage names {sorted(own - named)}"


def test_at_most_a_quarter_of_the_mean_field_claims_is_not_tested(claims):
    own = [claim for claim in claims.values() if claim["source"] == "mean_field"]
    assert 4 * sum("reason" in claim for claim in own) <= len(own)
