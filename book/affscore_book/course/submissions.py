"""What a submitted notebook answers, read beside the notebook of the book: nothing is run here."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from affscore_book.course.names import name_given

__all__ = ["Cell", "Chapter", "Starter", "answers", "chapter_of", "name_of", "read_cells", "starter"]

COLAB = "google.colab"
TITLE = re.compile(r"### Exercise: ([^\n]+)")


class Cell(NamedTuple):
    """A cell: "code" or "markdown", its text, its tags."""

    kind: str
    source: str
    tags: tuple[str, ...] = ()


class Starter(NamedTuple):
    """The starter of an exercise: what it prepares, the names that an answer gives, and the check of them."""

    setup: str
    names: tuple[str, ...]
    check: str


def read_cells(path: Path) -> list[Cell]:
    """The cells of a notebook. Raises ValueError if the file is none."""
    if not path.is_file():  # a named pipe would be waited for
        raise ValueError(f"{path.name} is not a notebook (no regular file).")
    try:
        cells = json.loads(path.read_text(encoding="utf-8-sig"))["cells"]  # an editor may have put a mark first
        return [
            Cell(
                cell["cell_type"],
                "".join(cell["source"]).encode(errors="replace").decode(),  # half a character is no text
                tuple(map(str, cell.get("metadata", {}).get("tags", ()))),
            )
            for cell in cells
        ]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path.name} is not a notebook ({type(error).__name__}).") from error


def starter(code: str) -> Starter:
    """Take the starter of an exercise apart: names of answers begin with ``my_``, checks with ``exercises.check_``.

    >>> starter("x = 1\\nmy_y = 0.0  # your answer\\nexercises.check_half(x, my_y)")
    Starter(setup='x = 1', names=('my_y',), check='exercises.check_half(x, my_y)')
    """
    setup, names, check = [], [], []
    for statement in ast.parse(code).body:
        text, given = ast.unparse(statement), _given(statement)
        if given and all(name.startswith("my_") for name in given):
            names += given
        elif text.startswith("exercises.check_"):
            check.append(text)
        else:
            setup.append(text)
    return Starter("\n".join(setup), tuple(names), "\n".join(check))


def _given(statement: ast.stmt) -> list[str]:
    """The names that a statement assigns or defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


class Chapter:
    """A notebook of the book as it was handed out: its own code and its exercises, in order, without solutions."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        cells = [cell for cell in read_cells(path) if COLAB not in cell.source]
        self.titles = {match[1].strip(): _label(cell) for cell in cells if (match := TITLE.match(cell.source))}
        self.headings = {_first_line(cell) for cell in cells if cell.kind == "markdown" and cell.source.startswith("#")}
        #: (label, code) for each piece of code; the label of the chapter's own code is "".
        self.steps: list[tuple[str, str]] = []
        for label, cell in self.sorted(cells):
            if label and self.steps and self.steps[-1][0] == label:
                self.steps[-1] = label, f"{self.steps[-1][1]}\n{cell.source}"
            else:
                self.steps.append((label, cell.source))

    @property
    def labels(self) -> list[str]:
        """The labels of the exercises."""
        return [label for label, _ in self.steps if label]

    def exercise(self, cell: Cell) -> str:
        """The label of the exercise that begins with this cell, by its tag or else by its title; "" for none."""
        title = TITLE.match(cell.source)
        label = _label(cell)
        return label if label in self.titles.values() else self.titles.get(title[1].strip() if title else "", "")

    def sorted(self, cells: Iterable[Cell]) -> Iterator[tuple[str, Cell]]:
        """Each code cell, but those of solutions, with the label of the exercise in whose section it stands."""
        label = ""
        for cell in cells:
            if any(tag.startswith("solution:") for tag in cell.tags):
                label = ""
            elif cell.kind == "code":
                yield label, cell
            elif found := self.exercise(cell):
                label = found
            elif _first_line(cell) in self.headings:
                label = ""


def _label(cell: Cell) -> str:
    return next((tag.partition(":")[2] for tag in cell.tags if tag.startswith("exercise:")), "")


def _first_line(cell: Cell) -> str:
    return cell.source.partition("\n")[0].strip()


def chapter_of(cells: list[Cell], chapters: Iterable[Chapter]) -> Chapter:
    """The chapter with most exercises in a notebook. Raises ValueError if there is none."""
    found = {chapter: {chapter.exercise(cell) for cell in cells} - {""} for chapter in chapters}
    best = max(found, key=lambda chapter: len(found[chapter]))
    if not found[best]:
        raise ValueError("it has no exercise of the book.")
    return best


def name_of(cells: list[Cell]) -> str | None:
    """The name that a notebook gives to ``student(...)``, the last one; "" for none, None for one that is computed.

    >>> name_of([Cell("code", 'student("Ada")  # your name')])
    'Ada'
    """
    return name_given(cell.source for cell in cells if cell.kind == "code")


def answers(cells: list[Cell], chapter: Chapter) -> dict[str, list[str]]:
    """Maps the label of each exercise that is there to the code that stands in its section."""
    found: dict[str, list[str]] = {label: [] for cell in cells if (label := chapter.exercise(cell))}
    for label, cell in chapter.sorted(cells):
        if label and cell.source.strip():
            found[label].append(cell.source)
    return found
