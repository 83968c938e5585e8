"""Has a sample one mode? Silverman's test, which finds its own bandwidth."""

from __future__ import annotations

import numpy as np
from scipy.signal import find_peaks
from scipy.stats import gaussian_kde

__all__ = ["critical_bandwidth", "modes_power", "one_mode"]

GRID = 200


def _modes(values: np.ndarray, bandwidth: float) -> int:
    """Maxima of the normal kernel density estimate of sorted values."""
    grid = np.linspace(values[0] - 3 * bandwidth, values[-1] + 3 * bandwidth, GRID)
    return len(find_peaks(gaussian_kde(values, bandwidth / values.std(ddof=1))(grid))[0])


def critical_bandwidth(values: np.ndarray) -> float:
    """The smallest bandwidth at which the density estimate of a sample (n,) has one mode, to a thousandth of its range.

    >>> round(critical_bandwidth(np.array([0.0, 1.0])), 2)  # two points: half their distance
    0.5
    """
    values = np.sort(values)
    low, high = 0.0, float(np.ptp(values))
    while high - low > 1e-3 * np.ptp(values):
        middle = (low + high) / 2
        low, high = (low, middle) if _modes(values, middle) < 2 else (middle, high)
    return high


def one_mode(values: np.ndarray, draws: int = 200) -> float:
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
    for _ in range(draws):
        drawn = random.choice(values, len(values)) + bandwidth * random.normal(size=len(values))
        # It needs a larger bandwidth if this one leaves it more than one mode.
        larger += _modes(np.sort(centre + shrink * (drawn - centre)), bandwidth) > 1
    return larger / draws


def modes_power(n: int, apart: float, samples: int) -> float:
    """How often :func:`one_mode` gives p below .05 for n values, half of each of two modes.

    Each mode is normal with standard deviation 1, and they are ``apart`` from each other.
    """
    random = np.random.default_rng((0, n))
    drawn = (np.where(np.arange(n) < n // 2, 0.0, apart) + random.normal(size=n) for _ in range(samples))
    return float(np.mean([one_mode(values, draws=100) < 0.05 for values in drawn]))
