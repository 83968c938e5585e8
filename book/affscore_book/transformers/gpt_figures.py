"""The figures of the byte decoders. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.ticker import MaxNLocator

from affscore.plots import BLUE, GREEN, ORANGE, PURPLE, VERMILION, panels, styled
from affscore_book.transformers.gpt_results import GPT_POOLS, Gpts, TrainedGpt

__all__ = ["plot_gpt_bits", "plot_gpt_courses", "plot_gpt_pools"]

POOLS = dict(zip(GPT_POOLS, ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D")), strict=True))


@styled
def plot_gpt_courses(gpts: Gpts, seed: int = 0) -> None:
    """The scores of the four calls along the training of one seed, by the spatial and the trailing pool, a panel a
    network; bits per byte are grey."""
    networks = {name: seeds[seed] for name, seeds in gpts.items() if seed in seeds}
    rows = -(-len(networks) // 2)
    figure, axes = panels(rows, 2, height=1.3 + 1.7 * rows, sharex=True, sharey=True)
    for panel, (name, network) in zip(axes, networks.items(), strict=False):
        for pool in GPT_POOLS[:2]:
            for call, scores in enumerate(network.scores[pool].T):
                label = f"{pool} pool" if not call else None
                panel.plot(network.steps + 1, scores, color=POOLS[pool][0], linewidth=1.3, label=label)
        panel.plot(network.steps + 1, network.bits / 8, "--", color="#999999", label="bits per byte / 8")
        panel.set_title(name, fontsize=13, loc="left")
        panel.set(xscale="log", ylim=(0.15, 1.1))
    for panel in axes[len(networks) :]:
        panel.set_axis_off()
    for panel in axes[max(len(networks) - 2, 0) : len(networks)]:
        panel.xaxis.set_tick_params(labelbottom=True)
    figure.supxlabel("steps of the training + 1", fontsize=15)
    figure.supylabel("affinity score of each call", fontsize=15)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=12)


def _means(seeds: Mapping[int, TrainedGpt], pool: str, moment: int) -> np.ndarray:
    return np.array([network.mean(pool, moment) for network in seeds.values()])


@styled
def plot_gpt_pools(gpts: Gpts) -> None:
    """Mean scores by every pool, a row a network: from the start (hollow) to the trained seeds (filled)."""
    figure, (axes,) = panels(height=2.2 + 0.62 * len(gpts))
    for row, seeds in enumerate(gpts.values()):
        for place, (pool, (colour, mark)) in enumerate(POOLS.items()):
            y = row + 0.18 * (place - 1.5)
            start, end = (_means(seeds, pool, moment) for moment in (0, -1))
            axes.plot([start.mean(), end.mean()], [y, y], color=colour, linewidth=1)
            axes.plot(start.mean(), y, mark, color="white", markeredgecolor=colour, markersize=6)
            axes.plot(end, np.full(len(end), y), mark, color=colour, markersize=6,
                      label=None if row else pool)  # fmt: skip
    axes.set_yticks(range(len(gpts)), [name.replace(" without", "\nwithout") for name in gpts], fontsize=12)
    axes.invert_yaxis()
    axes.set(xlabel="mean score, start (hollow) and trained", xlim=(0, 1))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)


@styled
def plot_gpt_bits(gpts: Gpts) -> None:
    """Bits per byte on held-out text beside the mean score, by the spatial and the trailing pool; a dot a seed."""
    figure, axes = panels(1, 2, height=4.6, sharey=True)
    looks = zip((BLUE, VERMILION, GREEN, PURPLE, ORANGE, BLUE, VERMILION), "os^Dvos", strict=True)
    for (name, seeds), (colour, mark) in zip(gpts.items(), looks, strict=False):
        fill = "white" if name.endswith("without norm") else colour
        for panel, pool in zip(axes, GPT_POOLS, strict=False):
            bits = [network.bits[-1] for network in seeds.values()]
            panel.plot(_means(seeds, pool, -1), bits, mark, color=fill, markeredgecolor=colour, label=name)
            panel.set(xlabel=f"mean score,\n{pool} pool")
    for panel in axes:
        panel.xaxis.set_major_locator(MaxNLocator(4))
    axes[0].set(ylabel="bits per byte")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=11)
