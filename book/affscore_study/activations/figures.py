"""The figures of the audit of activations. Each function draws one figure and returns nothing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import torch

from affscore.errors import AffscoreWarning
from affscore_book.activations.catalogue import CATALOGUE, lookup
from affscore_book.activations.laws import score_curve
from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, panels, styled
from affscore_study.activations.samples import sample_score

__all__ = ["plot_rounding", "plot_shrinkage", "plot_zoo"]

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)


@styled
def plot_rounding(name: str, std: float) -> None:
    """Draw the score of 1000 points against the mean of the input, in float64 and in float32, with the exact law."""
    means = torch.linspace(-24, 0, 97, dtype=torch.float64)
    row = lookup(name)
    _, (axes,) = panels()
    axes.plot(means, score_curve(row, means, std), color=GREEN, label="exact")
    for kind, colour, mark in ((torch.float64, BLUE, "o"), (torch.float32, VERMILION, "s")):

        def in_format(x: torch.Tensor, kind: torch.dtype = kind) -> torch.Tensor:
            return row.function(x.to(kind)).double()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AffscoreWarning)  # it warns of the rounding that the picture shows
            rounded = [sample_score(in_format, mean, std, 1000, 1) for mean in means.tolist()]
        label = str(kind).removeprefix("torch.")
        axes.plot(means, rounded, mark, color=colour, markersize=5, alpha=0.8, label=label)
        dead = [mean for mean, score in zip(means.tolist(), rounded, strict=True) if math.isnan(score)]
        if dead:
            axes.axvspan(min(dead), max(dead), color=colour, alpha=0.12, linewidth=0)
            axes.text(max(dead) - 0.2, 0.3, f"{label}:\nundefined", color=colour, ha="right", fontsize=13)
    axes.set(title=f"{row.title}, std {std:g}, n = 1000", xlabel="mean of the input")
    axes.set(ylim=(-0.03, 1.05), yticks=[0, 0.5, 1], ylabel="affinity score")
    axes.legend(loc="lower right")


@styled
def plot_shrinkage(names: Sequence[str], n: int) -> None:
    """Draw the score of standard normal inputs against d / n, without and with shrinkage (Figure 9, bottom)."""
    ratios = np.array([0.1, 0.3, 0.6, 1.0, 1.4, 1.9])
    figure, axes = panels(1, 2, height=4.6, sharey=True)
    for panel, covariance, title in zip(axes, ("empirical", "ledoit_wolf"), ("no shrinkage", "shrinkage"), strict=True):
        for name, colour, mark in zip(names, COLOURS, ("o-", "s--", "D-.", "^:"), strict=False):
            scores = [sample_score(name, 0.0, 1.0, n=n, d=round(r * n), covariance=covariance) for r in ratios]
            panel.plot(ratios, scores, mark, color=colour, markersize=7, label=lookup(name).title)
        panel.set(title=title, xlabel="d / n")
    axes[0].set(ylim=(0.5, 1.0), ylabel="affinity score")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=12)


@styled
def plot_zoo(*families: str) -> None:
    """Draw the graph (grey, not to scale) and the score curve of every activation of the families over one axis."""
    rows = [row for row in CATALOGUE.values() if row.family in families]
    height = math.ceil(len(rows) / 2)
    figure, axes = panels(height, 2, height=1.75 * height, sharex=True, sharey=True)
    x, narrow = (torch.linspace(-limit, limit, n, dtype=torch.float64) for limit, n in ((8, 97), (4, 201)))
    for row, panel in zip(rows, axes, strict=False):
        graph = row(narrow)
        graph = (graph - graph.min()) / (graph.max() - graph.min())
        panel.plot(narrow, 0.05 + 0.9 * graph, color="#9a9a9a", linewidth=2)
        panel.plot(x, score_curve(row, x), color=GREEN, linewidth=3)
        panel.set_title(row.title, pad=3)
        panel.set(ylim=(-0.05, 1.08), yticks=[0, 1], xticks=[-8, 0, 8])
    # If the last row has one panel, the panel above the gap has the numbers of the axis.
    for panel in (*axes[-2:], axes[len(rows) - 2]):
        panel.tick_params(labelbottom=True)
    figure.supxlabel("mean of the input", fontsize=15)
    figure.supylabel("affinity score", fontsize=15)
    for panel in axes:
        panel.set_visible(panel.has_data())
