"""Sweeps: in order, kept by content, resumed, and told in one sentence what failed; on a cluster as on one machine."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bnlib import sweeps
from bnlib.parameters import ParameterError
from bnlib.sweeps import SweepError, address, available_workers, sweep
from tests import sweep_functions as functions
from tests.sweep_functions import Spec
from tools.execute import Executor

ROOT = Path(__file__).resolve().parent.parent


def marks(folder):
    """Name of each spec to the processes that were called for it, in order."""
    found = {}
    for path in sorted(Path(folder).iterdir(), key=lambda path: int(path.name.rsplit(".", 1)[1])):
        name, process, _ = path.name.rsplit(".", 2)
        found.setdefault(name, []).append(int(process))
    return found


@pytest.fixture
def calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("workers", [1, 3])
def test_results_are_in_the_order_of_the_specs(tmp_path, calls, workers):
    # The first ones take longest, so that they finish last.
    specs = [Spec(f"s{i}", i, str(calls), 0.2 if i < 2 and workers > 1 else 0.0) for i in range(6)]
    assert sweep(functions.square, specs, folder=tmp_path / "kept", workers=workers) == [
        {"value": i * i} for i in range(6)
    ]
    processes = {process for called in marks(calls).values() for process in called}
    assert (os.getpid() in processes) == (workers == 1)
    assert len(processes) <= workers


def test_the_number_of_workers_changes_no_number(tmp_path):
    specs = [Spec(f"s{i}", i) for i in range(4)]
    alone = sweep(functions.draw, specs, folder=tmp_path / "one", workers=1)
    assert alone == sweep(functions.draw, specs, folder=tmp_path / "two", workers=2)
    assert alone == [functions.draw(spec) for spec in specs]


def test_what_is_kept_is_not_computed_again(tmp_path, calls):
    specs = [Spec(f"s{i}", i, str(calls)) for i in range(3)]
    first = sweep(functions.square, specs, folder=tmp_path / "kept", workers=1)
    assert sweep(functions.square, specs[::-1], folder=tmp_path / "kept", workers=1) == first[::-1]
    assert {name: len(called) for name, called in marks(calls).items()} == {"s0": 1, "s1": 1, "s2": 1}
    # One more spec, and one with another value under the same name.
    more = [Spec("s0", 5, str(calls)), *specs[1:], Spec("s3", 3, str(calls))]
    assert sweep(functions.square, more, folder=tmp_path / "kept", workers=1)[0] == {"value": 25}
    assert {name: len(called) for name, called in marks(calls).items()} == {"s0": 2, "s1": 1, "s2": 1, "s3": 1}


def test_another_program_computes_again(tmp_path, calls, monkeypatch):
    specs = [Spec("s", 2, str(calls))]
    sweep(functions.square, specs, folder=tmp_path / "kept", workers=1)
    monkeypatch.setattr(sweeps, "digest_of", lambda *things: "changed")
    sweep(functions.square, specs, folder=tmp_path / "kept", workers=1)
    assert len(marks(calls)["s"]) == 2
    assert sweep(functions.draw, specs, folder=tmp_path / "kept", workers=1) == [functions.draw(specs[0])]


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"key": "another", "result": 1}', '{"result": 1}'])
def test_a_corrupt_file_is_computed_again(tmp_path, calls, damage):
    specs = [Spec("s", 3, str(calls))]
    sweep(functions.square, specs, folder=tmp_path / "kept", workers=1)
    (file,) = (tmp_path / "kept").iterdir()
    whole = file.read_text()
    file.write_text(damage)
    assert sweep(functions.square, specs, folder=tmp_path / "kept", workers=1) == [{"value": 9}]
    assert len(marks(calls)["s"]) == 2
    assert json.loads(file.read_text()) == json.loads(whole)


def test_an_interrupted_sweep_goes_on(tmp_path, calls):
    """A process that sweeps with two workers is killed half-way: what was finished is there, nothing is half there."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom bnlib.sweeps import sweep\nfrom tests.sweep_functions import Spec, square\n"
        f"specs = [Spec(f's{{i}}', i, {str(calls)!r}, 0.2) for i in range(10)]\n"
        f"sweep(square, specs, folder={str(tmp_path / 'kept')!r}, workers=2)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "kept").glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # its workers end by themselves: nobody reads their answers
    kept = {path.name.split(".")[0] for path in (tmp_path / "kept").glob("*.json")}
    assert 3 <= len(kept) < 10
    before = {name: len(called) for name, called in marks(calls).items()}
    specs = [Spec(f"s{i}", i, str(calls), 0.2) for i in range(10)]
    result = sweep(functions.square, specs, folder=tmp_path / "kept", workers=2)
    assert result == [{"value": i * i} for i in range(10)]
    after = {name: len(called) for name, called in marks(calls).items()}
    assert all(after[name] == before[name] for name in kept)
    assert all(after[f"s{i}"] > before.get(f"s{i}", 0) for i in range(10) if f"s{i}" not in kept)


