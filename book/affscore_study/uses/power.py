"""The power of rules on a mean: the frequency with which they find a true effect."""

from __future__ import annotations

import numpy as np
from scipy import stats

__all__ = ["power_of_mean", "power_of_pairs", "spread_of_interval"]


def spread_of_interval(low: float, high: float, families: int) -> float:
    """The standard deviation between families that follows from Student's interval of their mean.

    >>> round(spread_of_interval(0.12, 0.60, 9), 2)
    0.31
    """
    return (high - low) / 2 / float(stats.t.ppf(0.975, families - 1)) * families**0.5


def power_of_mean(truth: float, spread: float, families: int, at_least: float) -> float:
    """The share of 20,000 draws whose 95 % interval lies above 0 and whose mean is at least ``at_least``.

    The values of families are normal with mean ``truth`` and standard deviation ``spread``.

    >>> power_of_mean(0.0, 1.0, 8, 0.0) < 0.035
    True
    """
    values = np.random.default_rng(0).normal(truth, spread, (20_000, families))
    means, errors = values.mean(axis=1), values.std(axis=1, ddof=1) / families**0.5
    low = means - float(stats.t.ppf(0.975, families - 1)) * errors
    return float(((low > 0) & (means >= at_least)).mean())


def power_of_pairs(difference: float, spread: float, pairs: int, alpha: float) -> float:
    """The power of a two-sided paired t-test at level ``alpha`` for a mean ``difference`` of normal pairs.

    >>> round(power_of_pairs(0.0, 1.0, 8, 0.05), 6)
    0.05
    """
    bar, moved = float(stats.t.ppf(1 - alpha / 2, pairs - 1)), difference / spread * pairs**0.5
    return float(stats.nct.sf(bar, pairs - 1, moved) + stats.nct.cdf(-bar, pairs - 1, moved))
