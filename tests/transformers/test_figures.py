"""Every figure on MiniLM and on the byte decoders draws what is stored, with names on its axes."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.transformers import figures, gpt_figures
from affscore_book.transformers.bends import load_sentences
from affscore_book.transformers.gpt_results import GPT_POOLS, load_gpts
from affscore_book.transformers.measured import attention_effect, load_minilm_scores
from affscore_book.transformers.vits import BLOCKS, load_vits
from affscore_study.transformers.gpt_shown import plot_gpt_pools
from affscore_study.transformers.laws import score_from_means_and_spreads

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers" / "minilm"
SCORES = load_minilm_scores(FOLDER / "scores.json")
VITS = load_vits(FOLDER.parent / "vits.json")
LEVELS = load_sentences(FOLDER / "sentences.json").levels
GPTS = load_gpts(FOLDER.parent / "gpt")


def draw(function, *given):
    """The panels of a figure, all of them named."""
    assert function(*given) is None
    figure = plt.gcf()
    figure.draw_without_rendering()
    plt.close(figure)
    assert all(panel.get_xlabel() or panel.get_title(loc="left") for panel in figure.axes)
    return figure.axes


def drawn(axes) -> dict:
    return {line.get_label(): line.get_ydata() for line in axes.lines}


LAWS = [score_from_means_and_spreads(layer) for layer in SCORES.layers["trained 0"]]
TOKENS = SCORES.batches(pool="tokens").mean(axis=0)


@pytest.mark.parametrize(("function", "given", "panels"), [
    (figures.plot_pools, (SCORES,),
     [{pool: SCORES.of(pool=pool) for pool in ("spatial", "trailing", "first")} | {"tokens": TOKENS}]),
    (figures.plot_minilm_weights, (SCORES,), [
        {"trained": SCORES.of(pool=pool), "linear twin": SCORES.line(pool=pool)}
        | {weights: SCORES.starts(weights, pool=pool).mean(axis=0) for weights in ("random", "rearranged")}
        for pool in ("spatial", "trailing")
    ]),
    (figures.plot_laws, (SCORES, LEVELS, LAWS), [{
        "512 texts, averaged": SCORES.of(), "512 tokens": TOKENS, "8,192 tokens, paired": 1 - LEVELS,
        "formula": LAWS,
    }]),
])  # fmt: skip
def test_lines_are_those_that_the_legend_names(function, given, panels):
    for axes, expected in zip(draw(function, *given), panels, strict=True):
        found = drawn(axes)
        assert found.keys() == expected.keys()
        for label, values in expected.items():
            np.testing.assert_allclose(found[label], values)


def test_histograms_are_densities_of_the_named_layers():
    for axes, number in zip(draw(figures.plot_gelu_inputs, SCORES), (1, 3, 5), strict=True):
        assert axes.get_title(loc="left") == f"layer {number}"
        for patch, weights in zip(axes.patches, ("trained", "random"), strict=True):
            values, edges, _ = patch.get_data()
            assert (values * np.diff(edges)).sum() == pytest.approx(1, abs=1e-3)
            np.testing.assert_allclose(values * np.diff(edges), SCORES.layers[f"{weights} 0"][number - 1].shares)


def test_attention_has_a_dot_for_every_batch_and_start():
    panels = draw(figures.plot_attention, SCORES, VITS)
    kinds = ((True, "spatial"), (True, "tokens"), (False, "spatial"))
    expected = [[attention_effect(SCORES, trained, pool) for trained, pool in kinds]]
    expected += [[VITS.effect(network, pool, trained) for trained, pool in kinds] for network in BLOCKS]
    assert [panel.get_title(loc="left") for panel in panels] == ["MiniLM", *BLOCKS]
    for panel, effects in zip(panels, expected, strict=True):
        dots = [each.get_ydata() for each in panel.lines if each.get_marker() in ("o", "^", "s")]
        np.testing.assert_allclose(dots, np.concatenate(effects))


def test_a_block_is_drawn_in_the_order_of_its_parts():
    figures.plot_transformer_block()
    (panel,) = plt.gcf().axes
    places = {text.get_text(): text.get_position()[0] for text in panel.texts if text.get_text()}
    plt.close()
    order = ["attention\n(softmax)", "norm", "up", "x", "GELU", "y", "down"]  # of the two norms the second
    assert sorted(order, key=places.get) == order


def test_pools_leave_averages():
    panels = draw(figures.plot_what_pools_keep)
    spatial, trailing, first, tokens = (np.ma.filled(panel.images[0].get_array(), np.nan) for panel in panels)
    np.testing.assert_allclose(spatial[0], tokens.mean(axis=0))
    np.testing.assert_allclose(trailing[:, 0], tokens.mean(axis=1))
    np.testing.assert_allclose(first[0], tokens[0])
    assert np.isnan(first[1:]).all()


def test_a_course_is_that_of_every_call_by_both_pools():
    network = GPTS["gelu"][0]
    for panel, pool in zip(draw(gpt_figures.plot_gpt_courses, GPTS), ("spatial", "trailing"), strict=True):
        assert panel.get_title(loc="left") == f"{pool} pool"
        np.testing.assert_allclose([*drawn(panel).values()], [*network.scores[pool].T, network.bits / 8])


def test_pools_are_drawn_at_trained_means_of_every_seed():
    """Pools are drawn at the means after training, and every seed is there."""
    (axes,) = draw(plot_gpt_pools, GPTS)
    filled = [line for line in axes.lines if line.get_marker() != "None" and line.get_color() != "white"]
    expected = [[network.mean(pool) for network in seeds.values()] for seeds in GPTS.values() for pool in GPT_POOLS]
    assert len(filled) == len(expected)
    for line, means in zip(filled, expected, strict=True):
        np.testing.assert_allclose(line.get_xdata(), means)
