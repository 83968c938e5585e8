"""The effect of the training recipe on signatures, measured with networks trained at four learning rates.

The rules below were committed before the first training, and stand in ``claims.toml``. ``book/data/decade/rates.py``
makes the runs, and :mod:`affscore_book.decade.rates` reads them.

*Part one*: the networks of ``FOLLOWED`` at all rates, three seeds, twelve snapshots each. How far apart are the mean
scores of two rates, when both have reached the same accuracy, and how far those of two seeds? The answer is
:func:`recipe_rung`: a rate counts if the first exceeds the second by more than ``FLOOR``, families left out one at a
time. The same at the end of the training is secondary. Runs are made by seed; until all are there, what is stored is
compared: rates with the seeds that have several, seeds at the rates that have several, the book's own first.

*Part two*: all networks of the history to 2019, when each has its own best rate (by validation accuracy of the first
seed, :func:`best_rates`). The history is there if the rank correlation of year and mean score has an interval above 0,
families left out one at a time: with all channels, and with ``FEW`` random ones a call.

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
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import linregress, rankdata

from affscore_book.decade.collection import kin
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import (
    FEW,
    FOLLOWED,
    OTHERS,
    RATES,
    SEEDS,
    RateRun,
    first_runs,
)
from affscore_book.kit.statistics import Interval
from affscore_book.kit.tables import Table
from affscore_book.kit.training import VALIDATION
from affscore_study.decade.claims import by_family, rank_correlation
from affscore_study.kit.claims import FLOOR, Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "as_good_rates", "at_accuracy", "best_rates", "choices_of_rates", "claims_by_rate", "device_distance",
    "history_networks", "power_of_rung", "rate_table", "recipe_distances", "recipe_rung", "rise_by_rate", "rung_claims",
]  # fmt: skip


def history_networks(runs: Sequence[RateRun]) -> list[str]:
    """The networks of the history that were trained at every rate with the first seed; failed runs count as well."""
    trained = {(run.name, run.rate) for run in runs if run.seed == 0}
    return [name for name in FOLLOWED + OTHERS if all((name, rate) in trained for rate in RATES)]


def at_accuracy(run: RateRun, level: float) -> float:
    """The mean score at the moment when the validation accuracy first reaches ``level``; NaN if it never does.

    The score is interpolated linearly between the two snapshots around that moment.

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
    """For each network, the root mean squared differences of its mean score between two rates and between two seeds.

    Two rates are compared for one seed, and two seeds at one rate. Networks without two rates or without two seeds are
    left out. The arguments are those of :func:`recipe_rung`.
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
    """The effect of another learning rate on the mean score of a network, minus the effect of another seed.

    Parameters
    ----------
    runs
        Runs of the networks :data:`FOLLOWED`; those that failed are left out.
    equal_accuracy
        Compare at the highest validation accuracy that every run of the network reaches; otherwise at the end.

    Returns
    -------
    The mean over networks of the difference of :func:`recipe_distances`. Its interval leaves out one family at a time.

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
    """The number of runs that two lists have from different devices, and the difference between their scores.

    Runs are compared if they have the same network, rate and seed. The difference is the root mean squared difference
    of the mean scores at the end, or NaN without such runs. The lists are those of :func:`load_rates`, with and without
    a GPU's runs.

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
    """For each network, the rate with the highest validation accuracy of the first seed at the end.

    If two rates are equally good, the smaller one is chosen.
    """
    found = {name: first_runs(runs, name) for name in dict.fromkeys(run.name for run in runs)}
    return {name: max(mine, key=lambda rate: mine[rate].validation[-1]) for name, mine in found.items() if mine}


def as_good_rates(runs: Sequence[RateRun]) -> dict[str, list[float]]:
    """For each network, the rates whose accuracy on 5,000 validation images is within a standard error of the best.

    The first seed is used, as in :func:`best_rates`. The standard error is that of a proportion,
    sqrt(p (1 - p) / images).

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


def rate_table(runs: Sequence[RateRun]) -> Table:
    """A table of the mean score and the accuracy of each network of the history by learning rate, for the first seed.

    Columns: network; the mean score at each rate; best rate, the one with the highest validation accuracy; lowest and
    highest accuracy on the test images over the rates; runs, the number of stored ones of all rates and seeds; the root
    mean squared differences between two rates and between two seeds at equal validation accuracy, and the ratio of the
    two, which are NaN if no two seeds are stored.
    """
    best, apart, rows = best_rates(runs), recipe_distances(runs), []
    for name in history_networks(runs):
        mine = first_runs(runs, name)
        accuracies = [run.accuracy for run in mine.values()]
        rate, seed = apart.get(name, (math.nan, math.nan))
        rows.append(
            {"network": name}
            | {f"{rate:g}": float(mine[rate].scores[-1]) if rate in mine else math.nan for rate in RATES}
            | {"best rate": f"{best[name]:g}", "accuracy from": min(accuracies), "to": max(accuracies)}
            | {"runs": sum(run.name == name for run in runs)}
            | {"another rate": rate, "another seed": seed, "rate / seed": rate / seed}
        )
    return Table.from_rows(rows, digits=2)


