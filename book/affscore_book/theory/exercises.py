"""Checks of the exercises of the chapter on theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from affscore.score import affinity_score, paired_affinity_score, wasserstein2
from affscore_book.kit.checks import report


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


def check_gap(x: Any, y: Any) -> None:
    """Do ``x`` and ``y`` have the same mean and covariance, and yet lie at a positive W2 distance?"""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    scale = x.std()
    if not np.allclose(x.mean(axis=0), y.mean(axis=0), atol=1e-6 * scale):
        return report("theory-gap", False, "", "the means differ, so the normal approximations differ too.")
    if not np.allclose(np.cov(x.T, bias=True), np.cov(y.T, bias=True), atol=1e-6 * scale**2):
        return report("theory-gap", False, "", "the covariances differ, so the normal approximations differ too.")
    distance = wasserstein2(x, y).item() / scale
    if not distance > 0.05:
        hint = "the two clouds are the same, or nearly: their distance is below 0.05 standard deviations."
        return report("theory-gap", False, "", hint)
    report(
        "theory-gap",
        True,
        "the normal approximations are the same law, the clouds are not: Gelbrich's bound has a gap.",
        "",
    )


def check_blind_spot(x: Any, y: Any) -> None:
    """Is the affinity score of (x, y) above 0.99 while the paired score is negative?"""
    score = affinity_score(x, y, covariance="empirical").item()
    paired = paired_affinity_score(x, y, covariance="empirical").item()
    if not score > 0.99:
        return report("theory-blind", False, "", f"the affinity score is {score:.2f}; it should be above 0.99.")
    if not paired < 0:
        return report("theory-blind", False, "", f"the paired score is {paired:.2f}; it should be negative.")
    report("theory-blind", True, "the clouds agree, the pairs do not.", "")


def check_below_zero(x: Any, y: Any) -> None:
    """Is the score of (x, y) negative with Ledoit-Wolf shrinkage?"""
    score = affinity_score(x, y).item()
    plain = affinity_score(x, y, covariance="empirical").item()
    if np.isnan(score):
        return report("theory-zero", False, "", "the score is undefined, because y is constant.")
    if not score < 0:
        return report("theory-zero", False, "", f"the score is {score:.2f} with shrinkage; it should be negative.")
    report("theory-zero", True, f"{score:.2f} with shrinkage, {plain:.2f} without.", "")


def check_from_r2(score: float, r2: float) -> None:
    """Is ``score`` the affinity score of an increasing activation in one dimension whose R2 is ``r2``?"""
    if abs(score - (1 - math.sqrt(1 - r2))) < 1e-3:
        return report("theory-r2", False, "", "the formula takes the correlation, which is the root of R2.")
    if not abs(score - (1 - math.sqrt(1 - math.sqrt(r2)))) < 1e-3:
        return report("theory-r2", False, "", f"{score:.3f} does not fit R2 = {r2:.2f}.")
    report("theory-r2", True, "take the root of R2, then 1 minus the root of what is missing to 1.", "")
