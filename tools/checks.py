"""What must hold for a notebook, an executed one, a staged site and a built page; each check returns its complaints.

The tool chain lets many faults pass in silence: a page that holds a traceback renders, a missing picture is a 404, a
parameter that nobody knows runs. Every function here is fed bad cases in tests/test_checks.py.
"""

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bnlib.criteria import decide

PARAMETERS, INJECTED = "parameters", "injected-parameters"


def _tags(cell: dict[str, Any]) -> list[str]:
    return cell["metadata"].get("tags", [])


def check_source(notebook: dict[str, Any], name: str) -> list[str]:
    """Complaints about a notebook as it lies in the repository."""
    problems = []
    tagged = [cell for cell in notebook["cells"] if PARAMETERS in _tags(cell)]
    if len(tagged) != 1:
        problems.append(f"{name} has {len(tagged)} cells tagged parameters instead of one")
    for index, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code" and (cell.get("outputs") or cell.get("execution_count")):
            problems.append(f"{name}, cell {index}: committed with outputs")
    titles = re.findall(r"^# ", _prose(notebook), re.M)
    if len(titles) != 1:
        problems.append(f"{name} has {len(titles)} titles of the first level instead of one; sections would vanish")
    return problems


def _prose(notebook: dict[str, Any]) -> str:
    """The Markdown of a notebook without its fenced blocks, where # starts a comment."""
    texts = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    return re.sub(r"^(```+|:::+).*?^\1", "", "\n\n".join(texts), flags=re.M | re.S)


def check_executed(notebook: dict[str, Any], name: str) -> list[str]:
    """Complaints about a notebook that papermill has executed."""
    problems = []
    if notebook["metadata"].get("papermill", {}).get("exception"):
        problems.append(f"{name} ended with an exception")
    counts = []
    for index, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        errors = [output for output in cell["outputs"] if output["output_type"] == "error"]
        problems += [f"{name}, cell {index}: {error['ename']}: {error['evalue']}" for error in errors]
        if not "".join(cell["source"]).strip():
            continue
        if cell["metadata"].get("papermill", {}).get("status", "completed") != "completed":
            problems.append(f"{name}, cell {index}: not completed")
        if cell.get("execution_count") is None:
            problems.append(f"{name}, cell {index}: was not executed")
        else:
            counts.append(cell["execution_count"])
    if counts != sorted(set(counts)):
        problems.append(f"{name}: its cells were not executed in order")
    problems += _check_pictures(notebook, name)
    return problems


def _check_pictures(notebook: dict[str, Any], name: str) -> list[str]:
    """Every picture needs a caption, a label and a text for those who cannot see it."""
    problems = []
    for index, cell in enumerate(notebook["cells"]):
        outputs = cell.get("outputs", [])
        if not any(mime.startswith("image/") for output in outputs for mime in output.get("data", {})):
            continue
        options = cell["metadata"].get("mystnb", {})
        wanted = {
            "a caption": options.get("figure", {}).get("caption"),
            "a label": options.get("figure", {}).get("name"),
            "alt text": options.get("image", {}).get("alt"),
        }
        problems += [f"{name}, cell {index}: picture without {what}" for what, text in wanted.items() if not text]
    return problems


def run_ids(notebook: dict[str, Any]) -> list[str]:
    """The run ids that an executed notebook carries in its outputs."""
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
    return [output["metadata"]["bnlib"]["run_id"] for output in outputs if "bnlib" in output.get("metadata", {})]


def check_pair(notebook: dict[str, Any], results: dict[str, Any], name: str) -> list[str]:
    """Complaints when an executed notebook and a results file are not of the same run."""
    ids = run_ids(notebook)
    if ids != [results["run_id"]]:
        return [f"{name}: its results file is of run {results['run_id']}, the executed notebook of {ids or 'none'}"]
    return []


def check_claims(results: dict[str, Any], claims: dict[str, dict[str, Any]], name: str) -> list[str]:
    """Complaints when a results file's verdicts do not belong to the claims file as it stands now."""
    expected = {key: claim for key, claim in claims.items() if claim.get("notebook") == name}
    problems = [f"{name}: claim {key} has no verdict" for key in expected if key not in results["claims"]]
    for key, outcome in results["claims"].items():
        if key not in expected:
            problems.append(f"{name}: reports claim {key}, which is not one of its claims in book/claims.yml")
        elif outcome["criterion"] != expected[key]["criterion"]:
            problems.append(f"{name}: claim {key} was judged by another criterion than book/claims.yml holds now")
        elif outcome["verdict"] != (found := decide(outcome["criterion"], results["values"])):
            problems.append(f"{name}: claim {key} is said to be {outcome['verdict']}, its values say {found}")
    return problems


class _Page(HTMLParser):
    """What a page loads, links to, names and shows."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.images: list[dict[str, str | None]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id"):
            self.anchors.add(given["id"])
            self.ids.append(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "img":
            self.images.append(given)
        if tag in ("img", "script", "iframe", "source", "video", "audio", "embed") and given.get("src"):
            self.loads.append(given["src"])
        loading = {"stylesheet", "preload", "icon", "shortcut", "prefetch", "modulepreload"}
        if tag == "link" and given.get("href") and loading & set((given.get("rel") or "").split()):
            self.loads.append(given["href"])


def _parse(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page


def _is_outside(address: str) -> bool:
    return bool(urlsplit(address).scheme in ("http", "https") or address.startswith("//"))


def check_html(folder: Path, pages: Iterable[str]) -> list[str]:
    """Complaints about a built book: pages, pictures, links, and what they load.

    Args:
        folder: the built book.
        pages: the pages that must exist, as in the table of contents, without ending.
    """
    problems = []
    parsed = {path.resolve(): _parse(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    for page in pages:
        if (folder / f"{page}.html").resolve() not in parsed:
            problems.append(f"page {page}.html was not built")
    for path, page in parsed.items():
        name = path.relative_to(folder.resolve())
        problems += [f"{name}: loads {address} from outside" for address in page.loads if _is_outside(address)]
        for image in page.images:
            if not (image.get("alt") or "").strip() or re.fullmatch(r"\S*\.(png|svg|jpe?g)", image["alt"] or ""):
                problems.append(f"{name}: picture {image.get('src')} has no alt text")
        for address in page.loads + page.links:
            problems += _check_target(address, path, folder, parsed, str(name))
        text = path.read_text()
        if "Traceback (most recent call last)" in text:
            problems.append(f"{name}: shows a traceback")
    problems += _check_styles(folder)
    return problems


def _check_target(address: str, path: Path, folder: Path, parsed: dict[Path, _Page], name: str) -> list[str]:
    parts = urlsplit(address)
    if parts.scheme or address.startswith("//"):
        return []
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return [f"{name}: {address} does not exist"]
    fragment = unquote(parts.fragment)
    if fragment and target in parsed and fragment not in parsed[target].anchors:
        return [f"{name}: {address} points at nothing on its page"]
    return []


def _check_styles(folder: Path) -> list[str]:
    """Style sheets load too: fonts and imports must not come from outside."""
    problems = []
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text(errors="replace")
        found = re.findall(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", text)
        problems += [f"{path.relative_to(folder)}: loads {address} from outside" for address in found]
    return problems


def read_notebook(path: Path) -> dict[str, Any]:
    """A notebook as plain dictionaries, its sources as lists of lines or as strings."""
    content = json.loads(path.read_text())
    if not isinstance(content, dict) or not isinstance(content.get("cells"), list) or "metadata" not in content:
        raise ValueError(f"{path.name} is not a notebook")
    return content
