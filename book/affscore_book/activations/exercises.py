"""Checks of the exercises of the chapter on activations."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

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


def check_dimension(activation: Callable[[Tensor], Tensor]) -> None:
    """Does ``activation`` score 1 in one dimension and less than 0.2 in 100, for standard normal inputs?"""
    one = score_curve(activation, 0.0).item()
    many = sample_score(activation, 0.0, 1.0, n=300, d=100)
    found = f"it scores {one:.2f} in one dimension and {many:.2f} in 100"
    report(
        "act-dimension",
        one > 0.9999 and many < 0.2,
        f"{found}: the affine map may stretch, but not reflect.",
        f"{found}.",
    )


def check_rounding(mean: float) -> None:
    """Is torch's GELU constant in float64 around ``mean``, for inputs of std 0.5, while the true GELU varies?"""
    gelu = torch.nn.functional.gelu
    torch_says, exact = (sample_score(f, mean, 0.5, n=1000, d=1) for f in (gelu, "gelu"))
    if math.isnan(exact):
        return report("act-rounding", False, "", "even the accurate GELU is constant there.")
    if not math.isnan(torch_says):
        return report("act-rounding", False, "", f"torch's GELU still varies there: its score is {torch_says:.2f}.")
    report(
        "act-rounding", True, "1 + erf is rounded to 0, and the unit is dead in the computer though not on paper.", ""
    )
