"""The figures of the chapter on theory. Each function takes data, draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from affscore.affine import affine_map
from affscore.plots import BLUE, GREEN, INK, PURPLE, VERMILION, panels, styled
from affscore_book.theory.finite import Reading
from affscore_book.theory.measures import form_one, optimal_partners, root

__all__ = [
    "plot_construction", "plot_couplings", "plot_ellipses", "plot_readings", "plot_sorted",
]  # fmt: skip

Array = NDArray[np.float64]


def _links(axes: Axes, x: Array, y: Array, partners: ArrayLike) -> None:
    for start, end in zip(x, y[np.asarray(partners)], strict=True):
        axes.plot([start[0], end[0]], [start[1], end[1]], color=PURPLE, linewidth=1.5, zorder=1)


def _legend_below(axes: Axes, ncols: int = 3) -> None:
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=ncols, frameon=False)


@styled
def plot_construction(x: Array, y: Array) -> None:
    """Left the inputs (n, 2); right the outputs, the affine image of the inputs, and the optimal coupling."""
    left, right = panels(1, 2, height=3.9)[1]
    image = affine_map(x, y, covariance="empirical")(x)
    left.plot(*x.T, "o", color=INK, markersize=3.5)
    left.set_title("inputs")
    _links(right, image, y, optimal_partners(image, y))
    right.plot(*y.T, "o", color=BLUE, markersize=4.5, label="outputs")
    right.plot(*image.T, "x", color=VERMILION, markersize=5, mew=1.8, label="affine image")
    right.set_title("outputs, affine image")
    _legend_below(right)
    for panel in (left, right):
        panel.set_aspect("equal", adjustable="datalim")


@styled
def plot_sorted(x: Array, y: Array) -> None:
    """Two couplings of points on a line, (n,) and (n,): as they come, and sorted with sorted."""
    axes = panels(2, 1, height=5, sharex=True)[1]
    orders = {"as they come": (np.arange(len(x)), np.arange(len(y))), "sorted": (np.argsort(x), np.argsort(y))}
    for panel, (name, (i, j)) in zip(axes, orders.items(), strict=True):
        panel.plot([x[i], y[j]], [np.ones(len(x)), np.zeros(len(y))], color=PURPLE, linewidth=1.8)
        panel.plot(x, np.ones(len(x)), "o", color=BLUE, markersize=9)
        panel.plot(y, np.zeros(len(y)), "s", color=VERMILION, markersize=8)
        panel.set(yticks=[0, 1], yticklabels=["to y", "from x"], ylim=(-0.3, 1.3))
        panel.set_title(f"{name}: mean squared distance {np.mean((x[i] - y[j]) ** 2):.2f}")
    axes[-1].set_xlabel("position")


@styled
def plot_couplings(x: Array, targets: Mapping[str, tuple[Array, ArrayLike]]) -> None:
    """Clouds in the plane side by side: from x (n, 2) to each target (n, 2), row i going to row partners[i]."""
    axes = panels(1, len(targets), height=4.2, sharex=True, sharey=True)[1]
    for panel, (name, (y, partners)) in zip(axes, targets.items(), strict=True):
        _links(panel, x, y, partners)
        panel.plot(*x.T, "o", color=BLUE, markersize=5, label="from")
        panel.plot(*y.T, "s", color=VERMILION, markersize=5, label="to")
        cost = np.mean(np.sum((x - y[np.asarray(partners)]) ** 2, axis=1))
        panel.set(title=f"{name}\nmean square {cost:.2f}", aspect="equal")
    _legend_below(axes[0])


@styled
def plot_ellipses(s_x: Array, s_y: Array) -> None:
    """Two normal distributions as ellipses (one standard deviation), and where the map sends points of the first."""
    axes = panels(height=4.3)[1][0]
    circle = np.stack([f(np.linspace(0, 2 * np.pi, 121)) for f in (np.cos, np.sin)])
    source = root(s_x) @ circle
    image = form_one(s_x, s_y) @ source
    axes.plot(*source, color=BLUE, label=r"$N(0, \Sigma_X)$")
    axes.plot(*(root(s_y) @ circle), color=VERMILION, linestyle="--", label=r"$N(0, \Sigma_Y)$")
    for k in range(0, 120, 10):
        axes.annotate("", image[:, k], source[:, k], arrowprops={"arrowstyle": "->", "color": PURPLE, "lw": 1.8})
    axes.plot(*image[:, ::10], "o", color=PURPLE, markersize=4, label="image A x")
    _legend_below(axes)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    axes.set(xlabel="first coordinate", ylabel="second coordinate")


@styled
def plot_readings(sizes: Sequence[int], readings: Mapping[str, Sequence[Reading]]) -> None:
    """A panel for each kind of inputs: scores of ReLU and of its twin against the number of samples."""
    axes = panels(1, len(readings), height=4.6, sharey=True)[1]
    looks = {
        "linear": ("linear twin", VERMILION, "s--"), "score": ("ReLU", BLUE, "o-"),
        "plain": ("ReLU, no shrinkage", GREEN, "D:"),
    }  # fmt: skip
    for panel, (name, rows) in zip(axes, readings.items(), strict=True):
        for field, (label, colour, look) in looks.items():
            panel.plot(sizes, [getattr(row, field) for row in rows], look, color=colour, label=label, markersize=6)
        panel.axhline(1, color=GREEN, linestyle=":", label="twin, no shrinkage")
        panel.set(xscale="log", xlabel="samples n", title=f"{name} channels", xlim=(40, 3300), ylim=(0, 1.05))
        panel.set_xticks([64, 300, 2048], ["64", "300", "2048"])
        panel.minorticks_off()
    axes[0].set_ylabel("affinity score")
    _legend_below(axes[0], ncols=2)
