"""Lay out the book's sources in one folder, as Jupyter Book reads them: pages, executed notebooks, static files.

python -m tools.stage --results build/results --executed build/executed --site build/site
"""

import argparse
import ast
import base64
import importlib.util
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

from bnlib.records import CLAIMS_LINK, RecordError, load_claims, read_results
from tools.checks import check_claims, check_executed, check_pair, read_notebook
from tools.fills import fill
from tools.paths import BOOK, ROOT, Refusal, notebook_names
from tools.verdict_pages import claims_page, verdict_page, verdict_rows

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


def point_to_claims_page(notebook: dict[str, Any]) -> dict[str, Any]:
    """Links to the claims file, which Jupyter opens as a file, lead to its page in the book."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).get("text/html")
            if shown is not None:
                page = CLAIMS_LINK.removesuffix("yml") + "html"
                output["data"]["text/html"] = "".join(shown).replace(f'href="{CLAIMS_LINK}#', f'href="{page}#')
    return notebook


def unmeasured(notebook: dict[str, Any]) -> set[str]:
    """The keys that a chapter glues only where there is something to tell, and that this run has not glued.

    A key that is not marked as optional is left alone: that it is missing is an error, and Jupyter Book says so.
    """
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    calls = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call) and node.args)
    optional = {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "glue"
        and isinstance(call.args[0], ast.Constant)
        and any(keyword.arg == "optional" for keyword in call.keywords)
    }
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
    return optional - {output.get("metadata", {}).get("scrapbook", {}).get("name") for output in outputs}


def tell_unmeasured(text: str, missing: set[str], page: str = "") -> str:
    """Say `not measured` in place of each missing number; `page` is the chapter's path where another page asks."""
    prefix = re.escape(f"{page}::") if page else ""
    keys = "|".join(re.escape(key) for key in sorted(missing))
    return re.sub(rf"\{{glue:text\}}`{prefix}(?:{keys})(?::[^`]*)?`", "*not measured*", text) if missing else text


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
    missing = {name: unmeasured(notebook) for name, notebook in notebooks.items()}
    for path in sorted(BOOK.glob("*.md")):
        text = path.read_text()
        for name, keys in missing.items():
            text = tell_unmeasured(text, keys, f"../notebooks/{name}.ipynb")
        (fresh / "book" / path.name).write_text(fill(text, records, rows, path.name))
        for label in wanted_figures(text):
            (fresh / "book" / "figures" / f"{label}.png").write_bytes(figure_bytes(notebooks, label))
    (fresh / "book" / "verdicts.md").write_text(verdict_page(rows))
    (fresh / "book" / "claims.md").write_text(claims_page((BOOK / "claims.yml").read_text()))
    for name, notebook in notebooks.items():
        point_to_claims_page(notebook)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = tell_unmeasured("".join(cell["source"]), missing[name])
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
