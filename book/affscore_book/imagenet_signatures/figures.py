"""The figures of the chapter on ImageNet signatures. Each function draws one figure and returns nothing.

Every figure says which weights are trained and which are random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

from affscore.plots import BLUE, GREEN, INK, PURPLE, VERMILION, panels, styled
from affscore.signatures import Signature
from affscore.suite.compare import history
from affscore.suite.figures import plot_history
from affscore.suite.tables import Table
from affscore_book.imagenet_signatures.explained import Comparison
from affscore_book.imagenet_signatures.full_results import Results
from affscore_book.imagenet_signatures.trained import TRAINED, places, zeros_of

__all__ = [
    "plot_block_scores", "plot_measures", "plot_paper", "plot_shares", "plot_skips", "plot_start", "plot_trained",
]  # fmt: skip


def _curve(panel, signature: Signature, colour: str, label: str, mark: str = "o-") -> None:
    """Mean scores along the network, with a band of one standard deviation over the rows."""
    place, mean, std = np.arange(1, len(signature.calls) + 1), signature.mean, signature.std
    panel.plot(place, mean, mark, color=colour, linewidth=1.6, markersize=5, label=label)
    panel.locator_params(axis="x", integer=True)
    panel.fill_between(place, mean - std, mean + std, color=colour, alpha=0.25, linewidth=0)


@styled
def plot_block_scores(by_name: Mapping[str, Signature]) -> None:
    """Residual networks, a panel each: the calls inside the blocks, and those after the additions, in order.

    Lines are the means of either kind; green is the call before the blocks, grey dots are the linear twins.
    """
    figure, axes = panels(len(by_name), 1, height=2.6 * len(by_name) + 0.9, sharey=True, sharex=True)
    for panel, (name, signature) in zip(axes, by_name.items(), strict=True):
        place = np.arange(1, len(signature.calls) + 1)
        twins = signature.companions["twin"].mean(axis=0)
        panel.plot(place, twins, ".", color=INK, alpha=0.45, markersize=3, label="linear twin of each")
        panel.plot(place[:1], signature.mean[:1], "s", color=GREEN, markersize=7, label="before the blocks")
        for (label, chosen), colour, mark, words in zip(
            places(signature).items(), (VERMILION, BLUE), "xD", ("inside a block", "after the addition"), strict=True
        ):
            panel.plot(place[chosen], signature.mean[chosen], mark, color=colour, markersize=5, label=words)
            panel.axhline(signature.mean[chosen].mean(), color=colour, linewidth=1.2,
                          linestyle="--" if "inside" in label else "-")  # fmt: skip
        panel.set(title=name, ylabel="score", ylim=(0.4, 1.02))
    axes[-1].set_xlabel("activation call, in order of execution")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=2, frameon=False, markerscale=1.6)


@styled
def plot_start(name: str, trained: Signature, start: Signature) -> None:
    """One network, trained and before training."""
    _, (panel,) = panels(height=3.6)
    _curve(panel, start, VERMILION, "before training", "s--")
    _curve(panel, trained, BLUE, "trained")
    panel.set(xlabel=f"activation call of {name}, in order of execution", ylabel="score", ylim=(0.6, 1.02))
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


@styled
def plot_trained(trained: Mapping[str, Signature], untrained: Mapping[str, Mapping[str, Signature]]) -> None:
    """Signatures with trained weights and with each kind of untrained ones, a panel a network.

    ``untrained`` maps a label to signatures by network; a band is one standard deviation over batches.
    """
    _, axes = panels(len(trained), 1, height=2.7 * len(trained) + 1.2, sharey=True)
    for panel, (name, signature) in zip(axes, trained.items(), strict=True):
        for (label, others), colour, mark in zip(untrained.items(), (VERMILION, GREEN), ("s--", "D:"), strict=False):
            if name in others:
                _curve(panel, others[name], colour, label, mark)
        _curve(panel, signature, BLUE, "trained weights")
        panel.set(title=name, ylabel="score")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].legend(handles[::-1], labels[::-1], loc="lower center", bbox_to_anchor=(0.45, 1.14), frameon=False)
    axes[-1].set_xlabel("activation call, in order of execution")


@styled
def plot_shares(compared: Sequence[Comparison]) -> None:
    """How much of a trained signature another one tells: a row a comparison, a dot a pair, a bar for the mean.

    Full dots: the other one is untrained. Hollow dots: it is trained.
    """
    _, (panel,) = panels(height=0.5 * len(compared) + 1.9)
    for row, each in enumerate(compared):
        trained = "trained" in each.compared
        pairs = each.pairs[np.isfinite(each.pairs)]
        colour = BLUE if trained else VERMILION
        panel.plot(pairs, [row] * len(pairs), "o", mec=colour, mfc="white" if trained else colour, mew=1.8,
                   markersize=8, alpha=0.8)  # fmt: skip
        panel.plot([pairs.mean()] * 2, [row - 0.32, row + 0.32], color=INK, linewidth=2.5, zorder=4)
    names = [f"{each.network.removeprefix('efficientnet_')}: {each.compared}" for each in compared]
    panel.set_yticks(range(len(compared)), names, fontsize=12)
    panel.set(ylim=(len(compared) - 0.4, -0.6), xlim=(-0.03, 1.03), xlabel="share $r^2$")
    kinds = ((VERMILION, VERMILION, "untrained"), (BLUE, "white", "trained"))
    handles = [Line2D([], [], marker="o", linestyle="", mec=colour, mfc=inside, mew=1.8, markersize=8, label=label)
               for colour, inside, label in kinds]  # fmt: skip
    panel.legend(handles=handles, title="a trained signature beside one that is", loc="lower center",
                 bbox_to_anchor=(0.2, 1.0), ncols=2, frameon=False)  # fmt: skip


@styled
def plot_skips(by_state: Mapping[str, Mapping[str, Mapping[int, Signature]]]) -> None:
    """Score of every ReLU in a block against the part of its inputs that is negative.

    ``by_state`` maps "before training" and the like, a row of panels each, to the seeds of networks, a panel each. Dots
    are means over seeds. Where the input is negative the output is 0, which is what the companions count.
    """
    columns = len(next(iter(by_state.values())))
    figure, axes = panels(len(by_state), columns, height=3.0 * len(by_state) + 1.2, sharex=True, sharey=True)
    shown = [(state, name, found) for state, nets in by_state.items() for name, found in nets.items()]
    for panel, (state, name, signatures) in zip(axes, shown, strict=True):
        zeros = np.mean([zeros_of(each) for each in signatures.values()], axis=0)
        mean = np.mean([each.mean for each in signatures.values()], axis=0)
        at = places(next(iter(signatures.values())))
        for (label, chosen), colour, mark in zip(at.items(), (VERMILION, BLUE), "sD", strict=True):
            panel.plot(zeros[chosen], mean[chosen], mark, color=colour, markersize=7, alpha=0.85, label=label)
        panel.set_title(f"{name.replace('resnet', 'ResNet')},\n{state}", fontsize=14)
        panel.locator_params(axis="x", nbins=4)
    figure.supylabel("score", fontsize=15)
    figure.supxlabel("part of the inputs that is negative", fontsize=15)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False)


@styled
def plot_measures(paper: Table, trained: Table, measures: Sequence[str]) -> None:
    """Correlation of each measure with the score: the paper's networks, and beside them those that are trained here.

    ``paper`` is :func:`affscore_book.imagenet_signatures.paper.table_2`, ``trained`` a table with the same columns.
    Dots of one architecture have one mark; "R2 held out" is not in the paper.
    """
    _, (panel,) = panels(height=5.4)
    networks = [name for name in paper["model"] if name not in ("mean", "std")]
    spread = np.linspace(-0.38, -0.06, len(networks))
    for place, measure in enumerate(measures):
        if measure in paper.columns:
            panel.plot(place + spread, paper[measure][: len(networks)], "o", color="#8a8a8a", markersize=4, alpha=0.8)
    kinds = list(dict.fromkeys(TRAINED["kinds"](name) for name in trained["model"]))
    for offset, (kind, colour, mark) in enumerate(zip(kinds, (BLUE, VERMILION, GREEN, PURPLE), "o^sD", strict=False)):
        rows = [row for row in trained.rows() if TRAINED["kinds"](row["model"]) == kind]
        for place, measure in enumerate(measures):
            panel.plot([place + 0.06 + 0.1 * offset] * len(rows), [row[measure] for row in rows], mark, color=colour,
                       markersize=7, alpha=0.8, mew=0, label=kind if place == 0 else None)  # fmt: skip
    panel.plot([], [], "o", color="#8a8a8a", markersize=4, label="paper's 32")
    panel.axhline(0, color=INK, linewidth=1)
    for place in range(1, len(measures)):
        panel.axvline(place - 0.5, color="#dddddd", linewidth=1)
    panel.set_xticks(range(len(measures)), [name.replace(" held", "\nheld") for name in measures], fontsize=12)
    panel.grid(axis="x", visible=False)
    panel.set(ylabel="correlation with the score", ylim=(-1.05, 1.05), xlim=(-0.5, len(measures) - 0.45))
    panel.legend(loc="lower center", bbox_to_anchor=(0.47, 1.0), ncols=3, frameon=False, handletextpad=0.1)


def plot_paper(results: Results | None, pool: str = "spatial") -> None:
    """The paper's Figure 5 A from the results of a full run; nothing where there are none."""
    if results is not None:
        plot_history(history(dict(results.signatures[pool])))
        plt.gcf().axes[0].set_title(f"pool {pool}", fontsize=13)
