"""The built book in a headless Chromium, from files and as from a server, with nothing else to be reached.

The tests are generic: every page, and every widget on it, is tested without being named here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from built_site import SITE
from every_widget import WIDGETS
from test_notebooks import SITE as PUBLISHED

pytestmark = pytest.mark.browser

LOST = "404.html"  # what a server shows for an unknown address; among files nothing leads there
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if "_static" not in path.parts and path != SITE / LOST
)
WIDGET_PAGES = [page for page in PAGES if 'class="affscore-widget"' in (SITE / page).read_text(encoding="utf-8")]
# A deck of slides is light, as a projector's screen is.
THEMED = [page for page in WIDGET_PAGES if not page.startswith("slides/")]
PHONE = {"viewport": {"width": 360, "height": 740}}


# Files are what fails first: no module and no font comes from one without care. The same as from a server is weekly.
FILES, SERVER = SITE.resolve().as_uri() + "/", f"https://book.invalid{urlsplit(PUBLISHED).path}"


@pytest.fixture(params=[FILES, pytest.param(SERVER, marks=pytest.mark.weekly)], ids=["file", "https"])
def base(request: pytest.FixtureRequest) -> str:
    """Where the book is opened from."""
    return request.param


def file_of(url: str, base: str) -> Path:
    """The file of the book at an address."""
    return SITE / urlsplit(url).path.removeprefix(urlsplit(base).path)


@contextmanager
def opened(browser: Any, base: str, page: str = "", **options: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page in a fresh browser context, and the list of all that went wrong on it so far.

    ``base`` is a folder's address, or :data:`SERVER`, for which the files of the book are the answers. Every request
    outside is blocked and listed, so is every failed one, every console error or warning, every uncaught exception.
    """
    problems: list[str] = []

    def guard(route: Any) -> None:
        url = route.request.url
        if not url.startswith(base):
            problems.append(f"request to {url}")
            route.abort()
        elif base != SERVER:
            route.continue_()
        elif (file := file_of(url, base)).is_file():
            route.fulfill(path=file)
        else:
            route.fulfill(status=404)

    context = browser.new_context(**options)
    context.set_default_timeout(60_000)  # a busy machine is slow, not wrong
    try:
        context.route("**/*", guard)
        tab = context.new_page()
        tab.on("console", lambda m: problems.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: problems.append(f"exception: {error}"))
        tab.on("response", lambda r: problems.append(f"{r.status} for {r.url}") if r.status >= 400 else None)
        tab.on("websocket", lambda socket: problems.append(f"socket to {socket.url}"))
        if page:
            tab.goto(base + page, wait_until="load")
            tab.wait_for_function("!document.querySelector('meta[http-equiv=refresh]')")  # such a page is left at once
            tab.wait_for_load_state("load")
        yield tab, problems
    finally:
        context.close()


def settle(tab: Any) -> None:
    """Wait until every widget of the page has started or given up, and nothing more is being loaded.

    A slide or a page that asks first shows its picture after the answer: its button is pressed.
    """
    tab.wait_for_function("[...document.querySelectorAll('.affscore-widget')].every(host => host.dataset.live)")
    tab.wait_for_load_state("networkidle")
    while (button := tab.locator(".asks .reveal, .predict-bar:not([hidden]) button").first).count():
        button.click()


def figures(tab: Any) -> list[Any]:
    """The live widgets of a page."""
    hosts = tab.locator(".affscore-widget")
    for index in range(hosts.count()):
        host = hosts.nth(index)
        assert host.get_attribute("data-live") == "true", f"{host.get_attribute('data-widget')} did not start"
        assert host.locator(".affscore-figure").get_attribute("data-ready") == "true"
    return hosts.locator(".affscore-figure").all()


def check_score(figure: Any) -> dict[str, Any]:
    """The figure's number is Python's for its state, in the attribute and in the text. Returns the state."""
    state = json.loads(figure.get_attribute("data-state"))
    name = figure.get_attribute("data-widget")
    expected = WIDGETS[name](**state).score()
    np.testing.assert_allclose(
        float(figure.get_attribute("data-score")), expected, atol=1e-6, err_msg=f"{name} {state}"
    )
    text = figure.locator(".affscore-readout").inner_text().replace("\u2212", "-")
    shown = ["undefined"] if np.isnan(expected) else [f"{expected:.3f}"[:-1], f"{100 * expected:.0f} of the 100"]
    assert any(number in text for number in shown)
    assert "score 0.000" not in text, "no score is 0: a small one is shown as < 0.001"
    return state


def picture(figure: Any) -> str:
    return figure.locator(".affscore-panels").inner_html()


