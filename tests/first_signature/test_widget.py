"""The first widget refuses what it cannot show, and its picture says what the score is."""

import re

from grids import each

from affscore_book.first_signature.widget import HALF_WIDTH, LIMIT, POINTS, ScoreSlider, SignatureTour
from affscore_book.kit.picture import Panel


def test_both_languages_have_the_same_protocol(node):
    assert node(ScoreSlider._esm, "m => [m.POINTS, m.HALF_WIDTH, m.LIMIT]") == [POINTS, HALF_WIDTH, LIMIT]


@each("centre", [-1.5, 0.0, 2.5])
def test_the_picture_marks_its_score_on_the_curve(centre):
    widget = ScoreSlider(activation="relu", centre=centre)
    (dot,) = re.findall(r'<circle [^>]*cx="([\d.]+)" cy="([\d.]+)"', widget.fallback())
    panel = Panel(label="", xlim=(-4, 4), ylim=(0, 1), xlabel="")
    assert dot == (panel.x_at(centre), panel.y_at(widget.score()))
    assert f"Affinity score {widget.score():.3f}" in widget.fallback()
    dead = ScoreSlider(activation="relu", centre=-3.0).fallback()
    assert "<circle" not in dead and "undefined: the output is constant" in dead


@each(("above", "shown"), [(0.0, "less than 0.1"), (0.04, "less than 0.1"), (0.1, "0.1"), (3.26, "3.3")])
def test_a_share_too_small_to_show_is_not_shown_as_0(above, shown):
    call = {"name": "one", "score": 0.9, "twin": 0.95, "heights": [1] * 50, "below": 12.0, "above": above}
    assert f"become 0, {shown} % become 6" in SignatureTour(calls=[call]).fallback()


def test_the_tour_draws_the_twins_beside_the_scores():
    calls = [
        {"name": "one", "score": score, "twin": twin, "heights": [1] * 50, "below": 1.0, "above": 1.0}
        for score, twin in [(0.7, 0.9), (0.8, 1.0)]
    ]
    drawn = SignatureTour(calls=calls).fallback()
    panel = Panel(label="", xlim=(0, 3), ylim=(0.6, 1), xlabel="")
    for look, key in (("twin-curve", "twin"), ("score-curve", "score")):
        places = [f"{panel.x_at(i)} {panel.y_at(call[key])}" for i, call in enumerate(calls, 1)]
        assert re.search(rf'<path class="{look}" [^>]*d="M{places[0]}L{places[1]}"', drawn)
