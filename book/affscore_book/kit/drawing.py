"""Draws the figures of a lesson as SVG text, which a page can redraw when its cells run, and which suits both themes.

The figures consist of the panels of the widgets (:mod:`affscore_book.kit.picture`) and need only NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from affscore_book.kit.picture import WIDTH, Array, Panel

__all__ = ["Drawing", "curves", "plane", "power_of_ten"]

#: The style classes of up to six curves in one panel.
LINES = ("input-curve", "goal-curve", "score-curve", "w2-curve", "bound-curve", "curve")


class Drawing:
    """Panels side by side, or one below the other on a narrow screen; a notebook shows them as the value of a cell."""

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
    unit = max(float((reach / inside).max()), 1e-12)  # the length in data units of one pixel
    low, high = middle - unit * inside / 2, middle + unit * inside / 2
    (left, bottom), (right, top) = low.tolist(), high.tolist()
    return Panel(
        label=label, xlim=(left, right), ylim=(bottom, top), xlabel=xlabel, ylabel=ylabel, legend=legend,
        height=height, **options,
    )  # fmt: skip


def curves(
    label: str,
    x: Array,
    lines: Mapping[str, Array],
    *,
    xlabel: str,
    ylim: tuple[float, float] | None = None,
    logarithmic: bool = False,
    **options: Any,
) -> Panel:
    """A panel with a curve for each of the ``lines`` over ``x``, all of shape (n,), and their names in a legend.

    ``logarithmic`` axes have powers of ten and leave out values that are not positive.
    """
    across, up = np.asarray(x, dtype=float), {name: np.asarray(y, dtype=float) for name, y in lines.items()}
    if logarithmic:
        across, up = _exponents(across), {name: _exponents(y) for name, y in up.items()}
    every = np.concatenate(list(up.values()))
    low, high = ylim or (min(0.0, float(np.nanmin(every))), 1.05 * max(0.0, float(np.nanmax(every))))
    xlim = float(np.nanmin(across)), float(np.nanmax(across))
    if logarithmic:
        options |= {"xticks": _powers(*xlim), "yticks": _powers(low, high)}
    if len(lines) > len(LINES):
        raise ValueError(f"lines holds {len(lines)} curves; a panel has styles for at most {len(LINES)}.")
    looks = dict(zip(lines, LINES, strict=False))
    panel = Panel(
        label=label, xlim=xlim, ylim=(low, high), xlabel=xlabel,
        legend=[(look, name) for name, look in looks.items()], **options,
    )  # fmt: skip
    for name, y in up.items():
        panel.line(looks[name], across, y)
    return panel


def _exponents(values: Array) -> Array:
    return np.where(values > 0, np.log10(np.where(values > 0, values, 1.0)), np.nan)


def _powers(low: float, high: float) -> dict[float, str]:
    """At most six powers of ten between the exponents."""
    first, last = int(np.ceil(low)), int(np.floor(high))
    step = max(1, -(-(last - first) // 5))
    return {float(k): power_of_ten(k) for k in range(last, first - 1, -step)}


def power_of_ten(exponent: int) -> str:
    """A power of ten as the label of an axis shows it.

    >>> power_of_ten(-12), power_of_ten(0)
    ('10⁻¹²', '1')
    """
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")) if exponent else "1"
