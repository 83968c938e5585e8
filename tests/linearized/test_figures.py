"""Every figure of the chapter draws the stored runs, with names on its axes and dots where the numbers are."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.linearized import figures
from affscore_book.linearized.results import load_runs
from affscore_study.linearized import figures as study_figures
from affscore_study.linearized.trunks import load_trunks, with_mlp

FOLDER = Path(__file__).parents[2] / "book" / "data" / "linearized"
RUNS = load_runs(FOLDER)
TRUNKS = with_mlp(load_trunks(FOLDER), RUNS)
SLOPES = np.linspace(0, 0.9, 10)
HISTORY = [(0.0, 0.7), (0.25, 0.8)]
GAPS = {"mlp, late": list(RUNS.gap("mlp").values())}
DRAWN = {
    figures.plot_prior: (SLOPES, {"square": ((1 - SLOPES) ** 2, 2 - 2 * SLOPES)}),
    figures.plot_path_lengths: ({"APL": np.array([0.2, 0.8, 0.0]), "NAPL": np.array([0.5, 0.5, 0.0])},),
    figures.plot_starts: (RUNS,),
    figures.plot_gaps: (GAPS,),
    figures.plot_collapse: (RUNS, {"mlp": 0.58}),
    figures.plot_trajectory: ({"early": HISTORY}, {"early": range(0, 1)}),
    figures.plot_predictors: (RUNS,),
    study_figures.plot_slope_shares: (RUNS,),
    study_figures.plot_trunks: (TRUNKS, RUNS.strengths("mlp")[1:4]),
}


def draw(function):
    assert function(*DRAWN[function]) is None
    figure = plt.gcf()
    plt.close(figure)
    return figure


@pytest.mark.parametrize("function", DRAWN)
def test_every_figure_names_its_axes(function):
    axes = draw(function).axes
    names = {tick.get_text() for panel in axes for tick in (*panel.get_xticklabels(), *panel.get_yticklabels())}
    assert any(panel.get_xlabel() for panel in axes) or "mlp" in names
    assert any(panel.get_ylabel() for panel in axes) or "mlp, late" in names
    assert {function.__name__ for function in DRAWN} == {*figures.__all__, *study_figures.__all__}


def test_the_gaps_are_those_of_the_runs_with_their_mean():
    (axes,) = draw(figures.plot_gaps).axes
    (gaps,) = GAPS.values()
    dots, mean = axes.lines[:2]
    np.testing.assert_allclose(dots.get_xdata(), gaps)
    assert mean.get_xdata() == pytest.approx(np.mean(gaps))


def test_slopes_are_shares_with_those_at_one_apart():
    """Slopes are drawn as shares of all channels, and those fixed at one stand apart."""
    for panel, network in zip(draw(study_figures.plot_slope_shares).axes, RUNS.runs, strict=True):
        runs = RUNS.select(network, start="late", strength=RUNS.strengths(network)[2])
        slopes = np.array([slope for run in runs for values in run["slopes"].values() for slope in values])
        *learned, fixed = (bar.get_height() for bar in panel.patches)
        assert fixed == pytest.approx(100 * np.mean(slopes == 1))
        assert sum(learned) + fixed == pytest.approx(100, abs=0.5)  # a few lie outside


def test_ring_marks_the_loss_and_lengths_end_at_the_longest():
    """A ring marks where a point is lost, and the path lengths end at the longest one."""
    (axes,) = draw(figures.plot_collapse).axes
    assert any(line.get_xydata().tolist() == [[pytest.approx(58), 1]] for line in axes.lines)
    (axes,) = draw(figures.plot_path_lengths).axes
    assert [bar.get_height() for bar in axes.patches] == [0.2, 0.8, 0.5, 0.5]
    assert [line.get_xdata()[0] for line in axes.lines] == [0.8, 0.5]


def test_history_starts_without_linear_channels():
    """A history begins with no linear channel and is drawn in per cent."""
    above, below = draw(figures.plot_trajectory).axes
    assert above.lines[0].get_ydata().tolist() == [0, 0, 25] and below.lines[0].get_ydata().tolist() == [70, 80]
