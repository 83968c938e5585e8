"""Checks of the exercises of the chapter on similarity."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from torch import Tensor

from affscore_book.kit.checks import report
from affscore_book.kit.statistics import over_pairs, student_interval
from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.dissection import Dissection
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes


def two_tables(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Two tables of 12 rows, one number for each channel, from the features (n, C, H, W) of two networks."""
    return first[:12].mean((2, 3)), second[100:112].mean((2, 3))


def check_null(x: Tensor, y: Tensor, null: Any) -> None:
    """Does ``null`` hold at least 50 values of orthogonal Procrustes for rows in random order?"""
    null = np.asarray(null, dtype=np.float64).ravel()
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


def check_jackknife(values: Any, interval: Any) -> None:
    """Is ``interval`` (low, high) that of the jackknife over the four networks of six pairs?"""
    table = np.full((4, 4), np.nan)
    for (i, j), value in zip(itertools.combinations(range(4), 2), values, strict=True):
        table[i, j] = table[j, i] = value
    ours, ends = over_pairs(table)[1:], np.asarray(interval, dtype=np.float64).ravel()
    hint = ""
    if len(ends) != 2:
        hint = "give two numbers, the lower end and the upper end."
    elif np.allclose(ends, student_interval(values)[1:], atol=2e-3):
        hint = "this takes six pairs for six results. Leave out one network at a time, with all its pairs."
    elif not np.allclose(ends, ours, atol=2e-3):
        hint = "with network i left out, the mean v_i of three pairs remains. Put the four v_i into the formula."
    report("similarity-jackknife", not hint, f"{ours[0]:.2f} to {ours[1]:.2f}.", hint)


def check_dependent(x: Any, y: Any) -> None:
    """Do ``x`` and ``y``, (n, 1), have nothing in common for linear CKA, and something for the Laplace kernel?"""
    linear, laplace = (cka(x, y, kernel, null=0).value for kernel in ("linear", "laplace"))
    hint = ""
    if abs(linear) >= 0.02:
        hint = (
            f"linear CKA is {linear:.3f}; it should be within 0.02 of 0. Which functions of x are uncorrelated with x?"
        )
    elif laplace <= 0.1:
        hint = f"CKA with the Laplace kernel is {laplace:.3f}; it should be above 0.1, so y has to depend on x."
    report("similarity-dependent", not hint, "uncorrelated, and yet one is a function of the other.", hint)


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
