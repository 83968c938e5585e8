"""The figures of the chapter on linearised networks. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from affscore_book.kit.statistics import student_interval
from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, legend_above, panels, styled
from affscore_book.linearized.results import STARTS, LinearizedRuns, linear_share

__all__ = [
    "plot_collapse",
    "plot_gaps",
    "plot_path_lengths",
    "plot_predictors",
    "plot_prior",
    "plot_starts",
    "plot_trajectory",
]

#: Colour and mark of each start and network.
LOOKS = {
    "early": (VERMILION, "s"),
    "middle": (ORANGE, "^"),
    "late": (BLUE, "o"),
    "plain": (BLUE, "o"),
    "residual": (VERMILION, "s"),
    "mlp": (GREEN, "D"),
}
PREDICTOR_LOOKS = {
    "score": (BLUE, "o", "affinity score"),
    "positive": (ORANGE, "^", "share positive"),
    "balance": (PURPLE, "D", "balance"),
}


def _above(axes) -> None:
    """The legend over the only panel."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3, frameon=False, columnspacing=1.0)


@styled
def plot_path_lengths(shares: Mapping[str, np.ndarray]) -> None:
    """How long the paths of a network are: by average, the share of the paths of each length, 0, 1, ..."""
    _, (axes,) = panels(height=3.8)
    longest = max(int(np.flatnonzero(found)[-1]) for found in shares.values())
    for offset, (name, found), colour in zip((-0.2, 0.2), shares.items(), (BLUE, VERMILION), strict=True):
        axes.bar(np.arange(longest + 1) + offset, found[: longest + 1], 0.36, color=colour, label=name)
        axes.plot(found @ np.arange(len(found)), 1.08, "v", color=colour, markersize=10)
    axes.set(xlabel="non-linear units on a path (triangle: mean)", ylabel="weight of the paths", ylim=(0, 1.16))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _above(axes)


@styled
def plot_prior(a: ArrayLike, curves: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> None:
    """Priors by name at slopes a, and how hard each pulls a slope towards 1."""
    _, axes = panels(1, 2, height=3.8)
    looks = ((PURPLE, ":"), (INK, "--"), (BLUE, "-"), (VERMILION, "-."))
    for (name, (value, pull)), (colour, style) in zip(curves.items(), looks, strict=False):
        axes[0].plot(a, value, style, color=colour, label=name)
        axes[1].plot(a, pull, style, color=colour)
    axes[0].set(xlabel="slope a", ylabel="prior", xticks=[0, 0.5, 1])
    axes[1].set(xlabel="slope a", ylabel="pull towards 1", ylim=(0, 5), xticks=[0, 0.5, 1])
    legend_above(axes[0], len(curves))


@styled
def plot_starts(study: LinearizedRuns, networks: Sequence[str] | None = None) -> None:
    """Test accuracy against NAPL for priors that act at different times; a mark a run, lines for means of seeds.

    ``networks`` are the names of those to show, a panel each; without it all of the study.
    """
    networks = list(study.runs) if networks is None else list(networks)
    _, axes = panels(len(networks), 1, height=1 + 3.4 * len(networks))
    for panel, network in zip(axes, networks, strict=True):
        for start in STARTS:
            colour, mark = LOOKS[start]
            by_strength = [
                _points(study.select(network, start=start, strength=strength)) for strength in study.strengths(network)
            ]
            panel.plot(*np.concatenate(by_strength).T, mark, color=colour, markersize=6, alpha=0.5)
            means = np.array([points.mean(axis=0) for points in by_strength])
            panel.plot(*means.T, "-", color=colour, linewidth=2)
            panel.plot([], [], f"{mark}-", color=colour, label=start)
        whole = [study.sweep(network, "base", "late", seed)[0] for seed in study.seeds(network)]
        panel.plot(*_points(whole).T, "*", color=INK, markersize=11, linestyle="", label="no prior")
        panel.set(title=network, ylabel="accuracy (%)")
    axes[-1].set_xlabel("NAPL: non-linear units on a path")
    legend_above(axes[0], 4)


def _points(runs: Sequence[Any]) -> np.ndarray:
    """NAPL and accuracy in per cent, (runs, 2)."""
    return np.array([(run["napl"], 100 * run["accuracy"]) for run in runs])


@styled
def plot_gaps(gaps: Mapping[str, Sequence[float]]) -> None:
    """Mean gaps with a dot for each seed and their 95 % interval, in rows such as "mlp, late"."""
    _, (axes,) = panels(height=1.6 + 0.62 * len(gaps))
    for at, (name, values) in enumerate(gaps.items()):
        colour, _ = LOOKS[name.partition(",")[0]]
        axes.plot(values, np.full(len(values), at - 0.2), ".", color=colour, markersize=9, alpha=0.7)
        mean, low, high = student_interval(values)
        axes.errorbar(mean, at, xerr=[[mean - low], [high - mean]], fmt="o", color=colour, markersize=8, capsize=5)
    axes.axvline(0, color=INK, linewidth=1.5)
    axes.set_yticks(range(len(gaps)), list(gaps))
    axes.set(ylim=(len(gaps) - 0.5, -0.6), xlabel="gap to early (accuracy points)")


@styled
def plot_collapse(study: LinearizedRuns, crossing: Mapping[str, float], points: float = 1) -> None:
    """Accuracy lost by late runs against the share of linear channels; a mark a run, lines for means of seeds. Dotted
    are means of networks that had fewer activations from the start. A ring stands where a network's line loses so many
    points, at its share in ``crossing``."""
    _, (axes,) = panels(height=4.6)
    for network in study.runs:
        colour, mark = LOOKS[network]
        whole = study.error(network)
        means = []
        late = study.select(network, start="late") + study.between.get(network, [])
        for strength in sorted({run["strength"] for run in late}):
            runs = [run for run in late if run["strength"] == strength]
            lost = [100 * (1 - run["accuracy"]) - whole[run["seed"]] for run in runs]
            shares = [100 * linear_share(run) for run in runs]
            axes.plot(shares, lost, mark, color=colour, markersize=5, alpha=0.5)
            means.append((np.mean(shares), np.mean(lost)))
        axes.plot(*np.array([(0, 0), *means]).T, "-", color=colour, linewidth=2)
        axes.plot(*_baselines(study, network), ":", marker=mark, color=colour, fillstyle="none", markersize=7)
        axes.plot([], [], f"{mark}-", color=colour, label=network)
    axes.plot([], [], ":", color=INK, label="fewer from the start")
    axes.axhline(points, color=INK, linestyle="--", linewidth=1.5)
    name = "1 point" if points == 1 else f"{points:g} points"
    axes.annotate(name, (0, points), xytext=(2, 4), textcoords="offset points", va="bottom", fontsize=13)
    for network, share in crossing.items():
        axes.plot(100 * share, points, "o", color=INK, fillstyle="none", markersize=13, markeredgewidth=2, zorder=4)
        text = f"{network}: {share:.0%}"
        axes.annotate(text, (100 * share, points), xytext=(6, -12), textcoords="offset points", va="top", fontsize=13)
    axes.set(xlabel="linear channels (%)", ylabel="accuracy lost (points)")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.93), frameon=False)


