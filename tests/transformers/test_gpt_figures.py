"""Every figure of the byte decoders draws the stored networks, with its marks where the numbers are."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from affscore_book.transformers import gpt_figures as figures
from affscore_book.transformers.gpt_results import load_gpts

GPTS = load_gpts(Path(__file__).parents[2] / "book" / "data" / "transformers" / "gpt")


def draw(function):
    """The panels of a figure, with names and a legend."""
    assert function(GPTS) is None
    figure = plt.gcf()
    figure.draw_without_rendering()
    plt.close(figure)
    first = figure.axes[0]
    assert first.get_xlabel() or figure.get_supxlabel()
    assert first.get_ylabel() or first.get_yticklabels()
    assert figure.legends and figure.legends[0].get_texts()
    return figure.axes


def test_a_course_is_that_of_every_call_by_both_pools():
    network = GPTS["gelu"][0]
    for panel, pool in zip(draw(figures.plot_gpt_courses), ("spatial", "trailing"), strict=True):
        assert panel.get_title(loc="left") == f"{pool} pool"
        drawn = [line.get_ydata() for line in panel.lines]
        np.testing.assert_allclose(drawn, [*network.scores[pool].T, network.bits / 8])


def test_pools_stand_at_the_trained_means_and_every_seed_is_there():
    (axes,) = draw(figures.plot_gpt_pools)
    filled = [line for line in axes.lines if line.get_marker() != "None" and line.get_color() != "white"]
    expected = [[network.mean(pool) for network in seeds.values()] for seeds in GPTS.values() for pool in figures.POOLS]
    assert len(filled) == len(expected)
    for line, means in zip(filled, expected, strict=True):
        np.testing.assert_allclose(line.get_xdata(), means)
