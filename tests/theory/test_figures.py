"""Every figure of the chapter on theory draws."""

import numpy as np
from drawn import check_figure
from grids import each

from affscore_book.kit.affinity2d import cloud
from affscore_book.theory import figures
from affscore_book.theory.finite import Reading

X = cloud(n=12)
ROWS = [Reading(0.6, 1.0, 0.6), Reading(0.5, 0.9, 0.7)]


@each(
    ("draw", "panels"),
    [
        (lambda: figures.plot_construction(X, np.maximum(X, 0)), 2),
        (lambda: figures.plot_sorted(np.array([1.0, 0.0, 2.0]), np.array([3.0, 1.0, 0.0])), 2),
        (lambda: figures.plot_couplings(X, {"a": (X + 1, np.arange(12)), "b": (X, np.arange(12))}), 2),
        (lambda: figures.plot_ellipses(np.eye(2), np.diag([2.0, 0.5])), 1),
        (lambda: figures.plot_readings([64, 2048], {"a": ROWS, "b": ROWS}), 2),
    ],
)  # fmt: skip
def test_figures(draw, panels):
    check_figure(draw, panels)
