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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from affscore_book.course.submissions import Chapter, answers, chapter_of, name_of, read_cells, starter

__all__ = ["grade", "run_apart"]

BOOK = Path(__file__).resolve().parents[2]
COLUMNS = ("file", "student", "chapter", "exercise", "verdict", "detail")
CHAPTER_SECONDS = 900


def grade(path: Path, chapters: Sequence[Chapter], seconds: float = 60) -> list[dict[str, str]]:
    """The verdict on each exercise of a submitted notebook, as rows with the keys of ``COLUMNS``.

    A verdict is "right", "wrong", "error" (no answer came, or the check could not read it), "stopped" (an answer ran
    longer than ``seconds``), "unchanged" (the starter as it was handed out), "missing" (the exercise is not there) or
    "unreadable" (the file is no notebook, or none of the book's).
    """
    row = dict.fromkeys(COLUMNS, "") | {"file": path.name}
    try:
        cells = read_cells(path)
        chapter = chapter_of(cells, chapters)
    except ValueError as error:
        return [row | {"verdict": "unreadable", "detail": str(error)}]
    given = answers(cells, chapter)
    row |= {"student": name_of(cells), "chapter": chapter.name}
    verdicts, steps = dict[str, tuple[str, str]](), list[dict[str, Any]]()
    for label, code in chapter.steps:
        if not label:
            steps.append({"setup": code})
            continue
        parts = starter(code)
        if label not in given:
            verdicts[label] = "missing", ""
        elif "\n".join(given[label]).split() == code.split():
            verdicts[label] = "unchanged", ""
        answer = [] if label in verdicts else given[label]
        steps.append({"label": label, "answer": answer} | parts._asdict())
    if len(verdicts) < len(chapter.labels):
        found = run_apart({"student": row["student"], "seconds": seconds, "steps": steps})
        failed = found.pop("", ("error", "the run ended before it."))
        verdicts |= {label: found.get(label, failed) for label in chapter.labels if label not in verdicts}
    return [
        row | {"exercise": label, "verdict": verdicts[label][0], "detail": " ".join(verdicts[label][1].split())[:300]}
        for label in chapter.labels
    ]


def run_apart(plan: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Maps labels to (verdict, detail), from a process in a temporary copy of the book that is not left running."""
    ignored = shutil.ignore_patterns("__pycache__", "*.ipynb", "_static", ".*")
    answered = sum(bool(step.get("answer")) for step in plan["steps"])
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
            text = process.communicate(json.dumps(plan), timeout=CHAPTER_SECONDS + answered * plan["seconds"])[0]
        except subprocess.TimeoutExpired:
            _end(process.pid)
            text = process.communicate()[0]
        finally:
            _end(process.pid)
    return {label: (verdict, detail) for label, verdict, detail in map(json.loads, text.splitlines())}


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
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for path in _notebooks(options.notebooks):
            rows = grade(path, chapters, options.seconds)
            table.writerows(rows)
            file.flush()
            print(f"{path}: {sum(row['verdict'] == 'right' for row in rows)} of {len(rows)} right")
    return 0
