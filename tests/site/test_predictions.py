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
    """Whether the first element with this selector is visible."""
    return tab.locator(selector).first.is_visible()


@pytest.mark.parametrize("page", ASKING)
def test_every_question_covers_what_answers_it(chromium, page):
    """A question below which nothing is covered stands at the wrong place, or its answer is no output."""
    with opened(chromium, FILES, page) as (tab, problems):
        asked, covering = tab.evaluate(
            """() => {
                const order = [...document.querySelectorAll(".predict, .predict-covered")];
                const questions = order.filter((part) => part.matches(".predict"));
                const covering = order.filter((part, at) =>
                    part.matches(".predict") && order[at + 1]?.matches(".predict-covered"));
                return [questions, covering].map((parts) => parts.map((part) => part.dataset.predict));
            }"""
        )
        assert asked == covering and asked
        assert problems == []


def test_a_choice_uncovers_the_figure(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        assert not shows(tab, "#figure-3 img") and not shows(tab, "#figure-3 figcaption p")
        height = tab.locator("#figure-3").bounding_box()["height"]
        tab.locator(f"{QUESTION} button").first.click()
        assert shows(tab, "#figure-3 img") and shows(tab, "#figure-3 figcaption p")
        assert tab.locator("#figure-3").bounding_box()["height"] == pytest.approx(height, abs=3)


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
    """The answer stays closed, and the keyboard goes on at the figure."""
    with opened(chromium, FILES, PAGE, **PHONE) as (tab, _):
        tab.locator(f"{QUESTION} ~ .cell .predict-show").first.focus()
        tab.keyboard.press("Enter")
        assert shows(tab, "#figure-3 img") and not shows(tab, f"{QUESTION} .predict-answer")
        assert tab.evaluate("document.activeElement.id") == "figure-3"


def test_only_what_is_below_this_question_is_shown(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        covered = tab.locator(".predict-covered").count()
        below = tab.locator(f"{QUESTION} ~ .cell .predict-covered").count()
        tab.locator(f"{QUESTION} button").first.click()
        assert tab.locator(".predict-covered").count() == covered - below > 0


def test_a_link_to_a_covered_figure_shows_it(chromium):
    with opened(chromium, FILES, f"{PAGE}#figure-3") as (tab, _):
        assert shows(tab, "#figure-3 img")


def test_paper_shows_everything(chromium):
    with opened(chromium, FILES, PAGE) as (tab, _):
        tab.emulate_media(media="print")
        assert shows(tab, "#figure-3 img") and not shows(tab, ".predict-show")


def test_nothing_is_covered_without_javascript(chromium):
    with opened(chromium, FILES, PAGE, java_script_enabled=False) as (tab, _):
        assert shows(tab, "#figure-3 img") and shows(tab, f"{QUESTION} summary")
