"""The comparison of verdicts over seeds: a flip is seen, and indecision is none."""

import pytest

from tools import verdicts
from tools.paths import Refusal
from tools.verdicts import Stability, stability, told


def entry(counts, of_record=""):
    return Stability("a", counts, of_record)


def test_two_decided_verdicts_are_a_flip_and_indecision_is_none():
    assert entry({"confirmed": 9, "refuted": 1}).flips
    assert entry({"confirmed": 9, "confirmed under conditions": 1}).flips
    assert not entry({"confirmed": 9, "inconclusive": 1}).flips
    assert not entry({"inconclusive": 10}).flips
    assert not entry({"refuted": 10}).flips


def test_the_run_of_record_may_differ_without_a_flip():
    assert entry({"confirmed": 10}, "refuted").differs_at_size
    assert not entry({"confirmed": 10}, "confirmed").differs_at_size
    assert not entry({"confirmed": 10}, "inconclusive").differs_at_size
    assert not entry({"inconclusive": 10}, "refuted").differs_at_size
    assert not entry({"confirmed": 9, "refuted": 1}, "confirmed").differs_at_size
    assert not entry({"confirmed": 10}).differs_at_size


def test_runs_are_counted_claim_by_claim():
    runs = [
        {"a": "confirmed", "b": "refuted"},
        {"a": "inconclusive", "b": "refuted"},
        {"a": "confirmed", "b": "refuted"},
    ]
    first, second = stability(runs, {"a": "confirmed"})
    assert first == Stability("a", {"confirmed": 2, "inconclusive": 1}, "confirmed")
    assert second == Stability("b", {"refuted": 3}, "")


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(Refusal, match="1 seed was run; at least 2 are needed"):
        stability([{"a": "confirmed"}], {})
    with pytest.raises(Refusal, match="the runs have different claims"):
        stability([{"a": "confirmed"}, {"b": "confirmed"}], {})


def test_the_words_name_every_flip_and_every_difference_to_the_record():
    entries = [
        Stability("steady", {"confirmed": 3}, "confirmed"),
        Stability("close", {"inconclusive": 2, "refuted": 1}, "refuted"),
        Stability("never", {"inconclusive": 3}, "refuted"),
        Stability("flipping", {"confirmed": 2, "refuted": 1}, "refuted"),
        Stability("larger", {"confirmed": 3}, "refuted"),
    ]
    text = told(entries, [11, 12, 13], with_record=True)
    assert text.splitlines()[0] == "5 verdicts at 3 seeds (11, 12, 13), smoke size:"
    assert "  2 come out the same at every seed" in text
    assert "  1 are decided alike at some seeds and too close to call at others" in text
    assert "  1 are too close to call at every seed" in text
    assert "  1 flip\n    flipping: confirmed 2, refuted 1" in text
    assert text.endswith("    larger: confirmed 3; of record: refuted")
    assert "of record" not in told(entries, [11, 12, 13], with_record=False)


@pytest.mark.parametrize(("outcomes", "status"), [(["confirmed", "confirmed"], 0), (["confirmed", "refuted"], 1)])
def test_the_exit_status_tells_a_flip(monkeypatch, tmp_path, capsys, outcomes, status):
    monkeypatch.setattr(verdicts, "run", lambda *_: [{"a": outcome} for outcome in outcomes])
    monkeypatch.setattr(
        "sys.argv", ["verdicts", "--seeds", "1", "2", "--folder", str(tmp_path), "--record", str(tmp_path / "none")]
    )
    assert verdicts.main() == status
    assert "the run of record is left out" in capsys.readouterr().out
    assert (tmp_path / "verdicts.json").is_file()
