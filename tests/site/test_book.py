"""The book's own Sphinx extension: a book without solutions holds none, on its pages and in its downloads."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))


@pytest.fixture(scope="module")
def extension():
    spec = importlib.util.spec_from_file_location("book_pages", ROOT / "book" / "_ext" / "book_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text(notebook):
    return "\n".join("".join(cell["source"]) for cell in json.loads(notebook)["cells"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_the_solutions_go(extension, path):
    before = path.read_text(encoding="utf-8")
    after = extension.without_solutions(before)
    assert "{solution-start}" in text(before) and "{solution-" not in text(after)
    for kind in ("{exercise}", "{exercise-start}", "{exercise-end}"):
        assert text(before).count(kind) == text(after).count(kind)
    kept = iter(json.loads(before)["cells"])
    assert all(cell in kept for cell in json.loads(after)["cells"]), "a cell was changed or moved"


def test_a_solution_that_never_ends_is_an_error(extension):
    cells = [{"cell_type": "markdown", "source": [":::{solution-start} a\n", ":::"]}]
    with pytest.raises(ExtensionError, match="no solution-end"):
        extension.without_solutions(json.dumps({"cells": cells}))


def test_the_book_builds_without_solutions_and_without_torch(tmp_path):
    # The pages come from stored outputs: whoever only builds them has neither package (make book).
    stubs = tmp_path / "stubs"
    for name in ("affscore", "torch", "anywidget", "matplotlib"):
        (stubs / name).mkdir(parents=True)
        (stubs / name / "__init__.py").write_text(f"raise SystemExit('building the pages imports {name}')\n")
    for name in ("_config.yml", "_toc.yml", "book"):  # the pages need no package
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    config = (tmp_path / "_config.yml").read_text()
    assert config.count("    language: en\n") == 1
    (tmp_path / "_config.yml").write_text(
        config.replace("    language: en\n", "    language: en\n    hide_solutions: true\n")
    )
    command = [Path(sys.executable).with_name("jupyter-book"), "build", str(tmp_path), "-W", "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(stubs)})
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "_build" / "html"
    for path in NOTEBOOKS:
        page = (site / "book" / f"{path.stem}.html").read_text(encoding="utf-8")
        shown = (ROOT / "_build" / "html" / "book" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert "Solution to" in shown and "Solution to" not in page
        (download,) = site.glob(f"_sources/book/{path.stem}.ipynb")
        assert "{solution-" not in download.read_text(encoding="utf-8")
