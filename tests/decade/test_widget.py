"""The page and Python say the same of every network, moment and statistic."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from planted import RISING, decade
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


def moments() -> list[TrainingCourse]:
    made = [training_course(COURSES, CLOUDS) for _ in range(12)]
    for widget, (name, moment) in zip(made, [(n, m) for n in ("short", "long", "") for m in (0, 1, 2, 4)], strict=True):
        widget.selected, widget.moment = name, moment
    return made


def test_the_page_computes_what_python_computes_along_a_training(node):
    widgets = moments()
    found = node(TrainingCourse._esm, "(m, states) => states.map(state => m.evaluate(state).score)",
                 [widget.state() for widget in widgets])  # fmt: skip
    expected = [widget.score() for widget in widgets]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert expected[0] == pytest.approx(0.8) and expected[3] == expected[2] == pytest.approx(0.45)
    assert expected[8] == expected[0]  # no name chosen: the first


def test_what_it_says_of_a_moment():
    widget = moments()[1]
    assert "short after 10 steps, 50 % right" in widget.fallback() and "Mean score 0.633" in widget.fallback()
    assert repr(widget) == "TrainingCourse(2 networks, selected='short', moment=1, beside='accuracy')"
    widget.beside = "clouds"
    assert "call 3: 0.500" in widget.fallback() and "Outputs of call 3" in widget.fallback()
    widget.moment = 2
    assert "call 3: dead" in widget.fallback()


def test_clouds_of_other_moments_are_refused():
    wrong = CLOUDS | {"long": CLOUDS["short"]}
    with pytest.raises(ValueError, match="clouds of long has 3 moments; it should be those of courses, 5"):
        training_course(COURSES, wrong)


NETWORKS = decade(lambda name, seed: 0.5 + 0.4 * np.random.default_rng((len(name), seed)).random(7), seeds=3,
                  start=lambda name, seed: np.full(7, 0.5))  # fmt: skip
RAW = decade(lambda name, seed: np.full(7, 0.5), raw=lambda name, seed: np.full(7, RISING[name]))


def test_the_page_computes_what_python_computes_of_a_history(node):
    widgets = [history_chart(NETWORKS) for _ in range(6 * 5)]
    choices = itertools.product(HistoryChart.statistic.values, HistoryChart.view.values)
    for widget, (statistic, view) in zip(widgets, choices, strict=True):
        widget.statistic, widget.view = statistic, view
    found = node(HistoryChart._esm, "(m, states) => states.map(state => m.evaluate(state).score)",
                 [widget.state() for widget in widgets])  # fmt: skip
    found = [math.nan if value is None else value for value in found]
    np.testing.assert_allclose(found, [widget.score() for widget in widgets], atol=1e-12)
    early = [seeds for seeds in NETWORKS.values() if seeds[0].year <= 2019]
    level = [np.mean([each.signatures["trained", "spatial"].mean.mean() for each in seeds.values()]) for seeds in early]
    expected = stats.spearmanr([seeds[0].year for seeds in early], level).statistic
    assert widgets[0].score() == pytest.approx(expected, abs=1e-3)
    assert math.isnan(widgets[2].score())  # all starts are alike


def test_the_raw_start_is_a_choice_of_its_own_and_the_start_where_there_is_no_other():
    widget = history_chart(RAW)
    widget.view = "raw start"
    assert widget.score() > 0.9 and math.isnan(history_chart(RAW).score())
    without = history_chart(NETWORKS)
    without.view = "raw start"
    assert math.isnan(without.score())  # all starts are alike


def test_what_it_says_of_a_network():
    widget = history_chart(NETWORKS)
    widget.selected = "swin"
    assert "swin, 2021: " in widget.fallback() and "Rank correlation with the year " in widget.fallback()
    assert repr(widget) == "HistoryChart(23 networks, selected='swin', statistic='mean', view='trained')"


@pytest.mark.parametrize("widget", [TrainingCourse(), HistoryChart()], ids=repr)
def test_without_networks_there_is_nothing_to_show(widget):
    assert math.isnan(widget.score()) and "There is no network to show." in widget.fallback()
