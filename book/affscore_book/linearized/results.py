"""What the stored runs of linearised networks show: statistics with one number for each seed, and their intervals.

``book/data/linearized/make.py`` makes the runs with :func:`affscore_study.linearized.training.train`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.stats import mannwhitneyu

from affscore_book.kit.stored import read_results
from affscore_book.linearized.slopes import effective_size

__all__ = [
    "CHANNEL_PREDICTORS",
    "STARTS",
    "TASKS",
    "LinearizedRuns",
    "linear_share",
    "load_runs",
    "mean_height",
    "separation",
    "survivors_of",
]

SCRIPT = "book/data/linearized/make.py"
#: The cycle during which the prior acts, counted from 0.
STARTS = {"early": 0, "middle": 1, "late": 2}
#: See :func:`affscore_study.linearized.training.task_data`; the first is what the others change.
TASKS = ("base", "three classes", "label noise", "less data")
#: What may tell before the prior acts which channels survive: larger values for more likely survivors.
CHANNEL_PREDICTORS = ("score", "positive", "balance")


def separation(values: Any, survives: Any) -> tuple[float, int]:
    """How well a value tells survivors from the others: the area under the ROC curve, and the number of pairs.

    The area is the share of pairs (a survivor, another channel) in which the survivor has the larger value, ties
    counting half; NaN where there is no pair. Both arguments are (channels,); values that are NaN are left out.

    >>> separation([0.9, 0.5, 0.5, 0.1], [True, True, False, False])
    (0.875, 4)
    """
    known, survivor = np.asarray(values, dtype=np.float64), np.asarray(survives, dtype=bool)
    finite = np.isfinite(known)
    ours, others = known[finite & survivor], known[finite & ~survivor]
    pairs = len(ours) * len(others)
    return (float(mannwhitneyu(ours, others, method="asymptotic").statistic / pairs), pairs) if pairs else (math.nan, 0)


@dataclass(frozen=True, eq=False)
class LinearizedRuns:
    """The runs that ``book/data/linearized/make.py`` stored.

    Statistics come as one number for each seed, and are those of the late runs on the task ``base`` where they do not
    say otherwise. Accuracies are those on the test images.

    Attributes
    ----------
    settings
        By network: ``images``, ``epochs``, ``strengths`` and more.
    runs
        By network, the records of :func:`affscore_study.linearized.training.train` with their ``task`` and ``seed``,
        and ``start`` and ``strength``, or ``kept`` for a baseline that has only so many activations from the start.
    between
        By network, late runs at further strengths, which were made later: they count where the share of channels is
        asked for that goes for a point.
    """

    settings: dict[str, dict[str, Any]]
    runs: dict[str, list[dict[str, Any]]]
    between: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "\n".join(
            f"{network}: {len(records)} runs of {len({record['seed'] for record in records})} seeds, "
            f"{self.settings[network]['images']} images, {self.settings[network]['epochs']} epochs"
            for network, records in self.runs.items()
        )

    def select(self, network: str, task: str = "base", **wanted: Any) -> list[dict[str, Any]]:
        """The records of a network and a task whose entries are as wanted, say ``start="late", seed=0``."""
        if network not in self.runs:
            raise ValueError(f"network is {network!r}; there are runs of {', '.join(self.runs)}.")
        wanted["task"] = task
        return [
            record for record in self.runs[network] if all(record.get(key) == value for key, value in wanted.items())
        ]

    def strengths(self, network: str) -> list[float]:
        """The strengths of the prior, in rising order."""
        return sorted(self.settings[network]["strengths"])

    def sweep(self, network: str, task: str, start: str, seed: int) -> list[dict[str, Any]]:
        """The run without a prior, and those of all strengths in rising order."""
        records = self.select(network, task, seed=seed)
        whole = [record for record in records if "kept" in record and not linear_share(record)]
        found = [record for record in records if record.get("start") == start]
        return whole + sorted(found, key=lambda record: record["strength"])

    def seeds(self, network: str, task: str = "base") -> list[int]:
        """The seeds of the runs, in rising order."""
        return sorted({record["seed"] for record in self.select(network, task)})

    def curve(
        self, network: str, seed: int, task: str = "base", start: str = "late", by: str = "napl", whole: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """NAPL (or ``by="linear"``: share of linear channels), rising, and accuracy in per cent, of a sweep.

        Without the run that has no prior unless ``whole``.
        """
        sweep = self.sweep(network, task, start, seed)[0 if whole else 1 :]
        at = np.array([linear_share(record) if by == "linear" else record["napl"] for record in sweep])
        places, which = np.unique(at, return_inverse=True)  # runs of equal NAPL become one, with their mean accuracy
        accuracies = 100 * np.array([record["accuracy"] for record in sweep])
        return places, np.bincount(which, accuracies) / np.bincount(which)

    def gap(self, network: str, task: str = "base", first: str = "late", whole: bool = True) -> dict[int, float]:
        """By seed: how many points ``first`` lies above early, the mean over the NAPL that both reach.

        Between runs the accuracy is interpolated in a straight line. The run without a prior belongs to both curves:
        with it the range ends at the NAPL of the whole network, where the gap is 0. Without it (``whole=False``) the
        range ends where the weakest prior leaves one of the two.
        """
        return {
            seed: mean_height(*(self.curve(network, seed, task, start, whole=whole) for start in (first, "early")))
            for seed in self.seeds(network, task)
        }

    def above(self, network: str, other: str) -> dict[int, float]:
        """By seed: how many points ``network`` lies above ``other``, the mean over the NAPL that both reach.

        As :meth:`gap`, with the late runs of two networks; those of one seed begin with different weights.
        """
        return {seed: mean_height(self.curve(network, seed), self.curve(other, seed)) for seed in self.seeds(network)}

    def error(self, network: str, task: str = "base") -> dict[int, float]:
        """By seed: test errors of the network without a prior, in per cent of the images."""
        return {
            seed: 100 * (1 - self.sweep(network, task, "late", seed)[0]["accuracy"])
            for seed in self.seeds(network, task)
        }

    def shares_and_accuracy(self, network: str, seed: int, task: str = "base") -> tuple[np.ndarray, np.ndarray]:
        """Share of linear channels, rising, and accuracy in per cent, of all late runs and the one without a prior."""
        between = [r for r in self.between.get(network, []) if (r["task"], r["seed"]) == (task, seed)]
        share, accuracy = self.curve(network, seed, task, by="linear")
        share = np.concatenate([share, [linear_share(record) for record in between]])
        accuracy = np.concatenate([accuracy, [100 * record["accuracy"] for record in between]])
        order = np.argsort(share)
        return share[order], accuracy[order]

    def linear_at_loss(self, network: str, task: str = "base") -> dict[int, float]:
        """By seed: the largest share of linear channels up to which no more than one point is lost."""
        found = {}
        for seed in self.seeds(network, task):
            share, accuracy = self.shares_and_accuracy(network, seed, task)
            floor = accuracy[0] - 1
            below = np.flatnonzero(accuracy < floor)
            around = [below[0], below[0] - 1] if len(below) else [-1]
            found[seed] = float(np.interp(floor, accuracy[around], share[around]))
        return found

    def collapse(self, network: str) -> dict[int, float]:
        """By seed: points lost in the lower half of the NAPL that is reached, minus those lost in the upper half."""
        found = {}
        for seed in self.seeds(network):
            napl, accuracy = self.curve(network, seed)
            middle = float(np.interp((napl[0] + napl[-1]) / 2, napl, accuracy))
            found[seed] = float((middle - accuracy[0]) - (accuracy[-1] - middle))
        return found

    def above_baselines(self, network: str) -> dict[int, float]:
        """By seed: points by which linearised networks lie above baselines of equal NAPL, mean over the baselines.

        A baseline counts if it lacks some activations and if linearised networks of less NAPL are there.
        """
        found = {}
        for seed in self.seeds(network):
            napl, accuracy = self.curve(network, seed)
            baselines = [r for r in self.select(network, seed=seed) if napl[0] <= r["napl"] < napl[-1] - 1e-6]
            over = [float(np.interp(r["napl"], napl, accuracy)) - 100 * r["accuracy"] for r in baselines if "kept" in r]
            found[seed] = float(np.mean(over)) if over else math.nan
        return found

    def cores(self, network: str, task: str = "base") -> dict[float, list[tuple[float, float]]]:
        """By strength: :func:`effective_size`, (width, depth), of every late run."""
        return {
            strength: [_core(record) for record in self.select(network, task, start="late", strength=strength)]
            for strength in self.strengths(network)
        }

    def core_ratio(self, network: str, which: str) -> dict[int, float]:
        """By seed: effective ``"width"`` or ``"depth"`` at the strongest prior, over that at the middle strength.

        0 where nothing is left at the strongest; NaN where nothing is left at the middle one.
        """
        found = {}
        for seed in self.seeds(network):
            runs = self.sweep(network, "base", "late", seed)[1:]
            middle, strongest = (_core(run)[which == "depth"] for run in (runs[len(runs) // 2], runs[-1]))
            found[seed] = strongest / middle if middle else math.nan
        return found

    def more_survivors(self, network: str, task: str, other: str) -> dict[int, float]:
        """By seed: share of non-linear channels on ``task`` minus that on ``other``, mean over the strengths.

        Where one point is lost it is the difference of two :meth:`linear_at_loss`.
        """
        found = {}
        for seed in self.seeds(network, task):
            pairs = zip(*(self.sweep(network, name, "late", seed)[1:] for name in (task, other)), strict=True)
            found[seed] = float(np.mean([linear_share(less) - linear_share(more) for more, less in pairs]))
        return found

    def separations(self, network: str, predictor: str, task: str = "base") -> dict[int, float]:
        """By seed: how well a value of channels before the prior acts predicts which of them survive it.

        :func:`separation`, where only channels of the same layer are compared: the mean over layers and strengths,
        weighted by the number of pairs. Predictors: ``"score"``, 1 minus the affinity score of the ReLU at that
        channel; ``"positive"``, 1 minus the share of positive values; ``"balance"``, p (1 - p) for a share p of
        positive values. Dead channels have no score and are left out. A predictor whose mean is below a half tells as
        much with its sign turned, and is turned.
        """
        found = {}
        for seed in self.seeds(network, task):
            areas = [
                separation(_predicted(record["before"][name], predictor), np.array(record["slopes"][name]) != 1)
                for record in self.select(network, task, start="late", seed=seed)
                for name in record["slopes"]
            ]
            weight = sum(pairs for _, pairs in areas)
            found[seed] = sum(area * pairs for area, pairs in areas if pairs) / weight if weight else math.nan
        if found and float(np.mean(list(found.values()))) < 0.5:
            return {seed: 1 - area for seed, area in found.items()}
        return found

    def dead(self, network: str) -> float:
        """Share of channels without a score before the prior acts, because they are never positive."""
        records = self.select(network, start="late")
        scores = [score for record in records for layer in record["before"].values() for score in layer["score"]]
        return float(np.mean([score is None for score in scores]))


def mean_height(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> float:
    """How far a curve lies above another, the mean over the places that both reach; NaN if there are none."""
    low, high = max(one[0][0], other[0][0]), min(one[0][-1], other[0][-1])
    knots = np.unique(np.concatenate([one[0], other[0], [low, high]]))
    knots = knots[(knots >= low) & (knots <= high)]
    difference = np.interp(knots, *one) - np.interp(knots, *other)
    return float(trapezoid(difference, knots) / (high - low)) if high > low else math.nan


def _core(record: Mapping[str, Any]) -> tuple[float, float]:
    return effective_size(list(survivors_of(record).values()))


def _predicted(channels: dict[str, list[float]], predictor: str) -> np.ndarray:
    score = np.array(channels["score"], dtype=np.float64)  # None, for a dead channel, becomes NaN
    positive = np.where(np.isfinite(score), np.array(channels["positive"], dtype=np.float64), math.nan)
    return {"score": 1 - score, "positive": 1 - positive, "balance": positive * (1 - positive)}[predictor]


def survivors_of(record: Mapping[str, Any]) -> dict[str, int]:
    """Number of non-linear channels by layer of a stored run."""
    return {name: len(slopes) - record["linear"][name] for name, slopes in record["slopes"].items()}


def linear_share(record: Mapping[str, Any]) -> float:
    """Share of linear channels of a stored run."""
    return sum(record["linear"].values()) / sum(map(len, record["slopes"].values()))


def load_runs(folder: str | os.PathLike[str]) -> LinearizedRuns:
    """Read what ``book/data/linearized/make.py`` wrote into a folder: one JSON file for each network.

    Raises
    ------
    ValueError
        If there is no such file, or one of them is damaged.
    """
    found = LinearizedRuns({}, {})
    for name in ("plain", "residual", "mlp"):
        if (file := Path(folder) / f"{name}.json").exists():
            found.settings[name], found.runs[name] = read_results(file, _settings_and_runs, SCRIPT)
    if (file := Path(folder) / "between.json").exists():
        _, found.between["mlp"] = read_results(file, _settings_and_runs, f"{SCRIPT} --network between")
    if not found.runs:
        raise ValueError(f"folder: {folder} holds no results; python {SCRIPT} writes them.")
    return found


def _settings_and_runs(raw: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Of one stored network, checked."""
    runs = list(raw["runs"].values())
    for record in runs:
        if not (0 <= record["accuracy"] <= 1 and record["napl"] >= 0 and record["task"] in TASKS):
            raise ValueError(f"the run {record} makes no sense")
    return raw["settings"], runs
