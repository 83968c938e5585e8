"""Every figure of the chapter on ReLU draws as many panels as it has ideas, with data in each."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
import torch

from affscore_book.relu_1d import figures


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (figures.plot_correlation, 1), (lambda: figures.plot_figure_3(n=20), 3), (figures.plot_gaussian, 2),
        (figures.plot_limits, 2), (lambda: figures.plot_module(torch.nn.GELU(), n=50), 1), (figures.plot_relatives, 2),
        (figures.plot_sorting, 2), (figures.plot_symmetry, 2), (figures.plot_three_ranges, 3),
    ],
)  # fmt: skip
def test_figures_draw_data_in_every_panel(draw, panels):
    try:
        assert draw() is None
        axes = plt.gcf().axes
        assert len(axes) == panels and all(panel.has_data() for panel in axes)
    finally:
        plt.close()
