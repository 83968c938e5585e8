"""Every figure on MiniLM draws what is stored, with names on its axes."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.transformers import figures
from affscore_book.transformers.bends import load_sentences
from affscore_book.transformers.claims import attention_effect
from affscore_book.transformers.laws import score_from_means_and_spreads
from affscore_book.transformers.measured import load_minilm_scores
from affscore_book.transformers.vits import BLOCKS, load_vits

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers" / "minilm"
SCORES = load_minilm_scores(FOLDER / "scores.json")
VITS = load_vits(FOLDER.parent / "vits.json")
LEVELS = load_sentences(FOLDER / "sentences.json").levels


def draw(function, *given):
    """The panels of a figure, all of them named."""
    assert function(*given) is None
    figure = plt.gcf()
    figure.draw_without_rendering()
    plt.close(figure)
    assert all(panel.get_xlabel() or panel.get_title(loc="left") for panel in figure.axes)
    assert any(panel.get_ylabel() or panel.get_title(loc="left") for panel in figure.axes)
    return figure.axes


def line(axes, label):
    return next(each for each in axes.lines if each.get_label() == label)


def test_pools_are_of_as_many_samples():
    (axes,) = draw(figures.plot_pools, SCORES)
    for pool in ("spatial", "trailing", "first"):
        np.testing.assert_allclose(line(axes, pool).get_ydata(), SCORES.of(pool=pool))
    np.testing.assert_allclose(line(axes, "tokens").get_ydata(), SCORES.batches(pool="tokens").mean(axis=0))


def test_starts_and_the_linear_twin_are_those_of_the_weights_and_the_pool():
    for axes, pool in zip(draw(figures.plot_minilm_weights, SCORES), ("spatial", "trailing"), strict=True):
        np.testing.assert_allclose(line(axes, "trained").get_ydata(), SCORES.of(pool=pool))
        np.testing.assert_allclose(line(axes, "linear twin").get_ydata(), SCORES.line(pool=pool))
        for weights in ("random", "rearranged"):
            expected = SCORES.starts(weights, pool=pool).mean(axis=0)
            np.testing.assert_allclose(line(axes, weights).get_ydata(), expected)


def test_histograms_are_densities_of_the_named_layers():
    for axes, number in zip(draw(figures.plot_gelu_inputs, SCORES), (1, 3, 5), strict=True):
        assert axes.get_title(loc="left") == f"layer {number}"
        for patch, weights in zip(axes.patches, ("trained", "random"), strict=True):
            values, edges, _ = patch.get_data()
            assert (values * np.diff(edges)).sum() == pytest.approx(1, abs=1e-3)
            np.testing.assert_allclose(values * np.diff(edges), SCORES.layers[f"{weights} 0"][number - 1].shares)


def test_laws_stand_beside_what_was_measured():
    (axes,) = draw(figures.plot_laws, SCORES, LEVELS)
    np.testing.assert_allclose(line(axes, "512 texts, averaged").get_ydata(), SCORES.of())
    np.testing.assert_allclose(line(axes, "512 tokens").get_ydata(), SCORES.batches(pool="tokens").mean(axis=0))
    np.testing.assert_allclose(line(axes, "8,192 tokens, paired").get_ydata(), 1 - LEVELS)
    expected = [score_from_means_and_spreads(layer) for layer in SCORES.layers["trained 0"]]
    np.testing.assert_allclose(line(axes, "formula").get_ydata(), expected)


def test_attention_has_a_dot_for_every_batch_and_start():
    panels = draw(figures.plot_attention, SCORES, VITS)
    kinds = ((True, "spatial"), (True, "tokens"), (False, "spatial"))
    expected = [[attention_effect(SCORES, trained, pool) for trained, pool in kinds]]
    expected += [[VITS.effect(network, pool, trained) for trained, pool in kinds] for network in BLOCKS]
    assert [panel.get_title(loc="left") for panel in panels] == ["MiniLM", *BLOCKS]
    for panel, effects in zip(panels, expected, strict=True):
        dots = [each.get_ydata() for each in panel.lines if each.get_marker() in ("o", "^", "s")]
        np.testing.assert_allclose(dots, np.concatenate(effects))


def test_pools_leave_averages():
    panels = draw(figures.plot_what_pools_keep)
    spatial, trailing, first, tokens = (np.ma.filled(panel.images[0].get_array(), np.nan) for panel in panels)
    np.testing.assert_allclose(spatial[0], tokens.mean(axis=0))
    np.testing.assert_allclose(trailing[:, 0], tokens.mean(axis=1))
    np.testing.assert_allclose(first[0], tokens[0])
    assert np.isnan(first[1:]).all()
