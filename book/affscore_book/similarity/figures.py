"""The figures of the chapter on similarity. Each function draws the arrays that it gets and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from affscore_book.kit.style import BLUE, INK, ORANGE, SKY, VERMILION, legend_above, panels, styled

__all__ = [
    "Along",
    "plot_along",
    "plot_concepts",
    "plot_decay",
    "plot_floor",
    "plot_maps",
    "plot_rotation_curves",
    "plot_tables",
]

Array = NDArray[np.float64]
STYLES = ((VERMILION, "o"), (BLUE, "^"), (ORANGE, "s"), (SKY, "v"))


class Along(NamedTuple):
    """Similarities (pairs, layers) along a network, their nulls, of the same shape, and the paper's, if it has any."""

    values: Array
    null: Array
    paper: Sequence[float] | None = None


@styled
def plot_tables(tables: Mapping[str, ArrayLike], notes: Sequence[str]) -> None:
    """Square tables of pairs of images side by side, each under its title and above a note."""
    _, axes = panels(1, len(tables), height=3.1, sharex=True, sharey=True)
    for panel, (title, values), note in zip(axes, tables.items(), notes, strict=True):
        table = np.asarray(values)
        limit = 3 * table.std()
        panel.imshow(table, cmap="PuOr", vmin=-limit, vmax=limit)
        panel.grid(False)
        panel.set_title(title, fontsize=13)
        panel.set_xlabel(note.replace("-", "\u2212"))
        panel.set(xticks=[], yticks=[])
    axes[0].set_ylabel(f"{len(table)} images, by class")


@styled
def plot_floor(counts: Sequence[int], found: Mapping[str, Sequence[float]]) -> None:
    """Similarities of features that share nothing against the number of samples, a line for each measure."""
    _, (axes,) = panels(1, 1, height=4.6)
    for (label, values), (colour, mark) in zip(found.items(), STYLES, strict=False):
        axes.plot(counts, values, f"{mark}-", color=colour, markersize=8, label=label)
    axes.axhline(1 - 1 / np.sqrt(2), color=INK, linestyle="--", linewidth=1.5)
    axes.text(counts[0], 1 - 1 / np.sqrt(2) + 0.012, "1 − 1/√2", fontsize=13)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(n) for n in counts])
    axes.set(ylim=(0, 1), xlabel="samples n", ylabel="similarity of\nindependent features")
    axes.legend(loc="upper right")


@styled
def plot_along(layers: Sequence[str], found: Mapping[str, Along], *, inside: ArrayLike | None = None) -> None:
    """Similarities by layer, a panel for each title: mean and range over pairs, the mean null and the paper's numbers.

    ``inside``: which layers lie inside a residual block, bool (layers,); their marks are open.
    """
    figure, axes = panels(1, len(found), height=4.4, sharey=True)
    at = np.arange(len(layers))
    within = np.zeros(len(layers), dtype=bool) if inside is None else np.asarray(inside)
    for panel, (title, along), (colour, mark) in zip(axes, found.items(), STYLES, strict=False):
        middle, null = along.values.mean(0), along.null.mean(0)
        panel.fill_between(at, along.values.min(0), along.values.max(0), color=colour, alpha=0.25, linewidth=0)
        panel.plot(at, middle, "-", color=colour)
        panel.plot(at[~within], middle[~within], mark, color=colour, markersize=8)
        panel.plot(at[within], middle[within], mark, color=colour, markersize=8, fillstyle="none", mew=2)
        panel.plot(at, null, "--", color=colour, linewidth=1.5)
        if along.paper is not None:
            panel.plot(at, along.paper, "x", color=INK, markersize=11, mew=3)
            panel.text(at[-1], middle[-1] + 0.04, "ours", color=colour, fontsize=13, ha="right")
            panel.text(at[-1], null[-1] - 0.07, "our null", color=colour, fontsize=13, ha="right")
        places, names = _ticks(layers)
        panel.set_xticks(places, [name.removeprefix("relu") for name in names])
        panel.set_title(title, fontsize=14)
    axes[0].set(ylim=(0, 1), ylabel="similarity")
    figure.supxlabel("activation" if len(layers) < 6 else "activation (number: end of a block)", fontsize=14)
    axes[0].plot([], [], "--", color=INK, linewidth=1.5, label="null: random order")
    if within.any():
        axes[0].plot([], [], "o", color=INK, fillstyle="none", mew=2, label="inside a block")
    if any(along.paper is not None for along in found.values()):
        axes[0].plot([], [], "x", color=INK, markersize=11, mew=3, label="paper, CIFAR-10")
    legend_above(axes[0])


