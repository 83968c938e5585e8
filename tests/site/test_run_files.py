"""What a page fetches to run its cells, as a server sees it: every file of Python once, also where a reader stops."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from built_site import SITE
from run_cells import BOOK, code_cells, read
from test_run_cells import Page, stored

pytestmark = pytest.mark.browser
PYTHON = "/_static/vendor/pyodide/"
FILES = json.loads((BOOK / "_static/vendor/pyodide/files.json").read_text(encoding="utf-8"))
TOTAL = sum(file["bytes"] for file in FILES.values())
LONGEST = "pyodide.asm.wasm"


class Server(ThreadingHTTPServer):
    """The book's files, and which of Python's were asked for. The longest one stops half way until :meth:`go_on`."""

    daemon_threads = True

    def __init__(self, closes: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(SITE)))
        self.asked: Counter[str] = Counter()
        self.closes = closes
        self._may_go_on = threading.Event()

    def go_on(self) -> None:
        """Send the second half now, or close the connection in its place if the server ``closes``."""
        self._may_go_on.set()

    def wait(self) -> bool:
        return self._may_go_on.wait(120)


class _Handler(SimpleHTTPRequestHandler):
    server: Server

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        name = self.path.removeprefix(PYTHON)
        if name != self.path:
            self.server.asked[name] += 1
        if name == LONGEST and self.server.asked[name] == 1:
            self._in_two_halves((SITE / self.path[1:]).read_bytes())
        else:
            super().do_GET()

    def _in_two_halves(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/wasm")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        half = len(data) // 2
        self.wfile.write(data[:half])
        if self.server.wait() and not self.server.closes:
            self.wfile.write(data[half:])
        self.close_connection = True


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(**getattr(request, "param", {})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.go_on()
        server.shutdown()


@pytest.fixture
def page(chromium: Any, site: Any, server: Server) -> Iterator[Page]:
    tab = chromium.new_page()
    tab.goto(f"http://127.0.0.1:{server.server_port}/book/theory.html", wait_until="load")
    yield Page(tab)
    tab.close()


def stopped_half_way(page: Page) -> str:
    """Press Run and, when no more can arrive, Stop. Returns what the cell then says."""
    most = 1 - FILES[LONGEST]["bytes"] / 2 / TOTAL
    page.run("theory-003", wait=False)
    meter = page.tab.locator("#cell-theory-003 progress").element_handle()
    page.tab.wait_for_function("([meter, most]) => meter.value > most - 0.05", arg=[meter, most])
    page.run("theory-003")
    return page.said("theory-003")


def check_output(page: Page) -> None:
    cell = next(cell for cell in code_cells(read("theory")) if cell["id"] == "theory-003")
    seen, expected = page.shown("theory-003", stored(cell))
    assert seen == expected


@pytest.mark.weekly  # a loop without end is stopped every time (test_run_cells)
def test_stop_while_python_is_loaded_keeps_what_is_there(page, server):
    said = stopped_half_way(page)
    kept = re.match(r"Stopped\. (\d+) of (\d+) MB of Python are loaded and kept\.", said)
    assert kept and 0 < int(kept[1]) < int(kept[2])
    server.go_on()
    page.run("theory-003")
    check_output(page)
    assert server.asked == dict.fromkeys(FILES, 1)


@pytest.mark.weekly  # as above
@pytest.mark.parametrize("server", [{"closes": True}], indirect=True)
def test_only_interrupted_files_are_fetched_again(page, server):
    """Only a file whose connection was closed is fetched again."""
    stopped_half_way(page)
    server.go_on()
    page.run("theory-003")
    check_output(page)
    assert server.asked == dict.fromkeys(FILES, 1) | {LONGEST: 2}


@pytest.mark.weekly  # as above
def test_a_new_python_after_a_stop_needs_no_file_again(page, server):
    server.go_on()
    page.type("theory-003", "while True:\n    pass")
    page.run("theory-003", wait=False)
    page.tab.locator("#cell-theory-003 .run-said", has_text="Running").wait_for(timeout=180_000)
    page.run("theory-003")
    page.tab.locator("#cell-theory-003 .run-reset").click()
    page.run("theory-003")
    check_output(page)
    assert server.asked == dict.fromkeys(FILES, 1)
