"""Tests of relations between signatures and accuracy, other measures of the same calls, and families of networks.

The units are architectures, each the mean over its seeds, and intervals leave out one family at a time. ``claims.toml``
has the sentences and the rules.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from affscore_book.decade.collection import Decade, Trained, architectures, kin
from affscore_book.kit.statistics import leaving_out, student_interval
from affscore_book.kit.tables import Table
from affscore_study.decade.claims import DISTANCES, beyond_chance, by_family, common_seeds
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Worded, judged
from affscore_study.suite.compare import companion_correlations

__all__ = [
    "accuracy_claims", "family_claims", "family_distances", "member_correlations", "other_measure_claims",
    "permutation_share",
]  # fmt: skip

#: The statistics of a signature that the source uses (Figure 6).
STATISTICS: tuple[Callable[..., Any], ...] = (np.min, np.median, np.mean, np.max, np.ptp, np.std)


def _strongest(table: np.ndarray, target: np.ndarray) -> float:
    """The largest absolute correlation of a non-constant column of ``table`` (n, p) with ``target`` (n,)."""
    varied = table[:, np.ptp(table, axis=0) > 1e-12]
    return float(np.abs(np.corrcoef(varied.T, target)[:-1, -1]).max())


def accuracy_claims(decade: Decade, draws: int = 1000) -> list[Claim]:
    """Tests whether the signature predicts the accuracy better than sizes do, and better than chance (Figure 6)."""
    found = {name: list(seeds.values()) for name, seeds in architectures(decade).items()}
    target = np.array([np.mean([each.accuracy for each in seeds]) for seeds in found.values()])
    told = np.array([[np.mean([of(each.scores) for each in seeds]) for of in STATISTICS] for seeds in found.values()])
    sizes = np.array([(first.parameters, len(first.scores)) for first, *_ in found.values()], dtype=np.float64)

    def lead(kept: np.ndarray) -> float:
        return _strongest(told[kept], target[kept]) - _strongest(sizes[kept], target[kept])

    random = np.random.default_rng(0)
    own = _strongest(told, target)
    chance = float(np.mean([_strongest(told, random.permutation(target)) >= own for _ in range(draws)]))
    return judged("decade", "accuracy", {"sizes": by_family(lead, list(found)), "chance": beyond_chance(chance)})


def member_correlations(decade: Decade, families: Mapping[str, str]) -> Table:
    """The correlations of the score with other measures (Table 2), with a row for each architecture, a mean over seeds.

    An architecture that is the only one of its family here has a row for each seed. Columns: model, then the measures
    of :func:`affscore_study.suite.compare.companion_correlations`. ``families`` maps each family to the beginning of
    the names of its networks.
    """
    rows: list[dict[str, Any]] = []
    names = list(architectures(decade))
    for name in names:
        table = companion_correlations({f"{seed}": each.end for seed, each in decade[name].items()})
        keys = [key for key in table.columns if key not in ("model", "weights", "calls")]
        seeds = [{"model": name} | {key: table.row(f"{seed}")[key] for key in keys} for seed in decade[name]]
        kind = [start for start in families.values() if name.startswith(start)]
        if any(sum(each.startswith(start) for each in names) == 1 for start in kind):
            rows += seeds
        else:
            rows.append({"model": name} | {key: float(np.mean([row[key] for row in seeds])) for key in keys})
    return Table.from_rows(rows)


def other_measure_claims(decade: Decade) -> list[Claim]:
    """Tests the sentence that "no other metric ... exhibits a strong consistent correlation" (Table 2).

    The number is the strongest mean correlation of five measures, with R2 on held-out images. A family is the mean of
    its architectures. The strongest measure is chosen anew when a family is left out.
    """
    table = member_correlations(decade, {})
    family = np.array([kin(name) for name in table["model"]])
    by_kin = {measure: np.array([_finite_mean(np.array(table[measure])[family == one]) for one in np.unique(family)])
              for measure in ("CKA", "norm", "sparsity", "entropy", "R2 held out")}  # fmt: skip

    def strongest(kept: np.ndarray) -> float:
        return float(max((np.nanmean(values[kept]) for values in by_kin.values()), key=abs))

    squared = by_kin["R2 held out"]
    squared = squared[np.isfinite(squared)]
    first = max(by_kin, key=lambda measure: abs(np.nanmean(by_kin[measure])))
    count = len(np.unique(family))
    measured = {
        "strongest": Worded(leaving_out(strongest, count), {"first": first, "families": str(count)}),
        "r2": Worded(student_interval(squared), {"families": str(len(squared))}),
    }
    return judged("decade", "measures", measured)


def _finite_mean(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if len(kept) else math.nan


def family_distances(decade: Decade, of: Callable[[Trained, Trained], float]) -> tuple[list[str], np.ndarray]:
    """The names and the distances of the architectures, a symmetric array of shape (n, n) (Figure 16).

    A distance is a mean over the seeds that both architectures have.
    """
    found = architectures(decade)
    names = list(found)
    table = np.zeros((len(names), len(names)))
    for (i, one), (j, other) in itertools.combinations(enumerate(names), 2):
        common = common_seeds((one, other), decade)
        table[i, j] = table[j, i] = np.mean([of(found[one][s], found[other][s]) for s in common])
    return names, table


def permutation_share(table: np.ndarray, labels: Sequence[str], draws: int = 2000) -> float:
    """The fraction of shuffles of the labels whose families are as close as those of ``labels``.

    Closeness is the mean distance within families divided by that between families. ``table`` is symmetric of shape
    (n, n), and at least one family has two members.

    >>> table = 1.0 - np.kron(np.eye(2), np.ones((3, 3)))
    >>> round(permutation_share(table, list("aaabbb")), 1)
    0.1
    """
    upper = np.triu_indices(len(table), 1)
    codes = np.unique(labels, return_inverse=True)[1]

    def ratio(codes: np.ndarray) -> float:
        same = (codes[:, None] == codes)[upper]
        return float(table[upper][same].mean() / table[upper][~same].mean())

    random, value = np.random.default_rng(0), ratio(codes)
    return float(np.mean([ratio(random.permutation(codes)) <= value + 1e-12 for _ in range(draws)]))


def family_claims(decade: Decade) -> list[Claim]:
    """Tests whether signatures show "in a meaningful way the similarities in the architectural choices" (Figure 16)."""
    readings = {}
    for convention, of in DISTANCES.items():
        names, table = family_distances(decade, of)
        readings[convention] = beyond_chance(permutation_share(table, [kin(name) for name in names]))
    return judged("decade", "families", {"as_close": readings})