def _ticks(layers: Sequence[str]) -> tuple[list[int], list[str]]:
    """Places and names of all layers if they are few, else of the ends of blocks, by number."""
    if len(layers) < 6:
        return list(range(len(layers))), list(layers)
    ends = [i for i, name in enumerate(layers) if name.endswith("relu2")]
    return ends, [layers[i].split(".")[0].removeprefix("block") for i in ends]


@styled
def plot_maps(layers: Sequence[str], maps: Mapping[str, Array]) -> None:
    """CKA between all layers of two networks, (layers, layers) for each title: a panel each.

    The colours start at the lowest value of all panels, rounded down to a tenth.
    """
    places, names = _ticks(layers)
    names = [name.removeprefix("relu") for name in names]
    figure, axes = panels(1, len(maps), height=3.9 if len(maps) < 3 else 3.1, sharey=True)
    shown_maps = [(each + each.T) / 2 for each in maps.values()]  # which network of a pair comes first means nothing
    lowest = np.floor(10 * min(each.min() for each in shown_maps)) / 10
    for panel, title, mean in zip(axes, maps, shown_maps, strict=True):
        shown = panel.imshow(mean, cmap="viridis", vmin=lowest, vmax=1)
        if len(layers) < 6:
            for (row, column), value in np.ndenumerate(mean):
                colour = "black" if value - lowest > 0.6 * (1 - lowest) else "white"
                panel.text(column, row, f"{value:.2f}".lstrip("0"), ha="center", va="center", fontsize=12, color=colour)
        panel.grid(False)
        panel.set_title(title, fontsize=14)
        panel.set_xticks(places, names)
        panel.tick_params(axis="x", labelsize=11, rotation=0)
    axes[0].set_yticks(places, names)
    what = "activation" if len(layers) < 6 else "end of block"
    figure.supxlabel(what, fontsize=14)
    axes[0].set_ylabel(what)
    figure.colorbar(shown, ax=axes, location="top", label="CKA", aspect=40, shrink=0.9)


@styled
def plot_decay(layers: Sequence[str], found: Mapping[str, Mapping[str, Array]]) -> None:
    """CKA of the same layer in two networks along depth: mean and range over pairs.

    ``found``: title of a panel -> kernel -> values (pairs, layers).
    """
    figure, axes = panels(1, len(found), height=3.9, sharey=True)
    at = np.arange(len(layers))
    places, names = _ticks(layers)
    for panel, (title, kernels) in zip(axes, found.items(), strict=True):
        for (kernel, values), (colour, mark) in zip(kernels.items(), STYLES, strict=False):
            panel.fill_between(at, values.min(0), values.max(0), color=colour, alpha=0.25, linewidth=0)
            panel.plot(at, values.mean(0), f"{mark}-", color=colour, markersize=8, label=kernel)
        panel.set_xticks(places, [name.removeprefix("relu") for name in names])
        panel.set_title(title, fontsize=14)
    axes[0].set_ylabel("CKA, same activation")
    figure.supxlabel("activation", fontsize=14)
    legend_above(axes[0])


@styled
def plot_concepts(images: Tensor, masks: Mapping[str, Tensor]) -> None:
    """Images (n, 1, H, W), uint8, and below each where some things are: title of a row -> bool (n, H, W)."""
    _, axes = panels(1 + len(masks), len(images), height=2.1 * (1 + len(masks)))
    rows = {"image": images[:, 0] / 255, **masks}
    for row, (title, pictures) in enumerate(rows.items()):
        for panel, picture in zip(axes[row * len(images) :], pictures, strict=False):
            panel.imshow(picture.numpy(), cmap="gray", vmin=0, vmax=1)
            panel.set_title(title)
            panel.set_axis_off()


@styled
def plot_rotation_curves(
    alphas: Sequence[float], found: Mapping[str, Mapping[str, Array]], chance: Sequence[float]
) -> None:
    """The fraction of interpretable units over alpha: each network (thin lines), and their mean.

    ``found``: title of a panel -> kind of network -> values (networks, alphas). ``chance``: by panel, what is found by
    masks of other images.
    """
    _, axes = panels(len(found), 1, height=4.2 * len(found), sharex=True, sharey=True)
    for panel, (title, kinds), level in zip(axes, found.items(), chance, strict=True):
        for (label, values), (colour, mark) in zip(kinds.items(), STYLES, strict=False):
            panel.plot(alphas, values.mean(0), f"{mark}-", color=colour, markersize=8, label=label)
            panel.plot(alphas, values.T, color=colour, alpha=0.5, linewidth=1)
        panel.axhline(level, color=INK, linestyle="--", linewidth=1.5, label="masks of other images")
        panel.set(title=title, ylabel="interpretable fraction")
    axes[0].set_ylim(bottom=-0.03)
    axes[-1].set_xlabel("power α of the rotation")
    legend_above(axes[0], 1)
