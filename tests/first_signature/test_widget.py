"""The first widget has one protocol in both languages, and its picture says what the score is."""

import re

import pytest

from affscore_book.first_signature.widget import HALF_WIDTH, LIMIT, POINTS, ScoreSlider
from affscore_book.kit.picture import Panel


def test_both_languages_have_the_same_protocol(node):
    assert node(ScoreSlider._esm, "m => [m.POINTS, m.HALF_WIDTH, m.LIMIT]") == [POINTS, HALF_WIDTH, LIMIT]


@pytest.mark.parametrize("centre", [-1.5, 0.0, 2.5])
def test_the_picture_marks_its_score_on_the_curve(centre):
    widget = ScoreSlider(activation="relu", centre=centre)
    (dot,) = re.findall(r'<circle [^>]*cx="([\d.]+)" cy="([\d.]+)"', widget.picture())
    panel = Panel(label="", xlim=(-4, 4), ylim=(0, 1), xlabel="")
    assert dot == (panel.x_at(centre), panel.y_at(widget.score()))
    assert f"Affinity score {widget.score():.3f}" in widget.picture()
    dead = ScoreSlider(activation="relu", centre=-3.0).picture()
    assert "<circle" not in dead and "undefined: the output is constant" in dead
