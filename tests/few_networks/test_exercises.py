"""The checks of the exercises accept right answers and refuse wrong ones."""

import numpy as np
import pytest
from answers import accepted, refused
from scipy import stats

from affscore_book.few_networks import exercises
from affscore_book.kit.statistics import leaving_out


def by_leaving_out(one, other):
    """From the half width of the interval of the book's own jackknife."""
    found = leaving_out(lambda kept: one[kept].mean() / other[kept].mean(), len(one))
    return 0.0 if np.isnan(found.low) else (found.high - found.mean) / stats.t.ppf(0.975, len(one) - 1)


def of_ratios(one, other):
    return np.std(one / other, ddof=1) / np.sqrt(len(one))


def divided(one, other):
    """As a standard error divides, and the jackknife does not."""
    return by_leaving_out(one, other) / (len(one) - 1)


def least(spread, half):
    return next(n for n in range(2, 100) if stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n) <= half)


RIGHT = {
    "ratio": lambda: exercises.check_ratio(by_leaving_out),
    "enough": lambda: exercises.check_enough(least(1.0, 0.8)),
    "enough, another spread": lambda: exercises.check_enough(least(2.0, 0.8), 2.0),
    "enough, another half": lambda: exercises.check_enough(least(1.0, 0.5), half=0.5),
}
WRONG = {
    "ratio, of the networks' ratios": lambda: exercises.check_ratio(of_ratios),
    "ratio, divided": lambda: exercises.check_ratio(divided),
    "ratio, of the first row alone": lambda: exercises.check_ratio(
        lambda one, other: by_leaving_out(one, other * 0 + 1)
    ),
    "enough, by 1.96": lambda: exercises.check_enough(int(np.ceil((1.96 / 0.8) ** 2))),
    "enough, one more": lambda: exercises.check_enough(least(1.0, 0.8) + 1),
    "enough, a single network": lambda: exercises.check_enough(1),
}
test_right_answers = accepted(RIGHT)
test_wrong_answers = refused(WRONG)


def test_factors_are_students():
    exact = stats.t.ppf(0.975, np.arange(len(exercises.STUDENT)) + 1)
    assert pytest.approx(exact, abs=1e-4) == exercises.STUDENT
