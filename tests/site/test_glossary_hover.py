"""A link to a word of the glossary says what the word means."""

import html
import re

import glossary_hover
import pytest
from docutils import nodes
from grids import each
from test_notebooks import CHAPTERS


def glossary(*parts: nodes.Node) -> nodes.Element:
    """A glossary of one entry that has two names."""
    terms = [nodes.term("", name, ids=[f"term-{name}"]) for name in ("cloud", "point-cloud")]
    text = nodes.paragraph("", "", *parts)
    entry = nodes.definition_list_item("", *terms, nodes.definition("", text, nodes.paragraph("", "More.")))
    return nodes.definition_list("", entry)


FORMULA = nodes.math("", r"\{x_1. x_2\}")


def test_the_first_sentence_of_a_definition():
    found = glossary_hover.first_sentences(glossary(nodes.Text("A set\n  of 1.5 points. Written "), FORMULA))
    assert found == dict.fromkeys(["term-cloud", "term-point-cloud"], "A set of 1.5 points.")


@each("parts", [(nodes.Text("A set "), FORMULA, nodes.Text(" of points.")), (nodes.Text("A set"),)])
def test_a_first_sentence_that_no_hover_can_show_is_an_error(parts):
    with pytest.raises(ValueError, match="'cloud' should have no formula and end with a full stop"):
        glossary_hover.first_sentences(glossary(*parts))


@each("page", CHAPTERS)
def test_every_chapter_has_words_with_their_meaning(site, page):
    links = re.findall(r'<a [^>]*href="glossary.html#term-[^>]*>', (site / f"{page}.html").read_text(encoding="utf-8"))
    titles = [re.search(r'title="([^"]*)"', link) for link in links]
    assert len(links) >= 3 and all(title and html.unescape(title[1]).endswith(".") for title in titles)
