"""Every figure says whose weights it shows."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_signatures import published, random_scores

from affscore_book.imagenet_signatures import figures
from affscore_study.imagenet_signatures import figures as study_figures
from affscore_study.imagenet_signatures.full_results import Results


@pytest.fixture(autouse=True)
def closed(figures_closed):
    """What a test draws is closed after it."""


def test_every_figure_says_whose_weights_it_shows():
    scores, odd = random_scores(0, 2, 5), np.arange(5) % 2 == 1
    block = (scores[0], np.ones(5), odd, ~odd)
    columns = ["CKA", "norm", "R2 held out"]
    trained = {name: dict.fromkeys(columns, 0.1) for name in ("lite0", "net, seed 0")}
    for draw, arguments in (
        (figures.plot_block_scores, ({"trained": block, "random": block},)),
        (figures.plot_start, ("net", scores, scores)),
        (figures.plot_trained, ({"net": {"random weights": scores, "batch norm set": scores, "trained": scores}},)),
        (figures.plot_shares, ({"net: a random start": [0.4], "net: other trained seeds": [0.2, 0.3]},)),
        (figures.plot_measures, ({"alexnet": {"CKA": 0.5, "norm": -0.2}}, trained)),
    ):
        assert draw(*arguments) is None
        texts = [text.get_text() for text in plt.gcf().findobj(plt.Text)]
        named = ("random", "trained", "paper's 1")
        assert any(word in text for text in texts for word in named), draw.__name__


def test_families_are_named_once_and_parted():
    apart = np.full((5, 5), 0.5)
    np.fill_diagonal(apart, np.inf)
    figures.plot_families(apart, np.array(["A", "B", "B", "C", "C"]))
    panel = plt.gcf().axes[0]
    assert [text.get_text() for text in panel.get_yticklabels()] == ["A", "B", "C"]
    assert panel.get_yticks().tolist() == [0, 1.5, 3.5] and len(panel.lines) == 4


def test_papers_history_is_drawn_from_results_by_pool():
    """The history of the paper is drawn by pool, and only from results."""
    study_figures.plot_paper(None)
    assert not plt.get_fignums()
    pools = {pool: {name: published(name, rows, "AlexNet_Weights.IMAGENET1K_V1") for name in ("vgg11", "alexnet")}
             for pool, rows in (("spatial", [0.5, 0.6]), ("trailing", [0.7, 0.9]))}  # fmt: skip
    for pool, median in (("spatial", 0.55), ("trailing", 0.8)):
        study_figures.plot_paper(Results("imagenette", pools, {}, "a GPU"), pool)
        panel = plt.gcf().axes[0]
        assert [text.get_text() for text in panel.get_yticklabels()] == ["alexnet  12", "vgg11  14"]
        dots = [line.get_xdata()[0] for line in panel.lines if line.get_marker() == "o"]
        np.testing.assert_allclose(dots, median)


def test_both_kinds_of_calls_stand_where_they_are():
    before = (np.array([0.3, 0.5, 0.2]), np.array([0.5, 0.6, 0.7]), np.arange(3) == 1, np.arange(3) == 2)
    figures.plot_skips({"net, before": before, "plain, before": before})
    panel = plt.gcf().axes[1]
    assert panel.get_title() == "plain,\nbefore"
    dots = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in panel.lines]
    assert dots == [([0.5], [0.6]), ([0.2], [0.7])]
