"""Right answers are accepted, wrong ones get a hint."""

import numpy as np
import pytest
from answers import accepted

from affscore_book.decade import exercises
from affscore_book.decade.collection import Course
from affscore_book.kit.sequences import dtw

YEARS, MEANS, NORMED = [2012, 2014, 2015, 2016, 2018], [0.9, 0.5, 0.7, 0.6, 0.8], [False, True, True, True, True]
STEPS = np.array([0, 1, 10, 99])
COURSE = Course(STEPS, np.array([[1.0, 0.5], [0.9, 0.7], [0.6, 0.8], [0.4, 0.8]]), STEPS)
#: The first call rises by more than it falls in the end.
AWAY = Course(STEPS, np.array([[0.8, 0.5], [0.9, 0.5], [0.85, 0.8], [0.7, 0.8]]), STEPS)
NORMS, PLAIN = [0.7, 0.72, 0.74], [0.6, 0.62, 0.71]

test_right_answers_are_accepted = accepted({
    "build": lambda: exercises.check_build(dtw),
    "trend": lambda: exercises.check_trend(0.8, YEARS, MEANS, NORMED),
    "split": lambda: exercises.check_split(2 / 20, NORMS, PLAIN),
    "half way": lambda: exercises.check_half_way([10, 1], COURSE),
    "half way, after a detour": lambda: exercises.check_half_way([99, 10], AWAY),
})  # fmt: skip


def squares_of_the_shorter(one, other):
    return np.sqrt(np.mean([(a - b) ** 2 for a, b in zip(one, other, strict=False)]))


@pytest.mark.parametrize(("hint", "check"), [
    ("root of the cheapest sum", lambda: exercises.check_build(lambda one, other: dtw(one, other) ** 2)),
    ("1 and 4 calls", lambda: exercises.check_build(squares_of_the_shorter)),
    ("over all of them", lambda: exercises.check_trend(-0.1, YEARS, MEANS, NORMED)),
    ("our own naming", lambda: exercises.check_split(1 / 20, NORMS, PLAIN)),
    ("there are 20 ways", lambda: exercises.check_split(0.0, NORMS, PLAIN)),
    ("numbers of the moments", lambda: exercises.check_half_way([2, 1], COURSE)),
    ("there are 2 calls", lambda: exercises.check_half_way([10], COURSE)),
    ("keep the signs", lambda: exercises.check_half_way([1, 10], AWAY)),
])  # fmt: skip
def test_a_wrong_answer_has_the_hint_of_its_mistake(hint, check, capsys):
    check()
    said = capsys.readouterr().out
    assert said.startswith("Not yet: ") and hint in said
