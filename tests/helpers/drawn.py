"""What every figure of the book promises, for tests that draw them all."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt


def check_figure(draw, panels):
    """``draw()`` returns nothing, fills so many labelled panels on white, and leaves matplotlib's settings alone."""
    before = dict(mpl.rcParams)
    try:
        assert draw() is None
        figure = plt.gcf()
        visible = [axes for axes in figure.axes if axes.get_visible()]
        assert len(visible) == panels and all(axes.has_data() for axes in visible)
        assert figure.get_size_inches()[0] == 6 and figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
        assert figure.get_supxlabel() or any(axes.get_xlabel() or axes.get_title() for axes in visible)
        figure.canvas.draw()
    finally:
        plt.close("all")
    assert dict(mpl.rcParams) == before
