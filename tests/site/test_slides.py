"""Figures out of the notebooks, in the gallery and on slides; links that lead somewhere, keys that turn the slides."""

import base64
import io
import json
import re

import gallery
import pytest
from PIL import Image
from test_notebooks import ROOT, output, planted

import slides

DECKS = sorted(path.stem for path in (ROOT / "book" / "slides").glob("*.md"))


@pytest.fixture
def chapter(tmp_path):
    """Writes ``part.ipynb``, whose two cells have stored a picture with this alt text and a line; returns them."""

    def write(alt: str = 'A "red" square', picture: bool = True) -> list[dict]:
        png = io.BytesIO()
        Image.new("RGB", (6, 4), "red").save(png, "png")
        pictures = [
            output({"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": "<Figure>"})
        ] * picture
        stored = {
            "outputs": [*pictures, output({"text/plain": "1 < 2"})], "metadata": {"mystnb": {"image": {"alt": alt}}}
        }  # fmt: skip
        cells = [planted(source=source, **stored)["cells"][1] for source in ("plot(x)", "plot(y)")]
        (tmp_path / "part.ipynb").write_text(json.dumps({"cells": cells}))
        return cells

    return write


def test_cell_is_found_by_its_text_and_shown(chapter):
    """One cell is found by its text, and its outputs become pictures and text."""
    cells = chapter()
    assert slides.cell_with({"cells": cells}, "plot(x)") is cells[0]
    for text in ("plot(", "draw("):
        with pytest.raises(ValueError, match="there should be one"):
            slides.cell_with({"cells": cells}, text)
    picture, text = slides.shown(cells[0])
    assert 'src="data:image/png;base64,' in picture and 'alt="A &quot;red&quot; square"' in picture
    assert "1 &lt; 2" in text


def test_gallery_picture_has_pixels_size_and_alt_text(chapter, tmp_path):
    """A picture of the gallery has the pixels, the size and the alt text of the stored one."""
    chapter()
    found = gallery.stored_picture("part plot(x", tmp_path)
    assert 'alt="A &quot;red&quot; square"' in found and 'width="6" height="4"' in found
    data = re.search(r"base64,([^\"]+)", found)[1]
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        assert image.size == (6, 4) and image.convert("RGB").getpixel((3, 2)) == (255, 0, 0)
    for planting in ({"alt": ""}, {"picture": False}):
        chapter(**planting)
        with pytest.raises(ValueError, match="no stored picture, or no alt text"):
            gallery.stored_picture("part plot(x", tmp_path)
    with pytest.raises(ValueError, match="entry 2 has"):
        gallery.entries("- {picture: a b, title: c, to: d, text: e}\n- {picture: a b, title: c, to: d}")


def test_a_deck_has_slides_notes_and_formulas(tmp_path):
    found = list(slides.slides("# A < B\n\n> Say it.\n\n---\n\n## C\n\n$a < b$ and\n\n$$c$$", tmp_path))
    assert len(found) == 2 and "<aside>" in found[0] and r"\(a &lt; b\)" in found[1] and r"\[c\]" in found[1]
    assert "<title>A &lt; B</title>" in slides.deck("# A < B", "<title>[title]</title>", tmp_path)


@pytest.mark.parametrize("deck", DECKS)
def test_every_link_and_file_of_a_deck_is_there(site, deck):
    page = (site / "slides" / f"{deck}.html").read_text(encoding="utf-8")
    assert f'href="../slides/{deck}.html"' in (site / "book" / "teaching.html").read_text(encoding="utf-8")
    links = [link for link in re.findall(r'(?:href|src)="([^"]+)"', page) if not link.startswith("data:")]
    assert len(links) > 4 and page.count("<figure>") > 5 and 'alt=""' not in page
    for link in links:
        file, _, anchor = link.partition("#")
        path = (site / "slides" / file).resolve()
        assert path.is_file(), link
        assert not anchor or f'id="{anchor}"' in path.read_text(encoding="utf-8"), link
    with_figures = [part for part in page.split("<section ")[1:] if 'class="figures"' in part]
    assert with_figures and all('class="source"' in part for part in with_figures)
    assert "bibliography.html#bouniot2025" in page


