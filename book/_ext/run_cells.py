"""Sphinx extension: a chapter's cells run in the page, by a Python in the reader's browser.

On the chapters of :data:`CHAPTERS` every code cell gets an id, ``cell-ID`` with the id that the notebook has for it,
and ``run_cells.js`` gives it *Run* and *Reset*, unless it is tagged ``not-in-page`` (it takes long, or draws a widget).
The first *Run* loads Pyodide and NumPy from ``_static/vendor/pyodide`` (``run_files.js``) and starts ``run_worker.js``,
which takes what the cells need from one archive a chapter: the modules of ``affscore`` and ``affscore_book`` that they
import, and the stored results that they name. Imports are followed here by reading them, so that building the pages
needs neither package; what is neither in the standard library nor NumPy nor in ``in_page`` stops the build.
"""

from __future__ import annotations

import ast
import io
import json
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

BOOK = Path(__file__).resolve().parents[1]
ROOT = BOOK.parent
sys.path[:0] = [str(BOOK), str(ROOT)]
from affscore_book.kit.bundle import bundle  # noqa: E402

#: Chapters whose cells run in the page.
CHAPTERS = ("theory", "blind_spots", "relu_1d", "few_networks", "activations", "redshift")
NAME = "run_cells"
ROOTS = (ROOT, BOOK, Path(__file__).with_name("in_page"))
GIVEN = {*sys.stdlib_module_names, "numpy", "affscore_in_page"}
ALWAYS = ("affscore", "affscore_book.kit.session", "scipy.optimize")
SKIPPED = {"remove-cell", "hide-cell", "not-in-page"}


def code_cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The code cells that a page shows, without those that it takes out."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "remove-cell" not in cell["metadata"].get("tags", []):
            yield cell


def runs(cell: dict[str, Any]) -> bool:
    return not SKIPPED & set(cell["metadata"].get("tags", []))


def file_of(module: str) -> Path | None:
    """The file of a module of this repository; None for a module of others, or for a name that is no module."""
    for root in ROOTS:
        place = root / module.replace(".", "/")
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return None


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules that are imported when the code is run, and names in them that may be modules.

    Not what a function imports later, and not what only a type checker sees.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imported(node)


def modules(sources: Iterable[str]) -> dict[str, Path]:
    """The files that these texts import, by their path in the archive. Raises ValueError for a library of others."""
    found: dict[str, Path] = {}
    todo = [(name, "a cell") for source in sources for name in imported(ast.parse(source))]
    todo += [(name, "run_cells.py") for name in ALWAYS]
    while todo:
        name, asker = todo.pop()
        parent = name.rpartition(".")[0]
        path = file_of(name)
        if path is None:
            if name.partition(".")[0] not in GIVEN and file_of(parent) is None:
                raise ValueError(f"{asker} imports {name}, which a page does not have.")
            continue
        root = max((root for root in ROOTS if path.is_relative_to(root)), key=lambda root: len(root.parts))
        inside = path.relative_to(root).as_posix()
        if inside in found:
            continue
        found[inside] = path
        if parent:
            todo.append((parent, name))
        todo += [(other, name) for other in imported(ast.parse(path.read_text(encoding="utf-8")))]
    return dict(sorted(found.items()))


def stored(sources: Iterable[str]) -> dict[str, Path]:
    """The files of ``book/data`` that these texts name, by the path that they name."""
    texts = {node.value for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    return {text: BOOK / text for text in sorted(t for t in texts if isinstance(t, str) and t.startswith("data/"))}


def archive(files: dict[str, Path]) -> bytes:
    """A ZIP with the files, and what says which version of affscore they are; the same bytes for the same files."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    texts = {name: path.read_bytes() for name, path in files.items()}
    about = f"Metadata-Version: 2.1\nName: affscore\nVersion: {version}\n"
    texts[f"affscore-{version}.dist-info/METADATA"] = about.encode()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return data.getvalue()


def read(chapter: str) -> dict[str, Any]:
    return json.loads((BOOK / f"{chapter}.ipynb").read_text(encoding="utf-8"))


def runnable(chapter: str) -> dict[str, str]:
    """The texts of the cells that run, by their ids, in the order of the page."""
    return {cell["id"]: "".join(cell["source"]) for cell in code_cells(read(chapter)) if runs(cell)}


def needed(chapter: str) -> dict[str, Path]:
    """The files that the cells of a chapter import and read, by their path in the archive."""
    sources = runnable(chapter).values()
    return modules(sources) | stored(sources)


def write(app: Sphinx) -> None:
    """Write the archives, and the assignment as a module, where Sphinx copies static files from."""
    if app.builder.format != "html":
        return
    folder = Path(app.doctreedir).parent / f".{NAME}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run_assignment.mjs").write_text(bundle(BOOK / "affscore_book/kit/assignment.js"), encoding="utf-8")
    for chapter in CHAPTERS:
        try:
            (folder / f"run_{chapter}.zip").write_bytes(archive(needed(chapter)))
        except ValueError as error:
            raise ExtensionError(f"{chapter}.ipynb: {error}") from error
    app.config.html_static_path.append(str(folder))


def chapter_of(page: str) -> str | None:
    return next((chapter for chapter in CHAPTERS if page == f"book/{chapter}"), None)


def mark(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Give the code cells of a page their ids."""
    chapter = chapter_of(page)
    if chapter is None:
        return
    found = [node for node in doctree.findall(nodes.container) if node.get("nb_element") == "cell_code"]
    cells = list(code_cells(read(chapter)))
    if len(found) != len(cells):
        raise ExtensionError(f"{page} shows {len(found)} code cells, and its notebook has {len(cells)}.")
    for node, cell in zip(found, cells, strict=True):
        node["ids"].append(f"cell-{cell['id']}")


def add_to_page(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the script, with what it has to know of the cells, on the chapters that run."""
    chapter = chapter_of(page)
    if chapter is None:
        return
    cells = list(runnable(chapter).items())  # an object of JavaScript would not keep the order of all ids
    vendored = json.loads((BOOK / "_static/vendor/pyodide/files.json").read_text(encoding="utf-8"))
    size = sum(file["bytes"] for file in vendored.values())
    told = json.dumps({"chapter": chapter, "cells": cells, "files": vendored, "bytes": size}).replace("<", "\\u003c")
    context["body"] += f'<script type="application/json" id="affscore-cells">{told}</script>'
    app.add_css_file(f"{NAME}.css")
    app.add_js_file(f"{NAME}.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write)
    app.connect("doctree-resolved", mark)
    app.connect("html-page-context", add_to_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
