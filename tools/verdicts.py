"""Whether the verdicts stand at other seeds: every chapter at smoke size for ten of them, and no verdict flips.

python -m tools.verdicts --seeds 11 12 13
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bnlib.records import RecordError, load_claims, read_results, write_json
from tools.checks import check_claims
from tools.execute import execute, jobs_of
from tools.paths import ROOT, Refusal, notebook_names

# Verdicts that decide nothing: a claim may be too close to call at one seed and called at another.
UNDECIDED = ("inconclusive", "open", "not tested")


@dataclass(frozen=True)
class Stability:
    """How the verdicts of one claim came out over the seeds.

    Attributes:
        claim: its id.
        counts: verdict to the number of seeds, the most frequent first.
        of_record: the verdict of the run of record; empty where there is none.
    """

    claim: str
    counts: dict[str, int]
    of_record: str

    @property
    def decided(self) -> set[str]:
        """The verdicts that decide something, over the seeds."""
        return {verdict for verdict in self.counts if verdict not in UNDECIDED}

    @property
    def flips(self) -> bool:
        """Whether two seeds decide the claim differently."""
        return len(self.decided) > 1

    @property
    def differs_at_size(self) -> bool:
        """Whether all seeds decide it alike, and the run of record, which is larger, otherwise."""
        decided = self.decided | ({self.of_record} - {"", *UNDECIDED})
        return not self.flips and len(decided) > 1


def stability(runs: Sequence[Mapping[str, str]], of_record: Mapping[str, str]) -> list[Stability]:
    """Compare the verdicts of several runs, claim by claim.

    Args:
        runs: one mapping a seed, from claim id to verdict; all with the same claims.
        of_record: the same of the run of record, possibly empty.

    Raises:
        Refusal: there are fewer than two runs, or a claim is missing from one.

    Example:
        >>> stability([{"a": "confirmed"}, {"a": "refuted"}], {})[0].flips
        True
    """
    if len(runs) < 2:
        raise Refusal(f"{len(runs)} seed was run; at least 2 are needed to compare")
    if any(set(run) != set(runs[0]) for run in runs):
        raise Refusal("the runs have different claims; run them again")
    return [
        Stability(name, dict(Counter(run[name] for run in runs).most_common()), of_record.get(name, ""))
        for name in runs[0]
    ]


def verdicts_in(results: Path, names: Sequence[str]) -> dict[str, str]:
    """Claim id to verdict, from the results files of these chapters.

    Raises:
        Refusal: a file does not belong to the claims as they stand.
    """
    claims, verdicts, problems = load_claims(), {}, []
    for name in names:
        record = read_results(results / f"{name}.json")
        problems += check_claims(record, claims, name)
        verdicts |= {key: outcome["verdict"] for key, outcome in record["claims"].items()}
    if problems:
        raise Refusal("; ".join(problems))
    return verdicts


def told(entries: Sequence[Stability], seeds: Sequence[int], *, with_record: bool) -> str:
    """The comparison in words, for a terminal."""
    steady = [entry for entry in entries if len(entry.counts) == 1 and entry.decided]
    never = [entry for entry in entries if not entry.decided]
    flips = [entry for entry in entries if entry.flips]
    partly = len(entries) - len(steady) - len(never) - len(flips)
    lines = [
        f"{len(entries)} verdicts at {len(seeds)} seeds ({', '.join(map(str, seeds))}), smoke size:",
        f"  {len(steady)} come out the same at every seed",
        f"  {partly} are decided alike at some seeds and too close to call at others",
        f"  {len(never)} are too close to call at every seed",
        f"  {len(flips)} flip",
    ]
    lines += [f"    {_counted(entry)}" for entry in flips]
    if with_record:
        moved = [entry for entry in entries if entry.differs_at_size]
        lines.append(f"  {len(moved)} are decided otherwise by the run of record, which is larger")
        lines += [f"    {_counted(entry)}; of record: {entry.of_record}" for entry in moved]
    return "\n".join(lines)


def _counted(entry: Stability) -> str:
    return f"{entry.claim}: " + ", ".join(f"{verdict} {count}" for verdict, count in entry.counts.items())


def run(seeds: Sequence[int], names: Sequence[str], folder: Path, workers: int) -> list[dict[str, str]]:
    """Execute the chapters at smoke size for every seed, finished ones kept; returns the verdicts of each seed."""
    runs = []
    for seed in seeds:
        print(f"Seed {seed}:", flush=True)
        results, executed = folder / f"seed-{seed}" / "results", folder / f"seed-{seed}" / "executed"
        execute(jobs_of(names, "smoke", "auto", seed, results, executed), workers)
        runs.append(verdicts_in(results, names))
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="chapters; all without any")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(11, 21)))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "verdicts")
    parser.add_argument("--record", type=Path, default=ROOT / "build" / "results", help="results of the run of record")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    try:
        names = options.names or notebook_names()
        runs = run(options.seeds, names, options.folder.resolve(), options.jobs)
        try:
            of_record = verdicts_in(options.record, names)
        except (OSError, RecordError, Refusal) as problem:
            print(f"verdicts: the run of record is left out ({problem})")
            of_record = {}
        entries = stability(runs, of_record)
        print(told(entries, options.seeds, with_record=bool(of_record)))
        table = {entry.claim: entry.counts for entry in entries}
        write_json(options.folder / "verdicts.json", {"seeds": options.seeds, "preset": "smoke", "verdicts": table})
    except (Refusal, RecordError, OSError, json.JSONDecodeError, yaml.YAMLError) as problem:
        print(f"verdicts: {problem}", file=sys.stderr)
        return 1
    return 1 if any(entry.flips for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())
