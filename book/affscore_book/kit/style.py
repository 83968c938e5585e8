"""The style that the figures of chapters and suites share.

Figures are 6 inches wide and have large type on white, so that they can be read on a phone and in the dark theme.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = [
    "BLUE", "GREEN", "INK", "ORANGE", "PURPLE", "SKY", "VERMILION", "WIDTH", "legend_above", "panels", "styled",
]  # fmt: skip

#: Okabe and Ito's palette (with a darker green, purple and orange), which is readable with any colour vision.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK = (
    "#0072b2", "#d55e00", "#007a5a", "#a0428a", "#b87d00", "#56b4e9", "#333333",
)  # fmt: skip
#: The width of every figure in inches.
WIDTH = 6.0

_STYLE: dict[Any, Any] = {
    "font.size": 15,
    "axes.titlesize": 15,
    "legend.fontsize": 13,
    "legend.framealpha": 0.9,
    "lines.linewidth": 2.5,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 100,
}


@contextmanager
def _style() -> Iterator[None]:
    with plt.rc_context(_STYLE):
        yield
        interactive = plt.isinteractive()
    # The first figure starts the backend. Jupyter's backend turns on interactive mode, which the context would undo.
    plt.interactive(interactive)


#: A decorator: the function draws in the book's style, whatever the reader's settings are.
styled = _style()


def panels(rows: int = 1, columns: int = 1, *, height: float = 4.2, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure of the book's width with its panels in reading order; ``options`` go to ``plt.subplots``."""
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, layout="constrained", **options)
    return figure, list(axes.flat)


def legend_above(axes: Axes, columns: int = 2) -> None:
    """The legend of a panel, above all panels of its figure."""
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
