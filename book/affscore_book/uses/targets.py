"""Does the score cause anything? Networks trained towards a mean score, and others that get there otherwise (E4).

The rules below were committed before the first training. ``book/data/uses/targets.py`` makes the runs.

*Trainings*: the networks of :data:`AIMED`, as the decade trains them, without a penalty and with the penalty
``STRENGTH * (mean score - target)^2`` for each of :data:`TARGETS`, from the same :data:`TARGET_SEEDS` seeds. The mean
score is that of all calls, a map averaged to one number, on batches of 128 images. *For comparison*, at
:data:`COMPARED_TARGETS`, the same penalty is felt by biases and norm shifts alone, or by the slopes of PReLUs alone,
which do not feel the loss. The decade's learning rates are a third way to another mean score; they are shown, not
judged.

A run *counts* if it ends within :data:`LIMIT` of its target. A target is judged where the runs of all seeds count.

*The question*, of each network by itself: is accuracy flat in the score? The unit is a training; trainings with and
without the penalty are paired by seed; Student's interval, at 1 - .05/4 for four targets (Bonferroni).

1.  At each judged target the accuracy with the penalty minus that without lies within :data:`POINT` point. If it
    does at all of them, the score is no handle on accuracy in this network; if it lies outside at one, it is.
2.  At each target for comparison the accuracy with the penalty minus that of another way to the same mean score lies
    within one point: what counts is the score, and not how it was reached.

All else is exploratory: noise, calibration, and the accuracy on the way to half of the calls made affine.

*A control, added after these trainings were read, its rule committed before its own first run:* VGG11 with one fixed
slope :data:`LEAK` for negative inputs in every ReLU, near the mean of those that training towards .8 had found, no
penalty, from the same seeds. What was found is that networks whose slopes the penalty trains can be made affine at a
smaller loss. Does that take the penalty?

3.  Made affine in random order, networks whose slopes were trained towards .8 keep more accuracy than those with the
    fixed slope: the interval of the difference, paired by seed, lies above 0. If it lies below, a fixed slope is
    better; if it includes 0, the penalty is not shown to do more than a leaky ReLU.

*Pilots*, before the rules, with a seed of their own: two epochs of VGG11 and one with 20,000 images of ResNet18, for
the strength and the times. Penalties of 10, 30 and 100 brought the mean score to its target; 30 was taken. Shifts alone
did not move it so far, so they have a strength of their own.

*Power*: between two seeds the test accuracy of such a network varies by .2 points (standard deviation, stored by the
decade). The interval of a mean of five paired differences then reaches .5 points to both sides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_1samp

from affscore.suite.tables import Table
from affscore_book.decade.collection import architectures, load_decade
from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import Interval, student_interval
from affscore_book.kit.stored import read_results
from affscore_book.uses.claims import shown

__all__ = [
    "AIMED", "COMPARED_TARGETS", "LEAK", "LIMIT", "OUTCOMES", "POINT", "STRENGTH", "TARGETS", "TARGET_SEEDS", "Aim",
    "Runs", "accuracy_spread", "all_aims", "call_table", "change_table", "counts", "leak_claim", "load_targets",
    "main_slopes", "outcome_table", "paired_difference", "slope_over_targets", "slowdown", "target_claims",
]  # fmt: skip

#: Of the decade: a plain stack of convolutions, and a residual network with norm.
AIMED = ("vgg11", "resnet18")
TARGETS = (0.6, 0.7, 0.8, 0.9)
COMPARED_TARGETS = (0.7, 0.8)
TARGET_SEEDS = 5
#: Of the penalty, by the parameters that feel it (:data:`affscore_book.uses.penalty.WAYS`).
STRENGTH = {"all": 30.0, "shifts": 1000.0, "slopes": 30.0}
#: The slope of the control.
LEAK = 0.25
LIMIT = 0.02
#: Percentage points of accuracy that would matter.
POINT = 1.0
LEVEL = 1 - 0.05 / len(TARGETS)
SCRIPT, RATES = "book/data/uses/targets.py", "book/data/decade/rates.py"


class Aim(NamedTuple):
    """What one training aims at: a mean score, or None without a penalty; and which parameters feel the penalty.

    ``Aim(None, "leak")`` has no penalty and fixed slopes.
    """

    target: float | None
    way: str

    @property
    def title(self) -> str:
        """As it stands in names of files.

        >>> Aim(None, "all").title, Aim(0.7, "shifts").title
        ('none', '0.7-shifts')
        """
        return ("leak" if self.way == "leak" else "none") if self.target is None else f"{self.target:g}-{self.way}"


def all_aims() -> list[Aim]:
    """All aims, in the order in which they are trained.

    >>> len(all_aims())
    10
    """
    first = [Aim(None, "all")] + [Aim(target, "all") for target in TARGETS]
    others = [Aim(target, way) for target in COMPARED_TARGETS[::-1] for way in ("slopes", "shifts")]
    return first + others + [Aim(None, "leak")]


#: By name, a number of a run, in percent or percentage points where it is an accuracy.
OUTCOMES = {
    "accuracy": lambda run: 100 * run["accuracy"],
    "with noise of .1": lambda run: 100 * run["noise"]["0.1"],
    "with noise of .2": lambda run: 100 * run["noise"]["0.2"],
    "with noise of .3": lambda run: 100 * run["noise"]["0.3"],
    "calibration error": lambda run: 100 * run["calibration"],
    "straightened in random order": lambda run: fmean(
        found for order, found in run["straightened"].items() if order.startswith("random")
    ),
    "straightened, latest first": lambda run: run["straightened"]["latest first"],
}

#: By the network's name, then the aim: the runs of its seeds.
Runs = dict[str, dict[Aim, dict[int, dict[str, Any]]]]


def load_targets(folder: str | Path) -> Runs:
    """Every stored run; ``folder`` is ``book/data/uses``.

    Raises FileNotFoundError if there is none, ValueError if a file is damaged.
    """
    found: Runs = {}
    for file in sorted((Path(folder) / "targets" / "results").glob("*.json")):
        run = read_results(file, dict, SCRIPT)
        aim = Aim(run["target"], run["way"])
        found.setdefault(run["network"], {}).setdefault(aim, {})[run["seed"]] = run
    if not found:
        raise FileNotFoundError(f"folder: {folder} has no trainings with a target; {SCRIPT} makes them.")
    return found


def counts(run: Mapping[str, Any]) -> bool:
    """Whether a run ended, and near its target; a run without a target has none to miss.

    >>> counts({"target": 0.7, "mean": 0.715}), counts({"target": 0.7, "mean": 0.73})
    (True, False)
    """
    return "failed" not in run and (run["target"] is None or abs(run["mean"] - run["target"]) <= LIMIT)


def paired_difference(
    runs: Mapping[Aim, Mapping[int, Mapping[str, Any]]], one: Aim, other: Aim, outcome: str
) -> Interval | None:
    """Mean over seeds of an outcome with one aim minus that with the other, and its interval at :data:`LEVEL`.

    None where a seed is missing or does not count. Raises KeyError for an unknown outcome.
    """
    pairs = [(runs.get(one, {}).get(seed), runs.get(other, {}).get(seed)) for seed in range(TARGET_SEEDS)]
    of = OUTCOMES[outcome]
    values = [of(a) - of(b) for a, b in pairs if a is not None and b is not None and counts(a) and counts(b)]
    return student_interval(values, LEVEL) if len(values) == TARGET_SEEDS else None


def target_claims(runs: Runs) -> list[Claim]:
    """Both rules, a row a network, target and comparison."""
    rows = []
    for network in AIMED:
        of = runs.get(network, {})
        pairs = [(Aim(target, "all"), Aim(None, "all")) for target in TARGETS]
        pairs += [(Aim(t, "all"), Aim(t, way)) for way in ("slopes", "shifts") for t in COMPARED_TARGETS]
        for one, other in pairs:
            against = "no penalty" if other.target is None else f"{other.way} alone"
            what = f"accuracy in points, target {one.target:g} − {against}, {network}"
            found, theirs = paired_difference(of, one, other, "accuracy"), f"E4: within {POINT:g} point"
            if found is not None:
                accept, bracket = (-POINT, POINT), f"{100 * LEVEL:g} %"
                rows.append(Claim.over(what, "ours, E4", theirs, found, accept, bracket=bracket, kind="own"))
                continue
            missed = sum(not counts(run) for aim in (one, other) for run in of.get(aim, {}).values())
            near = f"runs that end near the target: {missed} trainings did not"
            needs = near if missed else "the trainings of all five seeds"
            rows.append(Claim(what, "ours, E4", theirs, None, None, needs=needs, kind="own"))
    return rows


def leak_claim(runs: Runs, network: str = AIMED[0]) -> Claim:
    """The third rule."""
    trained, fixed = Aim(COMPARED_TARGETS[-1], "slopes"), Aim(None, "leak")
    found = paired_difference(runs.get(network, {}), trained, fixed, "straightened in random order")
    what = f"straightened in random order, points, slopes trained − fixed, {network}"
    source, rule = "ours, E4", "E4: above 0"
    if found is None:
        return Claim(what, source, rule, None, None, needs="the trainings of all five seeds", kind="own")
    return Claim.over(what, source, rule, found, (0, math.inf), kind="own", seen=True)


def accuracy_spread(folder: str | Path, last: int = 2019) -> str:
    """How much the test accuracy of the decade's networks differs, in words, to hold :data:`POINT` against.

    ``folder`` is ``book/data/decade``; architectures of its history up to the year ``last`` count.
    """
    found = [
        [100 * each.accuracy for each in seeds.values()]
        for seeds in architectures(load_decade(folder)).values()
        if next(iter(seeds.values())).year <= last
    ]
    over = np.std([np.mean(values) for values in found], ddof=1)
    within = np.sqrt(np.mean([np.var(values, ddof=1) for values in found if len(values) > 1]))
    return (
        f"standard deviation of the test accuracy: {over:.2f} points over {len(found)} architectures to {last}, "
        f"{within:.2f} over the seeds of one"
    )


def slope_over_targets(runs: Runs) -> Table:
    """Exploratory: points of each outcome per +.1 of the mean score, over the four targets, within a seed.

    All four trainings of a seed carry a penalty of one strength; it pulls the harder, the farther its target lies. With
    Student's 95 % intervals over seeds, and the p-values of all rows and networks together as Holm corrects them.
    """
    rows: list[tuple[str, str, list[float]]] = []
    for network, of in runs.items():
        arms = [of.get(Aim(target, "all"), {}) for target in TARGETS]
        seeds = [s for s in range(TARGET_SEEDS) if all(s in arm and "failed" not in arm[s] for arm in arms)]
        for outcome, value in OUTCOMES.items():
            slopes = [
                float(np.polyfit([arm[s]["mean"] for arm in arms], [value(arm[s]) for arm in arms], 1)[0]) / 10
                for s in seeds
            ]
            rows.append((network, outcome, slopes))
    p = [float(ttest_1samp(slopes, 0.0).pvalue) for *_, slopes in rows]
    order = np.argsort(p)
    steps = np.maximum.accumulate([(len(p) - rank) * p[at] for rank, at in enumerate(order)])
    holm = dict(zip(order.tolist(), np.minimum(steps, 1.0), strict=True))
    return Table.from_rows([
        {"network": network, "outcome": outcome, "points per +.1": shown(student_interval(slopes), 1), "p": p[at],
         "by Holm": float(holm[at])}
        for at, (network, outcome, slopes) in enumerate(rows)
    ], digits=3)  # fmt: skip


def main_slopes(runs: Runs, outcomes: Sequence[str] = (*list(OUTCOMES)[:4], "straightened in random order")) -> Table:
    """The slopes of :func:`slope_over_targets`, a row an outcome, a column a network.

    A star stands behind those whose p-value is below .05 as Holm corrects it for all outcomes and networks.
    """
    by_outcome: dict[str, dict[str, str]] = {outcome: {} for outcome in outcomes}
    for row in slope_over_targets(runs).rows():
        if row["outcome"] in by_outcome:
            star = "*" if float(row["by Holm"]) < 0.05 else ""
            by_outcome[row["outcome"]][row["network"]] = row["points per +.1"] + star
    return Table.from_rows([{"points per +.1": outcome} | found for outcome, found in by_outcome.items()])


def call_table(runs: Runs, network: str, folder: str | Path, rate: str = "1e-3") -> Table:
    """Scores of the calls, mean over seeds, by target; and those of the decade's training at a gentler rate, one seed.

    ``folder`` is ``book/data/decade``.
    """
    gentle = read_results(Path(folder) / "rates" / "results" / f"{network}-{rate}-0.json", dict, RATES)
    found = {
        "none" if aim.target is None else f"{aim.target:g}": np.mean([run["scores"] for run in of.values()], axis=0)
        for aim in all_aims()[: 1 + len(TARGETS)] if (of := runs[network].get(aim))
    }  # fmt: skip
    found["none, gentler rate"] = np.array(gentle["moments"][-1]["scores"], dtype=np.float64)
    return Table.from_rows([
        {"target": title} | {f"call {at}": float(score) for at, score in enumerate(scores, start=1)}
        for title, scores in found.items()
    ], digits=2)  # fmt: skip


def outcome_table(runs: Runs, network: str) -> Table:
    """Means over seeds, a row an aim; ``near`` says how many of the trainings ended near their target.

    Seeds that lack a training with one of :data:`TARGETS`, or the one without, are left out: the rows have the same.
    """
    rows, of = [], runs[network]
    seeds = set.intersection(*(set(of.get(aim, {})) for aim in all_aims()[: 1 + len(TARGETS)]))
    for aim in all_aims():
        found = [run for seed, run in of.get(aim, {}).items() if seed in seeds and "failed" not in run]
        if not found:
            continue
        row: dict[str, Any] = {"target": "none" if aim.target is None else f"{aim.target:g}"}
        row |= {"felt by": aim.way if aim.target is not None else "fixed slope" if aim.way == "leak" else "-"}
        row |= {"near": f"{sum(map(counts, found))} of {len(found)}", "mean score": fmean(r["mean"] for r in found)}
        rows.append(row | {name: fmean(of(run) for run in found) for name, of in OUTCOMES.items()})
    return Table.from_rows(rows, digits=2)


def change_table(runs: Runs, network: str) -> Table:
    """Each outcome at each target minus that without a penalty, and at the last minus that at the first target.

    The last columns have the slopes' trainings at the larger of :data:`COMPARED_TARGETS`, and the fixed slope, where
    all seeds have them. With intervals; all but what :func:`target_claims` and :func:`leak_claim` judge is exploratory.
    """
    none, aims = Aim(None, "all"), [Aim(target, "all") for target in TARGETS]
    columns = {f"{aim.target:g} − none": (aim, none) for aim in aims}
    columns[f"{TARGETS[-1]:g} − {TARGETS[0]:g}"] = (aims[-1], aims[0])
    slopes = Aim(COMPARED_TARGETS[-1], "slopes")
    columns |= {"slopes − none": (slopes, none), "slopes − weights": (slopes, Aim(slopes.target, "all"))}
    fixed = Aim(None, "leak")
    columns |= {"fixed − none": (fixed, none), "slopes − fixed": (slopes, fixed)}
    rows = []
    for name in OUTCOMES:
        found = {title: paired_difference(runs[network], *pair, name) for title, pair in columns.items()}
        rows.append({"outcome": name} | {title: shown(each, 1) for title, each in found.items() if each is not None})
    return Table.from_rows(rows, digits=1)


def slowdown(runs: Mapping[Aim, Mapping[int, Mapping[str, Any]]]) -> float:
    """Processor time of the trainings that all weights feel the penalty in, as a multiple of those without; medians."""

    def seconds(aim: Aim) -> list[float]:
        found = [run for run in runs.get(aim, {}).values() if "failed" not in run]
        return [sum(epoch["seconds"] for epoch in run["history"]) for run in found]

    slow = [each for target in TARGETS for each in seconds(Aim(target, "all"))]
    return median(slow) / median(seconds(Aim(None, "all")))
