"""Sphinx extension: the JavaScript and CSS of every affscore widget, on the pages that show one.

Writes ``_static/affscore_widgets.js`` (all widgets' modules as text, then the host script beside this file) and
``_static/affscore_widgets.css``. See ``affscore/widgets/base.py`` for how a widget gets into a page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import affscore.widgets

NAME = "affscore_widgets"


def bundles() -> tuple[str, str]:
    """The script and the style sheet for all widgets."""
    widgets = affscore.widgets.ComputedWidget.registry
    # "</" must not end the script should a page ever hold it inline.
    sources = json.dumps({name: widgets[name]._esm for name in sorted(widgets)}).replace("</", "<\\/")
    host = Path(__file__).with_name(f"{NAME}_host.js").read_text(encoding="utf-8")
    styles = dict.fromkeys(widgets[name]._css for name in sorted(widgets))
    return f"const WIDGETS = {sources};\n{host}", "\n".join(styles)


def write(app: Sphinx) -> None:
    """Write both files where Sphinx copies static files from."""
    if app.builder.format != "html":
        return
    folder = Path(app.doctreedir).parent / f".{NAME}"
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, text in zip((".js", ".css"), bundles(), strict=True):
        (folder / f"{NAME}{suffix}").write_text(text, encoding="utf-8")
    app.config.html_static_path.append(str(folder))


def add_to_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Load both files on a page that holds a widget, and on no other."""
    if 'class="affscore-widget"' in context.get("body", ""):
        app.add_css_file(f"{NAME}.css")
        app.add_js_file(f"{NAME}.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write)
    app.connect("html-page-context", add_to_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
