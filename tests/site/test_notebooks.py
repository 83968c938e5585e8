"""The notebooks of the book as they are committed: run from top to bottom, stored, readable without a picture.

Each rule is a function from a notebook to the sentences of what breaks it, shown failing once on a planted
notebook. That the stored outputs are the ones a new run gives is nbval's part (make test).
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


def toc_files(entry) -> Iterator[str]:
    """Every `file` and `root` of a table of contents, at any depth."""
    if isinstance(entry, list):
        for item in entry:
            yield from toc_files(item)
    elif isinstance(entry, dict):
        yield from (entry[key] for key in ("root", "file") if key in entry)
        for value in entry.values():
            yield from toc_files(value)


PAGES = list(toc_files(yaml.safe_load((ROOT / "_toc.yml").read_text())))
NOTEBOOKS = [page for page in PAGES if (ROOT / f"{page}.ipynb").exists()]


def code_cells(notebook) -> list[tuple[int, dict]]:
    """(index, cell) of every code cell that holds something."""
    return [
        (index, cell)
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and cell["source"].strip()
    ]


def not_run_in_order(notebook) -> list[str]:
    counts = [(index, cell.get("execution_count")) for index, cell in code_cells(notebook)]
    return [
        f"cell {index} has execution count {count} and should have {expected}: run the notebook from the top"
        for expected, (index, count) in enumerate(counts, start=1)
        if count != expected
    ]


def nothing_stored(notebook) -> list[str]:
    stored = any(cell["outputs"] for _, cell in code_cells(notebook))
    return [] if stored else ["no cell has a stored output"]


def errors(notebook) -> list[str]:
    """Stored exceptions, and anything on stderr: a reader should see neither a traceback nor a warning."""
    return [
        f"cell {index} stores {output.get('ename', 'text on stderr')}"
        for index, cell in code_cells(notebook)
        for output in cell["outputs"]
        if output["output_type"] == "error" or output.get("name") == "stderr"
    ]


def figures_without_alt_text(notebook) -> list[str]:
    """Pictures whose cell has no mystnb.image.alt (alt text in the output's metadata is not used by the book)."""
    return [
        f"cell {index} stores a picture and has no alt text in its metadata (mystnb.image.alt)"
        for index, cell in code_cells(notebook)
        if any(kind in output.get("data", {}) for output in cell["outputs"] for kind in PICTURES)
        and not cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "").strip()
    ]


def definitions(notebook) -> list[str]:
    """Functions and classes defined in cells that are not tagged `lesson`: they belong in the package."""
    found = []
    for index, cell in code_cells(notebook):
        if "lesson" in cell["metadata"].get("tags", []):
            continue
        python = re.sub(r"^\s*[%!].*$", "", cell["source"], flags=re.M)  # IPython's own commands are not Python
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        names = [node.name for node in ast.walk(ast.parse(python)) if isinstance(node, kinds)]
        found += [f"cell {index} defines {name} and is not tagged 'lesson'" for name in names]
    return found


def semicolons(notebook) -> list[str]:
    """A last `;` hides a cell's value when the notebook is run and stored, but not when nbval runs it."""
    return [
        f"cell {index} ends in ';': give its value a name instead, such as figure = ..."
        for index, cell in code_cells(notebook)
        if cell["source"].rstrip().endswith(";")
    ]


def machine_paths(notebook) -> list[str]:
    """Paths of the machine that ran the notebook, in code or in outputs."""
    pattern = re.compile(r"(?<![\w./])/(?:home|root|tmp|work|Users|usr|opt|mnt|var)/[\w.-]+")
    return [
        f"cell {index} holds the path {match}"
        for index, cell in code_cells(notebook)
        for match in pattern.findall(cell["source"] + json.dumps(cell["outputs"]))
    ]


def metadata_of_the_run(notebook) -> list[str]:
    """What changes with every run and says nothing to a reader: times, widget state, another kernel's name."""
    timed = [index for index, cell in code_cells(notebook) if "execution" in cell["metadata"]]
    found = [f"cell {index} stores times of its execution" for index in timed]
    if "widgets" in notebook["metadata"]:
        found.append("the notebook stores widget state")
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        found.append("the kernel's name is not python3")
    return found


def invalid(notebook) -> list[str]:
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        return [str(error).splitlines()[0]]
    return []


RULES = [
    not_run_in_order, nothing_stored, errors, figures_without_alt_text,
    definitions, semicolons, machine_paths, metadata_of_the_run, invalid,
]  # fmt: skip


@pytest.mark.parametrize("page", NOTEBOOKS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_committed_notebook(page, rule):
    assert rule(nbformat.read(ROOT / f"{page}.ipynb", as_version=4)) == []


def test_every_page_of_the_contents_exists_and_every_notebook_is_in_the_contents():
    missing = [page for page in PAGES if not any((ROOT / f"{page}{end}").is_file() for end in (".md", ".ipynb"))]
    assert missing == []
    on_disk = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "book").glob("*.ipynb")}
    assert on_disk == set(NOTEBOOKS)


def planted(**changes) -> dict:
    """A notebook of one good cell, with some of the cell's fields changed."""
    output = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}, "metadata": {}}
    cell = {
        "id": "a", "cell_type": "code", "source": "%matplotlib inline\nlines = plt.plot(x)", "execution_count": 1,
        "outputs": [output], "metadata": {"mystnb": {"image": {"alt": "A rising line."}}},
    }  # fmt: skip
    notebook = {"cells": [cell | changes], "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}}}
    return nbformat.from_dict(notebook | {"nbformat": 4, "nbformat_minor": 5})


STDERR = {"output_type": "stream", "name": "stderr", "text": "UserWarning"}
TRACEBACK = {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": []}
PATH = {"output_type": "stream", "name": "stdout", "text": "saved /home/someone/x.json"}


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        (not_run_in_order, {"execution_count": None}),
        (not_run_in_order, {"execution_count": 2}),
        (nothing_stored, {"outputs": []}),
        (errors, {"outputs": [TRACEBACK]}),
        (errors, {"outputs": [STDERR]}),
        (figures_without_alt_text, {"metadata": {}}),
        (figures_without_alt_text, {"metadata": {"mystnb": {"image": {"alt": " "}}}}),
        (definitions, {"source": "def helper(x):\n    return x"}),
        (definitions, {"source": "if True:\n    class Helper: ..."}),
        (semicolons, {"source": "plt.plot(x);\n"}),
        (machine_paths, {"outputs": [PATH]}),
        (metadata_of_the_run, {"metadata": {"execution": {"iopub.status.busy": "2026"}}}),
        (invalid, {"outputs": [{"output_type": "stream"}]}),
    ],
)
def test_each_rule_fails_on_a_planted_notebook(rule, changes):
    assert rule(planted()) == []
    assert len(rule(planted(**changes))) == 1


def test_a_lesson_may_define_what_it_teaches():
    lesson = {"source": "def relu(x):\n    return max(x, 0)", "metadata": {"tags": ["lesson"]}}
    assert definitions(planted(**lesson)) == []
