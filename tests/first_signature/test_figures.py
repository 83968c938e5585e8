"""The figures of the first chapter: what they draw, and that they draw it."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import torch
from drawn import check_figure
from made_signatures import made

from affscore_book.first_signature.figures import plot_both, plot_calls, plot_moved, plot_with_twins, plot_zigzag
from affscore_book.first_signature.zigzag import load_zigzag


def test_the_two_calls_of_a_block_have_colours_of_their_own():
    """The stem and the head share a module, too, which is no block."""
    names = ["act[0]", "blocks.0.act[0]", "blocks.1.act[0]", "blocks.1.act[1]", "act[1]"]
    found = SimpleNamespace(calls=[SimpleNamespace(name=name) for name in names], mean=np.linspace(0.7, 0.9, 5))
    places = {}

    def draw():
        plot_calls(found, np.full(5, 0.95))
        places.update({line.get_label(): list(line.get_xdata()) for line in plt.gca().lines})

    check_figure(draw, 1)
    assert (places["first call of a block"], places["second call"], places["the others"]) == ([3], [4], [1, 2, 5])


def test_all_figures_are_drawn():
    networks = load_zigzag("book/data/first_signature/zigzag.json")
    one, other = made([0.9, 0.8, 0.7]), made([0.9, 0.9, 0.9])
    check_figure(lambda: plot_zigzag(networks), 1)
    check_figure(lambda: plot_both(one.mean, other.mean), 1)


def test_the_twins_of_an_own_network_are_a_dashed_line():
    found, lines = made([0.9, 0.8, 0.7]), {}
    found.companions["twin"] = np.array([[0.95, 0.94, 0.93], [0.97, 0.96, 0.95]])

    def draw():
        plot_with_twins(found)
        lines.update({line.get_label(): line.get_ydata() for line in plt.gca().lines})

    check_figure(draw, 1)
    np.testing.assert_allclose(lines["linear twins"], [0.96, 0.95, 0.94])


def test_inputs_that_are_cut_are_grey_and_counted():
    texts, greys = [], []

    def draw():
        plot_moved({"first": torch.linspace(-1, 3, 400), "moved": torch.linspace(-3, 1, 400)})
        for ax in plt.gcf().axes:
            texts.append(ax.texts[0].get_text())
            greys.append(
                sum(patch.get_width() for patch in ax.patches if patch.get_facecolor()[0] == patch.get_facecolor()[2])
            )

    check_figure(draw, 2)
    assert texts == ["first: 25% cut", "moved: 75% cut"] and greys[0] == greys[1] > 2
