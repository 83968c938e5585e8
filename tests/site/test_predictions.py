"""Predictions on the built pages: what gives an answer away is covered until a reader has chosen."""

from __future__ import annotations

from typing import Any

import pytest
from built_site import SITE
from test_browser import FILES, PAGES, PHONE, opened

pytestmark = pytest.mark.browser

ASKING = [page for page in PAGES if 'class="predict"' in (SITE / page).read_text(encoding="utf-8")]
PAGE, QUESTION = "book/decade.html", ".predict[data-predict='predict-rate']"


def shows(tab: Any, selector: str) -> bool:
    """Whether the first element with this selector is visible, and has a height."""
    return tab.locator(selector).first.is_visible()


def bar(tab: Any) -> Any:
    """The buttons below the question."""
    return tab.locator(f"{QUESTION} + .predict-bar button")


def test_a_choice_shows_what_follows(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        assert not shows(tab, "#figure-3 img") and not shows(tab, "#figure-3 figcaption p")
        tab.locator(f"{QUESTION} button").first.click()
        assert shows(tab, "#figure-3 img") and shows(tab, "#figure-3 figcaption p") and not bar(tab).first.is_visible()


def test_what_comes_before_and_the_next_section_are_not_covered(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        assert shows(tab, "#figure-2 img") and shows(tab, "#do-skips-make-the-zigzag h2")
        assert shows(tab, "#figure-4 img")


def test_choosing_again_covers_it_again(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        tab.locator(f"{QUESTION} button").first.click()
        tab.locator(f"{QUESTION} .predict-again").click()
        assert not shows(tab, "#figure-3 img")


def test_a_kept_choice_leaves_it_uncovered(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        tab.locator(f"{QUESTION} button").first.click()
        tab.reload(wait_until="load")
        assert shows(tab, "#figure-3 img")


def test_it_can_be_shown_without_a_choice_by_the_keyboard(chromium):
    """The answer stays closed, the other questions cover what follows them, and the keyboard goes on below."""
    with opened(chromium, FILES, PAGE, **PHONE) as (tab, _):
        bar(tab).first.focus()
        tab.keyboard.press("Enter")
        assert shows(tab, "#figure-3 img") and not shows(tab, f"{QUESTION} .predict-answer")
        assert tab.evaluate("document.activeElement.classList.contains('cell')")
        assert tab.locator(".predict-covered").count() > 0


def test_all_pages_can_be_shown_for_good(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        bar(tab).last.click()
        assert tab.locator(".predict-covered").count() == 0
        tab.goto(f"{FILES}{ASKING[0]}", wait_until="load")
        assert tab.locator(".predict").count() > 0 == tab.locator(".predict-covered").count()


def test_a_link_to_a_covered_figure_shows_it(chromium):
    with opened(chromium, FILES, f"{PAGE}#figure-3") as (tab, _):
        assert shows(tab, "#figure-3 img")
        assert 0 <= tab.locator("#figure-3").bounding_box()["y"] < 300


def test_paper_shows_everything(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        tab.emulate_media(media="print")
        assert shows(tab, "#figure-3 img") and not shows(tab, ".predict-bar")


def test_nothing_is_covered_without_javascript(chromium):
    with opened(chromium, FILES, PAGE, java_script_enabled=False) as (tab, _):
        assert shows(tab, "#figure-3 img") and shows(tab, f"{QUESTION} summary")
