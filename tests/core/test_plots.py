"""The picture of a signature."""

import math

import matplotlib
import numpy as np

from affscore import Signature
from affscore.calls import Call
from affscore.plots import as_image


def test_second_curve_fits_and_takes_line_options():
    """A second curve keeps the first one in view, and options are passed on to its line."""
    matplotlib.use("Agg")
    calls = [Call(f":{name}[0]", "", name, 0, name == "sigmoid", (3,), 1) for name in ("relu", "sigmoid", "tanh")]
    low, high = (Signature(calls, [[score, 0.1, math.nan]], batch_sizes=[9]) for score in (-0.4, 0.5))
    ax = high.plot(low.plot(), c="red", zorder=3)
    assert ax.get_ylabel() == "affinity score" and ax.get_xlabel() and ax.get_ylim()[0] <= -0.4
    assert [line.get_label() for line in ax.lines[1:4]] == ["activation", "gate", "dead (undefined)"]
    assert ax.lines[4].get_color() == "red" and ax.lines[4].get_zorder() == 3
    np.testing.assert_array_equal(ax.lines[4].get_ydata(), high.mean)
    matplotlib.pyplot.close("all")


def test_an_image_carries_its_words_and_leaves_no_figure_open():
    """The alternative text of the HTML image is escaped."""
    found = as_image(lambda ax: ax.plot([0, 1]), 'signature of "<b>"')
    assert 'alt="signature of &quot;&lt;b&gt;&quot;" src="data:image/png;base64,iVBOR' in found
    assert not matplotlib.pyplot.get_fignums()
