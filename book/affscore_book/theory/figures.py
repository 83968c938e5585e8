"""The figures of the chapter on theory. Each function takes data and returns one drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from affscore.coupling import partners as cheapest_partners
from affscore_book.kit.drawing import Drawing, plane
from affscore_book.kit.picture import Array, Panel
from affscore_book.theory.finite import Reading
from affscore_book.theory.measures import root

__all__ = [
    "plot_construction", "plot_couplings", "plot_ellipses", "plot_readings", "plot_sorted",
]  # fmt: skip


def plot_construction(x: Array, y: Array, image: Array) -> Drawing:
    """Left the inputs (n, 2); right the outputs, the affine image of the inputs, and the optimal coupling of both."""
    left = plane("The inputs, a tilted oval cloud of points.", [x], xlabel="inputs", legend=[("input-dot", "x")])
    left.dots("input-dot", x)
    right = plane(
        "The outputs as dots and the affine image of the inputs as crosses, which have the same centre and spread. "
        "Lines couple each cross with one output.",
        [y, image],
        xlabel="outputs and affine image",
        legend=[("ink-dot", "outputs y"), ("image-cross", "T(x)"), ("link", "coupling")],
    )
    right.links("link", image, y[cheapest_partners(image, y)])
    right.dots("ink-dot", y)
    right.crosses("image-cross", image, arm=4)
    return Drawing(left, right)


def plot_sorted(x: Array, y: Array) -> Drawing:
    """Two couplings of points on a line, (n,) and (n,): as they come, and sorted with sorted."""
    orders = {"as they come": (np.arange(len(x)), np.arange(len(y))), "sorted with sorted": (x.argsort(), y.argsort())}
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    drawn = []
    for name, (i, j) in orders.items():
        square = np.mean((x[i] - y[j]) ** 2)
        panel = Panel(
            label=f"Two rows of {len(x)} points, coupled by lines, {name}; the mean squared distance is {square:.2f}.",
            xlim=(low - 0.2, high + 0.2), ylim=(-0.2, 1.2), xlabel=f"{name}: mean squared distance {square:.2f}",
            yticks={0: "y", 1: "x"}, height=220,
        )  # fmt: skip
        starts, ends = np.stack([x[i], np.ones(len(x))], axis=1), np.stack([y[j], np.zeros(len(y))], axis=1)
        panel.links("link", starts, ends)
        panel.dots("input-dot", starts, radius=6)
        panel.squares("image-square", ends, side=11)
        drawn.append(panel)
    return Drawing(*drawn)


def plot_couplings(x: Array, targets: Mapping[str, tuple[Array, ArrayLike]]) -> Drawing:
    """Clouds in the plane side by side: from x (n, 2) to each target (n, 2), row i going to row partners[i]."""
    drawn = []
    for name, (y, partners) in targets.items():
        ends = y[np.asarray(partners)]
        square = np.mean(np.sum((x - ends) ** 2, axis=1))
        panel = plane(
            f"Lines couple {len(x)} points with their places after: {name}. The mean square is {square:.2f}.",
            [x, *(cloud for cloud, _ in targets.values())],
            xlabel=f"{name}: mean square {square:.2f}",
            legend=[("input-dot", "from"), ("image-square", "to")],
        )
        panel.links("link", x, ends)
        panel.dots("input-dot", x)
        panel.squares("image-square", y)
        drawn.append(panel)
    return Drawing(*drawn)


def plot_ellipses(s_x: Array, s_y: Array, matrix: Array) -> Drawing:
    """Two normal distributions as ellipses (one standard deviation), and where ``matrix`` sends points of the first."""
    circle = np.stack([f(np.linspace(0, 2 * np.pi, 121)) for f in (np.cos, np.sin)])
    source, goal = (root(s_x) @ circle).T, (root(s_y) @ circle).T
    image = source @ matrix.T
    panel = plane(
        "Two ellipses around one centre, and arrows that carry twelve points of the first to where the matrix sends "
        "them.",
        [source, goal, image],
        ylabel="second",
        legend=[("input-curve", "covariance of X"), ("goal-curve", "of Y"), ("link", "A")],
        height=360,
    )
    panel.line("input-curve", *source.T)
    panel.line("goal-curve", *goal.T)
    panel.links("link", source[:120:10], image[:120:10], head=8)
    return Drawing(panel)


def plot_readings(sizes: Sequence[int], readings: Mapping[str, Sequence[Reading]]) -> Drawing:
    """A panel for each kind of inputs: scores of ReLU and of its twin against the number of samples."""
    at = np.log2(sizes)
    drawn = []
    for name, rows in readings.items():
        twin, relu, plain = ([getattr(row, field) for row in rows] for field in ("linear", "score", "plain"))
        panel = Panel(
            label=f"Scores against the number of samples, {name} channels. From few samples to many: the linear twin "
            f"{twin[0]:.2f} to {twin[-1]:.2f}, ReLU {relu[0]:.2f} to {relu[-1]:.2f}, and without shrinkage "
            f"{plain[0]:.2f} to {plain[-1]:.2f}.",
            xlim=(at[0] - 0.4, at[-1] + 0.4), ylim=(0, 1.05), xlabel=f"samples n, {name} channels",
            legend=[("goal-curve", "twin"), ("input-curve", "ReLU"), ("w2-curve", "ReLU, unshrunk")],
            xticks={float(np.log2(n)): f"{n}" for n in (64, 256, 1024)}, height=300,
        )  # fmt: skip
        for look, values in (("w2-curve", plain), ("goal-curve", twin), ("input-curve", relu)):
            panel.line(look, at, values)
        drawn.append(panel)
    return Drawing(*drawn)