# ------------------------------------------------------------------------------------------------- every page


def test_the_book_has_pages(site):
    assert "index.html" in PAGES and len(PAGES) > 3


# A page of each kind; where nothing moves, the others are weekly.
NAMES = {
    "intro", "api", "teaching", "first_signature", "blind_spots", "claims", "bibliography", "glossary", "full_scale",
    "audit_activations", "prf-prf", "search",
}  # fmt: skip
KINDS = [page for page in PAGES if Path(page).stem in NAMES]
KINDS += {Path(page).parent: page for page in PAGES if Path(page).parent.name not in ("", "book")}.values()
LOOKED_AT = [page if page in {*THEMED, *KINDS} else pytest.param(page, marks=pytest.mark.weekly) for page in PAGES]


@pytest.mark.parametrize("page", LOOKED_AT)
def test_page(chromium, base, page):
    """It asks no other host, reports no error, sets its formulas, is legible, folds, fits a phone and large letters.

    And its widgets answer the keyboard with Python's score, and read out the numbers that they draw.
    """
    with opened(chromium, base, page, color_scheme="dark") as (tab, problems):
        assert tab.evaluate(COVERING_NO_OUTPUT) == [], "a question stands where nothing answers it"
        assert not tab.locator(".predict-covered:visible").count(), "an answer is in sight before a choice"
        settle(tab)
        tab.evaluate("() => { for (const image of document.images) image.loading = 'eager'; }")
        tab.wait_for_function("[...document.images].every(image => image.complete)")
        assert raw_formulas(tab) == []
        if base == FILES:
            assert not tab.locator(".run-run").count(), "a button that runs a cell stands where none can run"
        if page in FOLDING_PAGES:
            check_folding(tab)
        if page in THEMED:
            assert tab.evaluate("document.documentElement.dataset.theme") == "dark", "as the reader's system asks"
            check_colours(tab, "dark")
            tab.evaluate("() => { document.documentElement.dataset.theme = 'light'; }")
            check_colours(tab, "light")
        for figure in figures(tab):
            check_keyboard(figure)
            check_reading(figure)
        for width in (640, 320, 360):  # a window of 1280 pixels at a zoom of 200 and of 400 %, and a phone
            tab.set_viewport_size({"width": width, "height": 740})
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        for figure in figures(tab):
            small = figure.evaluate(SMALL_TEXT)
            assert small == [], f"too small to read: {small}"
        assert problems == []


# The questions below which no output is covered until a reader has chosen.
COVERING_NO_OUTPUT = """() => {
  const order = [...document.querySelectorAll(".predict, .predict-covered .cell_output")];
  const lacking = order.filter((part, at) => part.matches(".predict") && !order[at + 1]?.matches(".cell_output"));
  return lacking.map((part) => part.dataset.predict);
}"""


def raw_formulas(tab: Any) -> list[str]:
    """Formulas that MathJax could not set, as they are shown then."""
    if not tab.locator(".math").count():
        return []
    tab.wait_for_function("window.MathJax?.startup?.promise")
    return tab.evaluate(
        """async () => {
            await MathJax.startup.promise;
            const wrong = (node) => !node.querySelector("mjx-container") || node.querySelector("mjx-merror");
            return [...document.querySelectorAll(".math")].filter(wrong).map((node) => node.textContent);
        }"""
    )


FOLDING_PAGES = [
    page for page in PAGES if re.search(r'class="(solution )?dropdown admonition', (SITE / page).read_text())
]


def check_folding(tab: Any) -> None:
    """Solutions and long proofs are folded and open by the keyboard."""
    # One box without a title stops the script that folds, and then nothing on the page folds.
    boxes = tab.locator(".dropdown.admonition")
    folded = tab.locator(".dropdown.admonition.toggle-hidden")
    assert boxes.count() == folded.count() > 0
    folded.first.locator("button.toggle-button").focus()
    tab.keyboard.press("Enter")
    assert folded.count() == boxes.count() - 1


# Texts of the pictures that are shown with letters less than 10 pixels high, at the size the picture has now.
SMALL_TEXT = """figure => [...figure.querySelectorAll("svg text")].filter(text => {
  const svg = text.ownerSVGElement;
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  return scale && text.textContent && parseFloat(getComputedStyle(text).fontSize) * scale < 10;
}).map(text => text.textContent)"""


