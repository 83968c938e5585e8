"""What the learning rate does to a signature, and to the history: claims on the runs of :mod:`rates`, and their table.

The rules are those of :mod:`affscore_book.decade.rates`, and stand in ``claims.toml``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import linregress, rankdata

from affscore_book.decade.collection import by_family, kin
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import (
    FEW,
    FOLLOWED,
    RATES,
    SEEDS,
    RateRun,
    as_good_rates,
    at_accuracy,
    best_rates,
    first_runs,
    history_networks,
    recipe_distances,
    recipe_rung,
)
from affscore_book.kit.tables import Table
from affscore_study.decade.claims import rank_correlation
from affscore_study.kit.claims import FLOOR, Claim
from affscore_study.kit.rules import Worded, judged

__all__ = [
    "choices_of_rates", "claims_by_rate", "power_of_rung", "rate_table", "rise_by_rate", "rung_claims",
]  # fmt: skip


def rate_table(runs: Sequence[RateRun]) -> Table:
    """Mean score and accuracy of each network of the history by learning rate, first seed.

    Columns: network; one for each rate; best rate, that with the highest validation accuracy; lowest and highest
    accuracy on the test images over the rates; runs, of all rates and seeds that are stored; what another rate and
    another seed change at equal validation accuracy, root mean square, and the ratio of the two, NaN where no two seeds
    are stored.
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
    """Does another learning rate move a mean score by more than another seed? At equal accuracy, and at the end."""
    found = {}
    for moment, equal in (("at equal validation accuracy", True), ("at the end", False)):
        names = recipe_distances(runs, equal_accuracy=equal)
        words = {"networks": str(len(names)), "families": str(len({kin(name) for name in names}))}
        found[moment] = Worded(recipe_rung(runs, equal_accuracy=equal), words)
    return judged("decade", "rung", {"rate": found})


def _level(runs: Sequence[RateRun], name: str, rate: float, of: Callable[[RateRun], float]) -> float:
    """A number of the runs of a network at a rate that did not fail, mean over the seeds."""
    return float(np.mean([of(run) for run in runs if (run.name, run.rate) == (name, rate) and not run.failed]))


def _last(run: RateRun) -> float:
    return float(run.scores[-1])


def claims_by_rate(runs: Sequence[RateRun]) -> list[Claim]:
    """Year and mean score of the history: each network at its own best rate, and all at one; also with few channels.

    The networks are those of :func:`affscore_book.decade.rates.history_networks`. The best rate is that of the first
    seed, and so are the scores with few channels.
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
    """The networks of the history whose first seed did not fail at the rate that is theirs."""
    return [name for name in history_networks(runs) if rates.get(name) in first_runs(runs, name)]


def rise_by_rate(runs: Sequence[RateRun]) -> dict[float, float]:
    """By learning rate, by how much the mean score rises in a year: least squares over the networks of the history.

    Networks that failed at a rate are left out there; scores are means over seeds, all channels.
    """
    found = {}
    for rate in RATES:
        names = _trained_at(runs, dict.fromkeys(history_networks(runs), rate))
        levels = [_level(runs, name, rate, _last) for name in names]
        found[rate] = float(linregress(_years(names), levels).slope)
    return found


def choices_of_rates(runs: Sequence[RateRun]) -> np.ndarray:
    """Rank correlation of year and mean score of the history, (choices,), for every choice of good rates.

    A network may take any rate of :func:`affscore_book.decade.rates.as_good_rates`, which its validation accuracy does
    not tell from its best; scores are means over seeds, all channels, as in :func:`claims_by_rate`.
    """
    good, names = as_good_rates(runs), history_networks(runs)
    levels = [[_level(runs, name, rate, _last) for rate in good[name]] for name in names]
    ranks, years = rankdata(np.array(list(itertools.product(*levels))), axis=1), rankdata(_years(names))
    ranks, years = ranks - ranks.mean(axis=1, keepdims=True), years - years.mean()
    return ranks @ years / (np.linalg.norm(ranks, axis=1) * np.linalg.norm(years))


def power_of_rung(runs: Sequence[RateRun], rate_spread: float) -> float:
    """How often the rule of :func:`rung_claims` would say that the rate counts, were it to move a score by so much.

    Parameters
    ----------
    runs
        The spread from seed to seed, of which each network of a draw has one, is that of the runs with several seeds,
        at equal accuracy.
    rate_spread
        Root mean squared difference that the rate alone makes between two rates of a network.

    Returns
    -------
    The part of 400 draws whose interval lies above ``FLOOR``.
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
