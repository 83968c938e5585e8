"""Right answers are accepted, wrong ones get a hint."""

from __future__ import annotations

import numpy as np
from answers import accepted, refused
from grids import each

from affscore_book.decade import exercises
from affscore_book.decade.collection import Course
from affscore_book.decade.variance import profile

YEARS, MEANS, NORMED = [2012, 2014, 2015, 2016, 2018], [0.9, 0.5, 0.7, 0.6, 0.8], [False, True, True, True, True]
STEPS = np.array([0, 1, 10, 99])
COURSE = Course(STEPS, np.array([[1.0, 0.5], [0.9, 0.7], [0.6, 0.8], [0.4, 0.8]]), STEPS)
#: The first call rises by more than it falls in the end.
AWAY = Course(STEPS, np.array([[0.8, 0.5], [0.9, 0.5], [0.85, 0.8], [0.7, 0.8]]), STEPS)
NORMS, PLAIN = [0.7, 0.72, 0.74], [0.6, 0.62, 0.71]

RIGHT = {
    "build": lambda: exercises.check_build(lambda one, other: np.sqrt(np.mean((profile(one) - profile(other)) ** 2))),
    "trend": lambda: exercises.check_trend(0.8, YEARS, MEANS, NORMED),
    "split": lambda: exercises.check_split(2 / 20, NORMS, PLAIN),
    "half way": lambda: exercises.check_half_way([10, 1], COURSE),
    "half way, after a detour": lambda: exercises.check_half_way([99, 10], AWAY),
}
WRONG = {
    "no root": lambda: exercises.check_build(lambda one, other: np.mean((profile(one) - profile(other)) ** 2)),
    "cut to the shorter": lambda: exercises.check_build(
        lambda one, other: np.sqrt(np.mean([(a - b) ** 2 for a, b in zip(one, other, strict=False)]))
    ),
    "all networks": lambda: exercises.check_trend(-0.1, YEARS, MEANS, NORMED),
    "own one forgotten": lambda: exercises.check_split(1 / 20, NORMS, PLAIN),
    "none": lambda: exercises.check_split(0.0, NORMS, PLAIN),
    "moments": lambda: exercises.check_half_way([2, 1], COURSE),
    "one call": lambda: exercises.check_half_way([10], COURSE),
    "without signs": lambda: exercises.check_half_way([1, 10], AWAY),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)


@each(("answer", "hint"), [
    ("all networks", "over all of them"),
    ("own one forgotten", "our own naming"), ("moments", "numbers of the moments"), ("one call", "there are 2 calls"),
    ("without signs", "keep the signs"),
])  # fmt: skip
def test_common_mistakes_have_their_hint(answer, hint, capsys):
    WRONG[answer]()
    assert hint in capsys.readouterr().out
