"""Means with intervals, each under its own name: over independent values, and over pairs that share networks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = ["Interval", "network_bootstrap", "student_interval"]


class Interval(NamedTuple):
    """A mean with the ends of its confidence interval."""

    mean: float
    low: float
    high: float


def student_interval(values: Any, level: float = 0.95) -> Interval:
    """Mean of independent values (n,), n >= 2, such as one for each seed, with Student's interval.

    Raises
    ------
    ValueError
        If there are fewer than 2 values, or one is not finite.

    >>> [round(end, 1) for end in student_interval([1.0, 2.0, 3.0])]
    [2.0, -0.5, 4.5]
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(f"values has shape {values.shape}; it should hold at least 2 finite numbers.")
    if (values == values[0]).all():
        return Interval(float(values[0]), float(values[0]), float(values[0]))
    found = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    return Interval(float(values.mean()), float(found.low), float(found.high))


def network_bootstrap(values: Any, *, level: float = 0.95, draws: int = 2000, seed: int = 0) -> Interval:
    """Mean over pairs of networks, with a bootstrap interval that draws *networks*.

    Pairs that share a network are not independent: twelve ordered pairs of four networks hold less than twelve
    independent results. So each draw takes networks with replacement, and weighs each pair by how often both were
    drawn. With few networks such an interval is still too narrow; with two it has no width, because there is only one
    way to draw both.

    Parameters
    ----------
    values
        (networks, networks); entry [i, j] for bottom i and top j. NaN where there is none, as on the diagonal.
    level, draws, seed
        Of the bootstrap.

    Raises
    ------
    ValueError
        If the shape is not square or no pair has a value.

    >>> network_bootstrap([[float("nan"), 1.0], [3.0, float("nan")]])
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"values has shape {table.shape}; it should be (networks, networks).")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it should be between 0 and 1.")
    known = np.isfinite(table) & ~np.eye(len(table), dtype=bool)
    if not known.any():
        raise ValueError("values has no finite entry off its diagonal; at least one pair of networks is needed.")
    filled = np.where(known, table, 0.0)
    counts = np.random.default_rng(seed).multinomial(len(table), np.full(len(table), 1 / len(table)), size=draws)
    weights = np.einsum("di,dj,ij->d", counts, counts, known)
    usable = weights > 0
    means = np.einsum("di,dj,ij->d", counts, counts, filled)[usable] / weights[usable]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(table[known].mean()), float(low), float(high))
