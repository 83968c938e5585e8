"""The page and Python say the same of every network, moment and statistic."""

import itertools
import math

import numpy as np
import pytest
from planted_decade import RISING, decade
from scipy import stats

from affscore_book.decade.collection import CallClouds, Course
from affscore_book.decade.widget import HistoryChart, TrainingCourse, history_chart, training_course

DEAD = np.array([[0.9, np.nan, 0.7], [0.8, 0.6, 0.5], [0.4, 0.5, np.nan]])
COURSES = {
    "short": Course(np.array([0, 10, 3440]), DEAD, np.array([0.1, 0.5, 0.9])),
    "long": Course(np.array([0, 1, 2, 3, 3440]), np.linspace(1, 0.4, 20).reshape(5, 4), np.linspace(0.1, 0.92, 5)),
}
CLOUDS = {
    name: CallClouds(2, [{"outputs": [i, -700, 10, 20], "image": [0, 1400, 5, 6]} for i in range(len(found.steps))])
    for name, found in COURSES.items()
}


def test_the_page_computes_what_python_computes_along_a_training(node):
    widget, states, expected = training_course(COURSES, CLOUDS), [], []
    for widget.selected, widget.moment in itertools.product(("short", "long", ""), (0, 1, 2, 4)):
        states.append(widget.state())
        expected.append(widget.score())
    found = node(TrainingCourse._esm, "(m, states) => states.map(state => m.evaluate(state).score)", states)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert expected[0] == pytest.approx(0.8) and expected[3] == expected[2] == pytest.approx(0.45)
    assert expected[8] == expected[0]  # no name chosen: the first


def test_what_it_says_of_a_moment():
    widget = training_course(COURSES, CLOUDS)
    widget.moment = 1
    assert "short after 10 steps, 50 % right" in widget.picture() and "Mean score 0.633" in widget.picture()
    assert repr(widget) == "TrainingCourse(2 networks, selected='short', moment=1, beside='accuracy')"
    widget.beside = "clouds"
    assert "call 3: 0.500" in widget.picture() and "step + 1" not in widget.picture()
    widget.moment = 2
    assert "call 3: dead" in widget.picture()


NETWORKS = decade(lambda name, seed: 0.5 + 0.4 * np.random.default_rng((len(name), seed)).random(7), seeds=3,
                  start=lambda name, seed: np.full(7, 0.5))  # fmt: skip
RAW = decade(lambda name, seed: np.full(7, 0.5), raw=lambda name, seed: np.full(7, RISING[name]))


def test_the_page_computes_what_python_computes_of_a_history(node):
    widget, states, scores = history_chart(NETWORKS), [], []
    for widget.statistic, widget.view in itertools.product(HistoryChart.statistic.values, HistoryChart.view.values):
        states.append(widget.state())
        scores.append(widget.score())
    found = node(HistoryChart._esm, "(m, states) => states.map(state => m.evaluate(state).score)", states)
    np.testing.assert_allclose([math.nan if value is None else value for value in found], scores, atol=1e-12)
    early = [seeds for seeds in NETWORKS.values() if seeds[0].year <= 2019]
    level = [np.mean([each.scores.mean() for each in seeds.values()]) for seeds in early]
    expected = stats.spearmanr([seeds[0].year for seeds in early], level).statistic
    assert scores[0] == pytest.approx(expected, abs=1e-3) and math.isnan(scores[2])  # all starts are alike


def test_raw_start_is_a_choice_of_its_own():
    """The raw start is a view of its own, and a network without one has no score in it."""
    widget, without = history_chart(RAW), history_chart(NETWORKS)
    assert math.isnan(widget.score())
    widget.view = without.view = "raw start"
    assert widget.score() > 0.9 and math.isnan(without.score())
    widget.selected = "swin"
    assert "swin, 2021: " in widget.picture()
    assert repr(widget) == "HistoryChart(23 networks, selected='swin', statistic='mean', view='raw start')"


def test_without_networks_there_is_nothing_to_show():
    for widget in (TrainingCourse(), HistoryChart()):
        assert "networks=[]" in repr(widget)
        assert math.isnan(widget.score()) and "There is no network to show." in widget.picture()
