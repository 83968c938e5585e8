"""The greatest of several means, with an interval that knows it was chosen: the ordinary one of the winner does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from affscore_book.kit.statistics import Interval

__all__ = ["greatest", "least", "turned"]

#: Gives a mean with its interval at the level that is asked for.
AtLevel = Callable[[float], Interval]


def greatest(candidates: Mapping[str, AtLevel], level: float = 0.95) -> tuple[str, Interval]:
    """Name and mean of the greatest of several means, and where the greatest of the true ones lies.

    It is below a bound if each of them is: the upper end is the highest of the ordinary upper ends. It is above a
    bound if one of them is, and each of n may be it by chance: the lower end is the highest of the lower ends at
    1 - (1 - level) / n (Bonferroni). Ends are NaN if one of theirs is.

    >>> at = lambda mean: lambda level: Interval(mean, mean - level, mean + level)
    >>> name, found = greatest({"a": at(0.2), "b": at(0.3)})
    >>> name, [round(end, 3) for end in found]
    ('b', [0.3, -0.675, 1.25])
    """
    ordinary = {name: at(level) for name, at in candidates.items()}
    strict = [at(1 - (1 - level) / len(candidates)) for at in candidates.values()]
    chosen = max(ordinary, key=lambda name: ordinary[name].mean)
    low = np.max([each.low for each in strict])
    high = np.max([each.high for each in ordinary.values()])
    if np.isnan(low) or np.isnan(high):
        low = high = np.nan
    return chosen, Interval(ordinary[chosen].mean, float(low), float(high))


def least(candidates: Mapping[str, AtLevel], level: float = 0.95) -> tuple[str, Interval]:
    """The same for the least of several means."""
    opposite = {name: lambda level, at=at: turned(at(level)) for name, at in candidates.items()}
    chosen, found = greatest(opposite, level)
    return chosen, turned(found)


def turned(found: Interval) -> Interval:
    """A mean and its interval with the other sign."""
    return Interval(-found.mean, -found.high, -found.low)
