"""Figures of a lesson as SVG text, which a page can draw again where its cells run, and which both themes can read.

They are made of the panels of the widgets (:mod:`affscore_book.kit.picture`) and need NumPy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from affscore_book.kit.picture import WIDTH, Panel

__all__ = ["Drawing", "plane"]

Array = NDArray[np.float64]


class Drawing:
    """Panels beside each other, or below each other on a narrow screen; a notebook shows them as the cell's value."""

    def __init__(self, *panels: Panel) -> None:
        self.panels = panels

    def _repr_html_(self) -> str:
        pictures = "".join(panel.svg() for panel in self.panels)
        return f'<div class="affscore-figure affscore-drawing"><div class="affscore-panels">{pictures}</div></div>'

    def __repr__(self) -> str:
        return f"A drawing of {len(self.panels)} panel{'s' if len(self.panels) > 1 else ''}"


def plane(
    label: str,
    clouds: Sequence[Array],
    *,
    xlabel: str = "first coordinate",
    ylabel: str = "",
    legend: Sequence[tuple[str, str]] = (),
    height: int = 330,
    **options: Any,
) -> Panel:
    """A panel with the same unit on both axes that holds all points of the clouds (n, 2), with a margin around them."""
    points = np.concatenate(clouds)
    middle, reach = (points.max(axis=0) + points.min(axis=0)) / 2, np.ptp(points, axis=0) * 1.12
    inside = np.array([WIDTH - 52, height - 68])
    unit = max(float((reach / inside).max()), 1e-12)  # of the data, in a pixel
    low, high = middle - unit * inside / 2, middle + unit * inside / 2
    (left, bottom), (right, top) = low.tolist(), high.tolist()
    return Panel(
        label=label, xlim=(left, right), ylim=(bottom, top), xlabel=xlabel, ylabel=ylabel, legend=legend,
        height=height, **options,
    )  # fmt: skip
