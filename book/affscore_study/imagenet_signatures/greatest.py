"""The greatest of several means, with an interval that allows for the choice, unlike the winner's ordinary interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from affscore_book.kit.statistics import Interval

__all__ = ["greatest", "least", "turned"]

#: A function that returns a mean with its interval at a given confidence level.
AtLevel = Callable[[float], Interval]


def greatest(candidates: Mapping[str, AtLevel]) -> tuple[str, Interval]:
    """The name of the greatest of several means, and its value with a 95 % interval for the greatest of the true means.

    The greatest true mean is below a bound if every true mean is, so the upper end is the highest of the ordinary upper
    ends. It is above a bound if one true mean is, but each of the n candidates may seem so by chance. The lower end is
    therefore the highest of the lower ends at 1 - .05 / n (Bonferroni). An end is NaN if one of those ends is.

    >>> at = lambda mean: lambda level: Interval(mean, mean - level, mean + level)
    >>> name, found = greatest({"a": at(0.2), "b": at(0.3)})
    >>> name, [round(end, 3) for end in found]
    ('b', [0.3, -0.675, 1.25])
    """
    ordinary = {name: at(0.95) for name, at in candidates.items()}
    strict = [at(1 - (1 - 0.95) / len(candidates)) for at in candidates.values()]
    chosen = max(ordinary, key=lambda name: ordinary[name].mean)
    low = np.max([each.low for each in strict])
    high = np.max([each.high for each in ordinary.values()])
    if np.isnan(low) or np.isnan(high):
        low = high = np.nan
    return chosen, Interval(ordinary[chosen].mean, float(low), float(high))


def least(candidates: Mapping[str, AtLevel]) -> tuple[str, Interval]:
    """The name of the least of several means, and its value with a 95 % interval for the least of the true means.

    See :func:`greatest`.
    """
    opposite = {name: lambda level, at=at: turned(at(level)) for name, at in candidates.items()}
    chosen, found = greatest(opposite)
    return chosen, turned(found)


def turned(found: Interval) -> Interval:
    """The mean and the interval of the number with the opposite sign."""
    return Interval(-found.mean, -found.high, -found.low)
