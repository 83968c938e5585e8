"""Sphinx extension: decks of slides from the chapters' own figures, beside the pages in ``slides/``.

``book/slides/NAME.md`` is a deck: Markdown with a line ``---`` between two slides, ``> `` before notes for speakers,
which begin with their minutes, and lines ``{{ CHAPTER TEXT }}`` for the outputs of the one cell of a chapter that
contains TEXT: a picture, a moving picture, a table or what it printed. ``book/slides/deck.html`` is the page around
them. A deck holds its pictures; mathematics and moving pictures use the files of the site, so it needs no network.
"""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

from book_widgets import NAME, file_of
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SHOWN = re.compile(r"^\{\{ (?P<chapter>\w+) (?P<text>.+) \}\}$", re.MULTILINE)


def cell_with(notebook: dict, text: str) -> dict:
    """The code cell with this text and with outputs. Raises ValueError unless there is exactly one."""
    cells = [cell for cell in notebook["cells"] if cell.get("outputs") and text in "".join(cell["source"])]
    if len(cells) != 1:
        raise ValueError(f"{len(cells)} cells with outputs contain {text!r}; there should be one.")
    return cells[0]


def shown(cell: dict) -> Iterator[str]:
    """The outputs of a cell as HTML."""
    alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            picture = "".join(data["image/png"]).replace("\n", "")
            yield f'<figure><img src="data:image/png;base64,{picture}" alt="{html.escape(alt)}"></figure>'
        elif "text/html" in data:
            yield f"<figure>{''.join(data['text/html'])}</figure>"
        else:
            text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
            yield f"<figure><pre>{html.escape(text)}</pre></figure>"


def slides(text: str, folder: Path) -> Iterator[str]:
    """The slides of a deck as HTML; ``folder`` has the notebooks."""
    markdown = MarkdownIt("commonmark").enable("table")
    markdown.use(
        dollarmath_plugin,
        renderer=lambda formula, options: html.escape(
            rf"\[{formula}\]" if options["display_mode"] else rf"\({formula}\)"
        ),
    )
    for part in re.split(r"^---$", text, flags=re.MULTILINE):
        figures, sources = [], {}
        for match in SHOWN.finditer(part):
            notebook = json.loads((folder / f"{match['chapter']}.ipynb").read_text(encoding="utf-8"))
            figures += shown(cell_with(notebook, match["text"]))
            sources[match["chapter"]] = "".join(notebook["cells"][0]["source"]).splitlines()[0].lstrip("# ")
        words = markdown.render(SHOWN.sub("", part)).replace("blockquote>", "aside>")
        links = [f'<a href="../book/{name}.html">{html.escape(title)}</a>' for name, title in sources.items()]
        words += f'<p class="source">Computed in: {", ".join(links)}</p>' if links else ""
        pictures = f'<div class="figures">{"".join(figures)}</div>' if figures else ""
        yield f'<div class="words">{words}</div>{pictures}'


def deck(text: str, template: str, folder: Path) -> str:
    """A deck as one page."""
    title = text.strip().splitlines()[0].removeprefix("# ")
    body = "\n".join(
        f'<section id="{number}">{slide}</section>' for number, slide in enumerate(slides(text, folder), start=1)
    )
    widgets = sorted(set(re.findall(r'class="affscore-widget" data-widget="(\w+)"', body)))
    scripts = [*map(file_of, widgets), f"{NAME}.js"] if widgets else []
    loaded = "\n".join(f'<script defer src="../_static/{file}"></script>' for file in scripts)
    return template.replace("[title]", html.escape(title)).replace("[scripts]", loaded).replace("[slides]", body)


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    book, target = Path(app.srcdir) / "book", Path(app.outdir) / "slides"
    template = (book / "slides" / "deck.html").read_text(encoding="utf-8")
    for path in sorted((book / "slides").glob("*.md")):
        try:
            page = deck(path.read_text(encoding="utf-8"), template, book)
        except (OSError, ValueError) as error:
            raise ExtensionError(f"{path.name}: {error}") from error
        target.mkdir(exist_ok=True)
        (target / f"{path.stem}.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
