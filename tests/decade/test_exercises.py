"""Right answers are accepted, wrong ones get a hint."""

from functools import cache

import numpy as np
import pytest
from answers import accepted
from scipy import stats

from affscore_book.decade import exercises
from affscore_book.decade.collection import Course

YEARS, MEANS, CALLS = [2012, 2014, 2015, 2016, 2018], [0.5, 0.6, 0.9, 0.7, 0.8], [7, 57, 10, 28, 65]
STEPS = np.array([0, 1, 10, 99])
COURSE = Course(STEPS, np.array([[1.0, 0.5], [0.9, 0.7], [0.6, 0.8], [0.4, 0.8]]), STEPS)
#: The first call rises by more than it falls in the end.
AWAY = Course(STEPS, np.array([[0.8, 0.5], [0.9, 0.5], [0.85, 0.8], [0.7, 0.8]]), STEPS)
NORMS, PLAIN = [0.7, 0.72, 0.74], [0.6, 0.62, 0.71]


def partial_rank():
    """By the formula for three correlations."""
    with_score, with_calls, both = (
        stats.spearmanr(*pair).statistic for pair in ((YEARS, MEANS), (YEARS, CALLS), (MEANS, CALLS))
    )
    return (with_score - with_calls * both) / ((1 - with_calls**2) * (1 - both**2)) ** 0.5


def walk(one, other):
    """By recursion from the end, with no table of costs."""

    @cache
    def best(i, j):
        steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        ways = [best(*step) for step in steps if min(step) >= 0] or [(0.0, ())]
        cost, way = min(ways)
        return cost + (one[i] - other[j]) ** 2, (*way, (i, j))

    return best(len(one) - 1, len(other) - 1)[1]


def straight(one, other):
    """Both at once, then the rest of the longer one."""
    ends = len(one) - 1, len(other) - 1
    return [(min(k, ends[0]), min(k, ends[1])) for k in range(max(ends) + 1)]


def jumping(one, other):
    return [*walk(one, other)[::3], walk(one, other)[-1]]


test_right_answers_are_accepted = accepted({
    "build": lambda: exercises.check_build(walk),
    "trend": lambda: exercises.check_trend(partial_rank(), YEARS, MEANS, CALLS),
    "split": lambda: exercises.check_split(2 / 20, NORMS, PLAIN),
    "half way": lambda: exercises.check_half_way([10, 1], COURSE),
    "half way, after a detour": lambda: exercises.check_half_way([99, 10], AWAY),
})  # fmt: skip


@pytest.mark.parametrize(("hint", "check"), [
    ("begin with (0, 0)", lambda: exercises.check_build(lambda one, other: walk(one, other)[:-1])),
    ("go on by one call", lambda: exercises.check_build(jumping)),
    ("a walk with", lambda: exercises.check_build(straight)),
    ("a list of pairs", lambda: exercises.check_build(lambda one, other: 0.5)),
    ("before anything", lambda: exercises.check_trend(0.7, YEARS, MEANS, CALLS)),
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
