"""Affine maps that leave less than T: regression in closed form, and where searches end."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from affscore import affine_map, wasserstein2
from affscore_book.kit.affinity2d import cloud
from affscore_book.theory import best_map

GRID = ndtri((np.arange(300) + 0.5) / 300)[:, None]
seeds = pytest.mark.parametrize("seed", range(3))


@pytest.mark.parametrize("activation", [np.tanh, np.exp, lambda x: np.maximum(x, 0)])
def test_on_the_line_both_distances_are_those_of_the_formulas(activation):
    y = activation(GRID)
    r = np.corrcoef(GRID[:, 0], y[:, 0])[0, 1]
    found = best_map.distances_left(GRID, y)
    assert found["T"] == pytest.approx(y.std() * math.sqrt(2 * (1 - r)))
    assert found["regression"] == pytest.approx(y.std() * math.sqrt(1 - r**2))
    assert found["search from T"] == pytest.approx(found["regression"])


@seeds
def test_a_search_never_ends_above_its_start(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 30, 2))
    for start in (affine_map(x, y, covariance="empirical")(x), rng.normal(size=(30, 2))):
        end = best_map.searched_distance(x, y, start)
        assert end <= wasserstein2(start, y).item() + 1e-12
    assert best_map.searched_distance(x, 2 * x + 1, x) == pytest.approx(0, abs=1e-9)


@seeds
def test_a_search_finds_a_small_turn_that_t_cannot_make(seed):
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=(40, 2)) * [1, 3]
    turn = np.array([[np.cos(0.2), np.sin(0.2)], [-np.sin(0.2), np.cos(0.2)]])
    found = best_map.distances_left(x, rng.permutation(x @ turn))
    assert found["search from T"] < 1e-6 < 0.05 < found["T"]


def test_search_from_a_turned_cloud_ends_above_regression():
    """A search that starts from a turned cloud ends elsewhere, above the distance that regression leaves."""
    x = cloud(width=0.5, angle=30)
    found = best_map.distances_left(x, np.maximum(x, 0))
    assert found["search from T"] == pytest.approx(found["regression"], rel=1e-6)
    assert found["from a turned cloud"] > found["T"] > found["regression"]
