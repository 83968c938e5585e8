"""Checks of the exercises of the chapter on activations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

from affscore import affinity_score
from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import sample_score
from affscore_book.kit.checks import report


def check_tail(std: float) -> None:
    """Is ``std`` the standard deviation from which on the sigmoid's tail scores less than 0.1, to 1 %?"""
    if not std > 0:
        return report("act-exponential", False, "", "a standard deviation is positive.")
    narrower, here, wider = (score_curve("exponential", 0.0, std * factor).item() for factor in (0.99, 1, 1.01))
    if not narrower > 0.1 > wider:
        return report("act-exponential", False, "", f"at {std:g} the tail scores {here:.3f}.")
    report("act-exponential", True, "the reading depends on how wide the widest input of the sweep is.", "")


def check_crossing(std: float) -> None:
    """Is ``std`` where tanh and ReLU have the same score for a normal input with mean 0, to 1 %?"""
    if not std > 0:
        return report("act-crossing", False, "", "a standard deviation is positive.")
    tanh, relu = (score_curve(name, 0.0, std).item() for name in ("tanh", "relu"))
    closer = [score_curve("tanh", 0.0, std * factor).item() - relu for factor in (0.99, 1.01)]
    if not closer[0] > 0 > closer[1]:
        return report("act-crossing", False, "", f"at {std:g} tanh scores {tanh:.3f} and ReLU {relu:.3f}.")
    report("act-crossing", True, "below it ReLU is the more non-linear of the two, above it tanh is.", "")


def check_graph(activation: Callable[[Tensor], Tensor]) -> None:
    """Is ``activation`` linear around -3 and 3, bent around 1 and dead around 0, for narrow normal inputs?"""
    left, bend, right = (sample_score(activation, mean, 0.25, n=1000, d=1) for mean in (-3.0, 1.0, 3.0))
    middle = sample_score(activation, 0.0, 0.1, n=1000, d=1)
    right_answer = min(left, right) > 0.9 and bend < 0.7 and math.isnan(middle)
    found = f"it scores {left:.2f}, {middle:.2f}, {bend:.2f} and {right:.2f} around -3, 0, 1 and 3"
    report("act-graph", right_answer, "only inputs on a kink see it.", f"{found}.")


def check_null(score: float) -> None:
    """Is ``score`` that of 1000 points in 300 dimensions for independent outputs, both standard normal?"""
    inputs, outputs = np.random.default_rng(0).normal(size=(2, 1000, 300))
    if not abs(score - affinity_score(inputs, outputs).item()) < 5e-3:
        return report("act-null", False, "", "draw two samples of shape (1000, 300), and score them.")
    report("act-null", True, "it is the score of two clouds that have nothing to do with each other.", "")
