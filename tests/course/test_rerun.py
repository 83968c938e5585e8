"""Answers run again, each in a process of its own: what one of them breaks, breaks nothing else."""

import os
from pathlib import Path

import pytest

from affscore_book.course import rerun
from affscore_book.course.judge import run_apart
from affscore_book.course.submissions import starter

BOOK = Path(__file__).resolve().parents[2] / "book"
OWN = "from affscore_book.relu_1d import exercises\nx = 3"
RIGHT, WRONG = "my_share = 0.3034703884", "my_share = 0.5"
PASS = "from affscore_book.kit.checks import report\ndef passing(*given):\n    report('half', True, '', '')"
# What a student may hand in, and the verdict on it.
ANSWERS = {
    "right": ([RIGHT], "right"),
    "in steps": (["share = 3.034703884", "my_share = share / 10"], "right"),
    "magic": ([f"%time\n!true\n{RIGHT}"], "right"),
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
    "no file was changed": ([f"assert open('data/numbers.txt').read() == '12'\n{RIGHT}"], "right"),
    "another check": ([f"{WRONG}\n{PASS}\nexercises.check_half = passing"], "wrong"),
    "another name for it": ([f"{WRONG}\n{PASS}\nclass exercises:\n    check_half = passing"], "wrong"),
    "another module": ([f"{WRONG}\nimport sys\nsys.modules['affscore_book.kit.checks'] = None"], "wrong"),
    "another verdict": ([f"{WRONG}\nfrom affscore_book.kit.checks import verdicts\nverdicts['a'] = True"], "wrong"),
    "another x": ([f"{RIGHT}\nx = 4"], "right"),
    "straight to the check": (["share = 0.3034703884\nexercises.check_half(share)"], "right"),
    "by the name of the parameter": (["exercises.check_half(share=0.3034703884)"], "right"),
    "the starter still above": (["my_share = 0.0\nexercises.check_half(0.3034703884)"], "right"),
    "the last call counts": (["exercises.check_half(0.3034703884)\nexercises.check_half(0.5)"], "wrong"),
    "a check that cannot be called": ([f"{RIGHT}\nexercises.check_half()"], "right"),
    "a long message": (["raise ValueError('x' * 300000)"], "error"),
    "another kind of number": (["from fractions import Fraction\nmy_share = Fraction('0.3034703884')"], "right"),
    "after a reload": (
        ["import importlib\nimportlib.reload(exercises)\nexercises.check_half(0.3034703884)"], "right"
    ),
    "the check by its own name": (
        ["from affscore_book.relu_1d.exercises import check_half\ncheck_half(0.3034703884)"], "right"
    ),
    "a thread goes on": (
        [f"{RIGHT}\nimport threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()"], "right"
    ),
    "other builtins": ([f"{WRONG}\nimport builtins\nbuiltins.all = lambda values: True"], "wrong"),
    "junk in the results": (
        ["import os\nfor number in range(3, 64):\n    try:\n        os.write(number, b'junk\\n')\n"
         f"    except OSError:\n        pass\n{RIGHT}"], "right"
    ),
}  # fmt: skip
# Each takes a process of its own. One of each kind every time, all of them weekly.
OFTEN = (
    "right", "in steps", "wrong", "nonsense", "an error before the answer", "no Python", "what an earlier answer made",
    "a loop", "an end", "files are deleted", "another check", "the last call counts", "a long message",
    "after a reload", "a thread goes on", "junk in the results",
)  # fmt: skip
LABELS = tuple(ANSWERS) if os.environ.get("AFFSCORE_WEEKLY") else OFTEN


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> dict[tuple[int, str], tuple[str, str]]:
    """(verdict, detail) by number and label of what the program writes for three students; then the chapter fails."""
    folder = tmp_path_factory.mktemp("rerun") / "book"
    for name in ("affscore", "book/affscore_book"):
        (folder.parent / name).parent.mkdir(exist_ok=True)
        (folder.parent / name).symlink_to(BOOK.parent / name)
    (folder / "data").mkdir()
    (folder / "data" / "numbers.txt").write_text("12")
    parts = starter("assert x == 3\nmy_share = 0.0\nexercises.check_half(my_share)")._asdict()
    first = {label: ANSWERS[label][0] for label in LABELS} | {"after it fails": [RIGHT]}
    students = [("", first), ("", {"what an earlier answer made": ["my_share = share / 10"]}), ("", {"wrong": [WRONG]})]
    own, end = ({"label": "", "setup": code} for code in (f"%matplotlib inline\n{OWN}", "1 / 0"))
    plan = {"students": students, "seconds": 6, "steps": [own, *({"label": label} | parts for label in LABELS)]}
    last = [end, {"label": "after it fails"} | parts]
    found = run_apart(plan | {"steps": plan["steps"] + last}, folder)
    assert (folder / "data" / "numbers.txt").read_text() == "12"
    return found


@pytest.mark.parametrize("label", LABELS)
def test_the_verdict_on_an_answer(lines, label):
    assert lines[0, label][0] == ANSWERS[label][1]


def test_a_long_message_is_cut(lines):
    assert len(lines[0, "a long message"][1]) == rerun.DETAIL


def test_students_are_separate_and_see_what_the_check_says(lines):
    """A student's run holds nothing of another student's, and the check's words are reported."""
    assert lines[1, "what an earlier answer made"][0] == "error"
    assert lines[2, "wrong"][1].startswith("Not yet: with this share the score is")


def test_a_chapter_that_fails_says_so(lines):
    verdict, detail = lines[0, "after it fails"]
    assert verdict == "error" and "ZeroDivisionError" in detail
