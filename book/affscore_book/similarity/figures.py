"""The figures of the chapter on similarity. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from affscore.plots import BLUE, INK, ORANGE, SKY, VERMILION, panels, styled
from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.kernels import centred_gram, gram
from affscore_book.similarity.procrustes import procrustes
from affscore_book.similarity.study import PAPER_TABLE_2, SimilarityStudy

__all__ = [
    "plot_concepts",
    "plot_decay",
    "plot_floor",
    "plot_maps",
    "plot_procrustes",
    "plot_rotation_curves",
    "plot_tables",
]

NAMES = {
    "relu": "G_ReLU, centred",
    "relu_uncentred": "G_ReLU, not centred",
    "orthogonal": "orthogonal, centred",
    "orthogonal_uncentred": "orthogonal, not centred",
}
KERNELS = {"linear": "linear", "max": "max (G_ReLU)", "laplace": "Laplace (G_ReLU)"}
COLOUR = {"relu": VERMILION, "relu_uncentred": ORANGE, "orthogonal": BLUE, "orthogonal_uncentred": SKY}


@styled
def plot_tables(x: Tensor, y: Tensor, labels: Tensor, *, each: int = 6) -> None:
    """What CKA compares: the centred tables of two networks' features, images in order of their class, and shuffled.

    ``x`` and ``y`` have shape (n, ...), ``labels`` (n,); ``each`` images of every class are shown.
    """
    rows = torch.cat([(labels == k).nonzero()[:each, 0] for k in labels.unique()])
    first, second = (centred_gram(gram(features[rows], "linear")) for features in (x, y))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    shuffled = second[order][:, order]
    _, axes = panels(1, 3, height=3.1, sharex=True, sharey=True)
    titles = ("K, first network", "L, second network", "L, images shuffled")
    for panel, table, title in zip(axes, (first, second, shuffled), titles, strict=True):
        value = float((first * table).sum() / (first.norm() * table.norm()))
        limit = 3 * float(table.std())
        panel.imshow(table.numpy(), cmap="PuOr", vmin=-limit, vmax=limit)
        panel.grid(False)
        panel.set_title(title, fontsize=13)
        panel.set_xlabel("" if table is first else f"CKA with K\n{value:.2f}".replace("-", "\u2212"))
        panel.set(xticks=[], yticks=[])
    axes[0].set_ylabel(f"{len(rows)} images, by class")


@styled
def plot_floor(counts: Sequence[int] = (8, 16, 32, 64, 128, 256, 512, 1024), d: int = 64) -> None:
    """Similarity of independent ReLU features against the number of samples, centred and not."""
    _, (axes,) = panels(1, 1, height=4.6)
    rng = np.random.default_rng(0)
    pairs = [np.maximum(rng.normal(size=(2, n, d)), 0) for n in counts]
    for measure, mark in (("relu_uncentred", "s-"), ("relu", "o-"), ("orthogonal", "^-")):
        group, _, uncentred = measure.partition("_")
        values = [procrustes(x, y, group, centred=not uncentred, null=0).value for x, y in pairs]
        axes.plot(counts, values, mark, color=COLOUR[measure], markersize=8, label=NAMES[measure])
    axes.axhline(1 - 1 / np.sqrt(2), color=INK, linestyle="--", linewidth=1.5)
    axes.text(counts[0], 1 - 1 / np.sqrt(2) + 0.012, "1 − 1/√2", fontsize=13)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(n) for n in counts])
    axes.set(ylim=(0, 1), xlabel=f"samples n ({d} channels)", ylabel="similarity of\nindependent features")
    axes.legend(loc="upper right")


@styled
def plot_procrustes(study: SimilarityStudy, kind: str, measures: Sequence[str], *, paper: bool = False) -> None:
    """Similarities by layer: mean and range over pairs of networks, their nulls (dashed), and the paper's (crosses)."""
    layers, inside = study.layers(kind), study.inside(kind)
    figure, (axes,) = panels(1, 1, height=5.2)
    at = np.arange(len(layers))
    for measure, mark in zip(measures, ("o", "^", "s"), strict=False):
        values, null = np.moveaxis(study.procrustes(kind, measure), -1, 0)
        colour = COLOUR[measure]
        middle = values.mean(0)
        axes.fill_between(at, values.min(0), values.max(0), color=colour, alpha=0.25, linewidth=0)
        axes.plot(at, middle, "-", color=colour, label=NAMES[measure])
        axes.plot(at[~inside], middle[~inside], mark, color=colour, markersize=8)
        axes.plot(at[inside], middle[inside], mark, color=colour, markersize=8, fillstyle="none", mew=2)
        axes.plot(at, null.mean(0), "--", color=colour, linewidth=1.5)
        if paper and measure in PAPER_TABLE_2:
            axes.plot(at, PAPER_TABLE_2[measure], "x", color=colour, markersize=11, mew=3)
    axes.plot([], [], "--", color=INK, linewidth=1.5, label="null: random order")
    if inside.any():
        axes.plot([], [], "o", color=INK, fillstyle="none", mew=2, label="inside a block")
    if paper:
        axes.plot([], [], "x", color=INK, markersize=11, mew=3, label="paper, CIFAR-10")
    axes.set_xticks(*_ticks(layers))
    axes.set_xlabel("activation" if len(layers) < 6 else "activation (number: end of a block)")
    axes.set(ylim=(0, 1), ylabel="similarity")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)


