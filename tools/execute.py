"""Execute chapters with papermill: only what changed, two at a time, finished ones kept.

python -m tools.execute --preset laptop --results build/results --executed build/executed
"""

import argparse
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml

from bnlib.progress import MARK
from bnlib.records import RecordError, load_claims, read_results, write_json
from bnlib.sources import imported_modules
from bnlib.sweeps import WORKERS_VARIABLE, available_workers
from tools.checks import check_executed, check_pair, check_source, read_notebook
from tools.pair import out_of_step
from tools.paths import NOTEBOOKS, PRESETS, ROOT, Refusal, notebook_names


@dataclass(frozen=True)
class Job:
    """One chapter to execute.

    Attributes:
        notebook: the notebook, with its script and its `presets` folder beside it.
        preset: `laptop`, or a file of notebooks/presets.
        device: as the notebooks' parameter.
        seed: as the notebooks' parameter.
        results: folder of results files.
        executed: folder of executed notebooks.
    """

    notebook: Path
    preset: str
    device: str
    seed: int
    results: Path
    executed: Path

    @property
    def name(self) -> str:
        """The notebook's name without ending."""
        return self.notebook.stem

    @property
    def preset_file(self) -> Path | None:
        """The papermill parameter file; none for the laptop size, which is the notebooks' defaults."""
        return None if self.preset == "laptop" else self.notebook.parent / "presets" / f"{self.name}.{self.preset}.yml"

    @property
    def output(self) -> Path:
        """Where the executed notebook goes."""
        return self.executed / f"{self.name}.ipynb"

    @property
    def stamp(self) -> Path:
        """Where the fingerprint and the run time of the last execution are kept."""
        return self.executed / f"{self.name}.stamp.json"


def fingerprint(job: Job) -> str:
    """What decides whether a chapter has to be executed again: content, never file times."""
    source = job.notebook.with_suffix(".py").read_text()
    claims = {key: claim for key, claim in load_claims().items() if claim.get("notebook") == job.name}
    digest = hashlib.sha256()
    parts = [source, job.preset, job.device, str(job.seed), json.dumps(claims, sort_keys=True)]
    files = [ROOT / "requirements" / "lock.txt", ROOT / "requirements" / "torch.txt", ROOT / "bnlib" / "__init__.py"]
    files += [job.preset_file] if job.preset_file else []
    parts += [path.read_text() for path in files + sorted(imported_modules(source))]
    for part in parts:
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


