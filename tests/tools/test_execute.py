"""Executing: what changed and nothing else, whole or not at all, and ended cleanly when told to."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bnlib.records import read_results
from tools.execute import Executor, Job, _last_seconds, clean, execute, fingerprint, imported_modules, up_to_date
from tools.paths import ROOT, Refusal

from .chapters import FAILING, GOOD, executed, write_chapter


@pytest.fixture
def job(tmp_path):
    notebook = write_chapter(tmp_path / "notebooks", GOOD)
    return Job(notebook, "laptop", "cpu", 3, tmp_path / "results", tmp_path / "executed")


def test_a_chapter_is_executed_once_and_kept(job, capsys):
    execute([job], 1)
    assert read_results(job.results / "tiny.json")["parameters"] == {"seed": 3}
    notebook = json.loads(job.output.read_text())
    streams = [o for cell in notebook["cells"] for o in cell.get("outputs", []) if o["output_type"] == "stream"]
    assert [stream["text"] for stream in streams] == ["kept\n"]
    assert "tiny: half" in capsys.readouterr().out
    before = job.output.stat().st_mtime_ns
    execute([job], 1)
    assert "tiny: up to date" in capsys.readouterr().out
    assert job.output.stat().st_mtime_ns == before


def test_a_chapter_that_fails_replaces_nothing(job, capsys):
    execute([job], 1)
    good = job.output.read_text()
    write_chapter(job.notebook.parent, FAILING)
    with pytest.raises(Refusal, match="1 of 1 chapters failed: tiny failed: ValueError: the cell failed on purpose"):
        execute([job], 1)
    assert job.output.read_text() == good
    assert sorted(path.name for path in job.executed.iterdir()) == ["tiny.ipynb", "tiny.log", "tiny.stamp.json"]


@pytest.mark.parametrize(
    "damage", ["results", "corrupt", "other run", "notebook", "no notebook", "stamp", "empty stamp", "odd stamp"]
)
def test_what_is_damaged_is_executed_again(job, damage):
    execute([job], 1)
    assert up_to_date(job)
    file = job.results / "tiny.json"
    match damage:
        case "results":
            file.unlink()
        case "corrupt":
            file.write_text(file.read_text()[:50])
        case "other run":
            file.write_text(file.read_text().replace('"abc"', '"xyz"'))
        case "notebook":
            job.output.unlink()
        case "no notebook":
            job.output.write_text("{}")
        case "stamp":
            job.stamp.write_text("{")
        case "empty stamp":
            job.stamp.write_text("{}")
        case "odd stamp":
            job.stamp.write_text("[]")
    assert not up_to_date(job)
    assert _last_seconds(job) >= 0


def test_content_decides_and_not_file_times(job):
    mark = fingerprint(job)
    os.utime(job.notebook.with_suffix(".py"))
    assert fingerprint(job) == mark
    job.notebook.with_suffix(".py").write_text(GOOD + "\n# a comment\n")
    assert fingerprint(job) != mark
    assert fingerprint(Job(job.notebook, "laptop", "cuda", 3, job.results, job.executed)) != fingerprint(job)
    assert fingerprint(Job(job.notebook, "laptop", "cpu", 4, job.results, job.executed)) != fingerprint(job)


def test_imported_modules_are_followed_through_others():
    names = {
        path.name for path in imported_modules("from bnlib import records\nfrom bnlib.layers import relu\nimport numpy")
    }
    assert {"records.py", "criteria.py", "repository.py", "layers.py"} <= names
    assert "figures.py" not in names
    assert imported_modules("import numpy") == set()


def test_progress_lines_and_the_injected_cell_leave_the_page():
    notebook = executed()
    notebook["cells"][1]["outputs"] = [
        {"output_type": "stream", "name": "stderr", "text": ["progress: a\n", "warning\n", "progress: b\n"]},
        {"output_type": "stream", "name": "stderr", "text": ["progress: c\n"]},
    ]
    notebook["cells"][2]["metadata"]["tags"] = ["injected-parameters"]
    cleaned = clean(notebook)
    assert [output["text"] for output in cleaned["cells"][1]["outputs"]] == ["warning\n"]
    assert "remove-cell" in cleaned["cells"][2]["metadata"]["tags"]


SLOW = GOOD + "\n# %%\nimport os, time\npathlib.Path(results_dir, 'pid').write_text(str(os.getpid()))\ntime.sleep(60)\n"


def alive(pid):
    """Whether a process still runs: not ended, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_signal_ends_the_kernel_and_keeps_what_was_finished(tmp_path):
    first = Job(
        write_chapter(tmp_path / "notebooks", GOOD), "laptop", "cpu", 3, tmp_path / "results", tmp_path / "executed"
    )
    write_chapter(tmp_path / "notebooks", SLOW.replace("tiny", "slow").replace('"abc"', '"def"'), "slow")
    script = (
        "import pathlib, sys\n"
        "from tools.execute import Job, execute\n"
        "from tools.paths import Refusal\n"
        f"base = pathlib.Path({str(tmp_path)!r})\n"
        "jobs = [Job(base / 'notebooks' / f'{n}.ipynb', 'laptop', 'cpu', 3, base / 'results', base / 'executed')"
        " for n in ('tiny', 'slow')]\n"
        "try:\n    execute(jobs, 1)\nexcept Refusal as problem:\n    sys.exit(str(problem))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    pid_file = tmp_path / "results" / "pid"
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.2)
    kernel = int(pid_file.read_text())
    assert alive(kernel)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert errors.strip() == "interrupted by SIGTERM; finished chapters are kept"
    assert up_to_date(first)
    assert not (tmp_path / "executed" / "slow.ipynb").exists()
    deadline = time.monotonic() + 20
    while alive(kernel) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not alive(kernel)


def test_nothing_starts_after_a_stop(job):
    executor = Executor()
    threading.Thread(target=executor.stop).run()
    with pytest.raises(Refusal, match="tiny was not started"):
        executor.run(job)


def test_a_second_signal_in_the_middle_of_the_first_does_not_block(job):
    executor = Executor()
    ended = threading.Event()

    def stop_while_stopping():
        with executor._lock:
            executor.stop()
        ended.set()

    threading.Thread(target=stop_while_stopping, daemon=True).start()
    assert ended.wait(timeout=5)


def run_tool(*arguments):
    return subprocess.run([sys.executable, "-m", "tools.execute", *arguments], cwd=ROOT, capture_output=True, text=True)


def test_the_command_refuses_what_does_not_exist(tmp_path):
    done = run_tool("99_nothing", "--results", str(tmp_path), "--executed", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("execute: notebook 99_nothing does not exist; the notebooks are 01_")
    done = run_tool("--preset", "huge", "--results", str(tmp_path), "--executed", str(tmp_path))
    assert done.returncode == 1
    assert "preset huge of 01_batch_norm_decomposed does not exist" in done.stderr
