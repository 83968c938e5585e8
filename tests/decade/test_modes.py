"""Silverman's test tells two modes from one, and rarely finds two where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from affscore_book.decade.modes import critical_bandwidth, modes_power, one_mode


@pytest.mark.parametrize("n", [12, 33])
def test_two_clusters_have_two_modes_and_one_seldom_has(n):
    random = np.random.default_rng(n)
    values = np.concatenate([random.normal(0.6, 0.03, n // 2), random.normal(0.95, 0.02, n - n // 2)])
    assert one_mode(values, draws=100) <= 0.05
    found = [one_mode(random.normal(size=n), draws=40) for _ in range(20)]
    assert np.mean(np.array(found) <= 0.05) <= 0.15


def test_power_grows_with_the_sample_and_with_what_is_between_its_modes():
    assert modes_power(9, 4.0, 10) < modes_power(60, 6.0, 10) and modes_power(60, 6.0, 10) >= 0.8
    assert modes_power(20, 0.0, 10) < 0.3  # one mode


def test_the_critical_bandwidth_moves_and_scales_with_the_sample():
    """Two far pairs are two points: their density at half the distance has one mode."""
    values = np.random.default_rng(0).normal(size=15)
    assert critical_bandwidth(3 * values + 7) == pytest.approx(3 * critical_bandwidth(values), rel=0.01)
    assert critical_bandwidth(np.array([0, 1e-9, 1, 1 + 1e-9])) == pytest.approx(0.5, abs=0.005)


def test_few_values_are_refused():
    with pytest.raises(ValueError, match="values has 3 different numbers"):
        one_mode(np.array([1.0, 2, 3, 3]))
