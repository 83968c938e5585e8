"""Figures that compare networks, from the tables of :mod:`affscore.suite.compare` and
:mod:`affscore.suite.distances` or from signatures. Each function draws one figure.

Every figure marks random weights with a line above it, and among trained ones by hollow marks or names in italics.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from scipy.cluster.hierarchy import dendrogram

from affscore.plots import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, panels, styled
from affscore.signatures import Signature
from affscore.suite.architectures import GROUPS, facts, weights_kind
from affscore.suite.compare import PREDICTORS, batch_size_table, density_curves, peaks
from affscore.suite.distances import groups, leaves, matrix, tree
from affscore.suite.tables import Table

__all__ = [
    "plot_accuracy", "plot_batch_sizes", "plot_companions", "plot_dendrogram", "plot_densities", "plot_deviations",
    "plot_distances", "plot_history", "plot_map", "plot_signatures",
]  # fmt: skip

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, INK)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
MARKS = ("o", "s", "^", "D", "v", "X", "P")
#: Shape and colour of each group of architectures.
LOOKS = dict(zip(GROUPS, zip("osD^vX", (BLUE, VERMILION, ORANGE, PURPLE, GREEN, INK), strict=True), strict=True))
#: Inches for one line of a list, and its font size: legible at 360 pixels.
LINE, SMALL = 0.235, 12.5
#: A map of at most this many networks names each of them.
NAMED = 8


def _caption(figure: Figure, kinds: Iterable[str], mark: str, title: str = "") -> None:
    """Name the kinds of weights above the figure, unless all are trained; no text is parsed as a formula."""
    kinds = set(kinds)
    words = {"random": "random weights", "unknown": "weights not recorded"}
    if others := " or ".join(text for kind, text in words.items() if kind in kinds):
        title = f"{title}\n{mark}: {others}" if len(kinds) > 1 else f"{title}\n{others}"
    if title:
        figure.suptitle(title.strip(), fontsize=13.5)
    for text in figure.findobj(Text):
        text.set_parse_math(False)


def _kinds(signatures: Mapping[str, Signature]) -> list[str]:
    return [weights_kind(signature) for signature in signatures.values()]


def _colour(kind: str) -> str:
    return BLUE if kind == "pretrained" else VERMILION


def _italics(labels: Iterable[Text], kinds: Sequence[str]) -> None:
    """Set names of networks without trained weights in italics, if there are both kinds."""
    if len(set(kinds)) > 1:
        for label, kind in zip(labels, kinds, strict=True):
            label.set_fontstyle("normal" if kind == "pretrained" else "italic")


def _list(axes: Axes, names: Sequence[str], kinds: Sequence[str]) -> None:
    """Write names down the left side, the first on top."""
    axes.set_yticks(range(len(names)), names, fontsize=SMALL)
    axes.set_ylim(len(names) - 0.4, -0.6)
    _italics(axes.get_yticklabels(), kinds)


def _height(rows: int, more: float = 1.2) -> float:
    return max(2.6, LINE * rows + more)


@styled
def plot_signatures(signatures: Mapping[str, Signature]) -> None:
    """The signature of each network, with one standard deviation over batches (Figure 12).

    A dashed line shows the linear twins of signatures with the companion measure ``twin``.
    """
    columns = 3 if max(map(len, signatures)) <= 17 else 2
    rows = math.ceil(len(signatures) / columns)
    figure, axes = panels(rows, columns, height=1.15 * rows + 1.0, sharey=True)
    kinds = _kinds(signatures)
    for panel, (name, signature), kind in zip(axes, signatures.items(), kinds, strict=False):
        mean, std = signature.mean, signature.std
        place = np.arange(1, len(mean) + 1)
        panel.fill_between(place, mean - std, mean + std, color=_colour(kind), alpha=0.25, linewidth=0)
        panel.plot(place, mean, ".-" if len(mean) < 60 else "-", color=_colour(kind), linewidth=1.2, markersize=4)
        if "twin" in signature.companions:
            panel.plot(place, [row["twin"] for row in signature.rows()], "--", color="#707070", linewidth=1.2)
        panel.set_title(name, fontsize=SMALL, pad=3)
        panel.tick_params(labelsize=11)
        panel.locator_params(axis="x", nbins=3, integer=True)
    _italics([panel.title for panel in axes[: len(kinds)]], kinds)
    for panel in axes[len(kinds) :]:
        panel.set_visible(False)
    figure.supxlabel("activation call", fontsize=14)
    figure.supylabel("affinity score", fontsize=14)
    twins = any("twin" in signature.companions for signature in signatures.values())
    _caption(figure, kinds, "red, in italics", "dashed: what linear layers would score" if twins else "")


@styled
def plot_distances(distances: Table) -> None:
    """The matrix of distances, with the networks in the order of the tree's leaves (Figures 5 B and 16)."""
    names, order = distances.columns["model"], leaves(distances)
    index, n = [names.index(name) for name in order], len(order)
    kinds = [distances.columns["weights"][i] for i in index]
    figure, (axes,) = panels(height=_height(n, 1.5) if n > 14 else max(3.2, 0.36 * n + 1.2))
    image = axes.imshow(matrix(distances)[np.ix_(index, index)], cmap="viridis", aspect="auto")
    axes.grid(False)
    axes.set_yticks(range(n), [f"{name}  {i}" for i, name in enumerate(order, start=1)], fontsize=SMALL)
    _italics(axes.get_yticklabels(), kinds)
    ticks = [0, *range(4, n, 5)] if n > 12 else range(n)
    axes.set_xticks(ticks, [str(i + 1) for i in ticks], fontsize=SMALL)
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=40, pad=0.02)
    bar.ax.tick_params(labelsize=SMALL)
    figure.supxlabel("DTW distance (squared cost)", fontsize=13)
    _caption(figure, kinds, "in italics")