def rung_claims(runs: Sequence[RateRun]) -> list[Claim]:
    """Tests whether the learning rate changes a mean score more than the seed, at equal accuracy and at the end."""
    found = {}
    for moment, equal in (("at equal validation accuracy", True), ("at the end", False)):
        names = recipe_distances(runs, equal_accuracy=equal)
        words = {"networks": str(len(names)), "families": str(len({kin(name) for name in names}))}
        found[moment] = Worded(recipe_rung(runs, equal_accuracy=equal), words)
    return judged("decade", "rung", {"rate": found})


def _level(runs: Sequence[RateRun], name: str, rate: float, of: Callable[[RateRun], float]) -> float:
    """The mean over the seeds of a number of the runs of a network at a rate, without failed runs."""
    return float(np.mean([of(run) for run in runs if (run.name, run.rate) == (name, rate) and not run.failed]))


def _last(run: RateRun) -> float:
    return float(run.scores[-1])


def claims_by_rate(runs: Sequence[RateRun]) -> list[Claim]:
    """Tests of the correlation of year and mean score with each network at its own best rate, and with all at one rate.

    Both use all channels and few channels. The networks are those of :func:`history_networks`. The best rate and the
    scores with few channels are those of the first seed.
    """
    best, firsts = best_rates(runs), [run for run in runs if run.seed == 0]
    chosen = {"each at its own best rate": best} | {f"all at {rate:g}": dict.fromkeys(best, rate) for rate in RATES}
    found: dict[str, dict[str, Worded]] = {}
    for what, rates in chosen.items():
        names = _trained_at(runs, rates)
        levels = {
            "all channels": [_level(runs, name, rates[name], _last) for name in names],
            f"{FEW} random channels a call": [_level(firsts, name, rates[name], lambda run: run.few) for name in names],
        }
        years, words = _years(names), {"networks": str(len(names))}
        found[what] = {
            reading: Worded(rank_correlation(years, np.array(level), names), words) for reading, level in levels.items()
        }
    return judged("decade", "by_rate", {"rise": found})


def _years(names: Sequence[str]) -> list[int]:
    return [SETTINGS[name].year for name in names]


def _trained_at(runs: Sequence[RateRun], rates: Mapping[str, float]) -> list[str]:
    """The networks of the history whose first seed did not fail at the given rate of the network."""
    return [name for name in history_networks(runs) if rates.get(name) in first_runs(runs, name)]


def rise_by_rate(runs: Sequence[RateRun]) -> dict[float, float]:
    """For each learning rate, the rise of the mean score in a year, by least squares over the networks of the history.

    Networks that failed at a rate are left out at that rate. Scores are means over seeds, with all channels.
    """
    found = {}
    for rate in RATES:
        names = _trained_at(runs, dict.fromkeys(history_networks(runs), rate))
        levels = [_level(runs, name, rate, _last) for name in names]
        found[rate] = float(linregress(_years(names), levels).slope)
    return found


def choices_of_rates(runs: Sequence[RateRun]) -> np.ndarray:
    """The rank correlations of year and mean score of the history for every choice of good rates, shape (choices,).

    A network may have any rate of :func:`as_good_rates`, which its validation accuracy does not distinguish from its
    best one. Scores are means over seeds, with all channels, as in :func:`claims_by_rate`.
    """
    good, names = as_good_rates(runs), history_networks(runs)
    levels = [[_level(runs, name, rate, _last) for rate in good[name]] for name in names]
    ranks, years = rankdata(np.array(list(itertools.product(*levels))), axis=1), rankdata(_years(names))
    ranks, years = ranks - ranks.mean(axis=1, keepdims=True), years - years.mean()
    return ranks @ years / (np.linalg.norm(ranks, axis=1) * np.linalg.norm(years))


def power_of_rung(runs: Sequence[RateRun], rate_spread: float) -> float:
    """The power of the rule of :func:`rung_claims` if the rate changes a mean score by ``rate_spread``.

    Parameters
    ----------
    runs
        The runs with several seeds give the spread between seeds at equal accuracy. Each network of a draw has one of
        these spreads.
    rate_spread
        The root mean squared difference that the rate alone makes between two rates of a network.

    Returns
    -------
    The fraction of 400 draws whose interval lies above ``FLOOR``.
    """
    spreads = []
    for name in FOLLOWED:
        mine = [run for run in runs if run.name == name and not run.failed]
        level = min(run.validation.max() for run in mine)
        for rate in RATES:
            scores = [at_accuracy(run, level) for run in mine if run.rate == rate]
            if len(scores) > 1:
                spreads.append(float(np.std(scores, ddof=1)))
    generator, draws, found = np.random.default_rng(0), 400, 0
    for _ in range(draws):
        gaps = []
        for spread in generator.choice(spreads, len(FOLLOWED)):
            values = generator.normal(0, rate_spread / math.sqrt(2), (len(RATES), 1))
            values = values + generator.normal(0, spread, (len(RATES), SEEDS))
            of_rates, of_seeds = (math.sqrt(2 * float(part.var(axis=0, ddof=1).mean())) for part in (values, values.T))
            gaps.append(of_rates - of_seeds)
        table = np.array(gaps)
        found += by_family(lambda kept, of=table: float(of[kept].mean()), FOLLOWED).low > FLOOR  # type: ignore[misc]
    return found / draws
