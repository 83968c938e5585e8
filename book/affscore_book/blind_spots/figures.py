"""The figures of the chapter on blind spots. Each function takes data, draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from affscore.plots import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, panels, styled

__all__ = ["plot_lines", "plot_partners", "plot_r2", "plot_resolution"]

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, INK)
MARKS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))


@styled
def plot_lines(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    xlabel: str,
    ylabel: str = "affinity score",
    *,
    log: bool = False,
    ticks: Sequence[float] = (),
) -> None:
    """One line for each curve.

    A curve of shape (len(x), k) is drawn as its mean over k with a bar of one standard deviation.
    """
    axes = panels()[1][0]
    for (name, values), colour, mark, dash in zip(curves.items(), COLOURS, MARKS, DASHES, strict=False):
        values = np.asarray(values, dtype=float)
        options: dict[str, Any] = {"color": colour, "linestyle": dash, "label": name, "markersize": 6}
        if values.ndim == 2:
            axes.errorbar(x, values.mean(axis=1), values.std(axis=1), marker=mark, capsize=3, **options)
        else:
            axes.plot(x, values, marker=mark, **options)
    axes.set(xscale="log" if log else "linear", ylim=(-0.05, 1.05), xlabel=xlabel, ylabel=ylabel)
    if ticks:
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    if len(curves) > 3:
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    elif len(curves) > 1:
        axes.legend(frameon=True)


@styled
def plot_r2(points: Mapping[str, tuple[float, float]]) -> None:
    """(R2, score) of one-dimensional activations, on the curve that monotone ones cannot leave."""
    axes = panels(height=4.3)[1][0]
    r2 = np.linspace(0, 1, 400)
    axes.plot(r2, 1 - np.sqrt(1 - np.sqrt(r2)), color=INK, linewidth=2, label=r"$1-\sqrt{1-r}$")
    for (name, (across, up)), colour, mark in zip(points.items(), COLOURS, MARKS, strict=False):
        axes.plot([across], [up], mark, color=colour, markersize=10, label=name)
    axes.set(xlabel=r"$R^2$ of linear regression", ylabel="affinity score", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.legend(loc="lower right", frameon=True, borderpad=0.3)


@styled
def plot_resolution(sizes: Sequence[int], scores: Mapping[int, ArrayLike], law: float) -> None:
    """A panel for each dimension: own, paired and strangers' scores, of shape (sizes, 3), and the law's as a line."""
    figure, axes = panels(2, 2, height=6.4, sharex=True, sharey=True)
    looks = (
        ("own outputs", BLUE, "o-"),
        ("own outputs, paired", GREEN, "D:"),
        ("strangers' outputs", VERMILION, "s--"),
    )
    for panel, (d, values) in zip(axes, scores.items(), strict=True):
        panel.axhline(law, color=INK, linewidth=1.2, label="the distributions")
        for (label, colour, look), column in zip(looks, np.asarray(values, dtype=float).T, strict=True):
            panel.plot(sizes, column, look, color=colour, label=label, markersize=6)
        panel.set(xscale="log", ylim=(0, 1), title=f"d = {d}")
        panel.set_xticks(sizes, [f"{size:g}" for size in sizes])
        panel.minorticks_off()
    for panel in axes[2:]:
        panel.set_xlabel("samples n")
    for panel in axes[::2]:
        panel.set_ylabel("affinity score")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)


@styled
def plot_partners(own: ArrayLike, paired: ArrayLike, strangers: ArrayLike) -> None:
    """Scores of a network's calls, of shape (calls,): with their own outputs, paired, and with strangers' outputs."""
    figure, (panel,) = panels(height=4.4)
    place = np.arange(1, len(np.asarray(own)) + 1)
    panel.plot(place, own, "o-", color=BLUE, linewidth=1.5, markersize=8, label="own outputs")
    panel.plot(place, paired, "D", color=GREEN, markersize=3.5, label="paired")
    panel.plot(place, strangers, "s--", color=VERMILION, linewidth=1.5, markersize=5, label="strangers' outputs")
    panel.set(xlabel="activation call, in order of execution", ylabel="affinity score", ylim=(0.6, 1))
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
