"""The figures of the chapter on ReLU in one dimension: what they hold, and what they say."""

from __future__ import annotations

import numpy as np
import pytest
from panels import SVG, check_panels, drawn

from affscore_book.relu_1d import figures

LINE = np.linspace(0, 5, 9)
RISING = LINE / 5


@pytest.mark.parametrize(
    ("drawing", "panels"),
    [
        (figures.plot_ranges([(LINE - a, np.maximum(LINE - a, 0), LINE) for a in (4, 1)], "ab"), 2),
        (figures.plot_figure_3(LINE, LINE, {"gap": (RISING, RISING), "score": (RISING, RISING)}), 2),
        (figures.plot_symmetry(LINE, {"w": RISING}), 1),
        (figures.plot_limits(LINE[1:], {"t": {"score": RISING[1:], "law": RISING[1:]}}), 1),
        (figures.plot_gaussian(LINE, {"bell": RISING}, LINE, 10.0 ** (20 * LINE - 100)), 2),
        (figures.plot_relatives(LINE, {"slopes": {"0.1": RISING, "0.2": RISING}}), 1),
    ],
    ids=["ranges", "figure_3", "symmetry", "limits", "gaussian", "relatives"],
)
def test_each_panel_says_what_it_shows(drawing, panels):
    check_panels(drawing, panels)


def test_the_gap_is_filled_between_output_and_image():
    panel = figures.plot_ranges([(LINE, LINE, LINE + 1)], ["gap 1"]).panels[0]
    corners = f'd="M{panel.x_at(0)} {panel.y_at(0)}L'
    assert 'class="gap-area"' in panel.svg() and corners in panel.svg().partition("gap-area")[2]


def test_a_mirror_image_is_the_same_curve_backwards():
    text = figures.plot_symmetry(LINE, {"w": RISING}).panels[0].svg()
    assert "differ by at most 1.00" in text and 'class="goal-curve"' in text


def test_every_sample_is_a_dot_beside_the_exact_curve():
    (panel,) = drawn(figures.plot_figure_3(LINE, LINE, {"gap": (RISING, RISING)}))
    assert sum(1 for node in panel.iter(f"{SVG}circle")) == len(LINE)
