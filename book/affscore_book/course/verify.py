"""The command ``affscore-book verify``: run the exercises of submitted notebooks again and write the verdicts as CSV.

It says which answers are right, and is no protection against cheating: the checks, whose source every student has,
compute the answers. A notebook is also somebody else's program: a copy of the book, a home folder of its own and a time
limit keep its accidents away from your files, not its malice. No answer is given what another one says or was told.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from affscore_book.course.judge import BOOK, Verdict, run_apart
from affscore_book.course.submissions import Cell, Chapter, answers, chapter_of, name_of, read_cells, starter

__all__ = ["Row", "by_student", "grade"]

NO_NAME = (
    "no name was found: student(...) gets something that only running the notebook would tell, so the numbers of this "
    "exercise are not known. Give the name there as plain text."
)

Answers = dict[str, list[str]]


class Row(NamedTuple):
    """A row of the table."""

    file: str
    student: str
    chapter: str
    exercise: str
    verdict: str
    detail: str


def grade(paths: Iterable[Path], chapters: Sequence[Chapter], seconds: float = 60) -> Iterator[Row]:
    """The verdict on each exercise of submitted notebooks: one chapter after the other.

    A verdict is "right", "wrong", "error" (no answer came, or the check could not read it), "stopped" (an answer ran
    longer than ``seconds``), "unchanged" (the starter as it was handed out), "missing" (the exercise is not there) or
    "unreadable" (the file is no notebook, or none of the book's).
    """
    submitted: dict[Chapter, list[tuple[str, list[Cell]]]] = {}
    for path in paths:
        try:
            cells = read_cells(path)
            submitted.setdefault(chapter_of(cells, chapters), []).append((str(path), cells))
        except ValueError as error:
            yield Row(str(path), "", "", "", "unreadable", str(error))
    for chapter, notebooks in submitted.items():
        given = [(name_of(cells), answers(cells, chapter)) for _, cells in notebooks]
        verdicts = judged(chapter, given, seconds)
        for number, (file, _) in enumerate(notebooks):
            for label in chapter.labels:
                verdict, detail = verdicts[number, label]
                yield Row(file, given[number][0] or "", chapter.name, label, verdict, " ".join(detail.split())[:300])


def judged(
    chapter: Chapter, given: Sequence[tuple[str | None, Answers]], seconds: float
) -> dict[tuple[int, str], Verdict]:
    """The verdicts on the answers (name, code by label) to one chapter, by number and label.

    Where the name is None, an exercise with numbers of the student's own is not judged.
    """
    verdicts: dict[tuple[int, str], Verdict] = {}
    for number, (name, found) in enumerate(given):
        for label, code in chapter.steps:
            if label and not found.get(label):
                verdicts[number, label] = "missing", ""
            elif label and "\n".join(found[label]).split() == code.split():
                verdicts[number, label] = "unchanged", ""
            elif label and name is None and "variant(" in code:
                verdicts[number, label] = "error", NO_NAME
    steps = [
        {"label": label, "setup": code} | (starter(code)._asdict() if label else {}) for label, code in chapter.steps
    ]
    left = [(n, label) for label in chapter.labels for n in range(len(given)) if (n, label) not in verdicts]
    if not left:
        return verdicts
    students = [(name or "", {label: found[label] for label in found if (number, label) in left})
                for number, (name, found) in enumerate(given)]  # fmt: skip
    return verdicts | run_apart({"seconds": seconds, "steps": steps, "students": students})


def _notebooks(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]


def _cell(text: str) -> str:
    """A text that a spreadsheet would take for a formula has an apostrophe before it."""
    return f"'{text}" if re.match(r"\s*[=+@-].", text) else text


def _shown(text: str) -> str:
    """A text for a terminal, for which a name may hold commands: control characters are escaped."""
    return text if text.isprintable() else repr(text)[1:-1]


def by_student(rows: Sequence[Row]) -> list[list[str]]:
    """A line for each notebook: its file, the student, how many answers are right, and the verdict on each exercise."""
    labels = list(dict.fromkeys(row.exercise for row in rows if row.exercise))
    lines = [["file", "student", "right", *labels]]
    for file in dict.fromkeys(row.file for row in rows):
        mine = [row for row in rows if row.file == file]
        verdicts = {row.exercise: row.verdict for row in mine}
        right = f"{sum(row.verdict == 'right' for row in mine)} of {sum(bool(row.exercise) for row in mine)}"
        lines.append([file, mine[0].student, right, *(verdicts.get(label, "") for label in labels)])
    return lines


def _write(file: Path, rows: Iterable[Sequence[str]]) -> None:
    with file.open("w", newline="", encoding="utf-8", errors="backslashreplace") as out:
        csv.writer(out).writerows([map(_cell, row) for row in rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 1 if there was no notebook to judge."""
    top = argparse.ArgumentParser(prog="affscore-book", description="What a course with the book needs.")
    one = top.add_subparsers(required=True, metavar="command").add_parser(
        "verify",
        help="run the exercises of submitted notebooks again, and write the verdicts as CSV",
        description="Judges what each answer gave to its check when it called it last, or else its names my_...",
    )
    one.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK", help="a notebook, or a folder of them")
    text = "the file to write (verdicts.csv); NAME-by-student.csv beside it has a line a notebook"
    one.add_argument("--out", type=Path, default=Path("verdicts.csv"), help=text)
    one.add_argument("--seconds", type=float, default=60, help="what each answer may take (60)")
    options = top.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may not have all characters of a name
    if not 0 < options.seconds < math.inf:
        top.error(f"--seconds is {options.seconds:g}; it should be a finite number greater than 0.")
    for path in options.notebooks:
        if not path.exists():
            top.error(f"there is no notebook or folder {path}.")
    chapters = [Chapter(path) for path in sorted(BOOK.glob("*.ipynb"))]
    if not chapters:
        top.error(f"{BOOK} has no notebooks; verify works in a clone of the book, not in an installed package.")
    try:
        _write(options.out, [Row._fields])
    except OSError as error:
        top.error(f"--out is {options.out}, which cannot be written: {error.strerror}.")
    rows: list[Row] = []
    for row in grade(_notebooks(options.notebooks), chapters, options.seconds):
        rows.append(row)
        _write(options.out, [Row._fields, *rows])
        print(*map(_shown, row[:5]), sep="  ")
    if not rows:
        print(f"no notebook in {', '.join(_shown(str(path)) for path in options.notebooks)}", file=sys.stderr)
        return 1
    table = options.out.with_name(f"{options.out.stem}-by-student{options.out.suffix}")
    _write(table, by_student(rows))
    print(f"{sum(row.verdict == 'right' for row in rows)} of {sum(bool(row.exercise) for row in rows)} answers in "
          f"{len({row.file for row in rows})} notebooks are right: {options.out}, {table}")  # fmt: skip
    return 0
