"""The recipe as one more thing that two signatures may differ by: each network trained at four learning rates.

The rules below were committed before the first training. ``book/data/decade/rates.py`` makes the runs.

*Part one*: the networks of :data:`FOLLOWED` at all rates, three seeds, twelve snapshots each. How far apart are the
mean scores of two rates, when both have reached the same accuracy, and how far those of two seeds? The answer is
:func:`recipe_rung`: a rate counts if the first exceeds the second by more than ``FLOOR``, families left out one at a
time. The same at the end of the training is secondary. Runs are made by seed; until all are there, what is stored is
compared: rates with the seeds that have several, seeds at the rates that have several, the book's own first.

*Part two*: all networks of the history to 2019, when each has its own best rate (by validation accuracy of the first
seed, :func:`best_rates`). The history is there if the rank correlation of year and mean score has an interval above 0,
families left out one at a time: with all channels, and with :data:`FEW` random ones a call.

A run that ends below the floor of its kind, or whose loss is not finite, has failed. It is counted, left out, and not
repeated.

*Part one on a GPU*, a rule that was added when 56 of its 132 runs had been made on a processor, and before the first on
a GPU: all 132 are made there, each rate of each seed on the same device, and part one is decided by them. A run that is
missing there is taken from the processor's. What was made on both says what the device alone is worth: how far apart
the mean scores of equal rate and seed are (root mean squared), beside those of two rates and of two seeds. (The time on
the GPU was over after the second and the third seed and one run of the first.)
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from affscore_book.decade.collection import END, Decade, Trained, by_family, course, stored_files
from affscore_book.decade.equal import CHANNELS, Equal
from affscore_book.decade.training import FLOORS, RECIPE
from affscore_book.kit.statistics import Interval
from affscore_book.kit.stored import read_results
from affscore_book.kit.training import VALIDATION

__all__ = [
    "FEW", "FOLLOWED", "OTHERS", "RATES", "SEEDS", "RateRun", "as_good_rates", "at_accuracy", "best_rates",
    "device_distance", "first_runs", "history_networks", "load_rates", "other_rates", "recipe_distances",
    "recipe_rung",
]  # fmt: skip

#: What the networks are trained at; the book's recipe has one of them.
RATES = (0.001, 0.002, 0.004, 0.008)
#: Part one: stacks of convolutions with and without norm, residual networks, GoogLeNet, and a mobile network.
FOLLOWED = (
    "alexnet", "vgg11", "vgg13", "vgg16", "vgg11_bn", "vgg13_bn", "vgg16_bn", "resnet10", "resnet18", "mobilenet_v3",
    "googlenet",
)  # fmt: skip
SEEDS = 3
#: Part two: the other networks of the history, first seed, no snapshots.
OTHERS = ("inception_v3", "resnet34", "densenet28", "densenet40", "mobilenet_v2", "mnasnet", "efficientnet")
#: Random channels of a call.
FEW = CHANNELS[0]
SCRIPT = "book/data/decade/rates.py"


@dataclass(frozen=True)
class RateRun:
    """One training.

    Attributes
    ----------
    name, rate, seed
        Of the network, its learning rate, and the seed of start and training.
    accuracy
        On the test images; NaN where the loss was not finite.
    validation
        Accuracy on validation images at each moment that was measured, (moments,); the last is the end.
    scores
        Mean score over the calls at these moments, batch norm set at each but the last, (moments,).
    few
        Mean score at the end with :data:`FEW` random channels a call, over the draws; NaN where it was not taken.
    end
        Scores of the calls at the end, (calls,).
    device
        On which it was trained and measured: ``"cpu"`` or the name of a GPU.
    """

    name: str
    rate: float
    seed: int
    accuracy: float
    validation: np.ndarray
    scores: np.ndarray
    few: float
    end: np.ndarray = field(default_factory=lambda: np.zeros(0))
    device: str = "cpu"

    @property
    def failed(self) -> bool:
        """Whether it is below the floor that was set for convolutional networks."""
        return not self.accuracy >= FLOORS["convolutional"]


def _means(rows: Iterable[Any]) -> np.ndarray:
    return np.array([np.nanmean(np.array(row, dtype=np.float64)) for row in rows])


def _read(content: Mapping[str, Any]) -> RateRun:
    name, rate, seed = (content[key] for key in ("network", "learning_rate", "seed"))
    device = content["made_with"].get("device", "cpu")
    if "failed" in content:
        return RateRun(name, rate, seed, math.nan, np.zeros(0), np.zeros(0), math.nan, device=device)
    moments = content["moments"]
    validation, scores = np.array([each["validation"] for each in moments]), _means(each["scores"] for each in moments)
    few = float(_means(content["few_channels"]).mean())
    end = np.array(moments[-1]["scores"], dtype=np.float64)
    return RateRun(name, rate, seed, content["accuracy"], validation, scores, few, end, device)


def load_rates(
    folder: str | os.PathLike[str], decade: Decade, equal: Mapping[str, Equal], *, gpu: bool = True
) -> list[RateRun]:
    """The stored runs, and those of the decade at its own rate where they have the snapshots that are asked for.

    Parameters
    ----------
    folder
        ``book/data/decade``.
    decade
        Of :func:`affscore_book.decade.collection.load_decade`.
    equal
        Of :func:`affscore_book.decade.equal.load_equal`: scores of the decade's first seeds with :data:`FEW` channels.
    gpu
        Whether a run that was made on a GPU, too, is that one; else all are those of the processor.

    Raises
    ------
    FileNotFoundError
        If no run is stored.
    ValueError
        If a file is damaged.
    """
    files = stored_files(folder, "rates/results", "runs at other rates", SCRIPT)
    if gpu:
        files += sorted(Path(folder, "rates/gpu/results").glob("*.json"))
    read = (read_results(file, _read, SCRIPT) for file in files)
    stored, own = {(run.name, run.rate, run.seed): run for run in read}, RECIPE.learning_rate
    runs = list(stored.values())
    for name in (name for name in decade if name in FOLLOWED + OTHERS):
        for seed, network in decade[name].items():
            moments = course(network)
            if seed < SEEDS and (name, own, seed) not in stored and (name in OTHERS or len(moments.steps) > 2):
                few = float(np.nanmean(equal[name].channels[END, FEW])) if name in equal and not seed else math.nan
                scores = _means(moments.scores), few, moments.scores[-1]
                runs.append(RateRun(name, own, seed, network.accuracy, moments.accuracy, *scores))
    return runs


def first_runs(runs: Sequence[RateRun], name: str) -> dict[float, RateRun]:
    """A network's runs of the first seed that did not fail, by rate, the smallest first."""
    mine = [run for run in runs if (run.name, run.seed) == (name, 0) and not run.failed]
    return {run.rate: run for run in sorted(mine, key=lambda run: run.rate)}


