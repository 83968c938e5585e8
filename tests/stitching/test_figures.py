"""The figures show the stored penalties."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.stitching import figures
from affscore_book.stitching.stitched import inside_block
from affscore_book.stitching.study import load_stitching

pytestmark = pytest.mark.usefixtures("figures_closed")


@pytest.fixture(scope="module")
def study():
    return load_stitching(Path(__file__).parents[2] / "book" / "data" / "stitching" / "study.json")


def lines(axes):
    return [line.get_ydata() for line in axes.lines]


def test_penalties_are_those_of_the_study(study):
    figures.plot_penalties(study)
    shown = lines(plt.gca())
    for stitch in ("full", "g_relu"):
        wanted = [study.penalty("myrtle", layer, stitch, "learned").mean for layer in study.layers("myrtle")]
        assert any(len(line) == 4 and np.allclose(line, wanted) for line in shown)


def test_shortcuts_stand_beside_the_network_without(study):
    figures.plot_shortcuts(study)
    as_it_is, stitched, without, _ = lines(plt.gca())
    inside = [layer for layer in study.layers("resnet20") if inside_block(layer)]
    assert as_it_is[-1] == study.penalty("resnet20", inside[-1], "g_relu").mean
    assert np.mean(stitched) < np.mean(as_it_is)
    assert np.mean(without) == pytest.approx(study.penalty("plain20", inside, "g_relu").mean)


def test_the_bridge_tells_the_insides_of_blocks_apart(study):
    figures.plot_bridge(study)
    inside, outside = lines(plt.gcf().axes[0])
    assert (len(inside), len(outside)) == (9, 10)
    assert outside[0] == study.penalty("resnet20", "relu", "g_relu").mean


def test_shortcut_signatures_are_means_over_networks(study):
    figures.plot_shortcut_signatures(study)
    for line, kind in zip(lines(plt.gcf().axes[0]), ("resnet20", "plain20"), strict=True):
        np.testing.assert_allclose(line, np.nanmean(study.layer_scores(kind), axis=0))
