"""The page and Python say the same of every network and moment."""

from __future__ import annotations

import math

import numpy as np
import pytest

from affscore_book.decade.collection import Course
from affscore_book.decade.widget import TrainingCourse, training_course

DEAD = np.array([[0.9, np.nan, 0.7], [0.8, 0.6, 0.5], [0.4, 0.5, np.nan]])
COURSES = {
    "short": Course(np.array([0, 10, 3440]), DEAD, np.array([0.1, 0.5, 0.9])),
    "long": Course(np.array([0, 1, 2, 3, 3440]), np.linspace(1, 0.4, 20).reshape(5, 4), np.linspace(0.1, 0.92, 5)),
}


def states() -> list[TrainingCourse]:
    made = [training_course(COURSES) for _ in range(12)]
    for widget, (name, moment) in zip(made, [(n, m) for n in ("short", "long", "") for m in (0, 1, 2, 4)], strict=True):
        widget.selected, widget.moment = name, moment
    return made


def test_the_page_computes_what_python_computes(node):
    widgets = states()
    found = node(TrainingCourse._esm, "(m, states) => states.map(state => m.evaluate(state).score)",
                 [widget.state() for widget in widgets])  # fmt: skip
    expected = [widget.score() for widget in widgets]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert expected[0] == pytest.approx(0.8) and expected[3] == expected[2] == pytest.approx(0.45)
    assert expected[8] == expected[0]  # no name chosen: the first


def test_what_it_says():
    widget = states()[1]
    assert "short after 10 steps, 50 % right" in widget.fallback() and "Mean score 0.633" in widget.fallback()
    assert repr(widget) == "TrainingCourse(2 networks, selected='short', moment=1)"


def test_without_networks_there_is_nothing_to_show():
    assert math.isnan(TrainingCourse().score()) and "There is no network to show." in TrainingCourse().fallback()
