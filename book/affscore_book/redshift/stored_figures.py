"""Figures of stored runs of the chapter on neural redshift. Each draws one figure."""

from __future__ import annotations

import numpy as np

from affscore_book.activations.catalogue import lookup
from affscore_book.kit.style import BLUE, GREEN, INK, PURPLE, SKY, VERMILION, legend_above, panels, styled
from affscore_book.redshift.networks import PANELS
from affscore_book.redshift.study import StoredDraws

__all__ = ["plot_distributions", "plot_score_and_frequency"]

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, SKY)
MARKS = ("o-", "s--", "D-.", "^:", "v-")


def _name(shift: float, scale: float, activation: str) -> str:
    return f"{lookup(activation).title}, scale {scale:g}{', shifted' if shift else ''}"


@styled
def plot_distributions(study: StoredDraws) -> None:
    """The mean score of each panel over all stored draws, with the published draw's number from the paper."""
    _, (axes,) = panels(height=6)
    for at, key in enumerate(PANELS):
        values = study.panel(*key)
        colour = BLUE if key[2] == "relu" else VERMILION
        body = axes.violinplot(values, positions=[-at], orientation="horizontal", widths=0.8, showextrema=False)
        for part in body["bodies"]:  # type: ignore[attr-defined]
            part.set(facecolor=colour, alpha=0.5)
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
        axes.plot([low, high], [-at, -at], color=colour)
        axes.plot(middle, -at, "o", color=colour, markersize=8)
        axes.plot(PANELS[key][0], -at, "x", color=INK, markersize=10, mew=3)
    axes.plot([], [], "o-", color=INK, markersize=8, label="median, 5 to 95 %")
    axes.plot([], [], "x", color=INK, markersize=10, mew=3, label="paper")
    axes.set_yticks([-at for at in range(len(PANELS))], [_name(*key) for key in PANELS])
    axes.set(xticks=[0.6, 0.7, 0.8, 0.9, 1.0], xlabel="mean affinity score of the layers")
    axes.legend(loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=2, frameon=False)


@styled
def plot_score_and_frequency(study: StoredDraws) -> None:
    """Median score against median frequency, along the scale of the weights and along the depth of a network.

    The frequency is counted from the floor of the cosine transform, one half period. The large mark is the largest
    scale, or the deepest network.
    """
    figure, axes = panels(1, 2, height=5.2, sharey=True)
    for panel, along in zip(axes, ("scale", "depth"), strict=True):
        for activation, colour, mark in zip(("relu", "tanh", "gaussian", "sine"), COLOURS, MARKS, strict=False):
            scores, frequencies = np.nanmedian(study.course(activation, along), axis=1).T
            frequencies = frequencies - 1  # no image is slower than one half period
            label = lookup(activation).title
            panel.semilogx(frequencies, scores, mark, color=colour, markersize=6, label=label)
            panel.plot(frequencies[-1], scores[-1], mark[0], color=colour, markersize=12)
        panel.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        panel.minorticks_off()
        panel.set(xlim=(0.025, 45), ylim=(0.3, 1.02))
    axes[0].set(title="by scale, 0.5 to 6", ylabel="mean affinity score")
    axes[1].set(title="by depth, 1 to 5")
    legend_above(axes[0], 4)
    figure.supxlabel("mean frequency above the floor (half periods)", fontsize=15)