def test_page_for_lost_readers_is_whole_at_any_depth(chromium):
    """The page that a server shows for an unknown address has its styles, and leads to the book, at any depth."""
    with opened(chromium, SERVER) as (tab, problems):
        lost = f"{SERVER}book/of/theorie.html"
        tab.route(lost, lambda route: route.fulfill(path=SITE / LOST))
        tab.goto(lost, wait_until="load")
        assert problems == []
        tab.locator("nav a", has_text="Theory").first.click()
        tab.wait_for_url(f"{SERVER}book/theory.html")


# ------------------------------------------------------------------------------------------------ every widget


def test_every_widget_is_in_the_book():
    texts = "".join((SITE / page).read_text(encoding="utf-8") for page in WIDGET_PAGES)
    assert [name for name in sorted(WIDGETS) if f'data-widget="{name}"' not in texts] == []


def check_keyboard(figure: Any) -> None:
    """Every control changes the state and the picture, keeps the focus, and the number stays Python's."""
    check_score(figure)
    for box in figure.locator("textarea").all():
        check_text_box(box, figure)
    for control in figure.locator("input[type=range], select").all():
        assert control.get_attribute("aria-label")
        assert control.evaluate("c => c.tabIndex") >= 0
        assert control.get_attribute("data-lm-suppress-shortcuts") == "true"
        slider = control.get_attribute("type") == "range"
        # Both ends first: that is where activations are dead and tails are thin.
        for key in ("End", "Home", "ArrowRight", "ArrowRight") if slider else ("End", "Home", "ArrowDown"):
            before, drawn = check_score(figure), picture(figure)
            control.press(key)
            if key.startswith("Arrow"):
                state = check_score(figure)
                assert state != before and picture(figure) != drawn, f"{key} on {control} changed nothing"
                changed = {trait for trait in state if state[trait] != before[trait]}
                assert control.get_attribute("data-trait") in changed
        check_score(figure)
        assert control.evaluate("c => c === document.activeElement"), "the control lost the focus"
        if slider:
            assert control.get_attribute("aria-valuetext")
    assert figure.locator("[aria-live=polite]").count() == 1


def check_reading(figure: Any) -> None:
    """The arrow keys and the cursor read out points that are drawn, with their numbers, and Escape ends it."""
    reading = figure.locator(".affscore-reading")
    invitation = reading.inner_text()
    assert figure.locator(".affscore-panels [tabindex='0']").count() > 0
    for panel in figure.locator(".affscore-panels svg[role=slider]").all():
        if not panel.is_visible():
            continue
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "End", "PageDown"):
            panel.press(key)
            check_ring(panel, reading.inner_text())
        panel.press("Escape")
        assert reading.inner_text() == invitation
        panel.hover()
        check_ring(panel, reading.inner_text())
        panel.page.mouse.move(0, 0)
        panel.evaluate("panel => panel.blur()")
        assert reading.inner_text() == invitation


def test_a_finger_reads_a_picture_out(chromium):
    """A tap on a picture reads out its numbers, which stay in sight."""
    with opened(chromium, FILES, WIDGET_PAGES[0], has_touch=True, **PHONE) as (tab, problems):
        settle(tab)
        panel = tab.locator(".affscore-panels svg[role=slider]").first
        panel.tap()
        reading = tab.locator(".affscore-reading").first
        check_ring(panel, reading.inner_text())
        box = reading.bounding_box()
        assert box["y"] > 0 and box["y"] + box["height"] <= PHONE["viewport"]["height"]
        assert problems == []


def check_ring(panel: Any, text: str) -> None:
    """The ring is around a point that is drawn, and the text ends with its number."""
    assert panel.get_attribute("aria-valuetext") == text
    ring = panel.locator(".reading-ring")
    assert ring.get_attribute("visibility") == "visible"
    if ring.get_attribute("data-drawn") == "here":
        assert panel.evaluate(DRAWN), f"nothing is drawn where {text!r} is read"
        shown = re.fullmatch(r".* (-?[\d.]+)", text.replace("\u2212", "-"))
        if shown and not re.search("[<>]", text):
            digits = len(shown[1].partition(".")[2])
            np.testing.assert_allclose(float(shown[1]), float(ring.get_attribute("data-y")), atol=0.51 * 10**-digits)


# Whether a circle or a corner of a line is where the ring is, to a tenth of a pixel; a cross is around it.
DRAWN = """panel => {
  const ring = panel.querySelector(".reading-ring");
  const [u, v] = ["cx", "cy"].map(name => Number(ring.getAttribute(name)));
  const near = (x, y, reach) => Math.abs(x - u) < reach && Math.abs(y - v) < reach;
  const circles = [...panel.querySelectorAll("circle:not(.reading-ring)")];
  return circles.some(dot => near(Number(dot.getAttribute("cx")), Number(dot.getAttribute("cy")), 0.11))
    || [...panel.querySelectorAll("path")].some(path => {
      const corners = [...path.getAttribute("d")?.matchAll(/[ML](-?[\\d.]+) (-?[\\d.]+)/g) ?? []];
      return corners.some(([, x, y]) => near(Number(x), Number(y), 0.11))
        || [-1, 1].every(side => corners.some(([, x, y]) => near(Number(x) - 4 * side, Number(y) - 4 * side, 1.3)));
    });
}"""


