"""Results files and verdicts: what a chapter measured, with what, and what follows from it."""

import ast
import hashlib
import html
import json
import math
import os
import platform
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import yaml

from bnlib import repository, seeds
from bnlib.criteria import NotMeasured, decide, evaluate

SCHEMA = 1
CLAIMS_LINK = "../book/claims.yml"
_FIELDS = ("schema", "notebook", "run_id", "parameters", "environment", "values", "claims")


class RecordError(ValueError):
    """A results file, a value or a claim that cannot be used; its message is one sentence."""


def plain(value: Any, name: str = "value") -> Any:
    """Turn a value into what JSON holds: numbers, strings, booleans, null, lists, and dictionaries with string keys.

    Numbers that are keys become decimal strings, fractions become floats, tensors and arrays become lists.

    Raises:
        RecordError: a number that is not finite (record None where nothing was measured), or a type that JSON lacks.

    Example:
        >>> import numpy as np
        >>> plain({8: np.float64(75.5)})
        {'8': 75.5}
    """
    match value:
        case None | bool() | str():
            return value
        case np.bool_():
            return bool(value)
        case int() | np.integer():
            return int(value)
        case float() | np.floating() | Fraction():
            number = float(value)
            if not math.isfinite(number):
                raise RecordError(
                    f"{name} is {number}, which a results file does not hold; record None if nothing was measured"
                )
            return number
        case torch.Tensor() | np.ndarray():
            return plain(value.tolist(), name)
        case Mapping():
            return {str(plain(key, name)): plain(entry, f"{name}[{key!r}]") for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry, f"{name}[{index}]") for index, entry in enumerate(value)]
        case Path():
            return str(value)
    raise RecordError(f"{name} is a {type(value).__name__}, which a results file does not hold")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file whole or not at all: under another name first, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_results(path: Path) -> dict[str, Any]:
    """Read a results file.

    Raises:
        RecordError: it is not there, is not whole, or is of another schema.
    """
    try:
        content = json.loads(path.read_text())
    except OSError as problem:
        raise RecordError(f"results file {path} cannot be read: {problem.strerror}; run its notebook first") from None
    except ValueError as problem:
        raise RecordError(f"results file {path} is corrupt ({problem}); delete it and run its notebook again") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise RecordError(f"results file {path} is not of schema {SCHEMA}; delete it and run its notebook again")
    missing = [field for field in _FIELDS if field not in content]
    if missing:
        raise RecordError(f"results file {path} lacks {', '.join(missing)}; delete it and run its notebook again")
    return content


def load_claims(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """The claims of `book/claims.yml`, by id, in the file's order.

    Raises:
        RecordError: the file is not a list of claims, an id stands twice, or an entry lacks a field; one that is not
            tested says why (`reason`), the others name `notebook`, `criterion` and what is `measured`.
    """
    path = path or repository.repository_root() / "book" / "claims.yml"
    try:
        # The same safe loader in C, where PyYAML has it: the file is long, and every chapter reads it.
        entries = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as problem:
        raise RecordError(f"claims file {path.name} cannot be read: {str(problem).splitlines()[0]}") from None
    claims: dict[str, dict[str, Any]] = {}
    for entry in entries or []:
        lacking = [field for field in ("id", "source", "where", "statement") if not entry.get(field)]
        if lacking:
            raise RecordError(f"claim {entry.get('id', entry)!r} lacks {', '.join(lacking)}")
        tested = all(entry.get(field) for field in ("notebook", "criterion", "measured"))
        if tested == bool(entry.get("reason")):
            raise RecordError(
                f"claim {entry['id']} needs notebook, criterion and measured, or else the reason why it is not tested"
            )
        if entry["id"] in claims:
            raise RecordError(f"claim {entry['id']} stands twice in {path.name}")
        claims[entry["id"]] = entry
    return claims


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _literals(source: str) -> dict[str, Any]:
    """The plain assignments of a parameters cell."""
    assignments = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in assignments}


