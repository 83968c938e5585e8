"""Cells that run in the page: megabytes fetched, and seconds to the first result and for every cell.

    python benchmarks/in_page.py                    # after `make book`; needs Chromium, as the browser tests do
    python benchmarks/in_page.py --page theory

A headless Chromium opens each chapter from a server on this machine. *Cold* is the first visit, with an empty cache;
*warm* is the same page loaded again by the same browser. Both count from the click on *Run* of the first cell to its
result. Then all cells run in order, each by its own click; the limit for a cell is three seconds.
"""

import argparse
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from affscore_book.course.pdf import find_chromium

SITE = Path(__file__).parents[1] / "_build" / "html"
LIMIT = 3


class Handler(SimpleHTTPRequestHandler):
    """Files of the book, as a static host sends them, uncompressed; ``sent`` counts the bytes."""

    sent = 0

    def log_message(self, *args):
        """Say nothing."""

    def copyfile(self, source, outputfile):
        data = source.read()
        Handler.sent += len(data)
        outputfile.write(data)


def seconds(tab, cell):
    """From the click on *Run* to the end of the run; SystemExit where the cell shows an error."""
    start = time.perf_counter()
    tab.evaluate("id => document.getElementById(id).querySelector('.run-run').click()", cell)
    tab.wait_for_function("() => !document.body.dataset.running", timeout=300_000)
    took = time.perf_counter() - start
    if tab.evaluate("id => document.getElementById(id).dataset.ran", cell) != "true":
        raise SystemExit(f"{cell} did not run: {tab.locator(f'#{cell} .run-said').text_content()}")
    return took


def measured(chromium, address, page):
    """Print the numbers of one page. The browser has a profile: without one it keeps no large file in its cache."""
    args = ["--no-sandbox", "--disable-gpu"]
    with TemporaryDirectory() as profile:
        context = chromium.launch_persistent_context(profile, executable_path=find_chromium(), args=args)
        visit_twice(context.new_page(), address, page)
        context.close()


def visit_twice(tab, address, page):
    print(f"\n{page}")
    for visit in ("cold", "warm"):
        tab.goto(f"{address}/book/{page}.html", wait_until="networkidle")
        cells = tab.evaluate("[...document.querySelectorAll('.cell:has(.run-run)')].map(cell => cell.id)")
        before = Handler.sent
        took = seconds(tab, cells[0])
        print(f"  {visit}: {(Handler.sent - before) / 1e6:6.2f} MB, {took:6.2f} s to the first result")
    for cell in cells[1:]:
        took = seconds(tab, cell)
        print(f"  {cell:<32} {took:6.2f} s{'  more than the limit' if took > LIMIT else ''}")


def main():
    parser = argparse.ArgumentParser(description="Megabytes and seconds of the cells that run in the page.")
    parser.add_argument("--page", help="one chapter (default: all that run)")
    options = parser.parse_args()
    pages = [path.stem for path in sorted((SITE / "book").glob("*.html")) if 'id="affscore-cells"' in path.read_text()]
    pages = [page for page in pages if options.page in (None, page)]
    if not pages:
        raise SystemExit(f"There is no such page with cells that run in {SITE}; `make book` builds them.")
    with (
        sync_playwright() as playwright,
        ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(SITE))) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in pages:
            measured(playwright.chromium, f"http://127.0.0.1:{server.server_port}", page)
        server.shutdown()


if __name__ == "__main__":
    main()