def check_text_box(box: Any, figure: Any) -> None:
    """What is typed is redrawn with Python's number, nonsense has none, and Tab leaves the box."""
    assert box.get_attribute("aria-label") and box.get_attribute("data-lm-suppress-shortcuts") == "true"
    trait, start = box.get_attribute("data-trait"), box.input_value()
    before, drawn = check_score(figure), picture(figure)
    box.press("Control+End")
    box.press_sequentially(" 7")
    state = check_score(figure)
    assert state == before | {trait: f"{start} 7"} and picture(figure) != drawn
    box.press("Control+Home")
    box.press_sequentially("? ")
    check_score(figure)
    assert figure.get_attribute("data-score") == "NaN" and "'?'" in figure.locator(".affscore-readout").inner_text()
    assert box.input_value() == f"? {start} 7"
    box.fill(start)
    assert check_score(figure) == before and picture(figure) == drawn
    box.press("Tab")
    assert not box.evaluate("c => c === document.activeElement"), "Tab did not leave the box of text"


def check_colours(tab: Any, theme: str) -> None:
    """Contrast with the paper as WCAG asks, 4.5 for text, 3 for lines: axe does not look into pictures."""
    for figure in figures(tab):
        seen = figure.evaluate(COLOURS)
        assert (luminance(seen["paper"]) > 0.5) == (theme == "light")
        for kind, least in (("text", 4.5), ("line", 3)):
            for what, colour in seen[kind]:
                ratio = contrast(colour, seen["paper"])
                assert ratio >= least, f"{kind} {what!r} in {colour} has contrast {ratio:.1f}"


COLOURS = """figure => {
  const style = node => getComputedStyle(node);
  const nodes = selector => [...figure.querySelectorAll(selector)];
  return {
    paper: style(figure.querySelector(".paper")).fill,
    text: [...nodes("svg text").map(t => [t.textContent, style(t).fill]),
           ...nodes("label span, output, .affscore-readout *").map(t => [t.textContent, style(t).color])],
    line: nodes("svg path").filter(p => style(p).opacity === "1").map(p => [p.getAttribute("class"), style(p).stroke]),
  };
}"""


def luminance(colour: str) -> float:
    """Relative luminance of "rgb(r, g, b)"."""
    channels = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


# ------------------------------------------------------------------------------------------------ the fallback


def check_fallbacks(tab: Any) -> None:
    hosts = tab.locator(".affscore-widget")
    assert hosts.count() > 0
    for host in hosts.all():
        assert host.locator("input").count() == 0, "this is the live widget, not the picture"
        for svg in host.locator("svg").all():
            assert svg.bounding_box()["width"] > 200
        assert re.search(r"\w:? \d+\.\d|\d+ of", host.locator(".affscore-readout").inner_text())


# One page: what is tested is the host of all widgets. Every page weekly.
HOSTS = [page if page == WIDGET_PAGES[0] else pytest.param(page, marks=pytest.mark.weekly) for page in WIDGET_PAGES]


@pytest.mark.parametrize("page", HOSTS)
def test_the_picture_is_shown_without_javascript(chromium, base, page):
    with opened(chromium, base, page, java_script_enabled=False, **PHONE) as (tab, problems):
        check_fallbacks(tab)
        assert problems == []


@pytest.mark.parametrize("page", HOSTS)
def test_the_picture_comes_back_where_a_widget_fails(chromium, page):
    with opened(chromium, SERVER) as (tab, problems):

        def sabotage(route: Any) -> None:
            body = file_of(route.request.url, SERVER).read_text(encoding="utf-8")
            assert "export default { render };" in body
            broken = 'export default { render({ el }) { el.append("half a widget"); throw new Error("broken"); } };'
            route.fulfill(body=body.replace("export default { render };", broken.replace('"', "'")))

        tab.route("**/affscore_widget_*.js*", sabotage)
        tab.goto(SERVER + page, wait_until="load")
        settle(tab)
        check_fallbacks(tab)
        assert "half a widget" not in tab.content()
        assert all("could not start; its picture is shown instead" in problem for problem in problems) and problems
