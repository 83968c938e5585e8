"""Tests of effects of the score, with networks trained towards a mean score in different ways (experiment E4).

The rules below were committed before the first training. ``book/data/uses/targets.py`` makes the runs.

*Trainings*: the networks of ``AIMED``, as the decade trains them, without a penalty and with the penalty
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

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from affscore_book.kit.statistics import Interval, shown, student_interval
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_book.uses.targets import COMPARED_TARGETS, OUTCOMES, TARGET_SEEDS, TARGETS, Aim, Runs, all_aims, counts
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import judged

__all__ = [
    "AIMED", "LEAK", "STRENGTH", "call_table", "change_table", "leak_claim", "outcome_table", "paired_difference",
    "slowdown", "target_claims",
]  # fmt: skip

#: Two networks of the decade: a plain stack of convolutions, and a residual network with norm.
AIMED = ("vgg11", "resnet18")
#: The strength of the penalty, by the parameters that receive its gradient (:data:`affscore_study.uses.penalty.WAYS`).
STRENGTH = {"all": 30.0, "shifts": 1000.0, "slopes": 30.0}
#: The slope of the control.
LEAK = 0.25
LEVEL = 1 - 0.05 / len(TARGETS)
RATES = "book/data/decade/rates.py"
ALL_SEEDS = "the trainings of all five seeds"


def paired_difference(
    runs: Mapping[Aim, Mapping[int, Mapping[str, Any]]], one: Aim, other: Aim, outcome: str
) -> Interval | None:
    """The mean over seeds of an outcome with one aim minus that with the other, with its interval at :data:`LEVEL`.

    It is None if a seed is missing or does not count. Raises KeyError for an unknown outcome.
    """
    pairs = [(runs.get(one, {}).get(seed), runs.get(other, {}).get(seed)) for seed in range(TARGET_SEEDS)]
    of = OUTCOMES[outcome]
    values = [of(a) - of(b) for a, b in pairs if a is not None and b is not None and counts(a) and counts(b)]
    return student_interval(values, LEVEL) if len(values) == TARGET_SEEDS else None


def target_claims(runs: Runs) -> list[Claim]:
    """Tests of both rules, with a row for each network, target and comparison."""
    found: dict[str, Interval | str] = {}
    for network in AIMED:
        of = runs.get(network, {})
        pairs = [(Aim(target, "all"), Aim(None, "all")) for target in TARGETS]
        pairs += [(Aim(t, "all"), Aim(t, way)) for way in ("slopes", "shifts") for t in COMPARED_TARGETS]
        for one, other in pairs:
            against = "no penalty" if other.target is None else f"{other.way} alone"
            missed = sum(not counts(run) for aim in (one, other) for run in of.get(aim, {}).values())
            near = f"runs that end near the target: {missed} trainings did not"
            found[f"target {one.target:g} − {against}, {network}"] = paired_difference(of, one, other, "accuracy") or (
                near if missed else ALL_SEEDS
            )
    return judged("uses", "targets", {"accuracy": found})


def leak_claim(runs: Runs, network: str = AIMED[0]) -> Claim:
    """The test of the third rule."""
    trained, fixed = Aim(COMPARED_TARGETS[-1], "slopes"), Aim(None, "leak")
    found = paired_difference(runs.get(network, {}), trained, fixed, "straightened in random order")
    (row,) = judged("uses", "leak", {"slopes": {network: found or ALL_SEEDS}})
    return row


def call_table(runs: Runs, network: str, folder: str | Path, rate: str = "1e-3") -> Table:
    """A table of the scores of the calls by target, as means over seeds, and of the decade's training at another rate.

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
    """A table of the means over seeds of each outcome, with a row for each aim.

    ``near`` is the number of trainings that ended near their target. All rows have the same seeds: those that lack a
    training with one of :data:`TARGETS`, or the one without a penalty, are left out.
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
    """A table of each outcome at each target minus that without a penalty, and at the last minus the first target.

    The last columns are for the trainings of slopes at the larger of :data:`COMPARED_TARGETS`, and for the fixed slope,
    if all seeds have them. The differences have intervals. All numbers that :func:`target_claims` and
    :func:`leak_claim` do not judge are exploratory.
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
    """The median processor time of the trainings with a penalty on all weights, as a multiple of that without one."""

    def seconds(aim: Aim) -> list[float]:
        found = [run for run in runs.get(aim, {}).values() if "failed" not in run]
        return [sum(epoch["seconds"] for epoch in run["history"]) for run in found]

    slow = [each for target in TARGETS for each in seconds(Aim(target, "all"))]
    return median(slow) / median(seconds(Aim(None, "all")))
