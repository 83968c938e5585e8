"""Every figure of the chapter draws the stored runs, with names on its axes and dots where the numbers are."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from grids import each
from torch import nn

from affscore_book.linearized import figures
from affscore_book.linearized.paths import path_lengths
from affscore_book.linearized.results import load_runs
from affscore_book.linearized.trunks import load_trunks, with_mlp

FOLDER = Path(__file__).parents[2] / "book" / "data" / "linearized"
RUNS = load_runs(FOLDER)
TRUNKS = with_mlp(load_trunks(FOLDER), RUNS)
LENGTHS = path_lengths(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.zeros(1, 2))
DRAWN = {
    figures.plot_prior: (),
    figures.plot_path_lengths: (LENGTHS,),
    figures.plot_starts: (RUNS,),
    figures.plot_gaps: (RUNS, {"mlp, late": ("mlp", "base", "late")}),
    figures.plot_collapse: (RUNS,),
    figures.plot_trajectory: (RUNS, "mlp"),
    figures.plot_dimension: (RUNS,),
    figures.plot_predictors: (RUNS,),
    figures.plot_slope_shares: (RUNS,),
    figures.plot_trunks: (TRUNKS, RUNS.strengths("mlp")[1:4]),
}


def draw(function):
    assert function(*DRAWN[function]) is None
    figure = plt.gcf()
    plt.close(figure)
    return figure


@each("function", DRAWN)
def test_every_figure_names_its_axes(function):
    axes = draw(function).axes
    names = {tick.get_text() for panel in axes for tick in (*panel.get_xticklabels(), *panel.get_yticklabels())}
    assert any(panel.get_xlabel() for panel in axes) or "mlp" in names
    assert any(panel.get_ylabel() for panel in axes) or "mlp, late" in names
    assert {function.__name__ for function in DRAWN} == set(figures.__all__)


def test_the_gaps_are_those_of_the_runs_with_their_mean():
    (axes,) = draw(figures.plot_gaps).axes
    gaps = list(RUNS.gap("mlp").values())
    dots, mean = axes.lines[:2]
    np.testing.assert_allclose(dots.get_xdata(), gaps)
    assert mean.get_xdata() == pytest.approx(np.mean(gaps))


def test_slopes_are_shares_of_all_channels_and_those_at_one_stand_apart():
    for panel, network in zip(draw(figures.plot_slope_shares).axes, RUNS.runs, strict=True):
        runs = RUNS.select(network, start="late", strength=RUNS.strengths(network)[2])
        slopes = np.array([slope for run in runs for values in run["slopes"].values() for slope in values])
        *learned, fixed = (bar.get_height() for bar in panel.patches)
        assert fixed == pytest.approx(100 * np.mean(slopes == 1))
        assert sum(learned) + fixed == pytest.approx(100, abs=0.5)  # a few lie outside
