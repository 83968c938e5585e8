"""Checks of the exercises of the chapter on ReLU in one dimension."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from affscore import affinity_score
from affscore_book.kit.answers import function, one_number
from affscore_book.kit.checks import case, exercise, report
from affscore_book.relu_1d.exact import gaussian_input, uniform_input


@exercise("relu-1d-build", score=function)
def check_build(score: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Does ``score(x, y)`` give the affinity score of samples of shapes (n,) and (m,), NaN for a constant output?"""
    x, others = np.split(np.random.default_rng(0).normal(size=80), [50])
    samples = {
        "ReLU": np.maximum(x, 0),
        "a sine": np.sin(3 * x),
        "the identity": x,
        "ReLU of 30 other inputs": np.maximum(others, 0),
    }
    for name, y in samples.items():
        with case(name):
            equal = np.repeat(x, len(y)), np.repeat(y, len(x))  # of n * m points each
            exact, mine = affinity_score(*equal, covariance="empirical").item(), one_number(score(x, y))
            if not abs(mine - exact) < 1e-7:
                hint = f"the score of {name} is {exact:.4f} on this sample,\nand yours is {mine:.4f}."
                return report("relu-1d-build", False, "", hint)
    with case("a constant output"):
        if not math.isnan(one_number(score(x, np.zeros(50)))):
            hint = "the scores are right, but a constant output has none:\nreturn NaN."
            return report("relu-1d-build", False, "", hint)
    report("relu-1d-build", True, "cut into equal parts, sort and correlate.", "")


@exercise("relu-1d-half", share=one_number)
def check_half(share: float, wanted: float = 0.5) -> None:
    """Is ``share`` the share of positive inputs for which ReLU has the score ``wanted`` on a uniform input?"""
    if not 0 < share <= 1:
        return report(
            "relu-1d-half", False, "", f"{share} is no share of positive inputs;\nit should be above 0 and at most 1."
        )
    score = uniform_input(share - 1, share).score.item()
    if not abs(score - wanted) < 5e-4:
        return report("relu-1d-half", False, "", f"with this share the score is {score:.3f}.")
    report("relu-1d-half", True, "whatever the width of the range: only the share counts.", "")


@exercise("relu-1d-step", score=one_number)
def check_step(score: float) -> None:
    """Is ``score`` the score of a threshold at 1 for a standard normal input?"""
    exact = gaussian_input(-1.0, 1.0, "hardtanh", low=-1e-12, high=1e-12).score.item()
    if not abs(score - exact) < 5e-4:
        hint = "the covariance is the integral of z times\nthe density from 1 on, the density at 1."
        return report("relu-1d-step", False, "", hint)
    report("relu-1d-step", True, "hardtanh on a tiny interval is a threshold,\nup to scale, and it agrees.", "")


@exercise("relu-1d-digits", distance=one_number)
def check_digits(distance: float, exponent: int = 20) -> None:
    """Is ``distance`` 1 minus the score of LeakyReLU with slope 1 - 10^-exponent for a normal input, to 1 %?"""
    # The distance is proportional to 1 - slope; at slope 1 - 1e-3 it can be computed.
    exact = 10.0 ** (3 - exponent) * gaussian_input(0.0, 1.0, "leaky_relu", slope=1 - 1e-3).deficit.item()
    if not abs(distance / exact - 1) < 1e-2:
        hint = "E_c = (1 - c) E is far below B_c, which is\nnearly 1. So 1 - r^2 is E_c^2."
        return report("relu-1d-digits", False, "", hint)
    report("relu-1d-digits", True, "no subtraction, no digit lost.", "")
