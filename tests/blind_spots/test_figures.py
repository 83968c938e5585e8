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
        lambda: figures.plot_partners([0.7, 0.9], [0.7, 0.9], [0.5, 0.8]),
    ],
)
def test_figures(draw):
    check_figure(draw, 1)


def test_a_panel_for_each_dimension():
    check_figure(lambda: figures.plot_resolution([16, 64], {d: [[0.6, 0.6, 0.3]] * 2 for d in range(4)}, 0.62), 4)
