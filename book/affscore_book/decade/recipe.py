"""What the learning rate does to a signature, and to the history: claims on the runs of :mod:`rates`, and their table.

The rules are those of :mod:`affscore_book.decade.rates`; what goes beyond them says that it was set after a look.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from affscore.suite.tables import Table
from affscore_book.decade.claims import ABOVE, kin
from affscore_book.decade.collection import Trained
from affscore_book.decade.networks import SETTINGS
from affscore_book.decade.rates import (
    FEW,
    FOLLOWED,
    RATES,
    RateRun,
    as_good_rates,
    at_accuracy,
    best_rates,
    power,
    recipe_distances,
    recipe_rung,
    year_correlation,
)
from affscore_book.kit.claims import FLOOR, HIGHER, Claim, side_by_side

__all__ = ["choices_of_rates", "claims_by_rate", "other_rates", "power_of_rung", "rate_table", "rung_claims"]

SOURCE = "ours, of Figure 5 A"


def rate_table(runs: Sequence[RateRun]) -> Table:
    """Mean score and accuracy of each followed network by learning rate, first seed.

    Columns: network; one for each rate; best rate, that with the highest validation accuracy; lowest and highest
    accuracy on the test images over the rates; runs, of all rates and seeds that are stored; and what another rate and
    another seed change at equal validation accuracy, root mean square, NaN where no two seeds are stored.
    """
    best, apart, rows = best_rates(runs), recipe_distances(runs), []
    for name in FOLLOWED:
        mine = {run.rate: run for run in runs if (run.name, run.seed) == (name, 0) and not run.failed}
        accuracies = [run.accuracy for run in mine.values()]
        rows.append(
            {"network": name}
            | {f"{rate:g}": float(mine[rate].scores[-1]) if rate in mine else math.nan for rate in RATES}
            | {"best rate": f"{best[name]:g}", "accuracy from": min(accuracies), "to": max(accuracies)}
            | {"runs": sum(run.name == name for run in runs)}
            | dict(zip(("another rate", "another seed"), apart.get(name, (math.nan, math.nan)), strict=True))
        )
    return Table.from_rows(rows, digits=2)


def other_rates(runs: Sequence[RateRun]) -> Callable[[Trained], list[np.ndarray]]:
    """For :func:`affscore_book.decade.variance.difference_table`: a network's signatures at its rates, first seed."""
    return lambda network: [
        run.end for run in runs if (run.name, run.seed) == (network.name, 0) and run.name in FOLLOWED and not run.failed
    ]


def rung_claims(runs: Sequence[RateRun]) -> list[Claim]:
    """Does another learning rate move a mean score by more than another seed? At equal accuracy, and at the end."""
    rows = []
    for moment, equal in (("at equal validation accuracy", True), ("at the end", False)):
        names = recipe_distances(runs, equal_accuracy=equal)
        what = f"mean score, {len(names)} networks of {len({kin(name) for name in names})} families"
        found = recipe_rung(runs, equal_accuracy=equal)["rate − seed"]
        rows.append(Claim.over(f"{what}: another learning rate − another seed ({moment})", "ours, of Appendix G",
                               "above 0.02", found, HIGHER, kind="own"))  # fmt: skip
    return rows


def claims_by_rate(runs: Sequence[RateRun]) -> list[Claim]:
    """Year and mean score of the followed networks: each at its own best rate, and all at one; also with few channels.

    The best rate is that of the first seed, and so are the scores with few channels.
    """
    years, best = {name: SETTINGS[name].year for name in FOLLOWED}, best_rates(runs)
    firsts = [run for run in runs if run.seed == 0]
    readings: Mapping[str, tuple[Sequence[RateRun], Callable[[RateRun], float]]] = {
        "all channels": (runs, lambda run: float(run.scores[-1])),
        f"{FEW} random channels a call": (firsts, lambda run: run.few),
    }
    chosen = {"each at its own best rate": {name: best[name] for name in FOLLOWED}}
    chosen |= {f"all at {rate:g}": dict.fromkeys(FOLLOWED, rate) for rate in RATES}
    rows = []
    for what, rates in chosen.items():
        claims = {
            reading: Claim.over(f"rank correlation of year and mean score, eleven networks, {what}", SOURCE, "above 0",
                                year_correlation(of, years, rates, value), ABOVE, kind="own",
                                seen=what.startswith("all"))
            for reading, (of, value) in readings.items()
        }  # fmt: skip
        rows += side_by_side("the channels", claims)
    return rows


def choices_of_rates(runs: Sequence[RateRun]) -> np.ndarray:
    """Rank correlation of year and mean score of the followed networks, (choices,), for every choice of good rates.

    A network may take any rate of :func:`affscore_book.decade.rates.as_good_rates`, which its validation accuracy does
    not tell from its best; scores are means over seeds, all channels, as in :func:`claims_by_rate`.
    """
    good = as_good_rates(runs)
    levels = [
        [
            float(np.mean([run.scores[-1] for run in runs if (run.name, run.rate) == (name, rate) and not run.failed]))
            for rate in good[name]
        ]
        for name in FOLLOWED
    ]
    ranks = rankdata(np.array(list(itertools.product(*levels))), axis=1)
    years = rankdata([SETTINGS[name].year for name in FOLLOWED])
    ranks, years = ranks - ranks.mean(axis=1, keepdims=True), years - years.mean()
    return ranks @ years / (np.linalg.norm(ranks, axis=1) * np.linalg.norm(years))


def power_of_rung(runs: Sequence[RateRun], rate_spread: float) -> float:
    """How often the rule of :func:`rung_claims` would say that the rate counts, were it to move a score by so much.

    The spread from seed to seed is that of the stored runs with several seeds, at equal accuracy.
    """
    spreads = []
    for name in FOLLOWED:
        mine = [run for run in runs if run.name == name and not run.failed]
        level = min(run.validation.max() for run in mine)
        for rate in RATES:
            found = [at_accuracy(run, level) for run in mine if run.rate == rate]
            if len(found) > 1:
                spreads.append(float(np.std(found, ddof=1)))
    return power(spreads, rate_spread, floor=FLOOR)
