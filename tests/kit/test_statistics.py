"""Intervals against independent computations and against what they promise."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from affscore_book.kit.statistics import network_bootstrap, student_interval


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_students_interval_is_the_textbooks(seed, level):
    values = np.random.default_rng(seed).normal(3, 2, size=2 + seed)
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    found = student_interval(values, level)
    np.testing.assert_allclose(found, [values.mean(), values.mean() - half, values.mean() + half], rtol=1e-12)


def test_students_interval_holds_the_mean_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(1.5, 1, size=(2000, 4))
    inside = [low <= 1.5 <= high for _, low, high in map(student_interval, draws)]
    assert abs(np.mean(inside) - 0.95) < 0.015


def test_equal_values_have_an_interval_without_width():
    assert student_interval([2, 2, 2]) == (2, 2, 2)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.nan], [[1.0, 2.0]], [1.0, np.inf]])
def test_too_few_values_are_refused(values):
    with pytest.raises(ValueError, match="at least 2 finite numbers"):
        student_interval(values)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_two_networks_give_no_width_and_many_give_the_variance_between_networks(seed):
    generator = np.random.default_rng(seed)
    two = generator.normal(size=(2, 2))
    assert network_bootstrap(two)[1] == network_bootstrap(two)[2] == pytest.approx((two[0, 1] + two[1, 0]) / 2)
    # A pair's value is the sum of its two networks' own: the mean over pairs varies as twice the mean over networks.
    effect = generator.normal(size=200)
    found = network_bootstrap(effect[:, None] + effect[None, :], seed=seed)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * 2 * effect.std() / np.sqrt(200), rel=0.1)
    assert found.low < found.mean < found.high


def test_pairs_that_are_not_there_do_not_count():
    values = np.full((3, 3), np.nan)
    values[0, 1], values[2, 0] = 1.0, 2.0
    assert network_bootstrap(values).mean == 1.5


@pytest.mark.parametrize(
    "values, more, sentence",
    [
        (np.zeros((2, 3)), {}, r"shape \(2, 3\)"),
        (np.full((2, 2), np.nan), {}, "no finite entry"),
        (np.diag([1.0, np.nan]), {"level": 1.0}, "level is 1.0"),
    ],
)
def test_bad_tables_are_refused(values, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        network_bootstrap(values, **more)


@pytest.mark.parametrize("seed", range(3))
def test_the_bootstrap_draws_networks(seed):
    """Against all 27 equally likely draws of three networks."""
    values = np.random.default_rng(seed).normal(size=(3, 3))
    means = []
    for draw in itertools.product(range(3), repeat=3):
        kept = [values[i, j] for i in draw for j in draw if i != j]
        if kept:
            means.append(np.mean(kept))
    found = network_bootstrap(values, draws=20000, level=0.8)
    expected = np.quantile(means, [0.1, 0.9])
    off = values[~np.eye(3, dtype=bool)]
    assert found.mean == pytest.approx(off.mean())
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.05)
    assert network_bootstrap(np.full((4, 4), 2.0)) == (2.0, 2.0, 2.0)


def test_the_interval_covers_the_truth_less_often_than_it_says_with_four_networks_and_as_often_with_many():
    """Each network has an effect of its own: pairs are not independent, and four networks are few."""
    generator = np.random.default_rng(0)
    share, naive = {}, {}
    for networks in (4, 30):
        covered, too_narrow = [], []
        for _ in range(200):
            effects = generator.normal(size=networks)
            values = effects[:, None] + effects + 0.1 * generator.normal(size=(networks, networks))
            found = network_bootstrap(values, draws=300)
            covered.append(found.low <= 0 <= found.high)
            pairs = values[~np.eye(networks, dtype=bool)]
            half = 1.96 * pairs.std() / math.sqrt(len(pairs))  # as if the pairs were independent
            too_narrow.append(abs(pairs.mean()) <= half)
        share[networks], naive[networks] = np.mean(covered), np.mean(too_narrow)
    assert share[4] < share[30] and 0.88 < share[30] < 0.99
    assert share[4] > naive[4] + 0.05 and naive[30] < 0.6
