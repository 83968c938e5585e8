"""The figures of the chapter on theory: what they hold, in pictures that are well-formed and say what they show."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from panels import SVG, check_panels, drawn

from affscore_book.kit.affinity2d import cloud
from affscore_book.theory import figures
from affscore_book.theory.finite import Reading

X = cloud(n=12)
Y = np.maximum(X, 0)
ROWS = [Reading(0.6, 1.0, 0.6), Reading(0.5, 0.9, 0.7)]


def count(panel, kind, look):
    return sum(1 for node in panel.iter(f"{SVG}{kind}") if node.get("class") == look)


@pytest.mark.parametrize(
    ("drawing", "panels"),
    [
        (figures.plot_construction(X, Y, X), 2),
        (figures.plot_sorted(np.array([1.0, 0.0, 2.0]), np.array([3.0, 1.0, 0.0])), 2),
        (figures.plot_couplings(X, {"a": (X + 1, np.arange(12)), "b": (X, np.arange(12))}), 2),
        (figures.plot_ellipses(np.eye(2), np.diag([2.0, 0.5]), np.eye(2)), 1),
        (figures.plot_readings([64, 2048], {"a": ROWS, "b": ROWS}), 2),
    ],
    ids=["construction", "sorted", "couplings", "ellipses", "readings"],
)
def test_each_panel_says_what_it_shows(drawing, panels):
    check_panels(drawing, panels)


def test_the_construction_couples_every_cross_with_an_output():
    right = drawn(figures.plot_construction(X, Y, X))[1]
    assert count(right, "path", "link") == 12 + 1, "and the sign of the legend"
    assert count(right, "circle", "ink-dot") == 12 + 1


def test_sorted_lists_are_coupled_without_a_crossing():
    x, y = np.array([1.0, 0.0, 2.0]), np.array([3.0, 1.0, 0.0])
    panel = figures.plot_sorted(x, y).panels[1]
    lines = [
        node.get("d")[1:].replace("L", " ").split()
        for node in ElementTree.fromstring(panel.svg())
        if node.get("class") == "link"
    ]
    ends = sorted((float(a), float(c)) for a, _, c, _ in lines)
    assert len(ends) == 3 and ends == sorted(ends, key=lambda pair: pair[1])


def test_the_numbers_of_the_panels_are_the_mean_squares():
    text = figures.plot_couplings(X, {"shift": (X + np.array([3.0, 4.0]), np.arange(12))})._repr_html_()
    assert "shift: mean square 25.00" in text


def test_arrows_end_where_the_matrix_sends_the_points():
    matrix = np.array([[2.0, 0.0], [0.0, 0.5]])
    panel = figures.plot_ellipses(np.eye(2), matrix @ matrix, matrix).panels[0]
    assert f"M{panel.x_at(1)} {panel.y_at(0)}L{panel.x_at(2)} {panel.y_at(0)}" in panel.svg()
