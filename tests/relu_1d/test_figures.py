"""Every figure of the chapter on ReLU in one dimension draws."""

import matplotlib.pyplot as plt
import numpy as np
from drawn import check_figure
from grids import each

from affscore_book.relu_1d import figures


@each(
    ("draw", "panels", "reaching_0"),
    [
        (lambda: figures.plot_figure_3(n=20, seed=0), 3, [2]), (figures.plot_gaussian, 2, [0]),
        (figures.plot_limits, 2, []), (figures.plot_relatives, 2, [0, 1]), (figures.plot_symmetry, 2, []),
        (figures.plot_three_ranges, 3, []),
    ],
)  # fmt: skip
def test_figures_draw_and_scores_down_to_their_limit_0(draw, panels, reaching_0):
    lines = []

    def drawn():
        draw()
        lines.extend(plt.gcf().axes[panel].get_lines() for panel in reaching_0)

    check_figure(drawn, panels)
    for curves in lines:
        assert min(np.nanmin(line.get_ydata()) for line in curves if line.get_linestyle() != "None") < 1e-3
