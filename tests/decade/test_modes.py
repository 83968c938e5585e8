"""Silverman's test tells two modes from one, and rarely finds two where there is one."""

from __future__ import annotations

import numpy as np
import pytest
from grids import each

from affscore_book.decade.modes import critical_bandwidth, one_mode


@each("seed", range(4))
@each("n", [12, 33])
def test_two_clusters_have_two_modes(seed, n):
    random = np.random.default_rng(seed)
    values = np.concatenate([random.normal(0.6, 0.03, n // 2), random.normal(0.95, 0.02, n - n // 2)])
    assert one_mode(values, draws=100) <= 0.05


@pytest.mark.parametrize("n", [12, 33])
def test_one_cluster_seldom_has_two(n):
    values = [one_mode(np.random.default_rng(seed).normal(size=n), draws=40) for seed in range(20)]
    assert np.mean(np.array(values) <= 0.05) <= 0.15


@pytest.mark.parametrize("seed", range(3))
def test_the_critical_bandwidth_moves_and_scales_with_the_sample(seed):
    values = np.random.default_rng(seed).normal(size=15)
    assert critical_bandwidth(3 * values + 7) == pytest.approx(3 * critical_bandwidth(values), rel=0.01)


def test_four_points_in_two_pairs():
    """Two far pairs are two points: their density at half the distance has one mode."""
    assert critical_bandwidth(np.array([0, 1e-9, 1, 1 + 1e-9])) == pytest.approx(0.5, abs=0.005)


def test_few_values_are_refused():
    with pytest.raises(ValueError, match="values has 3 different numbers"):
        one_mode(np.array([1.0, 2, 3, 3]))
