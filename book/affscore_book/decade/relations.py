"""What goes with a signature: accuracy, other measures of the same calls, and the family of the network.

Architectures are the results here, each taken as the mean over its seeds; intervals leave one out at a time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from affscore.suite.comparable import sequence
from affscore.suite.compare import companion_correlations
from affscore.suite.distances import dtw
from affscore.suite.tables import Table
from affscore_book.decade.claims import architectures
from affscore_book.decade.collection import END, Trained
from affscore_book.kit.claims import Claim
from affscore_book.kit.statistics import leaving_out, student_interval

__all__ = [
    "KIN", "accuracy_claims", "accuracy_table", "family_claims", "family_distances", "measure_correlations",
    "other_measure_claims", "permutation_share",
]  # fmt: skip

Decade = Mapping[str, Mapping[int, Trained]]

#: What the source reads off a signature (Figure 6), and what it compares that with.
STATISTICS: dict[str, Callable[..., Any]] = {
    "min": np.min, "median": np.median, "mean": np.mean, "max": np.max, "spread": np.ptp, "std": np.std,
}  # fmt: skip
SIZES = ("parameters", "calls")
#: Which networks are of one kind: how their names begin.
KIN = (
    "alexnet", "vgg", "googlenet", "inception", "resnet", "densenet", "mobilenet", "mnasnet", "efficientnet", "vit",
    "swin", "convnext",
)  # fmt: skip
#: A mean correlation of this size would be strong. The largest in the source's Table 2 is 0.44.
STRONG = 0.5


def _scores(network: Trained) -> np.ndarray:
    return sequence(network.signatures[END, "spatial"])


def accuracy_table(decade: Decade) -> Table:
    """By architecture: accuracy, the statistics of its scores, and its sizes, means over the seeds."""
    rows = []
    for name, seeds in architectures(decade).items():
        networks = list(seeds.values())
        row = {"network": name, "accuracy": float(np.mean([each.accuracy for each in networks]))}
        row |= {key: float(np.mean([of(_scores(each)) for each in networks])) for key, of in STATISTICS.items()}
        rows.append(row | {"parameters": networks[0].parameters, "calls": len(_scores(networks[0]))})
    return Table.from_rows(rows, digits=3)


def _strongest(table: np.ndarray, target: np.ndarray) -> float:
    """The largest absolute correlation of a column of (n, p) with a target (n,); columns without spread are out."""
    varied = table[:, np.ptp(table, axis=0) > 1e-12]
    return float(np.abs(np.corrcoef(varied.T, target)[:-1, -1]).max())


def accuracy_claims(decade: Decade, draws: int = 1000) -> list[Claim]:
    """Figure 6: does the signature tell more of the accuracy than the sizes do? And is it more than chance?"""
    found = accuracy_table(decade)
    target = np.array(found["accuracy"], dtype=np.float64)
    told, sizes = (np.array([found[key] for key in keys], dtype=np.float64).T for keys in (list(STATISTICS), SIZES))

    def lead(kept: np.ndarray) -> float:
        return _strongest(told[kept], target[kept]) - _strongest(sizes[kept], target[kept])

    value, low, high = leaving_out(lead, len(target))
    random = np.random.default_rng(0)
    own = _strongest(told, target)
    chance = float(np.mean([_strongest(told, random.permutation(target)) >= own for _ in range(draws)]))
    return [
        Claim("strongest correlation with accuracy: scores less sizes", "CVPR 2025, Figure 6", "above 0",
              value, (0, math.inf), interval=(low, high)),
        Claim("part of shuffled accuracies that the scores tell as well", "ours, of Figure 6", "at most 0.05",
              chance, (0, 0.05), kind="own"),
    ]  # fmt: skip


def measure_correlations(decade: Decade) -> Table:
    """Table 2 of the source for each architecture: correlations of the score with other measures, mean over seeds.

    Columns: model, then the measures of :func:`affscore.suite.compare.companion_correlations`.
    """
    rows = []
    for name, seeds in architectures(decade).items():
        table = companion_correlations({f"{s}": each.signatures[END, "spatial"] for s, each in seeds.items()})
        rows.append({"model": name} | {key: table.row("mean")[key] for key in table.columns if key not in
                                       ("model", "weights", "calls")})  # fmt: skip
    return Table.from_rows(rows)


def other_measure_claims(decade: Decade) -> list[Claim]:
    """Table 1: "no other metric ... exhibits a strong consistent correlation"; the strongest of five, R2 held out."""
    table = measure_correlations(decade)
    means = {}
    for measure in ("CKA", "norm", "sparsity", "entropy", "R2 held out"):
        means[measure] = student_interval([value for value in table[measure] if math.isfinite(value)])
    strongest = max(means, key=lambda measure: abs(means[measure].mean))
    found = means[strongest]
    squared = means["R2 held out"]
    return [
        Claim(f"strongest mean correlation ({strongest})", "CVPR 2025, Table 2", "-0.44 (norm)", found.mean,
              (-STRONG, STRONG), interval=found[1:]),
        Claim("mean correlation with R2 (held out)", "CVPR 2025, section 3.1, R2 on networks", "not consistent",
              squared.mean, (-STRONG, STRONG), interval=squared[1:]),
    ]  # fmt: skip


def family_distances(decade: Decade) -> tuple[list[str], np.ndarray]:
    """Names, and the DTW distance between each two architectures, mean over the seeds that both have (Figure 16)."""
    found = architectures(decade)
    names = list(found)
    table = np.zeros((len(names), len(names)))
    for (i, one), (j, other) in itertools.combinations(enumerate(names), 2):
        common = sorted(set(found[one]) & set(found[other]))
        table[i, j] = table[j, i] = np.mean([dtw(_scores(found[one][s]), _scores(found[other][s])) for s in common])
    return names, table


def _family(name: str) -> str:
    return next(family for family in KIN if name.startswith(family))


def permutation_share(
    table: np.ndarray, labels: Sequence[str], draws: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """How much closer members of one family are, and the part of shuffled labels that are as close.

    The first is the mean distance within over the mean distance between families. ``table`` is (n, n) and symmetric; at
    least one family has two members.

    >>> table = 1.0 - np.kron(np.eye(2), np.ones((3, 3)))
    >>> [round(x, 1) for x in permutation_share(table, list("aaabbb"))]
    [0.0, 0.1]
    """
    upper = np.triu_indices(len(table), 1)
    codes = np.unique(labels, return_inverse=True)[1]

    def ratio(codes: np.ndarray) -> float:
        same = (codes[:, None] == codes)[upper]
        return float(table[upper][same].mean() / table[upper][~same].mean())

    random, value = np.random.default_rng(seed), ratio(codes)
    return value, float(np.mean([ratio(random.permutation(codes)) <= value + 1e-12 for _ in range(draws)]))


def family_claims(decade: Decade) -> list[Claim]:
    """Figure 5 B: do signatures "identify in a meaningful way the similarities in the architectural choices"?"""
    names, table = family_distances(decade)
    _, part = permutation_share(table, [_family(name) for name in names])
    return [Claim("part of shuffled families that are as close", "CVPR 2025, Figure 16 and section 1",
                  "meaningful: at most 0.05", part, (0, 0.05))]  # fmt: skip
