"""Checks of the exercises of the chapter on similarity."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats

from affscore_book.kit.answers import function, mapping, numbers, whole
from affscore_book.kit.checks import case, exercise, report
from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.kernels import centred_gram
from affscore_book.similarity.procrustes import procrustes

Array = NDArray[np.float64]


def two_tables(first: Array, second: Array) -> tuple[Array, Array]:
    """Two tables of 12 rows, one number for each channel, from the features (n, C, H, W) of two networks."""
    start = min(60, len(second) - 12)
    return first[:12].mean((2, 3)), second[start : start + 12].mean((2, 3))


@exercise("similarity-null", null=numbers)
def check_null(x: Array, y: Array, null: Any) -> None:
    """Does ``null`` hold at least 50 values of orthogonal Procrustes for rows in random order?"""
    null = null.ravel()
    ours = {group: procrustes(x, y, group, null=200) for group in ("orthogonal", "relu")}
    value = ours["orthogonal"].value
    hint = ""
    if len(null) < 50:
        hint = f"there are {len(null)} values; give at least 50, each with another order of the rows of y."
    elif not _alike(null, ours["orthogonal"].null):
        hint = "these are not values of orthogonal Procrustes for rows in random order."
        if _alike(null, ours["relu"].null):
            hint = "this is the null of G_ReLU; a rotation may not count here."
    praise = f"{(null >= value).sum()} of your {len(null)} orders reach the value, {value:.3f}."
    report("similarity-null", not hint, praise, hint)


def _alike(null: np.ndarray, ours: np.ndarray) -> bool:
    """Could both be draws of the same null? Their means and spreads are near each other."""
    spread = ours.std(ddof=1)
    error = spread * (1 / len(null) + 1 / len(ours)) ** 0.5
    return bool(abs(null.mean() - ours.mean()) < 5 * error and 0.5 < null.std() / spread < 2)


#: How far the share of intervals that miss may lie from ours: for six pairs as six results, and for the jackknife.
MISSED_BY = (0.05, 0.025)


@exercise("similarity-coverage", misses=numbers)
def check_coverage(misses: Any) -> None:
    """Is ``misses`` the share of intervals without the truth, of six pairs as six results and of the jackknife?"""
    random, pairs = np.random.default_rng(0), list(itertools.combinations(range(4), 2))
    own = random.normal(size=(20_000, 4))
    values = np.stack([own[:, i] + own[:, j] for i, j in pairs], 1) + 0.3 * random.normal(size=(20_000, 6))
    without = np.stack([values[:, [i not in pair for pair in pairs]].mean(1) for i in range(4)], 1)
    quantiles = stats.t.ppf(0.975, [5, 3])  # of six results, and of four
    halves = quantiles[0] * values.std(1, ddof=1) / np.sqrt(6), quantiles[1] * np.sqrt(3 * without.var(1))
    ours = np.array([(np.abs(values.mean(1)) > half).mean() for half in halves])
    found, hint = misses.ravel(), ""
    if len(found) != 2:
        hint = f"there are {len(found)} numbers; give two, for six results and for the jackknife."
    elif not _near(found, ours):
        hint = (
            "give every network one number for all its pairs, draw at least 1,000 studies, and count those without 0."
        )
        if _near(1 - found, ours):
            hint = "these are the shares that hold the truth; count the intervals that miss it."
        elif _near(found[::-1], ours):
            hint = "first the share for six results, then that of the jackknife."
        elif abs(found[0] - 0.05) < 0.02:
            hint = "six independent numbers would give this; here two pairs with a network in common share its number."
    report("similarity-coverage", not hint, f"about {ours[0]:.0%} miss, and {ours[1]:.0%} by the jackknife.", hint)


def _near(found: Array, ours: Array) -> bool:
    return bool((np.abs(found - ours) < MISSED_BY).all())


@exercise("similarity-build", centred_of=function)
def check_centred(centred_of: Callable[[Any], Any]) -> None:
    """Does ``centred_of(table)`` take out the diagonal, and then what a row or a column of the rest has in common?"""
    random = np.random.default_rng(0)
    rows = random.normal(size=(12, 5)) + 2
    table = rows @ rows.T
    given = table.copy()
    with case("the dot products of 12 rows"):
        found = numbers(centred_of(given))
    ours = np.asarray(centred_gram(torch.from_numpy(table)))
    means = table.mean(0)
    hint = ""
    if found.shape != table.shape:
        hint = f"your table has shape {found.shape}; it should be {table.shape}."
    elif not np.array_equal(given, table):
        hint = "your function writes into the table that it was given; copy it first."
    elif not np.allclose(found, ours, rtol=1e-6, atol=1e-6):
        hint = "put 0 on the diagonal before you add up rows, and again at the end; divide by n - 2, not by n."
        if np.allclose(found, table - means - means[:, None] + table.mean()):
            hint = "the diagonal is still in: each image is like itself, in every network."
        elif np.allclose(found - np.diag(np.diag(found)), ours, rtol=1e-6, atol=1e-6):
            hint = "only the diagonal is wrong; put it to 0 at the end, too."
    report("similarity-build", not hint, "rows and columns add up to 0, and the diagonal is 0.", hint)


@exercise("similarity-left-out", overlap=numbers, counts=mapping(whole))
def check_left_out(overlap: Any, concepts: Concepts, counts: dict[str, int], threshold: float = 0.04) -> None:
    """Does ``counts`` say how many units are interpretable without each category of concepts?

    ``overlap`` has the intersection over union of units and concepts, (units, concepts).
    """
    categories = np.array(concepts.categories)
    best = {left: overlap[:, categories != left].max(1) for left in concepts.categories}
    ours = {left: int((values > threshold).sum()) for left, values in best.items()}
    alone = {kind: int((overlap[:, categories == kind].max(1) > threshold).sum()) for kind in ours}
    hint = ""
    if missing := [kind for kind in ours if kind not in counts]:
        hint = f"there is no number for {', '.join(map(repr, missing))}."
    elif wrong := [kind for kind in ours if counts[kind] != ours[kind]]:
        hint = f"without {wrong[0]!r} another number of units is above {threshold}. Take the best of the rest."
        if all(counts[kind] == alone[kind] for kind in ours):
            hint = "this is what each category finds alone. Leave it out and keep the others."
    least = min(ours, key=ours.__getitem__)
    report("similarity-left-out", not hint, f"{ours[least]} of {len(overlap)} units without {least!r}.", hint)
