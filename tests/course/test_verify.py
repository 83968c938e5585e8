"""Submitted notebooks are judged one by one: right and wrong answers, broken files, and names."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import edition
import pytest

from affscore_book.course import verify as command
from affscore_book.course.submissions import Chapter
from affscore_book.course.verify import Row, grade, main, run_apart

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = [Chapter(path) for path in sorted(BOOK.glob("*.ipynb"))]
LABELS = ["relu-1d-half", "relu-1d-step", "relu-1d-blame", "relu-1d-digits"]


def handed_in(path: Path, answers: dict[str, str], name: str = "", without: str = "") -> Path:
    """The student's notebook of a chapter with answers in place of starters, and without one exercise."""
    notebook = edition.for_students(json.loads((BOOK / "relu_1d.ipynb").read_text(encoding="utf-8")))
    cells, label = [], ""
    for cell in notebook["cells"]:
        label = next(iter(edition.tags_of(cell, "exercise")), label)
        if cell["cell_type"] == "code" and label in answers:
            cell = cell | {"source": answers[label]}
        if cell["cell_type"] == "code" and cell.get("id") == "your-name":
            cell = cell | {"source": "".join(cell["source"]).replace('""', f'"{name}"')}
        cells += [cell] if label != without else []
    path.write_text(json.dumps(notebook | {"cells": cells}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> list[Row]:
    """Ada: a right answer without its check, a wrong one with its own, a loop, and nothing. Bob ends what runs him."""
    ada = {
        "relu-1d-half": "from scipy.optimize import brentq\n"
        "my_share = brentq(lambda p: p * (3 - 2 * p) ** 2 / (4 - 3 * p) - (1 - (1 - wanted) ** 2) ** 2, 0, 1)",
        "relu-1d-step": "exercises.check_step = lambda score: print('Right')\n"
        "my_score = 0\nexercises.check_step(my_score)",
        "relu-1d-blame": "while True:\n    pass",
    }  # fmt: skip
    bob = {
        "relu-1d-half": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
        "relu-1d-blame": "my_part = 0.92",
    }
    folder = tmp_path_factory.mktemp("verify")
    paths = handed_in(folder / "ada.ipynb", ada, "Ada", without="relu-1d-digits"), handed_in(folder / "bob.ipynb", bob)
    return list(grade(paths, CHAPTERS, seconds=10))


def test_right_wrong_stopped_and_missing_are_told_apart(rows):
    assert [row.exercise for row in rows] == LABELS * 2
    assert [row.verdict for row in rows[:4]] == ["right", "wrong", "stopped", "missing"]
    assert {(Path(row.file).name, row.student, row.chapter) for row in rows[:4]} == {("ada.ipynb", "Ada", "relu_1d")}


def test_an_answer_that_ends_the_run_costs_the_others_nothing(rows):
    assert [row.verdict for row in rows[4:]] == ["error", "unchanged", "right", "unchanged"]


def test_an_answer_meets_copies_of_the_book_and_another_home(tmp_path, monkeypatch):
    answer = """
import os, shutil
from pathlib import Path
assert Path("data", "a.txt").exists()
shutil.rmtree("data")
Path("~", "left-behind").expanduser().touch()
my_share = 0.3034703884"""
    check = {"names": ["my_share"], "check": "exercises.check_half(my_share)"}
    step = {"label": "half", "setup": "from affscore_book.relu_1d import exercises"} | check
    for name in ("affscore", "book/affscore_book"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(BOOK.parent / name)
    (tmp_path / "book" / "data").mkdir()
    (tmp_path / "book" / "data" / "a.txt").touch()
    monkeypatch.setattr(command, "BOOK", tmp_path / "book")
    found = run_apart({"seconds": 10, "steps": [step], "students": [("", {"half": [answer]})]})
    assert found[0, "half"][0] == "right"
    assert (tmp_path / "book" / "data" / "a.txt").exists()
    assert not Path("~", "left-behind").expanduser().exists()


def test_unchanged_starters_and_broken_files_are_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "run_apart", None)
    handed_in(tmp_path / "b.ipynb", {"relu-1d-step": ""})
    (tmp_path / "c.ipynb").write_text("%PDF")
    (tmp_path / "d.ipynb").write_text('{"cells": []}')
    out = tmp_path / "out.csv"
    assert main(["verify", str(tmp_path), str(tmp_path / "e.ipynb"), "--out", str(out)]) == 0
    with out.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert tuple(table[0]) == Row._fields
    assert [(Path(row["file"]).stem, row["verdict"]) for row in table] == [
        ("c", "unreadable"), ("d", "unreadable"), ("e", "unreadable"), 
        ("b", "unchanged"), ("b", "missing"), ("b", "unchanged"), ("b", "unchanged"),
    ]  # fmt: skip


def test_without_the_notebooks_of_the_book_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "BOOK", tmp_path)
    with pytest.raises(SystemExit):
        main(["verify", str(tmp_path), "--out", str(tmp_path / "out.csv")])
    assert "a clone of the book" in capsys.readouterr().err


def test_importing_it_imports_no_torch():
    program = (
        "import sys, affscore_book.course.verify, affscore_book.course.variants\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
