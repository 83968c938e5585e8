"""The checks of the exercises accept right answers and refuse wrong ones."""

import math
from statistics import NormalDist

import numpy as np
from answers import accepted, refused

from affscore_book.relu_1d import exercises
from affscore_book.relu_1d.exact import monotone_score


def unsorted(x, y):
    return 1 - math.sqrt(1 - abs(np.corrcoef(x, y)[0, 1])) if np.ptp(y) else math.nan


def sorted_score(x, y):
    return float(monotone_score(x, y)) if np.ptp(y) else math.nan


def quantile_score(x, y):
    """By the two quantile functions, which are constant between the multiples of 1/n and of 1/m."""
    if not np.ptp(y):
        return math.nan
    ends = np.unique(np.round([*np.arange(len(x) + 1) / len(x), *np.arange(len(y) + 1) / len(y)], 12))
    middles, masses = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    inputs, outputs = (np.sort(v - v.mean())[(middles * len(v)).astype(int)] / v.std() for v in (x, y))
    return 1 - math.sqrt(max(1 - (masses * inputs * outputs).sum(), 0))


def by_the_mean_above(threshold):
    """The score of a step, from the quantiles of the bell."""
    x = np.array([NormalDist().inv_cdf((k + 0.5) / 20_000) for k in range(20_000)])
    return unsorted(x, (x > threshold).astype(float))


RIGHT = {
    "half": lambda: exercises.check_half(0.30347),
    "another score": lambda: exercises.check_half(1.0, 1.0),
    "step": lambda: exercises.check_step(by_the_mean_above(1.0)),
    "build": lambda: exercises.check_build(quantile_score),
    "digits": lambda: exercises.check_digits(1e-20 * math.sqrt((1 / 4 - 1 / (2 * math.pi)) / 2)),
    "another exponent": lambda: exercises.check_digits(1e-24 * math.sqrt((1 / 4 - 1 / (2 * math.pi)) / 2), 24),
}
WRONG = {
    "half": lambda: exercises.check_half(0.25),
    "half for another score": lambda: exercises.check_half(0.30347, 0.6),
    "digits for another exponent": lambda: exercises.check_digits(2.13e-21, 19),
    "no share": lambda: exercises.check_half(0.0),
    "step, the correlation": lambda: exercises.check_step(0.6622),
    "step at 0": lambda: exercises.check_step(by_the_mean_above(0.0)),
    "build, not sorted": lambda: exercises.check_build(unsorted),
    "build, a constant has no score": lambda: exercises.check_build(
        lambda x, y: quantile_score(x, y) if np.ptp(y) else 0.0
    ),
    "build, the longer sample cut short": lambda: exercises.check_build(lambda x, y: sorted_score(x[: len(y)], y)),
    "digits, 0": lambda: exercises.check_digits(0.0),
    "digits, 1 - r^2": lambda: exercises.check_digits(1e-40 * (1 / 4 - 1 / (2 * math.pi))),
    "digits, a factor": lambda: exercises.check_digits(1e-20 * math.sqrt(1 / 4 - 1 / (2 * math.pi))),
}


test_exercises_accept_right_answers = accepted(RIGHT)
test_exercises_refuse_wrong_answers = refused(WRONG)
