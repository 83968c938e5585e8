"""Intervals against independent computations and against what they promise."""

import numpy as np
import pytest
from grids import each
from scipy import stats

from affscore_book.kit.statistics import leaving_out, over_pairs, student_interval


@each("seed", range(5))
@each("level", [0.5, 0.95])
def test_students_interval_is_the_textbooks(seed, level):
    values = np.random.default_rng(seed).normal(3, 2, size=2 + seed)
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    found = student_interval(values, level)
    np.testing.assert_allclose(found, [values.mean(), values.mean() - half, values.mean() + half], rtol=1e-12)


def test_students_interval_holds_the_mean_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(1.5, 1, size=(2000, 4))
    inside = [low <= 1.5 <= high for _, low, high in map(student_interval, draws)]
    assert abs(np.mean(inside) - 0.95) < 0.015


@pytest.mark.parametrize("values", [[2, 2, 2], [0, 0], [0.9, 0.9 + 1e-16, 0.9]])
def test_equal_values_do_not_tell_how_sure_their_mean_is(values):
    found = student_interval(values)
    assert found.mean == pytest.approx(values[0]) and np.isnan(found.low) and np.isnan(found.high)


def test_a_statistic_that_no_network_moves_has_no_interval():
    found = leaving_out(lambda kept: 0.9, 5)
    assert found.mean == 0.9 and np.isnan(found.low) and np.isnan(found.high)


@pytest.mark.parametrize("seed", range(3))
def test_families_of_equal_size_are_the_units_of_a_mean(seed):
    values = np.random.default_rng(seed).normal(size=(5, 3))
    found = leaving_out(lambda kept: float(values.ravel()[kept].mean()), 15, np.repeat(list("abcde"), 3))
    assert found == pytest.approx(student_interval(values.mean(axis=1)))


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.nan], [[1.0, 2.0]], [1.0, np.inf]])
def test_too_few_values_are_refused(values):
    with pytest.raises(ValueError, match="at least 2 finite numbers"):
        student_interval(values)


@pytest.mark.parametrize("seed", range(3))
def test_without_one_network_after_the_other_a_mean_has_students_interval(seed):
    values = np.random.default_rng(seed).normal(size=4 + seed)
    found = leaving_out(lambda kept: float(values[kept].mean()), len(values))
    assert found == pytest.approx(student_interval(values))


def test_pairs_without_a_record_do_not_count():
    table = np.full((4, 4), np.nan)
    for i, value in enumerate([1.0, 2.0, 3.0, 6.0]):
        table[i, (i + 1) % 4] = value
    found = over_pairs(table)
    assert found.mean == 3.0 and found.low < 3 < found.high


def test_the_interval_over_pairs_covers_the_truth_as_often_as_it_says_and_drawing_networks_does_not():
    """Each network has an effect of its own, as a bottom and as a top: pairs are not independent."""
    generator, inside, drawn = np.random.default_rng(0), [], []
    for _ in range(400):
        effects = generator.normal(size=4)
        table = effects[:, None] + effects + 0.3 * generator.normal(size=(4, 4))
        np.fill_diagonal(table, np.nan)
        found = over_pairs(table)
        inside.append(found.low <= 0 <= found.high)
        kept = generator.integers(4, size=(200, 4))  # four networks with replacement, two hundred times
        kept = kept[np.ptp(kept, axis=1) > 0]
        means = [np.nanmean(table[each[:, None], each]) for each in kept]
        low, high = np.quantile(means, [0.025, 0.975])
        drawn.append(low <= 0 <= high)
    assert 0.92 < np.mean(inside) < 0.99
    assert np.mean(drawn) < 0.85


def test_two_networks_give_a_mean_without_an_interval():
    found = over_pairs(np.array([[np.nan, 1.0], [3.0, np.nan]]))
    assert found.mean == 2 and np.isnan(found.low) and np.isnan(found.high)
