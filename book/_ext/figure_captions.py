"""Sphinx extension: a Markdown cell ``**Figure 3.** ...`` right below a picture becomes the caption of that picture.

The number is written in the notebook, where Colab and JupyterLab show it. The page puts picture and caption into one
``<figure>``, which has the address ``#figure-3``. A caption that follows no picture, and a number that is not the next
one of its page, are warnings, which end the build.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

NUMBER = re.compile(r"Figure (\d+)\.")


class numbered_figure(nodes.General, nodes.Element):
    """A picture of a code cell, with its caption."""


class figure_caption(nodes.Part, nodes.TextElement):
    """The caption of a :class:`numbered_figure`."""


def number_of(paragraph: nodes.Element) -> int | None:
    """The 3 of a paragraph that begins with ``**Figure 3.**``, None for any other."""
    first = next((part for part in paragraph.children if part.astext()), None)  # MyST puts an empty text before bold
    found = NUMBER.fullmatch(first.astext()) if isinstance(first, nodes.strong) else None
    return int(found[1]) if found else None


def outputs_before(paragraph: nodes.Element) -> nodes.Element | None:
    """What the code cell right above a paragraph shows, None if it shows nothing or if there is no such cell."""
    above = paragraph.previous_sibling()
    if not isinstance(above, nodes.container) or "cell" not in above["classes"]:
        return None
    return next((part for part in above.children if "cell_output" in part.get("classes", [])), None)


def caption_figures(app: Sphinx, doctree: nodes.document) -> None:
    """Puts each captioned picture of a page and its caption into one node."""
    expected = 1
    for paragraph in list(doctree.findall(nodes.paragraph)):
        number = number_of(paragraph)
        if number is None:
            continue
        if number != expected:
            logger.warning("Figure %d should be Figure %d.", number, expected, location=paragraph)
        expected = number + 1
        outputs = outputs_before(paragraph)
        if outputs is None:
            logger.warning("The caption of Figure %d should follow a cell that shows it.", number, location=paragraph)
            continue
        figure = numbered_figure("", ids=[f"figure-{number}"])
        outputs.parent.replace(outputs, figure)
        figure += [outputs, figure_caption("", "", *paragraph.children)]
        paragraph.parent.remove(paragraph)


def open_figure(translator, node: nodes.Element) -> None:
    translator.body.append(f'<figure class="numbered-figure" id="{node["ids"][0]}">\n')


def close_figure(translator, node: nodes.Element) -> None:
    translator.body.append("</figure>\n")


def open_caption(translator, node: nodes.Element) -> None:
    translator.body.append("<figcaption>\n<p>")


def close_caption(translator, node: nodes.Element) -> None:
    translator.body.append("</p>\n</figcaption>\n")


def setup(app: Sphinx) -> dict:
    app.add_node(numbered_figure, html=(open_figure, close_figure))
    app.add_node(figure_caption, html=(open_caption, close_caption))
    app.connect("doctree-read", caption_figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
