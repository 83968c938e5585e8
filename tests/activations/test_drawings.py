"""The drawings of the lesson: what is given is in the picture."""

import re

import numpy as np
import pytest

from affscore_book.activations.drawings import plot_channels, plot_inputs, plot_means, plot_widths

MEANS = np.linspace(-2, 2, 5)


def paths(drawing, look):
    return [found for found in re.findall(rf'<path class="{look}"[^>]* d="([^"]*)"', drawing._repr_html_()) if found]


def test_each_piece_has_its_mark_on_the_curve():
    x = np.linspace(-1, 1, 5)
    drawing = plot_inputs([(-1.0, x - 1, x, 0.4), (1.0, x + 1, x**2, 0.6)], MEANS, [0.4, 0.4, 0.5, 0.6, 0.6])
    html = drawing._repr_html_()
    assert [html.count(f'circle class="{look}"') for look in ("input-dot", "image-dot", "score-dot")] == [1, 1, 0]
    assert "0.40 at mean -1" in html


def test_a_fourth_piece_is_refused():
    piece = (0.0, np.zeros(2), np.zeros(2), 0.5)
    with pytest.raises(ValueError, match="pieces holds 4 inputs"):
        plot_inputs([piece] * 4, MEANS, np.zeros(5))


def test_widths_and_channels_stand_on_logarithmic_axes():
    widths = plot_widths([0.1, 1.0, 10.0], {"relu": [0.6, 0.6, 0.6]})._repr_html_()
    channels = plot_channels([1, 2, 4], {"averaged": [0.9, 0.8, 0.7]})._repr_html_()
    for html, texts in ((widths, ("0.1", "1", "10")), (channels, ("1", "2", "4"))):
        places = [float(re.search(rf'class="tick"[^>]* x="([^"]*)" y="223[^>]*>{text}<', html)[1]) for text in texts]
        assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)


def test_a_curve_is_broken_where_there_is_no_score():
    scores = np.array([0.1, 0.2, np.nan, 0.2, 0.1])
    (curve,) = [path for path in paths(plot_means(MEANS, {"hardtanh": scores}), "input-curve") if path.count("L") > 1]
    assert curve.count("M") == 2
