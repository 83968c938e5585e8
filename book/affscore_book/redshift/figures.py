"""Figures of the chapter on neural redshift that its cells fill: each function takes arrays and returns a drawing.

They need NumPy alone. Those of the stored results are in :mod:`affscore_book.redshift.stored_figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from affscore_book.kit.drawing import Drawing
from affscore_book.kit.picture import LOOKS, Array, Panel
from affscore_book.redshift.bitmap import bitmap

__all__ = ["plot_draws", "plot_edges", "show"]


class _Picture:
    """An image under its title and above a note; ``size`` are the pixels that it takes, across and up."""

    def __init__(self, image: Any, title: str, note: str, size: tuple[int, int], share: str) -> None:
        self.image, self.title, self.note, self.size, self.share = image, title, note, size, share

    def svg(self) -> str:
        across, up = self.size
        middle = across // 2 + 4
        texts = ((18, self.title), (up + 44, self.note))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across + 8} {up + 52}" width="{across + 8}" '
            f'height="{up + 52}" role="img" aria-label="{escape(f"{self.title}: {self.note}")}" '
            f'class="affscore-panel" style="flex-basis: {min(across + 8, 280)}px; max-width: {self.share}">'
            f'<rect class="paper" {LOOKS["paper"]} width="{across + 8}" height="{up + 52}" rx="4"/>'
            f'<image x="4" y="26" width="{across}" height="{up}" preserveAspectRatio="none" '
            f'href="{bitmap(self.image)}"/>'
            + "".join(
                f'<text class="label" {LOOKS["label"]} x="{middle}" y="{y}" text-anchor="middle">{escape(text)}</text>'
                for y, text in texts
            )
            + "</svg>"
        )


def show(images: Mapping[str, Array], notes: Sequence[str]) -> Drawing:
    """Images (n, n) side by side, three in a row where there is room, each with its name and a note.

    Each has greys of its own, from black at its lowest value to white at its highest.
    """
    drawn = zip(images.items(), notes, strict=True)
    return Drawing(*(_Picture(image, name, note, (222, 222), "max(31%, 140px)") for (name, image), note in drawn))  # type: ignore[arg-type]


def plot_edges(images: Mapping[str, Array], edges: Sequence[int]) -> Drawing:
    """Wide images, and below each the greys of its middle row, with marks at the pixels where copies meet."""
    pictures: list[Any] = []
    panels: list[Any] = []
    for name, image in images.items():
        rows, columns = image.shape
        wide = (330, 330 * rows // columns)
        pictures.append(_Picture(image, name, "", wide, "460px"))
        row = image[rows // 2]
        low, high = float(image.min()), float(image.max())
        panel = Panel(
            label=f"The greys of the middle row, {name}.", xlim=(0, columns - 1), ylim=(low, high),
            xlabel="pixels of the middle row", legend=[("input-curve", "grey"), ("goal-curve", "edge")], height=190,
            yticks={low: "dark", high: "light"},
        )  # fmt: skip
        for edge in edges:
            panel.line("goal-curve", [edge - 0.5, edge - 0.5], [low, high])
        panel.line("input-curve", np.arange(columns), row)
        panels.append(panel)
    return Drawing(*pictures, *panels)


def plot_draws(depths: Sequence[int], frequencies: Array) -> Drawing:
    """The frequency of each draw (draws, depths) against the number of hidden layers, and their median."""
    middle = np.median(frequencies, axis=0)
    panel = Panel(
        label="Mean frequency of each draw by the number of hidden layers, with the median, which goes "
        f"from {middle[0]:.2f} to {middle[-1]:.2f}.",
        xlim=(depths[0], depths[-1]), ylim=(0.9, float(frequencies.max()) + 0.1), xlabel="hidden layers",
        ylabel="half periods", legend=[("curve", "a draw"), ("goal-curve", "median")],
        xticks={depth: str(depth) for depth in depths}, height=300,
    )  # fmt: skip
    for draw in frequencies:
        path = "L".join(f"{panel.x_at(x)} {panel.y_at(y)}" for x, y in zip(depths, draw, strict=True))
        panel.add(f'<path class="curve" {LOOKS["curve"]} style="stroke-width: 1; opacity: 0.45" d="M{path}"/>')
    panel.line("goal-curve", depths, middle)
    return Drawing(panel)
