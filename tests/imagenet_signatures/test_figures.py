"""Every figure says whose weights it shows."""

from __future__ import annotations

import matplotlib.pyplot as plt
from made_signatures import made, random_scores

from affscore_book.imagenet_signatures import figures


def test_every_figure_says_whose_weights_it_shows():
    nets = {name: made(random_scores(i, 2, 5)) for i, name in enumerate("ab")}
    drawings = [
        (figures.plot_pools, (nets, nets)),
        (figures.plot_medians, (nets, nets, ["a"])),
        (figures.plot_trained, (nets, {"random weights": nets})),
        (figures.plot_start, (nets, nets, "random weights")),
        (figures.plot_data_sets, ({"photographs": nets["a"], "noise": nets["b"]}, "net, trained")),
    ]
    for draw, arguments in drawings:
        assert draw(*arguments) is None
        figure = plt.gcf()
        texts = [text.get_text() for text in figure.findobj(plt.Text)]
        assert any("random" in text or "trained" in text for text in texts), draw.__name__
        plt.close(figure)
