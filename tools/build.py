"""Build the staged book with warnings as errors, and check every page that came out.

python -m tools.build --site build/site --output .      writes _build/html
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import yaml

from tools.checks import check_html
from tools.paths import ROOT, Refusal


def pages_of(toc: dict) -> list[str]:
    """The pages that a table of contents names."""
    pages = [toc["root"]]
    for part in toc.get("parts", [toc]):
        pages += [chapter["file"] for chapter in part["chapters"]]
    return pages


def digest(folder: Path) -> str:
    """One hash over the names and contents of a folder's files."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "_build" not in path.relative_to(folder).parts:
            total.update(str(path.relative_to(folder)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def build(site: Path, output: Path) -> Path:
    """Build `site` into `output/_build/html`; nothing is done when the same site was built there before.

    Returns:
        The folder of the built book.

    Raises:
        Refusal: Jupyter Book complained, or a page is not in order.
    """
    pages_folder = output / "_build" / "html"
    stamp = pages_folder / ".staged"
    wanted = digest(site)
    pages = pages_of(yaml.safe_load((site / "_toc.yml").read_text()))
    if stamp.is_file() and stamp.read_text() == wanted and not check_html(pages_folder, pages):
        return pages_folder
    stamp.unlink(missing_ok=True)
    # --all: an incremental build keeps stale numbers of other pages and swallows warnings.
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        str(site),
        "--path-output",
        str(output),
    ]
    command += ["--all", "-W", "-n", "--keep-going"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"},
    )
    log = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    (output / "_build").mkdir(parents=True, exist_ok=True)
    (output / "_build" / "build.log").write_text(log)
    warnings = [line.strip() for line in log.splitlines() if "WARNING" in line or "ERROR" in line]
    if done.returncode != 0 or warnings:
        detail = "; ".join(warnings[:20]) or log.strip().splitlines()[-1]
        raise Refusal(f"the book did not build without warnings: {detail}")
    problems = check_html(pages_folder, pages)
    if problems:
        raise Refusal("the built book is not in order: " + "; ".join(problems[:20]))
    stamp.write_text(wanted)
    return pages_folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--output", type=Path, default=ROOT)
    options = parser.parse_args()
    started = time.monotonic()
    try:
        folder = build(options.site.resolve(), options.output.resolve())
    except Refusal as problem:
        print(f"build: {problem}", file=sys.stderr)
        return 1
    print(f"The book is at {folder / 'index.html'} ({time.monotonic() - started:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
