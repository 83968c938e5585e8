"""Drawings of lessons: panels side by side, and the plane with one unit on both axes."""

from __future__ import annotations

import numpy as np
import pytest

from affscore_book.kit.drawing import Drawing, plane

POINTS = np.array([[0.0, 0.0], [4.0, 1.0]])


def test_a_notebook_shows_the_panels_and_names_their_number():
    drawing = Drawing(plane("one", [POINTS]), plane("two", [POINTS]))
    assert drawing._repr_html_().count("<svg") == 2 and repr(drawing) == "A drawing of 2 panels"
    assert repr(Drawing(plane("one", [POINTS]))) == "A drawing of 1 panel"


@pytest.mark.parametrize("points", [POINTS, POINTS[:, ::-1], POINTS * 1e-6, POINTS[:1]])
def test_the_plane_has_one_unit_on_both_axes_and_holds_all_points(points):
    panel = plane("", [points])
    across = (panel.right - panel.left) / (panel.xlim[1] - panel.xlim[0])
    up = (panel.bottom - panel.top) / (panel.ylim[1] - panel.ylim[0])
    assert across == pytest.approx(up)
    for x, y in points:
        assert panel.left <= float(panel.x_at(x)) <= panel.right
        assert panel.top <= float(panel.y_at(y)) <= panel.bottom
