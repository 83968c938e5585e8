"""Make an edition of the book for a course: a folder to push as a separate repository, with links to that repository.

    python .ci/edition.py student https://github.com/OWNER/NAME      # part of: make student URL=...

The student edition is a copy of the book without the cells of its solutions and without the pages for teachers; before
the first exercise of a chapter it asks for the student's name. The solutions edition is the whole book, to be handed
out later. The addresses become those of URL, or of this repository with the edition's name appended to its name.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import repository
import yaml

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("student", "solutions")
# The pages, the notebooks on Colab and the notebooks in JupyterLab need these folders and files.
FOLDERS = ("affscore", "book")
FILES = (
    "_config.yml", "_toc.yml", "README.md", "pyproject.toml", "requirements.txt", "requirements.lock",
    "LICENSE", "LICENSE-TEXT", "NOTICE", "CITATION.cff", ".gitignore",
)  # fmt: skip
NOT_COPIED = ("__pycache__", ".*", "*.checkpoint", "*.egg-info", "build")
FOR_TEACHERS = ("book/teaching.md", "book/slides/*.md")
NAME_CELL = """\
from affscore_book.course.variants import student

student("")  # enter your name: some exercises then have individual numbers
# Your answer to an exercise is what you pass to its check; the last call counts."""
README = """\
# {title} The {kind} edition

Read the book at <{site}>. The rocket at the top of a chapter opens it on Colab, where *Run all* runs it. On your own
machine, use these commands:

```bash
git clone {url} && cd {name}
python3 -m venv .venv
.venv/bin/python -m pip install -r requirements.txt -e . -e book
.venv/bin/jupyter lab book
```

This edition was made from <{source}>, whose README explains the package. Code is under BSD 3-Clause (`LICENSE`), and
text and figures are under CC BY 4.0 (`LICENSE-TEXT`). Third-party notices are in `NOTICE`, and `CITATION.cff` says how
to cite the book.

To publish this edition, push its folder to <{url}>, branch `main`, and choose `docs` under Settings, Pages.
"""


def tags_of(cell: dict, kind: str) -> list[str]:
    """The labels of a cell's tags of this kind: ``["half"]`` for the tag ``solution:half``."""
    return [tag.partition(":")[2] for tag in cell["metadata"].get("tags", []) if tag.startswith(f"{kind}:")]


def for_students(notebook: dict) -> dict:
    """A notebook without the cells of its solutions, with a cell for a name before the first exercise."""
    cells = [cell for cell in notebook["cells"] if not tags_of(cell, "solution")]
    first = next((index for index, cell in enumerate(cells) if tags_of(cell, "exercise")), None)
    if first is not None:
        name = {"cell_type": "code", "id": "your-name", "metadata": {}, "outputs": [], "execution_count": None}
        cells.insert(first, name | {"source": NAME_CELL})
    metadata = {key: value for key, value in notebook["metadata"].items() if key != "colab"}  # it names the solutions
    return notebook | {"cells": cells, "metadata": metadata}


def without_section(text: str, title: str) -> str:
    """Markdown text without the section of this heading. Raises ValueError if the text has no such section."""
    rest, found = re.subn(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    if not found:
        raise ValueError(f"the text has no section '## {title}'")
    return rest.rstrip() + "\n"


def without_files(contents: object, files: set[str]) -> object:
    """A table of contents without the entries of these files."""
    if isinstance(contents, list):
        return [without_files(e, files) for e in contents if not (isinstance(e, dict) and e.get("file") in files)]
    if isinstance(contents, dict):
        return {key: without_files(value, files) for key, value in contents.items()}
    return contents


def make_edition(kind: str, url: str, target: Path) -> str:
    """Write an edition into ``target``, in which only a ``.git`` is kept. Returns the address of the repository.

    Raises ValueError if the kind is not in ``KINDS``, or if the address is not on GitHub.
    """
    if kind not in KINDS:
        raise ValueError(f"the edition is {kind!r}; it should be one of {', '.join(KINDS)}")
    source = "https://github.com/{}/{}".format(*repository.read_address())
    url = url or f"{source}-{kind}"
    owner, name = repository.parse_address(url)
    target.mkdir(parents=True, exist_ok=True)
    for path in target.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, target / folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    for file in FILES:
        shutil.copy(ROOT / file, target)
    if kind == "student":
        strip(target)
    repository.set_repository(url, target)
    shutil.copy(ROOT / "CITATION.cff", target)  # a citation of the edition cites the book
    title = yaml.safe_load((target / "_config.yml").read_text(encoding="utf-8"))["title"]
    readme = README.format(
        title=title, kind=kind, site=f"https://{owner}.github.io/{name}/", url=url, name=name, source=source
    )
    (target / "README.md").write_text(readme, encoding="utf-8")
    return url


def strip(target: Path) -> None:
    """Remove the solutions and the pages for teachers from a copy of the book."""
    for path in (target / "book").glob("*.ipynb"):
        notebook = for_students(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    gone = [path for pattern in FOR_TEACHERS for path in target.glob(pattern)]
    for path in gone:
        path.unlink()
    contents = target / "_toc.yml"
    pages = {path.relative_to(target).with_suffix("").as_posix() for path in gone}
    rest = without_files(yaml.safe_load(contents.read_text(encoding="utf-8")), pages)
    contents.write_text(yaml.safe_dump(rest, sort_keys=False, allow_unicode=True), encoding="utf-8")
    intro = target / "book" / "intro.md"
    intro.write_text(without_section(intro.read_text(encoding="utf-8"), "Teach from it"), encoding="utf-8")


if __name__ == "__main__":
    kind, url = sys.argv[1], "".join(sys.argv[2:])
    try:
        print(f"The {kind} edition for {make_edition(kind, url, ROOT / '_build' / kind)}")
    except ValueError as error:
        sys.exit(f"No edition: {error}.")
