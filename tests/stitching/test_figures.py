"""The figures show the stored penalties."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.kit.statistics import Interval
from affscore_book.stitching import figures
from affscore_book.stitching.controls import FIRST_HALVES, Controls
from affscore_book.stitching.study import inside_block, load_stitching
from affscore_study.stitching import figures as audit_figures

pytestmark = pytest.mark.usefixtures("figures_closed")


DATA = Path(__file__).parents[2] / "book" / "data" / "stitching"


@pytest.fixture(scope="module")
def study():
    return load_stitching(DATA / "study.json")


def lines(axes):
    return [line.get_ydata() for line in axes.lines]


def test_penalties_are_those_of_the_study(study):
    figures.plot_penalties(study)
    shown = lines(plt.gca())
    for stitch in ("full", "g_relu"):
        wanted = [study.penalty("myrtle", layer, stitch, "learned").mean for layer in study.layers("myrtle")]
        assert any(len(line) == 4 and np.allclose(line, wanted) for line in shown)


def test_shortcuts_stand_beside_a_stitch_at_random(study):
    figures.plot_shortcuts(study)
    inside = [layer for layer in study.layers("resnet20") if inside_block(layer)]
    fits = ("closed form", "closed form, shortcut at random", "closed form, shortcut too")
    wanted = [[study.penalty("resnet20", layer, "g_relu", fit).mean for layer in inside] for fit in fits]
    for values in wanted:
        assert any(len(line) == 9 and np.allclose(line, values) for line in lines(plt.gca()))
    as_it_is, at_random, stitched = map(np.mean, wanted)
    assert stitched < at_random < as_it_is


def test_the_bridge_tells_the_insides_of_blocks_apart(study):
    audit_figures.plot_bridge(study)
    inside, outside = lines(plt.gcf().axes[0])
    assert (len(inside), len(outside)) == (9, 10)
    assert outside[0] == study.penalty("resnet20", "relu", "g_relu").mean


def test_controls_are_means_over_second_halves():
    random = np.random.default_rng(0)
    tables = {kind: random.uniform(0, 80, (4, 4)) for kind in FIRST_HALVES}
    found = Controls([f"relu{i}" for i in range(1, 5)], tables, tables, tables)
    figures.plot_controls(found)
    shown = lines(plt.gca())
    for kind, lost in found.lost.items():
        drawn = any(len(line) == 4 and np.allclose(line, lost.mean(1)) for line in shown)
        assert drawn == (kind != "noise")


def test_averages_are_drawn_as_given():
    lost = {name: {kind: Interval(i + j, i + j - 1, i + j + 1) for j, kind in enumerate("abc")}
            for i, name in enumerate(("ReLU", "linear"))}  # fmt: skip
    figures.plot_averages(lost)
    shown = lines(plt.gca())
    for i in range(2):
        assert any(len(line) == 3 and np.allclose(line, i + np.arange(3)) for line in shown)
