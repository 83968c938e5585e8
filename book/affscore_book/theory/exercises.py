"""Checks of the exercises of the chapter on theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from affscore.affine import affine_map, shrinkage
from affscore.companions import linear_twin
from affscore.score import affinity_score
from affscore_book.kit.checks import report
from affscore_book.theory.finite import layer_inputs

TOLERANCE = 0.006  # two digits suffice


def check_by_hand(score: float, x: Any, y: Any) -> None:
    """Is ``score`` the affinity score of the inputs ``x`` and the outputs ``y``, each of shape (n,)?"""
    right = affinity_score(x, y, covariance="empirical").item()
    r = 1 - (1 - right) ** 2
    paired = 1 - math.sqrt(1 - np.corrcoef(x, y)[0, 1])
    hint = f"{score:.3f} is not 1 - sqrt(1 - r) with the correlation r of sorted inputs and sorted outputs."
    if abs(score - paired) < TOLERANCE:
        hint = "you took the correlation of the pairs; sort the outputs first."
    elif abs(score - r) < TOLERANCE:
        hint = "that is r; the score is 1 - sqrt(1 - r)."
    praise = (
        f"{right:.2f}, and yet the line is folded: a high score says that the clouds fit, not that the map is affine."
    )
    report("theory-hand", abs(score - right) < TOLERANCE, praise, hint)


def check_matrix(matrix: Any, s_x: Any, s_y: Any) -> None:
    """Is ``matrix`` the symmetric PSD matrix A with A S_X A = S_Y, all of shape (d, d)?"""
    a, s_x, s_y = (np.asarray(value, dtype=np.float64) for value in (matrix, s_x, s_y))
    if a.shape != s_x.shape:
        return report("theory-matrix", False, "", f"the matrix has shape {a.shape}; it should be {s_x.shape}.")
    if not np.allclose(a, a.T, atol=1e-8 * abs(a).max()):
        return report("theory-matrix", False, "", "the matrix is not symmetric, as A is in both forms.")
    if np.linalg.eigvalsh(a).min() < -1e-8 * abs(a).max():
        return report("theory-matrix", False, "", "the matrix has a negative eigenvalue: it turns something over.")
    carried = bool(np.allclose(a @ s_x @ a, s_y, atol=1e-6 * abs(s_y).max()))
    report(
        "theory-matrix",
        carried,
        "it is symmetric, PSD, and carries one covariance to the other.",
        "A cov_x A is not cov_y.",
    )


def check_copies(number: int, places: Any) -> None:
    """Is ``number`` the least number of samples at each of the ``places`` (k, d) whose shrinkage is below 0.1?"""
    if number < 1 or number != int(number):
        return report("theory-copies", False, "", f"{number} is not a number of samples; it should be 1, 2, 3, ...")
    here, before = (shrinkage(np.tile(places, (int(k), 1))).item() for k in (number, max(number - 1, 1)))
    once = shrinkage(places).item()
    hint = f"with {number} at each place s is {here:.3f}; it should be below 0.1."
    if here < 0.1:
        hint = f"s is {here:.3f}, but with one less at each place it is {before:.3f}: fewer are enough."
    praise = f"s falls from {once:.2f} to {here:.2f}, for the same ellipse: it measures doubt, not shape."
    report("theory-copies", here < 0.1 and (number == 1 or before >= 0.1), praise, hint)


def layer_in_question(seed: int = 7) -> tuple[Any, Any]:
    """Inputs and outputs, each of shape (64, 256), of a layer that is far from a score of 1."""
    x = layer_inputs(64, 256, seed=seed)
    return x, np.maximum(x, 0) * np.linspace(0.1, 2, 256)


def check_share(share: float, x: Any, y: Any) -> None:
    """Is ``share`` the part of 1 - score, with shrinkage, that the linear twin of ``y`` lacks too?"""
    plain, twin = affinity_score(x, y).item(), affinity_score(x, linear_twin(x, y)).item()
    whole = affinity_score(x, affine_map(x, y)(x)).item()
    right = (1 - twin) / (1 - plain)
    hint = f"{share:.3f} is not the twin's share. Give each channel of x the mean and the variance of that of y."
    if abs(share - (1 - right)) < TOLERANCE:
        hint = "that is what the twin does not lack; the question was the other part."
    elif abs(share - (1 - whole) / (1 - plain)) < TOLERANCE:
        hint = "that is T(x), a map between all channels; the twin moves and scales each channel by itself."
    elif abs(share) < TOLERANCE:
        hint = "without shrinkage the twin lacks nothing; with it, it does."
    praise = f"the layer scores {plain:.2f}, a layer of straight lines {twin:.2f}."
    report("theory-twin", abs(share - right) < TOLERANCE, praise, hint)
