"""The panels of a drawing of the book, parsed, for tests that read what stands in them."""

from __future__ import annotations

from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def drawn(drawing) -> list[ElementTree.Element]:
    """The panels of a drawing, in their order."""
    return list(ElementTree.fromstring(drawing._repr_html_()).iter(f"{SVG}svg"))


def check_panels(drawing, panels: int, words: str = "") -> None:
    """A drawing has so many panels, and each says in a sentence what it shows."""
    found = [panel.get("aria-label") for panel in drawn(drawing)]
    assert len(found) == panels and all(len(text) > 20 and words in text for text in found), found
