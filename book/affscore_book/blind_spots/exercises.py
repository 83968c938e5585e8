"""Checks of the exercises of the chapter on blind spots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from affscore.score import affinity_score, paired_affinity_score, wasserstein2
from affscore_book.kit.checks import report


def check_blind_spot(x: Any, y: Any) -> None:
    """Is the affinity score of (x, y) above 0.99 while the paired score is below -0.1, lower than chance makes it?"""
    score = affinity_score(x, y, covariance="empirical").item()
    paired = paired_affinity_score(x, y, covariance="empirical").item()
    if not score > 0.99:
        return report("blind-spots-shuffle", False, "", f"the affinity score is {score:.2f}; it should be above 0.99.")
    if not paired < -0.1:
        return report("blind-spots-shuffle", False, "", f"the paired score is {paired:.2f}; it should be below -0.1.")
    report("blind-spots-shuffle", True, "the clouds agree, the pairs do not.", "")


def check_gap(x: Any, y: Any) -> None:
    """Do ``x`` and ``y`` have the same mean and covariance, and yet lie at a positive W2 distance?"""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    scale = x.std()
    if not np.allclose(x.mean(axis=0), y.mean(axis=0), atol=1e-6 * scale):
        return report("blind-spots-gap", False, "", "the means differ, so the normal approximations differ too.")
    if not np.allclose(np.cov(x.T, bias=True), np.cov(y.T, bias=True), atol=1e-6 * scale**2):
        return report("blind-spots-gap", False, "", "the covariances differ, so the normal approximations differ too.")
    distance = wasserstein2(x, y).item() / scale
    if not distance > 0.05:
        hint = "the two clouds are the same, or nearly: their distance is below 0.05 standard deviations."
        return report("blind-spots-gap", False, "", hint)
    report(
        "blind-spots-gap",
        True,
        "the normal approximations are the same law, the clouds are not: Gelbrich's bound has a gap.",
        "",
    )


def check_from_r2(score: float, r2: float) -> None:
    """Is ``score`` the affinity score of an increasing activation in one dimension whose R2 is ``r2``?"""
    if abs(score - (1 - math.sqrt(1 - r2))) < 1e-3:
        return report("blind-spots-r2", False, "", "the formula takes the correlation, which is the root of R2.")
    if not abs(score - (1 - math.sqrt(1 - math.sqrt(r2)))) < 1e-3:
        return report("blind-spots-r2", False, "", f"{score:.3f} does not fit R2 = {r2:.2f}.")
    report("blind-spots-r2", True, "take the root of R2, then 1 minus the root of what is missing to 1.", "")
