"""Every figure says whose weights it shows."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from made_signatures import made, random_scores

from affscore.suite.tables import Table
from affscore_book.imagenet_signatures import figures
from affscore_book.imagenet_signatures.explained import Comparison
from affscore_book.imagenet_signatures.paper import table_2


def test_every_figure_says_whose_weights_it_shows(block_network):
    nets = {name: made(random_scores(i, 2, 5)) for i, name in enumerate("ab")}
    pairs = [Comparison("net", beside, 1, np.array([[0.4]])) for beside in ("its start", "other trained seeds")]
    columns = ["CKA", "norm", "sparsity", "entropy", "R2", "R2 held out"]
    trained = Table({"model": ["lite0", "net, seed 0"]} | {column: [0.1, 0.2] for column in columns})
    drawings = [
        (figures.plot_trained, (nets, {"random weights": nets})),
        (figures.plot_shares, (pairs,)),
        (figures.plot_skips, ({"net": {0: block_network([0.5, 0.6, 0.7])}},)),
        (figures.plot_measures, (table_2(), trained, columns)),
    ]
    for draw, arguments in drawings:
        assert draw(*arguments) is None
        figure = plt.gcf()
        texts = [text.get_text() for text in figure.findobj(plt.Text)]
        named = ("random", "trained", "paper's 32")
        assert any(word in text for text in texts for word in named), draw.__name__
        plt.close(figure)


def test_a_share_of_an_untrained_network_is_full_and_of_a_trained_one_hollow():
    pairs = [Comparison("net", beside, 1, np.array([[0.4]])) for beside in ("its start", "other trained seeds")]
    figures.plot_shares(pairs)
    (panel,) = plt.gcf().axes
    dots = [line for line in panel.lines if line.get_marker() == "o"]
    assert [dot.get_markerfacecolor() == "white" for dot in dots] == [False, True]
    plt.close("all")