def history_networks(runs: Sequence[RateRun]) -> list[str]:
    """The networks of the history that were trained at every rate with the first seed, whether a run failed or not."""
    trained = {(run.name, run.rate) for run in runs if run.seed == 0}
    return [name for name in FOLLOWED + OTHERS if all((name, rate) in trained for rate in RATES)]


def at_accuracy(run: RateRun, level: float) -> float:
    """Mean score when the validation accuracy first reaches ``level``, linear between the two moments around it.

    NaN where it never does.

    >>> run = RateRun("a", 0.001, 0, 0.9, np.array([0.1, 0.5, 0.9]), np.array([0.8, 0.6, 0.7]), math.nan)
    >>> round(at_accuracy(run, 0.7), 3)
    0.65
    """
    reached = np.flatnonzero(run.validation >= level)
    if not len(reached):
        return math.nan
    around = slice(max(0, reached[0] - 1), reached[0] + 1)
    return float(np.interp(level, run.validation[around], run.scores[around]))


def recipe_distances(runs: Sequence[RateRun], *, equal_accuracy: bool = True) -> dict[str, tuple[float, float]]:
    """By network: root mean squared difference of its mean score between two rates, and between two seeds.

    Two rates have one seed in common, two seeds one rate. Networks that have no two rates or no two seeds are left out;
    the arguments are those of :func:`recipe_rung`.
    """
    found: dict[str, tuple[float, float]] = {}
    for name in dict.fromkeys(run.name for run in runs if run.name in FOLLOWED):
        mine = [run for run in runs if run.name == name and not run.failed]
        level = min((run.validation.max() for run in mine), default=math.nan)
        values = {(run.rate, run.seed): at_accuracy(run, level) if equal_accuracy else run.scores[-1] for run in mine}
        pairs = list(itertools.combinations(values, 2))
        rates, seeds = ([(values[a] - values[b]) ** 2 for a, b in pairs if a[common] == b[common]] for common in (1, 0))
        if rates and seeds:
            found[name] = (math.sqrt(float(np.mean(rates))), math.sqrt(float(np.mean(seeds))))
    return found


