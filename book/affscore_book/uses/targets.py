"""Networks trained towards a mean score, and others that get there otherwise (E4): what is stored of them.

Their rules stand in ``affscore_study.uses.target_claims``; ``book/data/uses/targets.py`` makes the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_1samp

from affscore_book.decade.collection import architectures, load_decade
from affscore_book.kit.statistics import shown, student_interval
from affscore_book.kit.stored import read_results, stored_files
from affscore_book.kit.tables import Table

__all__ = [
    "COMPARED_TARGETS", "LIMIT", "OUTCOMES", "POINT", "TARGETS", "TARGET_SEEDS", "Aim", "Runs", "accuracy_spread",
    "all_aims", "counts", "load_targets", "main_slopes", "slope_over_targets",
]  # fmt: skip

TARGETS = (0.6, 0.7, 0.8, 0.9)
COMPARED_TARGETS = (0.7, 0.8)
TARGET_SEEDS = 5
LIMIT = 0.02
#: Percentage points of accuracy that would matter.
POINT = 1.0
SCRIPT = "book/data/uses/targets.py"


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
    for file in stored_files(folder, "targets/results", "trainings with a target", SCRIPT):
        run = read_results(file, dict, SCRIPT)
        aim = Aim(run["target"], run["way"])
        found.setdefault(run["network"], {}).setdefault(aim, {})[run["seed"]] = run
    return found


def counts(run: Mapping[str, Any]) -> bool:
    """Whether a run ended, and near its target; a run without a target has none to miss.

    >>> counts({"target": 0.7, "mean": 0.715}), counts({"target": 0.7, "mean": 0.73})
    (True, False)
    """
    return "failed" not in run and (run["target"] is None or abs(run["mean"] - run["target"]) <= LIMIT)


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
