"""The figures of the chapter on blind spots. Each function takes data and returns one drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from affscore_book.kit.drawing import Drawing, curves
from affscore_book.kit.picture import Panel, number

__all__ = ["plot_lines", "plot_partners", "plot_r2", "plot_resolution"]

#: Classes of the points on the curves of a panel, in their order.
POINTS = ("input-dot", "image-square", "score-dot", "w2-dot", "bound-dot", "ink-dot")


def _mark(panel: Panel, look: str, xs: ArrayLike, ys: ArrayLike) -> None:
    points = np.stack([np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)], axis=1)
    panel.squares(look, points) if look.endswith("square") else panel.dots(look, points)


def plot_lines(x: ArrayLike, lines: Mapping[str, ArrayLike], xlabel: str, ylabel: str = "affinity score") -> Drawing:
    """A curve for each of up to six ``lines`` of shape (len(x),), with its points."""
    xs, ys = np.asarray(x, dtype=float), {name: np.ravel(values) for name, values in lines.items()}
    said = "; ".join(f"{name} from {values[0]:.2f} to {values[-1]:.2f}" for name, values in ys.items())
    panel = curves(f"{ylabel} against {xlabel}: {said}.", xs, ys, xlabel=xlabel, ylim=(-0.05, 1.05), height=280)
    for look, values in zip(POINTS, ys.values(), strict=False):
        _mark(panel, look, xs, values)
    return Drawing(panel)


def plot_r2(points: Mapping[str, tuple[float, float]]) -> Drawing:
    """(R2, score) of one-dimensional activations, on the curve that monotone ones cannot leave."""
    said = "; ".join(f"{name} at {across:.2f} and {up:.2f}" for name, (across, up) in points.items())
    panel = Panel(
        label=f"The affinity score against R2, with the curve of rising functions. {said}.",
        xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), xlabel="R² of linear regression", ylabel="score",
        legend=[("curve", "1 − √(1 − r), rising functions")], height=320,
    )  # fmt: skip
    r2 = np.linspace(0, 1, 200)
    panel.line("curve", r2, 1 - np.sqrt(1 - np.sqrt(r2)))
    for name, (across, up) in points.items():
        panel.dot("image-dot", across, up)
        left = across < 0.5
        x, y = float(panel.x_at(across)), float(panel.y_at(up))
        panel.write("label", number(x + (10 if left else 6)), number(y + (4 if left else 16)), name)
    return Drawing(panel)


def plot_resolution(sizes: Sequence[int], scores: Mapping[int, ArrayLike], law: float) -> Drawing:
    """A panel for each dimension: own, paired and strangers' scores, of shape (sizes, 3), and the law's as a line."""
    at = np.log2(sizes)
    drawn = []
    for d, values in scores.items():
        own, paired, strangers = np.asarray(values, dtype=float).T
        panel = Panel(
            label=f"Scores against the number of samples in {d} dimensions. Own outputs {own[0]:.2f} to {own[-1]:.2f}, "
            f"strangers' {strangers[0]:.2f} to {strangers[-1]:.2f}, the distributions {law:.2f}.",
            xlim=(at[0] - 0.4, at[-1] + 0.4), ylim=(0, 1), xlabel=f"samples n, d = {d}",
            legend=[("input-curve", "own"), ("score-dot", "paired"), ("goal-curve", "strangers"), ("curve", "law")],
            xticks={float(place): f"{n:g}" for place, n in zip(at, sizes, strict=True)}, height=260,
        )  # fmt: skip
        panel.line("curve", [at[0] - 0.4, at[-1] + 0.4], [law, law])
        panel.line("input-curve", at, own)
        panel.line("goal-curve", at, strangers)
        _mark(panel, "image-square", at, strangers)
        _mark(panel, "score-dot", at, paired)
        drawn.append(panel)
    return Drawing(*drawn)


def plot_partners(own: ArrayLike, paired: ArrayLike, strangers: ArrayLike) -> Drawing:
    """Scores of a network's calls, of shape (calls,): with their own outputs, paired, and with strangers' outputs."""
    mine, theirs = np.asarray(own, dtype=float), np.asarray(strangers, dtype=float)
    place = np.arange(1, len(mine) + 1)
    panel = Panel(
        label=f"Scores of {len(mine)} calls. Own outputs lie between {mine.min():.2f} and {mine.max():.2f}, and paired "
        f"scores on them; strangers' outputs between {theirs.min():.2f} and {theirs.max():.2f}, rising and falling "
        "with them.",
        xlim=(0, len(mine) + 1), ylim=(0.6, 1), xlabel="activation call, in order of execution",
        legend=[("input-curve", "own outputs"), ("score-dot", "paired"), ("goal-curve", "strangers'")], height=280,
    )  # fmt: skip
    panel.line("input-curve", place, mine)
    panel.line("goal-curve", place, theirs)
    _mark(panel, "image-square", place, theirs)
    _mark(panel, "score-dot", place, paired)
    return Drawing(panel)
