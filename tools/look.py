"""Look at a built book in a real browser with the network off: what it asks for, what fails, how it looks.

python -m tools.look --book _build/html --pictures build/look
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, Route, sync_playwright

from tools.paths import ROOT, Refusal

NAMES = ("chromium", "chromium-browser", "google-chrome")
# The theme's own script is loaded twice by its own template; harmless, and not ours to mend.
KNOWN_MESSAGES = ("THEBE_JS_URL",)


def chromium_path() -> str | None:
    """An installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Sight:
    """What a browser saw of one page.

    Attributes:
        outside: addresses outside the book that the page asked for.
        failed: addresses inside the book that did not load.
        messages: errors on the console.
        broken_pictures: pictures that did not load.
        raw_formulas: formulas that were left as LaTeX.
        overflow: pixels by which the page is wider than its window.
        search_boxes: visible search fields and buttons that open one.
    """

    outside: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    broken_pictures: list[str] = field(default_factory=list)
    raw_formulas: int = 0
    overflow: int = 0
    search_boxes: int = 0

    def complaints(self) -> list[str]:
        """What is wrong with the page, in words."""
        wrong = [f"asks for {address} outside the book" for address in self.outside]
        wrong += [f"{address} did not load" for address in self.failed + self.broken_pictures]
        wrong += [f"console: {message}" for message in self.messages]
        wrong += [f"{self.raw_formulas} formulas are raw LaTeX"] if self.raw_formulas else []
        wrong += [f"is {self.overflow} px wider than the window"] if self.overflow > 0 else []
        wrong += [f"has {self.search_boxes} search boxes"] if self.search_boxes != 1 else []
        return wrong


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium that asks nothing of the network by itself.

    Raises:
        Refusal: there is none.
    """
    path = chromium_path()
    if path is None:
        raise Refusal("no Chromium is installed; run `make browser`")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=[*quiet, "--disable-component-update"])
        try:
            yield opened
        finally:
            opened.close()


def open_page(opened: Browser, address: str, *, width: int = 1200, dark: bool = False) -> tuple[Page, Sight]:
    """Open a page with every request to the outside blocked and noted."""
    sight = Sight()
    page = opened.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")

    def gate(route: Route) -> None:
        inside = route.request.url.startswith(("file:", "data:", "blob:", "http://127.0.0.1", "http://localhost"))
        if not inside:
            sight.outside.append(route.request.url)
        route.continue_() if inside else route.abort()

    page.route("**/*", gate)
    page.on("requestfailed", lambda request: sight.failed.append(request.url) if "file:" in request.url else None)
    page.on(
        "console",
        lambda message: (
            sight.messages.append(message.text)
            if message.type == "error" and not any(known in message.text for known in KNOWN_MESSAGES)
            else None
        ),
    )
    page.on(
        "pageerror",
        lambda error: sight.messages.append(str(error)) if not any(k in str(error) for k in KNOWN_MESSAGES) else None,
    )
    page.goto(address)
    if dark:
        page.evaluate("document.documentElement.dataset.theme = document.documentElement.dataset.mode = 'dark'")
    # MathJax has typeset the page when every formula holds a drawing.
    page.wait_for_function(
        "!document.querySelector('.math') || (window.MathJax && MathJax.startup && MathJax.startup.promise)",
        timeout=20000,
    )
    page.evaluate("window.MathJax && MathJax.startup ? MathJax.startup.promise : null")
    return page, sight


def inspect(page: Page, sight: Sight) -> Sight:
    """Fill in what can be measured on an open page."""
    sight.broken_pictures = page.evaluate(
        "[...document.images].filter(i => i.offsetParent && !(i.complete && i.naturalWidth)).map(i => i.src)"
    )
    sight.raw_formulas = page.evaluate(
        "[...document.querySelectorAll('.math')].filter(m => !m.querySelector('mjx-container')).length"
    )
    sight.overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    sight.search_boxes = page.evaluate(
        "[...document.querySelectorAll('.search-button, .search-button-field, .bd-search')]"
        ".filter(e => e.offsetParent && !e.closest('dialog') && !e.closest('.search-button__wrapper')).length"
    )
    return sight


def picture(page: Page, target: Path) -> None:
    """One picture of the whole page."""
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": page.viewport_size["width"], "height": min(int(height), 16000)})
    page.wait_for_timeout(200)
    target.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(target))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--book", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--pictures", type=Path, default=ROOT / "build" / "look")
    parser.add_argument("pages", nargs="*", help="pages without ending; all without any")
    options = parser.parse_args()
    folder = options.book.resolve()
    found = [
        path.relative_to(folder).with_suffix("")
        for sub in ("book", "notebooks")
        for path in folder.glob(f"{sub}/*.html")
    ]
    pages = options.pages or sorted(map(str, found))
    wrong = 0
    try:
        with browser() as opened:
            for name in pages:
                for mode, width, dark in (("light", 1200, False), ("dark", 1200, True), ("narrow", 380, False)):
                    page, sight = open_page(opened, (folder / f"{name}.html").as_uri(), width=width, dark=dark)
                    for complaint in inspect(page, sight).complaints():
                        wrong += 1
                        print(f"{name} ({mode}): {complaint}")
                    picture(page, options.pictures / f"{Path(name).name}.{mode}.png")
                    page.close()
    except Refusal as problem:
        print(f"look: {problem}", file=sys.stderr)
        return 1
    print(f"{len(pages)} pages, pictures in {options.pictures}, {wrong} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