@pytest.mark.parametrize("workers", [1, 2])
def test_failing_specs_are_named_and_the_others_kept(tmp_path, workers):
    specs = [Spec(f"s{i}", i) for i in range(4)]
    with pytest.raises(SweepError) as caught:
        sweep(functions.odd_fails, specs, folder=tmp_path, workers=workers)
    text = str(caught.value)
    assert text.startswith("2 of 4 specs failed, the others are kept: ")
    assert "s1: ValueError: value is 1; valid is an even number" in text
    assert "s3: ValueError: value is 3; valid is an even number" in text
    assert "\n" not in text
    assert {path.name.split(".")[0] for path in tmp_path.iterdir()} == {"s0", "s2"}


def test_many_failures_are_counted(tmp_path):
    with pytest.raises(SweepError, match=r"5 of 5 specs failed.*; and 2 more\."):
        sweep(functions.odd_fails, [Spec(f"s{i}", 2 * i + 1) for i in range(5)], folder=tmp_path, workers=1)


def test_a_result_that_json_does_not_hold(tmp_path):
    with pytest.raises(SweepError, match="s: RecordError: result of s is nan"):
        sweep(functions.not_finite, [Spec("s")], folder=tmp_path, workers=1)


def test_a_worker_that_dies_is_replaced(tmp_path):
    specs = [Spec(f"s{i}", i, str(tmp_path)) for i in range(3)]
    assert sweep(functions.dies_once, specs, folder=tmp_path / "kept", workers=2) == [0, 1, 2]


def test_a_spec_that_kills_its_workers_is_named(tmp_path):
    with pytest.raises(SweepError, match="a: its worker died 3 times, the last time with exit status 7"):
        sweep(functions.dies, [Spec("a"), Spec("b")], folder=tmp_path, workers=2)


def test_workers_have_one_thread(tmp_path):
    assert sweep(functions.threads, [Spec("a"), Spec("b")], folder=tmp_path, workers=2) == [1, 1]


def test_the_number_of_workers_is_the_machines_or_the_variables(monkeypatch):
    monkeypatch.delenv("BNLIB_WORKERS", raising=False)
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7})
        assert available_workers() == 3
    monkeypatch.setenv("BNLIB_WORKERS", "5")
    assert available_workers() == 5
    for wrong in ("0", "two", "-1", "1.5"):
        monkeypatch.setenv("BNLIB_WORKERS", wrong)
        with pytest.raises(ValueError, match="valid is a whole number of processes, at least 1"):
            available_workers()


def test_chapters_side_by_side_share_the_machine(monkeypatch):
    """`make book` runs two at a time: each is told its share."""
    monkeypatch.setenv("BNLIB_WORKERS", "6")
    assert [Executor(count)._sweep_workers for count in (1, 2, 4, 9)] == ["6", "3", "1", "1"]


def test_address_of_a_scheduler():
    assert address("scheduler", "") == ""
    assert address("scheduler", " tcp://10.0.0.1:8786 ") == "tcp://10.0.0.1:8786"
    for wrong in ("10.0.0.1", "tcp://", 8786, None):
        with pytest.raises(ParameterError, match="must be the address of a Dask scheduler"):
            address("scheduler", wrong)


def test_nothing_to_do(tmp_path):
    assert sweep(functions.square, [], folder=tmp_path) == []


def test_progress_is_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweeps, "progress", lambda items, label, total: print(label, total) or items)
    specs = [Spec(f"s{i}", i) for i in range(3)]
    sweep(functions.square, specs[:1], folder=tmp_path, workers=1, label="networks")
    sweep(functions.square, specs, folder=tmp_path, workers=1, label="networks")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("networks")]
    assert lines == ["networks 1", "networks (1 were there) 2"]


@pytest.mark.usefixtures("unchecked")
class TestBadInput:
    def test_function(self, tmp_path):
        with pytest.raises(ValueError, match="valid is a function at the top level of a module"):
            sweep(lambda spec: 1, [Spec("s")], folder=tmp_path)

        def inside(spec):
            return 1

        with pytest.raises(ValueError, match="valid is a function at the top level of a module"):
            sweep(inside, [Spec("s")], folder=tmp_path)

    @pytest.mark.parametrize("spec", [functions.Melted("s"), Spec, {"name": "s"}, Spec(""), Spec(3)])
    def test_spec(self, tmp_path, spec):
        with pytest.raises(ValueError, match="valid are instances of a frozen dataclass with a field name"):
            sweep(functions.square, [spec], folder=tmp_path)

    def test_names_that_occur_twice(self, tmp_path):
        with pytest.raises(ValueError, match="the name 's' twice; valid are names that occur once"):
            sweep(functions.square, [Spec("s", 1), Spec("s", 2)], folder=tmp_path)

    @pytest.mark.parametrize("workers", [0, -1, 1.5, True])
    def test_workers(self, tmp_path, workers):
        with pytest.raises(ValueError, match="valid is a whole number of processes, at least 1"):
            sweep(functions.square, [Spec("s")], folder=tmp_path, workers=workers)


