"""Has a sample one mode? Silverman's test, which finds its own bandwidth."""

from __future__ import annotations

import numpy as np

__all__ = ["critical_bandwidth", "modes_power", "one_mode"]

GRID, TOGETHER = 200, 10


def _modes(samples: np.ndarray, bandwidth: float) -> np.ndarray:
    """Number of maxima of the normal kernel density estimate of each sample, shape (samples, n)."""
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
    """How likely a sample with one mode is to look as little like one: the p-value of Silverman's test.

    Parameters
    ----------
    values
        (n,), at least 4 different numbers.
    draws
        Samples of the density estimate at the critical bandwidth, scaled to the variance of ``values``. The p-value is
        the share of them whose own critical bandwidth is larger.

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
        # It needs a larger bandwidth if this one leaves it more than one mode.
        larger += int((_modes(centre + shrink * (drawn - centre), bandwidth) > 1).sum())
    return larger / draws


def modes_power(n: int, apart: float, samples: int) -> float:
    """How often :func:`one_mode` gives p below .05 for n values, half of each of two modes.

    Each mode is normal with standard deviation 1, and they are ``apart`` from each other.
    """
    random = np.random.default_rng((0, n))
    drawn = (np.where(np.arange(n) < n // 2, 0.0, apart) + random.normal(size=n) for _ in range(samples))
    return float(np.mean([one_mode(values, draws=100) < 0.05 for values in drawn]))
