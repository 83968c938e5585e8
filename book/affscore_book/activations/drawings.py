"""Drawings of the lesson on activations. Each takes data and returns a drawing; none needs more than NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from affscore_book.kit.drawing import Drawing, curves
from affscore_book.kit.picture import Array, Panel

__all__ = ["plot_channels", "plot_inputs", "plot_means", "plot_widths"]

#: The look of a piece of the graph, and that of its mark.
PIECES = (("input-curve", "input-dot"), ("goal-curve", "image-dot"), ("score-curve", "score-dot"))


def plot_inputs(pieces: Sequence[tuple[float, Array, Array, float]], means: ArrayLike, scores: ArrayLike) -> Drawing:
    """Up to three inputs on the graph of an activation, and their scores on the curve of the scores of all means.

    Each of the ``pieces`` is the mean of an input, inputs (n,) and outputs (n,) of the graph there, and the score.
    """
    if len(pieces) > len(PIECES):
        raise ValueError(f"pieces holds {len(pieces)} inputs; there are looks for {len(PIECES)}.")
    xs, ys = (np.concatenate([piece[side] for piece in pieces]) for side in (1, 2))
    names = [f"mean {mean:g}" for mean, *_ in pieces]
    low, high = float(ys.min()), float(ys.max())
    margin = 0.08 * (high - low) or 1.0
    graph = Panel(
        label="Pieces of the graph on which 95 % of each input lies.",
        xlim=(float(xs.min()), float(xs.max())), ylim=(low - margin, high + margin), xlabel="input (vertical: output)",
        legend=[(look, name) for (look, _), name in zip(PIECES, names, strict=False)],
    )  # fmt: skip
    told = ", ".join(f"{score:.2f} at {name}" for name, (*_, score) in zip(names, pieces, strict=True))
    curve = curves(f"The score: {told}.", np.asarray(means), {"score": np.asarray(scores)},
                   xlabel="mean of the input", ylim=(0, 1.05))  # fmt: skip
    for (look, mark), (mean, x, y, score) in zip(PIECES, pieces, strict=False):
        graph.line(look, x, y)
        curve.dot(mark, mean, score, radius=7)
    return Drawing(graph, curve)


def plot_widths(widths: ArrayLike, scores: Mapping[str, Array]) -> Drawing:
    """Scores (n,) of several activations against the standard deviation of the input, on a logarithmic axis."""
    powers = np.log10(np.asarray(widths, dtype=float))
    marks = {float(k): f"{10.0**k:g}" for k in range(int(np.ceil(powers.min())), int(np.floor(powers.max())) + 1)}
    label = f"Scores against the width of the input: {_ends(scores)}"
    return _drawn(label, powers, scores, "standard deviation of the input", xticks=marks)


def plot_means(means: ArrayLike, scores: Mapping[str, Array]) -> Drawing:
    """Scores (n,) against the mean of the input, a curve for each name; none where a score is NaN."""
    told = ", ".join(f"{name} {y[len(y) // 2]:.2f} in the middle" for name, y in scores.items())
    return _drawn(f"Scores against the mean of the input: {told}", np.asarray(means), scores, "mean of the input")


def plot_channels(channels: Sequence[int], scores: Mapping[str, Array]) -> Drawing:
    """Scores (n,) against the number of channels, on a logarithmic axis."""
    powers = np.log2(np.asarray(channels, dtype=float))
    marks = {float(at): str(count) for at, count in zip(powers, channels, strict=True)}
    return _drawn(f"Scores against the channels: {_ends(scores)}", powers, scores, "channels", xticks=marks)


def _ends(scores: Mapping[str, Array]) -> str:
    return ", ".join(f"{name} from {y[0]:.2f} to {y[-1]:.2f}" for name, y in scores.items())


def _drawn(label: str, x: Array, scores: Mapping[str, Array], xlabel: str, **options: Any) -> Drawing:
    return Drawing(curves(label, x, scores, xlabel=xlabel, ylim=(0, 1.05), **options))
