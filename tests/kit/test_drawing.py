"""Drawings of lessons: panels side by side, and the plane with one unit on both axes."""

from __future__ import annotations

import numpy as np
import pytest

from affscore_book.kit.drawing import Drawing, curves, plane

POINTS = np.array([[0.0, 0.0], [4.0, 1.0]])


def test_a_notebook_shows_the_panels_and_names_their_number():
    drawing = Drawing(plane("one", [POINTS]), plane("two", [POINTS]))
    assert drawing._repr_html_().count("<svg") == 2 and repr(drawing) == "A drawing of 2 panels"
    assert repr(Drawing(plane("one", [POINTS]))) == "A drawing of 1 panel"


@pytest.mark.parametrize("points", [POINTS, POINTS[:, ::-1], POINTS * 1e-6, POINTS[:1]])
def test_plane_has_one_unit_and_holds_all_points(points):
    """Both axes of the plane have the same unit, and it holds all points."""
    panel = plane("", [points])
    across = (panel.right - panel.left) / (panel.xlim[1] - panel.xlim[0])
    up = (panel.bottom - panel.top) / (panel.ylim[1] - panel.ylim[0])
    assert across == pytest.approx(up)
    for x, y in points:
        assert panel.left <= float(panel.x_at(x)) <= panel.right
        assert panel.top <= float(panel.y_at(y)) <= panel.bottom


def test_curves_are_named_and_go_through_their_points():
    panel = curves("", np.array([0.0, 1.0]), {"a": np.array([0.0, 2.0]), "b": np.array([1.0, 1.0])}, xlabel="x")
    text = panel.svg()
    assert 'class="input-curve"' in text and f"M{panel.x_at(0)} {panel.y_at(0)}L{panel.x_at(1)} {panel.y_at(2)}" in text
    assert ">a</text>" in text and ">b</text>" in text


def test_power_law_is_straight_on_logarithmic_axes():
    """Logarithmic axes are labelled with powers of ten, and a power law is a straight line on them."""
    x = np.logspace(-10, 0, 3)
    panel = curves("", x, {"law": x**2}, xlabel="x", logarithmic=True)
    assert ">10⁻¹⁰</text>" in panel.svg() and ">10⁻²⁰</text>" in panel.svg()
    middle = f"L{panel.x_at(-5)} {panel.y_at(-10)}L"
    assert middle in panel.svg()


def test_what_is_not_positive_is_left_out_of_a_logarithmic_axis():
    panel = curves("", np.array([0.1, 1.0, 10.0]), {"a": np.array([1.0, 0.0, 10.0])}, xlabel="x", logarithmic=True)
    assert panel.svg().partition('class="input-curve"')[2].count("M") >= 2


def test_more_curves_than_looks_are_refused():
    lines = {str(k): np.array([0.0, 1.0]) for k in range(7)}
    with pytest.raises(ValueError, match="lines holds 7 curves; a panel has styles for at most 6"):
        curves("", np.array([0.0, 1.0]), lines, xlabel="x")
