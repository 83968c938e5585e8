"""A hundred studies: JavaScript and Python agree on every interval, and the ways miss as often as theory says."""

import numpy as np
from scipy import stats

from affscore_book.few_networks.widget import ERROR, MOST, STUDIES, TRUTH, WAYS, HundredStudies, intervals, values
from affscore_book.kit.statistics import student_interval


def test_both_languages_have_the_same_intervals(node):
    states = [{"networks": networks, "way": way} for networks in range(2, MOST + 1) for way in WAYS]
    found = node(HundredStudies._esm, "(m, states) => states.map(state => m.evaluate(state).intervals)", states)
    for state, ends in zip(states, found, strict=True):
        np.testing.assert_allclose(ends, intervals(**state), rtol=1e-9, atol=1e-12)


def test_students_interval_is_that_of_the_book():
    for study, ends in zip(values()[:, :4], intervals(4, "student"), strict=True):
        np.testing.assert_allclose(ends, student_interval(study)[1:])


def test_values_are_normal_around_the_truth():
    """The values are drawn from a normal distribution around the truth with a standard deviation of 1."""
    drawn = values().ravel()
    assert abs(drawn.mean() - TRUTH) < 3 / np.sqrt(drawn.size)
    assert stats.kstest(drawn - TRUTH, "norm").pvalue > 0.01


def test_each_way_holds_the_truth_as_often_as_it_should():
    """Binomial bounds around the exact shares, for four networks."""
    exact = {
        "student": 0.95,
        "normal": 1 - 2 * stats.t.sf(stats.norm.ppf(0.975), 3),
        "pictures": 1 - 2 * stats.norm.sf(stats.norm.ppf(0.975) * ERROR),
    }
    for way, share in exact.items():
        low, high = stats.binom.interval(0.99, STUDIES, share)
        assert low <= STUDIES * HundredStudies(networks=4, way=way).score() <= high


def test_the_picture_counts_what_it_draws():
    widget = HundredStudies(networks=3, way="normal")
    assert f"{widget.held().sum()} of the 100 intervals contain the truth" in widget.picture()
