"""The command ``affscore-book verify``: run the exercises of submitted notebooks again and write the verdicts as CSV.

It says which answers are right, and is no protection against cheating: the checks, whose source every student has,
compute the answers. A notebook is also somebody else's program: a copy of the book, a home folder of its own and a time
limit keep its accidents away from your files, not its malice.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from affscore_book.course.submissions import Cell, Chapter, answers, chapter_of, name_of, read_cells, starter

__all__ = ["Row", "grade", "run_apart"]

BOOK = Path(__file__).resolve().parents[2]
CHAPTER_SECONDS = 900

Answers = dict[str, list[str]]
Verdict = tuple[str, str]


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
                yield Row(file, given[number][0], chapter.name, label, verdict, " ".join(detail.split())[:300])


def judged(chapter: Chapter, given: Sequence[tuple[str, Answers]], seconds: float) -> dict[tuple[int, str], Verdict]:
    """The verdicts on the answers (name, code by label) to one chapter, by number and label."""
    verdicts: dict[tuple[int, str], Verdict] = {}
    for number, (_, found) in enumerate(given):
        for label, code in chapter.steps:
            if label and not found.get(label):
                verdicts[number, label] = "missing", ""
            elif label and "\n".join(found[label]).split() == code.split():
                verdicts[number, label] = "unchanged", ""
    steps = [
        {"label": label, "setup": code} | (starter(code)._asdict() if label else {}) for label, code in chapter.steps
    ]
    # An answer may end the whole run, or break its folder. What comes after it is run again, without it.
    while left := [(n, label) for label in chapter.labels for n in range(len(given)) if (n, label) not in verdicts]:
        students = [(name, {label: found[label] for label in found if (number, label) in left})
                    for number, (name, found) in enumerate(given)]  # fmt: skip
        new = run_apart({"seconds": seconds, "steps": steps, "students": students})
        if failed := new.pop((-1, ""), None):
            new = dict.fromkeys(left, failed) | new
        verdicts |= new or {left[0]: ("error", "the run ended with it.")}
    return verdicts


def run_apart(plan: dict[str, Any]) -> dict[tuple[int, str], Verdict]:
    """Verdicts by number and label, from a process in a temporary copy of the book that is not left running."""
    ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "_static", ".*")
    limit = CHAPTER_SECONDS + 2 * plan["seconds"] * sum(len(given) for _, given in plan["students"])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for source in (BOOK.parent / "affscore", BOOK):
            shutil.copytree(source, Path(folder, source.name), ignore=ignored)
        home = Path(folder, "home")
        home.mkdir()
        own = {"PYTHONPATH": f"{folder}:{folder}/book", "HOME": str(home), "TMPDIR": str(home)}
        process = subprocess.Popen(
            [sys.executable, "-m", "affscore_book.course.rerun"],
            cwd=Path(folder, "book"),
            env=os.environ | own | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            text = process.communicate(json.dumps(plan), timeout=limit)[0]
        except subprocess.TimeoutExpired:
            _end(process.pid)
            text = process.communicate()[0]
        finally:
            _end(process.pid)
    lines = map(json.loads, text.splitlines())
    return {(number, label): (verdict, detail) for number, label, verdict, detail in lines}


def _end(group: int) -> None:
    """End what an answer may have left running."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _notebooks(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status."""
    top = argparse.ArgumentParser(prog="affscore-book", description="What a course with the book needs.")
    one = top.add_subparsers(required=True, metavar="command").add_parser(
        "verify", help="run the exercises of submitted notebooks again, and write the verdicts as CSV"
    )
    one.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK", help="a notebook, or a folder of them")
    one.add_argument("--out", type=Path, default=Path("verdicts.csv"), help="the file to write (verdicts.csv)")
    one.add_argument("--seconds", type=float, default=60, help="what each answer may take (60)")
    options = top.parse_args(arguments)
    chapters = [Chapter(path) for path in sorted(BOOK.glob("*.ipynb"))]
    if not chapters:
        top.error(f"{BOOK} has no notebooks; verify works in a clone of the book, not in an installed package.")
    with options.out.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        table = csv.writer(file)
        table.writerow(Row._fields)
        for row in grade(_notebooks(options.notebooks), chapters, options.seconds):
            table.writerow(row)
            file.flush()
            print(*row[:5], sep="  ")
    return 0
