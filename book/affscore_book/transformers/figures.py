"""The figures on a block and on MiniLM. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from affscore_book.kit.style import BLUE, GREEN, INK, PURPLE, VERMILION, legend_above, panels, styled
from affscore_book.transformers.measured import LAYERS, MiniLMScores, attention_effect
from affscore_book.transformers.vits import BLOCKS, VitScores

__all__ = [
    "plot_attention",
    "plot_gelu_inputs",
    "plot_laws",
    "plot_minilm_weights",
    "plot_pools",
    "plot_transformer_block",
    "plot_what_pools_keep",
]  # fmt: skip

NUMBERS = np.arange(1, LAYERS + 1)
LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"))


def _lines(axes: Axes, rows: NDArray[np.float64], label: str, look: tuple[str, str], dash: str = "-") -> None:
    """The mean of rows (n, layers), with a band from least to most."""
    colour, mark = look
    axes.fill_between(NUMBERS, rows.min(axis=0), rows.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    axes.plot(NUMBERS, rows.mean(axis=0), mark + dash, color=colour, markersize=7, label=label)


def _layers(axes: Axes) -> None:
    axes.set(xlabel="layer", ylabel="affinity score", xticks=NUMBERS)


@styled
def plot_transformer_block() -> None:
    """A block: the stream from left to right, and above it what attention and the MLP read from it and add to it."""
    _, (panel,) = panels(1, 1, height=2.7)
    panel.set(xlim=(0, 17.2), ylim=(-0.9, 2.9), xticks=[], yticks=[])
    panel.grid(False)
    panel.set_axis_off()
    arrow = {"arrowstyle": "-|>", "linewidth": 2, "shrinkA": 0, "shrinkB": 0}

    def line(start: tuple[float, float], stop: tuple[float, float], colour: str = INK) -> None:
        panel.annotate("", stop, start, arrowprops=arrow | {"color": colour})

    def box(x: float, y: float, label: str, colour: str = INK, shape: str = "round,pad=0.35") -> None:
        frame = {"boxstyle": shape, "facecolor": "white", "edgecolor": colour, "linewidth": 2}
        panel.text(x, y, label, ha="center", va="center", fontsize=12.5, color=colour, bbox=frame, linespacing=1.1)

    line((0.2, 0), (17.0, 0), BLUE)
    for start, stop in ((0.5, 6.5), (7.5, 16.2)):
        panel.plot([start, start, stop], [0, 1.4, 1.4], color=INK, linewidth=2)
        line((stop, 1.4), (stop, 0.35))
    for x, label in ((1.7, "norm"), (4.5, "attention\n(softmax)"), (8.8, "norm"), (10.5, "up"), (15.0, "down")):
        box(x, 1.4, label)
    box(12.7, 1.4, "GELU", VERMILION)
    for x, name in ((11.45, "x"), (13.87, "y")):
        panel.text(x, 1.65, name, ha="center", fontsize=15, color=VERMILION, style="italic")
    for x in (6.5, 16.2):
        box(x, 0, "+", BLUE, "circle,pad=0.15")
    panel.text(0.2, -0.45, "the stream: one vector a token", va="top", fontsize=13, color=BLUE)
    for x, name in ((3.5, "tokens hear tokens"), (11.9, "MLP: each token by itself")):
        panel.text(x, 2.45, name, ha="center", fontsize=13, color=INK)


@styled
def plot_what_pools_keep() -> None:
    """One text's activation, tokens down and channels across, as each pool leaves it: a frame is a sample's part."""
    words, channels = ["[CLS]", "the", "bank", "of", "the", "river", "[SEP]"], 12
    values = np.random.default_rng(3).normal(size=(len(words), channels))
    columns = [(k, 0, 1, len(words)) for k in range(channels)]
    rows = [(0, k, channels, 1) for k in range(len(words))]
    left = {
        "spatial": (np.broadcast_to(values.mean(axis=0), values.shape), columns, "1 sample of 12 numbers"),
        "trailing": (np.broadcast_to(values.mean(axis=1, keepdims=True), values.shape), rows, "1 sample of 7 numbers"),
        "first": (np.where(np.arange(len(words))[:, None] == 0, values, np.nan), rows[:1], "1 sample of 12 numbers"),
        "tokens": (values, rows, "7 samples of 12 numbers"),
    }
    _, axes = panels(2, 2, height=6)
    for panel, (pool, (shown, frames, said)) in zip(axes, left.items(), strict=True):
        scale = 3 if pool in ("first", "tokens") else 1.2
        panel.imshow(shown, cmap="PuOr", vmin=-scale, vmax=scale, aspect="auto")
        panel.set_title(pool, loc="left")
        panel.grid(False)
        panel.set_xticks([])
        panel.set_yticks(range(len(words)), words if pool in ("spatial", "first") else [], fontsize=12)
        for x, y, width, height in frames:
            panel.add_patch(Rectangle((x - 0.5, y - 0.5), width, height, fill=False, edgecolor=INK, linewidth=1.5))
        panel.set_xlabel(said, fontsize=14)


@styled
def plot_pools(scores: MiniLMScores) -> None:
    """The trained signature by four pools, of 512 samples each: the texts, or four times 512 tokens and their mean."""
    _, (axes,) = panels(height=4.8)
    for pool, look in zip(("spatial", "first", "tokens", "trailing"), LOOKS, strict=True):
        _lines(axes, scores.batches(pool=pool) if pool == "tokens" else scores.of(pool=pool)[None], pool, look)
    _layers(axes)
    legend_above(axes, 4)


@styled
def plot_minilm_weights(scores: MiniLMScores) -> None:
    """Trained, random and rearranged weights, by two pools: the three seeds of each are a band. Grey are straight lines
    in the place of the trained network's GELUs."""
    _, axes = panels(1, 2, height=4.6, sharey=True)
    for panel, pool in zip(axes, ("spatial", "trailing"), strict=True):
        _lines(panel, scores.of(pool=pool)[None], "trained", LOOKS[0])
        _lines(panel, scores.starts(pool=pool), "random", LOOKS[1], "--")
        _lines(panel, scores.starts("rearranged", pool=pool), "rearranged", LOOKS[2], ":")
        panel.plot(NUMBERS, scores.line(pool=pool), "--", color="#777777", label="linear twin")
        _layers(panel)
        panel.set_title(f"{pool} pool", loc="left")
    axes[1].set_ylabel("")
    legend_above(axes[0])