@styled
def plot_dendrogram(distances: Table) -> None:
    """The tree of clusters, distinguished by colour (Figure 16); a network in no cluster is dark."""
    names, links, cluster = distances.columns["model"], tree(distances), groups(distances)
    sizes = Counter(cluster.values())
    colour = {name: COLOURS[number - 1] if sizes[number] > 1 else INK for name, number in cluster.items()}
    below = [{colour[name]} for name in names]  # the colours of the networks below each node
    for a, b in links[:, :2].astype(int):
        below.append(below[a] | below[b])
    figure, (axes,) = panels(height=_height(len(names)))
    dendrogram(links, orientation="left", labels=np.array(names), ax=axes,
               link_color_func=lambda node: min(below[node]) if len(below[node]) == 1 else INK)  # fmt: skip
    figure.supxlabel("DTW distance (squared cost)", fontsize=13)
    axes.grid(axis="y", visible=False)
    axes.invert_yaxis()
    kind = dict(zip(names, distances.columns["weights"], strict=True))
    for label in (labels := axes.get_yticklabels()):
        label.set(fontsize=SMALL, color=colour[label.get_text()])
    _italics(labels, [kind[label.get_text()] for label in labels])
    _caption(figure, kind.values(), "in italics")


def _spread_labels(places: np.ndarray, least: float) -> np.ndarray:
    """Heights pushed apart until neighbours are at least ``least`` apart, in the same order."""
    order = np.argsort(places)
    moved = places[order]
    for _ in range(200):
        short = np.maximum(least - np.diff(moved), 0) / 2
        moved[:-1] -= short
        moved[1:] += short
    return moved[np.argsort(order)]


@styled
def plot_map(places: Table, signatures: Mapping[str, Signature]) -> None:
    """The map of architectures (Figure 16), where neighbours have similar signatures.

    Shape and colour show the group; a thin line joins the models of a family. Labels name the families or, among few
    networks, each network. ``places`` comes from :func:`affscore.suite.distances.mds_map`, for ``signatures``.
    """
    figure, (axes,) = panels(height=6.6)
    names, kinds = places.columns["model"], places.columns["weights"]
    about = [facts(signatures[name]) for name in names]
    points = np.column_stack([places["x"], places["y"]])
    families: dict[tuple[str, str], list[int]] = {}
    for i, (name, kind, known) in enumerate(zip(names, kinds, about, strict=True)):
        families.setdefault((known.family if known.family != "other" else name, kind), []).append(i)
    for members in families.values():
        axes.plot(*points[members].T, color=INK, linewidth=0.8, alpha=0.5, zorder=1)
    for point, kind, known in zip(points, kinds, about, strict=True):
        mark, colour = LOOKS[known.group]
        inside = colour if kind == "pretrained" else "white"
        axes.plot(*point, mark, markersize=9, mec=colour, mfc=inside, mew=1.8, zorder=2)
    axes.set_aspect("equal", adjustable="datalim")
    figure.draw_without_rendering()
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    # A family's name is placed beside the member nearest to their mean.
    named = {(name, ""): [i] for i, name in enumerate(names)} if len(names) <= NAMED else families
    groups_of_points = [points[members] for members in named.values()]
    anchors = np.array([p[np.linalg.norm(p - p.mean(axis=0), axis=1).argmin()] for p in groups_of_points])
    heights = _spread_labels(anchors[:, 1], 0.045 * (high - low))
    for (name, _), (x, y), height in zip(named, anchors, heights, strict=True):
        late = x > left + 0.7 * (right - left)
        shift = (-0.025 if late else 0.025) * (right - left)
        text = axes.text(x + shift, height, name, fontsize=SMALL, ha="right" if late else "left", va="center", zorder=3)
        text.set_path_effects([withStroke(linewidth=3, foreground="white")])
        if abs(height - y) > 0.02 * (high - low):
            axes.plot([x, x + shift], [y, height], color=INK, linewidth=0.6, zorder=1)
    present = {known.group for known in about}
    handles = [Line2D([], [], marker=mark, color=colour, linestyle="", markersize=9, label=group)
               for group, (mark, colour) in LOOKS.items() if group in present]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, columnspacing=1,
                  handletextpad=0.2)  # fmt: skip
    axes.set_xlabel(f"DTW distance (squared cost); {places.notes[0].lower().rstrip('.')}", fontsize=13)
    _caption(figure, kinds, "hollow")


