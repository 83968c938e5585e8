"""The figures of the chapter on stitching. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, panels, styled
from affscore_book.stitching.controls import Controls
from affscore_book.stitching.study import StitchingStudy, inside_block

__all__ = ["plot_averages", "plot_blocks", "plot_controls", "plot_penalties", "plot_planted", "plot_shortcuts"]

#: Colour, mark and name of each stitch.
LOOKS = {
    "full": (BLUE, "o", "full"),
    "rank 4": (SKY, "v", "rank 4"),
    "rank 2": (ORANGE, "^", "rank 2"),
    "rank 1": (PURPLE, "s", "rank 1"),
    "g_relu": (VERMILION, "D", "$G_\\mathrm{ReLU}$"),
}
#: Read off Figure 1 of the paper by eye: G_ReLU on Myrtle CNNs of full width, CIFAR-10, points at the four activations.
PAPER_G_RELU = (8.1, 7.3, 16.5, 5.6)


def _line(axes, at, values, colour, mark, label, style: str = "-") -> None:
    """Means with their intervals as bars."""
    mean, low, high = np.array(values, dtype=float).T
    bars = [mean - low, high - mean]
    axes.plot(at, mean, style, color=colour, linewidth=1.8, zorder=2)
    axes.errorbar(at, mean, bars, fmt=mark, color=colour, markersize=8, elinewidth=2, label=label, zorder=3)


def _pairs(axes, at, tables, colour, mark, label) -> None:
    """Means over pairs of networks as a line, and every pair as a small mark; tables (places, networks, networks)."""
    axes.plot(at, np.nanmean(tables, axis=(1, 2)), f"{mark}-", color=colour, markersize=7, label=label, zorder=3)
    for place, table in zip(at, tables, strict=True):
        values = table[~np.isnan(table)]
        axes.plot(np.full(len(values), place), values, mark, color=colour, markersize=3.5, alpha=0.6, zorder=2)


def _legend(axes, columns: int = 3) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=columns, frameon=False, columnspacing=1.0)


def _penalties(axes, xlabel: str, columns: int = 3) -> None:
    axes.set(xlabel=xlabel, ylabel="penalty (accuracy points)")
    _legend(axes, columns)


@styled
def plot_penalties(study: StitchingStudy) -> None:
    """Figure 1: the penalty of each learned stitch at each activation, with intervals, and the paper's G_ReLU."""
    layers = study.layers("myrtle")
    at = np.arange(1, len(layers) + 1)
    _, (axes,) = panels(height=5.2)
    stitches = ("full", "rank 4", "rank 2", "rank 1", "g_relu")
    for offset, stitch in zip(np.linspace(-0.16, 0.16, len(stitches)), stitches, strict=True):
        _line(axes, at + offset, [study.penalty("myrtle", one, stitch, "learned") for one in layers], *LOOKS[stitch])
    axes.plot(at, PAPER_G_RELU, "x", color=INK, markersize=10, mew=3, label="paper, $G_\\mathrm{ReLU}$")
    axes.set_xticks(at, layers)
    _penalties(axes, "stitched after")


@styled
def plot_blocks(study: StitchingStudy) -> None:
    """The penalty at every activation of ResNet20, means and pairs; grey bars mark the insides of blocks."""
    layers = study.layers("resnet20")
    at = np.arange(1, len(layers) + 1)
    _, (axes,) = panels(height=5.2)
    for place, layer in zip(at, layers, strict=True):
        if inside_block(layer):
            axes.axvspan(place - 0.4, place + 0.4, ymax=0.03, color="#999999", zorder=0)
    for stitch, offset in (("full", -0.1), ("g_relu", 0.1)):
        _pairs(axes, at + offset, study.tables("resnet20", layers, stitch), *LOOKS[stitch])
    axes.set(xlim=(0.4, len(layers) + 0.6), xticks=at[1::2])
    _penalties(axes, "activation, in order (grey bar: inside a block)")


@styled
def plot_shortcuts(study: StitchingStudy) -> None:
    """G_ReLU stitches inside blocks, means and pairs: the shortcut as it is, stitched at random, and stitched."""
    layers = [layer for layer in study.layers("resnet20") if inside_block(layer)]
    outside = [layer for layer in study.layers("resnet20") if not inside_block(layer)]
    at = np.arange(1, len(layers) + 1)
    _, (axes,) = panels(height=5.0)
    for fit, offset, *looks in (
        ("closed form", -0.15, VERMILION, "D", "shortcut as it is"),
        ("closed form, shortcut at random", 0.0, ORANGE, "^", "a random second stitch"),
        ("closed form, shortcut too", 0.15, GREEN, "o", "shortcut stitched too"),
    ):
        _pairs(axes, at + offset, study.tables("resnet20", layers, "g_relu", fit), *looks)
    level = study.penalty("resnet20", outside, "g_relu").mean
    axes.axhline(level, color=INK, linestyle="--", linewidth=1.2, label="mean outside blocks")
    axes.set_xticks(at)
    _penalties(axes, "residual block", columns=2)


@styled
def plot_planted(study: StitchingStudy) -> None:
    """Networks against themselves acted on by G_ReLU: the penalty of both ways to find the stitch; and of strangers."""
    layers = study.layers("myrtle")
    at = np.arange(1, len(layers) + 1)
    _, (axes,) = panels(height=4.4)
    for fit, colour, mark, label in (("closed form", BLUE, "o", "twins, closed form"),
                                     ("learned from noise", VERMILION, "D", "twins, learned")):  # fmt: skip
        _line(axes, at, [study.planted(layer, fit) for layer in layers], colour, mark, label)
    strangers = [study.penalty("myrtle", layer, "g_relu", "learned from noise").mean for layer in layers]
    axes.plot(at, strangers, "x:", color=INK, markersize=9, mew=2, label="strangers, learned")
    axes.set_xticks(at, layers)
    _penalties(axes, "stitched after", columns=2)


@styled
def plot_controls(found: Controls) -> None:
    """What learned full stitches lose, at each layer, by where the features come from; without plain noise, which loses
    all."""
    shown = [kind for kind in found.lost if kind != "noise"]
    looks = zip(shown, (BLUE, ORANGE, PURPLE, GREEN, VERMILION), "o^svD", strict=True)
    at = np.arange(1, len(found.layers) + 1)
    _, (axes,) = panels(height=5.2)
    for offset, (kind, colour, mark) in zip(np.linspace(-0.2, 0.2, len(shown)), looks, strict=True):
        _line(axes, at + offset, [student_interval(row) for row in found.lost[kind]], colour, mark, kind)
    axes.set_xticks(at, found.layers)
    axes.set(xlabel="stitched after", ylabel="points below the second network")
    _legend(axes, 2)


@styled
def plot_averages(lost: Mapping[str, Mapping[str, Interval]]) -> None:
    """What the average of two networks loses, by activation and by what was done to the second network before."""
    _, (axes,) = panels(height=4.4)
    looks = zip(lost, ((VERMILION, "D", -0.08), (BLUE, "o", 0.08)), strict=True)
    for name, (colour, mark, offset) in looks:
        kinds = list(lost[name])
        at = np.arange(len(kinds))
        _line(axes, at + offset, list(lost[name].values()), colour, mark, name, " ")
    _legend(axes)
    axes.set_xticks(at, [kind.replace("G_ReLU", LOOKS["g_relu"][2]) for kind in kinds])
    axes.set(xlabel="what was done to the second network first", ylabel="points lost by the average")
    axes.axhline(0, color=INK, linewidth=1)
