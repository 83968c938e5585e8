"""The figures of the chapter on symmetries. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from affscore_book.kit.style import BLUE, GREEN, INK, SKY, VERMILION, legend_above, panels, styled
from affscore_book.symmetries.rotations import Rotations

__all__ = ["plot_block", "plot_left_over", "plot_prelu", "plot_rays", "plot_residual", "plot_rotations", "plot_sides"]


@styled
def plot_sides(sides: Mapping[str, tuple[Tensor, Tensor]]) -> None:
    """The two sides of sigma(A x) = B sigma(x) for a few points of the plane, (2, k) each: a panel for each matrix."""
    _, axes = panels(1, len(sides), height=3.1, sharey=True)
    for panel, (title, (left, right)) in zip(axes, sides.items(), strict=True):
        panel.plot(*left.numpy(), "s", color=BLUE, markersize=9)
        panel.plot(*right.numpy(), "x", color=VERMILION, markersize=9, mew=3)
        panel.set(title=title, aspect="equal", xlim=(-0.6, 2.3), ylim=(-0.6, 2.3), xlabel="channel 1")
    axes[0].set_ylabel("channel 2")
    for mark, colour, label in (("s", BLUE, "σ(A x)"), ("x", VERMILION, "B σ(x), best B")):
        axes[0].plot([], [], mark, color=colour, markersize=9, mew=3 if mark == "x" else 1, label=label)
    axes[0].figure.legend(loc="outside upper center", ncols=2, frameon=False)


@styled
def plot_rays(images: Mapping[str, Tensor], orbit: Tensor) -> None:
    """Where matrices send the axes, the columns of each (2, 2), and the rays (2, k) that a group makes of one ray."""
    _, axes = panels(1, len(images) + 1, height=3.4, sharey=True)
    for panel, matrix in zip(axes[:-1], images.values(), strict=True):
        for axis, image, colour, style in zip(np.eye(2), matrix.numpy().T, (BLUE, VERMILION), ("-", "--"), strict=True):
            _ray(panel, axis, INK, "-", 6, 0.25)
            _ray(panel, image, colour, style, 3, 1)
    for image in orbit.numpy().T:
        _ray(axes[-1], image, GREEN, "-", 1.2, 0.6)
    _ray(axes[-1], np.ones(2), INK, "-", 4, 1)
    for panel, title in zip(axes, (*images, "orbit of (1, 1)"), strict=True):
        panel.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        panel.set(title=title, aspect="equal")
    axes[0].set_ylabel("channel 2")
    axes[1].set_xlabel("channel 1")


def _ray(panel, direction, colour, style, width, alpha) -> None:
    end = direction / np.linalg.norm(direction)
    panel.plot([0, end[0]], [0, end[1]], style, color=colour, linewidth=width, alpha=alpha, solid_capstyle="round")


@styled
def plot_left_over(factors: Sequence[float], curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    """What the best b leaves, over abs(lambda), for positive and for negative lambda: a panel for each activation."""
    rows = (len(curves) + 1) // 2
    figure, axes = panels(rows, 2, height=2.4 * rows, sharex=True, sharey=True)
    for panel, (title, signs) in zip(axes, curves.items(), strict=False):
        for values, word, colour, style, width in zip(
            signs, "><", (SKY, VERMILION), ("-", "--"), (6, 2.5), strict=True
        ):
            panel.plot(factors, values, style, color=colour, linewidth=width, label=f"λ {word} 0")
        panel.set(title=title, xscale="log", ylim=(-0.08, 1.08), yticks=[0, 0.5, 1])
        panel.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        panel.minorticks_off()
    figure.supxlabel("|λ|", fontsize=15)
    figure.supylabel("left over (0: passes)", fontsize=15)
    legend_above(axes[0])


@styled
def plot_block() -> None:
    """A residual block: what goes through its inside, and what goes round it."""
    _, (panel,) = panels(1, 1, height=2.4)
    panel.set(xlim=(0, 12.4), ylim=(-1.1, 2.3), xticks=[], yticks=[])
    panel.grid(False)
    panel.set_axis_off()
    for at, label, colour in ((2.2, "W₁", INK), (4.0, "ReLU", VERMILION), (5.8, "W₂", INK), (9.4, "ReLU", BLUE)):
        frame = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 2}
        panel.text(at, 0, label, ha="center", va="center", fontsize=15, color=colour, bbox=frame)
    frame = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "edgecolor": INK, "linewidth": 2}
    panel.text(7.6, 0, "+", ha="center", va="center", fontsize=17, color=INK, bbox=frame)
    arrow = {"arrowstyle": "-|>", "linewidth": 2}
    for start, stop, colour in (
        (0.4, 1.65, BLUE), (2.75, 3.25, INK), (4.75, 5.25, VERMILION), (6.35, 7.2, INK), (8.0, 8.65, INK),
        (10.15, 11.6, BLUE),
    ):  # fmt: skip
        panel.annotate("", (stop, 0), (start, 0), arrowprops=arrow | {"color": colour})
    panel.plot([1.0, 1.0, 7.6], [0, 1.4, 1.4], "-", color=BLUE, linewidth=2)
    panel.annotate("", (7.6, 0.4), (7.6, 1.46), arrowprops=arrow | {"color": BLUE})
    panel.text(0.3, 0, "x", ha="right", va="center", fontsize=16, color=BLUE, style="italic")
    panel.text(4.3, 1.55, "x goes round: the shortcut", ha="center", va="bottom", fontsize=14, color=BLUE)
    panel.text(4.0, -0.65, "inside", ha="center", va="top", fontsize=14, color=VERMILION)
    panel.text(11.7, 0, "next\nblock", ha="left", va="center", fontsize=14, color=BLUE)


@styled
def plot_prelu(a: Tensor, b: Tensor, slopes: Sequence[float]) -> None:
    """A matrix of a PReLU's group and its phi, (n, n) both, with the slope of each channel along the edges."""
    figure, axes = panels(2, 1, height=10.5, sharex=True)
    limit = max(a.abs().max().item(), b.abs().max().item())
    labels = [f"{slope:g}".replace("-", "−") for slope in slopes]
    for panel, matrix, title in zip(axes, (a, b), ("A", "phi(A)"), strict=True):
        shown = panel.imshow(matrix.numpy(), cmap="PuOr", vmin=-limit, vmax=limit)
        for (i, j), value in np.ndenumerate(matrix.numpy()):
            if value:
                colour = "white" if abs(value) > 0.6 * limit else "black"
                text = f"{value:.1f}".replace("-", "−")
                panel.text(j, i, text, ha="center", va="center", fontsize=13, color=colour)
        panel.grid(False)
        panel.set_xticks(range(len(slopes)), labels)
        panel.set_yticks(range(len(slopes)), labels)
        panel.set(title=title, ylabel="slope of the output")
    axes[1].set_xlabel("slope of the input")
    figure.colorbar(shown, ax=axes, location="top", aspect=40, label="entry")


