"""The picture of many intervals."""

import re

import numpy as np

from affscore_book.few_networks.figures import FRAME, plot_studies


def path(look, truth):
    """What two intervals around 1 draw with a look of the legend."""
    svg = plot_studies([0.0, 0.5], [2.0, 1.5], truth)._repr_html_()
    return re.findall(rf'<path class="{look}"[^>]* d="([^"]*)"', svg)[-1]


def test_intervals_that_hold_the_truth_look_different():
    """Intervals that hold the truth are drawn unlike those that miss it."""
    assert path("curve", truth=1.0) and path("curve", truth=1.0) == path("image-line", truth=4.0)
    assert not path("image-line", truth=1.0) and not path("curve", truth=4.0)


def test_a_bar_that_leaves_the_frame_ends_at_its_edge():
    beyond, at_edge = (plot_studies([low], [high], 1.0)._repr_html_() for low, high in ((-99.0, 99.0), FRAME))
    assert beyond == at_edge


def test_the_number_of_studies_is_free():
    assert "3 studies" in plot_studies(np.zeros(3), np.ones(3), 0.5)._repr_html_()
