"""Figures that compare networks, from the tables of :mod:`affscore_study.suite.compare` and
:mod:`affscore_study.suite.distances` or from signatures. Each function draws one figure.

A line above every figure names the kinds of weights if not all are trained. If some are trained, a star marks the names
of those that are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.cluster.hierarchy import dendrogram, leaves_list

from affscore.signatures import Signature
from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, panels, styled
from affscore_book.kit.tables import Table
from affscore_study.suite.comparable import collect, weights_kind
from affscore_study.suite.compare import density_curves
from affscore_study.suite.distances import matrix, tree

__all__ = [
    "plot_batch_sizes", "plot_dendrogram", "plot_densities", "plot_distances", "plot_history", "plot_signatures",
]  # fmt: skip

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
#: Inches for one line of a list, and its font size: legible at 360 pixels.
LINE, SMALL = 0.235, 12.5
#: The dendrogram colours at most this many clusters.
CLUSTERS = 4


def _caption(figure: Figure, kinds: Iterable[str], title: str = "") -> None:
    """Name the kinds of weights above the figure, unless all are trained. No text is parsed as a formula."""
    kinds = set(kinds)
    words = {"random": "random weights", "unknown": "weights not recorded"}
    if others := " or ".join(text for kind, text in words.items() if kind in kinds):
        title = f"{title}\n{'*: ' if 'pretrained' in kinds else ''}{others}"
    if title:
        figure.suptitle(title.strip(), fontsize=13.5)
    for text in figure.findobj(Text):
        text.set_parse_math(False)


def _starred(names: Iterable[str], kinds: Sequence[str]) -> list[str]:
    """The names, with a star after those of networks without trained weights if others have some."""
    star = "*" if "pretrained" in kinds else ""
    return [name if kind == "pretrained" else f"{name}{star}" for name, kind in zip(names, kinds, strict=True)]


def _list(axes: Axes, names: Sequence[str]) -> None:
    """Write names down the left side, the first on top."""
    axes.set_yticks(range(len(names)), names, fontsize=SMALL)
    axes.set_ylim(len(names) - 0.4, -0.6)


def _height(rows: int, more: float = 1.2) -> float:
    return max(2.6, LINE * rows + more)


@styled
def plot_signatures(signatures: Mapping[str, Signature]) -> None:
    """Draw the signature of each network, with one standard deviation over batches (Figure 12).

    A dashed line shows the linear twins of signatures with the companion measure ``twin``.
    """
    columns = 3 if max(map(len, signatures)) <= 17 else 2
    rows = math.ceil(len(signatures) / columns)
    figure, axes = panels(rows, columns, height=1.15 * rows + 1.0, sharey=True)
    kinds = list(map(weights_kind, signatures.values()))
    for panel, name, signature in zip(axes, _starred(signatures, kinds), signatures.values(), strict=False):
        mean, std = signature.mean, signature.std
        place = np.arange(1, len(mean) + 1)
        panel.fill_between(place, mean - std, mean + std, color=BLUE, alpha=0.25, linewidth=0)
        panel.plot(place, mean, ".-" if len(mean) < 60 else "-", color=BLUE, linewidth=1.2, markersize=4)
        if "twin" in signature.companions:
            panel.plot(place, [row["twin"] for row in signature.rows()], "--", color="#707070", linewidth=1.2)
        panel.set_title(name, fontsize=SMALL, pad=3)
        panel.tick_params(labelsize=11)
        panel.locator_params(axis="x", nbins=3, integer=True)
    for panel in axes[len(kinds) :]:
        panel.set_visible(False)
    figure.supxlabel("activation call", fontsize=14)
    figure.supylabel("affinity score", fontsize=14)
    twins = any("twin" in signature.companions for signature in signatures.values())
    _caption(figure, kinds, "dashed: what linear layers would score" if twins else "")


@styled
def plot_distances(distances: Table) -> None:
    """Draw the matrix of distances, with the networks in the order of the tree's leaves (Figures 5 B and 16)."""
    order, n = leaves_list(tree(distances)), len(distances)
    names = _starred(distances["model"], distances.columns["weights"])
    figure, (axes,) = panels(height=_height(n, 1.5) if n > 14 else max(3.2, 0.36 * n + 1.2))
    image = axes.imshow(matrix(distances)[np.ix_(order, order)], cmap="viridis", aspect="auto")
    axes.grid(False)
    axes.set_yticks(range(n), [names[i] for i in order], fontsize=SMALL)
    axes.set_xticks([])
    figure.colorbar(image, ax=axes, location="bottom", aspect=40, pad=0.02).ax.tick_params(labelsize=SMALL)
    figure.supxlabel("DTW distance (squared cost); columns as rows", fontsize=13)
    _caption(figure, distances["weights"])


