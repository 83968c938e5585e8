"""Sphinx extension: a folded box at the foot of each chapter names what the chapter was made with.

The foot says which functions of the package the chapter's cells use, the versions of ``requirements.lock``, and for
every stored file that the cells read a line as ``sha256sum`` prints it (for many files of one folder the checksum of
such lines, which ``sha256sum * | sha256sum`` gives). All of it is read from committed files; nothing is imported.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

PACKAGES = ("torch", "numpy", "scipy", "matplotlib", "torchvision")
ENTRY = re.compile(r"^\.\. autoapi\w+:: ([\w.]+)$", re.MULTILINE)
STORED = re.compile(r"""["'/](data(?:/[^"'\s]*)?)["']""")
CODE = {".py", ".md", ".checkpoint"}
MANY = 12


def entries(folder: Path) -> list[str]:
    """The names that the page on the package documents."""
    return ENTRY.findall((folder / "api.md").read_text(encoding="utf-8"))


def names_used(cells: list[dict]) -> set[str]:
    """The dotted names that code cells import, or use as attributes of ``affscore``."""
    found: set[str] = set()
    for cell in cells:
        try:
            tree = ast.parse("".join(cell["source"])) if cell["cell_type"] == "code" else ast.Module([], [])
        except SyntaxError:  # a line for IPython, as in the cell that installs on Colab
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add(f"{node.value.id}.{node.attr}")
    return found


def files_read(cells: list[dict], folder: Path, name: str) -> list[Path]:
    """The stored files that code cells name.

    ``data`` alone stands for the chapter's own folder, and ``{...}`` in a name for anything.
    """
    texts = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    found: set[Path] = set()
    for text in STORED.findall(texts):
        for match in folder.glob(f"data/{name}" if text == "data" else re.sub(r"\{[^}]*\}?", "*", text)):
            found |= {match, *match.rglob("*")}
    # Folder by folder: one within another would part the files of the other.
    return sorted(filter(is_data, found), key=lambda path: (path.parent, path.name))


def is_data(path: Path) -> bool:
    """Whether this is a file with a stored result. Folders, code, notes and the working files of a run are not."""
    return path.is_file() and path.suffix not in CODE and not path.name.startswith(".") and path.parent.name != "work"


def checksums(files: list[Path], folder: Path) -> Iterator[str]:
    """Lines as ``sha256sum`` prints them, and a single line for a folder with many files."""
    for place, group in groupby(files, lambda path: path.parent):
        lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in group]
        where = place.relative_to(folder.parent).as_posix()
        if len(lines) > MANY:
            every = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
            yield f"{every}  {where}: {len(lines)} files"
        else:
            yield from (line.replace("  ", f"  {where}/") for line in lines)


def versions(lock: str) -> str:
    """The versions of the most important packages in a lock file, as text."""
    found = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE))
    return ", ".join(f"{name} {found[name]}" for name in PACKAGES)


def foot(cells: list[dict], folder: Path, name: str) -> str:
    """The folded box as Markdown. ``folder`` has the notebooks."""
    used = names_used(cells)
    named = [(entry, entry.rpartition(".")[2]) for entry in entries(folder)]
    # The package exports names that its modules define.
    links = [f"{{py:obj}}`{name} <{entry}>`" for entry, name in named if {entry, f"affscore.{name}"} & used]
    lines = ["```````{admonition} Functions, versions and data of this chapter", ":class: dropdown"]
    if links:
        lines += [f"**From the [package](api.md):** {', '.join(links)}.", ""]
    lock = (folder.parent / "requirements.lock").read_text(encoding="utf-8")
    lines += [
        f"**Versions:** Python 3.11, {versions(lock)}; the rest is in `requirements.lock`.",
        "**Device:** two cores of a processor, no GPU. With these, every test run computes each cell again and",
        "finds the text that stands here.",
    ]
    if data := list(checksums(files_read(cells, folder, name), folder)):
        lines += ["", "**Stored data** (SHA-256):", "", "```text", *data, "```"]
    return "\n".join([*lines, "```````"])


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".ipynb":
        content = json.loads(source[0])
        text = foot(content["cells"], path.parent, path.stem)
        content["cells"].append({"cell_type": "markdown", "metadata": {}, "source": text, "id": "foot"})
        source[0] = json.dumps(content)


def link_chapters(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make links of the names of chapters in the docstrings on the page of the package."""
    if docname != "book/api":
        return
    for literal in list(doctree.findall(nodes.literal)):
        target = f"book/{literal.astext()}"
        if target in app.env.found_docs:
            title = nodes.Text(app.env.titles[target].astext())
            literal.replace_self(make_refnode(app.builder, docname, target, "", title))


def setup(app: Sphinx) -> dict:
    app.connect("source-read", read)
    app.connect("doctree-resolved", link_chapters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
