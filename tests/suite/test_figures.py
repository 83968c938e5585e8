"""The figures name random weights and can be read on a phone."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_signatures import made, published, random_scores

from affscore_book.kit.architectures import FAMILIES
from affscore_study.suite import figures
from affscore_study.suite.compare import history
from affscore_study.suite.distances import distances

pytestmark = pytest.mark.usefixtures("figures_closed")


def many(count, kind):
    """Made signatures of torchvision's architectures; ``kind(i)`` is the kind of weights of the i-th."""
    names = [name for family in FAMILIES.values() for name in family.depths if "regnet" not in name][:count]
    return {name: published(name, random_scores(i, 2, 5 + 3 * i), kind(i)) for i, name in enumerate(names)}


def texts():
    plt.gcf().draw_without_rendering()
    return [text for text in plt.gcf().findobj(plt.Text) if text.get_visible() and text.get_text().strip()]


FIGURES = {
    "signatures": figures.plot_signatures,
    "distances": lambda s: figures.plot_distances(distances(s)),
    "dendrogram": lambda s: figures.plot_dendrogram(distances(s)),
    "densities": figures.plot_densities,
    "history": lambda s: figures.plot_history(history(s)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_name_networks_and_are_legible(name):
    """Figures name every network, mark random weights and are legible on a phone."""
    signatures = many(33, lambda i: "pretrained" if i % 2 else "random")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FIGURES[name](signatures)
        shown = texts()
    assert plt.gcf().get_figwidth() == 6.0
    words = [text.get_text() for text in shown]
    assert any("*: random weights" in word for word in words)
    for i, network in enumerate(signatures):
        # In the history the year follows.
        assert sum(word.split("  ")[0] == network + "*" * (i % 2 == 0) for word in words) == 1, network
    # 6 inches become 360 pixels, so one point becomes 60 / 72 pixels.
    assert min(text.get_fontsize() for text in shown) * 60 / 72 >= 8.7


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kind", ["pretrained", "random"])
def test_where_all_weights_are_of_one_kind_no_name_has_a_star(name, kind):
    FIGURES[name](many(3, lambda _: kind))
    words = [text.get_text() for text in texts()]
    assert not any("*" in word for word in words) and any("random weights" in w for w in words) == (kind == "random")


def test_batch_sizes_are_compared_with_the_largest():
    """Each batch size has its curve and, below it, its change from the largest size."""
    scores = {size: random_scores(size, 2, 9) for size in (512, 64, 128)}
    figures.plot_batch_sizes([made(rows, size=size) for size, rows in scores.items()])
    above, below = plt.gcf().axes
    assert [line.get_label() for line in above.lines] == ["64", "128", "512"]
    for line, change in zip(above.lines, below.lines, strict=True):
        mean = scores[int(line.get_label())].mean(axis=0)
        np.testing.assert_allclose(line.get_ydata(), mean)
        np.testing.assert_allclose(change.get_ydata(), mean - scores[512].mean(axis=0), atol=1e-15)
    assert {"change from 512", "weights not recorded"} <= {text.get_text() for text in texts()}


@pytest.mark.parametrize(("change", "words"), [
    ({}, r"batch sizes \[64, 64\]; they should all be different"),
    ({"rows": random_scores(0, 1, 5), "size": 128}, "different activation calls; they should be of one network"),
    ({"data": "cifar10", "size": 128}, "differ in their data"),
])  # fmt: skip
def test_batch_sizes_of_what_differs_in_more_are_refused(change, words):
    one = made(random_scores(0, 1, 4))
    with pytest.raises(ValueError, match=words):
        figures.plot_batch_sizes([one, made(**({"rows": random_scores(0, 1, 4)} | change))])
    with pytest.raises(ValueError, match="at least 2"):
        figures.plot_batch_sizes([one])


def test_twins_are_drawn_beside_the_signatures_that_have_them():
    twins = random_scores(9, 2, 6)
    figures.plot_signatures({
        "with": made(random_scores(0, 2, 6), companions={"twin": twins}), "without": made(random_scores(1, 2, 6)),
    })  # fmt: skip
    (line,) = (line for axes in plt.gcf().axes for line in axes.lines if line.get_linestyle() == "--")
    np.testing.assert_allclose(line.get_ydata(), twins.mean(axis=0))
    assert any("dashed" in text.get_text() for text in texts())


def test_scores_without_spread_have_a_word_in_place_of_a_density():
    figures.plot_densities({"flat": made([[0.5, 0.5]]), "fine": made([[0.4, 0.8, 0.5]])})
    assert "no two different scores" in {text.get_text() for text in texts()}
    assert len(plt.gca().lines) == 1


def test_the_tree_is_cut_into_clusters_of_their_own_colours():
    """Two pairs that lie close, and two networks far from all: those stay dark."""
    levels = (0.3, 0.31, 0.6, 0.61, 0.8, 0.95)
    figures.plot_dendrogram(distances({f"net{i}": made(np.full(6, level)) for i, level in enumerate(levels)}))
    assert sorted(len(lines.get_segments()) for lines in plt.gca().collections) == [1, 1, 3]
