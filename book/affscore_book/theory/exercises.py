"""Checks of the exercises of the chapter on theory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from affscore.affine import affine_map, shrinkage
from affscore.companions import linear_twin
from affscore.score import affinity_score, paired_affinity_score
from affscore_book.kit.answers import function, one_number, whole
from affscore_book.kit.checks import case, exercise, report
from affscore_book.theory.finite import layer_inputs
from affscore_book.theory.measures import random_psd

TOLERANCE = 0.006  # two digits suffice


@exercise("theory-hand", score=one_number)
def check_by_hand(score: float, x: Any, y: Any) -> None:
    """Is ``score`` the affinity score of the inputs ``x`` and the outputs ``y``, each of shape (n,)?"""
    right = affinity_score(x, y, covariance="empirical").item()
    r = 1 - (1 - right) ** 2
    pairs = np.corrcoef(x, y)[0, 1]
    paired = 1 - math.sqrt(1 - pairs)
    hint = f"{score:.3f} is not 1 - sqrt(1 - r) with the correlation r of sorted inputs and sorted outputs."
    if min(abs(score - paired), abs(score - pairs)) < TOLERANCE:
        hint = "you took the correlation of the pairs; sort the outputs first."
    elif abs(score - r) < TOLERANCE:
        hint = "that is r; the score is 1 - sqrt(1 - r)."
    praise = (
        f"{right:.2f}, and yet the line is folded: a high score says that the clouds fit, not that the map is affine."
    )
    report("theory-hand", abs(score - right) < TOLERANCE, praise, hint)


@exercise("theory-build", score=function)
def check_build(score: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Does ``score(x, y)`` give the affinity score without shrinkage of samples of shape (n, d), n above d?"""
    rng = np.random.default_rng(0)
    x = rng.exponential(size=(60, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.2, 0.0, 2.0]]) - 1.5
    images = {
        "a stretch": x @ random_psd(3, rng) + 1,
        "a stretch, shuffled": rng.permutation(x @ random_psd(3, rng)),
        "ReLU": np.maximum(x, 0),
        "a quarter turn": x @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    }
    for name, y in images.items():
        with case(name):
            right, paired = (f(x, y, covariance="empirical").item() for f in (affinity_score, paired_affinity_score))
            mine = one_number(score(x, y))
            if not abs(mine - right) < 1e-6:
                hint = f"{name} scores {right:.3f} on the sample of this check, and yours gives {mine:.3f}."
                if abs(mine - paired) < 1e-6:
                    hint = f"{name}: you kept the pairs; the score couples image and outputs as cheaply as possible."
                return report("theory-build", False, "", hint)
    report("theory-build", True, "a matrix, a coupling and a trace are the whole score.", "")


@exercise("theory-copies", number=whole)
def check_copies(number: int, places: Any) -> None:
    """Is ``number`` the least number of samples at each of the ``places`` (k, d) whose shrinkage is below 0.1?"""
    if number < 1:
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


@exercise("theory-twin", share=one_number)
def check_share(share: float, x: Any, y: Any) -> None:
    """Is ``share`` the part of 1 - score, with shrinkage, that the linear twin of ``y`` lacks too?"""
    plain, twin = affinity_score(x, y).item(), affinity_score(x, linear_twin(x, y)).item()
    whole = affinity_score(x, affine_map(x, y)(x)).item()
    right = (1 - twin) / (1 - plain)
    hint = f"{share:.3f} is not the twin's share. Give each channel of x the mean and the variance of that of y."
    if abs(share - (1 - right)) < TOLERANCE:
        hint = "that is the part that is not the twin's; the question was the other part."
    elif abs(share - (1 - whole) / (1 - plain)) < TOLERANCE:
        hint = "that is T(x), a map between all channels; the twin moves and scales each channel by itself."
    elif abs(share) < TOLERANCE:
        hint = "without shrinkage the twin scores 1; with it, it does not."
    praise = f"the layer scores {plain:.2f}, its linear twin {twin:.2f}."
    report("theory-twin", abs(share - right) < TOLERANCE, praise, hint)
