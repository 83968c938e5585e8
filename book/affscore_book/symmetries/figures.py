"""The figures of the chapter on symmetries. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from affscore.plots import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, panels, styled
from affscore_book.activations.catalogue import lookup
from affscore_book.kit.statistics import student_interval
from affscore_book.symmetries.detector import violations
from affscore_book.symmetries.gelu import homogeneity_gap, homogeneity_slope
from affscore_book.symmetries.rotations import Rotations

__all__ = [
    "plot_gelu",
    "plot_kinks",
    "plot_prelu",
    "plot_rays",
    "plot_residual",
    "plot_rotations",
    "plot_violations",
]

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), "-")


@styled
def plot_kinks(matrices: Mapping[str, Tensor]) -> None:
    """Where two ReLU neurons switch, as lines in the plane of their inputs, before and after each matrix (2, 2)."""
    _, axes = panels(1, len(matrices), height=3.1, sharey=True)
    angle = np.linspace(0, 2 * np.pi, 13)[:-1]
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for panel, (title, matrix) in zip(axes, matrices.items(), strict=True):
        a = matrix.numpy()
        image = np.linalg.solve(a, np.maximum(a @ circle, 0))
        panel.plot(*circle, "o", color=INK, markersize=6)
        for start, stop in zip(np.maximum(circle, 0).T, image.T, strict=True):
            panel.plot(*start, "s", color=BLUE, markersize=9)
            panel.plot(*stop, "x", color=VERMILION, markersize=9, mew=3)
        panel.set(title=title, aspect="equal", xlim=(-1.3, 1.7), ylim=(-1.3, 1.7), xlabel="channel 1")
    axes[0].set_ylabel("channel 2")
    for mark, colour, label in (("o", INK, "x"), ("s", BLUE, "σ(x)"), ("x", VERMILION, "A⁻¹ σ(A x)")):
        axes[0].plot([], [], mark, color=colour, markersize=9, mew=3 if mark == "x" else 1, label=label)
    axes[0].figure.legend(loc="outside upper center", ncols=3, frameon=False)


@styled
def plot_rays(group: Tensor, rotation: Tensor, orbit: Tensor) -> None:
    """Theorem 3.3: the axes under an element of G_ReLU, under a rotation, and the orbit of a diagonal ray.

    ``group`` and ``rotation`` are (2, 2), ``orbit`` (k, 2, 2).
    """
    _, axes = panels(1, 3, height=3.4, sharey=True)
    for panel, matrix in zip(axes[:2], (group, rotation), strict=True):
        for axis, colour, style in zip(np.eye(2), (BLUE, VERMILION), ("-", "--"), strict=True):
            _ray(panel, axis, INK, "-", 6, 0.25)
            _ray(panel, matrix.numpy() @ axis, colour, style, 3, 1)
    for matrix in orbit.numpy():
        _ray(axes[2], matrix @ np.ones(2), GREEN, "-", 1.2, 0.6)
    _ray(axes[2], np.ones(2), INK, "-", 4, 1)
    for panel, title in zip(axes, ("A in G_ReLU", "a rotation", "orbit of (1, 1)"), strict=True):
        panel.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        panel.set(title=title, aspect="equal")
    axes[0].set_ylabel("channel 2")
    axes[1].set_xlabel("channel 1")


def _ray(panel, direction, colour, style, width, alpha) -> None:
    end = direction / np.linalg.norm(direction)
    panel.plot([0, end[0]], [0, end[1]], style, color=colour, linewidth=width, alpha=alpha, solid_capstyle="round")


@styled
def plot_violations(names: Sequence[str], reach: float = 1e3) -> None:
    """How badly each lambda fails to be a symmetry of one channel, for negative and for positive lambda."""
    factors = np.concatenate([[1.0], np.geomspace(1.02, 30, 60)])
    factors = np.concatenate([1 / factors[:0:-1], factors])
    _, axes = panels(1, 2, height=4.6, sharey=True)
    for panel, sign in zip(axes, (-1, 1), strict=True):
        for name, colour, style in zip(names, COLOURS, STYLES, strict=False):
            values = violations(name, sign * factors, reach=reach)
            panel.plot(sign * factors, values, linestyle=style, color=colour, label=lookup(name).title)
        panel.set_xscale("log" if sign > 0 else "symlog", **({} if sign > 0 else {"linthresh": 0.03, "linscale": 0.01}))
        ticks = sign * np.array([0.1, 1, 10])
        panel.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
        panel.minorticks_off()
        panel.set(xlim=sorted((sign * 0.03, sign * 32)), xlabel=f"λ {'<' if sign < 0 else '>'} 0")
    axes[0].set(ylabel="violation (0: symmetry)", ylim=(-0.05, 1.05))
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)


@styled
def plot_gelu() -> None:
    """Figure 17 (b): the distance of GELU from homogeneity, exact, with its asymptote."""
    _, (panel,) = panels(1, 1, height=4)
    factors = np.linspace(0.01, 10, 200)
    panel.plot(factors, homogeneity_gap(factors), color=BLUE, label="GELU, closed form")
    panel.plot(factors, homogeneity_slope() * factors, "--", color=VERMILION, label="asymptotic slope")
    panel.plot(1, 0, "o", color=INK, markersize=9, label="λ = 1: the only symmetry")
    panel.set(xlabel="λ", ylabel="root mean square gap")
    panel.legend()


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
    """Figure 4: accuracy points lost by layer, mean and 95 % interval over networks; single rotations beside it.

    A network is one observation: its draws are averaged before the interval. Each column of small marks is a network,
    each mark a random rotation; open marks were trained without batch norm.
    """
    figure, axes = panels(2, 1, height=8.0, sharex=True)
    at = np.arange(1, len(stored.layers) + 1)
    titles = {"least_squares": "next layer by least squares", "after": "then later layers trained"}
    means = (("group", -0.33, BLUE, "o", "G_ReLU, mean"), ("rotation", -0.19, VERMILION, "s", "rotation, mean"))
    for panel, (stage, title) in zip(axes, titles.items(), strict=True):
        for kind, offset, colour, mark, label in means:
            found = [student_interval(stored.penalties(layer, kind, stage).mean(1)) for layer in stored.layers]
            mean, low, high = np.array(found).T
            bars = [mean - low, high - mean]
            panel.errorbar(at + offset, mean, bars, fmt=mark, color=colour, markersize=9, capsize=5, label=label)
        for place, layer in zip(at, stored.layers, strict=True):
            columns = place + np.linspace(-0.05, 0.35, len(stored.networks))
            for column, name in zip(columns, stored.networks, strict=True):
                points = stored.penalties(layer, "rotation", stage, [name])[0]
                face = "white" if "without_norm" in name else VERMILION
                panel.plot(np.full(len(points), column), points, "-", color=VERMILION, linewidth=1, alpha=0.5)
                panel.plot(np.full(len(points), column), points, "o", color=VERMILION, markersize=4, mfc=face, mew=1)
        panel.axhline(0, color=INK, linewidth=1.5)
        panel.set(title=title, ylabel="points lost")
    handles, labels = axes[1].get_legend_handles_labels()
    for face, label in ((VERMILION, "one rotation"), ("white", "... without batch norm")):
        handles += axes[1].plot([], [], "o-", color=VERMILION, markersize=4, mfc=face, mew=1, linewidth=1)
        labels.append(label)
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    axes[1].set(xlabel="activation whose input is multiplied by A", xticks=at)
