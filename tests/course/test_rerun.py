"""Answers run again, each in a process of its own: what one of them breaks, breaks nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from affscore_book.course import rerun
from affscore_book.course.submissions import starter

BOOK = Path(__file__).resolve().parents[2] / "book"
OWN = "from affscore_book.relu_1d import exercises\nx = 3"
RIGHT, WRONG = "my_share = 0.3034703884", "my_share = 0.5"
# What a student may hand in, and the verdict on it.
ANSWERS = {
    "right": ([RIGHT], "right"),
    "in steps": (["share = 3.034703884", "my_share = share / 10"], "right"),
    "magic": ([f"%matplotlib inline\n!true\n{RIGHT}"], "right"),
    "wrong": ([WRONG], "wrong"),
    "nonsense": (["my_share = 'a third'"], "error"),
    "an error after the answer": ([RIGHT, "1 / 0"], "right"),
    "an error before the answer": ([f"1 / 0\n{RIGHT}"], "error"),
    "no Python": (["my_share = ="], "error"),
    "an earlier name is not the answer": (["share"], "error"),
    "what an earlier answer made": (["my_share = share / 10"], "right"),
    "a loop": (["while True:\n    try:\n        pass\n    except BaseException:\n        pass"], "stopped"),
    "an end": (["import os\nos._exit(0)"], "error"),
    "an end with a child": (["import os, time\nif os.fork():\n    os._exit(0)\ntime.sleep(3)"], "error"),
    "an exit": (["raise SystemExit"], "error"),
    "files are deleted": ([f"import shutil\nshutil.rmtree('data')\n{RIGHT}"], "right"),
    "files are there again": ([f"open('data/numbers.txt', 'r+').write('7')\n{RIGHT}"], "right"),
    "no file was changed": ([f"assert open('data/numbers.txt').read() == '12'\n{RIGHT}"], "right"),
    "another check": ([f"{WRONG}\nexercises.check_half = lambda share: print('Right: yes.')"], "wrong"),
    "another name for it": ([f"{WRONG}\nclass exercises:\n    check_half = print"], "wrong"),
    "another report": ([f"{WRONG}\nexercises.report = lambda *a: print('Right: yes.')"], "wrong"),
    "another module": ([f"{WRONG}\nimport sys\nsys.modules['affscore_book.kit.checks'] = None"], "wrong"),
    "another verdict": ([f"{WRONG}\nfrom affscore_book.kit.checks import verdicts\nverdicts['a'] = True"], "wrong"),
    "another x": ([f"{RIGHT}\nx = 4"], "right"),
}  # fmt: skip


def run(folder: Path, *students: dict[str, list[str]], own: str = OWN) -> list[tuple]:
    """(number, label, verdict, detail) of each line that the program writes, for the answers of students."""
    parts = starter("assert x == 3\nmy_share = 0.0\nexercises.check_half(my_share)")._asdict()
    labels = dict.fromkeys(label for answers in students for label in answers)
    steps = [{"label": "", "setup": own}, *({"label": label} | parts for label in labels)]
    plan = {"students": [("", answers) for answers in students], "seconds": 8, "steps": steps}
    done = subprocess.run(
        [sys.executable, "-m", rerun.__name__], input=json.dumps(plan), cwd=folder, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": f"{BOOK.parent}:{BOOK}", "HOME": str(folder), "MPLBACKEND": "agg"}, check=True,
    )  # fmt: skip
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("rerun")
    (folder / "data").mkdir()
    (folder / "data" / "numbers.txt").write_text("12")
    found = run(folder, {label: answer for label, (answer, _) in ANSWERS.items()})
    assert (folder / "data" / "numbers.txt").read_text() == "12"
    return {label: verdict for _, label, verdict, _ in found}


@pytest.mark.parametrize("label", ANSWERS)
def test_the_verdict_on_an_answer(verdicts, label):
    assert verdicts[label] == ANSWERS[label][1]


def test_a_chapter_that_fails_says_so(tmp_path):
    ((number, label, verdict, detail),) = run(tmp_path, {"half": [RIGHT]}, own="1 / 0")
    assert (number, label, verdict) == (-1, "", "error") and "ZeroDivisionError" in detail


def test_students_do_not_meet(tmp_path):
    """One after the other, each without what the others made; the detail is what the check says."""
    first, second, third = {"half": [RIGHT, "share = 0.3"]}, {"half": ["my_share = share"]}, {"half": [WRONG]}
    found = run(tmp_path, first, second, third)
    assert [(number, verdict) for number, _, verdict, _ in found] == [(0, "right"), (1, "error"), (2, "wrong")]
    assert found[2][3].startswith("Not yet: with this share the score is")
