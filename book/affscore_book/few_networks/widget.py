"""A hundred studies of a few networks each, and whose interval holds the truth."""

from __future__ import annotations

import numpy as np
import traitlets
from numpy.typing import NDArray
from scipy import stats

from affscore_book.kit.affinity1d import uniforms
from affscore_book.kit.widgets import ComputedWidget

__all__ = ["HundredStudies"]

Array = NDArray[np.float64]

#: Studies, networks in one at most, the true gap, and the standard error that pictures leave of one network's value.
STUDIES, MOST, TRUTH, ERROR = 100, 12, 1.0, 0.2
WAYS = ("pictures", "normal", "student")


def values() -> Array:
    """The value that each network of each study has, (100, 12): around the truth, with a standard deviation of 1."""
    first, second = (uniforms(1, 2 * STUDIES * MOST).reshape(STUDIES, MOST, 2).transpose(2, 0, 1) + 1) / 2
    return TRUTH + np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


def intervals(networks: int, way: str) -> Array:
    """The interval (low, high) of each study from its first networks, (100, 2).

    ``way`` is ``"pictures"``, mean -+ 1.96 times the standard error that the pictures leave; ``"normal"``, mean -+ 1.96
    s / sqrt(n) with the standard deviation s of the networks; or ``"student"``, with Student's point in place of 1.96.
    """
    some = values()[:, :networks]
    spread = np.full(STUDIES, ERROR) if way == "pictures" else some.std(axis=1, ddof=1)
    point = stats.t.ppf(0.975, networks - 1) if way == "student" else stats.norm.ppf(0.975)
    half = point * spread / np.sqrt(networks)
    return np.stack([some.mean(axis=1) - half, some.mean(axis=1) + half], axis=1)


class HundredStudies(ComputedWidget):
    """A hundred studies train a few networks each and report an interval. How many hold the truth?

    Parameters
    ----------
    networks
        In each study, from 2 to 12.
    way
        Where the interval comes from; see :func:`intervals`.

    >>> HundredStudies(networks=4, way="student").score() > HundredStudies(networks=4, way="pictures").score()
    True
    """

    networks = traitlets.Int(4, min=2, max=MOST).tag(sync=True)
    way = traitlets.Enum(list(WAYS), default_value="pictures").tag(sync=True)

    def held(self) -> NDArray[np.bool_]:
        """Which of the studies' intervals hold the truth, (100,)."""
        low, high = intervals(self.networks, self.way).T
        return (low <= TRUTH) & (high >= TRUTH)

    def score(self) -> float:
        """The share of intervals that hold the truth."""
        return float(self.held().mean())
