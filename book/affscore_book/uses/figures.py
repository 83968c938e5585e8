"""The figures of the chapter on uses. Each function draws one figure and returns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from affscore_book.kit.statistics import Interval
from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, VERMILION, legend_above, panels, styled
from affscore_book.uses.alarm import MONITORS, TOUCHED, sensitivity
from affscore_book.uses.doses import Doses
from affscore_book.uses.removal import REMOVAL_ORDERS, draws_of, mean_over_families, removed_at
from affscore_book.uses.targets import OUTCOMES, POINT, Aim, Runs, all_aims, counts

__all__ = ["plot_alarms", "plot_costs", "plot_doses", "plot_known", "plot_mended", "plot_removal", "plot_targets"]

LOOKS = {
    "score": (GREEN, "o", "-"), "paired R²": (BLUE, "s", "--"), "sign entropy": (VERMILION, "^", ":"),
    "latest first": (PURPLE, "D", "-."), "random": (ORANGE, "v", ":"), "true costs": (INK, "P", "--"),
}  # fmt: skip
LABELS = {"accuracy": "accuracy on test images (%)", "straightened in random order": "accuracy on the way (%)"}


@styled
def plot_costs(unlike: Sequence[float], costs: Sequence[float]) -> None:
    """Cost of each call of a network, log10(KL), against 1 − its token score; the calls are numbered in order."""
    _, (axes,) = panels()
    axes.plot(unlike, costs, "o", color=GREEN, markersize=7)
    for at, place in enumerate(zip(unlike, costs, strict=True), start=1):
        axes.annotate(str(at), place, xytext=(5, 4), textcoords="offset points", fontsize=11)
    axes.margins(0.09)  # room for the numbers of the outermost marks
    axes.set(xlabel="1 − token score of the call", ylabel="cost of making it affine, log10(KL)")


@styled
def plot_known(found: Mapping[str, tuple[Interval, Interval]]) -> None:
    """By measure, its rank correlation with the cost within networks: alone and given the controls, with intervals."""
    _, (axes,) = panels(height=1.3 + 0.55 * len(found))
    for row, (alone, given) in enumerate(found.values()):
        for interval, shift, colour, mark, label in (
            (alone, -0.15, BLUE, "o", "alone"),
            (given, 0.15, VERMILION, "s", "given position, size and share"),
        ):
            axes.plot([interval.low, interval.high], [row + shift] * 2, color=colour, linewidth=1.5)
            axes.plot(interval.mean, row + shift, mark, color=colour, label=None if row else label)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set(xlabel="rank correlation with the cost")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2)


@styled
def plot_removal(networks: Sequence[Mapping[str, Any]], families: Sequence[str]) -> None:
    """Accuracy against the share of calls made affine, by order; the mean over families."""
    _, (axes,) = panels()
    lengths = [len(each["calls"]) for each in networks]
    shares = [[0.0, *(count / calls for count in removed_at(calls))] for calls in lengths]
    for order in (*REMOVAL_ORDERS, "random"):
        rows = [[each["whole"], *np.mean(draws_of(each, order), axis=0)] for each in networks]
        colour, mark, line = LOOKS[order]
        axes.plot(100 * mean_over_families(shares, families), mean_over_families(rows, families), line, marker=mark,
                  color=colour, label=order)  # fmt: skip
    axes.set(xlabel="calls made affine (%)", ylabel="accuracy on test images")
    axes.legend(frameon=False)


@styled
def plot_mended(points: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    """By network, the loss in points that training left against a measure's sum over the calls that went."""
    _, axes = panels(len(points) // 2, 2, height=2.1 * (len(points) // 2))
    for panel, (name, (sums, losses)) in zip(axes, points.items(), strict=True):
        panel.plot(sums, losses, "o", color=BLUE, markersize=5, alpha=0.7)
        panel.set(title=name)
        panel.margins(0.08)
    axes[0].figure.supxlabel("1 − score, summed over the calls that went")
    axes[0].figure.supylabel("accuracy lost after training (points)")


@styled
def plot_alarms(alarms: Mapping[str, Mapping[str, Any]]) -> None:
    """Share of the wrong batches that raise the alarm, by the share of wrong images, a line for each monitor."""
    _, (axes,) = panels()
    for monitor, (colour, mark, line) in zip(MONITORS, LOOKS.values(), strict=True):
        rows = np.array([[sensitivity(each, monitor, share=touched) for touched in TOUCHED]
                         for each in alarms.values()])  # fmt: skip
        rows = rows[~np.isnan(rows).any(axis=1)]  # without networks that have no batch norm
        label = monitor if len(rows) == len(alarms) else f"{monitor} ({len(rows)} networks)"
        axes.plot(range(len(TOUCHED)), 100 * rows.mean(axis=0), line, marker=mark, color=colour, label=label)
    axes.set_xticks(range(len(TOUCHED)), [f"{100 * touched:g} %" for touched in TOUCHED])
    axes.set(xlabel="wrong images in the batch", ylabel="batches that raise the alarm (%)", ylim=(-3, 103))
    axes.legend(frameon=False, fontsize=11)


@styled
def plot_targets(runs: Runs, network: str, outcome: str = "accuracy") -> None:
    """An outcome against the mean score, a mark a training; hollow where a training missed its target.

    Dotted lines lie one point above and one below the mean of the accuracies without a penalty.
    """
    figure, (axes,) = panels(height=5.0)
    looks = {
        "": (INK, "P", "no penalty"), "all": (BLUE, "o", "all weights feel it"),
        "slopes": (ORANGE, "^", "slopes alone feel it"), "shifts": (VERMILION, "D", "biases alone feel it"),
        "leak": (PURPLE, "X", "fixed slope, no penalty"),
    }  # fmt: skip
    of = OUTCOMES[outcome]
    if outcome == "accuracy":
        plain = float(np.mean([of(run) for run in runs[network][Aim(None, "all")].values()]))
        for edge in (plain - POINT, plain + POINT):
            axes.axhline(edge, color=INK, linestyle=":", linewidth=1)
    named = set()
    for aim in all_aims():
        way = "" if aim == Aim(None, "all") else aim.way
        colour, mark, label = looks[way]
        for run in runs[network].get(aim, {}).values():
            if "failed" not in run:
                look: dict[str, Any] = {"color": colour, "markerfacecolor": colour if counts(run) else "none"}
                axes.plot(run["mean"], of(run), mark, label=None if way in named else label, **look)
                named.add(way)
    axes.set(xlabel="mean score of the calls after training", ylabel=LABELS[outcome])
    figure.legend(loc="outside upper center", ncols=2, frameon=False)


@styled
def plot_doses(doses: Doses, noises: Mapping[str, str]) -> None:
    """Accuracy under noise against the mean score that was reached; a panel for each network and its noise.

    Thin lines join the three trainings of a seed that feel a penalty.
    """
    looks = {
        "none": (INK, "P", "none: no penalty"), "placebo": (ORANGE, "s", "placebo: towards its own score"),
        "low": (BLUE, "o", "low: towards a lower score"), "high": (GREEN, "^", "high: towards .9"),
        "shift": (VERMILION, "D", "shifted inputs of the calls"),
    }  # fmt: skip
    _, rows = panels(len(noises), height=3.4 * len(noises))
    for axes, (network, noise) in zip(rows, noises.items(), strict=True):
        places = [
            {arm: (run["mean"], 100 * run["noise"][noise]) for arm, run in arms.items() if "failed" not in run}
            for arms in doses[network].values()
        ]
        for seed in places:
            pushed = [seed[arm] for arm in ("low", "placebo", "high") if arm in seed]
            axes.plot(*zip(*pushed, strict=True), color="#999999", linewidth=0.8, zorder=1)
        for arm, (colour, mark, label) in looks.items():
            found = [seed[arm] for seed in places if arm in seed]
            if found:
                axes.plot(*zip(*found, strict=True), mark, color=colour, label=label,
                          markerfacecolor="none" if arm == "shift" else colour)  # fmt: skip
        axes.set_title(f"{network}, noise of {noise.removeprefix('0')}")
        axes.set_ylabel("accuracy (%)")
    rows[-1].set_xlabel("mean score of the calls after training")
    legend_above(rows[0])
