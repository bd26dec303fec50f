"""Results files: whole or not at all, and verdicts that follow from what is in them."""

import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bnlib import records, repository
from bnlib.records import RecordError, load_claims, plain, preset_of, read_results, write_json

CLAIMS = """
- id: wide-angle
  source: ours
  where: here
  statement: The angle is wide & <open>.
  notebook: 99_tiny
  criterion: "angle > 45"
  measured: {value: angle, spread: exact, samples: "len(sizes)"}
- id: other
  source: paper
  where: there
  statement: Another chapter's.
  notebook: 98_other
  criterion: "angle > 45"
  measured: {value: angle}
"""
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "metadata": {"tags": ["parameters"]},
            "source": ["seed = 0\n", "width = 8\n", "batch = [1, '7/2']"],
        },
    ]
}


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with one tiny chapter."""
    (tmp_path / "notebooks" / "presets").mkdir(parents=True)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "claims.yml").write_text(CLAIMS)
    (tmp_path / "notebooks" / "99_tiny.ipynb").write_text(json.dumps(NOTEBOOK))
    (tmp_path / "notebooks" / "presets" / "99_tiny.smoke.yml").write_text("width: 2\n")
    monkeypatch.setattr(repository, "repository_root", lambda: tmp_path)
    return tmp_path


def started(clone, **changes):
    given = {"device": "cpu", "seed": 1000, "width": 8, "batch": [Fraction(1), Fraction(7, 2)]} | changes
    return records.start("99_tiny", SimpleNamespace(**given, results_dir=clone / "results"))


def test_a_run_writes_its_file_with_values_verdicts_and_provenance(clone):
    run = started(clone)
    run.record("angle", np.float64(75.5))
    run.record("sizes", {8: torch.tensor([1.0, 2.0])})
    run.glue("angle-text", "angle")
    run.finish()
    content = read_results(run.path)
    assert content["schema"] == 1
    assert content["run_id"] == run.run_id
    assert content["values"] == {"angle": 75.5, "sizes": {"8": [1.0, 2.0]}, "glued": {"angle-text": 75.5}}
    assert content["parameters"] == {"device": "cpu", "seed": 1000, "width": 8, "batch": ["1", "7/2"]}
    assert content["claims"]["wide-angle"]["verdict"] == "confirmed"
    assert content["claims"]["wide-angle"]["measured"] == {"value": 75.5, "spread": "exact", "samples": 1}
    assert list(content["claims"]) == ["wide-angle"]
    wanted = {"python", "torch", "numpy", "device", "threads", "preset", "commit", "dirty", "started", "seconds"}
    assert wanted <= set(content["environment"])
    assert content["environment"]["preset"] == "laptop"


@pytest.mark.parametrize(
    ("changes", "preset"),
    [({}, "laptop"), ({"width": 2}, "smoke"), ({"width": 3}, "custom"), ({"seed": 7}, "laptop")],
)
def test_the_preset_is_read_off_the_parameters(clone, changes, preset):
    assert preset_of("99_tiny", {"seed": 0, "device": "cpu", "width": 8, "batch": ["1", "7/2"]} | changes) == preset


def test_parts_of_a_run_have_streams_of_their_own(clone):
    first, again, other = (torch.rand(3, generator=started(clone).generator("part", n)) for n in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_verdict_that_lacks_its_measurement_is_inconclusive(clone):
    run = started(clone)
    run.judge()
    assert run.claims["wide-angle"]["verdict"] == "inconclusive"
    assert run.claims["wide-angle"]["measured"]["value"] is None


def test_the_table_of_verdicts_escapes_what_it_shows(clone):
    run = started(clone)
    run.record("angle", 10.0)
    run.judge("wide-angle")
    assert "wide &amp; &lt;open&gt;." in run._verdict_table(("wide-angle",))
    assert run.claims["wide-angle"]["verdict"] == "refuted"


def test_what_does_not_belong_is_refused(clone):
    run = started(clone)
    run.record("angle", 1.0)
    with pytest.raises(RecordError, match="value angle was already recorded"):
        run.record("angle", 2.0)
    with pytest.raises(RecordError, match="claim other is not one of 99_tiny's claims"):
        run.judge("other")
    with pytest.raises(RecordError, match="claim gone is not one"):
        run.judge("gone")
    with pytest.raises(RecordError, match="holds a colon or is already taken"):
        run.glue("a:b", "angle")
    with pytest.raises(records.NotMeasured):
        run.glue("a", "gone")
    run.glue("a", "gone", optional=True)
    assert "a" not in run.values.get("glued", {})


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), np.array([1.0, np.nan]), {"a": [-np.inf]}, torch.tensor(torch.nan)]
)
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(RecordError, match="record None if nothing was measured"):
        plain(value, "angles")


def test_other_types_are_refused_by_name():
    with pytest.raises(RecordError, match=r"angles\['a'\]\[0\] is a complex"):
        plain({"a": [1j]}, "angles")


def test_plain_values():
    given = {8: (np.int64(1), True, None, Fraction(1, 2)), 0.5: np.bool_(False)}
    assert plain(given) == {"8": [1, True, None, 0.5], "0.5": False}


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "results.json"
    write_json(target, {"a": 1})
    with pytest.raises(RecordError):
        write_json(target, {"a": float("nan")})
    assert json.loads(target.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [target]


def test_a_kill_in_the_middle_of_writing_leaves_the_old_file(tmp_path):
    target = tmp_path / "results.json"
    write_json(target, {"a": 1})
    script = (
        "import os, pathlib, signal\n"
        "from bnlib import records\n"
        "records.os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"records.write_json(pathlib.Path({str(target)!r}), {{'a': 2}})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=os.environ, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert json.loads(target.read_text()) == {"a": 1}


def test_files_that_cannot_be_used_are_refused_in_one_sentence(tmp_path):
    path = tmp_path / "results.json"
    with pytest.raises(RecordError, match=r"cannot be read: No such file or directory; run its notebook first"):
        read_results(path)
    path.write_text('{"schema": 1, "values"')
    with pytest.raises(RecordError, match="is corrupt"):
        read_results(path)
    for text in ("[]", '{"schema": 2}'):
        path.write_text(text)
        with pytest.raises(RecordError, match="is not of schema 1"):
            read_results(path)
    path.write_text('{"schema": 1, "notebook": "x"}')
    with pytest.raises(RecordError, match="lacks run_id, parameters"):
        read_results(path)


def test_parts_of_a_run_are_kept_and_forgotten_at_its_end(clone):
    first = started(clone)
    assert first.resume("cell-8", lambda: {"n": 8}) == {"n": 8}
    # The first run was interrupted here; the second finds its part, and does not compute it.
    second = started(clone)
    assert second.resume("cell-8", lambda: pytest.fail("computed again")) == {"n": 8}
    changed = started(clone, width=9)
    assert changed.resume("cell-8", lambda: {"n": 9}) == {"n": 9}
    second.finish()
    changed.finish()
    assert [path.name for path in (clone / "results").iterdir()] == ["99_tiny.json"]


def test_a_part_that_is_cut_off_is_computed_again(clone):
    run = started(clone)
    run.resume("cell", lambda: 1)
    next(run._partial.iterdir()).write_text("")
    assert run.resume("cell", lambda: 2) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- {id: a, source: ours, where: x}", "claim 'a' lacks statement"),
        ("- {id: a, source: ours, where: x, statement: y}", "claim a needs notebook, criterion and measured, or else"),
        (
            "- {id: a, source: ours, where: x, statement: y, reason: z, notebook: 1, criterion: 2, measured: 3}",
            "or else",
        ),
        ("- {id: a, source: ours, where: x, statement: y, reason: z}\n" * 2, "claim a stands twice"),
        ("- [", "cannot be read"),
    ],
)
def test_claims_that_cannot_be_used_are_refused(tmp_path, text, sentence):
    path = tmp_path / "claims.yml"
    path.write_text(text)
    with pytest.raises(RecordError, match=sentence):
        load_claims(path)


def test_every_claim_of_the_book_has_a_criterion_in_the_language():
    from bnlib.criteria import VERDICTS, NotMeasured, evaluate

    sources = {"paper", "review", "essay", "mean_field", "key_facts", "ours"}
    for name, claim in load_claims().items():
        assert claim["source"] in sources, name
        if "reason" in claim:
            continue
        rules = claim["criterion"] if isinstance(claim["criterion"], dict) else {"confirmed": claim["criterion"]}
        assert set(rules) <= set(VERDICTS), name
        assert {"value", "spread", "samples"} <= set(claim["measured"]), name
        measured = [text for text in claim["measured"].values() if isinstance(text, str) and text != "exact"]
        for expression in [*rules.values(), *measured]:
            with pytest.raises(NotMeasured):  # over no values at all: only the grammar is tried
                evaluate(expression, {})
