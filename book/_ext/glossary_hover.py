"""Sphinx extension: a link to a word of the glossary says the first sentence of its definition on hover."""

from __future__ import annotations

import functools
import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

GLOSSARY = "book/glossary"


def first_sentences(glossary: nodes.Element) -> dict[str, str]:
    """Maps the address of each word, "term-NAME", to the first sentence of its definition.

    Raises ValueError where that sentence has a formula, which no hover can show.
    """
    sentences = {}
    for item in glossary.findall(nodes.definition_list_item):
        paragraph = item.next_node(nodes.paragraph)
        # A formula ends the text, so that what follows it is not taken for its sentence.
        text = "".join("\\" if isinstance(part, nodes.math) else part.astext() for part in paragraph.children)
        sentence = re.match(r"[^\\]*?\.(?=\s|$)", text)
        for term in item.findall(nodes.term):
            if sentence is None:
                raise ValueError(
                    f"the first sentence on {term.astext()!r} should have no formula and end with a full stop."
                )
            sentences |= dict.fromkeys(term["ids"], " ".join(sentence[0].split()))
    return sentences


@functools.cache
def of_book(env: BuildEnvironment) -> dict[str, str]:
    try:
        return first_sentences(env.get_doctree(GLOSSARY))
    except ValueError as error:
        raise ExtensionError(f"{GLOSSARY}: {error}") from error


def add_to_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """The writer shows a reference's ``reftitle`` on hover."""
    for reference in doctree.findall(nodes.reference):
        address = reference.get("refuri", "").rpartition("#")[2]
        if address.startswith("term-"):
            reference["reftitle"] = of_book(app.env)[address]


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", add_to_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
