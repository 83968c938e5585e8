"""Every figure of the byte decoders draws the stored networks, with its marks where the numbers are."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from grids import each

from affscore_book.transformers import gpt_figures as figures
from affscore_book.transformers.gpt_results import load_gpts

GPTS = load_gpts(Path(__file__).parents[2] / "book" / "data" / "transformers" / "gpt")


def draw(name: str):
    assert getattr(figures, name)(GPTS) is None
    figure = plt.gcf()
    figure.draw_without_rendering()
    plt.close(figure)
    return figure


@each("name", figures.__all__)
def test_every_figure_names_its_axes_and_its_marks(name):
    figure = draw(name)
    assert figure.axes[0].get_xlabel() or figure.get_supxlabel()
    assert figure.axes[0].get_ylabel() or figure.get_supylabel() or figure.axes[0].get_yticklabels()
    assert figure.legends and figure.legends[0].get_texts()


def test_a_course_is_that_of_every_call_by_both_pools():
    network = GPTS["gelu"][0]
    for panel, pool in zip(draw("plot_gpt_courses").axes, ("spatial", "trailing"), strict=True):
        assert panel.get_title(loc="left") == f"{pool} pool"
        drawn = [line.get_ydata() for line in panel.lines]
        np.testing.assert_allclose(drawn, [*network.scores[pool].T, network.bits / 8])


def test_pools_stand_at_the_trained_means_and_every_seed_is_there():
    (axes,) = draw("plot_gpt_pools").axes
    filled = [line for line in axes.lines if line.get_marker() != "None" and line.get_color() != "white"]
    expected = [[network.mean(pool) for network in seeds.values()] for seeds in GPTS.values() for pool in figures.POOLS]
    assert len(filled) == len(expected)
    for line, means in zip(filled, expected, strict=True):
        np.testing.assert_allclose(line.get_xdata(), means)
