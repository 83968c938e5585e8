"""Every figure of the chapter on theory draws data on white and leaves matplotlib's settings alone."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from affscore_book.theory import figures
from affscore_book.theory.widget import cloud

X = cloud(n=12)
ARGUMENTS = {
    "plot_construction": (X, np.maximum(X, 0)),
    "plot_sorted": ([1.0, 0.0, 2.0], [3.0, 1.0, 0.0]),
    "plot_couplings": (X, {"a": (X + 1, np.arange(12)), "b": (X, np.arange(12))}),
    "plot_ellipses": (np.eye(2), np.diag([2.0, 0.5])),
    "plot_gelbrich": ([1, 2], [1, 3], [True, False]),
    "plot_bound": ([1.0, 2.0, 3.0], 0.2, 1.0),
    "plot_lines": ([1, 10], {"a": [0, 1], "b": [[0, 1], [1, 1]]}, "n"),
    "plot_outliers": (np.array([0.1, 0.8]), np.array([0.5, -0.4])),
    "plot_r2": ({"a": (0.5, 0.4)},),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_figures_draw_on_white_and_leave_the_settings_alone(name):
    before = dict(plt.rcParams)
    getattr(figures, name)(*map(np.asarray, ARGUMENTS[name]) if name == "plot_sorted" else ARGUMENTS[name])
    figure = plt.gcf()
    try:
        figure.canvas.draw()
        assert figure.get_facecolor()[:3] == (1, 1, 1)
        assert all(axes.has_data() for axes in figure.axes)
        texts = [text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_title()) if text]
        assert texts
    finally:
        plt.close(figure)
    assert dict(plt.rcParams) == before


def test_curves_take_levels_ticks_and_shaded_ranges():
    figures.plot_lines([1, 10, 100], {"a": [0, 1, 1]}, "n", log=True, levels={"level": 0.5}, ticks=[1, 100],
                    shaded={"dead": (1, 5)})  # fmt: skip
    axes = plt.gca()
    try:
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "100"]
        assert [text.get_text() for text in axes.texts] == ["dead"]
        assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "level"]
    finally:
        plt.close()
