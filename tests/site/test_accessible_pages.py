"""Pages for readers with a keyboard, a screen reader or no wish for motion, as WCAG 2.2 AA asks.

CI looks at a page of each kind; AFFSCORE_WEEKLY=1 looks at them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import accessible_pages
import pytest
from built_site import SITE
from test_browser import KINDS, PAGES, contrast, settle

pytestmark = pytest.mark.browser

AXE = Path(__file__).resolve().parents[2] / ".ci" / "node_modules" / "axe-core" / "axe.min.js"
LOOKED_AT = PAGES if os.environ.get("AFFSCORE_WEEKLY") else KINDS


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    """One tab for all pages, of a reader who asks for no motion."""
    context = chromium.new_context(reduced_motion="reduce", viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


def visit(tab: Any, page: str) -> None:
    tab.goto((SITE / page).resolve().as_uri(), wait_until="load")
    settle(tab)
    tab.evaluate("async () => { await window.MathJax?.startup?.promise; }")


# What is folded is opened, since axe sees only what is shown. The shadows that say that code scrolls go: axe does not
# know the contrast of letters on a gradient.
OPEN = """async () => {
  for (const box of document.querySelectorAll("details")) box.open = true;
  for (const box of document.querySelectorAll(".toggle-hidden")) box.classList.remove("toggle-hidden");
  const plain = document.createElement("style");
  plain.textContent = "div.highlight pre, div.math mjx-container { background: var(--paper) !important; }";
  document.head.append(plain);
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
}"""

# Only the colours differ between the themes. What MathJax draws has the colour of the text, and thousands of elements.
VIOLATIONS = """async () => {
  const found = [];
  for (const theme of ["light", "dark"]) {
    document.documentElement.dataset.theme = document.documentElement.dataset.mode = theme;
    const runOnly = theme === "light"
      ? ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
      : { type: "rule", values: ["color-contrast"] };
    const { violations } = await axe.run({ exclude: ["mjx-math"] }, { runOnly, resultTypes: ["violations"] });
    for (const { id, nodes } of violations) for (const { html } of nodes) found.push(`${theme}: ${id}: ${html}`);
  }
  return found;
}"""


def violations(tab: Any) -> list[str]:
    """What axe finds in the page that is open, in both themes, with everything unfolded."""
    tab.evaluate(OPEN)
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    return tab.evaluate(VIOLATIONS)


@pytest.mark.parametrize("page", LOOKED_AT)
def test_axe_finds_nothing_and_formulas_are_read_aloud(tab, page):
    visit(tab, page)
    assert violations(tab) == []
    formulas = tab.evaluate(
        """[...document.querySelectorAll("mjx-container")].map(formula => [
            formula.tabIndex >= 0, formula.scrollWidth > formula.clientWidth && formula.matches("div.math *"),
            formula.querySelector("mjx-assistive-mml math") !== null])"""
    )
    # The tab key stops at a formula only where it scrolls.
    assert all(stops == scrolls and spoken for stops, scrolls, spoken in formulas)
    assert sum(stops for stops, *_ in formulas) <= len(formulas) / 20


def test_the_themes_labels_are_mended():
    page = '<button class="btn search-button-field" title="Search" aria-label="Search">Search Ctrl+K</button>'
    page += '<summary aria-label="Toggle hidden content">Show</summary><nav aria-label="Main"></nav>'
    assert accessible_pages.mended(page).count("aria-label") == 1
    assert 'aria-label="Main"' in accessible_pages.mended(page)


# ------------------------------------------------------------------------------------------------ the keyboard


# The outline of every control that is shown, while it has the focus, and the colour behind it.
OUTLINES = """() => {
  const paper = getComputedStyle(document.body).backgroundColor;
  const controls = "a[href], button, summary, input, select, textarea, [tabindex='0']";
  return [...document.querySelectorAll(controls)].filter(node => node.checkVisibility({ visibilityProperty: true }))
    .map(node => {
      node.focus({ preventScroll: true });
      const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(node);
      return [node.outerHTML.slice(0, 200), document.activeElement === node, outlineStyle, parseFloat(outlineWidth),
        outlineColor, paper];
    });
}"""


@pytest.mark.parametrize("page", [page for page in KINDS if Path(page).stem in ("first_signature", "search")])
def test_the_control_that_has_the_focus_is_seen(tab, page):
    visit(tab, page)
    for theme in ("light", "dark"):
        tab.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        tab.keyboard.press("Tab")  # from here on a focus is the keyboard's
        outlines = tab.evaluate(OUTLINES)
        assert len(outlines) > 20
        for html, focused, style, width, colour, paper in outlines:
            assert focused and style == "solid" and width >= 2 and contrast(colour, paper) >= 3, (theme, html)


# ------------------------------------------------------------------------------------------------------ motion


MOVING = """() => [...document.querySelectorAll("*")].filter(node => {
  const { transitionDuration, animationName, scrollBehavior } = getComputedStyle(node);
  const moves = transitionDuration.split(", ").some(time => parseFloat(time) > 0) || animationName !== "none";
  return moves || scrollBehavior === "smooth";
}).map(node => node.outerHTML.slice(0, 100))"""


def test_nothing_moves_for_who_asks_for_no_motion(tab):
    visit(tab, "book/first_signature.html")
    assert tab.evaluate(MOVING) == []
    tab.emulate_media(reduced_motion="no-preference")
    try:
        assert tab.evaluate(MOVING) != [], "the check can fail"
    finally:
        tab.emulate_media(reduced_motion="reduce")


# ------------------------------------------------------------------------------------------------------- paper


def test_a_dark_page_is_printed_light_and_stays_dark(tab):
    visit(tab, "search.html")
    tab.evaluate(
        """() => {
            document.documentElement.dataset.theme = "dark";
            addEventListener("beforeprint", () => { window.printed = document.documentElement.dataset.theme; });
        }"""
    )
    tab.pdf()
    assert tab.evaluate("[window.printed, document.documentElement.dataset.theme]") == ["light", "dark"]
