"""Intervals against independent computations and against what they promise."""

import numpy as np
import pytest
from scipy import stats

from affscore_book.kit.statistics import leaving_out, over_pairs, student_interval


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_students_interval_is_the_textbooks(seed, level):
    values = np.random.default_rng(seed).normal(3, 2, size=2 + seed)
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    found = student_interval(values, level)
    np.testing.assert_allclose(found, [values.mean(), values.mean() - half, values.mean() + half], rtol=1e-12)


@pytest.mark.parametrize("values", [[2, 2, 2], [0, 0], [0.9, 0.9 + 1e-16, 0.9]])
def test_equal_values_do_not_tell_how_sure_their_mean_is(values):
    for found in (student_interval(values), leaving_out(lambda kept: values[0], 5)):
        assert found.mean == pytest.approx(values[0]) and np.isnan(found.low) and np.isnan(found.high)


def test_jackknife_of_a_mean_is_students_interval():
    """Leaving out networks, or families of equal size, gives a mean Student's interval."""
    values = np.random.default_rng(0).normal(size=(5, 3))
    found = leaving_out(lambda kept: float(values.ravel()[kept].mean()), 15, np.repeat(list("abcde"), 3))
    assert found == pytest.approx(student_interval(values.mean(axis=1)))
    found = leaving_out(lambda kept: float(values[kept, 0].mean()), 5)
    assert found == pytest.approx(student_interval(values[:, 0]))


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.nan], [[1.0, 2.0]], [1.0, np.inf]])
def test_too_few_values_are_refused(values):
    with pytest.raises(ValueError, match="at least 2 finite numbers"):
        student_interval(values)


def test_missing_pairs_and_two_networks():
    """Pairs without a record do not count, and two networks give no interval."""
    table = np.full((4, 4), np.nan)
    for i, value in enumerate([1.0, 2.0, 3.0, 6.0]):
        table[i, (i + 1) % 4] = value
    found = over_pairs(table)
    assert found.mean == 3.0 and found.low < 3 < found.high
    found = over_pairs(np.array([[np.nan, 1.0], [3.0, np.nan]]))
    assert found.mean == 2 and np.isnan(found.low) and np.isnan(found.high)


def test_interval_over_pairs_has_its_coverage():
    """The interval over pairs covers the truth as often as it says.

    Each network has an effect of its own, as a bottom and as a top: pairs are not independent.
    """
    generator, inside = np.random.default_rng(0), []
    for _ in range(400):
        effects = generator.normal(size=4)
        table = effects[:, None] + effects + 0.3 * generator.normal(size=(4, 4))
        np.fill_diagonal(table, np.nan)
        found = over_pairs(table)
        inside.append(found.low <= 0 <= found.high)
    assert 0.92 < np.mean(inside) < 0.99
