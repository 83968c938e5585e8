"""Sphinx extension: mend mistakes of the theme that hinder readers with a keyboard or a screen reader.

After the build, in the text of every page. ``affscore_book.css`` does the rest: focus that is seen, colours with
contrast, no motion for who asks for none; MathJax's menu is off in ``_config.yml``, since it makes every formula a stop
of the Tab key. tests/site/test_accessible_pages.py asks axe.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

MENDED = {
    # A label that hides the words a control shows, from who speaks to it: "Search Ctrl+K", "Show code cell source".
    r'(<summary|<button class="[^"]*search-button-field[^"]*" title="Search") aria-label="[^"]*"': r"\1",
    # The icons' titles are words that the button's label, "Color mode", does not have.
    r'(<i class="theme-switch [^>]*?) title="[^"]*"': r"\1",
    # A list whose items are no list items; a role that is no longer one.
    r'(<div) role="list"( class="citation-list")': r"\1\2",
    r'(<div class="citation"[^>]*?) role="doc-biblioentry"': r"\1",
}


def mended(page: str) -> str:
    """The HTML of a page without the theme's mistakes."""
    for wrong, right in MENDED.items():
        page = re.sub(wrong, right, page)
    return page


def mend(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if (better := mended(text)) != text:
            path.write_text(better, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.add_js_file("accessible_pages.js", loading_method="defer")
    app.connect("build-finished", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
