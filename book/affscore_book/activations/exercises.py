"""Checks of the exercises of the chapter on activations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import sample_score
from affscore_book.kit.answers import function, one_number
from affscore_book.kit.checks import case, exercise, report

#: The functions and the inputs (mean, standard deviation) on which a reader's score is tried.
FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "cosine": np.cos,
}  # fmt: skip
CASES = [(name, *input) for name in FUNCTIONS for input in ((0.0, 1.0), (-1.0, 2.0), (2.0, 0.5))]


@functools.cache
def _by_grids() -> list[list[float]]:
    """The scores of :data:`CASES` from 10,000 evenly spaced shares, for many places of the first and the last share.

    The outermost quantiles, and with them the scores, depend on that place, which the exercise leaves open.
    """
    found: list[list[float]] = []
    for first in np.logspace(-15, -3, 61):
        quantiles = norm.ppf(np.linspace(first, 1 - first, 10_000))
        found.append([])
        for name, mean, std in CASES:
            x = mean + std * quantiles
            r = np.corrcoef(x, np.sort(FUNCTIONS[name](x)))[0, 1]
            found[-1].append(1 - math.sqrt(1 - r))
    return found


@exercise("act-build", score=function)
def check_build(score: Callable[[Callable[[np.ndarray], np.ndarray], float, float], float]) -> None:
    """Does ``score(function, mean, std)`` give the score of a function of an array for a normal input?

    Either to 0.002 the exact one, or to 0.001 those of 10,000 evenly spaced shares, wherever the first one lies.
    """
    mine = []
    for name, mean, std in CASES:
        with case(_titled(name, mean, std)):
            mine.append(one_number(score(FUNCTIONS[name], mean, std)))
    exact = [score_curve(name, mean, std).item() for name, mean, std in CASES]
    fits = [np.abs(np.subtract(mine, exact)) < 2e-3]
    fits += [np.abs(np.subtract(mine, scores)) < 1e-3 for scores in _by_grids()]
    best = max(fits, key=np.sum)
    if not best.all():
        wrong = int(np.argmin(best))
        with case(_titled(*CASES[wrong])):
            hint = f"{_titled(*CASES[wrong])} scores {exact[wrong]:.3f}, yours {mine[wrong]:.3f}."
            return report("act-build", False, "", hint)
    report("act-build", True, "ten thousand quantiles and a correlation, and no random number.", "")


def _titled(name: str, mean: float, std: float) -> str:
    return f"{name} at mean {mean:g} and standard deviation {std:g}"


@exercise("act-crossing", std=one_number)
def check_crossing(std: float) -> None:
    """Is ``std`` where tanh and ReLU have the same score for a normal input with mean 0, to 1 %?"""
    if not std > 0:
        return report("act-crossing", False, "", "a standard deviation is positive.")
    tanh, relu = (score_curve(name, 0.0, std).item() for name in ("tanh", "relu"))
    closer = [score_curve("tanh", 0.0, std * factor).item() - relu for factor in (0.99, 1.01)]
    if not closer[0] > 0 > closer[1]:
        return report("act-crossing", False, "", f"at {std:g} tanh scores {tanh:.3f} and ReLU {relu:.3f}.")
    report("act-crossing", True, "below it ReLU is the more non-linear of the two, above it tanh is.", "")


@exercise("act-graph", activation=function)
def check_graph(activation: Callable[[Tensor], Tensor]) -> None:
    """Is ``activation`` linear around -3 and 3, bent around 1 and dead around 0, for narrow normal inputs?"""
    with case("tensors of shape (1000, 1)"):
        left, bend, right = (sample_score(activation, mean, 0.25, n=1000, d=1) for mean in (-3.0, 1.0, 3.0))
        middle = sample_score(activation, 0.0, 0.1, n=1000, d=1)
    right_answer = min(left, right) > 0.9 and bend < 0.7 and math.isnan(middle)
    found = f"it scores {left:.2f}, {middle:.2f}, {bend:.2f} and {right:.2f} around -3, 0, 1 and 3"
    report("act-graph", right_answer, "only inputs on a kink see it.", f"{found}.")


@exercise("act-fall", score=one_number)
def check_fall(score: float) -> None:
    """Is ``score`` that of -Mish in 300 dimensions for inputs from N(-3, 0.25^2), to two digits?"""
    mish = torch.nn.functional.mish
    own, negated = (sample_score(f, -3.0, 0.25, n=1000, d=300) for f in (mish, lambda x: -mish(x)))
    if abs(score - own) < 1e-2:
        return report("act-fall", False, "", "that is Mish's own score: the outputs still fall.")
    if not abs(score - negated) < 1e-2:
        return report("act-fall", False, "", "which factor turns a fall into a rise, and bends nothing?")
    report("act-fall", True, "Mish is nearly straight there, but it falls.", "")
