"""The built book, in files and in a real browser with the network off; `BNLIB_BOOK` says where it is."""

import functools
import http.server
import os
import threading
from pathlib import Path

import pytest
import yaml

from bnlib.records import load_claims, read_results
from tools.build import pages_of
from tools.checks import check_html
from tools.look import browser, chromium_path, inspect, open_page
from tools.paths import ROOT, notebook_names

BOOK = Path(ROOT / os.environ.get("BNLIB_BOOK", "_build/html"))
PAGES = pages_of(yaml.safe_load((ROOT / "_toc.yml").read_text()))
RESULTS = ROOT / "build" / "smoke" / "results"

pytestmark = pytest.mark.skipif(not (BOOK / "index.html").is_file(), reason=f"no built book in {BOOK}; run make test")


@pytest.fixture(scope="module")
def chromium():
    if chromium_path() is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium; run make browser")
        pytest.skip("left out: no Chromium on this machine (make browser installs one)")
    with browser() as opened:
        yield opened


def test_files_are_in_order():
    assert check_html(BOOK, PAGES) == []


def test_every_chapter_has_figures_exercises_and_a_foot():
    for name in notebook_names():
        text = (BOOK / "notebooks" / f"{name}.html").read_text()
        assert text.count("<figcaption>") >= 2, name
        assert text.count("How this page was computed") == 1, name
        assert text.count('class="exercise admonition') >= 2, name
        assert text.count('class="dropdown solution') + text.count("solution dropdown") >= 2, name


def test_every_claim_has_a_verdict():
    for name, claim in load_claims().items():
        if "reason" in claim:
            continue
        outcome = read_results(RESULTS / f"{claim['notebook']}.json")["claims"]
        assert name in outcome


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_a_browser_with_the_network_off(chromium, name, width, dark):
    page, sight = open_page(chromium, (BOOK / f"{name}.html").as_uri(), width=width, dark=dark)
    try:
        assert inspect(page, sight).complaints() == []
        # White figures stay white: the dark theme would dim them.
        pictures = "[...document.querySelectorAll('.cell_output img')]"
        filters = page.evaluate(f"{pictures}.map(i => getComputedStyle(i).filter)")
        assert set(filters) <= {"none"}
    finally:
        page.close()


@pytest.mark.browser
def test_the_browser_check_sees_what_is_wrong(chromium, tmp_path):
    bad = "<script src='https://far.example/a.js'></script><img src='gone.png' alt='x'>"
    bad += "<div style='width:3000px'>wide</div>"
    (tmp_path / "bad.html").write_text(f"<html><body>{bad}<script>throw new Error('boom')</script></body></html>")
    page, sight = open_page(chromium, (tmp_path / "bad.html").as_uri())
    complaints = " ".join(inspect(page, sight).complaints())
    page.close()
    for wanted in (
        "far.example/a.js outside",
        "gone.png did not load",
        "boom",
        "wider than the window",
        "0 search boxes",
    ):
        assert wanted in complaints


@pytest.mark.browser
def test_a_solution_opens_and_the_navigation_works(chromium):
    page, _ = open_page(chromium, (BOOK / "index.html").as_uri())
    page.wait_for_url("**/book/index.html")
    page.click(f'nav a[href*="{PAGES[1].split("/")[-1]}"]')
    page.wait_for_url(f"**/{PAGES[1]}.html")
    solution = page.locator(".solution").first
    body = solution.locator(".section, p:not(.admonition-title)").first
    assert not body.is_visible()
    solution.locator("button, summary, .toggle-button").first.click()
    page.wait_for_timeout(500)
    assert body.is_visible()
    page.close()


@pytest.mark.browser
def test_the_search_finds_a_chapter_over_http(chromium):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(BOOK))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page, sight = open_page(chromium, f"http://127.0.0.1:{server.server_port}/search.html?q=recentering")
        page.wait_for_selector("#search-results li", timeout=15000)
        assert page.locator("#search-results li").count() >= 2
        assert sight.outside == []
        page.close()
        server.shutdown()


@pytest.mark.browser
def test_the_table_of_verdicts_is_filtered_on_the_first_page_and_by_its_counts(chromium):
    claims = load_claims()
    page, _ = open_page(chromium, (BOOK / "book" / "index.html").as_uri())
    rows = page.locator("#verdict-table tbody tr")
    shown = page.locator("#verdict-table tbody tr:visible")
    assert rows.count() == len(claims)
    assert shown.count() == sum(claim["source"] == "paper" for claim in claims.values())
    page.click("#verdict-filter button[type=reset]")
    page.wait_for_timeout(200)
    assert shown.count() == len(claims)
    page.fill("#verdict-filter input[name=words]", "zero of these words occur")
    page.wait_for_timeout(200)
    assert shown.count() == 0
    count = page.locator('table a[href*="verdicts.html?source=review&verdict="]').first
    wanted = int(count.inner_text())
    count.click()
    page.wait_for_url("**/verdicts.html?source=review*")
    page.wait_for_selector("#verdict-shown:has-text('of')")
    assert page.locator("#verdict-table tbody tr:visible").count() == wanted
    page.close()