def recipe_rung(runs: Sequence[RateRun], *, equal_accuracy: bool = True) -> Interval:
    """What another learning rate does to the mean score of a network, less what another seed does.

    Parameters
    ----------
    runs
        Of :data:`FOLLOWED`; those that failed are left out.
    equal_accuracy
        Compare at the highest validation accuracy that every run of the network reaches; else at the end.

    Returns
    -------
    The mean over networks of the difference of :func:`recipe_distances`, families left out one at a time.

    Raises
    ------
    ValueError
        If no network has two rates and two seeds.
    """
    found = recipe_distances(runs, equal_accuracy=equal_accuracy)
    if not found:
        raise ValueError("runs has no network with two rates and two seeds; it should have one.")
    more = np.array([rate - seed for rate, seed in found.values()])
    return by_family(lambda kept: float(more[kept].mean()), list(found))


def device_distance(runs: Sequence[RateRun], others: Sequence[RateRun]) -> tuple[int, float]:
    """How many runs of the same network, rate and seed two lists have from different devices, and how far apart they
    are: the root mean squared difference of the mean score at the end. The lists are those of :func:`load_rates`, with
    and without a GPU's.

    >>> ends = {"cpu": 0.70, "a GPU": 0.71}
    >>> runs = [RateRun("vgg11", 0.004, 0, 0.9, np.ones(1), np.array([end]), 0.5, device=device)
    ...         for device, end in ends.items()]
    >>> count, apart = device_distance(runs[:1], runs[1:])
    >>> count, round(apart, 3)
    (1, 0.01)
    """
    theirs = {(run.name, run.rate, run.seed): run for run in others if not run.failed}
    pairs = [(run, theirs.get((run.name, run.rate, run.seed))) for run in runs if not run.failed]
    gaps = [run.scores[-1] - other.scores[-1] for run, other in pairs if other and run.device != other.device]
    return len(gaps), math.sqrt(float(np.mean(np.square(gaps)))) if gaps else math.nan


def best_rates(runs: Sequence[RateRun]) -> dict[str, float]:
    """By network, the rate with the highest validation accuracy at the end, first seed; of equals the smaller."""
    found = {name: first_runs(runs, name) for name in dict.fromkeys(run.name for run in runs)}
    return {name: max(mine, key=lambda rate: mine[rate].validation[-1]) for name, mine in found.items() if mine}


def as_good_rates(runs: Sequence[RateRun]) -> dict[str, list[float]]:
    """By network, the rates that 5,000 validation images cannot tell from the best: within its standard error.

    First seed, as :func:`best_rates`; the standard error is that of a share, sqrt(p (1 - p) / images).

    >>> ends = {0.001: 0.900, 0.002: 0.896, 0.004: 0.895}
    >>> runs = [RateRun("vgg11", rate, 0, 0.9, np.array([end]), np.ones(1), 0.5) for rate, end in ends.items()]
    >>> as_good_rates(runs)
    {'vgg11': [0.001, 0.002]}
    """
    found = {}
    for name, best in best_rates(runs).items():
        reached = {rate: run.validation[-1] for rate, run in first_runs(runs, name).items()}
        least = reached[best] - math.sqrt(reached[best] * (1 - reached[best]) / VALIDATION)
        found[name] = [rate for rate, value in reached.items() if value >= least]
    return found


def other_rates(runs: Sequence[RateRun]) -> Callable[[Trained], list[np.ndarray]]:
    """For the ladder of differences: a network's signatures at its rates, first seed."""
    ends = {name: [run.end for run in first_runs(runs, name).values()] for name in FOLLOWED}
    return lambda network: ends.get(network.name, [])
