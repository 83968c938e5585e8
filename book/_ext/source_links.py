"""Sphinx extension: below a code cell, links to the source of what it calls from this repository's packages.

A link leads to the line of the repository at which the function or class is defined, and stands where a page first
uses it. Cells and modules are read and not imported, so that building the pages needs none of the packages.
"""

from __future__ import annotations

import ast
import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from run_cells import ROOT, code_cells, file_of
from sphinx.application import Sphinx

PACKAGES = ("affscore", "affscore_book", "affscore_study")


class Source(NamedTuple):
    """Where something is defined: a file of the repository and a line of it."""

    path: str
    line: int


@functools.cache
def module_at(name: str) -> Path | None:
    """The file of a module of the repository's packages, None for anything else."""
    return file_of(name) if name.partition(".")[0] in PACKAGES else None


@functools.cache
def handed_on(face: Path) -> dict[str, str]:
    """The names that ``affscore/__init__.py`` imports when they are asked for, with their modules."""
    lists = [node.value for node in ast.parse(face.read_text(encoding="utf-8")).body
             if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict)]  # fmt: skip
    pairs = [pair for table in lists for pair in zip(table.keys, table.values, strict=True)]
    return {key.value: value.value for key, value in pairs
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)}  # fmt: skip


@functools.cache
def definition(module: str, name: str) -> Source | None:
    """Where a module defines a function, a class or a table, or the module that hands it on does."""
    path = module_at(module)
    if path is None:
        return None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return Source(path.relative_to(ROOT).as_posix(), node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module and any((a.asname or a.name) == name for a in node.names):
            return definition(node.module, name)
    if path.name == "__init__.py" and (behind := handed_on(path).get(name)):
        return definition(behind, name)
    return None


class Names:
    """What the names of a page mean so far, cell by cell."""

    def __init__(self) -> None:
        self.modules: dict[str, str] = {}
        self.members: dict[str, tuple[str, str]] = {}
        self.shown: set[Source] = set()

    def new_in(self, code: str) -> dict[str, Source]:
        """The sources that this cell is the first to use, by the name that it uses."""
        tree = ast.parse(code)
        found: dict[str, Source] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self.read_import(node)
        for node in ast.walk(tree):
            name, source = "", None
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.modules:
                name, source = f"{node.value.id}.{node.attr}", definition(self.modules[node.value.id], node.attr)
            elif isinstance(node, ast.Name) and node.id in self.members:
                name, source = node.id, definition(*self.members[node.id])
            if source and source not in self.shown:
                self.shown.add(source)
                found[name] = source
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        for name in defined & self.members.keys():  # from here on the page means its own
            del self.members[name]
        return found

    def read_import(self, node: ast.ImportFrom) -> None:
        assert node.module is not None
        for alias in node.names:
            name = alias.asname or alias.name
            if module_at(f"{node.module}.{alias.name}"):
                self.modules[name] = f"{node.module}.{alias.name}"
            elif module_at(node.module):
                self.members[name] = (node.module, alias.name)


def plain(cell: dict[str, Any]) -> str:
    """The Python of a cell, without what only a notebook understands."""
    lines = "".join(cell["source"]).splitlines()
    return "\n".join("" if line.lstrip().startswith(("!", "%")) else line for line in lines)


def add_links(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put a line of links below the code of each cell that uses something for the first time."""
    path = ROOT / f"{page}.ipynb"
    if app.builder.format != "html" or not path.exists():
        return
    options = app.config.html_theme_options
    base = f"{options['repository_url']}/blob/{options['repository_branch']}"
    shown = [node for node in doctree.findall(nodes.container) if node.get("nb_element") == "cell_code"]
    cells = list(code_cells(json.loads(path.read_text(encoding="utf-8"))))
    names = Names()
    for node, cell in zip(shown, cells, strict=True):
        inputs = [part for part in node.children if "cell_input" in part.get("classes", [])]
        if not (found := names.new_in(plain(cell))) or not inputs:
            continue
        line = nodes.paragraph("", "Source: ", classes=["cell-source"])
        for at, (name, source) in enumerate(found.items()):
            address = f"{base}/{source.path}#L{source.line}"
            line += [nodes.Text(", " if at else ""), nodes.reference("", "", nodes.literal("", name), refuri=address)]
        node.insert(node.index(inputs[-1]) + 1, line)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", add_links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
