"""Every figure of the byte decoders draws the stored networks, with its marks where the numbers are."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.transformers import gpt_figures as figures
from affscore_book.transformers.gpt_results import load_gpts

GPTS = load_gpts(Path(__file__).parents[2] / "book" / "data" / "transformers" / "gpt")


def draw(name: str):
    assert getattr(figures, name)(GPTS) is None
    figure = plt.gcf()
    figure.draw_without_rendering()
    plt.close(figure)
    return figure


@pytest.mark.parametrize("name", figures.__all__)
def test_every_figure_names_its_axes_and_its_marks(name):
    figure = draw(name)
    assert figure.axes[0].get_xlabel() or figure.get_supxlabel()
    assert figure.axes[0].get_ylabel() or figure.get_supylabel() or figure.axes[0].get_yticklabels()
    assert figure.legends and figure.legends[0].get_texts()


def test_a_course_is_that_of_every_call_by_both_pools():
    for panel, (name, seeds) in zip(draw("plot_gpt_courses").axes, GPTS.items(), strict=False):
        assert panel.get_title(loc="left") == name
        drawn = [line.get_ydata() for line in panel.lines]
        expected = [*seeds[0].scores["spatial"].T, *seeds[0].scores["trailing"].T, seeds[0].bits / 8]
        np.testing.assert_allclose(drawn, expected)


def test_pools_stand_at_the_trained_means_and_every_seed_is_there():
    (axes,) = draw("plot_gpt_pools").axes
    filled = [line for line in axes.lines if line.get_marker() != "None" and line.get_color() != "white"]
    expected = [[network.mean(pool) for network in seeds.values()] for seeds in GPTS.values() for pool in figures.POOLS]
    assert len(filled) == len(expected)
    for line, means in zip(filled, expected, strict=True):
        np.testing.assert_allclose(line.get_xdata(), means)


def test_bits_stand_over_the_means_of_their_pool():
    for panel, pool in zip(draw("plot_gpt_bits").axes, ("spatial", "trailing"), strict=True):
        for line, (name, seeds) in zip(panel.lines, GPTS.items(), strict=True):
            assert line.get_label() == name
            np.testing.assert_allclose(line.get_xdata(), [network.mean(pool) for network in seeds.values()])
            np.testing.assert_allclose(line.get_ydata(), [network.bits[-1] for network in seeds.values()])
