"""The picture of a signature."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import normalize_kwargs
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

__all__ = ["as_image", "draw_signature"]

# Of Okabe and Ito's palette, which is readable with any colour vision.
_BLUE, _VERMILION = "#0072b2", "#d55e00"


def draw_signature(
    ax: Axes | None, mean: np.ndarray, std: np.ndarray, gate: np.ndarray, twins: Sequence[float] | None,
    options: dict[str, Any],
) -> Axes:  # fmt: skip
    """Draw the picture of :meth:`affscore.Signature.plot` from float64 and bool arrays of shape (calls,)."""
    if ax is None:
        _, ax = plt.subplots(figsize=(4.5, 3.2), dpi=150, layout="constrained")
    position, dead = np.arange(1, len(mean) + 1), np.isnan(mean)
    low = ax.get_ylim()[0] if ax.has_data() else 0.0
    style: dict[str, Any] = {"color": _BLUE, "linewidth": 1.2, "zorder": 1} | normalize_kwargs(options, Line2D)
    ax.plot(position, mean, **style)
    ax.fill_between(position, mean - std, mean + std, color=style["color"], alpha=0.2, linewidth=0)
    if twins is not None:
        ax.plot(position, twins, color="#808080", linestyle="--", label="linear twins", zorder=1)
    ax.plot(position[~gate], mean[~gate], "o", color=style["color"], markersize=4.5, label="activation")
    if gate.any():
        ax.plot(position[gate], mean[gate], "s", mfc="white", mec=_VERMILION, markersize=4.5, label="gate")
    if dead.any():
        ax.plot(position[dead], np.zeros(dead.sum()), "x", color="#000000", label="dead (undefined)")
    if twins is not None or gate.any() or dead.any():
        ax.legend(frameon=False)
    ax.set(xlabel="activation call, in order of execution", ylabel="affinity score")
    ax.set_ylim(min(low, np.nanmin([*mean, *(twins or ())], initial=0.05) - 0.05), 1.02)
    ax.grid(axis="y", alpha=0.3)
    return ax


def as_image(draw: Callable[[Axes], object], alternative: str) -> str:
    """The drawing of a function as an HTML image, 600 pixels wide; no figure stays open."""
    figure, file = Figure(figsize=(6, 4), dpi=100, layout="constrained", facecolor="white"), io.BytesIO()
    draw(figure.subplots())
    figure.savefig(file, format="png")
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img style="max-width: 100%" alt="{escape(alternative)}" src="data:image/png;base64,{data}">'