def _ticks(layers: Sequence[str]) -> tuple[list[int], list[str]]:
    """Places and names of all layers if they are few, else of the ends of blocks, by number."""
    if len(layers) < 6:
        return list(range(len(layers))), list(layers)
    ends = [i for i, name in enumerate(layers) if name.endswith("relu2")]
    return ends, [layers[i].split(".")[0].removeprefix("block") for i in ends]


@styled
def plot_maps(study: SimilarityStudy, kind: str, kernels: Sequence[str]) -> None:
    """CKA between all layers of two networks of a kind, mean over pairs, one panel a kernel.

    The colours start at the lowest value of all panels, rounded down to a tenth.
    """
    layers = study.layers(kind)
    places, names = _ticks(layers)
    names = [name.removeprefix("relu") for name in names]
    figure, axes = panels(1, len(kernels), height=3.9 if len(kernels) < 3 else 3.1, sharey=True)
    means = [study.maps(kind, kernel).mean(0) for kernel in kernels]
    means = [(mean + mean.T) / 2 for mean in means]  # which network of a pair comes first means nothing
    lowest = np.floor(10 * min(mean.min() for mean in means)) / 10
    for panel, kernel, mean in zip(axes, kernels, means, strict=True):
        shown = panel.imshow(mean, cmap="viridis", vmin=lowest, vmax=1, origin="lower")
        if len(layers) < 6:
            for (row, column), value in np.ndenumerate(mean):
                colour = "black" if value - lowest > 0.6 * (1 - lowest) else "white"
                panel.text(column, row, f"{value:.2f}".lstrip("0"), ha="center", va="center", fontsize=12, color=colour)
        panel.grid(False)
        panel.set_title(KERNELS[kernel], fontsize=14)
        panel.set_xticks(places, names)
        panel.tick_params(axis="x", labelsize=11, rotation=0)
    axes[0].set_yticks(places, names)
    what = "activation" if len(layers) < 6 else "end of block"
    figure.supxlabel(what, fontsize=14)
    axes[0].set_ylabel(what)
    figure.colorbar(shown, ax=axes, location="top", label="CKA", aspect=40, shrink=0.9)


@styled
def plot_decay(study: SimilarityStudy, kinds: dict[str, str]) -> None:
    """CKA of the same layer in two networks along depth: mean and range over pairs, a panel for each kind of network.

    ``kinds``: name of the kind -> title.
    """
    figure, axes = panels(1, len(kinds), height=3.9, sharey=True)
    for panel, (kind, title) in zip(axes, kinds.items(), strict=True):
        layers = study.layers(kind)
        at = np.arange(len(layers))
        for kernel, colour, mark in (("linear", BLUE, "^-"), ("max", VERMILION, "o-")):
            values = study.diagonal(kind, kernel)
            panel.fill_between(at, values.min(0), values.max(0), color=colour, alpha=0.25, linewidth=0)
            panel.plot(at, values.mean(0), mark, color=colour, markersize=8, label=KERNELS[kernel])
        places, names = _ticks(layers)
        panel.set_xticks(places, [name.removeprefix("relu") for name in names])
        panel.set_title(title, fontsize=14)
    axes[0].set_ylabel("CKA, same activation")
    figure.supxlabel("activation", fontsize=14)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)


@styled
def plot_concepts(concepts: Concepts, features: Tensor, *, unit: int, images: Sequence[int], concept: str) -> None:
    """Images, the pixels of a concept in them, and where a unit is among its top 0.5 %."""
    _, axes = panels(3, len(images), height=6.3)
    level = features[:, unit].flatten().float()
    cut = level.kthvalue(len(level) - int(0.005 * len(level))).values
    maps = functional.interpolate(
        features[list(images), unit][:, None].float(), size=concepts.masks.shape[-2:], mode="bilinear"
    )
    which = concepts.names.index(concept)
    for column, i in enumerate(images):
        shown = (concepts.images[i].permute(1, 2, 0), concepts.masks[i, which], maps[column, 0] > cut)
        titles = ("image", concept, f"unit {unit}")
        for panel, values, title in zip(axes[column :: len(images)], shown, titles, strict=True):
            panel.imshow(values.numpy(), cmap="gray", vmin=0, vmax=255 if title == "image" else 1)
            panel.set_title(title)
            panel.set_axis_off()


@styled
def plot_rotation_curves(study: SimilarityStudy, groups: dict[str, dict[str, str]]) -> None:
    """The fraction of interpretable units over alpha, for both cuts: each network (thin lines), and their mean.

    ``groups``: label -> arguments of :meth:`SimilarityStudy.curves`.
    """
    alphas = study.settings["dissection"]["alphas"]
    titles = {"map": "top 0.5 % of the map", "pixels": "top 0.5 % of the pixels"}
    figure, axes = panels(2, 1, height=8.4, sharex=True, sharey=True)
    for panel, (top_of, title) in zip(axes, titles.items(), strict=True):
        styles = zip(groups.items(), (VERMILION, BLUE, ORANGE, SKY), ("o-", "^-", "s--", "v--"), strict=False)
        chance = []
        for (label, which), colour, mark in styles:
            values = study.curves(**which, top_of=top_of)
            panel.plot(alphas, values.mean(0), mark, color=colour, markersize=8, label=label)
            panel.plot(alphas, values.T, color=colour, alpha=0.5, linewidth=1)
            chance += [curve["chance"].mean() for curve in study.dissection(**which, top_of=top_of).values()]
        level = float(np.mean(chance))
        panel.axhline(level, color=INK, linestyle="--", linewidth=1.5, label="masks of other images")
        panel.set(title=title, ylabel="interpretable fraction")
    axes[0].set_ylim(bottom=-0.03)
    axes[1].set_xlabel("power α of the rotation")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=1, frameon=False)
