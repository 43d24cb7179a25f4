"""The documentation site in a real browser: nothing from elsewhere, no fault of accessibility.

`make test-browser` builds the site and fetches axe-core first.
"""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from watched import Watched

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
AXE = ROOT / ".venv" / "axe" / "axe.min.js"
PAGES = ("index", "chemist", "molecules", "results", "gallery", "reference/complexes")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    assert (SITE / "index.html").is_file(), "there is no site; run make docs"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Watched]:
    context = chromium.new_context(
        color_scheme=request.param, viewport={"width": 1280, "height": 900}
    )
    yield Watched(context.new_page())
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_fault_of_accessibility(page: Watched, address: str, name: str) -> None:
    page.page.goto(f"{address}/{name}.html")
    page.page.add_script_tag(path=AXE)
    found = page.value("axe.run(document, {resultTypes: ['violations']})")
    faults = [
        (one["id"], node["html"][:120], node["failureSummary"])
        for one in found["violations"]
        for node in one["nodes"]
    ]
    assert len(found["passes"]) > 10
    assert faults == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_for_nothing_from_elsewhere(page: Watched, address: str, name: str) -> None:
    page.page.goto(f"{address}/{name}.html")
    page.page.wait_for_load_state("networkidle")
    assert page.asked
    assert [url for url in page.asked if not url.startswith((address, "data:", "blob:"))] == []
    assert page.said == []


def test_the_reference_shows_how_a_class_is_built(page: Watched, address: str) -> None:
    page.page.goto(f"{address}/reference/networks.html")
    built = page.page.locator(".doc-signature", has_text="CellAttention(").first.inner_text()
    assert "in_channels" in built
    assert "heads" in built


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_on_a_telephone(chromium: Any, address: str, name: str) -> None:
    narrow = chromium.new_page(viewport={"width": 390, "height": 800})
    narrow.goto(f"{address}/{name}.html")
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 390
    narrow.close()


def test_search_works_from_the_folder_without_a_server(page: Watched) -> None:
    page.page.goto((SITE / "index.html").as_uri())
    page.page.keyboard.press("/")
    page.page.keyboard.type("incidence matrices")
    first = page.page.locator(".md-search-result__link").first
    first.wait_for(timeout=20_000)
    assert "file:" in first.get_attribute("href")
    assert [url for url in page.asked if url.startswith("http")] == []
