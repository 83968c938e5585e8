"""Checks of the exercises of the chapter on activations. They need NumPy alone, so that they run in the page."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from affscore import affinity_score
from affscore_book.kit.answers import function, numbers, one_number
from affscore_book.kit.checks import case, exercise, report

__all__ = ["check_crossing", "check_fall", "check_graph", "check_tail"]

_Z = np.linspace(-9.0, 9.0, 20_001)
_WEIGHTS = np.exp(-(_Z**2) / 2) / np.exp(-(_Z**2) / 2).sum()


def _curve(rising: Callable[[Any], Any], mean: float, std: float) -> float:
    """The score of an activation that never falls, for inputs from N(mean, std^2): 1 - sqrt(1 - r), with the
    correlation r of input and output, since then the sorted coupling is each input with its own output."""
    x = mean + std * _Z
    y = np.asarray(rising(x), dtype=np.float64)
    x, y = (values - _WEIGHTS @ values for values in (x, y))
    spread = math.sqrt((_WEIGHTS @ x**2) * (_WEIGHTS @ y**2))
    return 1 - math.sqrt(max(1 - _WEIGHTS @ (x * y) / spread, 0.0)) if spread > 0 else math.nan


def _sampled(activation: Callable[[Any], Any], mean: float, std: float, n: int, d: int) -> float:
    """The score of n inputs with d independent channels from N(mean, std^2); an activation of tensors gets tensors."""
    x = np.random.default_rng(0).normal(mean, std, size=(n, d))
    try:
        y = activation(x)
    except (TypeError, AttributeError):
        import torch  # only where a function of tensors is handed in

        y = activation(torch.from_numpy(x))
    return float(affinity_score(x, numbers(y)))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(np.logaddexp(0, x))


@exercise("act-crossing", std=one_number)
def check_crossing(std: float) -> None:
    """Is ``std`` where tanh and ReLU have the same score for a normal input with mean 0, to 1 %?"""
    if not std > 0:
        return report("act-crossing", False, "", "a standard deviation is positive.")
    flat = _curve(relu, 0.0, std)
    closer = [_curve(np.tanh, 0.0, std * factor) - flat for factor in (0.99, 1.01)]
    if not closer[0] > 0 > closer[1]:
        hint = f"at {std:g} tanh scores {_curve(np.tanh, 0.0, std):.3f} and ReLU {flat:.3f}."
        return report("act-crossing", False, "", hint)
    report("act-crossing", True, "below it ReLU is the more non-linear of the two, above it tanh is.", "")


@exercise("act-graph", activation=function)
def check_graph(activation: Callable[[Any], Any]) -> None:
    """Is ``activation`` linear around -3 and 3, bent around 1 and dead around 0, for narrow normal inputs?"""
    with case("arrays of shape (1000, 1)"):
        left, bend, right = (_sampled(activation, mean, 0.25, n=1000, d=1) for mean in (-3.0, 1.0, 3.0))
        middle = _sampled(activation, 0.0, 0.1, n=1000, d=1)
    right_answer = min(left, right) > 0.9 and bend < 0.7 and math.isnan(middle)
    found = f"it scores {left:.2f}, {middle:.2f}, {bend:.2f} and {right:.2f} around -3, 0, 1 and 3"
    report("act-graph", right_answer, "only inputs on a kink see it.", f"{found}.")


@exercise("act-fall", score=one_number)
def check_fall(score: float) -> None:
    """Is ``score`` that of -Mish in 100 dimensions for inputs from N(-3, 0.25^2), to two digits?"""
    own, negated = (_sampled(f, -3.0, 0.25, n=300, d=100) for f in (mish, lambda x: -mish(x)))
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
    found = [_curve(function, mean, 1.0) for mean in (-20.0, -15.0)]
    hint = "at -20 and -15 it scores {:.2f} and {:.2f}; both should lie between .25 and .35.".format(*found)
    praise = "a steeper exponential is to the score what a wider input is: its tail keeps a lower constant."
    report("act-tail", all(0.25 < score < 0.35 for score in found), praise, hint)
