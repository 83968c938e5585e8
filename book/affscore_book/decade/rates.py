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
from scipy import stats

from affscore_book.decade.claims import kin
from affscore_book.decade.collection import END, Trained, course
from affscore_book.decade.equal import CHANNELS, Equal
from affscore_book.decade.training import FLOORS, RECIPE
from affscore_book.kit.statistics import Interval, leaving_out
from affscore_book.kit.stored import read_results
from affscore_book.kit.training import VALIDATION

__all__ = [
    "FEW", "FOLLOWED", "OTHERS", "RATES", "SEEDS", "RateRun", "as_good_rates", "at_accuracy", "best_rates",
    "load_rates", "power", "recipe_distances", "recipe_rung", "year_correlation",
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
    """

    name: str
    rate: float
    seed: int
    accuracy: float
    validation: np.ndarray
    scores: np.ndarray
    few: float
    end: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def failed(self) -> bool:
        """Whether it is below the floor that was set for convolutional networks."""
        return not self.accuracy >= FLOORS["convolutional"]


def _means(rows: Iterable[Any]) -> np.ndarray:
    return np.array([np.nanmean(np.array(row, dtype=np.float64)) for row in rows])


def _read(content: Mapping[str, Any]) -> RateRun:
    name, rate, seed = (content[key] for key in ("network", "learning_rate", "seed"))
    if "failed" in content:
        return RateRun(name, rate, seed, math.nan, np.zeros(0), np.zeros(0), math.nan)
    moments = content["moments"]
    validation, scores = np.array([each["validation"] for each in moments]), _means(each["scores"] for each in moments)
    few = float(_means(content["few_channels"]).mean())
    end = np.array(moments[-1]["scores"], dtype=np.float64)
    return RateRun(name, rate, seed, content["accuracy"], validation, scores, few, end)


def load_rates(
    folder: str | os.PathLike[str],
    decade: Mapping[str, Mapping[int, Trained]],
    equal: Mapping[str, Equal] | None = None,
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

    Raises
    ------
    FileNotFoundError
        If no run is stored.
    ValueError
        If a file is damaged.
    """
    files = sorted(Path(folder, "rates", "results").glob("*.json"))
    if not files:
        raise FileNotFoundError(f"folder: {folder} has no runs at other rates; {SCRIPT} writes them.")
    runs = [read_results(file, _read, SCRIPT) for file in files]
    for name, seeds in decade.items():
        for seed, network in seeds.items():
            if name in FOLLOWED + OTHERS and seed < SEEDS and not _have(runs, name, seed):
                moments = course(network)
                if name in OTHERS or len(moments.steps) > 2:
                    few = math.nan
                    if equal and seed == 0:
                        few = float(np.nanmean(equal[name].channels[END, FEW]))
                    about = (name, RECIPE.learning_rate, seed, network.accuracy, moments.accuracy)
                    runs.append(RateRun(*about, _means(moments.scores), few, moments.scores[-1]))
    return runs


def _have(runs: Sequence[RateRun], name: str, seed: int) -> bool:
    return any((run.name, run.rate, run.seed) == (name, RECIPE.learning_rate, seed) for run in runs)


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
    after = int(reached[0])
    if after == 0:
        return float(run.scores[0])
    share = (level - run.validation[after - 1]) / (run.validation[after] - run.validation[after - 1])
    return float((1 - share) * run.scores[after - 1] + share * run.scores[after])


def _distances(values: Mapping[tuple[float, int], float]) -> tuple[float, float]:
    """Root mean squared difference of two rates with one seed, and of two seeds with one rate; by (rate, seed)."""

    def root(common: int) -> float:
        pairs = [(a, b) for a, b in itertools.combinations(values, 2) if a[common] == b[common]]
        squares = [(values[a] - values[b]) ** 2 for a, b in pairs]
        return math.sqrt(float(np.mean(squares))) if squares else math.nan

    return root(1), root(0)


def recipe_distances(runs: Sequence[RateRun], *, equal_accuracy: bool = True) -> dict[str, tuple[float, float]]:
    """By network: root mean squared difference of its mean score between two rates, and between two seeds.

    Networks that have no two rates or no two seeds are left out; the arguments are those of :func:`recipe_rung`.
    """
    found: dict[str, tuple[float, float]] = {}
    for name in dict.fromkeys(run.name for run in runs if run.name in FOLLOWED):
        mine = [run for run in runs if run.name == name and not run.failed]
        level = min((run.validation.max() for run in mine), default=math.nan)
        values = {(run.rate, run.seed): at_accuracy(run, level) if equal_accuracy else run.scores[-1] for run in mine}
        pair = _distances(values)
        if not any(map(math.isnan, pair)):
            found[name] = pair
    return found


def recipe_rung(runs: Sequence[RateRun], *, equal_accuracy: bool = True) -> dict[str, Interval]:
    """What another learning rate does to the mean score of a network, beside what another seed does.

    Parameters
    ----------
    runs
        Of :data:`FOLLOWED`; those that failed are left out.
    equal_accuracy
        Compare at the highest validation accuracy that every run of the network reaches; else at the end.

    Returns
    -------
    ``"rate"``, ``"seed"`` and ``"rate − seed"``: the mean over networks of the root mean squared difference, families
    left out one at a time.

    Raises
    ------
    ValueError
        If no network has two rates and two seeds.
    """
    found = recipe_distances(runs, equal_accuracy=equal_accuracy)
    if not found:
        raise ValueError("runs has no network with two rates and two seeds; it should have one.")
    table, families = np.array(list(found.values())), [kin(name) for name in found]
    columns = {"rate": table[:, 0], "seed": table[:, 1], "rate − seed": table[:, 0] - table[:, 1]}
    return {
        name: leaving_out(lambda kept, column=column: float(column[kept].mean()), len(table), families)  # type: ignore[misc]
        for name, column in columns.items()
    }


def best_rates(runs: Sequence[RateRun]) -> dict[str, float]:
    """By network, the rate with the highest validation accuracy at the end, first seed; of equals the smaller."""
    best: dict[str, RateRun] = {}
    for run in sorted(runs, key=lambda run: run.rate):
        rival = best.get(run.name)
        if run.seed == 0 and not run.failed and (rival is None or run.validation[-1] > rival.validation[-1]):
            best[run.name] = run
    return {name: run.rate for name, run in best.items()}


def as_good_rates(runs: Sequence[RateRun], images: int = VALIDATION) -> dict[str, list[float]]:
    """By network, the rates that so many validation images cannot tell from the best: within its standard error.

    First seed, as :func:`best_rates`; the standard error is that of a share, sqrt(p (1 - p) / images).

    >>> ends = {0.001: 0.90, 0.002: 0.88}
    >>> two = [RateRun("vgg11", rate, 0, 0.9, np.array([end]), np.ones(1), 0.5) for rate, end in ends.items()]
    >>> as_good_rates(two, 100), as_good_rates(two, 10_000)
    ({'vgg11': [0.001, 0.002]}, {'vgg11': [0.001]})
    """
    found = {}
    for name, best in best_rates(runs).items():
        mine = {run.rate: run.validation[-1] for run in runs if (run.name, run.seed) == (name, 0) and not run.failed}
        least = mine[best] - math.sqrt(mine[best] * (1 - mine[best]) / images)
        found[name] = sorted(rate for rate, reached in mine.items() if reached >= least)
    return found


def year_correlation(
    runs: Sequence[RateRun], years: Mapping[str, int], rates: Mapping[str, float], value: Callable[[RateRun], float]
) -> Interval:
    """Rank correlation of year and ``value``, mean over the seeds at the network's rate; families left out."""
    names = sorted(rates)
    levels = [
        float(np.mean([value(run) for run in runs if (run.name, run.rate) == (name, rates[name]) and not run.failed]))
        for name in names
    ]
    pairs = np.array([(years[name], level) for name, level in zip(names, levels, strict=True)])
    found = leaving_out(
        lambda kept: float(stats.spearmanr(*pairs[kept].T).statistic), len(names), [kin(name) for name in names]
    )
    return Interval(found.mean, max(found.low, -1.0), min(found.high, 1.0))


def power(seed_spread: Sequence[float], rate_spread: float, *, floor: float, draws: int = 400, seed: int = 0) -> float:
    """How often part one would say that the rate counts, were the truth as assumed.

    Parameters
    ----------
    seed_spread
        Standard deviations of mean scores over seeds at equal accuracy, of networks whose seeds are known; each
        network of a draw has one of them.
    rate_spread
        Root mean squared difference that the rate alone makes between two rates of a network.
    floor
        What the rule asks for.

    Returns
    -------
    The part of the draws whose interval lies above ``floor``.
    """
    generator, found = np.random.default_rng(seed), 0
    families = [kin(name) for name in FOLLOWED]
    for _ in range(draws):
        gaps = []
        for spread in generator.choice(np.asarray(seed_spread), len(FOLLOWED)):
            values = generator.normal(0, rate_spread / math.sqrt(2), (len(RATES), 1))
            values = values + generator.normal(0, spread, (len(RATES), SEEDS))
            of_rates, of_seeds = (math.sqrt(2 * float(part.var(axis=0, ddof=1).mean())) for part in (values, values.T))
            gaps.append(of_rates - of_seeds)
        table = np.array(gaps)
        found += leaving_out(lambda kept, of=table: float(of[kept].mean()), len(table), families).low > floor  # type: ignore[misc]
    return found / draws