@styled
def plot_dendrogram(distances: Table) -> None:
    """Draw the tree of clusters (Figure 16), cut into at most :data:`CLUSTERS`.

    Each cluster of several networks has its own colour.
    """
    links, kinds = tree(distances), distances.columns["weights"]
    figure, (axes,) = panels(height=_height(len(distances)))
    cut = links[max(1 - CLUSTERS, -len(links)), 2]
    dendrogram(links, orientation="left", labels=_starred(distances["model"], kinds), ax=axes,
               color_threshold=cut, above_threshold_color=INK, leaf_font_size=SMALL)  # fmt: skip
    figure.supxlabel("DTW distance (squared cost)", fontsize=13)
    axes.grid(axis="y", visible=False)
    axes.invert_yaxis()
    _caption(figure, kinds)


@styled
def plot_densities(signatures: Mapping[str, Signature]) -> None:
    """Draw the density of the scores of each network, one above the other (Figure 5 C)."""
    n, kinds = len(signatures), list(map(weights_kind, signatures.values()))
    grid, curves = density_curves(signatures)
    figure, (axes,) = panels(height=(0.42 if n > 12 else 0.6) * n + 1.3)
    for row, curve in enumerate(curves.values()):
        if np.isnan(curve).any():
            axes.text(grid.mean(), row, "no two different scores", fontsize=11, ha="center", va="bottom")
            continue
        scaled = row - 0.9 * curve / curve.max()
        axes.fill_between(grid, row, scaled, color=BLUE, alpha=0.35, linewidth=0, zorder=2 + row)
        axes.plot(grid, scaled, color=BLUE, linewidth=1.4, zorder=2 + row)
    _list(axes, _starred(signatures, kinds))
    axes.set_ylim(n - 0.6, -1.05)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel("affinity score")
    _caption(figure, kinds)


@styled
def plot_history(table: Table) -> None:
    """Draw the smallest, median and largest score of each network in the order of years, and accuracy (Figure 5 A).

    ``table`` comes from :func:`affscore_study.suite.compare.history`.
    """
    kinds, years, n, accuracy = table.columns["weights"], table["year"], len(table), table["accuracy"]
    known = bool(np.isfinite(accuracy).any())
    widths = [2.3, 1] if known else [1]
    figure, axes = panels(1, len(widths), height=_height(n, 1.6), sharey=True, width_ratios=widths)
    for place, row in enumerate(table.rows()):
        axes[0].plot([row["min"], row["max"]], [place] * 2, color=SKY, linewidth=5, solid_capstyle="butt")
        axes[0].plot(row["median"], place, "o", color=BLUE, markersize=7, mew=1.6)
    if known:
        axes[1].plot(accuracy, range(n), "D", color=VERMILION, markersize=5)
        axes[1].locator_params(axis="x", nbins=4)
    _list(axes[0], [name if math.isnan(year) else f"{name}  {int(year) % 100:02d}"
                    for name, year in zip(_starred(table["model"], kinds), years, strict=True)])  # fmt: skip
    for last in np.flatnonzero(years[1:] != years[:-1]):
        for panel in axes:
            panel.axhline(last + 0.5, color=INK, linewidth=0.8)
    for panel, label in zip(axes, ("affinity score", "top-1 (%)"), strict=False):
        panel.set_xlabel(label, fontsize=13)
        panel.tick_params(axis="x", labelsize=SMALL)
    title = "smallest, median and largest score, by year"
    if known and set(kinds) != {"pretrained"}:
        title += "\nright: ImageNet accuracy of the published weights"
    _caption(figure, kinds, title)


@styled
def plot_batch_sizes(signatures: Iterable[Signature]) -> None:
    """Draw signatures of one network for several batch sizes, and their differences from the largest (Figure 10, left).

    The batch is the statistical sample, and a signature does not keep the activations, so the network must be run once
    for each size, for instance ``[signature(model, images.split(n)) for n in (128, 256, 512)]`` over the same images.

    Raises ValueError if there are fewer than two signatures, if two have the same batch size, or if they differ in
    anything else.
    """
    named = {f"run {i}": signature for i, signature in enumerate(signatures)}
    runs = sorted(collect(named, least=2, without="batch size").values(), key=lambda each: max(each.batch_sizes))
    sizes = [max(signature.batch_sizes) for signature in runs]
    if len(set(sizes)) < len(sizes):
        raise ValueError(f"signatures have batch sizes {sizes}; they should all be different.")
    if any([call.name for call in each.calls] != [call.name for call in runs[0].calls] for each in runs):
        raise ValueError("signatures have different activation calls; they should be of one network.")
    figure, (above, below) = panels(2, 1, height=6.4, sharex=True)
    reference = runs[-1].mean
    place = np.arange(1, len(reference) + 1)
    for signature, size, colour, dash in zip(runs, sizes, COLOURS * len(runs), DASHES * len(runs), strict=False):
        above.plot(place, signature.mean, color=colour, linestyle=dash, linewidth=2, label=f"{size}")
        below.plot(place, signature.mean - reference, color=colour, linestyle=dash, linewidth=2)
    above.set_ylabel("affinity score")
    above.legend(title="batch size", ncols=3, loc="best")
    below.set_ylabel(f"change from {sizes[-1]}")
    below.set_xlabel("activation call")
    _caption(figure, map(weights_kind, runs))
