"""Every figure of the chapter on theory draws."""

import numpy as np
import pytest
from drawn import check_figure

from affscore_book.theory import figures
from affscore_book.theory.widget import cloud

X = cloud(n=12)


@pytest.mark.parametrize(
    ("draw", "panels"),
    [
        (lambda: figures.plot_construction(X, np.maximum(X, 0)), 2),
        (lambda: figures.plot_sorted(np.array([1.0, 0.0, 2.0]), np.array([3.0, 1.0, 0.0])), 2),
        (lambda: figures.plot_couplings(X, {"a": (X + 1, np.arange(12)), "b": (X, np.arange(12))}), 2),
        (lambda: figures.plot_ellipses(np.eye(2), np.diag([2.0, 0.5])), 1),
        (lambda: figures.plot_gelbrich([1, 2], [1, 3], [True, False]), 1),
        (lambda: figures.plot_bound([1.0, 2.0, 3.0], 0.2, 1.0), 1),
        (lambda: figures.plot_lines([1, 10], {"a": [0, 1], "b": [[0, 1], [1, 1]]}, "n"), 1),
        (lambda: figures.plot_lines([1, 10, 100], {"a": [0, 1, 1]}, "n", log=True, levels={"level": 0.5},
                                    ticks=[1, 100], shaded={"dead": (1, 5)}), 1),
        (lambda: figures.plot_outliers(np.array([0.1, 0.8]), np.array([0.5, -0.4])), 1),
        (lambda: figures.plot_r2({"a": (0.5, 0.4)}), 1),
    ],
)  # fmt: skip
def test_figures(draw, panels):
    check_figure(draw, panels)
