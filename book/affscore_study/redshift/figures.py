"""The figures of the audit on neural redshift. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import Normalize

from affscore_book.activations.catalogue import lookup
from affscore_book.kit.style import BLUE, INK, VERMILION, panels, styled
from affscore_book.redshift.complexity import dct_frequency, fourier_frequency, unexplained_variance
from affscore_book.redshift.networks import grid_points
from affscore_book.redshift.stored_figures import COLOURS, MARKS
from affscore_book.redshift.study import StoredDraws
from affscore_study.redshift.draws import image_of, random_network

__all__ = ["plot_heat_maps", "plot_precision", "plot_saturation", "plot_waves"]

_RAMP = grid_points()[:, 0].reshape(32, 32)  # the simplest image that is not constant


@styled
def plot_waves() -> None:
    """Draw both measures of cos(pi f x) for every frequency f, with whole and fractional periods."""
    frequencies = np.linspace(0.05, 16, 320)
    x = (np.arange(32) + 0.5) / 32
    waves = [np.tile(np.cos(np.pi * f * x), (32, 1)) for f in frequencies]
    _, axes = panels(2, 1, height=6, sharex=True)
    for panel, measure, scale, colour, label in (
        (axes[0], fourier_frequency, 32, VERMILION, "Fourier\n(of Nyquist)"),
        (axes[1], dct_frequency, 1, BLUE, "cosine transform\n(half periods)"),
    ):
        panel.plot(frequencies, [measure(wave) for wave in waves], color=colour)
        panel.plot(frequencies, frequencies / scale, "--", color=INK, linewidth=1.5, label="true frequency")
        panel.axhline(measure(_RAMP), color=INK, linestyle=":", linewidth=1.5, label="a ramp")
        panel.set_ylabel(label)
        panel.legend(loc="upper left")
    axes[1].set_xlabel("half periods of a cosine in the image")


@styled
def plot_saturation(activations: Sequence[str] = ("relu", "gelu", "tanh", "gaussian", "sine")) -> None:
    """Draw three measures of random networks against the scale of their weights, as medians of forty paired draws."""
    scales = np.array([0.5, 1, 2, 3, 4, 5, 6])
    nets = [[random_network(scale=scale, seed=seed, draw="paired") for seed in range(40)] for scale in scales]
    measures = fourier_frequency, dct_frequency, unexplained_variance
    _, axes = panels(3, 1, height=10, sharex=True)
    for panel, measure in zip(axes, measures, strict=True):
        panel.axhline(measure(_RAMP), color=INK, linestyle=":", linewidth=1.5, label="a ramp")
    for activation, colour, mark in zip(activations, COLOURS, MARKS, strict=False):
        images = [[image_of(net, activation) for net in row] for row in nets]
        for panel, measure in zip(axes, measures, strict=True):
            middles = [np.median([measure(image) for image in row]) for row in images]
            panel.plot(scales, middles, mark, color=colour, markersize=7, label=lookup(activation).title)
    axes[0].set(ylabel="Fourier (of Nyquist)", ylim=(0, 0.6))
    axes[1].set(ylabel="cosine (half periods)", yscale="log")
    axes[2].set(ylabel="unexplained variance (share)", xlabel="scale of the weights")
    axes[1].set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes[1].minorticks_off()
    axes[0].legend(ncols=2)


@styled
def plot_heat_maps(study: StoredDraws, kind: str, measure: str, activations: Sequence[str] = ()) -> None:
    """Draw heat maps over scale and depth or shift, for an even number of ``activations`` or for all.

    ``kind`` is "depth" or "shift", and ``measure`` is "score" or "complexity". Cells are medians over the draws in
    which no layer is dead; a cross marks cells in which some layers are dead.
    """
    maps = study.settings["maps"]
    rows = maps[f"{kind}s"]
    names = list(activations or study.maps)
    figure, axes = panels(len(names) // 2, 2, height=1 + 1.25 * len(names), sharex=True, sharey=True)
    scored = measure == "score"
    shade, scale = (Normalize(0.2, 1.0), np.asarray) if scored else (Normalize(0, np.log10(20)), np.log10)
    for panel, name in zip(axes, names, strict=True):
        both = study.maps[name][kind]
        cells = np.nanmedian(both[..., 0 if scored else 1], axis=-1)
        shown = panel.imshow(scale(cells), cmap="viridis", norm=shade, origin="lower", aspect="auto")
        for (row, column), value in np.ndenumerate(cells):
            colour = "black" if shade(scale(value)) > 0.6 else "white"
            text = f"{value:.2f}".lstrip("0") if scored else f"{value:.1f}"
            mark = "*" if np.isnan(both[row, column, :, 0]).any() else ""
            panel.text(column, row, text + mark, ha="center", va="center", fontsize=11.5, color=colour)
        panel.set_title(lookup(name).title)
        panel.grid(False)
        panel.set_xticks(range(len(maps["scales"])), [f"{scale:g}" for scale in maps["scales"]])
        panel.set_yticks(range(len(rows)), [f"{row:g}" for row in rows])
        panel.set(xlabel="scale of the weights", ylabel="hidden layers" if kind == "depth" else "shift")
        panel.label_outer()
    label = "median score" if scored else "median frequency (half periods, log)"
    bar = figure.colorbar(shown, ax=axes, location="top", label=label, aspect=40, pad=0.01)
    if not scored:
        bar.set_ticks([np.log10(value) for value in (1, 2, 5, 10, 20)], labels=["1", "2", "5", "10", "20"])


@styled
def plot_precision(double: Sequence[float], single: Sequence[float]) -> None:
    """Draw 1 - score of every layer of every panel by the same formula in two precisions; both have shape (24,)."""
    _, (axes,) = panels(height=4.6)
    layers = np.arange(1, len(double) + 1)
    for edge in range(0, len(double), 6):
        axes.axvspan(edge + 0.5, edge + 3.5, color=INK, alpha=0.07, linewidth=0)
    axes.semilogy(layers, 1 - np.array(double), "o", color=BLUE, markersize=8, label="float64")
    axes.semilogy(layers, 1 - np.array(single), "x", color=VERMILION, markersize=9, mew=3, label="float32")
    axes.axhline(1, color=INK, linewidth=1.5)
    axes.text(24.5, 5e-3, "above the line: scores below 0", fontsize=13, ha="right")
    axes.set(ylim=(3e-3, None), xlabel="layers of the eight panels, three each", ylabel="1 − score")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
