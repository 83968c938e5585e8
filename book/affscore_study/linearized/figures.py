"""The figures of the audit of linearised networks. Each function draws one figure and returns nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from affscore_book.kit.style import BLUE, GREEN, INK, VERMILION, panels, styled
from affscore_book.linearized.results import LinearizedRuns
from affscore_study.linearized.trunks import Size

__all__ = ["plot_slope_shares", "plot_trunks"]


def _legend(axes, columns: int) -> None:
    """Put the legend of a panel above all panels of its figure."""
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=columns, frameon=False)


@styled
def plot_trunks(cores: Mapping[Size, Mapping[int, np.ndarray]], strengths: Sequence[float]) -> None:
    """Draw the effective sizes of cores against the sizes of their trunks, which have depth 6 or width 64.

    Each run has a mark.
    """
    _, axes = panels(2, 2, height=7, sharex="col", sharey="row")
    names, ticks = ("width", "depth"), ((2, 5, 10, 20, 50, 100), (1, 2, 3, 6, 12))
    looks = list(zip(strengths, (GREEN, BLUE, VERMILION), ("D", "o", "s"), strict=True))
    for panel, (which, along) in zip(axes, itertools.product((0, 1), repeat=2), strict=True):
        trunks = sorted(trunk for trunk in cores if trunk[1 - along] == (6, 64)[along])
        across = [trunk[along] for trunk in trunks]
        whole = [trunk[which] for trunk in trunks]
        panel.plot(across, whole, "--", color=INK, linewidth=1.5, label="the whole trunk")
        for at, (strength, colour, mark) in enumerate(looks):
            sizes = [[found[at, which] for found in cores[trunk].values()] for trunk in trunks]
            for x, values in zip(across, sizes, strict=True):
                panel.plot(np.full(len(values), x), values, mark, color=colour, markersize=5, alpha=0.5)
            means = [float(np.mean(values)) for values in sizes]
            panel.plot(across, means, "-", color=colour, linewidth=2)
            panel.plot([], [], f"{mark}-", color=colour, label=f"strength {strength:g}")
        panel.set(xscale="log", yscale="log")
        panel.set_xticks(across, [str(x) for x in across])
        panel.set_yticks(ticks[which], [str(tick) for tick in ticks[which]])
        panel.minorticks_off()
    for at, name in enumerate(names):
        axes[2 * at].set_ylabel(f"effective {name} of the core")
        axes[2 + at].set_xlabel(f"{name} of the trunk")
    _legend(axes[0], 2)


@styled
def plot_slope_shares(study: LinearizedRuns) -> None:
    """Draw the distribution of the slopes of late runs at the middle strength: bins of 0.1, and those fixed at 1."""
    _, axes = panels(3, 1, height=6.4, sharex=True, sharey=True)
    edges = np.linspace(-0.3, 1, 14)
    for panel, network in zip(axes, study.runs, strict=True):
        strength = study.strengths(network)[2]
        runs = study.select(network, start="late", strength=strength)
        slopes = np.concatenate([values for run in runs for values in run["slopes"].values()])
        shares = 100 * np.histogram(slopes[slopes != 1], edges)[0] / len(slopes)
        panel.bar((edges[:-1] + edges[1:]) / 2, shares, 0.08, color=BLUE, label="learned")
        panel.bar(1.06, 100 * (slopes == 1).mean(), 0.08, color=VERMILION, label="fixed at 1")
        panel.set(title=f"{network}, strength {strength:g}", ylabel="channels (%)")
    axes[-1].set(xlabel="slope a")
    _legend(axes[0], 2)