def _baselines(study: LinearizedRuns, network: str) -> np.ndarray:
    """Linear channels in per cent and points lost, means of seeds, of the runs with fewer activations: (2, runs)."""
    whole = study.error(network)
    found: dict[int, list[tuple[float, float]]] = {}
    for run in study.select(network):
        if "kept" in run:
            lost = 100 * (1 - run["accuracy"]) - whole[run["seed"]]
            found.setdefault(run["kept"], []).append((100 * linear_share(run), lost))
    return np.array(sorted(np.mean(rows, axis=0).tolist() for rows in found.values())).T


@styled
def plot_trajectory(histories: Mapping[str, Sequence[tuple[float, float]]], acts: Mapping[str, range]) -> None:
    """Share of linear channels and accuracy after every epoch, by start, with bars where the prior acts."""
    _, axes = panels(2, 1, height=6.6, sharex=True)
    for start, (colour, mark) in LOOKS.items():
        if start not in histories:
            continue
        look: dict[str, Any] = {"color": colour, "linewidth": 1.5, "markersize": 5}
        linear, right = 100 * np.array(histories[start]).T
        epochs = np.arange(1, len(linear) + 1)
        axes[0].plot([0, *epochs], [0, *linear], f"{mark}-", label=start, **look)
        axes[1].plot(epochs, right, f"{mark}-", **look)
        for panel in axes:
            # At the foot, since a coloured ground would stay light on the dark page.
            panel.axvspan(acts[start].start, acts[start].stop, ymax=0.04, color=colour, alpha=0.6, linewidth=0)
    axes[0].set(ylabel="linear channels (%)")
    axes[1].set(ylabel="test accuracy (%)", xlabel="epoch (bars: the prior acts)")
    legend_above(axes[0], 3)


@styled
def plot_predictors(study: LinearizedRuns) -> None:
    """How well three values predict, within layers, which channels survive: a dot for each seed, with intervals."""
    _, (axes,) = panels(height=4.4)
    for offset, (predictor, (colour, mark, label)) in zip((-0.2, 0, 0.2), PREDICTOR_LOOKS.items(), strict=True):
        axes.plot([], [], mark, color=colour, markersize=8, label=label)
        for at, network in enumerate(study.runs):
            values = [value for value in study.separations(network, predictor).values() if np.isfinite(value)]
            axes.plot(np.full(len(values), at + offset + 0.07), values, ".", color=colour, markersize=9, alpha=0.7)
            mean, low, high = student_interval(values)
            ends = [[mean - low], [high - mean]]
            axes.errorbar(at + offset, mean, ends, fmt=mark, color=colour, markersize=8, capsize=5)
    axes.set_xticks(range(len(study.runs)), study.runs)
    axes.axhline(0.5, color=INK, linestyle="--", linewidth=1.5)
    axes.set(ylabel="area under the ROC curve", ylim=(0, 1), xlim=(-0.5, len(study.runs) - 0.5))
    _above(axes)
