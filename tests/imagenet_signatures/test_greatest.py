"""The interval of the greatest of several means: it is kept by chance as often as it says, and the winner's is not."""

import math
from functools import partial

import numpy as np
import pytest

from affscore_book.kit.statistics import Interval, student_interval
from affscore_study.imagenet_signatures.greatest import greatest, least


def drawn(random, means, count=6):
    return {f"{i}": partial(student_interval, random.normal(mean, 1, count)) for i, mean in enumerate(means)}


@pytest.mark.parametrize("means", [[0.0] * 5, [0.0, 0.0, 0.0, 2.0]])
def test_the_greatest_true_mean_lies_inside(means):
    """In 95 of 100 draws or more. The winner's own interval lies too high: of five equal means it often misses."""
    random = np.random.default_rng(0)
    kept = winners = 0
    for _ in range(200):
        candidates = drawn(random, means)
        name, found = greatest(candidates)
        kept += found.low <= max(means) <= found.high
        own = candidates[name](0.95)
        winners += own.low <= max(means) <= own.high
    assert kept >= 0.92 * 200  # two standard errors of 200 draws below 0.95
    assert len(means) < 5 or winners < 0.9 * 200


def test_greatest_of_one_is_ordinary_and_least_is_mirrored():
    """One candidate has its ordinary interval, and the least is the greatest with the sign changed."""
    values = np.random.default_rng(1).normal(size=(3, 8))
    assert greatest({"a": partial(student_interval, values[0])}) == ("a", student_interval(values[0]))
    name, low = least({f"{i}": partial(student_interval, row) for i, row in enumerate(values)})
    turned, high = greatest({f"{i}": partial(student_interval, -row) for i, row in enumerate(values)})
    assert name == turned and low == pytest.approx((-high.mean, -high.high, -high.low))


def test_undefined_interval_spoils_the_interval_only():
    """What cannot be estimated makes the interval undefined, but not the mean."""
    at = {"a": lambda level: Interval(0.5, math.nan, math.nan), "b": lambda level: Interval(0.2, 0.1, 0.3)}
    name, found = greatest(at)
    assert (name, found.mean) == ("a", 0.5) and math.isnan(found.low) and math.isnan(found.high)
