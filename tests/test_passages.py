"""The list of passages: no passage of a source is left out, and every claim of that source is somebody's judgment."""

from pathlib import Path

import pytest
import yaml

from bnlib.records import load_claims

PASSAGES = Path(__file__).parents[1] / "book" / "passages.yml"
# How many passages a source has, and whose claims may judge them: its own and this book's; for key facts (they hold the
# abstract), essay and review also the paper's, which they report; for the paper, known only through them, theirs too.
SOURCES = {
    "mean_field": (109, {"mean_field", "ours"}),
    "key_facts": (17, {"key_facts", "paper", "ours"}),
    "essay": (46, {"essay", "paper", "ours"}),
    "review": (71, {"review", "paper", "ours"}),
    "paper": (41, {"paper", "review", "essay", "key_facts", "ours"}),
}
# The essay's sentences by section, the title first, and what the review must have: kind of passage to count.
ESSAY_SECTIONS = {
    "title": 1,
    "opening paragraph": 5,
    "Beyond Rank Collapse": 7,
    "The Escaped Point Phenomenon": 11,
    "The Critical Role of Recentering": 8,
    "Original Insights and Broader Implications": 9,
    "Conclusion": 5,
}
REVIEW_ITEMS = {
    "if this is right, item": 5,
    "between the lines, item": 4,
    "minor comment": 5,
    "free parameter": 1,
    "assumption": 5,
    "invented entity": 1,
    "load-bearing premise": 1,
    "what would settle it, sentence": 2,
    "core claim, sentence": 4,
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


def test_the_essay_is_listed_sentence_by_sentence(passages):
    expected = [
        "title" if section == "title" else f"{section}, sentence {number}"
        for section, count in ESSAY_SECTIONS.items()
        for number in range(1, count + 1)
    ]
    assert [entry["passage"] for entry in passages["essay"]] == expected


def test_every_part_of_the_review_is_listed(passages):
    locators = [entry["passage"] for entry in passages["review"]]
    for kind, count in REVIEW_ITEMS.items():
        assert sum(locator.startswith(kind) for locator in locators) == count, kind
    major = {locator.split(":")[0] for locator in locators if locator.startswith("major comment")}
    assert major == {f"major comment {number}" for number in range(1, 5)}


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


def _untested_and_all(claims, names):
    return sum("reason" in claims[name] for name in names), len(names)


@pytest.mark.parametrize("source", SOURCES)
def test_at_most_a_quarter_of_the_claims_of_a_source_is_not_tested(passages, claims, source):
    # The key facts' own claims are catalogue entries; their science is the abstract, which the paper's claims judge.
    named = {name for entry in passages[source] for name in entry["claims"]}
    untested, total = _untested_and_all(claims, named)
    assert 4 * untested <= total
    if source != "key_facts":
        own = [name for name, claim in claims.items() if claim["source"] == source]
        untested, total = _untested_and_all(claims, own)
        assert 4 * untested <= total


def test_at_most_a_quarter_of_all_claims_is_not_tested(claims):
    untested, total = _untested_and_all(claims, list(claims))
    assert 4 * untested <= total
