"""Cells that run in the page: in Chromium, from the book's own files, with no other host to be reached."""

from __future__ import annotations

import ast
import json
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
import run_cells
from built_site import SITE
from test_accessible_pages import violations
from test_browser import PHONE, SERVER, opened, settle

browser = pytest.mark.browser
VENDORED = SITE / "_static" / "vendor" / "pyodide"


def stored(cell: dict[str, Any]) -> list[tuple[str, str]]:
    """What a notebook has stored for a cell, as the page's session emits it."""
    found: list[tuple[str, str]] = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            kind, text = "text", "".join(output["text"])
        elif "text/html" in output["data"]:
            kind, text = "html", "".join(output["data"]["text/html"])
        else:
            kind, text = "text", "".join(output["data"]["text/plain"]) + "\n"
        if found and kind == found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + text)
        else:
            found.append((kind, text))
    return found


class Page:
    """A chapter in a browser, and what its reader does."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab

    def run(self, cell: str, wait: bool = True) -> None:
        self.tab.evaluate("id => document.getElementById(id).querySelector('.run-run').click()", f"cell-{cell}")
        if wait:
            self.tab.wait_for_function("() => !document.body.dataset.running", timeout=180_000)

    def type(self, cell: str, text: str) -> None:
        self.tab.locator(f"#cell-{cell} pre[contenteditable]").fill(text)

    def shown(self, cell: str, expected: list[tuple[str, str]] = ()) -> tuple[list[list[str]], list[list[str]]]:
        """What the cell shows, and ``expected`` in the form that the browser gives it."""
        return self.tab.evaluate(
            """([id, expected]) => {
                const made = (kind, text) => {
                  const box = document.createElement("div");
                  if (kind === "html") box.innerHTML = text; else box.textContent = text;
                  return [kind, kind === "html" ? box.innerHTML : box.textContent];
                };
                const parts = document.getElementById(id).querySelector(".run-output")?.children ?? [];
                const seen = [...parts].map((part) => part.matches(".text_html")
                  ? ["html", part.innerHTML] : [part.dataset.form, part.textContent]);
                return [seen, expected.map(([kind, text]) => made(kind, text))];
            }""",
            [f"cell-{cell}", expected],
        )

    def said(self, cell: str) -> str:
        return self.tab.locator(f"#cell-{cell} .run-said").text_content()


@pytest.fixture(scope="module")
def page(chromium: Any, site: Any) -> Iterator[Page]:
    """The chapter on theory, and one session for the tests below that leave it in order."""
    with opened(chromium, SERVER, "book/theory.html") as (tab, problems):
        settle(tab)
        tab.evaluate("async () => { await window.MathJax.startup.promise; }")
        yield Page(tab)
        assert problems == []


def different(page: Page, chapter: str) -> dict[str, Any]:
    """What each cell shows, by its id, where it is not what the notebook has stored."""
    cells = {c["id"]: c for c in run_cells.code_cells(run_cells.read(chapter)) if run_cells.runs(c)}
    assert page.tab.locator(".run-run").count() == len(cells) > 3
    found = {}
    for name, cell in cells.items():
        page.run(name)
        seen, expected = page.shown(name, stored(cell))
        if seen != expected:
            found[name] = seen
    return found


# Weekly, since make test runs their cells with nbval every time; theory has the page of its own above.
OTHERS = [name for name in run_cells.CHAPTERS if name != "theory"]


@pytest.mark.weekly
@browser
@pytest.mark.parametrize("chapter", OTHERS)
def test_every_cell_shows_what_the_notebook_has_stored(chromium, site, chapter):
    with opened(chromium, SERVER, f"book/{chapter}.html") as (tab, problems):
        assert different(Page(tab), chapter) == {} and problems == []


@pytest.mark.weekly
@browser
def test_every_cell_of_theory_does_too(page):
    assert different(page, "theory") == {}


@browser
def test_what_a_reader_changes_is_used_by_the_cells_below(page):
    page.type("theory-score-c", "score(x, x)")
    page.run("theory-score-c")
    assert page.shown("theory-score-c")[0][0][1].strip().startswith(("1.0", "np.float64(1.0", "np.float64(0.99999"))
    page.type("theory-w2", "def w2(x, y):\n    return 0.5\n\n\ndef partners(x, y):\n    return range(len(x))")
    page.run("theory-score")
    expected = page.shown("theory-score")[0][0][1]
    assert expected.startswith("score          0.486"), "the score is made of the reader's w2"
    assert "earlier cell" in page.said("theory-score")


@browser
def test_an_output_that_a_change_above_made_outdated_says_so(page):
    page.run("theory-005")
    page.type("theory-003", "x = cloud(n=40)\ny = np.abs(x)\nimage = affine_map(x, y)(x)")
    page.run("theory-003")
    assert page.said("theory-005").startswith("Outdated:") and page.said("theory-003").startswith("Done.")
    assert not page.said("theory-w2").startswith("Outdated:")
    page.run("theory-005")
    assert page.said("theory-005").startswith("Done.")
    for cell in ("theory-003", "theory-005"):
        page.tab.locator(f"#cell-{cell} .run-reset").click()


@browser
def test_an_error_names_its_line_and_the_page_goes_on(page):
    page.type("theory-003", "x = cloud()\nx[99]")
    page.run("theory-003")
    kind, text = page.shown("theory-003")[0][-1]
    assert kind == "error" and text.startswith("line 2: x[99]") and "IndexError" in text
    page.tab.locator("#cell-theory-003 .run-reset").click()
    page.run("theory-003")
    assert page.shown("theory-003")[0][-1][0] == "html"


@browser
def test_the_keyboard_runs_a_cell_and_leaves_it(page):
    code = page.tab.locator("#cell-theory-007 pre[contenteditable]")
    code.focus()
    page.tab.keyboard.press("Shift+Enter")
    page.tab.wait_for_function("() => document.querySelector('#cell-theory-007').dataset.ran === 'true'")
    page.tab.wait_for_function("() => !document.body.dataset.running")
    page.tab.keyboard.press("Escape")
    assert page.tab.evaluate("document.activeElement.className") == "run-run"


@pytest.mark.weekly  # axe looks at a page with the buttons every time
@browser
def test_axe_finds_nothing_after_a_run(page):
    assert violations(page.tab) == []


@browser
def test_infinite_loop_is_stopped_and_the_next_run_is_fresh(page):
    """A loop without end can be stopped, and the next run starts afresh."""
    page.type("theory-009", "while True:\n    pass")
    page.run("theory-009", wait=False)
    page.tab.locator("#cell-theory-009 .run-said", has_text="Running").wait_for()
    assert page.tab.locator("#cell-theory-009 .run-run").text_content() == "Stop"
    page.run("theory-009")
    assert page.said("theory-009").startswith("Stopped.")
    page.run("theory-005")
    assert page.shown("theory-005")[0][0][1].startswith("length of the lines")
    page.tab.locator("#cell-theory-009 .run-reset").click()


@browser
def test_what_was_typed_is_kept_until_it_is_reset(page):
    page.type("theory-w2", "w2 = 3")
    page.tab.reload(wait_until="load")
    code = page.tab.locator("#cell-theory-w2 pre[contenteditable]")
    assert code.text_content() == "w2 = 3"
    assert page.said("theory-w2").startswith("This is the text that you left here")
    page.tab.locator("#cell-theory-w2 .run-reset").click()
    assert code.text_content().startswith("from scipy.optimize")
    page.tab.evaluate("localStorage.clear()")
    page.tab.reload(wait_until="load")


@browser
def test_what_reset_took_away_comes_back(page):
    page.type("theory-w2", "w2 = 3")
    button, code = (
        page.tab.locator("#cell-theory-w2 .run-reset"),
        page.tab.locator("#cell-theory-w2 pre[contenteditable]"),
    )
    button.click()
    assert (button.text_content(), code.text_content()[:10]) == ("Undo Reset", "from scipy")
    button.click()
    assert (button.text_content(), code.text_content()) == ("Reset", "w2 = 3")
    button.click()


@pytest.mark.weekly  # which cells have the button is tested every time
@browser
def test_another_draw_counts_the_seed_on_and_runs_the_cell(page):
    code = page.tab.locator("#cell-theory-007 pre[contenteditable]")
    page.tab.locator("#cell-theory-007 .run-draw").click()
    page.tab.wait_for_function("() => document.querySelector('#cell-theory-007 .run-output')")
    page.tab.wait_for_function("() => !document.body.dataset.running", timeout=180_000)
    assert "default_rng(4)" in code.text_content()
    cell = next(c for c in run_cells.code_cells(run_cells.read("theory")) if c["id"] == "theory-007")
    seen, expected = page.shown("theory-007", stored(cell))
    assert [kind for kind, _ in seen] == ["html"] and seen != expected
    page.tab.locator("#cell-theory-007 .run-reset").click()
    assert "default_rng(3)" in code.text_content()


@browser
def test_only_a_cell_with_a_seed_has_another_draw(page):
    hidden = page.tab.evaluate("[...document.querySelectorAll('.run-draw')].map((button) => button.hidden)")
    assert {True, False} == set(hidden)
    page.type("theory-005", "x = cloud(seed=7)")
    button = page.tab.locator("#cell-theory-005 .run-draw")
    assert button.is_visible()
    page.tab.locator("#cell-theory-005 .run-reset").click()
    assert not button.is_visible()


@browser
def test_a_new_picture_stands_above_its_caption(page):
    page.run("theory-007")
    order = page.tab.evaluate(
        "[...document.querySelector('#figure-2').children].map((part) => part.className || part.tagName)"
    )
    assert "run-output" in order[1] and order[-1] == "FIGCAPTION"


@browser
@pytest.mark.parametrize("chapter", ["theory", *(pytest.param(name, marks=pytest.mark.weekly) for name in OTHERS)])
def test_nothing_is_fetched_before_the_first_run(chromium, chapter):
    fetched = []
    with opened(chromium, SERVER, "", **PHONE) as (tab, problems):
        tab.on("request", lambda request: fetched.append(request.url))
        tab.goto(f"{SERVER}book/{chapter}.html", wait_until="networkidle")
        assert tab.locator(".run-run").count() > 3
        assert not [url for url in fetched if "pyodide" in url or url.endswith(".zip")]
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no page is wider than a phone"
        assert problems == []


@pytest.mark.weekly  # seldom touched, and it loads Python once more
@browser
def test_a_damaged_file_is_said_to_be_damaged(chromium, site):
    with opened(chromium, SERVER, "book/theory.html") as (tab, _):
        data = (VENDORED / "pyodide.asm.wasm").read_bytes()[:-1]
        tab.route("**/pyodide.asm.wasm", lambda route: route.fulfill(body=data, content_type="application/wasm"))
        page = Page(tab)
        page.run("theory-003")
        assert "pyodide.asm.wasm arrived damaged" in page.said("theory-003")


# ---------------------------------------------------------------------------------------------------- what is built


@pytest.mark.parametrize("chapter", run_cells.CHAPTERS)
def test_the_archive_holds_what_the_cells_import_and_no_torch(chapter):
    files = run_cells.needed(chapter)
    assert {"affscore/score.py", "affscore_book/kit/session.py"} <= set(files)
    with zipfile.ZipFile(BytesIO(run_cells.archive(files))) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert next(text for name, text in texts.items() if name.endswith("METADATA")).count("Name: affscore\n") == 1
    for name, text in texts.items():
        imported = run_cells.imported(ast.parse(text)) if name.endswith(".py") else []
        assert not {"torch", "matplotlib"} & {part.partition(".")[0] for part in imported}


def test_the_archive_holds_the_stored_results_that_a_cell_reads():
    with zipfile.ZipFile(BytesIO(run_cells.archive(run_cells.needed("redshift")))) as archive:
        stored = run_cells.BOOK / "data/redshift/study.json"
        assert archive.read("data/redshift/study.json") == stored.read_bytes()


def test_the_same_files_make_the_same_archive():
    files = run_cells.modules(["import affscore"])
    assert run_cells.archive(files) == run_cells.archive(files)


@pytest.mark.parametrize("source", ["import torch", "from affscore_book.kit.style import panels"])
def test_a_cell_that_imports_what_a_page_has_not_stops_the_build(source):
    with pytest.raises(ValueError, match="which a page does not have"):
        run_cells.modules([source])


def test_imports_in_functions_and_type_checks_are_ignored():
    """Imports inside of functions and for type checkers are ignored."""
    source = (
        "if TYPE_CHECKING:\n    import a\ndef f():\n    import b\ntry:\n    import c\nexcept E:\n    from d import e"
    )
    assert list(run_cells.imported(ast.parse(source))) == ["c", "d", "d.e"]


def test_the_vendored_files_are_those_that_their_list_names():
    folder = run_cells.BOOK / "_static/vendor/pyodide"
    listed = json.loads((folder / "files.json").read_text(encoding="utf-8"))
    from hashlib import sha256

    found = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes()).hexdigest()}
        for path in folder.iterdir()
        if path.name not in ("LICENSE", "files.json")
    }
    assert found == listed
    numpy = json.loads((folder / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]["numpy"]
    assert listed[numpy["file_name"]]["sha256"] == numpy["sha256"], "the wheel is the one of Pyodide's own lock file"
