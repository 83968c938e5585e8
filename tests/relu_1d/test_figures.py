"""Every figure of the chapter on ReLU in one dimension draws."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import check_figure

from affscore_book.relu_1d import figures


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (lambda: figures.plot_figure_3(n=20, seed=0), 3), (figures.plot_gaussian, 2),
        (figures.plot_limits, 2), (figures.plot_relatives, 2), (figures.plot_symmetry, 2),
        (figures.plot_three_ranges, 3),
    ],
)  # fmt: skip
def test_figures(draw, panels):
    check_figure(draw, panels)


@pytest.mark.parametrize(
    ("draw", "panel"),
    [
        (lambda: figures.plot_figure_3(n=20, seed=0), 2), (figures.plot_relatives, 0), (figures.plot_relatives, 1),
        (figures.plot_gaussian, 0),
    ],
)  # fmt: skip
def test_a_score_is_drawn_down_to_its_limit_0(draw, panel):
    draw()
    lines = plt.gcf().axes[panel].get_lines()
    assert min(np.nanmin(line.get_ydata()) for line in lines if line.get_linestyle() != "None") < 1e-3
    plt.close("all")
