"""Sphinx extension: other pages show pictures from the chapters, on cards with a link and a sentence or with a caption.

On a page::

    ```{gallery}
    - picture: first_signature figures.plot_calls(
      title: The scores zigzag
      to: first_signature.html#why-the-zigzag
      text: One sentence.
    ```

    ```{picture} theory figures.plot_construction(
    The caption.
    ```

``picture`` is CHAPTER TEXT: the first picture that the one cell of that chapter with this text has stored, as in the
slides, with its alt text. So the gallery shows what the chapters show, and an entry whose picture is gone is an error.
``to`` is an address beside this page: it may name an anchor that a rewritten chapter keeps as ``<a id="...">``, which
Sphinx does not know. tests/site/test_book.py looks for it.
"""

import base64
import html
import io
import json
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from figure_captions import figure_caption, numbered_figure
from light_pages import on_white
from PIL import Image
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from slides import cell_with

KEYS = {"picture", "title", "to", "text"}


def entries(text: str) -> list[dict[str, str]]:
    """The entries of a gallery. Raises ValueError unless each has exactly the keys picture, title, to and text."""
    found = yaml.safe_load(text)
    for number, entry in enumerate(found, start=1):
        if set(entry) != KEYS:
            raise ValueError(f"entry {number} has {sorted(entry)}; it should have {sorted(KEYS)}.")
    return found


def stored_picture(picture: str, folder: Path) -> str:
    """The picture CHAPTER TEXT as HTML that needs no file; ``folder`` has the notebooks.

    Raises ValueError unless one cell has the text, and a drawing, or a stored PNG and an alt text.
    """
    chapter, _, text = picture.partition(" ")
    cell = cell_with(json.loads((folder / f"{chapter}.ipynb").read_text(encoding="utf-8")), text)
    texts = ("".join(output.get("data", {}).get("text/html", "")) for output in cell["outputs"])
    if drawing := next((text for text in texts if 'class="affscore-panel"' in text), None):
        return drawing
    found = [output["data"]["image/png"] for output in cell["outputs"] if "image/png" in output.get("data", {})]
    alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
    if not found or not alt:
        raise ValueError(f"the cell {text!r} of {chapter} has no stored picture, or no alt text.")
    smaller = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode("".join(found[0])))) as image:
        width, height = image.size
        kind = ' class="on-white"' if on_white(image) else ""
        image.save(smaller, "webp", lossless=True, method=4)
    data = base64.b64encode(smaller.getvalue()).decode()
    size = f'width="{width}" height="{height}"'
    return f'<img{kind} src="data:image/webp;base64,{data}" alt="{html.escape(alt)}" {size} loading="lazy">'


class Gallery(SphinxDirective):
    """``{gallery}``: cards with a picture, a link and a sentence."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / "book"
        gallery = nodes.container(classes=["gallery"])
        try:
            for entry in entries("\n".join(self.content)):
                card = nodes.container(classes=["gallery-card"])
                card += nodes.raw("", stored_picture(entry["picture"], folder), format="html")
                to, title = html.escape(entry["to"]), html.escape(entry["title"])
                card += nodes.raw("", f'<p><a href="{to}"><strong>{title}</strong></a></p>', format="html")
                text = StringList(entry["text"].splitlines(), self.env.docname)
                self.state.nested_parse(text, self.content_offset, card)
                gallery += card
                self.env.note_dependency(str(folder / f"{entry['picture'].partition(' ')[0]}.ipynb"))
        except (OSError, ValueError) as error:
            raise ExtensionError(f"{self.env.docname}, gallery: {error}") from error
        return [gallery]


class Picture(SphinxDirective):
    """``{picture} CHAPTER TEXT``: the picture of a cell at its full width, with a caption."""

    has_content, required_arguments, final_argument_whitespace = True, 1, True

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / "book"
        try:
            picture = stored_picture(self.arguments[0], folder)
        except (OSError, ValueError) as error:
            raise ExtensionError(f"{self.env.docname}, picture: {error}") from error
        self.env.note_dependency(str(folder / f"{self.arguments[0].partition(' ')[0]}.ipynb"))
        figure = numbered_figure("", ids=[f"figure-{nodes.make_id(self.arguments[0])}"])
        caption = nodes.paragraph()
        self.state.nested_parse(self.content, self.content_offset, caption)
        figure += [nodes.raw("", picture, format="html"), figure_caption("", "", *caption.children[0].children)]
        return [figure]


def setup(app: Sphinx) -> dict:
    app.add_directive("gallery", Gallery)
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
