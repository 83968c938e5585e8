"""The punctuation after a formula stays on the formula's line."""

import re

import whole_formulas
from docutils import nodes


def kept(*parts: nodes.Node) -> nodes.paragraph:
    paragraph = nodes.paragraph("", "", *parts)
    whole_formulas.keep_whole(paragraph)
    return paragraph


def test_punctuation_goes_with_its_formula():
    found = kept(nodes.Text("Let "), nodes.math("", "x"), nodes.Text(", then ("), nodes.math("", "y"), nodes.Text(")."))
    wholes = [part.astext() for part in found.children if isinstance(part, nodes.inline)]
    assert wholes == ["x,", "y)."]
    parts = nodes.Text("Let "), nodes.math("", "x"), nodes.Text(", then "), nodes.math("", "y"), nodes.Text(" is")
    assert kept(*parts).astext() == "Let x, then y is", "no text is lost or moved"
    assert isinstance(kept(nodes.math("", "x"), nodes.Text(" is small."))[0], nodes.math), "a word is left alone"


def test_no_formula_of_the_book_is_parted_from_its_punctuation(site):
    """Slides are pages of their own, written by slides.py, with lines that are short."""
    paths = [path for path in site.rglob("*.html") if path.parent.name != "slides"]
    pages = {path.name: path.read_text(encoding="utf-8") for path in paths}
    assert sum(text.count('class="whole-formula"') for text in pages.values()) > 100
    parted = {name: re.findall(r"\\\)</span>[.,;:]+(?![.,;:]|</span>).{20}", text) for name, text in pages.items()}
    assert {name: found for name, found in parted.items() if found} == {}
