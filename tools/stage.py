"""Lay out the book's sources in one folder, as Jupyter Book reads them: pages, executed notebooks, static files.

python -m tools.stage --results build/results --executed build/executed --site build/site
"""

import argparse
import ast
import base64
import html
import importlib.util
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from bnlib.criteria import VERDICTS
from bnlib.records import CLAIMS_LINK, RecordError, load_claims, read_results, told
from tools.checks import check_claims, check_executed, check_pair, read_notebook
from tools.execute import imported_modules
from tools.paths import BOOK, NOTEBOOKS, ROOT, Refusal, notebook_names

SOURCES = {
    "paper": "the paper",
    "review": "its review",
    "essay": "the essay on it",
    "key_facts": "its key facts",
    "mean_field": "the mean-field summary",
    "ours": "this book",
}
SHORT = {
    "paper": "paper",
    "review": "review",
    "essay": "essay",
    "key_facts": "key facts",
    "mean_field": "mean field",
    "ours": "ours",
}
REPOSITORY = os.environ.get("REPOSITORY_URL", "").rstrip("/")


def gather(names: list[str], results: Path, executed: Path) -> tuple[dict[str, dict], dict[str, dict]]:
    """Read the executed notebooks and their results files.

    Raises:
        Refusal: one is missing, failed, or is of another run than its partner, or judged by other criteria than now.
    """
    claims = load_claims()
    notebooks, records, problems = {}, {}, []
    for name in names:
        try:
            notebooks[name] = read_notebook(executed / f"{name}.ipynb")
            records[name] = read_results(results / f"{name}.json")
        except (OSError, ValueError) as problem:
            problems.append(f"{name} has not been executed ({problem})")
            continue
        problems += check_executed(notebooks[name], name)
        problems += check_pair(notebooks[name], records[name], name)
        problems += check_claims(records[name], claims, name)
    if problems:
        raise Refusal("; ".join(problems))
    return notebooks, records


def configuration(text: str, repository: str) -> str:
    """The book's configuration; with a public address it gets repository, edit and launch buttons, and none without."""
    settings = yaml.safe_load(text)
    if repository:
        theme = settings["sphinx"]["config"]["html_theme_options"]
        settings["repository"]["url"] = theme["repository_url"] = repository
        theme["use_repository_button"] = theme["use_edit_page_button"] = theme["use_issues_button"] = True
        settings["html"] |= {
            key: True for key in ("use_repository_button", "use_edit_page_button", "use_issues_button")
        }
        # Binder sets up environment.yml. Colab is left out: a launched notebook there would lack the package.
        theme["launch_buttons"]["binderhub_url"] = "https://mybinder.org"
        settings["launch_buttons"]["binderhub_url"] = "https://mybinder.org"
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


def mathjax_file() -> Path:
    """MathJax's single file, out of the locked package that holds it."""
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    folder = Path(found.origin).parent if found and found.origin else None
    if folder is None:
        raise Refusal("MathJax is missing; run `make setup`")
    return folder / "static" / "mathjax" / "tex-svg.js"


