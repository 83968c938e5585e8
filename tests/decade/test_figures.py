"""Every figure of the decade draws the stored networks, with names on its axes and marks where the numbers are."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore.plots import INK
from affscore.suite.tables import Table
from affscore_book.decade import figures
from affscore_book.decade.collection import END, load_decade
from affscore_book.decade.rates import FOLLOWED, RATES, load_rates
from affscore_book.decade.variance import difference_table

FOLDER = Path(__file__).parents[2] / "book" / "data" / "decade"
DECADE = load_decade(FOLDER)
RUNS = load_rates(FOLDER, DECADE)
TOLD = Table.from_rows([{"network": name, "start": 0.2, "ceiling": 0.7} for name in ("vgg11", "swin")])
TREE = np.array([[0.0, 1, 8, 8], [1, 0, 8, 8], [8, 8, 0, 2], [8, 8, 2, 0]])
DRAWN = {
    figures.plot_decade: (DECADE,),
    figures.plot_differences: (difference_table(DECADE),),
    figures.plot_beginnings: (TOLD,),
    figures.plot_rates: (RUNS,),
    figures.plot_raw: ([DECADE[name][0] for name in ("resnet18", "mobilenet_v3", "alexnet")],),
    figures.plot_without_skips: (DECADE,),
    figures.plot_tree: (TREE, ["labels", "labels", "simclr", "simclr"]),
}


def draw(function):
    assert function(*DRAWN[function]) is None
    figure = plt.gcf()
    figure.draw_without_rendering()
    plt.close(figure)
    return figure


@pytest.mark.parametrize("function", DRAWN, ids=lambda function: function.__name__)
def test_every_figure_names_its_axes(function):
    figure = draw(function)
    assert figure.axes[-1].get_xlabel() or figure.get_supxlabel()
    ticks = {tick.get_text() for tick in figure.axes[0].get_yticklabels()}
    named = ticks & {"alexnet 12", "batch", "vgg11", "simclr"}
    assert named or figure.axes[0].get_ylabel() or figure.get_supylabel()
    assert {function.__name__ for function in DRAWN} == set(figures.__all__)


def test_the_history_has_every_score_and_the_mean_of_every_seed():
    (axes,) = draw(figures.plot_decade).axes
    for row, seeds in enumerate(DECADE.values()):
        scores, means = axes.lines[2 * row : 2 * row + 2]
        expected = [network.signatures[END, "spatial"].mean for network in seeds.values()]
        np.testing.assert_allclose(scores.get_xdata(), expected[0][~np.isnan(expected[0])])
        np.testing.assert_allclose(means.get_xdata(), [np.nanmean(each) for each in expected])
        assert set(scores.get_ydata()) == {row}


def test_differences_are_sorted_and_stand_beside_their_names():
    (axes,) = draw(figures.plot_differences).axes
    table = DRAWN[figures.plot_differences][0]
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    dots = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    np.testing.assert_allclose(dots, [table.row(name)["difference"] for name in names])


def test_every_run_of_a_followed_network_has_a_mark_in_the_row_of_its_network():
    (axes,) = draw(figures.plot_rates).axes
    marks = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    drawn = {(round(x, 9), FOLLOWED[int(y)]) for line in marks for x, y in line.get_xydata()}
    assert drawn == {(round(float(run.scores[-1]), 9), run.name) for run in RUNS if run.name in FOLLOWED}
    assert axes.get_legend_handles_labels()[1] == [f"{rate:g}" for rate in RATES]


def test_skips_have_a_line_each_and_a_mark_for_each_block():
    (axes,) = draw(figures.plot_without_skips).axes
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    for line, name in zip(lines, ("resnet18", "resnet18_no_skips"), strict=True):
        scores = [each.signatures[END, "spatial"].mean for each in DECADE[name].values()]
        np.testing.assert_allclose(line.get_ydata(), np.mean(scores, axis=0))
    assert [line.get_xdata()[0] for line in axes.lines if line not in lines] == [3, 5, 7, 9, 11, 13, 15, 17]


def test_leaves_of_a_tree_are_beside_their_kin():
    (axes,) = draw(figures.plot_tree).axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names in (["labels", "labels", "simclr", "simclr"], ["simclr", "simclr", "labels", "labels"])
    assert axes.get_xlim()[0] >= 8


def test_leaves_of_one_group_have_one_colour_and_those_that_are_alone_are_black():
    figures.plot_tree(TREE, ["vgg11", "vgg13", "swin", "vit_8"], ["vgg", "vgg", "swin", "vit"])
    colours = {tick.get_text(): tick.get_color() for tick in plt.gca().get_yticklabels()}
    plt.close()
    assert colours["vgg11"] == colours["vgg13"] != colours["swin"] == colours["vit 8"] == INK


def test_raw_signatures_show_every_call_once_and_ring_those_after_additions():
    axes = draw(figures.plot_raw).axes
    for panel, network in zip(axes, DRAWN[figures.plot_raw][0], strict=False):
        signature = network.signatures[END, "spatial"]
        line, *rest = panel.lines
        np.testing.assert_allclose(line.get_ydata(), signature.mean)
        rings = rest.pop() if network.name == "resnet18" else None
        assert sum(len(each.get_xdata()) for each in rest) == len(signature.calls)
        assert rings is None or list(rings.get_xdata()) == [3, 5, 7, 9, 11, 13, 15, 17]
    assert not axes[3].axison
