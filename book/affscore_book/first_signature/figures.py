"""Figures of the first chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from affscore import Signature
from affscore_book.first_signature.zigzag import Zigzag
from affscore_book.kit.style import BLUE, INK, ORANGE, VERMILION, panels, styled

__all__ = ["plot_both", "plot_calls", "plot_moved", "plot_with_twins", "plot_zigzag"]

GREY = "#808080"


@styled
def plot_calls(signature: Signature, twins: NDArray[np.float64]) -> None:
    """A signature, its linear twins (calls,), and the two calls of a module that is called twice in two colours."""
    _, (panel,) = panels(height=4.4)
    place, names = np.arange(1, len(signature.calls) + 1), [call.name for call in signature.calls]
    modules = [name.partition("[")[0] for name in names]
    twice = {module for module in modules if modules.count(module) == 2 and "." in module}  # part of a block
    kinds = [name.rpartition("[")[2] if module in twice else "" for name, module in zip(names, modules, strict=True)]
    panel.plot(place, twins, "--", color=INK, linewidth=1.5, label="linear twin")
    panel.plot(place, signature.mean, color=INK, linewidth=1, zorder=1)
    for kind, colour, mark, label in (
        ("0]", BLUE, "o", "first call of a block"),
        ("1]", VERMILION, "s", "second call"),
        ("", INK, "D", "the others"),
    ):
        chosen = np.array([each == kind for each in kinds])
        panel.plot(place[chosen], signature.mean[chosen], mark, color=colour, markersize=7, label=label)
    panel.set(xlabel="activation call, in order of execution", ylabel="affinity score", ylim=(0.6, 1))
    panel.legend(ncols=2, loc="lower center", fontsize=12)


@styled
def plot_zigzag(networks: Sequence[Zigzag]) -> None:
    """The step between the two calls of each block against how much more of its inputs the second call cuts."""
    _, (panel,) = panels(height=4.2)
    for skip, colour, mark in ((True, BLUE, "o"), (False, VERMILION, "s")):
        for number, network in enumerate(networks):
            blocks = network.of(skip)
            extra = [block.cut[1] - block.cut[0] for block in blocks]
            label = ("with" if skip else "without") + " a skip connection"
            label = "_" + label if number else label
            panel.plot(extra, [block.step for block in blocks], mark, color=colour, markersize=8, label=label)
    panel.axhline(0, color=INK, linewidth=1)
    panel.axvline(0, color=INK, linewidth=1)
    panel.set(xlabel="share of inputs cut to 0: second call − first", ylabel="score: second call − first")
    panel.legend()


@styled
def plot_moved(channels: Mapping[str, Tensor]) -> None:
    """A histogram of the inputs of one channel in each version of a call; those that ReLU6 sets to 0 are grey."""
    _, axes = panels(len(channels), height=5.0, sharex=True)
    values = {name: x.numpy() for name, x in channels.items()}
    low, high = np.quantile(np.concatenate(list(values.values())), [0.001, 0.999])
    edges = np.unique([*np.linspace(low, 0, 30), *np.linspace(0, high, 30)])
    for ax, (name, x) in zip(axes, values.items(), strict=True):
        counts, _ = np.histogram(x, edges)
        share = counts / np.diff(edges) / len(x)
        ax.bar(edges[:-1], share, np.diff(edges), align="edge", color=np.where(edges[:-1] < 0, GREY, BLUE))
        ax.text(0.02, 0.9, f"{name}: {(x <= 0).mean():.0%} cut", transform=ax.transAxes, va="top")
        ax.set(yticks=[])
    axes[-1].set_xlabel("input of the channel")


@styled
def plot_both(trained: NDArray[np.float64], untrained: NDArray[np.float64]) -> None:
    """The signatures of one architecture before and after training: one score for each call, in order."""
    _, (panel,) = panels(height=4.4)
    for scores, colour, mark, label in (
        (trained, BLUE, "o", "trained on ImageNet"), (untrained, ORANGE, "s", "random weights"),
    ):  # fmt: skip
        panel.plot(range(1, len(scores) + 1), scores, f"{mark}-", color=colour, label=label)
    panel.set(xlabel="activation call, in order of execution", ylabel="affinity score", ylim=(0.6, 1))
    panel.legend(loc="lower right")


@styled
def plot_with_twins(mine: Signature) -> None:
    """A signature beside its linear twins."""
    _, (panel,) = panels(height=4.4)
    mine.plot(panel, twin=True)
