"""Every figure of the chapter on ReLU in one dimension draws."""

import matplotlib.pyplot as plt
import numpy as np
from drawn import check_figure
from grids import each

from affscore_book.relu_1d import figures

LINE = np.linspace(0, 5, 9)


@each(
    ("draw", "panels", "reaching_0"),
    [
        (lambda: figures.plot_figure_3([0.0, 2.5], [[0.1, 0.5], [0.2, 0.4]]), 3, [2]), (figures.plot_gaussian, 2, [0]),
        (figures.plot_limits, 2, []), (figures.plot_relatives, 2, [0, 1]), (figures.plot_symmetry, 2, []),
        (lambda: figures.plot_ranges([(LINE - a, np.maximum(LINE - a, 0), LINE) for a in (4, 1)], "ab"), 2, []),
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
