"""Checks of the exercises of the chapter on blind spots."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from affscore.affine import COVARIANCES, affine_map
from affscore.score import affinity_score, paired_affinity_score, wasserstein2
from affscore_book.kit.answers import function, mapping, numbers, one_number
from affscore_book.kit.checks import case, exercise, report
from affscore_book.theory.measures import fixed_image


@exercise("blind-spots-shuffle", x=numbers, y=numbers)
def check_blind_spot(x: Any, y: Any) -> None:
    """Is the affinity score of (x, y) above 0.99 while the paired score is below -0.1, lower than chance makes it?"""
    if x.shape != y.shape:
        return report("blind-spots-shuffle", False, "", f"the outputs have shape {y.shape}; it should be {x.shape}.")
    score = affinity_score(x, y, covariance="empirical").item()
    paired = paired_affinity_score(x, y, covariance="empirical").item()
    if not score > 0.99:
        return report("blind-spots-shuffle", False, "", f"the affinity score is {score:.2f}; it should be above 0.99.")
    if not paired < -0.1:
        return report("blind-spots-shuffle", False, "", f"the paired score is {paired:.2f}; it should be below -0.1.")
    report("blind-spots-shuffle", True, "the clouds agree, the pairs do not.", "")


@exercise("blind-spots-build", worst=function)
def check_build(worst: Callable[[Any, Any], float]) -> None:
    """Does ``worst(x, y)`` give the lowest paired score of any order of the rows of y, (n, d), without shrinkage?"""
    x = np.random.default_rng(0).normal(size=(60, 3))
    for name, y in (("tanh(x)", np.tanh(x)), ("-x", -x), ("ReLU", np.maximum(x, 0)), ("2 x + 1", 2 * x + 1)):
        image, centred = affine_map(x, y, covariance="empirical")(x) - y.mean(axis=0), y - y.mean(axis=0)
        # The most expensive coupling with the image is the cheapest one with its mirror image.
        both = 2 * ((image**2).sum() + (centred**2).sum()) / len(x)
        cost = both - wasserstein2(-image, centred).item() ** 2
        exact = 1 - np.sqrt(cost / (2 * y.var(axis=0).sum()))
        with case(name):
            mine = one_number(worst(x, y))
            if not abs(mine - exact) < 1e-7:
                hint = f"the lowest paired score for {name} is {exact:.4f} on this sample, and yours is {mine:.4f}."
                return report("blind-spots-build", False, "", hint)
    report("blind-spots-build", True, "a map and the worst of all couplings.", "")


def rising_call(seed: int = 0) -> tuple[Any, Any]:
    """Inputs of eight independent channels of unequal means and widths, and their outputs under ReLU, both (64, 8)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(64, 8)) * np.linspace(0.7, 2, 8) + rng.permutation(np.linspace(-1, 1, 8))
    return x, np.maximum(x, 0)


@exercise("blind-spots-formula", score=function)
def check_formula(score: Callable[[Any, Any], float]) -> None:
    """Is ``score(x, y)`` that of independent channels, from variances and correlations alone?"""
    for seed in range(3):
        x, y = rising_call(seed)
        v = y.var(axis=0)
        r = np.array([np.corrcoef(before, after)[0, 1] for before, after in zip(x.T, y.T, strict=True)])
        exact = 1 - np.sqrt(np.average(1 - r, weights=v))
        with case(f"ReLU on a sample of shape {x.shape}"):
            mine = one_number(score(x, y))
        if abs(mine - exact) < 1e-7:
            continue
        hint = f"for ReLU on a sample of shape {x.shape} it is {exact:.4f} by the formula, and yours is {mine:.4f}."
        if abs(mine - (1 - np.sqrt(1 - r)).mean()) < 1e-7:
            hint = "that is the mean of the channels' scores; channels of larger variance count more."
        elif abs(mine - (1 - np.sqrt(1 - np.average(r**2, weights=v)))) < 1e-7:
            hint = "the formula has the correlations, not their squares."
        elif any(abs(mine - affinity_score(x, y, covariance=kind).item()) < 1e-7 for kind in COVARIANCES):
            hint = "that is the affinity score, for which partners are sought; the theorem needs none."
        return report("blind-spots-formula", False, "", hint)
    score_of_last = affinity_score(x, y, covariance="empirical").item()
    praise = f"{exact:.2f} without a partner. The affinity score is {score_of_last:.2f}: its map may mix the channels."
    report("blind-spots-formula", True, praise, "")


_KINDS = list(permutations(("shuffled", "non-linear", "dead", "turn", "PSD-affine")))


def layers_in_the_dark(number: int = 0) -> dict[str, tuple[Any, Any]]:
    """Five pairs of inputs and outputs, each of shape (300, 2), by name: in one of 120 orders."""
    rng = np.random.default_rng(5)
    x = rng.exponential(size=(300, 2))
    image = fixed_image(x)
    outputs = {
        "shuffled": rng.permutation(image),
        "non-linear": np.tanh(3 * (x - 1)),
        "dead": np.zeros_like(x),
        "turn": x @ np.array([[0.6, 0.8], [-0.8, 0.6]]),
        "PSD-affine": image,
    }
    return {name: (x, outputs[kind]) for name, kind in zip("abcde", _KINDS[number], strict=True)}


@exercise("blind-spots-dark", answer=mapping(str))
def check_dark(answer: Any, number: int = 0) -> None:
    """Does ``answer`` name the kind of each of :func:`layers_in_the_dark`?"""
    wrong = [name for name, kind in zip("abcde", _KINDS[number], strict=True) if answer.get(name) != kind]
    hint = (
        f"{len(wrong)} of 5 are not what you say. The score, the paired score and R2 together tell all of them apart."
    )
    report("blind-spots-dark", not wrong, "three measures, three blind spots, and no two layers alike in all.", hint)