def verdict_rows(claims: dict[str, dict[str, Any]], records: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """Every claim with its verdict, as computed by its chapter; in the chapters' order, untested ones last."""
    rows = []
    for key, claim in claims.items():
        outcome = records.get(claim.get("notebook"), {}).get("claims", {}).get(key)
        rows.append(
            {
                "id": key,
                "source": claim["source"],
                "where": claim["where"],
                "statement": claim["statement"],
                "notebook": claim.get("notebook", ""),
                "reason": claim.get("reason", ""),
                "measured": told(outcome["measured"]) if outcome else "",
                "verdict": outcome["verdict"] if outcome else "not tested",
            }
        )
    return sorted(rows, key=lambda row: row["notebook"] or "~")


def verdict_counts(rows: list[dict[str, str]]) -> str:
    """How many claims of each source came out how, as a table whose counts lead to the claims."""
    sources = [source for source in SOURCES if any(row["source"] == source for row in rows)]
    verdicts = [verdict for verdict in VERDICTS if any(row["verdict"] == verdict for row in rows)]
    counts = Counter((row["source"], row["verdict"]) for row in rows)
    lines = ["| verdict | " + " | ".join(SHORT[source] for source in sources) + " | all |"]
    lines.append("|---|" + "---:|" * (len(sources) + 1))
    for verdict in verdicts:
        row = [_counted(counts[source, verdict], source, verdict) for source in sources]
        total = _counted(sum(counts[source, verdict] for source in sources), "", verdict)
        lines.append(f"| {verdict} | " + " | ".join([*row, total]) + " |")
    totals = [_counted(sum(counts[source, verdict] for verdict in verdicts), source, "") for source in sources]
    lines.append("| **all** | " + " | ".join([*totals, f"**{len(rows)}**"]) + " |")
    return "\n".join(lines)


def _counted(count: int, source: str, verdict: str) -> str:
    """A count, linked to the claims that it counts."""
    if not count:
        return "–"
    asked = urlencode({name: value for name, value in (("source", source), ("verdict", verdict)) if value})
    return f'<a href="verdicts.html?{html.escape(asked)}">{count}</a>'


def _choice(name: str, label: str, options: dict[str, str]) -> str:
    entries = "".join(
        f'<option value="{html.escape(key)}">{html.escape(text)}</option>' for key, text in options.items()
    )
    return f'<label>{label} <select name="{name}"><option value="">all</option>{entries}</select></label>'


def _filter_form(rows: list[dict[str, str]], source: str) -> str:
    """The controls above the table; they stay hidden where no script shows them."""
    sources = {source: text for source, text in SOURCES.items() if any(row["source"] == source for row in rows)}
    verdicts = {verdict: verdict for verdict in VERDICTS if any(row["verdict"] == verdict for row in rows)}
    chapters = {name: str(int(name[:2])) for name in sorted({row["notebook"] for row in rows if row["notebook"]})}
    return (
        f'<form id="verdict-filter" data-source="{source}" hidden>'
        + _choice("source", "Claimed by", sources)
        + _choice("verdict", "Verdict", verdicts)
        + _choice("chapter", "Chapter", chapters)
        + '<label>Words <input name="words" type="search" autocomplete="off"></label>'
        + '<button type="reset">Show all</button></form>'
        + '<p id="verdict-shown" role="status"></p>'
    )


def _decided_by(row: dict[str, str]) -> str:
    """The numbers that decided a claim, linked to their place; or why there are none."""
    if not row["notebook"]:
        return f"<small>{html.escape(row['reason'])}</small>"
    name = row["notebook"]
    link = f'<a href="../notebooks/{name}.html#claim-{html.escape(row["id"])}">chapter {int(name[:2])}</a>'
    return f"{html.escape(row['measured'])} <small>({link})</small>"


def verdict_page(rows: list[dict[str, str]]) -> str:
    """The page of verdicts: counts, a filter, then one row a claim, linked to the place that decides it."""
    lines = [
        "# Verdicts",
        "",
        f"{len(rows)} claims are listed. A tested claim has its criterion in `book/claims.yml`, "
        "written down before the run of record, though after pilots were known; the chapter computes the verdict "
        "from what it measures. Each claim is linked to the place in its chapter that shows the numbers, and to its "
        "criterion.",
        "",
        verdict_counts(rows),
        "",
        verdict_table(rows),
    ]
    return "\n".join(lines) + "\n"


def verdict_table(rows: list[dict[str, str]], source: str = "") -> str:
    """One row a claim below a filter, which begins with the claims of `source`; without scripts all are shown."""
    lines = [
        _filter_form(rows, source),
        '<div class="verdicts"><table id="verdict-table">'
        "<thead><tr><th>claim</th><th>decided by</th><th>verdict</th></tr></thead><tbody>",
    ]
    for row in rows:
        lines.append(
            f'<tr data-source="{row["source"]}" data-verdict="{row["verdict"]}" data-chapter="{row["notebook"]}">'
            f"<td>{html.escape(row['statement'])} "
            f"<small>({html.escape(row['source'].replace('_', ' '))}: {html.escape(row['where'])})</small></td>"
            f"<td>{_decided_by(row)}</td>"
            f'<td class="verdict">{html.escape(row["verdict"])}<br>'
            f'<small><a href="claims.html#{html.escape(row["id"])}">criterion</a></small></td></tr>'
        )
    lines.append("</tbody></table></div>")
    lines.append('<script src="../_static/verdicts.js"></script>')
    return "\n".join(lines)


def claims_page(text: str) -> str:
    """The page that shows `book/claims.yml` as it is, one block an entry, each with an anchor of its own."""
    lines = [
        "# The claims file",
        "",
        "Every claim with its criterion, as `book/claims.yml` holds it. A criterion is an expression over the values "
        "that the chapter records; a single one means confirmed where true and refuted where false; of several the "
        "first true one decides, and where none is true the verdict is inconclusive. The language is documented in "
        "`bnlib/criteria.py`.",
        "",
    ]
    for entry in re.findall(r"^- id:.*?(?=^(?:- id:|# )|\Z)", text, re.M | re.S):
        name = yaml.safe_load(entry)[0]["id"]
        lines.append(f'<pre class="claim" id="{html.escape(name)}">{html.escape(entry.strip())}</pre>')
        lines.append("")
    return "\n".join(lines)


def point_to_claims_page(notebook: dict[str, Any]) -> dict[str, Any]:
    """Links to the claims file, which Jupyter opens as a file, lead to its page in the book."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).get("text/html")
            if shown is not None:
                page = CLAIMS_LINK.removesuffix("yml") + "html"
                output["data"]["text/html"] = "".join(shown).replace(f'href="{CLAIMS_LINK}#', f'href="{page}#')
    return notebook


def wanted_figures(text: str) -> list[str]:
    """The figures that a prose page shows: `figures/<label>.png`, by the label that the figure has in its chapter."""
    return re.findall(r"^```\{figure\} figures/([\w-]+)\.png$", text, re.M)


def figure_bytes(notebooks: dict[str, dict], label: str) -> bytes:
    """The picture that a chapter drew under this label; prose pages show it again, never one of their own.

    Raises:
        Refusal: no chapter has drawn it.
    """
    for notebook in notebooks.values():
        for cell in notebook["cells"]:
            if cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") != label:
                continue
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    return base64.b64decode("".join(output["data"]["image/png"]))
    raise Refusal(f"a page shows figure {label}, which no chapter draws")


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
        return f'<span class="told">{html.escape(row["measured"] or row["reason"])}</span>'
    raise Refusal(f"book/{page} asks for {what} of claim {name}; there are verdict and measured")


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
        if claim is not None:
            return claim_told(name, claim, claims, page)
        if name not in makers:
            raise Refusal(f"book/{page} asks for {name}, which does not exist; there are {', '.join(makers)}")
        return makers[name]()

    return re.sub(r"\{\{ (\w+)(?: ([\w-]+))? \}\}", made, text)


def stage(results: Path, executed: Path, site: Path, *, names: list[str] | None = None) -> None:
    """Lay the book out in `site`, from nothing: what is not staged again is gone.

    Raises:
        Refusal: what was executed is not in order.
    """
    names = names if names is not None else notebook_names()
    notebooks, records = gather(names, results, executed)
    fresh = site.with_name(f".{site.name}.fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "notebooks").mkdir(parents=True)
    (fresh / "book").mkdir()
    shutil.copytree(BOOK / "static", fresh / "book" / "static")
    shutil.copy(mathjax_file(), fresh / "book" / "static" / "tex-svg.js")
    shutil.copy(BOOK / "references.bib", fresh / "book" / "references.bib")
    (fresh / "book" / "figures").mkdir()
    rows = verdict_rows(load_claims(), records)
    for path in sorted(BOOK.glob("*.md")):
        text = path.read_text()
        (fresh / "book" / path.name).write_text(fill(text, records, rows, path.name))
        for label in wanted_figures(text):
            (fresh / "book" / "figures" / f"{label}.png").write_bytes(figure_bytes(notebooks, label))
    (fresh / "book" / "verdicts.md").write_text(verdict_page(rows))
    (fresh / "book" / "claims.md").write_text(claims_page((BOOK / "claims.yml").read_text()))
    for name, notebook in notebooks.items():
        point_to_claims_page(notebook)
        (fresh / "notebooks" / f"{name}.ipynb").write_text(json.dumps(notebook, indent=1, ensure_ascii=False))
    (fresh / "_config.yml").write_text(configuration((ROOT / "_config.yml").read_text(), REPOSITORY))
    shutil.copy(ROOT / "_toc.yml", fresh / "_toc.yml")
    shutil.rmtree(site, ignore_errors=True)
    os.replace(fresh, site)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "results")
    parser.add_argument("--executed", type=Path, default=ROOT / "build" / "executed")
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    options = parser.parse_args()
    try:
        stage(options.results, options.executed, options.site)
    except (Refusal, RecordError) as problem:
        print(f"stage: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
