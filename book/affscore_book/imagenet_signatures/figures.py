"""The figures of the chapter on ImageNet signatures. Each function takes arrays, draws one figure and returns nothing.

Every figure says which weights are trained and which are random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.lines import Line2D

from affscore_book.imagenet_signatures.calls import TRAINED
from affscore_book.kit.style import BLUE, GREEN, INK, PURPLE, VERMILION, legend_above, panels, styled

__all__ = [
    "plot_block_scores", "plot_families", "plot_measures", "plot_shares",
    "plot_sizes", "plot_skips", "plot_start",
    "plot_trained",
]  # fmt: skip


def _curve(panel, scores: np.ndarray, colour: str, label: str, mark: str = "o-") -> None:
    """Mean of (batches, calls) scores along the network, with a band of one standard deviation over the batches."""
    place, mean, std = np.arange(1, scores.shape[1] + 1), scores.mean(axis=0), scores.std(axis=0)
    panel.plot(place, mean, mark, color=colour, linewidth=1.6, markersize=5, label=label)
    panel.locator_params(axis="x", integer=True)
    panel.fill_between(place, mean - std, mean + std, color=colour, alpha=0.25, linewidth=0)


@styled
def plot_block_scores(by_title: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> None:
    """Residual networks, a panel each: the calls inside the blocks, and those after the additions, in order.

    A panel has the scores of the calls, those of their linear twins, and which calls are inside a block and which after
    an addition, (calls,) each. Lines are the means of either kind; the first call is before the blocks.
    """
    figure, axes = panels(len(by_title), 1, height=2.6 * len(by_title) + 0.9, sharey=True, sharex=True)
    for panel, (title, (scores, twins, inside, after)) in zip(axes, by_title.items(), strict=True):
        place = np.arange(1, len(scores) + 1)
        panel.plot(place, twins, ".", color=INK, alpha=0.45, markersize=3, label="linear twin of each")
        panel.plot(place[:1], scores[:1], "s", color=GREEN, markersize=7, label="before the blocks")
        for chosen, colour, mark, line, words in (
            (inside, VERMILION, "x", "--", "inside a block"), (after, BLUE, "D", "-", "after the addition"),
        ):  # fmt: skip
            panel.plot(place[chosen], scores[chosen], mark, color=colour, markersize=5, label=words)
            panel.axhline(scores[chosen].mean(), color=colour, linewidth=1.2, linestyle=line)
        panel.set(title=title, ylabel="score", ylim=(0.4, 1.02))
    axes[-1].set_xlabel("activation call, in order of execution")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2, frameon=False, markerscale=1.6)


@styled
def plot_start(name: str, trained: np.ndarray, start: np.ndarray) -> None:
    """One network, trained and before training: (batches, calls) scores."""
    _, (panel,) = panels(height=3.6)
    _curve(panel, start, VERMILION, "before training", "s--")
    _curve(panel, trained, BLUE, "trained")
    panel.set(xlabel=f"activation call of {name}, in order of execution", ylabel="score", ylim=(0.6, 1.02))
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


@styled
def plot_trained(by_network: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """A panel a network: (batches, calls) scores by a label, first of two kinds of untrained weights, last trained.

    A band is one standard deviation over batches.
    """
    _, axes = panels(len(by_network), 1, height=2.7 * len(by_network) + 1.2, sharey=True)
    for panel, (name, kinds) in zip(axes, by_network.items(), strict=True):
        for (label, scores), colour, mark in zip(kinds.items(), (VERMILION, GREEN, BLUE), ("s--", "D:", "o-"),
                                                 strict=True):  # fmt: skip
            _curve(panel, scores, colour, label, mark)
        panel.set(title=name, ylabel="score")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].legend(handles[::-1], labels[::-1], loc="lower center", bbox_to_anchor=(0.45, 1.14), frameon=False)
    axes[-1].set_xlabel("activation call, in order of execution")


@styled
def plot_shares(rows: Mapping[str, Sequence[float]]) -> None:
    """How much of a trained signature another one tells: a row a label, a dot a pair, a bar for the mean.

    Full dots: the other one is untrained. Hollow dots: it is trained, and the label says so.
    """
    _, (panel,) = panels(height=0.5 * len(rows) + 1.9)
    for row, (label, pairs) in enumerate(rows.items()):
        trained = "trained" in label
        colour = BLUE if trained else VERMILION
        panel.plot(pairs, [row] * len(pairs), "o", mec=colour, mfc="white" if trained else colour, mew=1.8,
                   markersize=8, alpha=0.8)  # fmt: skip
        panel.plot([np.mean(pairs)] * 2, [row - 0.32, row + 0.32], color=INK, linewidth=2.5, zorder=4)
    panel.set_yticks(range(len(rows)), list(rows), fontsize=12)
    panel.set(ylim=(len(rows) - 0.4, -0.6), xlim=(-0.03, 1.03), xlabel="share $r^2$")
    kinds = ((VERMILION, VERMILION, "untrained"), (BLUE, "white", "trained"))
    handles = [Line2D([], [], marker="o", linestyle="", mec=colour, mfc=inside, mew=1.8, markersize=8, label=label)
               for colour, inside, label in kinds]  # fmt: skip
    panel.legend(handles=handles, title="a trained signature beside one that is", loc="lower center",
                 bbox_to_anchor=(0.2, 1.0), ncols=2, frameon=False)  # fmt: skip


@styled
def plot_skips(by_title: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> None:
    """Score of every ReLU in a block against the part of its inputs that is negative; two panels a row.

    A panel has that part, the score, and which calls are inside their block and which last in it, (calls,) each.
    """
    rows = len(by_title) // 2
    figure, axes = panels(rows, 2, height=3.0 * rows + 1.2, sharex=True, sharey=True)
    for panel, (title, (negative, scores, inside, last)) in zip(axes, by_title.items(), strict=True):
        for label, chosen, colour, mark in (("inside its block", inside, VERMILION, "s"),
                                            ("last in its block", last, BLUE, "D")):  # fmt: skip
            panel.plot(negative[chosen], scores[chosen], mark, color=colour, markersize=7, alpha=0.85, label=label)
        panel.set_title(title.replace("resnet", "ResNet").replace(", ", ",\n"), fontsize=14)
        panel.locator_params(axis="x", nbins=4)
    figure.supylabel("score", fontsize=15)
    figure.supxlabel("part of the inputs that is negative", fontsize=15)
    legend_above(axes[0])


@styled
def plot_sizes(scores: Mapping[int, np.ndarray]) -> None:
    """By the pictures in a batch, from few to many, the scores (calls,); below, each less that of the last."""
    _, (above, below) = panels(2, 1, height=6.4, sharex=True)
    reference = list(scores.values())[-1]
    place = np.arange(1, len(reference) + 1)
    for (size, mean), colour, dash in zip(scores.items(), (BLUE, VERMILION, GREEN), ("-", "--", "-."), strict=True):
        above.plot(place, mean, color=colour, linestyle=dash, linewidth=2, label=f"{size}")
        below.plot(place, mean - reference, color=colour, linestyle=dash, linewidth=2)
    above.set_ylabel("affinity score")
    above.legend(title="pictures in a batch", ncols=3, loc="best")
    below.set(xlabel="activation call", ylabel=f"change from {list(scores)[-1]}")


@styled
def plot_families(apart: np.ndarray, families: Sequence[str]) -> None:
    """Distances between networks, (networks, networks), dark where they are small; lines part the families.

    The networks of a family stand side by side.
    """
    _, (panel,) = panels(height=6.2)
    shown = np.where(np.isfinite(apart), apart, 0.0)
    image = panel.imshow(shown, cmap="Greys_r", norm=PowerNorm(0.5, 0, float(shown.max())))
    names = list(dict.fromkeys(families))
    edges = [0, *np.cumsum([list(families).count(name) for name in names])]
    for edge in edges[1:-1]:
        panel.axhline(edge - 0.5, color=VERMILION, linewidth=1)
        panel.axvline(edge - 0.5, color=VERMILION, linewidth=1)
    middles = [(low + high - 1) / 2 for low, high in pairwise(edges)]
    panel.set_yticks(middles, names, fontsize=8)
    panel.set_xticks(middles, names, fontsize=8, rotation=90)
    panel.tick_params(length=0)
    panel.grid(visible=False)
    panel.figure.colorbar(image, ax=panel, shrink=0.7, label="distance (dark: close; shades by its root)")


@styled
def plot_measures(theirs: Mapping[str, Mapping[str, float]], mine: Mapping[str, Mapping[str, float]]) -> None:
    """Correlation of each measure with the score: the paper's networks, and beside them those that are trained here.

    Both hold the correlations by network and measure; a measure of ``mine`` may be missing in ``theirs``. Dots of one
    architecture have one mark.
    """
    _, (panel,) = panels(height=5.4)
    measures = list(next(iter(mine.values())))
    spread = np.linspace(-0.38, -0.06, len(theirs))
    for place, measure in enumerate(measures):
        found = [row.get(measure, np.nan) for row in theirs.values()]
        panel.plot(place + spread, found, "o", color="#8a8a8a", markersize=4, alpha=0.8)
    kinds = list(dict.fromkeys(map(TRAINED["kinds"], mine)))
    for offset, (kind, colour, mark) in enumerate(zip(kinds, (BLUE, VERMILION, GREEN, PURPLE), "o^sD", strict=False)):
        rows = [row for name, row in mine.items() if TRAINED["kinds"](name) == kind]
        for place, measure in enumerate(measures):
            panel.plot([place + 0.06 + 0.1 * offset] * len(rows), [row[measure] for row in rows], mark, color=colour,
                       markersize=7, alpha=0.8, mew=0, label=kind if place == 0 else None)  # fmt: skip
    panel.plot([], [], "o", color="#8a8a8a", markersize=4, label=f"paper's {len(theirs)}")
    panel.axhline(0, color=INK, linewidth=1)
    for place in range(1, len(measures)):
        panel.axvline(place - 0.5, color="#dddddd", linewidth=1)
    panel.set_xticks(range(len(measures)), [name.replace(" held", "\nheld") for name in measures], fontsize=12)
    panel.grid(axis="x", visible=False)
    panel.set(ylabel="correlation with the score", ylim=(-1.05, 1.05), xlim=(-0.5, len(measures) - 0.45))
    panel.legend(loc="lower center", bbox_to_anchor=(0.47, 1.0), ncols=3, frameon=False, handletextpad=0.1)
