"""Every figure of the chapter on blind spots draws."""

from drawn import check_figure
from grids import each

from affscore_book.blind_spots import figures

MANY = {name: [0, 1, 1] for name in "abcd"}


@each(
    "draw",
    [
        lambda: figures.plot_lines([1, 10], {"a": [0, 1], "b": [[0, 1], [1, 1]]}, "n"),
        lambda: figures.plot_lines([1, 10, 100], MANY, "n", log=True, ticks=[1, 100]),
        lambda: figures.plot_r2({"a": (0.5, 0.4)}),
    ],
)
def test_figures(draw):
    check_figure(draw, 1)
