"""The figures of the chapter on the decade. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from affscore_book.decade.collection import Decade, Trained
from affscore_book.decade.rates import FOLLOWED, RATES, RateRun
from affscore_book.imagenet_signatures.calls import places
from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, legend_above, panels, styled

__all__ = ["plot_decade", "plot_differences", "plot_own", "plot_rates", "plot_raw", "plot_without_skips"]

ERAS = {2012: BLUE, 2014: GREEN, 2015: ORANGE, 2018: PURPLE, 2020: VERMILION}
ERA_NAMES = ("2012", "2014", "2015, 2016", "2018, 2019", "from 2020")
LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (INK, "P"), ("#7a5c00", "X"))


def _sign(colour: str, mark: str, label: str, **look: Any) -> Line2D:
    """An entry of a legend: a mark without a line."""
    return Line2D([], [], color=colour, marker=mark, linestyle="", label=label, **look)


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """A name for each row, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelsize=12)
    axes.invert_yaxis()


@styled
def plot_decade(decade: Decade, without_norm: Sequence[str] = ()) -> None:
    """The scores of all calls of each network, one row a network from 2012 down; the mean of each seed is a dot.

    Colours are eras; the dots of the networks ``without_norm`` are squares.
    """
    figure, (axes,) = panels(height=1.9 + 0.34 * len(decade))
    names = []
    for row, (name, seeds) in enumerate(decade.items()):
        first, *_ = seeds.values()
        colour = ERAS[max(era for era in ERAS if era <= first.year)]
        axes.plot(first.scores, np.full(len(first.scores), row), "|", color=colour, markersize=9, alpha=0.6,
                  markeredgewidth=1.3)  # fmt: skip
        means = [each.scores.mean() for each in seeds.values()]
        mark = "s" if name in without_norm else "o"
        axes.plot(means, np.full(len(means), row), mark, color=colour, markersize=8, markeredgecolor="white")
        names.append(f"{name.replace('_bn', ', norm').replace('_', ' ')} {first.year % 100:02}")
    _name_rows(axes, names)
    axes.set(xlabel="affinity score, spatial pool (dots and squares: means)")
    handles = [_sign(colour, "o", label) for colour, label in zip(ERAS.values(), ERA_NAMES, strict=True)]
    if without_norm:
        handles.append(_sign(INK, "s", "no norm"))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)


@styled
def plot_own(panes: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Signatures (calls,) by their names, a panel a network."""
    figure, axes = panels(1, len(panes), height=3.9, sharey=True)
    for panel, (title, curves) in zip(axes, panes.items(), strict=True):
        for (label, scores), (colour, mark) in zip(curves.items(), (("#777777", "x"), *LOOKS), strict=False):
            panel.plot(np.arange(1, len(scores) + 1), scores, mark + "-", color=colour, markersize=6, label=label)
        panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.set_title(title, fontsize=13, loc="left")
    legend_above(axes[0], 3)
    figure.supxlabel("activation call", fontsize=15)
    axes[0].set_ylabel("affinity score")


@styled
def plot_raw(networks: Sequence[Trained]) -> None:
    """Trained signatures call by call, a panel a network: colour and mark say what the activation is.

    A ring marks a call that follows the addition of a residual block, in the ResNets.
    """
    figure, axes = panels(-(-len(networks) // 2), 2, height=1.4 + 1.9 * -(-len(networks) // 2), sharey=True)
    kinds = list(dict.fromkeys(call.function for network in networks for call in network.end.calls))
    for panel, network in zip(axes, networks, strict=False):
        each, scores = network.end, network.end.mean
        numbers = np.arange(1, len(scores) + 1)
        panel.plot(numbers, scores, color="#999999", linewidth=0.8, zorder=0)
        for kind, (colour, mark) in zip(kinds, LOOKS, strict=False):
            at = np.array([call.function == kind for call in each.calls])
            panel.plot(numbers[at], scores[at], mark, color=colour, markersize=4)
        if network.name.startswith("resnet"):
            last = places(each)["last in its block"]
            panel.plot(numbers[last], scores[last], "o", color=INK, fillstyle="none", markersize=9)
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        panel.set_title(network.name, fontsize=13, loc="left")
    for panel in axes[len(networks) :]:
        panel.set_axis_off()
    handles = [_sign(colour, mark, kind) for kind, (colour, mark) in zip(kinds, LOOKS, strict=False)]
    if any(network.name.startswith("resnet") for network in networks):
        handles.append(_sign(INK, "o", "after an addition", fillstyle="none", markersize=9))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel("activation call", fontsize=15)
    figure.supylabel("affinity score", fontsize=15)


@styled
def plot_rates(runs: Sequence[RateRun]) -> None:
    """Mean scores of the followed networks at each learning rate, a row a network; open marks are other seeds."""
    kept = [run for run in runs if run.name in FOLLOWED and not run.failed]
    _, (axes,) = panels(height=1.9 + 0.42 * len(FOLLOWED))
    for row, name in enumerate(FOLLOWED):
        ends = [run.scores[-1] for run in kept if run.name == name]
        axes.plot([min(ends), max(ends)], [row, row], color="#bbbbbb", zorder=0)
    for (colour, mark), rate in zip(LOOKS, RATES, strict=False):
        looks: dict[bool, dict[str, Any]] = {
            False: {"markersize": 7, "fillstyle": "none"},
            True: {"markersize": 10, "markeredgecolor": "white", "label": f"{rate:g}"},
        }
        for first, look in looks.items():
            mine = [run for run in kept if run.rate == rate and (run.seed == 0) == first]
            rows = [FOLLOWED.index(run.name) for run in mine]
            axes.plot([run.scores[-1] for run in mine], rows, mark, color=colour, **look)
    _name_rows(axes, [name.replace("_bn", ", norm").replace("_", " ") for name in FOLLOWED])
    axes.set(xlabel="mean affinity score after training (small, open: other seeds)")
    axes.legend(title="learning rate", loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, frameon=False)


@styled
def plot_without_skips(curves: Mapping[str, np.ndarray], ends: Sequence[int]) -> None:
    """Signatures (seeds, calls) by their names: means over the seeds, bands from least to most.

    Dotted lines mark ``ends``, the numbers of the last call of each block, which follows the addition where there is
    one; the first call has number 1.
    """
    figure, (axes,) = panels(height=4.4)
    for (label, scores), (colour, mark) in zip(curves.items(), LOOKS, strict=False):
        numbers = np.arange(1, scores.shape[1] + 1)
        axes.fill_between(numbers, scores.min(axis=0), scores.max(axis=0), color=colour, alpha=0.2, linewidth=0)
        axes.plot(numbers, scores.mean(axis=0), mark + "-", color=colour, markersize=6, label=label)
    for number in ends:
        axes.axvline(number, color="#bbbbbb", linestyle=":", zorder=0)
    axes.set(xlabel="activation call (dotted: last of a block)", ylabel="affinity score")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)


@styled
def plot_differences(ladder: Mapping[str, tuple[float, float, float]]) -> None:
    """By how much two signatures differ, by what differs: a number with the ends of its interval, the least below."""
    rows = sorted(ladder.items(), key=lambda each: each[1][0])
    _, (axes,) = panels(height=1.4 + 0.55 * len(rows))
    for row, (_, (difference, low, high)) in enumerate(rows):
        colour, mark = LOOKS[row % len(LOOKS)]
        axes.plot([max(0.0, low), high], [row, row], color=colour)
        axes.plot(difference, row, mark, color=colour, markersize=10)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set(xlabel="difference of two scores (root mean square)", xlim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.margins(y=0.15)
