"""The figures name random weights and can be read on a phone."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_signatures import made, published, random_scores

from affscore.companions import MEASURES
from affscore.suite import figures
from affscore.suite.architectures import FAMILIES, weights_kind
from affscore.suite.compare import accuracy_correlations, companion_correlations, history
from affscore.suite.distances import deviations, distances, mds_map

pytestmark = pytest.mark.usefixtures("figures_closed")


@pytest.fixture(scope="module")
def thirty_three():
    """Made signatures of the paper's architectures, half of them called trained."""
    names = [name for family in FAMILIES.values() for name in family.depths if "regnet" not in name][:33]
    result = {}
    for i, name in enumerate(names):
        weights = "X_Weights.IMAGENET1K_V1" if i % 2 else "random initialisation, seed 0"
        calls = 5 + 3 * i
        companions = {measure: random_scores(50 + i, 2, calls) for measure in MEASURES}
        result[name] = published(name, random_scores(i, 2, calls), weights, companions=companions)
    return result


def texts(figure):
    figure.draw_without_rendering()
    return [text for text in figure.findobj(plt.Text) if text.get_visible() and text.get_text().strip()]


FIGURES = {
    "signatures": lambda s: figures.plot_signatures(s),
    "distances": lambda s: figures.plot_distances(distances(s)),
    "dendrogram": lambda s: figures.plot_dendrogram(distances(s)),
    "map": lambda s: figures.plot_map(mds_map(distances(s)), s),
    "densities": lambda s: figures.plot_densities(s),
    "history": lambda s: figures.plot_history(history(s)),
    "companions": lambda s: figures.plot_companions(companion_correlations(s)),
    "accuracy": lambda s: figures.plot_accuracy(accuracy_correlations(s), map(weights_kind, s.values())),
    "deviations": lambda s: figures.plot_deviations(deviations({"a": s, "b": s, "c": s})),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_names_random_weights_and_is_legible_on_a_phone(name, thirty_three):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FIGURES[name](thirty_three)
        shown = texts(plt.gcf())
    assert plt.gcf().get_figwidth() == 6.0
    assert any("random" in text.get_text() for text in shown)
    # 6 inches become 360 pixels, so one point becomes 60 / 72 pixels.
    assert min(text.get_fontsize() for text in shown) * 60 / 72 >= 8.7


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_trained_networks_say_nothing_of_random_weights(name, thirty_three):
    trained = {
        n: published(n, s.scores, "X_Weights.IMAGENET1K_V1", companions=s.companions)
        for n, s in list(thirty_three.items())[:6]
    }
    FIGURES[name](trained)
    assert not any("random" in text.get_text() or "italics" in text.get_text() for text in texts(plt.gcf()))


def test_the_figure_of_batch_sizes_shows_each_size():
    runs = [made(random_scores(size, 2, 9), size=size) for size in (512, 64, 128)]
    figures.plot_batch_sizes(runs)
    found = {text.get_text() for text in texts(plt.gcf())}
    assert {"64", "128", "512", "change from 512", "weights not recorded"} <= found


def dashed(figure):
    return [line for axes in figure.axes for line in axes.lines if line.get_linestyle() == "--"]


def test_twins_are_drawn_beside_the_signatures_that_have_them():
    twins = random_scores(9, 2, 6)
    figures.plot_signatures({
        "with": made(random_scores(0, 2, 6), companions={"twin": twins}), "without": made(random_scores(1, 2, 6)),
    })  # fmt: skip
    (line,) = dashed(plt.gcf())
    np.testing.assert_allclose(line.get_ydata(), twins.mean(axis=0))
    assert any("dashed" in text.get_text() for text in texts(plt.gcf()))
    figures.plot_signatures({"without": made(random_scores(1, 2, 6))})
    assert not dashed(plt.gcf()) and not any("dashed" in text.get_text() for text in texts(plt.gcf()))


def test_a_map_of_few_networks_names_each():
    names = [f"efficientnet_b{i}" for i in range(4)]
    signatures = {name: made(random_scores(i, 1, 6), model=name) for i, name in enumerate(names)}
    figures.plot_map(mds_map(distances(signatures)), signatures)
    assert set(names) <= {text.get_text() for text in texts(plt.gcf())}