def test_names_that_files_cannot_have(tmp_path):
    specs = [Spec("a/b c", 2), Spec("a/b:c", 3), Spec("../..", 4)]
    assert [r["value"] for r in sweep(functions.square, specs, folder=tmp_path / "kept", workers=1)] == [4, 9, 16]
    assert len(list((tmp_path / "kept").iterdir())) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


# ------------------------------------------------------------------------------------------------------- a cluster


class Cluster:
    """A Dask scheduler and two workers: three processes, and nobody who would start one of them again."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self.processes = []
        for part in (
            ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter"],
            *[["dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]] * 2,
        ):
            command = [
                sys.executable,
                "-m",
                f"distributed.cli.{part[0]}",
                "--scheduler-file",
                str(self.file),
                *part[1:],
            ]
            self.processes.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
        deadline = time.monotonic() + 60
        while not self.file.exists() or not self.file.read_text().strip():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    @property
    def workers(self):
        return {process.pid: process for process in self.processes[1:]}

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.stop()


def in_background(function):
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_worker_of_a_cluster_is_killed_and_nothing_is_lost(tmp_path, calls, cluster):
    specs = [Spec(f"s{i}", i, str(calls), 0.3) for i in range(12)]
    killed = []

    def kill():
        """Half-way, while it works on something."""
        both = set(cluster.workers)
        wait_for(lambda: {process for called in marks(calls).values() for process in called} == both)
        wait_for(lambda: len(list((tmp_path / "kept").glob("*.json"))) >= 4)
        seen = len(marks(calls))
        wait_for(lambda: len(marks(calls)) > seen)
        victim = list(marks(calls).values())[-1][-1]
        cluster.workers[victim].send_signal(signal.SIGKILL)
        killed.append(victim)

    thread = in_background(kill)
    result = sweep(functions.square, specs, folder=tmp_path / "kept", scheduler=cluster.address)
    thread.join()
    assert result == [{"value": i * i} for i in range(12)]
    called = marks(calls)
    assert set(called) == {spec.name for spec in specs}
    # The call that the dead worker had begun was begun again by the other one.
    again = [processes for processes in called.values() if len(processes) > 1]
    assert again
    assert all(killed[0] in processes and processes[-1] != killed[0] for processes in again)
    # And all of it is kept: the cluster is not asked again.
    cluster.stop()
    assert sweep(functions.square, specs, folder=tmp_path / "kept", scheduler=cluster.address) == result


@pytest.mark.slow
def test_failures_and_other_programs_on_a_cluster_and_its_end(tmp_path, calls, cluster, monkeypatch):
    specs = [Spec(f"s{i}", i) for i in range(4)]
    with pytest.raises(SweepError, match=r"2 of 4 specs failed.*ValueError: value is \d; valid is an even number"):
        sweep(functions.odd_fails, specs, folder=tmp_path / "kept", scheduler=cluster.address)
    assert len(list((tmp_path / "kept").iterdir())) == 2
    # The workers have the files as they are, this process claims to have others.
    with monkeypatch.context() as changed:
        changed.setattr(sweeps, "digest_of", lambda *things: "changed")
        with pytest.raises(SweepError, match=r"s0: the worker on .* has other sources of bnlib; give it the same"):
            sweep(functions.square, specs, folder=tmp_path / "other", scheduler=cluster.address)
    slow = [Spec(f"s{i}", i, str(calls), 0.3) for i in range(20)]

    def end():
        wait_for(lambda: len(list((tmp_path / "lost").glob("*.json"))) >= 2)
        cluster.stop()

    thread = in_background(end)
    with pytest.raises(SweepError, match="was lost before all specs were finished; what was finished is kept"):
        sweep(functions.square, slow, folder=tmp_path / "lost", scheduler=cluster.address)
    thread.join()
    assert len(list((tmp_path / "lost").glob("*.json"))) >= 2


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tcp://no-such-host.invalid:8786", "nonsense://x", "x"])
def test_a_scheduler_that_does_not_answer(tmp_path, address):
    with pytest.raises(SweepError, match="no Dask scheduler answered within 1 s") as caught:
        sweep(functions.square, [Spec("s", 2)], folder=tmp_path, scheduler=address, timeout=1)
    assert "\n" not in str(caught.value)
    assert repr(address) in str(caught.value)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SweepError, match="install the optional extra cluster"):
        sweep(functions.square, [Spec("s", 2)], folder=tmp_path, scheduler="tcp://127.0.0.1:8786")