def up_to_date(job: Job) -> bool:
    """Whether the last execution is still good: same fingerprint, notebook and results of the same run."""
    try:
        stamp = json.loads(job.stamp.read_text())
        results = read_results(job.results / f"{job.name}.json")
        notebook = read_notebook(job.output)
        return stamp["fingerprint"] == fingerprint(job) and not check_pair(notebook, results, job.name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Missing or damaged, in whatever way: then it is not good.
        return False


def clean(notebook: dict) -> dict:
    """Drop progress lines, which are for a terminal, and hide the cell that papermill injects."""
    for cell in notebook["cells"]:
        if "injected-parameters" in cell["metadata"].get("tags", []):
            cell["metadata"]["tags"] = ["injected-parameters", "remove-cell"]
        kept = []
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                lines = "".join(output["text"]).splitlines(keepends=True)
                output["text"] = "".join(line for line in lines if not line.startswith(MARK))
                if not output["text"].strip():
                    continue
            kept.append(output)
        if "outputs" in cell:
            cell["outputs"] = kept
    return notebook


class Executor:
    """Runs papermill in processes of their own, and ends them all when this one is told to end.

    Args:
        side_by_side: how many chapters run at a time: each gets its share of the machine for its sweeps.
    """

    def __init__(self, side_by_side: int = 1) -> None:
        self._sweep_workers = str(max(1, available_workers() // side_by_side))
        self._running: set[subprocess.Popen] = set()
        # Re-entrant: a second signal may arrive while the first one is being handled, in the same thread.
        self._lock = threading.RLock()
        self._stopped = False

    def stop(self) -> None:
        """End every process that runs, with its kernel."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)

    def run(self, job: Job) -> float:
        """Execute one chapter; returns its seconds.

        Raises:
            Refusal: the chapter failed, or what it left is not in order.
        """
        mark = fingerprint(job)
        started = time.monotonic()
        job.executed.mkdir(parents=True, exist_ok=True)
        # To a name of its own and moved on success: a failed run never replaces a good one.
        partial = job.executed / f".{job.name}.partial.ipynb"
        command = [sys.executable, "-m", "papermill", str(job.notebook), str(partial)]
        command += ["--log-output", "--no-progress-bar", "--cwd", str(ROOT)]
        command += ["-f", str(job.preset_file)] if job.preset_file else []
        command += ["-p", "device", job.device, "-p", "seed", str(job.seed), "-p", "results_dir", str(job.results)]
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        limits = {**threads, WORKERS_VARIABLE: self._sweep_workers, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        with self._lock:
            if self._stopped:
                raise Refusal(f"{job.name} was not started")
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **limits},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
        log = []
        for line in process.stdout:
            log.append(line)
            if line.startswith(MARK):
                print(f"  {job.name}: {line[len(MARK) :].rstrip()}", flush=True)
        status = process.wait()
        with self._lock:
            self._running.discard(process)
        (job.executed / f"{job.name}.log").write_text("".join(log))
        if status != 0:
            partial.unlink(missing_ok=True)
            reason = next((line.strip() for line in reversed(log) if line.strip()), f"exit status {status}")
            raise Refusal(f"{job.name} failed: {reason}" if not self._stopped else f"{job.name} was interrupted")
        notebook = clean(read_notebook(partial))
        results = read_results(job.results / f"{job.name}.json")
        problems = check_executed(notebook, job.name) + check_pair(notebook, results, job.name)
        if problems:
            raise Refusal("; ".join(problems))
        write_json(partial, notebook)
        os.replace(partial, job.output)
        seconds = time.monotonic() - started
        write_json(job.stamp, {"fingerprint": mark, "seconds": round(seconds, 1), "run_id": results["run_id"]})
        return seconds


def jobs_of(names: Sequence[str], preset: str, device: str, seed: int, results: Path, executed: Path) -> list[Job]:
    """The jobs of these chapters, all without any, the longest first.

    Raises:
        Refusal: a chapter or preset does not exist, or a notebook is not in order.
    """
    known = notebook_names()
    for name in names:
        if name not in known:
            raise Refusal(f"notebook {name} does not exist; the notebooks are {', '.join(known)}")
    problems = out_of_step(known)
    for name in names or known:
        problems += check_source(read_notebook(NOTEBOOKS / f"{name}.ipynb"), name)
        if preset != "laptop" and not (PRESETS / f"{name}.{preset}.yml").is_file():
            problems.append(f"preset {preset} of {name} does not exist")
    if problems:
        raise Refusal("; ".join(problems))
    jobs = [
        Job(NOTEBOOKS / f"{name}.ipynb", preset, device, seed, results.resolve(), executed.resolve())
        for name in names or known
    ]
    # The longest first, as the last run measured it, so that two workers end together; where nothing was measured,
    # the last chapter first: its map is the longest.
    return sorted(jobs, key=lambda job: (_last_seconds(job), job.name), reverse=True)


def execute(jobs: list[Job], workers: int) -> None:
    """Execute the chapters that are not up to date, and print how long each took.

    Raises:
        Refusal: one or more chapters failed; the others are kept.
    """
    executor = Executor(min(workers, len(jobs)) or 1)
    interrupted: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        interrupted.append(number)
        if len(interrupted) == 1:
            executor.stop()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    failures = []

    def one(job: Job) -> None:
        if up_to_date(job):
            print(f"  {job.name}: up to date", flush=True)
            return
        print(f"  {job.name}: started", flush=True)
        try:
            seconds = executor.run(job)
            print(f"  {job.name}: done in {seconds:.1f} s", flush=True)
        except (Refusal, RecordError) as problem:
            failures.append(str(problem))
            print(f"  {problem}", flush=True)

    try:
        with ThreadPoolExecutor(max_workers=workers) as pool:
            list(pool.map(one, jobs))
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if interrupted:
        raise Refusal(f"interrupted by {signal.Signals(interrupted[0]).name}; finished chapters are kept")
    if failures:
        raise Refusal(f"{len(failures)} of {len(jobs)} chapters failed: {'; '.join(sorted(failures))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="chapters; all without any")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=190208129)
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "results")
    parser.add_argument("--executed", type=Path, default=ROOT / "build" / "executed")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    try:
        jobs = jobs_of(options.names, options.preset, options.device, options.seed, options.results, options.executed)
        execute(jobs, options.jobs)
    except (Refusal, ValueError, yaml.YAMLError) as problem:
        print(f"execute: {problem}", file=sys.stderr)
        return 1
    return 0


def _last_seconds(job: Job) -> float:
    try:
        return float(json.loads(job.stamp.read_text())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return float("inf")


if __name__ == "__main__":
    sys.exit(main())