@styled
def plot_densities(signatures: Mapping[str, Signature]) -> None:
    """Density of the scores of each network, one above the other (Figure 5 C); a tick for each peak."""
    n, kinds = len(signatures), _kinds(signatures)
    grid, curves = density_curves(signatures)
    figure, (axes,) = panels(height=(0.42 if n > 12 else 0.6) * n + 1.3)
    for row, (curve, kind) in enumerate(zip(curves.values(), kinds, strict=True)):
        if np.isnan(curve).any():
            axes.text(grid.mean(), row, "no two different scores", fontsize=11, ha="center", va="bottom")
            continue
        scaled = row - 0.9 * curve / curve.max()
        axes.fill_between(grid, row, scaled, color=_colour(kind), alpha=0.35, linewidth=0, zorder=2 + row)
        axes.plot(grid, scaled, color=_colour(kind), linewidth=1.4, zorder=2 + row)
        for place in peaks(grid, curve):
            axes.plot([place, place], [row, row - 0.15], color=INK, linewidth=1.6, zorder=3 + n)
    _list(axes, list(signatures), kinds)
    axes.set_ylim(n - 0.6, -1.05)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel("affinity score")
    _caption(figure, kinds, "red, in italics")


@styled
def plot_history(table: Table) -> None:
    """Smallest, median and largest score of each network in the order of years, and accuracy (Figure 5 A).

    ``table`` comes from :func:`affscore.suite.compare.history`.
    """
    names, kinds, n, accuracy = table.columns["model"], table.columns["weights"], len(table), table["accuracy"]
    known = bool(np.isfinite(accuracy).any())
    widths = [2.3, 1] if known else [1]
    figure, axes = panels(1, len(widths), height=_height(n, 1.6), sharey=True, width_ratios=widths)
    for place, row in enumerate(table.rows()):
        filled, ends = row["weights"] == "pretrained", [row["min"], row["max"]]
        axes[0].plot(ends, [place] * 2, color=SKY if filled else "#999999", linewidth=5, solid_capstyle="butt")
        axes[0].plot(row["median"], place, "o", mec=BLUE, mfc=BLUE if filled else "white", markersize=7, mew=1.6)
    if known:
        axes[1].plot(accuracy, range(n), "D", color=VERMILION, markersize=5)
        axes[1].locator_params(axis="x", nbins=4)
    years = table["year"]
    _list(axes[0], [name if math.isnan(year) else f"{name}  {int(year) % 100:02d}"
                    for name, year in zip(names, years, strict=True)], kinds)  # fmt: skip
    for last in np.flatnonzero(years[1:] != years[:-1]):
        for panel in axes:
            panel.axhline(last + 0.5, color=INK, linewidth=0.8)
    for panel, label in zip(axes, ("affinity score", "top-1 (%)"), strict=False):
        panel.set_xlabel(label, fontsize=13)
        panel.tick_params(axis="x", labelsize=SMALL)
    title = "smallest, median and largest score, by year"
    if known and set(kinds) != {"pretrained"}:
        title += "\nright: ImageNet accuracy of the published weights"
    _caption(figure, kinds, "hollow, in italics", title)


