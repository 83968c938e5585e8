"""Every figure of the chapter on activations draws, and its tables show every row."""

from pathlib import Path

import pytest
import torch
from drawn import check_figure

from affscore_book.activations import figures
from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.activations.laws import summarise
from affscore_book.activations.sweeps import load_sweep
from affscore_book.activations.tables import ActivationTable, SummaryTable

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "activations" / "figure_8.json"


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (lambda: figures.plot_inputs("sigmoid", (-3.0, 0.0)), 2),
        (lambda: figures.explore(torch.nn.Softplus(beta=3), 1.0, 0.5), 2),
        (lambda: figures.plot_curves(["sigmoid"], (0.5, 1.0)), 1),
        (lambda: figures.plot_moving_range("relu", 100, 0), 1),
        (lambda: figures.plot_shapes(["relu", "tanh"], 0.0), 1),
        (lambda: figures.plot_polynomials({3: 0.71}, 100, 0), 1),
        (lambda: figures.plot_boxes(load_sweep(STORED)), 9),
        (lambda: figures.plot_dimensions(load_sweep(STORED), "silu", 1.0), 1),
        (lambda: figures.plot_pooling("relu", positions=4, n=20), 1),
        (lambda: figures.plot_shrinkage(["relu"], n=20), 2),
        (lambda: figures.plot_zoo("power"), 4),
        (lambda: figures.plot_summaries({"relu": summarise("relu"), "silu": summarise("silu")}, ["silu"]), 1),
    ],
)
def test_figures(draw, panels):
    check_figure(draw, panels)


def test_tables_show_every_row_once():
    table = ActivationTable()
    assert len(table._repr_markdown_().splitlines()) == len(CATALOGUE) + 2
    assert all(line.count(" | ") == 5 for line in table._repr_markdown_().splitlines())
    summary = SummaryTable({name: summarise(name) for name in ("silu", "tanh", "relu")})
    assert summary._repr_html_().count("<tr>") == 4 and summary["name"].tolist() == ["ReLU", "tanh", "SiLU"]
