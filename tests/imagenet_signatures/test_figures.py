"""Every figure says whose weights it shows."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_signatures import made, published, random_scores

from affscore.suite.tables import Table
from affscore_book.imagenet_signatures import figures
from affscore_book.imagenet_signatures.explained import Comparison
from affscore_book.imagenet_signatures.full_results import Results
from affscore_book.imagenet_signatures.paper import table_2


@pytest.fixture(autouse=True)
def closed(figures_closed):
    """What a test draws is closed after it."""


def test_every_figure_says_whose_weights_it_shows(block_network):
    nets = {name: made(random_scores(i, 2, 5)) for i, name in enumerate("ab")}
    blocks = block_network([0.5, 0.6, 0.7], companions={"twin": np.ones((1, 3))})
    pairs = [Comparison("net", beside, 1, np.array([[0.4]])) for beside in ("a random start", "other trained seeds")]
    columns = ["CKA", "norm", "sparsity", "entropy", "R2", "R2 held out"]
    trained = Table({"model": ["lite0", "net, seed 0"]} | {column: [0.1, 0.2] for column in columns})
    for draw, arguments in (
        (figures.plot_block_scores, ({"trained": blocks, "random": blocks},)),
        (figures.plot_start, ("net", nets["a"], nets["b"])),
        (figures.plot_trained, (nets, {"random weights": nets})),
        (figures.plot_shares, (pairs,)),
        (figures.plot_measures, (table_2(), trained, columns)),
    ):
        assert draw(*arguments) is None
        texts = [text.get_text() for text in plt.gcf().findobj(plt.Text)]
        named = ("random", "trained", "paper's 32")
        assert any(word in text for text in texts for word in named), draw.__name__


def test_the_papers_history_is_drawn_by_pool_and_only_from_results():
    figures.plot_paper(None)
    assert not plt.get_fignums()
    pools = {pool: {name: published(name, rows, "AlexNet_Weights.IMAGENET1K_V1") for name in ("vgg11", "alexnet")}
             for pool, rows in (("spatial", [0.5, 0.6]), ("trailing", [0.7, 0.9]))}  # fmt: skip
    for pool, median in (("spatial", 0.55), ("trailing", 0.8)):
        figures.plot_paper(Results("imagenette", pools, {}, "a GPU"), pool)
        panel = plt.gcf().axes[0]
        assert [text.get_text() for text in panel.get_yticklabels()] == ["alexnet  12", "vgg11  14"]
        dots = [line.get_xdata()[0] for line in panel.lines if line.get_marker() == "o"]
        np.testing.assert_allclose(dots, median)


def test_each_state_and_network_has_its_own_panel_of_both_kinds_of_calls(block_network):
    start, end = ({seed: block_network([0.5, *found]) for seed in (0, 1)} for found in ([0.6, 0.7], [0.4, 0.9]))
    figures.plot_skips({"before": {"net": start, "plain": start}, "trained": {"net": end, "plain": end}})
    found = {panel.get_title(): [float(line.get_ydata()[0]) for line in panel.lines] for panel in plt.gcf().axes}
    assert found == {f"{name},\n{state}": scores for name in ("net", "plain")
                     for state, scores in (("before", [0.6, 0.7]), ("trained", [0.4, 0.9]))}  # fmt: skip
