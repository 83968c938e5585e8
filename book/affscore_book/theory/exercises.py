"""Checks of the exercises of the chapter on theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from affscore.score import affine_map, affinity_score, wasserstein2
from affscore_book.kit.checks import report
from affscore_book.theory.finite import layer_inputs, linear_twin


def check_distance(distance: float, x: Any, y: Any) -> None:
    """Is ``distance`` the W2 distance between the points ``x`` and ``y``, each of shape (n,)?"""
    right = wasserstein2(x, y).item()
    if abs(distance - right**2) < 1e-3 and abs(right**2 - right) > 1e-2:
        return report("theory-distance", False, "", "that is the mean squared distance; W2 is its root.")
    if abs(distance - math.sqrt(np.mean(np.square(np.subtract(x, y))))) < 1e-3:
        return report(
            "theory-distance",
            False,
            "",
            "you paired the points as they come; the cheapest pairing is sorted with sorted.",
        )
    if not abs(distance - right) < 1e-3:
        return report("theory-distance", False, "", f"{distance:.3f} is not the distance of the sorted pairs.")
    report("theory-distance", True, "sort both, pair in order, take the root of the mean square.", "")


def check_matrix(matrix: Any, s_x: Any, s_y: Any) -> None:
    """Is ``matrix`` the symmetric PSD matrix A with A S_X A = S_Y, all of shape (d, d)?"""
    a, s_x, s_y = (np.asarray(value, dtype=np.float64) for value in (matrix, s_x, s_y))
    if a.shape != s_x.shape:
        return report("theory-matrix", False, "", f"the matrix has shape {a.shape}; it should be {s_x.shape}.")
    if not np.allclose(a, a.T, atol=1e-8 * abs(a).max()):
        return report(
            "theory-matrix", False, "", "the matrix is not symmetric, so it is not the gradient of a convex function."
        )
    if np.linalg.eigvalsh(a).min() < -1e-8 * abs(a).max():
        return report("theory-matrix", False, "", "the matrix has a negative eigenvalue: it turns something over.")
    carried = bool(np.allclose(a @ s_x @ a, s_y, atol=1e-6 * abs(s_y).max()))
    report(
        "theory-matrix",
        carried,
        "it is symmetric, PSD, and carries one covariance to the other.",
        "A S_X A is not S_Y.",
    )


def check_below_zero(x: Any, y: Any) -> None:
    """Is the score of (x, y) negative with Ledoit-Wolf shrinkage?"""
    score = affinity_score(x, y).item()
    plain = affinity_score(x, y, covariance="empirical").item()
    if np.isnan(score):
        return report("theory-zero", False, "", "the score is undefined, because y is constant.")
    if not score < 0:
        return report("theory-zero", False, "", f"the score is {score:.2f} with shrinkage; it should be negative.")
    report("theory-zero", True, f"{score:.2f} with shrinkage, {plain:.2f} without.", "")


def layer_in_question() -> tuple[Any, Any]:
    """Inputs and outputs, each of shape (64, 256), of a layer that is far from a score of 1."""
    x = layer_inputs(64, 256, seed=7)
    return x, np.maximum(x, 0) * np.linspace(0.1, 2, 256)


def check_share(share: float, x: Any, y: Any) -> None:
    """Is ``share`` the part of 1 - score, with shrinkage, that the linear twin of ``y`` lacks too?"""
    plain, twin = affinity_score(x, y).item(), affinity_score(x, linear_twin(x, y)).item()
    whole = affinity_score(x, affine_map(x, y)(x)).item()
    right = (1 - twin) / (1 - plain)
    hint = f"{share:.3f} is not the twin's share. Give each channel of x the mean and the variance of that of y."
    if abs(share - (1 - right)) < 2e-3:
        hint = "that is what the twin does not lack; the question was the other part."
    elif abs(share - (1 - whole) / (1 - plain)) < 2e-3:
        hint = "that is T(x), a map between all channels; the twin moves and scales each channel by itself."
    elif abs(share) < 2e-3:
        hint = "without shrinkage the twin lacks nothing; with it, it does."
    praise = f"the layer scores {plain:.2f}, a layer of straight lines {twin:.2f}."
    report("theory-twin", abs(share - right) < 2e-3, praise, hint)
