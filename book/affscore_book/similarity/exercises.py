"""Checks of the exercises of the chapter on similarity."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from affscore_book.kit.answers import function, mapping, numbers, one_number, two_ends, whole
from affscore_book.kit.checks import case, exercise, report
from affscore_book.kit.statistics import over_pairs, student_interval
from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.dissection import Dissection
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes


def two_tables(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Two tables of 12 rows, one number for each channel, from the features (n, C, H, W) of two networks."""
    return first[:12].mean((2, 3)), second[100:112].mean((2, 3))


@exercise("similarity-null", null=numbers)
def check_null(x: Tensor, y: Tensor, null: Any) -> None:
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


@exercise("similarity-jackknife", interval=two_ends)
def check_jackknife(values: Any, interval: Any) -> None:
    """Is ``interval`` (low, high) that of the jackknife over the four networks of six pairs?"""
    table = np.full((4, 4), np.nan)
    for (i, j), value in zip(itertools.combinations(range(4), 2), values, strict=True):
        table[i, j] = table[j, i] = value
    ours = over_pairs(table)[1:]
    hint = ""
    if np.allclose(interval, student_interval(values)[1:], atol=2e-3):
        hint = "this takes six pairs for six results. Leave out one network at a time, with all its pairs."
    elif not np.allclose(interval, ours, atol=2e-3):
        hint = "with network i left out, the mean v_i of three pairs remains. Put the four v_i into the formula."
    report("similarity-jackknife", not hint, f"{ours[0]:.2f} to {ours[1]:.2f}.", hint)


@exercise("similarity-build", cka_of=function, null_of=function)
def check_build(cka_of: Callable[[Any, Any], float], null_of: Callable[[Any, Any], Any]) -> None:
    """Is ``cka_of(x, y)`` linear CKA of arrays (n, d) and (n, e), and ``null_of(x, y)`` at least 20 values of its null?

    The features have a common mean and few images, so that it counts what is taken out of the tables.
    """
    random = np.random.default_rng(0)
    common = random.normal(size=(12, 3))
    x, y = (common @ random.normal(size=(3, width)) + random.normal(size=(12, width)) + 2 for width in (5, 8))
    with case("arrays (12, 5) and (12, 8)"):
        value, ours = one_number(cka_of(x, y)), cka(x, y, null=400)
    tables = [rows @ rows.T for rows in (x, y)]
    margins = [k - k.mean(0) - k.mean(1)[:, None] + k.mean() for k in tables]
    hint = ""
    if not abs(value - ours.value) < 1e-6:
        hint = "take n - 2 and the rest from the formula, with 0 on the diagonal before the sums and after them."
        if abs(value - _cosine(*tables)) < 1e-6:
            hint = "this is the cosine of the tables as they are; take out the diagonal, then what rows share."
        elif abs(value - _cosine(*margins)) < 1e-6:
            hint = "the diagonal is still in: each image is like itself, so that the null of this one is above 0."
        return report("similarity-build", False, "", hint)
    with case("arrays (12, 5) and (12, 8)"):
        null = numbers(null_of(x, y)).ravel()
    if len(null) < 20:
        hint = f"CKA is right; my_null gives {len(null)} values and should give at least 20."
    elif not _alike(null, np.asarray(ours.null)):
        hint = "CKA is right; the null is that of the rows of y in random order, another order each time."
    report("similarity-build", not hint, "the same number as `cka`, and a null around 0.", hint)


def _cosine(k: NDArray[np.float64], m: NDArray[np.float64]) -> float:
    return float((k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum()))


@exercise("similarity-left-out", counts=mapping(whole))
def check_left_out(found: Dissection, concepts: Concepts, counts: dict[str, int]) -> None:
    """Does ``counts`` say how many units are interpretable without each category of concepts?"""
    categories = np.array(concepts.categories)
    best = {left: found.iou[:, categories != left].max(1) for left in concepts.categories}
    ours = {left: int((values > found.threshold).sum()) for left, values in best.items()}
    alone = {kind: int((found.iou[:, categories == kind].max(1) > found.threshold).sum()) for kind in ours}
    hint = ""
    if missing := [kind for kind in ours if kind not in counts]:
        hint = f"there is no number for {', '.join(map(repr, missing))}."
    elif wrong := [kind for kind in ours if counts[kind] != ours[kind]]:
        hint = f"without {wrong[0]!r} another number of units is above {found.threshold}. Take the best of the rest."
        if all(counts[kind] == alone[kind] for kind in ours):
            hint = "this is what each category finds alone. Leave it out and keep the others."
    least = min(ours, key=ours.__getitem__)
    report("similarity-left-out", not hint, f"{ours[least]} of {len(found.iou)} units without {least!r}.", hint)
