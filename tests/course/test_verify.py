"""Submitted notebooks are judged one by one: right and wrong answers, broken files, and names."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import edition
import pytest

from affscore_book.course import verify as command
from affscore_book.course.judge import run_apart
from affscore_book.course.submissions import Chapter
from affscore_book.course.verify import Row, grade, main

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = [Chapter(path) for path in sorted(BOOK.glob("*.ipynb"))]
# Every chapter weekly, with AFFSCORE_WEEKLY=1.
LABELS = ["relu-1d-build", "relu-1d-half", "relu-1d-step", "relu-1d-digits"]


def handed_in(
    path: Path, answers: dict[str, str], name: str = "", without: str = "none", chapter: str = "relu_1d"
) -> Path:
    """The student's notebook of a chapter with answers in place of starters, and without one exercise."""
    notebook = edition.for_students(json.loads((BOOK / f"{chapter}.ipynb").read_text(encoding="utf-8")))
    cells, label, left = [], "", dict(answers)
    for cell in notebook["cells"]:
        label = next(iter(edition.tags_of(cell, "exercise")), label)
        if cell["cell_type"] == "code" and label in left:
            cell = cell | {"source": left.pop(label)}
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
        "relu-1d-build": "while True:\n    pass",
    }  # fmt: skip
    bob = {
        "relu-1d-half": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
        "relu-1d-build": "from affscore import affinity_score\n"
        "equal = lambda x, y: (np.repeat(x, len(y)), np.repeat(y, len(x)))\n"
        "my_score = lambda x, y: affinity_score(*equal(x, y), covariance='empirical').item()",
    }
    folder = tmp_path_factory.mktemp("verify")
    paths = handed_in(folder / "ada.ipynb", ada, "Ada", without="relu-1d-digits"), handed_in(folder / "bob.ipynb", bob)
    return list(grade(paths, CHAPTERS, seconds=6))


@pytest.mark.weekly  # waits for answers that never end; one process judges an answer in test_rerun.py every time
def test_verdicts_are_apart_and_a_stopped_run_harms_no_other(rows):
    """Right, wrong, stopped and missing answers are told apart, and a run that ends harms no other student."""
    assert [row.exercise for row in rows] == LABELS * 2
    assert [row.verdict for row in rows[:4]] == ["stopped", "right", "wrong", "missing"]
    assert {(Path(row.file).name, row.student, row.chapter) for row in rows[:4]} == {("ada.ipynb", "Ada", "relu_1d")}
    assert [row.verdict for row in rows[4:]] == ["right", "error", "unchanged", "unchanged"]


def test_an_answer_meets_copies_of_the_book_and_another_home(tmp_path):
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
    found = run_apart({"seconds": 10, "steps": [step], "students": [("", {"half": [answer]})]}, tmp_path / "book")
    assert found[0, "half"][0] == "right"
    assert (tmp_path / "book" / "data" / "a.txt").exists()
    assert not Path("~", "left-behind").expanduser().exists()


def test_no_verdict_on_own_numbers_without_a_name(tmp_path, monkeypatch):
    """Without a readable name, an exercise with numbers of the student's own is not judged."""
    asked = []
    monkeypatch.setattr(command, "run_apart", lambda plan: asked.append(plan) or {(0, "relu-1d-step"): ("right", "")})
    own, book = ({label: f"# mine\n{label}" for label in labels} for labels in (["relu-1d-half"], ["relu-1d-step"]))
    path = handed_in(tmp_path / "a.ipynb", own | book, name='" + input() + "')
    found = {row.exercise: (row.verdict, row.detail) for row in grade([path], CHAPTERS)}
    assert found["relu-1d-step"] == ("right", "") and found["relu-1d-half"][0] == "error"
    assert found["relu-1d-half"][1].startswith("no name was found: ")
    assert [[list(answers) for _, answers in plan["students"]] for plan in asked] == [[["relu-1d-step"]]]


