"""Sphinx extension: keep the built book free of requests to other hosts, and its tables fit for phones.

sphinx-thebe, which Jupyter Book always loads, writes a script on every page that names an address of a
content delivery network, even when Thebe is off. This book does not use Thebe, so its scripts are taken out.
(MathJax comes from book/_static/vendor: see mathjax_path in _config.yml.) affscore_book.css has the book's few styles.

It also makes ``hide_solutions: true`` true for solutions with code: sphinx-exercise 1.2 drops only the opening
directive of such a solution, shows the rest and fails on the closing one. Here the cells go before they are parsed.
"""

import json
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_START = re.compile(r"^\s*[`:]{3,}\{solution-start\}", re.MULTILINE)
_END = re.compile(r"^\s*[`:]{3,}\{solution-end\}", re.MULTILINE)


def is_thebe(script) -> bool:
    """Whether a script of a page was put there by sphinx-thebe: its file, or the inline settings."""
    body = getattr(script, "attributes", {}).get("body") or ""
    return "sphinx-thebe" in str(getattr(script, "filename", script)) or "THEBE_JS_URL" in body


def drop_thebe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    context["script_files"] = [script for script in context.get("script_files", []) if not is_thebe(script)]


def without_solutions(notebook: str) -> str:
    """The JSON of a notebook without the cells from each solution-start to its solution-end."""
    content, kept, inside = json.loads(notebook), [], False
    for cell in content["cells"]:
        text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
        inside = inside or bool(_START.search(text))
        if not inside:
            kept.append(cell)
        inside = inside and not _END.search(text)
    if inside:
        raise ExtensionError("A solution-start has no solution-end after it.")
    return json.dumps(content | {"cells": kept})


def hide_solutions(app: Sphinx, docname: str, source: list[str]) -> None:
    if app.config.hide_solutions and app.env.doc2path(docname).endswith(".ipynb"):
        source[0] = without_solutions(source[0])


def hide_from_downloads(app: Sphinx, exception: Exception | None) -> None:
    """The notebooks that the pages offer for download are copies of the sources."""
    if app.config.hide_solutions and exception is None:
        for path in (Path(app.outdir) / "_sources").rglob("*.ipynb"):
            path.write_text(without_solutions(path.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    # Late, so that every other extension has added its scripts by then.
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("source-read", hide_solutions)
    app.connect("build-finished", hide_from_downloads)
    app.add_css_file("affscore_book.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
