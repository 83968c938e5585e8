"""Every figure of the chapter on ReLU in one dimension draws."""

import pytest
import torch
from drawn import check_figure

from affscore_book.relu_1d import figures


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (figures.plot_correlation, 1), (lambda: figures.plot_figure_3(n=20, seed=0), 3), (figures.plot_gaussian, 2),
        (figures.plot_limits, 2), (lambda: figures.plot_module(torch.nn.GELU(), (-3, 2), 50), 1),
        (figures.plot_relatives, 2),
        (figures.plot_sorting, 2), (figures.plot_symmetry, 2), (figures.plot_three_ranges, 3),
    ],
)  # fmt: skip
def test_figures(draw, panels):
    check_figure(draw, panels)
