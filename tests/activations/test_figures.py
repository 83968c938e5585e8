"""Every figure of the chapter on activations draws, and its tables show every row."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn import check_figure

from affscore_book.activations import figures
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import summarise
from affscore_book.activations.sweeps import Sweep, load_sweep
from affscore_book.activations.tables import SplitTable
from affscore_study.activations import figures as study_figures
from affscore_study.activations.tables import ActivationTable, SummaryTable

SWEEP = load_sweep(Path(__file__).resolve().parents[2] / "book" / "data" / "activations" / "figure_8.json")
PART = replace(SWEEP, scores={name: SWEEP.scores[name] for name in ("relu", "silu")})


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (lambda: figures.plot_boxes(PART), 2),
        (lambda: figures.plot_dimensions(PART, "silu", 1.0), 1),
        (lambda: study_figures.plot_rounding("tanh", 0.25), 1),
        (lambda: study_figures.plot_shrinkage(["relu"], n=20), 2),
        (lambda: study_figures.plot_zoo("power"), 4),
    ],
)
def test_figures(draw, panels):
    check_figure(draw, panels)


def test_tables_show_every_row_once():
    lines = ActivationTable()._repr_markdown_().splitlines()
    assert len(lines) == len(CATALOGUE) + 2 and all(line.count(" | ") == 5 for line in lines)
    summary = SummaryTable({name: summarise(name) for name in ("silu", "tanh", "relu")})
    assert summary._repr_html_().count("<tr>") == 4 and summary["name"].tolist() == ["ReLU", "tanh", "SiLU"]


def test_a_split_table_averages_over_each_part_alone():
    """A third of the inputs has no score for ReLU, and SiLU's scores there do not enter the first columns."""
    nan = float("nan")
    scores = {"relu": np.array([[nan], [0.8], [1.0]]), "silu": np.array([[0.1], [0.7], [0.9]])}
    sweep = Sweep(np.array([-30.0, 0.0, 9.0]), np.array([1.0]), scores, {"n": 5, "d": 7, "seed": 0})
    rows = SplitTable(sweep, ["relu", "silu"], other="relu").rows()
    parts = ("ReLU alive: d = 7", "ReLU dead: d = 7")
    assert [[row[part] for part in parts] for row in rows] == [["0.90", "-"], ["0.80", "0.10"]]