def preset_of(notebook: str, recorded: Mapping[str, Any]) -> str:
    """The name of the preset that these parameters are: `laptop` (the notebook's defaults), a file's name, or `custom`.

    Seed, device and results folder do not count.
    """
    folder = repository.repository_root() / "notebooks"
    cells = json.loads((folder / f"{notebook}.ipynb").read_text())["cells"]
    tagged = next(cell for cell in cells if "parameters" in cell["metadata"].get("tags", []))
    defaults = _literals("".join(tagged["source"]))
    presets: dict[str, dict[str, Any]] = {"laptop": {}}
    for path in sorted((folder / "presets").glob(f"{notebook}.*.yml")):
        presets[path.name.split(".")[1]] = yaml.safe_load(path.read_text()) or {}
    own = [name for name in recorded if name not in ("seed", "device", "results_dir")]
    for preset, changes in presets.items():
        wanted = {**defaults, **changes}
        if all(_same(recorded[name], wanted.get(name)) for name in own):
            return preset
    return "custom"


def _same(recorded: Any, wanted: Any) -> bool:
    if isinstance(recorded, list) and isinstance(wanted, list):
        try:
            return [Fraction(str(x)) for x in recorded] == [Fraction(str(x)) for x in wanted]
        except ValueError:
            return recorded == wanted
    return recorded == wanted


def environment(notebook: str, recorded: Mapping[str, Any], device: str) -> dict[str, Any]:
    """What a run was made with: versions, device, threads, preset and commit."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
        "device": device,
        "device_name": _device_name(device) if device.startswith("cuda") else _processor(),
        "threads": torch.get_num_threads(),
        "preset": preset_of(notebook, recorded),
        "commit": repository.commit(),
        "dirty": repository.dirty(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _display(bundle: dict[str, str], metadata: dict[str, Any]) -> None:
    """Show something in a notebook; a plain script has nowhere to show it."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is not None:
        display(bundle, raw=True, metadata=metadata)


