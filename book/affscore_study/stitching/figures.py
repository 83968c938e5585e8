"""The figures of the audit on stitching. Each function draws one figure and returns nothing."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from affscore_book.kit.style import BLUE, GREEN, PURPLE, VERMILION, legend_above, panels, styled
from affscore_book.stitching.study import StitchingStudy, inside_block

__all__ = ["plot_alpha", "plot_bridge"]

#: The titles of the panels by the kind of network.
TITLES = {"resnet20": "with shortcuts", "plain20": "without"}


@styled
def plot_alpha(study: StitchingStudy) -> None:
    """Draw the penalty of G_ReLU stitches against the strength of the norm term, by activation (as Figure 13)."""
    alphas = sorted({record["alpha"] for record in study.records if "alpha" in record})
    _, (axes,) = panels(height=4.8)
    looks = ((BLUE, "o"), (VERMILION, "D"), (GREEN, "s"), (PURPLE, "^"))
    for (colour, mark), layer in zip(looks, study.layers("myrtle"), strict=True):
        values = [study.penalty("myrtle", layer, "g_relu", "learned from noise", alpha=alpha).mean for alpha in alphas]
        axes.plot(alphas, values, f"{mark}-", color=colour, markersize=8, label=layer)
    axes.set_xscale("log")
    axes.set(xlabel="alpha", ylabel="penalty (accuracy points)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4, frameon=False, columnspacing=1.0)


@styled
def plot_bridge(study: StitchingStudy) -> None:
    """Draw affinity score and penalty of G_ReLU stitches of every activation.

    Filled marks are activations outside residual blocks.
    """
    _, axes = panels(1, 2, height=4.4, sharey=True)
    for panel, (kind, title) in zip(axes, TITLES.items(), strict=True):
        layers = study.layers(kind)
        scores = np.nanmean(study.layer_scores(kind), axis=0)
        values = np.array([study.penalty(kind, layer, "g_relu").mean for layer in layers])
        inside = np.array([inside_block(layer) for layer in layers])
        panel.plot(scores[inside], values[inside], "o", color=VERMILION, mfc="white", mew=2, label="inside a block")
        panel.plot(scores[~inside], values[~inside], "o", color=BLUE, label="outside")
        panel.set(title=title, xlabel="affinity score")
        panel.xaxis.set_major_locator(MaxNLocator(3))
    axes[0].set_ylabel("penalty (points)")
    legend_above(axes[0])