def test_unchanged_starters_and_broken_files_are_not_run(tmp_path, monkeypatch, capsys):
    """And a table has a line for each notebook, in which no name is a formula."""
    monkeypatch.setattr(command, "run_apart", None)
    handed_in(tmp_path / "b.ipynb", {"relu-1d-step": ""}, name="=Ada()")
    (tmp_path / "c.ipynb").write_text("%PDF")
    (tmp_path / "d.ipynb").write_text('{"cells": []}')
    os.mkfifo(tmp_path / "e.ipynb")
    assert main(["verify", str(tmp_path), "--out", str(tmp_path / "out.csv")]) == 0
    table, by_student = (
        [[Path(file).stem, *row] for file, *row in csv.reader((tmp_path / name).read_text().splitlines())]
        for name in ("out.csv", "out-by-student.csv")
    )
    assert tuple(table[0]) == Row._fields
    verdicts = ["unchanged", "unchanged", "missing", "unchanged"]
    assert [(row[0], row[4]) for row in table[1:]] == [
        *((name, "unreadable") for name in "cde"), *(("b", verdict) for verdict in verdicts)
    ]  # fmt: skip
    assert by_student[0] == ["file", "student", "right", *LABELS]
    assert by_student[1:] == [
        *([name, "", "0 of 0", *[""] * 4] for name in "cde"), ["b", "'=Ada()", "0 of 4", *verdicts]
    ]  # fmt: skip
    assert "0 of 4 answers in 4 notebooks are right" in capsys.readouterr().out


@pytest.mark.weekly
@pytest.mark.parametrize("name", [chapter.name for chapter in CHAPTERS if chapter.labels])
def test_books_solutions_are_right_for_book_and_student(tmp_path, name):
    """The book's solutions are right with the numbers of the book and with those of a student."""
    solved: dict[str, str] = {}
    for cell in json.loads((BOOK / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and (of := next(iter(edition.tags_of(cell, "solution")), "")):
            solved[of] = solved.get(of, "") + "".join(cell["source"]) + "\n"
    handed_in(tmp_path / "book.ipynb", solved, chapter=name)
    handed_in(tmp_path / "ada.ipynb", solved, "Ada Lovelace", chapter=name)
    rows = list(grade(sorted(tmp_path.glob("*.ipynb")), CHAPTERS))
    assert {row.student for row in rows} == {"", "Ada Lovelace"}
    assert [row for row in rows if row.verdict != "right"] == []


def test_what_cannot_be_done_is_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "."]) == 1
    assert "no notebook in" in capsys.readouterr().err
    monkeypatch.setattr(command, "BOOK", tmp_path)
    for given, says in (
        (["nowhere"], "no notebook or folder"),
        ([".", "--seconds", "-1"], "--seconds is -1"),
        ([".", "--seconds", "nan"], "--seconds is nan"),
        (["."], "a clone of the book"),
    ):
        with pytest.raises(SystemExit):
            main(["verify", *given])
        assert says in capsys.readouterr().err
    monkeypatch.undo()
    with pytest.raises(SystemExit):
        main(["verify", str(tmp_path), "--out", str(tmp_path / "nowhere" / "out.csv")])
    assert "cannot be written" in capsys.readouterr().err


def test_names_are_printed_for_any_terminal(tmp_path):
    """Escapes of a terminal are escaped, and what it cannot show is written by its number."""
    handed_in(tmp_path / "zoë.ipynb", {}, name=r"Zo\u00eb \x1b]0;owned\x07")
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from affscore_book.course.verify import main; sys.exit(main())",
         "verify", str(tmp_path), "--out", str(tmp_path / "out.csv")],
        env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode("ascii").splitlines()
    assert r"Zo\xeb \x1b]0;owned\x07" in lines[0] and r"zo\xeb.ipynb" in lines[0]
    assert all(line.isprintable() for line in lines) and "0 of 4 answers in 1 notebooks are right" in lines[-1]
    assert "Zoë" in (tmp_path / "out-by-student.csv").read_text(encoding="utf-8")


def test_importing_it_imports_no_torch():
    program = (
        "import sys, affscore_book.course.verify, affscore_book.course.variants; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
