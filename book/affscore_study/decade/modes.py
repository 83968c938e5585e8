"""Silverman's test of whether a sample has one mode, which chooses its own bandwidth, and the power of this test."""

from __future__ import annotations

import numpy as np

__all__ = ["critical_bandwidth", "modes_power", "one_mode"]

GRID, TOGETHER = 200, 10


def _modes(samples: np.ndarray, bandwidth: float) -> np.ndarray:
    """The number of maxima of the normal kernel density estimate of each sample; ``samples`` has shape (samples, n)."""
    low, high = samples.min(axis=1) - 3 * bandwidth, samples.max(axis=1) + 3 * bandwidth
    grid = np.linspace(low, high, GRID, axis=1)
    density = np.exp(-0.5 * ((grid[:, :, None] - samples[:, None]) / bandwidth) ** 2).sum(axis=2)
    return ((density[:, 1:-1] > density[:, :-2]) & (density[:, 1:-1] >= density[:, 2:])).sum(axis=1)


def critical_bandwidth(values: np.ndarray) -> float:
    """The smallest bandwidth at which the density estimate of a sample (n,) has one mode, to a thousandth of its range.

    >>> round(critical_bandwidth(np.array([0.0, 1.0])), 2)  # two points: half their distance
    0.5
    """
    low, high = 0.0, float(np.ptp(values))
    while high - low > 1e-3 * np.ptp(values):
        middle = (low + high) / 2
        low, high = (low, middle) if _modes(values[None], middle)[0] < 2 else (middle, high)
    return high


def one_mode(values: np.ndarray, draws: int = 2000) -> float:
    """The p-value of Silverman's test for one mode: the probability of so large a critical bandwidth under one mode.

    Parameters
    ----------
    values
        Array of shape (n,) with at least 4 different numbers.
    draws
        The number of samples of the density estimate at the critical bandwidth, scaled to the variance of ``values``.
        The p-value is the share of samples whose own critical bandwidth is larger.

    Raises
    ------
    ValueError
        If there are fewer than 4 different values.

    References
    ----------
    Silverman, Journal of the Royal Statistical Society B 43 (1981).
    """
    values = np.asarray(values, dtype=np.float64)
    if len(np.unique(values)) < 4:
        raise ValueError(f"values has {len(np.unique(values))} different numbers; it should have at least 4.")
    bandwidth, random = critical_bandwidth(values), np.random.default_rng(0)
    centre, shrink = values.mean(), 1 / np.sqrt(1 + bandwidth**2 / values.var())
    larger = 0
    for first in range(0, draws, TOGETHER):
        shape = min(TOGETHER, draws - first), len(values)
        drawn = random.choice(values, shape) + bandwidth * random.normal(size=shape)
        # The critical bandwidth of the draw is larger if it has more than one mode at this one.
        larger += int((_modes(centre + shrink * (drawn - centre), bandwidth) > 1).sum())
    return larger / draws


def modes_power(n: int, apart: float, samples: int) -> float:
    """The fraction of samples of n values in which :func:`one_mode` gives p below 0.05, if there are two modes.

    Half of the values belong to each mode. The modes are normal with standard deviation 1, and their means differ by
    ``apart``.
    """
    random = np.random.default_rng((0, n))
    drawn = (np.where(np.arange(n) < n // 2, 0.0, apart) + random.normal(size=n) for _ in range(samples))
    return float(np.mean([one_mode(values, draws=100) < 0.05 for values in drawn]))
