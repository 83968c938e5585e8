"""The figures of the chapter on activations. Each function draws one figure and returns nothing."""

from __future__ import annotations

import math

import numpy as np
import torch

from affscore_book.activations.catalogue import lookup
from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import Sweep
from affscore_book.kit.style import BLUE, INK, SKY, VERMILION, panels, styled

__all__ = ["plot_boxes", "plot_dimensions"]


@styled
def plot_boxes(sweep: Sweep) -> None:
    """Figure 8: for each activation and mean a box over the standard deviations; whiskers cover the whole range.

    Boxes are white where some standard deviations have no score, a dot where all but one have none, grey bands where
    none has.
    """
    rows = math.ceil(len(sweep.scores) / 2)
    figure, axes = panels(rows, 2, height=2.6 * rows)
    for (name, every), panel in zip(sweep.scores.items(), axes, strict=False):
        for mean, scores in zip(sweep.means, every, strict=True):
            gaps = np.isnan(scores)
            scores = scores[~gaps]
            if len(scores) == 1:
                panel.plot([mean], scores, "o", color=VERMILION, markersize=7)
            elif len(scores):
                face = "white" if gaps.any() else SKY
                panel.boxplot(
                    scores, positions=[mean], widths=1.5, whis=(0, 100), manage_ticks=False, patch_artist=True,
                    boxprops={"facecolor": face}, medianprops={"color": VERMILION, "linewidth": 3},
                )  # fmt: skip
            else:
                panel.axvspan(mean - 1.05, mean + 1.05, color=INK, alpha=0.12, linewidth=0)
        panel.set(title=lookup(name).title, xlim=(-22, 22), xticks=[-20, 0, 20], ylim=(-0.05, 1.05), yticks=[0, 0.5, 1])
    figure.supxlabel("mean of the input", fontsize=15)
    figure.supylabel("affinity score", fontsize=15)
    for panel in axes:
        panel.set_visible(panel.has_data())


@styled
def plot_dimensions(sweep: Sweep, name: str, std: float) -> None:
    """Stored scores in many dimensions on the two exact curves: sorted (one dimension) and paired (very many)."""
    column = int(np.flatnonzero(sweep.stds == std)[0])
    means = torch.linspace(-20, 20, 321, dtype=torch.float64)
    _, (axes,) = panels(height=4.4)
    axes.plot(means, score_curve(name, means, std), color=BLUE, linestyle="--", label="1 dimension, exact")
    paired = score_curve(name, means, std, coupling="paired")
    axes.plot(means, paired, color=VERMILION, label="pairs kept, exact")
    dots = f"{sweep.settings['d']} dimensions, n = {sweep.settings['n']}"
    axes.plot(sweep.means, sweep.scores[name][:, column], "o", color=INK, markersize=7, label=dots)
    axes.axhline(0, color=INK, linewidth=1)
    axes.set(title=f"{lookup(name).title}, std {std:g}", xlabel="mean of the input")
    axes.set(ylim=(-1.0, 1.05), yticks=[0, 0.5, 1], ylabel="affinity score")  # room for the legend
    axes.legend(loc="lower right")
