"""The figures of the chapter on ImageNet signatures. Each function draws one figure and returns nothing.

Every figure says which weights are trained and which are random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from affscore.plots import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, panels, styled
from affscore.signature import Signature

__all__ = [
    "plot_data_sets",
    "plot_medians",
    "plot_pools",
    "plot_start",
    "plot_trained",
]

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)


def _curve(panel, signature: Signature, colour: str, label: str, mark: str = "o-") -> None:
    """Mean scores along the network, with a band of one standard deviation over the rows."""
    place, mean, std = np.arange(1, len(signature.calls) + 1), signature.mean, signature.std
    panel.plot(place, mean, mark, color=colour, linewidth=1.6, markersize=5, label=label)
    panel.locator_params(axis="x", integer=True)
    panel.fill_between(place, mean - std, mean + std, color=colour, alpha=0.25, linewidth=0)


@styled
def plot_pools(spatial: Mapping[str, Signature], trailing: Mapping[str, Signature]) -> None:
    """The signatures of some untrained networks with both pools, a panel a network."""
    _, axes = panels(len(spatial), 1, height=2.9 * len(spatial) + 0.6, sharey=True)
    for panel, (name, signature) in zip(axes, spatial.items(), strict=True):
        _curve(panel, signature, BLUE, "spatial: averages over positions")
        _curve(panel, trailing[name], VERMILION, "trailing: averages over the last axes", "s--")
        panel.set(title=f"{name}, random weights", ylabel="score")
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.16), frameon=False)
    axes[-1].set_xlabel("activation call, in order of execution")


@styled
def plot_medians(spatial: Mapping[str, Signature], trailing: Mapping[str, Signature], special: Sequence[str]) -> None:
    """Median score of every untrained network by both pools, lowest first by the trailing pool; ``special`` in bold.

    ``special`` are beginnings of names.
    """
    medians = {name: (np.nanmedian(spatial[name].mean), np.nanmedian(trailing[name].mean)) for name in spatial}
    order = sorted(medians, key=lambda name: -medians[name][1])
    _, (panel,) = panels(height=0.3 * len(order) + 1.9)
    rows = range(len(order))
    left, right = zip(*(medians[name] for name in order), strict=True)
    panel.hlines(rows, left, right, color="#aaaaaa", linewidth=2, zorder=1)
    panel.plot(left, rows, "o", color=BLUE, markersize=7, label="spatial pool", zorder=3)
    panel.plot(right, rows, "s", color=VERMILION, markersize=8, label="trailing pool")
    panel.set_yticks(rows, order, fontsize=12)
    for label in panel.get_yticklabels():
        if label.get_text().startswith(tuple(special)):
            label.set_fontweight("bold")
    panel.set(ylim=(-0.7, len(order) - 0.3), xlabel="median score, random weights")
    panel.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False)


@styled
def plot_trained(trained: Mapping[str, Signature], untrained: Mapping[str, Mapping[str, Signature]]) -> None:
    """Signatures with trained weights and with each kind of untrained ones, a panel a network.

    ``untrained`` maps a label to signatures by network; a band is one standard deviation over batches or seeds.
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
def plot_start(trained: Mapping[str, Signature], untrained: Mapping[str, Signature], label: str) -> None:
    """Trained against untrained score of every call, one colour a network; ``label`` names the untrained weights."""
    _, (panel,) = panels(height=5.6)
    for (name, signature), colour, mark in zip(trained.items(), COLOURS, "osD^vP", strict=False):
        panel.plot(untrained[name].mean, signature.mean, mark, color=colour, markersize=7, alpha=0.8, label=name)
    low = min(panel.get_xlim()[0], panel.get_ylim()[0])
    panel.plot([low, 1], [low, 1], "--", color=INK, linewidth=1.5)
    panel.set(xlabel=f"score with {label}", ylabel="score after training")
    panel.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, frameon=False)


@styled
def plot_data_sets(by_data: Mapping[str, Signature], title: str) -> None:
    """One network on several data sets."""
    _, (panel,) = panels(height=4.6)
    for (name, signature), colour, mark in zip(by_data.items(), COLOURS, ("o-", "s--", "D:"), strict=False):
        _curve(panel, signature, colour, name, mark)
    panel.set(title=title, xlabel="activation call, in order of execution", ylabel="score")
    panel.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False)
