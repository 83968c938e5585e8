"""What the stored runs of linearised networks show: statistics with one number for each seed, and their intervals.

``book/data/linearized/make.py`` makes the runs with :func:`affscore_book.linearized.training.train`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import trapezoid
from scipy.stats import mannwhitneyu

from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import student_interval
from affscore_book.kit.stored import read_results
from affscore_book.linearized.slopes import effective_size
from affscore_book.linearized.training import TASKS

__all__ = [
    "CHANNEL_PREDICTORS",
    "LinearizedRuns",
    "linear_share",
    "load_runs",
    "over_seeds",
    "separation",
    "survivors_of",
]

SCRIPT = "book/data/linearized/make.py"
#: What may tell before the prior acts which channels survive: larger values for more likely survivors.
CHANNEL_PREDICTORS = ("score", "positive", "balance")


def separation(values: Any, survives: Any) -> tuple[float, int]:
    """How well a value tells survivors from the others: the area under the ROC curve, and the number of pairs.

    The area is the share of pairs (a survivor, another channel) in which the survivor has the larger value, ties
    counting half; NaN where there is no pair. Both arguments are (channels,); values that are NaN are left out.

    >>> separation([0.9, 0.5, 0.5, 0.1], [True, True, False, False])
    (0.875, 4)
    """
    known = np.asarray(values, dtype=np.float64)
    survivor = np.asarray(survives, dtype=bool)
    if known.shape != survivor.shape or known.ndim != 1:
        raise ValueError(f"values has shape {known.shape} and survives {survivor.shape}; both should be (channels,).")
    finite = np.isfinite(known)
    ours, others = known[finite & survivor], known[finite & ~survivor]
    pairs = len(ours) * len(others)
    return (float(mannwhitneyu(ours, others, method="asymptotic").statistic / pairs), pairs) if pairs else (math.nan, 0)


def over_seeds(
    what: str, source: str, theirs: str | float, values: Mapping[int, float], accept: tuple[float, float]
) -> Claim:
    """A claim on the mean of one value a seed, with its 95 % interval by Student's t; with one seed it has no end.

    Seeds whose value is NaN are left out. Without any, the claim says what it takes to get one.
    """
    known = [value for value in values.values() if math.isfinite(value)]
    if not known:
        return Claim(what, source, theirs, None, accept, needs=f"python {SCRIPT}")
    if len(known) == 1:
        return Claim(what, source, theirs, known[0], accept, interval=(-math.inf, math.inf))
    mean, low, high = student_interval(known)
    return Claim(what, source, theirs, mean, accept, interval=(low, high))


@dataclass(frozen=True, eq=False)
class LinearizedRuns:
    """The runs that ``book/data/linearized/make.py`` stored.

    Statistics come as one number for each seed. A seed takes part in a statistic as soon as all runs that it needs
    are there, so that a study may be read while it is still running. Accuracies are those on the test images.

    Attributes
    ----------
    settings
        By network: ``images``, ``epochs``, ``strengths`` and more.
    runs
        By network, the records of :func:`affscore_book.linearized.training.train` with their ``task`` and ``seed``,
        and ``start`` and ``strength``, or ``kept`` for a baseline that has only so many activations from the start.
    """

    settings: dict[str, dict[str, Any]]
    runs: dict[str, list[dict[str, Any]]]

    def __repr__(self) -> str:
        lines = []
        for network, records in self.runs.items():
            count, seeds = len(records), len({record["seed"] for record in records})
            settings = self.settings[network]
            lines.append(
                f"{network}: {count} runs of {seeds} seed{'s'[: seeds != 1]}, {settings['images']} images, "
                f"{settings['epochs']} epochs"
            )
        return "\n".join(lines)

    def select(self, network: str, task: str = "base", **wanted: Any) -> list[dict[str, Any]]:
        """The records of a network and a task whose entries are as wanted, say ``start="late", seed=0``."""
        if network not in self.runs:
            raise ValueError(f"network is {network!r}; there are runs of {', '.join(self.runs)}.")
        return [
            record for record in self.runs[network]
            if record["task"] == task and all(record.get(key) == value for key, value in wanted.items())
        ]  # fmt: skip

    def strengths(self, network: str) -> list[float]:
        """The strengths of the prior, in rising order."""
        return sorted(self.settings[network]["strengths"])

    def whole(self, network: str, task: str, seed: int) -> dict[str, Any] | None:
        """The run without a prior, with all activations."""
        found = self.select(network, task, seed=seed)
        return next((record for record in found if "kept" in record and not linear_share(record)), None)

    def sweep(self, network: str, task: str, start: str, seed: int) -> list[dict[str, Any]]:
        """The run without a prior and those of all strengths in rising order, or nothing where one is missing."""
        found = sorted(self.select(network, task, start=start, seed=seed), key=lambda record: record["strength"])
        whole = self.whole(network, task, seed)
        complete = [record["strength"] for record in found] == self.strengths(network)
        return [whole, *found] if whole is not None and complete else []

    def seeds(self, network: str, task: str = "base", starts: Sequence[str] = ("late",)) -> list[int]:
        """The seeds of which the sweeps from all these starts are complete."""
        every = sorted({record["seed"] for record in self.select(network, task)})
        return [seed for seed in every if all(self.sweep(network, task, start, seed) for start in starts)]

    def curve(self, network: str, task: str, start: str, seed: int, by: str = "napl") -> tuple[np.ndarray, np.ndarray]:
        """NAPL (or ``by="linear"``: share of linear channels), rising, and accuracy in per cent, of a sweep."""
        sweep = self.sweep(network, task, start, seed)
        if not sweep:
            raise ValueError(f"the {start} runs of {network} on {task!r} with seed {seed} are not complete.")
        at = np.array([linear_share(record) if by == "linear" else record["napl"] for record in sweep])
        places, which = np.unique(at, return_inverse=True)  # runs of equal NAPL become one, with their mean accuracy
        accuracies = 100 * np.array([record["accuracy"] for record in sweep])
        return places, np.bincount(which, accuracies) / np.bincount(which)

    def gap(self, network: str, task: str = "base", first: str = "late", second: str = "early") -> dict[int, float]:
        """By seed: how many points ``first`` lies above ``second``, the mean over the NAPL that both reach.

        Between runs the accuracy is interpolated in a straight line. The run without a prior belongs to both, so
        the range ends at the NAPL of the whole network.
        """
        found = {}
        for seed in self.seeds(network, task, (first, second)):
            one, other = (self.curve(network, task, start, seed) for start in (first, second))
            low, high = max(one[0][0], other[0][0]), min(one[0][-1], other[0][-1])
            knots = np.unique(np.concatenate([one[0], other[0], [low, high]]))
            knots = knots[(knots >= low) & (knots <= high)]
            difference = np.interp(knots, *one) - np.interp(knots, *other)
            width = high - low
            found[seed] = float(trapezoid(difference, knots) / width) if width > 0 else math.nan
        return found

    def linear_at_loss(
        self, network: str, task: str = "base", start: str = "late", points: float = 1.0
    ) -> dict[int, float]:
        """By seed: the largest share of linear channels up to which no more than ``points`` are lost."""
        found = {}
        for seed in self.seeds(network, task, (start,)):
            share, accuracy = self.curve(network, task, start, seed, by="linear")
            floor = accuracy[0] - points
            low = np.flatnonzero(accuracy < floor)
            if not len(low):
                found[seed] = float(share[-1])
                continue
            before, after = low[0] - 1, low[0]
            part = (accuracy[before] - floor) / (accuracy[before] - accuracy[after])
            found[seed] = float(share[before] + part * (share[after] - share[before]))
        return found

    def collapse(self, network: str, task: str = "base", start: str = "late") -> dict[int, float]:
        """By seed: points lost in the lower half of the NAPL that is reached, less those lost in the upper half."""
        found = {}
        for seed in self.seeds(network, task, (start,)):
            napl, accuracy = self.curve(network, task, start, seed)
            middle = float(np.interp((napl[0] + napl[-1]) / 2, napl, accuracy))
            found[seed] = float((middle - accuracy[0]) - (accuracy[-1] - middle))
        return found

    def above_baselines(self, network: str, task: str = "base", start: str = "late") -> dict[int, float]:
        """By seed: points by which linearised networks lie above baselines of equal NAPL, mean over the baselines.

        A baseline counts if it lacks some activations and if linearised networks of less NAPL are there.
        """
        found = {}
        for seed in self.seeds(network, task, (start,)):
            napl, accuracy = self.curve(network, task, start, seed)
            baselines = [r for r in self.select(network, task, seed=seed) if napl[0] <= r["napl"] < napl[-1] - 1e-6]
            over = [float(np.interp(r["napl"], napl, accuracy)) - 100 * r["accuracy"] for r in baselines if "kept" in r]
            found[seed] = float(np.mean(over)) if over else math.nan
        return found

    def cores(self, network: str, task: str = "base", start: str = "late") -> dict[float, list[tuple[float, float]]]:
        """By strength: :func:`effective_size`, (width, depth), of every run that is there."""
        return {
            strength: [_core(record) for record in self.select(network, task, start=start, strength=strength)]
            for strength in self.strengths(network)
        }

    def core_spread(self, network: str, task: str = "base", start: str = "late") -> tuple[float, float]:
        """Standard deviation over seeds, relative to the mean, of effective width and depth; mean over strengths.

        NaN where no strength has runs of two seeds with survivors.
        """
        spreads = []
        for sizes in self.cores(network, task, start).values():
            table = np.array([size for size in sizes if size[0] > 0])
            if len(table) > 1:
                spreads.append(table.std(axis=0, ddof=1) / table.mean(axis=0))
        width, depth = np.mean(spreads, axis=0) if spreads else (math.nan, math.nan)
        return float(width), float(depth)

    def core_ratio(
        self, network: str, which: str = "depth", task: str = "base", start: str = "late"
    ) -> dict[int, float]:
        """By seed: effective ``"width"`` or ``"depth"`` at the strongest prior, over that at the middle strength."""
        if which not in ("width", "depth"):
            raise ValueError(f"which is {which!r}; it should be 'width' or 'depth'.")
        found = {}
        for seed in self.seeds(network, task, (start,)):
            runs = self.sweep(network, task, start, seed)[1:]
            middle, strongest = (_core(run)[which == "depth"] for run in (runs[len(runs) // 2], runs[-1]))
            found[seed] = strongest / middle if middle else math.nan
        return found

    def more_survivors(self, network: str, task: str, other: str, start: str = "late") -> dict[int, float]:
        """By seed: share of non-linear channels on ``task`` less that on ``other``, mean over the strengths."""
        found = {}
        for seed in self.seeds(network, task, (start,)):
            pair = [self.sweep(network, name, start, seed)[1:] for name in (task, other)]
            if pair[1]:
                shares = np.array([[1 - linear_share(record) for record in records] for records in pair])
                found[seed] = float((shares[0] - shares[1]).mean())
        return found

    def layer_scores(self, network: str, strength: float, task: str = "base", start: str = "late") -> np.ndarray:
        """Affinity scores of the activations before the prior acts and at the end, (seeds, 2, layers)."""
        records = self.select(network, task, start=start, strength=strength)
        scores = [[r["layer_scores"][when] for when in ("before", "after")] for r in records if "layer_scores" in r]
        return np.array(scores, dtype=np.float64)

    def score_rise(self, network: str, strength: float, task: str = "base", start: str = "late") -> dict[int, float]:
        """By seed: mean affinity score of the layers at the end, less that before the prior acted."""
        found = {}
        for record in self.select(network, task, start=start, strength=strength):
            before, after = (np.array(record["layer_scores"][when], dtype=float) for when in ("before", "after"))
            found[record["seed"]] = float((after - before).mean())
        return found

    def separations(
        self, network: str, predictor: str, task: str = "base", start: str = "late", layer: int | None = None
    ) -> dict[int, float]:
        """By seed: how well a value of channels before the prior acts predicts which of them survive it.

        :func:`separation`, where only channels of the same layer are compared: the mean over layers and strengths,
        weighted by the number of pairs; or in one layer, counted from 0. Predictors: ``"score"``, one less the
        affinity score of the ReLU at that channel; ``"positive"``, one less the share of positive values;
        ``"balance"``, p (1 - p) for a share p of positive values. Dead channels have no score and are left out.
        """
        if predictor not in CHANNEL_PREDICTORS:
            raise ValueError(f"predictor is {predictor!r}; it should be one of {', '.join(CHANNEL_PREDICTORS)}.")
        found: dict[int, float] = {}
        for seed in sorted({record["seed"] for record in self.select(network, task, start=start)}):
            total, weight = 0.0, 0
            for record in self.select(network, task, start=start, seed=seed):
                names = list(record["slopes"])
                for name in names if layer is None else [names[layer]]:
                    values = _predicted(record["before"][name], predictor)
                    area, pairs = separation(values, np.array(record["slopes"][name]) != 1)
                    if pairs:
                        total, weight = total + area * pairs, weight + pairs
            found[seed] = total / weight if weight else math.nan
        return found

    def dead(self, network: str, task: str = "base", start: str = "late") -> float:
        """Share of channels without a score before the prior acts, because they are never positive."""
        records = self.select(network, task, start=start)
        scores = [score for record in records for layer in record["before"].values() for score in layer["score"]]
        return float(np.mean([score is None for score in scores])) if scores else math.nan


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
    order = ("plain", "residual", "mlp")
    files = sorted(Path(folder).glob("*.json"), key=lambda file: order.index(file.stem) if file.stem in order else 9)
    if not files:
        raise ValueError(f"folder: {folder} holds no results; python {SCRIPT} writes them.")
    found = LinearizedRuns({}, {})
    for file in files:
        found.settings[file.stem], found.runs[file.stem] = read_results(file, _settings_and_runs, SCRIPT)
    return found


def _settings_and_runs(raw: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Of one stored network, checked."""
    settings, runs = raw["settings"], list(raw["runs"].values())
    if not {"strengths", "images", "epochs"} <= set(settings):
        raise ValueError("settings are missing")
    for record in runs:
        if not (0 <= record["accuracy"] <= 1 and record["napl"] >= 0 and record["task"] in TASKS):
            raise ValueError(f"the run {record} makes no sense")
        if list(record["linear"]) != list(record["slopes"]):
            raise ValueError("layers do not agree")
    return settings, runs