def _heat(axes: Axes, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], line: float) -> None:
    """Correlations as colours and numbers, with a line between the rows at ``line``."""
    axes.imshow(values, cmap="PuOr", norm=Normalize(-1, 1), aspect="auto")
    axes.grid(False)
    axes.set_yticks(range(len(rows)), rows, fontsize=SMALL)
    axes.set_xticks(range(len(columns)), columns, fontsize=SMALL)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.axhline(line, color=INK, linewidth=2)
    for (i, j), value in np.ndenumerate(values):
        text = "-" if math.isnan(value) else f"{value:.2f}".replace("0.", ".").replace("-.00", ".00")
        axes.text(j, i, text, ha="center", va="center", fontsize=SMALL, color="white" if abs(value) > 0.7 else "black")


@styled
def plot_companions(table: Table) -> None:
    """Correlations of the score with other measures (Table 2), from ``companion_correlations``."""
    columns = [name for name in table.columns if name not in ("model", "weights", "calls")]
    kinds = [kind if kind in ("random", "unknown") else "pretrained" for kind in table["weights"]]
    figure, (axes,) = panels(height=_height(len(table), 1.0))
    values = np.column_stack([table[name] for name in columns])
    _heat(axes, values, list(table["model"]), columns, len(table) - 2.5)
    for label in axes.get_xticklabels():
        label.set(rotation=40, ha="left", rotation_mode="anchor")
    _italics(axes.get_yticklabels(), kinds)
    _caption(figure, kinds[:-2], "in italics", "correlation with the score over the calls")


@styled
def plot_accuracy(table: Table, kinds: Iterable[str] = ("pretrained",)) -> None:
    """Correlations with accuracy by group (Figure 6), from :func:`affscore.suite.compare.accuracy_correlations`.

    The strongest of a column has a frame. ``kinds`` are the kinds of weights of the signatures, for the caption. The
    notes of the table are printed below the figure.
    """
    groups = list(table["group"])
    values = np.column_stack([table[name] for name in PREDICTORS]).T
    figure, (axes,) = panels(height=0.36 * len(PREDICTORS) + 2.1 + 0.35 * len(table.notes))
    heads = [f"{group}\n({int(count)})" for group, count in zip(groups, table["models"], strict=True)]
    _heat(axes, values, PREDICTORS, heads, PREDICTORS.index("parameters") - 0.5)
    if len(groups) > 4:
        for label in axes.get_xticklabels():
            label.set_fontsize(10.5)
    for j, strongest in enumerate(table["strongest"]):
        if strongest != "-":
            i = PREDICTORS.index(strongest)
            for width, colour in ((5.0, "white"), (2.5, INK)):  # visible on bright and dark cells
                axes.add_patch(Rectangle((j - 0.44, i - 0.42), 0.88, 0.84, fill=False, ec=colour, lw=width))
    if table.notes:
        figure.supxlabel("\n".join(textwrap.fill(note, 72) for note in table.notes), fontsize=11)
    _caption(figure, kinds, "in part", "correlation with accuracy (number of models)")


@styled
def plot_deviations(table: Table) -> None:
    """How far signatures move from one data set to others (Figure 18), from ``compare.deviations``."""
    labels = [name for name in table.columns if name not in ("model", "weights")]
    names, kinds = list(table["model"][:-2]), list(table["weights"][:-2])
    figure, (axes,) = panels(height=_height(len(names), 1.9))
    for label, mark, colour in zip(labels, MARKS * len(labels), COLOURS * len(labels), strict=False):
        *moved, mean, std = table[label]
        axes.plot(moved, range(len(names)), mark, color=colour, markersize=8, label=f"{label}: {mean:.2f}±{std:.2f}")
        axes.axvline(mean, color=colour, linestyle="--", linewidth=1.2)
    _list(axes, names, kinds)
    axes.set_xlim(left=0)
    axes.set_xlabel(table.notes[0].rstrip("."))
    figure.legend(loc="outside lower center", ncols=1 if len(labels) < 4 else 2, frameon=False)
    _caption(figure, kinds, "in italics")


@styled
def plot_batch_sizes(signatures: Iterable[Signature]) -> None:
    """Signatures of one network for several batch sizes, and each call's change from the largest (Figure 10, left)."""
    runs = sorted(signatures, key=lambda signature: max(signature.batch_sizes, default=0))
    sizes = batch_size_table(runs)["batch size"].astype(int)
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
    _caption(figure, map(weights_kind, runs), "in part")