@pytest.mark.parametrize("deck", DECKS)
def test_slides_have_notes_that_fill_a_double_lesson(deck):
    """Every slide has notes, and the minutes fill a double lesson."""
    parts = re.split(r"^---$", (ROOT / "book" / "slides" / f"{deck}.md").read_text(), flags=re.MULTILINE)
    notes = [re.findall(r"^> (?:\*\*(\d+) min\.\*\* )?\S", part, flags=re.MULTILINE) for part in parts]
    assert all(note and note[0] for note in notes), [part.strip()[:40] for part in parts]
    assert sum(int(note[0]) for note in notes) == 90


TYPE = """slide => [...slide.querySelectorAll("svg text")].filter((text) => text.textContent.trim()).map((text) =>
    parseFloat(getComputedStyle(text).fontSize) * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b))"""


FITS = "[...document.querySelectorAll('section')].every((slide) => slide.offsetHeight <= innerHeight + 1)"


@pytest.mark.browser
@pytest.mark.parametrize("deck", DECKS)
def test_moving_pictures_are_legible_and_fit_a_projector(site, chromium, deck):
    """Moving pictures can be read from the last row and fit on an old projector."""
    page = chromium.new_page(viewport={"width": 1920, "height": 1080})
    page.goto((site / "slides" / f"{deck}.html").as_uri())
    for selector in ("svg", "svg text"):
        page.wait_for_selector(f".affscore-widget {selector}", state="attached")
    moving = page.locator("section:has(.affscore-widget)").element_handles()
    page.wait_for_function("slide => slide.querySelector('.figures').style.zoom", arg=moving[-1])
    sizes = [size for slide in moving for size in slide.evaluate(TYPE)]
    assert sizes and min(sizes) >= 20
    for width, height in ((1920, 1080), (1400, 1050), (1024, 768)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(FITS, timeout=5000)
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("deck", DECKS)
def test_keys_turn_slides_and_sliders_keep_theirs(site, chromium, deck):
    """Keys turn the slides, a question comes before its picture, and a slider keeps its keys."""
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((site / "slides" / f"{deck}.html").as_uri())
    page.wait_for_selector(".affscore-widget svg, .affscore-widget canvas", state="attached")
    count = page.locator("section").count()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.hash === '#3'")
    page.keyboard.press("n")
    assert page.locator("aside").first.evaluate("note => getComputedStyle(note).display") == "block"
    page.keyboard.press("n")

    slide = page.locator("section:has(.reveal)").first
    number = slide.get_attribute("id")
    slide.scroll_into_view_if_needed()
    page.wait_for_function(f"Math.abs(document.getElementById('{number}').getBoundingClientRect().top) < 2")
    assert not slide.locator(".figures").is_visible()
    page.keyboard.press("ArrowRight")
    assert slide.locator(".figures").is_visible()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"location.hash === '#{int(number) + 1}'")

    page.keyboard.press("End")
    page.wait_for_function(f"location.hash === '#{count}'")
    page.evaluate("for (const button of document.querySelectorAll('.asks .reveal')) button.click()")
    page.locator("input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("location.hash") == f"#{count}"
    page.keyboard.press("Home")  # the slider's own
    page.keyboard.press("PageUp")
    page.wait_for_function(f"location.hash !== '#{count}'")
    assert page.evaluate(FITS) and errors == []
    wide = "[...document.querySelectorAll('pre, mjx-container')].filter((e) => e.scrollWidth > e.clientWidth + 1)"
    assert page.evaluate(f"{wide}.map((e) => e.closest('section').id)") == []
    page.close()
