"""Sphinx extension: a full stop, comma or colon after a formula stays on its line.

A browser may break a line before and after a formula, since MathJax sets it as a box. So a formula and the punctuation
that follows it go into a ``<span class="whole-formula">``, in which the style sheet allows no break.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

PUNCTUATION = re.compile(r"[.,;:!?)\]’”\"'-]+")


def keep_whole(doctree: nodes.Element) -> None:
    """Puts each inline formula of ``doctree`` into one node with the punctuation right after it."""
    for formula in list(doctree.findall(nodes.math)):
        rest = formula.next_node(siblings=True, descend=False)
        if not isinstance(rest, nodes.Text) or (found := PUNCTUATION.match(rest)) is None:
            continue
        parent, at = formula.parent, formula.parent.index(formula)
        whole = nodes.inline("", "", formula, nodes.Text(found[0]), classes=["whole-formula"])
        parent[at : at + 2] = [whole, nodes.Text(rest[found.end() :])]


def on_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format == "html":
        keep_whole(doctree)


def setup(app: Sphinx) -> dict:
    app.connect("doctree-resolved", on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
