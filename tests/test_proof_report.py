"""What the chapter shows of the proof: plain values, damaged copies, the second opinion, table and pictures."""

import json
import math
from fractions import Fraction

import pytest

from bnlib import figures, proof_check, proof_check_larger, proof_figures, proof_report
from bnlib.criteria import decide
from bnlib.records import load_claims


@pytest.fixture(scope="module")
def certificate():
    return proof_report.load_certificate()


@pytest.fixture(scope="module")
def outcome(certificate):
    """The outcome for a few batch sizes: the whole check runs from the command line in test_proof_check."""
    sizes = (6, 7, 8)
    cases = tuple(proof_check.check_single(certificate["single"][n - 3], n) for n in sizes)
    larger = proof_check_larger.check_larger(certificate["larger"], 64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof_report, "check", lambda _: proof_check.Verified(cases, larger))
        return proof_report.outcome(certificate)


def test_outcome_is_plain_and_rounds_bounds_up(certificate, outcome):
    assert json.loads(json.dumps(outcome)) == outcome
    assert outcome["verified"]
    assert list(outcome["roots"]) == ["6", "7", "8"]
    claimed = certificate["single"][4]["roots"][2]
    root = outcome["roots"]["7"]["outlier"]
    assert Fraction(root["spectral_radius"]) >= Fraction(claimed["spectral_radius"])
    assert 0 <= root["shown_radius"] - root["spectral_radius"] < 1.01e-6
    assert root["norm_ratio"] == pytest.approx(3.84927286, abs=1e-8)
    assert outcome["roots"]["7"]["separatrix"]["spectral_radius"] is None
    assert outcome["larger"]["first"] == 65


def test_a_refusal_is_told(certificate):
    told = proof_report.outcome({**certificate, "statement": "anything"})
    assert told == {
        "verified": False,
        "refusal": "The certificate's statement is not the theorem that this checker verifies.",
    }


def test_every_damage_is_refused_for_its_own_reason(certificate, monkeypatch):
    """The parts that a damage leaves alone are not checked again: for time only."""
    intact = json.dumps(certificate["larger"])
    larger = proof_check_larger.check_larger(certificate["larger"], 64)

    def check_larger(entry, last):
        return larger if json.dumps(entry) == intact else proof_check_larger.check_larger(entry, last)

    monkeypatch.setattr(proof_check, "check_larger", check_larger)
    said = proof_report.tampering(certificate)
    assert len(said) >= 10
    assert "accepted" not in said.values()
    assert len(set(said.values())) == len(said)
    expected = {"(n = 7)": "n = 7", "n = 6": "n = 6", "uniform": "n >= 65", "n from 65": "n >= 65"}
    for damage, sentence in said.items():
        for part, start in expected.items():
            assert part not in damage or sentence.startswith(start)
    monkeypatch.setattr(proof_report, "check", lambda _: None)  # a checker that accepts everything is found out
    assert set(proof_report.tampering(certificate).values()) == {"accepted"}


def test_second_opinion_agrees_and_would_see_an_error(outcome):
    found = proof_report.second_opinion(outcome["roots"], range(3, 10))
    assert found["sizes_with_outlier"] == [7, 8, 9]
    assert found["compared"] == 2
    assert found["largest_ratio_difference"] < 1e-11
    assert found["largest_multiplier_difference"] < 2e-9
    wrong = json.loads(json.dumps(outcome["roots"]))
    wrong["8"]["outlier"]["norm_ratio"] += 1e-6
    wrong["7"]["outlier"]["spectral_radius"] += 1e-6
    found = proof_report.second_opinion(wrong, range(3, 10))
    assert found["largest_ratio_difference"] > 1e-7
    assert found["largest_multiplier_difference"] > 9e-7
    missing = {"7": {"symmetric": wrong["7"]["symmetric"]}}
    found = proof_report.second_opinion(missing, [7])
    assert (found["sizes_with_outlier"], found["compared"]) == ([7], 0)


def test_a_refused_certificate_says_nothing_about_the_solvers():
    found = proof_report.second_opinion({})
    assert found["sizes_with_outlier"] == list(range(7, 65))
    assert (found["compared"], found["largest_multiplier_difference"]) == (0, None)


def test_solvers_beyond_the_single_batch_sizes():
    small, *large = proof_report.larger_opinion([6, 65, 1000, 20000])
    assert small["exists"] is False
    assert (small["gap"], small["deficit"]) == (None, None)
    for entry in large:
        assert entry["exists"]
        assert 0.95 < entry["gap"] < 1.001
        assert 6.40 < entry["deficit"] < 6.67
        assert entry["symmetric_radius"] < 1
    assert large[-1]["deficit"] == pytest.approx(3 * math.pi / math.sqrt(2), abs=2e-3)


def certificate_claims():
    return {name: claim["criterion"] for name, claim in load_claims().items() if name.startswith("theorem-14-prime")}


def test_a_refused_certificate_confirms_nothing(certificate):
    values = {
        "proof": proof_report.outcome({}),
        "proof_tampering": {"a damage": "refused"},
        "proof_second_opinion": proof_report.second_opinion({}),
        "proof_larger_opinion": proof_report.larger_opinion([65, 128]),
        "every_batch_size": {"largest_radius_symmetric": 0.99},
    }
    verdicts = {name: decide(criterion, values) for name, criterion in certificate_claims().items()}
    assert len(verdicts) == 6
    assert set(verdicts.values()) == {"inconclusive"}


def test_solvers_that_disagree_refute(certificate):
    values = {
        "proof": {"verified": True},
        "proof_second_opinion": {"sizes_with_outlier": [6, *range(8, 65)], "compared": 58},
        "proof_larger_opinion": [{"n": 65, "exists": False, "symmetric_radius": 1.1}],
        "every_batch_size": {"largest_radius_symmetric": 1.1},
    }
    for name in ("theorem-14-prime", "theorem-14-prime-small", "theorem-14-prime-large", "theorem-14-prime-symmetric"):
        assert decide(certificate_claims()[name], values) == "refuted", name


def test_rows(outcome):
    table = proof_report.rows(outcome["roots"])
    assert table[0] == [6, None, None, None, None, None, "0.93494"]
    assert table[1] == [7, "1.46769", "3.84927", "0.94484", "0.87851", "0.80650", "0.94754"]


def test_pictures(certificate, outcome):
    figure, axes = figures.new_figure(rows=2)
    proof_figures.draw_cover(axes[0, 0], certificate, 7)
    assert axes[0, 0].get_xlim() == (0, 6)
    assert {text.get_text() for text in axes[0, 0].texts} == {"F > 0", "F < 0", "one root, F′ ≠ 0"}
    proof_figures.draw_gaps(axes[1, 0], outcome)
    assert len(axes[1, 0].lines) == 4
    figures.close(figure)