class Run:
    """One execution of a chapter: collects values and verdicts, and writes them as one file at the end.

    Attributes:
        notebook: the notebook's name without ending.
        parameters: the checked parameters.
        run_id: 32 hexadecimal digits, in the results file and in the executed notebook.
        values: what was recorded so far.
        claims: the verdicts so far.
    """

    def __init__(self, notebook: str, parameters: SimpleNamespace):
        self.notebook = notebook
        self.parameters = parameters
        self.run_id = uuid.uuid4().hex
        self.values: dict[str, Any] = {}
        self.claims: dict[str, dict[str, Any]] = {}
        self._started = time.monotonic()
        recorded = {k: v for k, v in vars(parameters).items() if k != "results_dir"}
        # Fractions keep their exact form, since a results file must say which batch was run.
        exact = {
            k: [str(x) if isinstance(x, Fraction) else x for x in v] if isinstance(v, list) else v
            for k, v in recorded.items()
        }
        self._recorded = plain(exact)
        self._environment = environment(notebook, self._recorded, parameters.device)
        self._claims = {name: claim for name, claim in load_claims().items() if claim.get("notebook") == notebook}

    @property
    def path(self) -> Path:
        """Where the results file will be."""
        return self.parameters.results_dir / f"{self.notebook}.json"

    def record(self, name: str, value: Any) -> None:
        """Put a value into the results file, as JSON will hold it.

        Raises:
            RecordError: the name is already taken, or the value has no place in a results file.
        """
        if name in self.values:
            raise RecordError(f"value {name} was already recorded in this run")
        self.values[name] = plain(value, name)

    def generator(self, *labels: str | int) -> torch.Generator:
        """An independent stream for one part of this run, on the run's device (see `bnlib.seeds`)."""
        return seeds.generator(self.parameters.seed, *labels, device=self.parameters.device)

    def glue(self, name: str, expression: str, *, optional: bool = False) -> None:
        """Make a number available to the prose, as an expression over recorded values.

        Args:
            name: the key for the text, as in ``{glue:text}`name:.2f` ``.
            expression: in the language of `bnlib.criteria`, e.g. `"mean_angle_deg['RC+NL']['8']"`.
            optional: glue nothing when the value was not measured, as at a degenerate size; else that is an error.

        Raises:
            RecordError: the name holds a colon or is already taken.
            CriterionError: the expression cannot be evaluated over the recorded values.
        """
        if ":" in name or name in self.values.get("glued", {}):
            raise RecordError(f"glued name {name!r} holds a colon or is already taken")
        try:
            value = evaluate(expression, self.values)
        except NotMeasured:
            if optional:
                return
            raise
        glued = self.values.setdefault("glued", {})
        glued[name] = plain(value, name)
        self._glue(name, glued[name])

    def _glue(self, name: str, value: Any) -> None:
        # The prefix keeps the number off the page where it is made; it appears where the prose asks for it.
        prefix = "application/papermill.record/"
        _display({f"{prefix}text/plain": repr(value)}, {"scrapbook": {"name": name, "mime_prefix": prefix}})

    def judge(self, *names: str) -> None:
        """Decide claims by their criteria in `book/claims.yml`, over the values recorded so far.

        Without names, every claim of this notebook. Each verdict is glued as `verdict-<id>`, and the table of
        verdicts is shown.

        Raises:
            RecordError: a claim that is not in the file, or is not this notebook's.
        """
        chosen = names or tuple(self._claims)
        for name in chosen:
            if name not in self._claims:
                raise RecordError(f"claim {name} is not one of {self.notebook}'s claims in book/claims.yml")
            claim = self._claims[name]
            verdict = decide(claim["criterion"], self.values)
            self.claims[name] = {
                "verdict": verdict,
                "measured": {key: self._measured(text) for key, text in claim["measured"].items()},
                "criterion": claim["criterion"],
            }
            self._glue(f"verdict-{name}", verdict)
        _display({"text/html": self._verdict_table(chosen), "text/plain": "table of verdicts"}, {})

    def _measured(self, expression: Any) -> Any:
        if not isinstance(expression, str) or expression == "exact":
            return expression
        try:
            return plain(evaluate(expression, self.values))
        except NotMeasured:
            return None

    def _verdict_table(self, names: tuple[str, ...]) -> str:
        rows = []
        for name in names:
            claim, outcome = self._claims[name], self.claims[name]
            criterion = outcome["criterion"]
            rules = {"confirmed": criterion} if isinstance(criterion, str) else criterion
            rule = "<br>".join(f"{html.escape(v)}: <code>{html.escape(e)}</code>" for v, e in rules.items())
            measured = html.escape(told(outcome["measured"], "\n")).replace("\n", "<br>")
            rows.append(
                f'<tr id="claim-{html.escape(name)}"><td>{html.escape(claim["statement"])} '
                f"<small>({html.escape(claim['source'])}, {html.escape(claim['where'])}; "
                # In Jupyter this opens the file; staging points it at the entry on the page made from that file.
                f'<a href="{CLAIMS_LINK}#{html.escape(name)}">{html.escape(name)}</a>)</small>'
                f"<details><summary>criterion</summary>{rule}</details></td>"
                f'<td>{measured}</td><td class="verdict">{html.escape(outcome["verdict"])}</td></tr>'
            )
        return (
            '<div class="verdicts"><table><thead><tr><th>claim</th><th>measured</th><th>verdict</th></tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>"
        )

    def resume(self, key: str, compute: Callable[[], Any]) -> Any:
        """A part of a long run: computed, or read back if an interrupted run of the same code got that far.

        Args:
            key: names the part; letters, digits, `-`, `_` and `.`.
            compute: returns what JSON can hold. It must take its randomness from `bnlib.seeds`.
        """
        path = self._partial / f"{key}.json"
        if path.is_file():
            try:
                return json.loads(path.read_text())
            except ValueError:
                path.unlink()
        value = plain(compute(), key)
        write_json(path, value)
        return value

    @property
    def _partial(self) -> Path:
        digest = hashlib.sha256(json.dumps(self._recorded, sort_keys=True).encode())
        for source in sorted(Path(__file__).parent.glob("*.py")):
            digest.update(source.read_bytes())
        notebook = repository.repository_root() / "notebooks" / f"{self.notebook}.py"
        digest.update(notebook.read_bytes() if notebook.is_file() else b"")
        digest.update(f"{torch.__version__} {np.__version__}".encode())
        return self.parameters.results_dir / "partial" / f"{self.notebook}.{digest.hexdigest()[:16]}"

    def finish(self) -> None:
        """Judge what was not judged, write the results file, and show how the page was computed."""
        left = tuple(name for name in self._claims if name not in self.claims)
        if left:
            self.judge(*left)
        self._environment["seconds"] = round(time.monotonic() - self._started, 2)
        write_json(
            self.path,
            {
                "schema": SCHEMA,
                "notebook": self.notebook,
                "run_id": self.run_id,
                "parameters": self._recorded,
                "environment": self._environment,
                "values": self.values,
                "claims": self.claims,
            },
        )
        self._forget_parts()
        _display(
            {"text/html": self._foot(), "text/plain": f"run {self.run_id}"},
            {"bnlib": {"run_id": self.run_id, "results": self.path.name}},
        )

    def _forget_parts(self) -> None:
        if self._partial.is_dir():
            for part in self._partial.iterdir():
                part.unlink()
            self._partial.rmdir()
            if not any(self._partial.parent.iterdir()):
                self._partial.parent.rmdir()

    def _foot(self) -> str:
        made = self._environment
        commit = (made["commit"] or "no git")[:12] + (" and uncommitted changes" if made["dirty"] else "")
        parameters = ", ".join(f"{name} = {_short(value)}" for name, value in self._recorded.items())
        rows = {
            "Parameters": parameters,
            "Preset": made["preset"],
            "Seed": self._recorded["seed"],
            "Device": f"{made['device']} ({made['device_name']}), {made['threads']} thread(s)",
            "Versions": f"Python {made['python']}, torch {made['torch']}, numpy {made['numpy']}",
            "Run time": f"{made['seconds']:.0f} s, started {made['started']}",
            "Commit": commit,
            "Run": self.run_id,
        }
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows.items())
        again = self._again()
        return (
            '<div class="provenance"><p><strong>How this page was computed</strong></p>'
            f"<table><tbody>{cells}</tbody></table><p>To run it again: <code>{html.escape(again)}</code></p></div>"
        )

    def _again(self) -> str:
        """The one line that runs this notebook again with the same parameters."""
        preset = self._environment["preset"]
        line = f".venv/bin/papermill notebooks/{self.notebook}.ipynb out.ipynb -p seed {self._recorded['seed']}"
        if preset == "laptop":
            return line
        if preset != "custom":
            return f"{line} -f notebooks/presets/{self.notebook}.{preset}.yml"
        own = {name: value for name, value in self._recorded.items() if name not in ("seed", "device")}
        return f"{line} -y '{json.dumps(own, ensure_ascii=False)}'" if own else line


def _short(value: Any) -> str:
    """A value for a table: four digits, long lists cut."""
    match value:
        case None:
            return "not measured"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case list() if len(value) > 8:
            return f"[{', '.join(_short(entry) for entry in value[:3])}, … {len(value)} entries]"
        case list():
            return f"[{', '.join(_short(entry) for entry in value)}]"
        case dict():
            return ", ".join(f"{key}: {_short(entry)}" for key, entry in value.items())
    return str(value)


def told(measured: Mapping[str, Any], separator: str = ", ") -> str:
    """What a claim was decided by, as the tables of verdicts show it: four digits, long lists cut."""
    return separator.join(f"{key.replace('_', ' ')}: {_short(value)}" for key, value in measured.items())


def start(notebook: str, parameters: SimpleNamespace) -> Run:
    """Begin a run of a chapter.

    Args:
        notebook: its name without ending, e.g. `"04_simplified_tree"`.
        parameters: what `bnlib.parameters.check` returned.
    """
    return Run(notebook, parameters)
