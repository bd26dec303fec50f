"""What stands in a prose page for `{{ name }}`: computed from the results, the claims and the repository's files."""

import ast
import html
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from bnlib.sources import imported_modules
from tools.paths import BOOK, NOTEBOOKS, ROOT, Refusal, notebook_names
from tools.verdict_pages import SOURCES, verdict_counts, verdict_table


def run_table(records: dict[str, dict[str, Any]]) -> str:
    """What each chapter was run with, for the page on re-executing."""
    lines = ["| chapter | preset | seed | device | seconds |", "|---|---|---|---|---|"]
    for name, record in records.items():
        made = record["environment"]
        seed = record["parameters"]["seed"]
        lines.append(f"| {name} | {made['preset']} | {seed} | {made['device']} | {made['seconds']:.0f} |")
    return "\n".join(lines)


def _distinct(values: Iterable[str]) -> str:
    """Values in the order in which they come, each once."""
    return "; ".join(dict.fromkeys(values))


def devices_text(records: dict[str, dict[str, Any]]) -> str:
    """What the chapters were computed on."""
    made = [record["environment"] for record in records.values()]
    return _distinct(f"{entry['device']} ({entry['device_name']}), {entry['threads']} thread(s)" for entry in made)


def versions_text(records: dict[str, dict[str, Any]]) -> str:
    """The versions that the chapters were computed with."""
    made = [record["environment"] for record in records.values()]
    return _distinct(f"Python {entry['python']}, torch {entry['torch']}, numpy {entry['numpy']}" for entry in made)


def seeds_text(records: dict[str, dict[str, Any]]) -> str:
    """The seeds that the chapters were run with."""
    return _distinct(str(record["parameters"]["seed"]) for record in records.values())


def untested_table(rows: list[dict[str, str]]) -> str:
    """The claims that are not tested, with the reasons."""
    lines = ["| claimed by | claim | why it is not tested |", "|---|---|---|"]
    for row in rows:
        if not row["notebook"]:
            cells = (SOURCES[row["source"]], f"{row['statement']} ({row['where']})", row["reason"])
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def presets_text() -> str:
    """Which presets a file exists for, and which of them nobody has run: a file says so itself in its first line."""
    lines = ["| chapter | preset | what it changes |", "|---|---|---|"]
    for path in sorted((ROOT / "notebooks" / "presets").glob("*.yml")):
        name, preset = path.stem.split(".")
        text = path.read_text()
        label = f"{preset} (never executed)" if "never executed" in text.splitlines()[0] else preset
        changes = yaml.safe_load(text) or {}
        told = ", ".join(f"`{key}: {value}`" for key, value in changes.items())
        lines.append(f"| {name} | {label} | {told} |")
    return "\n".join(lines)


def modules_text() -> str:
    """Every module of the library with its first line, sorted by the chapters that compute with it."""
    users: dict[Path, list[int]] = {path: [] for path in sorted((ROOT / "bnlib").glob("[!_]*.py"))}
    for name in notebook_names():
        for path in imported_modules((NOTEBOOKS / f"{name}.py").read_text()):
            if path in users:
                users[path].append(int(name[:2]))

    def order(path: Path) -> tuple[bool, list[int], str]:
        return len(users[path]) > 3, users[path] or [99], path.stem

    lines = ["| chapters | module | what it holds |", "|---|---|---|"]
    for path in sorted(users, key=order):
        numbers = users[path]
        told = "many" if len(numbers) > 3 else ", ".join(str(number) for number in numbers) or "–"
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0].replace("|", "\\|")
        lines.append(f"| {told} | `{path.stem}` | {first} |")
    return "\n".join(lines)


def claim_told(what: str, name: str, claims: dict[str, dict[str, str]], page: str) -> str:
    """`{{ verdict id }}` or `{{ measured id }}` on a prose page: as computed, linked to the place that decides it.

    Raises:
        Refusal: there is no such claim, or something else is asked of it.
    """
    if name not in claims:
        raise Refusal(f"book/{page} asks for claim {name}, which is not in book/claims.yml")
    row = claims[name]
    if what == "verdict":
        link = f"../notebooks/{row['notebook']}.html#claim-{name}" if row["notebook"] else f"claims.html#{name}"
        return f'<a class="told" href="{link}">{html.escape(row["verdict"])}</a>'
    if what == "measured":
        # A reason is a sentence or more, which bold italics would make hard to read.
        kind = "told" if row["measured"] else "reason"
        return f'<span class="{kind}">{html.escape(row["measured"] or row["reason"])}</span>'
    raise Refusal(f"book/{page} asks for {what} of claim {name}; there are verdict and measured")


def passages_table(source: str, rows: list[dict[str, str]], page: str) -> str:
    """`{{ passages source }}` on a prose page: every passage of a source with the claims that judge it, folded away.

    Raises:
        Refusal: `book/passages.yml` has no such source, or names a claim that does not exist.
    """
    listed = yaml.safe_load((BOOK / "passages.yml").read_text(encoding="utf-8"))
    if source not in listed:
        raise Refusal(f"book/{page} asks for the passages of {source}; there are {', '.join(listed)}")
    claims = {row["id"]: row for row in rows}
    told_rows = [
        f"<tr><td>{html.escape(entry['passage'])}</td><td>"
        + "<br>".join(_judged_by(name, claims, page) for name in entry["claims"])
        + "</td></tr>"
        for entry in listed[source]
    ]
    named = {name for entry in listed[source] for name in entry["claims"]}
    return (
        f'<details class="passages"><summary>{len(told_rows)} passages, judged by {len(named)} claims</summary>'
        '<div class="verdicts"><table><thead><tr><th>passage</th><th>claims and verdicts</th></tr></thead>'
        f"<tbody>{''.join(told_rows)}</tbody></table></div></details>"
    )


def _judged_by(name: str, claims: dict[str, dict[str, str]], page: str) -> str:
    """A claim by its id, with its statement as a hint, and its verdict, linked to the place that decides it."""
    verdict = claim_told("verdict", name, claims, page)
    return f'<a href="claims.html#{name}" title="{html.escape(claims[name]["statement"])}">{name}</a>: {verdict}'


def fill(text: str, records: dict[str, dict[str, Any]], rows: list[dict[str, str]], page: str) -> str:
    """Replace `{{ name }}` in a prose page by what is computed for it, from the results and the rows of verdicts.

    Raises:
        Refusal: the page asks for something that does not exist.
    """
    makers = {
        "run_table": lambda: run_table(records),
        "presets": presets_text,
        "modules": modules_text,
        "verdict_counts": lambda: verdict_counts(rows),
        "verdict_table": lambda: verdict_table(rows, "paper"),
        "untested": lambda: untested_table(rows),
        "devices": lambda: devices_text(records),
        "versions": lambda: versions_text(records),
        "seeds": lambda: seeds_text(records),
    }
    claims = {row["id"]: row for row in rows}

    def made(match: re.Match) -> str:
        name, claim = match.groups()
        if name == "passages" and claim is not None:
            return passages_table(claim, rows, page)
        if claim is not None:
            return claim_told(name, claim, claims, page)
        if name not in makers:
            raise Refusal(f"book/{page} asks for {name}, which does not exist; there are {', '.join(makers)}")
        return makers[name]()

    return re.sub(r"\{\{ (\w+)(?: ([\w-]+))? \}\}", made, text)
