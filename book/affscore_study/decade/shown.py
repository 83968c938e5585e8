"""The table and the figures with which the audit shows the networks of the decade."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import dendrogram, linkage
from scipy.spatial.distance import squareform

from affscore_book.decade.collection import Decade
from affscore_book.decade.figures import LOOKS
from affscore_book.kit.statistics import student_interval
from affscore_book.kit.style import BLUE, INK, VERMILION, panels, styled
from affscore_book.kit.tables import Table

__all__ = ["network_table", "plot_beginnings", "plot_tree"]


def network_table(decade: Decade) -> Table:
    """A table of all networks.

    Columns: name; year; thousand parameters; calls; seeds; minutes of a training, rounded; accuracy, the mean over the
    seeds, plus or minus half of Student's interval.
    """
    rows = []
    for name, seeds in decade.items():
        first, accuracies = next(iter(seeds.values())), [each.accuracy for each in seeds.values()]
        mean, low, high = student_interval(accuracies)
        rows.append(
            {"network": name, "year": first.year, "thousand parameters": round(first.parameters / 1000)}
            | {"calls": len(first.end.calls), "seeds": len(seeds)}
            | {"minutes": round(np.mean([each.minutes for each in seeds.values()]))}
            | {"accuracy": mean, "±": (high - low) / 2}
        )
    return Table.from_rows(rows, digits=3)


@styled
def plot_tree(distances: np.ndarray, labels: Sequence[str], groups: Sequence[str] | None = None) -> None:
    """Draw a tree of signatures by average linkage of ``distances`` (n, n).

    Leaves of one group (by default the label) have one colour; a leaf that is alone in its group is black.
    """
    _, (axes,) = panels(height=1.4 + 0.28 * len(labels))
    tree = dendrogram(linkage(squareform(distances), "average"), orientation="left", ax=axes,
                      labels=[label.replace("_", " ") for label in labels],
                      color_threshold=0, above_threshold_color=INK)  # fmt: skip
    groups = list(groups or labels)
    several = [group for group in dict.fromkeys(groups) if groups.count(group) > 1]
    colours = dict.fromkeys(groups, INK) | {group: LOOKS[i % len(LOOKS)][0] for i, group in enumerate(several)}
    for tick, leaf in zip(axes.get_yticklabels(), tree["leaves"], strict=True):
        tick.set(color=colours[groups[leaf]], fontsize=14)
    axes.grid(visible=False)
    axes.set(xlabel="distance of signatures")


@styled
def plot_beginnings(table: Table) -> None:
    """Draw the squared correlations of each network's trained signatures with starts and with other trained seeds."""
    rows = table.rows()
    _, (axes,) = panels(height=1.4 + 0.36 * len(rows))
    for place, row in enumerate(rows):
        axes.plot([row["start"], row["ceiling"]], [place, place], color="#bbbbbb")
        axes.plot(row["ceiling"], place, "s", color=VERMILION, markersize=7,
                  label="another trained seed" if not place else None)  # fmt: skip
        axes.plot(row["start"], place, "o", color=BLUE, markersize=11, markerfacecolor="none", markeredgewidth=2,
                  label="the start" if not place else None)  # fmt: skip
    axes.set_yticks(range(len(rows)), [row["network"] for row in rows])
    axes.tick_params(axis="y", labelsize=12)
    axes.invert_yaxis()
    axes.set(xlabel="squared correlation with a trained signature", xlim=(-0.02, 1.02))
    axes.legend(loc="lower center", bbox_to_anchor=(0.35, 1.0), ncols=2, frameon=False)
