"""The figures of the chapter on symmetries. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from affscore.plots import BLUE, GREEN, INK, SKY, VERMILION, panels, styled
from affscore_book.activations.catalogue import lookup
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
def plot_violations(names: Sequence[str]) -> None:
    """How badly each lambda fails to be a symmetry of one channel: a panel for each of six activations or fewer."""
    factors = np.concatenate([[1.0], np.geomspace(1.02, 30, 60)])
    factors = np.concatenate([1 / factors[:0:-1], factors])
    figure, axes = panels((len(names) + 1) // 2, 2, height=7.2, sharex=True, sharey=True)
    for panel, name in zip(axes, names, strict=False):
        for sign, colour, style, width in ((1, SKY, "-", 6), (-1, VERMILION, "--", 2.5)):
            values = violations(name, sign * factors)
            panel.plot(factors, values, style, color=colour, linewidth=width, label=f"λ {'>' if sign > 0 else '<'} 0")
        panel.set(title=lookup(name).title, xscale="log", ylim=(-0.08, 1.08), yticks=[0, 0.5, 1])
        panel.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        panel.minorticks_off()
    figure.supxlabel("|λ|", fontsize=15)
    figure.supylabel("violation (0: symmetry)", fontsize=15)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)


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
    """Figure 4: points lost by layer after training on, for networks without batch norm and with folded batch norm.

    A column of marks is a network, a mark one random matrix; rotations are filled squares, elements of G_ReLU circles.
    """
    figure, axes = panels(2, 1, height=7.4, sharex=True, sharey=True)
    at = np.arange(1, len(stored.layers) + 1)
    groups = (("trained without batch norm", stored.without_norm), ("batch norm folded", stored.folded))
    kinds = (("rotation", VERMILION, "s", "rotation"), ("group", BLUE, "o", "element of G_ReLU"))
    for panel, (title, names) in zip(axes, groups, strict=True):
        for place, layer in zip(at, stored.layers, strict=True):
            for column, name in zip(place + 0.12 * (np.arange(len(names)) - (len(names) - 1) / 2), names, strict=True):
                for kind, colour, mark, _ in kinds:
                    points = stored.penalties(layer, kind, "after", [name])[0]
                    x = np.full(len(points), column)
                    panel.plot(x, points, "-", color=colour, linewidth=1.5, alpha=0.6)
                    panel.plot(x, points, mark, color=colour, markersize=7, mfc=colour if mark == "s" else "white")
        panel.axhline(0, color=INK, linewidth=1.5)
        panel.set(title=title, ylabel="points lost")
    handles = [axes[0].plot([], [], mark, color=colour, markersize=7, mfc=colour if mark == "s" else "white")[0]
               for _, colour, mark, _ in kinds]  # fmt: skip
    figure.legend(handles, [label for *_, label in kinds], loc="outside upper center", ncols=2, frameon=False)
    axes[1].set(xlabel="activation whose input is multiplied by A", xticks=at)