@styled
def plot_gelu_inputs(scores: MiniLMScores) -> None:
    """What the GELUs of three layers take in: densities over all tokens and channels."""
    _, axes = panels(3, 1, height=1.6 + 1.7 * 3, sharex=True)
    for panel, number in zip(axes, (1, 3, 5), strict=True):
        for weights, (colour, _) in zip(("trained", "random"), LOOKS, strict=False):
            row = scores.layers[f"{weights} 0"][number - 1]
            panel.stairs(row.shares / np.diff(row.edges), row.edges, color=colour, label=weights, linewidth=2)
        panel.axvline(0, color="#999999", linestyle=":")
        panel.set_title(f"layer {number}", fontsize=13, loc="left")
        panel.set(ylabel="density")
        panel.set_ylim(0)
    axes[-1].set(xlabel="input of GELU", xlim=(-4, 3))
    legend_above(axes[0])


@styled
def plot_laws(scores: MiniLMScores, levels: Sequence[float], formula: Sequence[float]) -> None:
    """From the scores of texts, step by step, to those of the means and spreads of single channels, ``formula``.

    ``levels`` are the bends of 8,192 tokens, 1 minus which is their paired score without shrinkage.
    """
    _, (axes,) = panels(height=5)
    for label, values, look, dash in (
        ("512 texts, averaged", scores.of(), LOOKS[0], "-"),
        ("512 tokens", scores.batches(pool="tokens").mean(axis=0), LOOKS[2], "-"),
        ("8,192 tokens, paired", 1 - np.asarray(levels), LOOKS[3], "-"),
        ("formula", formula, LOOKS[1], "--"),
    ):
        _lines(axes, np.asarray(values)[None], label, look, dash)
    _layers(axes)
    legend_above(axes)


@styled
def plot_attention(scores: MiniLMScores, vits: VitScores) -> None:
    """How much each layer's score changes when its own attention is taken out: every batch, every random start."""
    figure, axes = panels(3, 1, height=9.4, sharey=True)
    kinds = ((True, "spatial", "spatial", LOOKS[0]), (True, "tokens", "tokens", LOOKS[2]),
             (False, "spatial", "spatial, random weights", LOOKS[1]))  # fmt: skip
    for panel, network in zip(axes, ("MiniLM", *BLOCKS), strict=True):
        for (trained, pool, label, (colour, mark)), shift in zip(kinds, (-0.15, 0.0, 0.15), strict=True):
            if network == "MiniLM":
                effect = attention_effect(scores, trained, pool)
            else:
                effect = vits.effect(network, pool, trained)
            numbers = np.arange(1, effect.shape[1] + 1)
            for i, row in enumerate(effect):
                panel.plot(numbers + shift, row, mark, color=colour, alpha=0.5, markersize=5, label="" if i else label)
            panel.plot(numbers + shift, effect.mean(axis=0), "_", color=colour, markersize=12, markeredgewidth=2.5)
        panel.axhline(0, color=INK, linewidth=1)
        panel.set_title(network, loc="left")
        panel.set(xticks=numbers)
    axes[1].set_ylabel("score without attention − with it")
    axes[2].set_xlabel("layer")
    handles, labels = axes[0].get_legend_handles_labels()
    dash = Line2D([], [], color=INK, marker="_", linestyle="", markersize=12, markeredgewidth=2.5)
    figure.legend([*handles, dash], [*labels, "mean"], loc="outside upper center", ncols=2, frameon=False)
