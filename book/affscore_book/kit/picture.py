"""Writes panels as SVG text, for the figures of cells that run in the page; they look like those of ``figure.js``.

The text must be the same on every machine, because the tests of notebooks compare it. This module therefore uses no
fonts, no dates and no graphics library: it rounds numbers to a tenth of a pixel and writes them out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOOKS", "Array", "Panel", "number", "ticks"]

Array = NDArray[np.float64]

#: The width of a panel in pixels.
WIDTH = 340
#: The look of each class without a style sheet. figure.css overrides it, also for the dark theme.
LOOKS = {
    "paper": 'fill="#ffffff"',
    "grid": 'stroke="#d8dee4" stroke-width="1"',
    "label": 'fill="#1f2328" font-size="13" font-family="sans-serif"',
    "tick": 'fill="#57606a" font-size="12" font-family="sans-serif"',
    "curve": 'fill="none" stroke="#57606a" stroke-width="2"',
    "twin-curve": 'fill="none" stroke="#57606a" stroke-width="2" stroke-dasharray="7 4"',
    "input-curve": 'fill="none" stroke="#0072b2" stroke-width="4"',
    "input-band": 'fill="#0072b2" opacity="0.14"',
    "image-line": 'fill="none" stroke="#d55e00" stroke-width="3" stroke-dasharray="7 4"',
    "score-curve": 'fill="none" stroke="#007a5a" stroke-width="2.5"',
    "w2-curve": 'fill="none" stroke="#a0428a" stroke-width="2.5" stroke-dasharray="2 3"',
    "bound-curve": 'fill="none" stroke="#7a5c00" stroke-width="2.5" stroke-dasharray="10 3 2 3"',
    "input-dot": 'fill="#0072b2"',
    "image-dot": 'fill="#d55e00"',
    "w2-dot": 'fill="#a0428a" stroke="#ffffff" stroke-width="1.5"',
    "bound-dot": 'fill="#7a5c00" stroke="#ffffff" stroke-width="1.5"',
    "score-dot": 'fill="#007a5a" stroke="#ffffff" stroke-width="1.5"',
    "dead-key": 'fill="none" stroke="#57606a" stroke-width="12" opacity="0.3"',
    "dead-band": 'fill="#57606a" opacity="0.16"',
    "ink-dot": 'fill="#57606a"',
    "ink-square": 'fill="#57606a"',
    "image-square": 'fill="#d55e00"',
    "image-cross": 'fill="none" stroke="#d55e00" stroke-width="2.5"',
    "link": 'fill="none" stroke="#a0428a" stroke-width="1.5"',
    "gap-area": 'fill="#a0428a" opacity="0.3"',
    "goal-curve": 'fill="none" stroke="#d55e00" stroke-width="2.5" stroke-dasharray="7 4"',
}


def number(value: float) -> str:
    """A coordinate rounded to a tenth, without trailing zeros and without a negative zero."""
    return f"{math.floor(value * 10 + 0.5) / 10:.1f}".removesuffix(".0")


def ticks(low: float, high: float) -> list[float]:
    """About six round numbers from ``low`` to ``high``.

    >>> ticks(-4, 4)
    [-4.0, -2.0, 0.0, 2.0, 4.0]
    """
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _marked(limits: tuple[float, float], chosen: Mapping[float, str] | None) -> list[tuple[float, str]]:
    return [(value, f"{value:g}") for value in ticks(*limits)] if chosen is None else list(chosen.items())


class Panel:
    """One pair of axes. Layers are drawn in the order in which they are added; ``svg()`` returns the panel as text.

    Parameters
    ----------
    label
        A description of the picture in words, for readers who do not see it.
    xlim, ylim
        Limits (low, high) of the axes, in the units of the data.
    xlabel, ylabel, legend
        Texts; ``legend`` lists pairs of the class of a line or of points and its name.
    xticks, yticks
        Values on the axis and their labels, in place of round numbers.
    """

    def __init__(
        self,
        *,
        label: str,
        xlim: tuple[float, float],
        ylim: tuple[float, float],
        xlabel: str,
        ylabel: str = "",
        legend: Sequence[tuple[str, str]] = (),
        height: int = 250,
        xticks: Mapping[float, str] | None = None,
        yticks: Mapping[float, str] | None = None,
    ) -> None:
        self.xlim, self.ylim = xlim, ylim
        self.left, self.right, self.top, self.bottom = 42, WIDTH - 10, 26, height - 42
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-label="{escape(label)}" class="affscore-panel">',
            f'<rect class="paper" {LOOKS["paper"]} width="{WIDTH}" height="{height}" rx="4"/>',
        ]
        for value, text in _marked(xlim, xticks):
            x = self.x_at(value)
            self.add(f'<line class="grid" {LOOKS["grid"]} x1="{x}" x2="{x}" y1="{self.top}" y2="{self.bottom}"/>')
            self.write("tick", x, self.bottom + 15, text, "middle")
        for value, text in _marked(ylim, yticks):
            y = self.y_at(value)
            self.add(f'<line class="grid" {LOOKS["grid"]} x1="{self.left}" x2="{self.right}" y1="{y}" y2="{y}"/>')
            self.write("tick", self.left - 6, number(float(y) + 4), text, "end")
        self.write("label", number((self.left + self.right) / 2), height - 8, xlabel, "middle")
        if ylabel:
            self.write("label", 6, 16, ylabel)
        at = 22 + 7 * len(ylabel) if ylabel else 6
        for look, text in legend:
            self._key(look, at)
            self.write("label", at + 30, 16, text)
            at += 46 + 7 * len(text)

    def _key(self, look: str, at: int) -> None:
        """The sign of an entry of the legend, in the shape that its class has in the picture."""
        if look.endswith("-dot"):
            self.add(f'<circle class="{look}" {LOOKS[look]} cx="{at + 14}" cy="12" r="5"/>')
        elif look.endswith("-square"):
            self.add(f'<rect class="{look}" {LOOKS[look]} x="{at + 9}" y="7" width="10" height="10"/>')
        else:
            path = f"M{at + 9} 7l10 10M{at + 19} 7l-10 10" if look.endswith("-cross") else f"M{at} 12L{at + 24} 12"
            self.add(f'<path class="{look}" {LOOKS[look]} d="{path}"/>')

    def x_at(self, value: float) -> str:
        """The SVG coordinate of a value on the horizontal axis."""
        return number(self.left + (value - self.xlim[0]) / (self.xlim[1] - self.xlim[0]) * (self.right - self.left))

    def y_at(self, value: float) -> str:
        """The SVG coordinate of a value on the vertical axis."""
        share = (value - self.ylim[0]) / (self.ylim[1] - self.ylim[0])
        return number(self.bottom - share * (self.bottom - self.top))

    def add(self, part: str) -> None:
        """Add an element that is given as SVG text."""
        self._parts.append(part)

    def write(self, look: str, x: object, y: object, text: str, anchor: str = "start") -> None:
        """Write a text at a position of the picture."""
        text = escape(re.sub(r"(?<![a-z])-|-(?![a-z])", "\u2212", text))  # a hyphen stays one
        self.add(f'<text class="{look}" {LOOKS[look]} x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')

    def line(self, look: str, xs: Iterable[float], ys: Iterable[float]) -> None:
        """Draw a line through the points (xs, ys) with gaps where y is NaN. ``look`` is a class of figure.css."""
        path, pen = "", "M"
        for x, y in zip(xs, ys, strict=True):
            if np.isnan(y):
                pen = "M"
            else:
                path += f"{pen}{self.x_at(x)} {self.y_at(y)}"
                pen = "L"
        self.add(f'<path class="{look}" {LOOKS[look]} d="{path}"/>')

    def area(self, look: str, xs: Array, lower: Array, upper: Array) -> None:
        """Fill the area between two curves over the same abscissae, all of shape (n,)."""
        there = zip(xs, lower, strict=True), zip(xs[::-1], upper[::-1], strict=True)
        corners = (f"{self.x_at(x)} {self.y_at(y)}" for side in there for x, y in side)
        self.add(f'<path class="{look}" {LOOKS[look]} d="M{"L".join(corners)}Z"/>')

    def dot(self, look: str, x: float, y: float, radius: int = 6) -> None:
        """Draw a dot at (x, y), unless y is NaN."""
        if not np.isnan(y):
            self.add(f'<circle class="{look}" {LOOKS[look]} cx="{self.x_at(x)}" cy="{self.y_at(y)}" r="{radius}"/>')

    def dots(self, look: str, points: Array, radius: int = 4) -> None:
        """Draw a dot at each of the points (n, 2)."""
        for x, y in points:
            self.dot(look, x, y, radius)

    def squares(self, look: str, points: Array, side: int = 8) -> None:
        """Draw a square at each of the points (n, 2), with sides of this many pixels."""
        for x, y in points:
            left, top = (number(float(at) - side / 2) for at in (self.x_at(x), self.y_at(y)))
            self.add(f'<rect class="{look}" {LOOKS[look]} x="{left}" y="{top}" width="{side}" height="{side}"/>')

    def links(self, look: str, starts: Array, ends: Array, head: int = 0) -> None:
        """Draw a line from each of ``starts`` (n, 2) to its end in ``ends``, with an arrow head of ``head`` pixels."""
        for start, end in zip(starts, ends, strict=True):
            (x, y), (u, v) = ((float(self.x_at(p)), float(self.y_at(q))) for p, q in (start, end))
            path = f"M{number(x)} {number(y)}L{number(u)} {number(v)}"
            length = math.hypot(u - x, v - y)
            if head and length > 0:
                along, across = head * (u - x) / length, head * (v - y) / length
                for side in (-0.5, 0.5):
                    tip = u - along - side * across, v - across + side * along
                    path += f"M{number(tip[0])} {number(tip[1])}L{number(u)} {number(v)}"
            self.add(f'<path class="{look}" {LOOKS[look]} d="{path}"/>')

    def crosses(self, look: str, points: Array, arm: float) -> None:
        """Draw an x at each of the points (n, 2), with arms that reach ``arm`` pixels across and down."""
        across = arm * (self.xlim[1] - self.xlim[0]) / (self.right - self.left)
        up = arm * (self.ylim[1] - self.ylim[0]) / (self.bottom - self.top)
        xs = points[:, :1] + across * np.array([-1, 1, np.nan, -1, 1, np.nan])
        ys = points[:, 1:] + up * np.array([-1, 1, np.nan, 1, -1, np.nan])
        self.line(look, xs.ravel(), ys.ravel())

    def band(self, look: str, start: float, stop: float) -> None:
        """Fill the panel between two abscissae, over its whole height."""
        width = number(float(self.x_at(stop)) - float(self.x_at(start)))
        across, down = f'x="{self.x_at(start)}" width="{width}"', f'y="{self.top}" height="{self.bottom - self.top}"'
        self.add(f'<rect class="{look}" {LOOKS[look]} {across} {down}/>')

    def svg(self) -> str:
        """The panel as one line of SVG text."""
        return "".join(self._parts) + "</svg>"
