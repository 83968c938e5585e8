"""Checks of the exercises of the chapter on activations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import sample_score
from affscore_book.kit.answers import function, one_number
from affscore_book.kit.checks import case, exercise, report


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


@exercise("act-tail", function=function)
def check_tail(function: Callable[[np.ndarray], np.ndarray]) -> None:
    """Does an activation (of a NumPy array) never fall, and score between .25 and .35 far out on its left side?"""
    x = np.linspace(-40.0, 10.0, 2001)
    y = np.asarray(function(x), dtype=float)
    if y.shape != x.shape or not np.isfinite(y).all():
        hint = "it should give one finite number for each number of the array."
        return report("act-tail", False, "", hint)
    if (np.diff(y) < 0).any():
        return report("act-tail", False, "", f"it falls near {x[np.diff(y).argmin()]:.1f}; it should never fall.")
    of_tensors = lambda x: torch.from_numpy(np.asarray(function(x.numpy()), dtype=float))  # noqa: E731
    found = score_curve(of_tensors, [-20.0, -15.0]).tolist()
    hint = "at -20 and -15 it scores {:.2f} and {:.2f}; both should lie between .25 and .35.".format(*found)
    praise = "a steeper exponential is to the score what a wider input is: its tail keeps a lower constant."
    report("act-tail", all(0.25 < score < 0.35 for score in found), praise, hint)
