"""Sphinx extension: the JavaScript and CSS of every widget, on the pages that show one.

Writes ``_static/affscore_widget_NAME.js`` for every widget (its modules as text), ``affscore_widgets.js`` (the host
script beside this file) and ``affscore_widgets.css``; a page loads those that it shows. The directive ``widget`` shows
on a page without cells what a chapter has stored: its arguments are the chapter's name and the widget's class. See
``affscore_book/kit/widgets.py`` for how a widget gets into a page. The files are collected by path, so that building
the pages needs neither affscore nor torch.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

BOOK = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BOOK), str(BOOK.parent)]  # affscore_book looks for affscore, and does not import it
from affscore_book.kit.bundle import bundle, sources  # noqa: E402

NAME = "affscore_widgets"


def files() -> dict[str, str]:
    """The text of every file."""
    styles = sorted((BOOK / "affscore_book").glob("*/*.css"), key=lambda path: (path.name != "figure.css", path))
    result = {
        f"{NAME}.js": Path(__file__).with_name("book_widgets_host.js").read_text(encoding="utf-8"),
        f"{NAME}.css": "\n".join(path.read_text(encoding="utf-8") for path in styles),
    }
    for name, path in sources().items():
        result[file_of(name)] = f"(window.affscoreWidgets ??= {{}}).{name} = {json.dumps(uncommented(bundle(path)))};\n"
    return result


def uncommented(source: str) -> str:
    """JavaScript without the comments that have lines of their own, a quarter of what a page would load."""
    return re.sub(r"^ *(//[^\n]*|/\*\*.*?\*/)\n", "", source, flags=re.MULTILINE | re.DOTALL)


def file_of(name: str) -> str:
    return f"affscore_widget_{name}.js"


def write(app: Sphinx) -> None:
    """Write the files where Sphinx copies static files from."""
    if app.builder.format != "html":
        return
    folder = Path(app.doctreedir).parent / f".{NAME}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
    app.config.html_static_path.append(str(folder))


def add_to_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the files that a page with widgets needs: those of the widgets first, then the script that starts them."""
    names = set(re.findall(r'class="affscore-widget" data-widget="(\w+)"', context.get("body", "")))
    if names or 'class="affscore-panel"' in context.get("body", ""):
        app.add_css_file(f"{NAME}.css")
    if names:
        for file in (*map(file_of, sorted(names)), f"{NAME}.js"):
            app.add_js_file(file, loading_method="defer")


def stored(notebook: dict[str, Any], name: str) -> str:
    """The HTML that a notebook stores for a widget of this class. Raises ValueError if there is none."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            html = "".join(output.get("data", {}).get("text/html", ""))
            if html.startswith('<div class="affscore-widget"') and f'data-widget="{name}"' in html:
                return html
    raise ValueError(f"the notebook stores no widget {name!r}.")


class Widget(Directive):
    """A widget that a chapter has stored: ``{widget} first_signature SignatureTour``."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        chapter, name = self.arguments
        path = BOOK / f"{chapter}.ipynb"
        self.state.document.settings.env.note_dependency(str(path))
        try:
            html = stored(json.loads(path.read_text(encoding="utf-8")), name)
        except (OSError, ValueError) as error:
            raise self.error(f"{chapter}: {error}") from error
        return [nodes.raw("", html, format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("widget", Widget)
    app.connect("builder-inited", write)
    app.connect("html-page-context", add_to_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
