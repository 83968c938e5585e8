"""Means with confidence intervals, over independent values and over pairs that share networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = ["Interval", "leaving_out", "over_pairs", "shown", "student_interval"]


class Interval(NamedTuple):
    """A mean with the ends of its confidence interval, which are NaN if the values do not show how certain it is."""

    mean: float
    low: float
    high: float


def _alike(values: np.ndarray) -> bool:
    """Whether values differ only by rounding errors; an interval of width 0 would say that chance plays no role."""
    return float(np.ptp(values)) <= 1e-12 * float(np.abs(values).max())


def student_interval(values: Any, level: float = 0.95) -> Interval:
    """The mean of independent values (n,), n >= 2, such as one value for each seed, with Student's interval.

    The interval of equal values has NaN as its ends, because ranks and shares of a few networks can be equal by chance.

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
    if _alike(values):
        return Interval(float(values.mean()), math.nan, math.nan)
    found = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    return Interval(float(values.mean()), float(found.low), float(found.high))


def leaving_out(
    statistic: Callable[[np.ndarray], float], networks: int, families: Sequence[Any] | np.ndarray | None = None
) -> Interval:
    """A statistic of networks, with a 95 % interval from leaving out one network or family at a time (the jackknife).

    Parameters
    ----------
    statistic
        A function of the numbers of the networks that are kept, int64 (m,).
    networks
        The number of networks.
    families
        The family of each network, (networks,); by default each network is a family. For n families, with v_i the
        statistic without family i, the variance is estimated as (n - 1) / n times the sum of (v_i - mean of v)^2, and
        Student's quantile has n - 1 degrees of freedom. The ends are NaN for two families, where no pair would be left,
        and if all v_i are equal.

    >>> values = np.array([1.0, 2.0, 4.0])
    >>> [round(end, 3) for end in leaving_out(lambda kept: values[kept].mean(), 3)]  # a mean: Student's interval
    [2.333, -1.461, 6.128]
    >>> leaving_out(lambda kept: values[kept].mean(), 3, ["vgg", "vgg", "resnet"]).low  # two families
    nan
    """
    everyone = np.arange(networks)
    names, family = np.unique(everyone if families is None else np.asarray(families), return_inverse=True)
    value, count = float(statistic(everyone)), len(names)
    if count < 3:
        return Interval(value, math.nan, math.nan)
    without = np.array([statistic(everyone[family != i]) for i in range(count)])
    if _alike(without):
        return Interval(value, math.nan, math.nan)
    spread = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    half = spread * float(stats.t.ppf(0.975, count - 1))
    return Interval(value, value - half, value + half)


def over_pairs(table: np.ndarray) -> Interval:
    """The mean over pairs of networks, with the interval of :func:`leaving_out`.

    The values have shape (networks, networks), with NaN for a missing pair. Pairs that share a network are not
    independent: twelve pairs of four networks are not twelve results.
    """
    return leaving_out(lambda kept: float(np.nanmean(table[kept[:, None], kept])), len(table))


def shown(found: Interval, digits: int = 2) -> str:
    """The text of an interval."""
    if math.isnan(found.mean):
        return "-"
    ends = "not estimable" if math.isnan(found.low) else f"{found.low:.{digits}f}, {found.high:.{digits}f}"
    return f"{found.mean:.{digits}f} [{ends}]"
