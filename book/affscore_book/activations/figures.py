"""The figures of the chapter on activations. Each function draws one figure and returns nothing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from affscore.errors import AffscoreWarning
from affscore_book.activations.catalogue import CATALOGUE, lookup
from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import Sweep, sample_score
from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, panels, styled

__all__ = [
    "plot_boxes", "plot_dimensions", "plot_rounding", "plot_shrinkage", "plot_zoo",
]  # fmt: skip

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))


def _outer_labels(figure: Figure, axes: list[Axes]) -> None:
    """One label for each direction, and no empty panels."""
    figure.supxlabel("mean of the input", fontsize=15)
    figure.supylabel("affinity score", fontsize=15)
    for panel in axes:
        panel.set_visible(panel.has_data())


def _score_axis(axes: Axes, low: float = -0.03) -> None:
    axes.set(ylim=(low, 1.05), yticks=[0, 0.5, 1], ylabel="affinity score")


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
    _outer_labels(figure, axes)


@styled
def plot_rounding(name: str, std: float) -> None:
    """The score of 1000 points against the mean of the input, in float64 and in float32, on the exact law."""
    means = torch.linspace(-24, 0, 97, dtype=torch.float64)
    row = lookup(name)
    _, (axes,) = panels()
    axes.plot(means, score_curve(row, means, std), color=GREEN, label="exact")
    for kind, colour, mark in ((torch.float64, BLUE, "o"), (torch.float32, VERMILION, "s")):

        def in_format(x: torch.Tensor, kind: torch.dtype = kind) -> torch.Tensor:
            return row.function(x.to(kind)).double()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AffscoreWarning)  # of the rounding that the picture shows
            rounded = [sample_score(in_format, mean, std, 1000, 1) for mean in means.tolist()]
        label = str(kind).removeprefix("torch.")
        axes.plot(means, rounded, mark, color=colour, markersize=5, alpha=0.8, label=label)
        dead = [mean for mean, score in zip(means.tolist(), rounded, strict=True) if math.isnan(score)]
        if dead:
            axes.axvspan(min(dead), max(dead), color=colour, alpha=0.12, linewidth=0)
            axes.text(max(dead) - 0.2, 0.3, f"{label}:\nundefined", color=colour, ha="right", fontsize=13)
    axes.set(title=f"{row.title}, std {std:g}, n = 1000", xlabel="mean of the input")
    _score_axis(axes)
    axes.legend(loc="lower right")


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
    _score_axis(axes, -1.0)  # room for the legend
    axes.legend(loc="lower right")


@styled
def plot_shrinkage(names: Sequence[str], n: int) -> None:
    """Figure 9 (bottom): the score of standard normal inputs against d / n, without and with shrinkage."""
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
    """Every activation of the families: its graph (grey, not to scale) and its score curve over the same axis."""
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
    # Where the last row has one panel, the panel above the gap carries the numbers.
    for panel in (*axes[-2:], axes[len(rows) - 2]):
        panel.tick_params(labelbottom=True)
    _outer_labels(figure, axes)