@styled
def plot_residual(changes: Mapping[str, float]) -> None:
    """The change of the function when two networks are joined after each activation, on a log scale."""
    _, (panel,) = panels(1, 1, height=4.6)
    inside = np.array([name.endswith("relu1") for name in changes])
    values = np.maximum(list(changes.values()), 1e-17)
    at = np.arange(1, len(values) + 1)
    panel.semilogy(at[~inside], values[~inside], "o", color=BLUE, markersize=9, label="between blocks")
    panel.semilogy(at[inside], values[inside], "X", color=VERMILION, markersize=10, label="inside a block")
    panel.set(xlabel="activation, from the input on", xticks=at[::3], ylabel="relative change of the output")
    panel.set_ylim(1e-17, 10)
    panel.legend(loc="center right")


@styled
def plot_rotations(stored: Rotations) -> None:
    """Figure 4: points lost by layer after training on, for networks without batch norm and with folded batch norm.

    A column of marks is a network, a mark one random matrix; rotations are filled squares, elements of G_ReLU circles.
    """
    figure, axes = panels(2, 1, height=7.4, sharex=True, sharey=True)
    at = np.arange(1, len(stored.layers) + 1)
    groups = (("trained without batch norm", stored.without_norm), ("batch norm folded", stored.folded))
    kinds = (("rotation", VERMILION, "s", "rotation"), ("group", BLUE, "o", "element of G_ReLU"))
    for panel, (title, names) in zip(axes, groups, strict=True):
        for place, layer in zip(at, stored.layers, strict=True):
            for column, name in zip(place + np.linspace(-0.4, 0.4, len(names)), names, strict=True):
                for kind, colour, mark, _ in kinds:
                    points = stored.penalties(layer, kind, "after", [name])[0]
                    x = np.full(len(points), column)
                    panel.plot(x, points, "-", color=colour, linewidth=1, alpha=0.6)
                    panel.plot(x, points, mark, color=colour, markersize=3.5, mfc=colour if mark == "s" else "white")
        panel.axhline(0, color=INK, linewidth=1.5)
        panel.grid(False, axis="x")
        for border in at[:-1] + 0.5:
            panel.axvline(border, color="0.8", linewidth=1)
        panel.set(title=title, ylabel="points lost")
    handles = [axes[0].plot([], [], mark, color=colour, markersize=7, mfc=colour if mark == "s" else "white")[0]
               for _, colour, mark, _ in kinds]  # fmt: skip
    figure.legend(handles, [label for *_, label in kinds], loc="outside upper center", ncols=2, frameon=False)
    axes[1].set(xlabel="activation whose input is multiplied by A", xticks=at)
