"""The figures of the chapter on blind spots: what they hold, and what they say."""

from __future__ import annotations

import pytest
from panels import SVG, check_panels, drawn

from affscore_book.blind_spots import figures


@pytest.mark.parametrize(
    ("drawing", "panels", "words"),
    [
        (figures.plot_lines([1, 10], {"a": [0, 1], "b": [[0.5], [1]]}, "n"), 1, "b from 0.50 to 1.00"),
        (figures.plot_r2({"cube": (0.5, 0.4)}), 1, "cube at 0.50 and 0.40"),
        (figures.plot_partners([0.7, 0.9], [0.7, 0.9], [0.5, 0.8]), 1, "between 0.70 and 0.90"),
        (figures.plot_resolution([16, 64], {d: [[0.6, 0.6, 0.3]] * 2 for d in range(4)}, 0.62), 4, "strangers' 0.30"),
    ],
    ids=["lines", "r2", "partners", "resolution"],
)
def test_each_panel_says_what_it_shows(drawing, panels, words):
    check_panels(drawing, panels, words)


def test_every_point_is_named():
    points = {"ReLU": (0.7, 0.6), "x^2": (0.0, 0.5)}
    (panel,) = drawn(figures.plot_r2(points))
    assert {"ReLU", "x^2"} <= {node.text for node in panel.iter(f"{SVG}text")}


def test_a_curve_goes_through_its_points():
    panel = figures.plot_lines([0, 2], {"a": [0, 1]}, "n").panels[0]
    text = panel.svg()
    assert f'd="M{panel.x_at(0)} {panel.y_at(0)}L{panel.x_at(2)} {panel.y_at(1)}"' in text
    assert f'cx="{panel.x_at(2)}" cy="{panel.y_at(1)}"' in text
