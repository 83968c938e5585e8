"""The figures of the byte decoders. Each function draws one figure and returns nothing."""

from __future__ import annotations

import numpy as np

from affscore_book.kit.style import legend_above, panels, styled
from affscore_book.transformers.figures import LOOKS
from affscore_book.transformers.gpt_results import GPT_POOLS, Gpts

__all__ = ["plot_gpt_courses"]


@styled
def plot_gpt_courses(gpts: Gpts) -> None:
    """The scores of the calls of GELU's network along its training, by the spatial and by the trailing pool, a panel a
    pool; bits per byte are grey, with their axis at the right."""
    network = gpts["gelu"][0]
    figure, axes = panels(1, 2, height=4.4, sharey=True)
    for panel, pool in zip(axes, GPT_POOLS[:2], strict=True):
        for block, (scores, (colour, mark)) in enumerate(zip(network.scores[pool].T, LOOKS, strict=True), start=1):
            panel.plot(network.steps + 1, scores, mark + "-", color=colour, markersize=6, label=f"block {block}")
        panel.plot(network.steps + 1, network.bits / 8, "--", color="#777777", label="bits per byte (right axis)")
        panel.set_title(f"{pool} pool", loc="left")
        panel.set(xscale="log", ylim=(0.15, 1.1))
    axes[0].set_ylabel("affinity score")
    figure.supxlabel("training steps + 1", fontsize=14)
    scale = (lambda y: np.multiply(y, 8), lambda bits: np.divide(bits, 8))
    axes[-1].secondary_yaxis("right", functions=scale).set_ylabel("bits per byte")
    legend_above(axes[0], 3)
