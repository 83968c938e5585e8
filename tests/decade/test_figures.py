"""Every figure of the decade draws the stored networks, with names on its axes and marks where the numbers are."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from planted_decade import FOLDER, stored

from affscore_book.decade import figures
from affscore_book.decade.rates import FOLLOWED, RATES, load_rates
from affscore_book.kit.style import INK
from affscore_book.kit.tables import Table
from affscore_study.decade.shown import plot_beginnings, plot_tree

pytestmark = pytest.mark.usefixtures("figures_closed")
TREE = np.array([[0.0, 1, 8, 8], [1, 0, 8, 8], [8, 8, 0, 2], [8, 8, 2, 0]])


def draw(function, *given):
    assert function(*given) is None
    figure = plt.gcf()
    figure.draw_without_rendering()
    assert figure.axes[-1].get_xlabel() or figure.get_supxlabel()
    return figure.axes


def shown(name: str) -> str:
    return name.replace("_bn", ", norm").replace("_", " ")


def rows_of(axes) -> list[str]:
    return [tick.get_text() for tick in axes.get_yticklabels()]


def test_the_history_has_every_score_and_the_mean_of_every_seed():
    (axes,) = draw(figures.plot_decade, stored())
    for row, (name, seeds) in enumerate(stored().items()):
        scores, means = axes.lines[2 * row : 2 * row + 2]
        expected = [network.end.mean for network in seeds.values()]
        np.testing.assert_allclose(scores.get_xdata(), expected[0][~np.isnan(expected[0])])
        np.testing.assert_allclose(means.get_xdata(), [np.nanmean(each) for each in expected])
        assert set(scores.get_ydata()) == {row} and rows_of(axes)[row].startswith(shown(name))


def test_squares_mark_networks_without_norm():
    """Squares mark the networks without normalisation, and the colours have names."""
    (axes,) = draw(figures.plot_decade, stored(), ["alexnet", "vgg11"])
    marks = {rows_of(axes)[row]: axes.lines[2 * row + 1].get_marker() for row in range(len(stored()))}
    assert [name for name, mark in marks.items() if mark == "s"] == ["alexnet 12", "vgg11 14"]
    (legend,) = plt.gcf().legends
    assert [text.get_text() for text in legend.get_texts()][::5] == ["2012", "no norm"]
    assert len(legend.get_texts()) == len(figures.ERAS) + 1


def test_rows_have_their_names_and_differences_are_sorted():
    """Rows stand beside their names, and differences are sorted."""
    ladder = {name: (value, value - 0.3, value + 0.1) for name, value in (("seed", 0.5), ("batch", 0.2), ("rate", 0.7))}
    (axes,) = draw(figures.plot_differences, ladder)
    dots = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    assert (rows_of(axes), dots) == (["batch", "seed", "rate"], [0.2, 0.5, 0.7])
    assert axes.lines[0].get_xdata()[0] == 0, "no difference is below 0"
    told = [{"network": name, "start": 0.2, "ceiling": 0.7} for name in ("vgg11", "swin")]
    (axes,) = draw(plot_beginnings, Table.from_rows(told))
    assert rows_of(axes) == ["vgg11", "swin"] and len(axes.lines) == 6


def test_trained_network_has_a_panel_with_a_line_each():
    """A trained network has a panel, with a line for each of its states."""
    panes = {name: {"before": np.array([0.9, 0.8]), "after": np.array([0.7, shift])}
             for name, shift in (("old", 0.5), ("new", 0.6))}  # fmt: skip
    axes = draw(figures.plot_own, panes)
    assert [panel.get_title(loc="left") for panel in axes] == ["old", "new"]
    assert [panel.lines[1].get_ydata()[1] for panel in axes] == [0.5, 0.6]
    assert [text.get_text() for text in plt.gcf().legends[0].get_texts()] == ["before", "after"]


def test_every_followed_run_has_a_mark_in_its_row():
    """Every run of a followed network has a mark in the row of its network."""
    runs = load_rates(FOLDER, stored(), {})
    (axes,) = draw(figures.plot_rates, runs)
    marks = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    drawn = {(round(x, 9), FOLLOWED[int(y)]) for line in marks for x, y in line.get_xydata()}
    assert drawn == {(round(float(run.scores[-1]), 9), run.name) for run in runs if run.name in FOLLOWED}
    assert axes.get_legend_handles_labels()[1] == [f"{rate:g}" for rate in RATES]


def test_skips_have_a_line_each_and_a_mark_for_each_block():
    curves = {name: np.array([each.end.mean for each in stored()[name].values()])
              for name in ("resnet18", "resnet18_no_skips")}  # fmt: skip
    (axes,) = draw(figures.plot_without_skips, curves, range(3, 18, 2))
    lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    for line, scores in zip(lines, curves.values(), strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.mean(scores, axis=0))
    assert [line.get_xdata()[0] for line in axes.lines if line not in lines] == [3, 5, 7, 9, 11, 13, 15, 17]


def test_leaves_of_a_tree_are_coloured_by_kin():
    """Related leaves of a tree are neighbours of one colour, and leaves without a relative are black."""
    (axes,) = draw(plot_tree, TREE, ["vgg11", "vgg13", "swin", "vit_8"], ["vgg", "vgg", "swin", "vit"])
    colours = {tick.get_text(): tick.get_color() for tick in axes.get_yticklabels()}
    assert colours["vgg11"] == colours["vgg13"] != colours["swin"] == colours["vit 8"] == INK
    names = "".join(rows_of(draw(plot_tree, TREE, list("aabb"))[0]))
    assert names in ("aabb", "bbaa") and axes.get_xlim()[0] >= 8


def test_raw_signatures_show_every_call_once():
    """Raw signatures show every call once and ring those after additions."""
    networks = [stored()[name][0] for name in ("resnet18", "mobilenet_v3", "alexnet")]
    axes = draw(figures.plot_raw, networks)
    for panel, network in zip(axes, networks, strict=False):
        line, *rest = panel.lines
        np.testing.assert_allclose(line.get_ydata(), network.end.mean)
        rings = rest.pop() if network.name == "resnet18" else None
        assert sum(len(each.get_xdata()) for each in rest) == len(network.end.calls)
        assert rings is None or list(rings.get_xdata()) == [3, 5, 7, 9, 11, 13, 15, 17]
    assert not axes[3].axison
