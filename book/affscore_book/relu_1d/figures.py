"""The figures of the chapter "ReLU in one dimension". Each function draws one and returns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from affscore.plots import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, panels, styled
from affscore_book.relu_1d.exact import gaussian_input, uniform_input

__all__ = [
    "plot_figure_3", "plot_gaussian", "plot_limits", "plot_ranges", "plot_relatives", "plot_symmetry",
]  # fmt: skip


# How close to a range of constant outputs, where there is no score, a curve is drawn: its score is 1e-6 there.
CLOSE = 1e-12


def _line(start: float, stop: float, n: int = 401, *, ends: tuple[float, ...] = ()) -> Tensor:
    """So many points, and the ``ends`` where a curve has to arrive at 0 and equal steps would stop short of it."""
    points = torch.linspace(start, stop, n, dtype=torch.float64)
    return torch.cat([points, torch.tensor(ends, dtype=torch.float64)]).sort().values


@styled
def plot_ranges(ranges: Sequence[tuple[Any, Any, Any]], notes: Sequence[str]) -> None:
    """For each range its inputs (n,) in rising order, their outputs, the affine image and the gap, with a note."""
    _, axes = panels(len(ranges), 1, height=2.7 * len(ranges), sharex=True, sharey=True)
    least, most = min(x[0] for x, *_ in ranges), max(x[-1] for x, *_ in ranges)
    for axis, (x, y, image), note in zip(axes, ranges, notes, strict=True):
        axis.text(0.02, 0.95, note, va="top", transform=axis.transAxes)
        axis.axvspan(x[0], x[-1], color=BLUE, alpha=0.1)
        axis.plot([least - 0.5, 0, most + 0.5], [0, 0, most + 0.5], color="#999999", linewidth=1.5)
        axis.fill_between(x, y, image, color=ORANGE, alpha=0.35, label="gap")
        axis.plot(x, y, color=BLUE, linewidth=4, label="output")
        axis.plot(x, image, "--", color=VERMILION, label="affine image")
        axis.set_ylabel("output")
    axes[0].legend(loc="upper right")
    axes[-1].set_xlabel("input")


@styled
def plot_figure_3(starts: Any, parts: Any) -> None:
    """Numerator, denominator and score for X ~ U(-a, -a + 5), by the formulas and for samples.

    ``starts`` are the a of the samples, (k,), and ``parts`` their numerators and denominators, (k, 2).
    """
    numerators, denominators = np.asarray(parts).T
    dots = (numerators, denominators, 1 - numerators / denominators)
    fine = _line(0, 5, ends=(5 - CLOSE,))[:-1]
    exact = uniform_input(-fine, 5 - fine)
    _, axes = panels(3, 1, height=9, sharex=True)
    curves = [
        (exact.w2, "numerator W₂", PURPLE, "--"),
        (exact.bound, "denominator √(2 Var Y)", ORANGE, "-."),
        (exact.score, "affinity score", GREEN, "-"),
    ]
    for axis, (curve, label, colour, dash), points in zip(axes, curves, dots, strict=True):
        axis.plot(fine, curve, dash, color=colour, label="exact")
        axis.plot(starts, points, "o", color=INK, markersize=6, label="samples")
        axis.set(ylabel=label, ylim=(0, None))
    axes[0].legend(loc="lower center")
    axes[-1].set_xlabel("a, for inputs uniform on [−a, −a + 5]")


@styled
def plot_symmetry() -> None:
    """The numerator and its mirror image, before and after the factor sqrt(1 + r)."""
    a = _line(0, 5)[1:-1]
    exact = uniform_input(-a, 5 - a)
    flat = exact.w2 * (1 + exact.correlation).sqrt()
    _, axes = panels(2, 1, height=6, sharex=True)
    for axis, curve, title in zip(axes, (exact.w2, flat), ("W₂", "W₂ √(1 + r)"), strict=True):
        axis.plot(a, curve, color=PURPLE, label=title)
        axis.plot(a, curve.flip(0), ":", color=INK, linewidth=3.5, label="its mirror image")
        axis.set_ylabel(title)
        axis.legend(loc="lower center")
    axes[-1].set_xlabel("a, for inputs uniform on [−a, −a + 5]")


@styled
def plot_limits() -> None:
    """Two power laws: 1 - score against the share of negative inputs, the score against that of positive ones."""
    share = torch.logspace(-10, 0, 101, dtype=torch.float64)[:-1]
    _, axes = panels(2, 1, height=7)
    axes[0].loglog(share, uniform_input(-share, 1 - share).deficit, color=GREEN, label="1 − score")
    axes[0].loglog(share, 2**0.5 * share**1.5, ":", color=INK, label="√2 t^(3/2)")
    axes[0].set_xlabel("t, share of negative inputs")
    axes[1].loglog(share, uniform_input(share - 1, share).score, color=GREEN, label="score")
    axes[1].loglog(share, 0.75 * share**0.5, ":", color=INK, label="¾ p^(1/2)")
    axes[1].set_xlabel("p, share of positive inputs")
    for axis in axes:
        axis.legend()


@styled
def plot_gaussian() -> None:
    """ReLU's score for N(m, 1) against m, near the kink and, with a logarithmic axis, far into the dead range."""
    _, axes = panels(2, 1, height=7)
    half = 3**0.5
    near, far = _line(-4, 4, ends=(CLOSE - half,)), _line(-30, 2)
    axes[0].plot(near, gaussian_input(near, 1.0).score, color=GREEN, label="Gaussian, std 1")
    axes[0].plot(near, uniform_input(near - half, near + half).score, "--", color=BLUE, label="uniform, std 1")
    axes[0].set_ylabel("affinity score")
    axes[0].legend()
    axes[1].semilogy(far, gaussian_input(far, 1.0).score, color=GREEN)
    axes[1].set(ylabel="affinity score", xlabel="mean of the input, in standard deviations")
    exponents = range(0, 101, 20)
    axes[1].set_yticks([10.0**-k for k in exponents], [f"$10^{{-{k}}}$" if k else "1" for k in exponents])


@styled
def plot_relatives() -> None:
    """LeakyReLU for some slopes, and hardtanh, for inputs uniform on a range of width 5."""
    middle = _line(-5, 5, ends=(CLOSE - 2.5, CLOSE - 3.5, 3.5 - CLOSE))
    ends = (middle - 2.5, middle + 2.5)
    _, axes = panels(2, 1, height=7, sharex=True)
    for slope, colour, dash in ((0.0, GREEN, "-"), (0.1, BLUE, "--"), (0.3, VERMILION, "-."), (0.6, PURPLE, ":")):
        scores = uniform_input(*ends, "leaky_relu", slope=slope).score
        axes[0].plot(middle, scores, dash, color=colour, label=f"slope {slope:g}")
    axes[1].plot(middle, uniform_input(*ends, "hardtanh").score, color=INK, label="hardtanh")
    for axis in axes:
        axis.set(ylabel="affinity score", ylim=(-0.03, 1.05))
    axes[0].legend(loc="lower right")
    axes[1].legend(loc="lower center")
    axes[-1].set_xlabel("middle of the range")
