"""Checks of the exercises of the chapter on linearised networks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from affscore_book.kit.answers import function, instance, numbers, one_number, whole
from affscore_book.kit.checks import case, exercise, report
from affscore_book.linearized.paths import path_lengths
from affscore_book.linearized.slopes import symmetry_dimension


@exercise("linearized-longer", network=instance(nn.Module))
def check_longer(network: nn.Module, inputs: Tensor) -> None:
    """Is the NAPL of a network larger than its APL, by at least 1?"""
    try:
        lengths = path_lengths(network, inputs)
    except ValueError as error:
        return report("linearized-longer", False, "", str(error))
    found = f"APL is {lengths.apl:.2f} and NAPL {lengths.napl:.2f}"
    report(
        "linearized-longer",
        lengths.napl >= lengths.apl + 1,
        f"{found}.",
        f"{found}. Which summand has many paths, and how long are they?",
    )


@exercise("linearized-strength", value=one_number)
def check_strength(value: float) -> None:
    """The least strength that pulls a slope from 0 to 1 against a loss of (a - 0)^2 / 2."""
    right = 4 / 27**0.5
    hint = (
        "too weak: on the way there is a slope at which the loss pulls back harder than the prior pulls on."
        if value < right
        else "a weaker one will do: look for the slope at which the two pulls are in the tightest balance."
    )
    report("linearized-strength", abs(value - right) < 0.005, "the tightest place is a = 2/3.", hint)


@exercise("linearized-dimension", count=whole)
def check_count(count: int, channels: int = 64) -> None:
    """The least number of linear channels with which the group has at least ten times ReLU's dimension."""
    if not 0 <= count <= channels:
        return report("linearized-dimension", False, "", f"{count} should be a whole number from 0 to {channels}.")
    enough, one_less = (
        symmetry_dimension([1.0] * m + [0.0] * (channels - m)) >= 10 * channels for m in (count, max(count - 1, 0))
    )
    report(
        "linearized-dimension",
        enough and not one_less,
        f"m (m - 1) has to reach 9 times {channels}.",
        f"one channel less is enough, too: {count} is not the least."
        if enough
        else f"{count} channels do not suffice.",
    )


@exercise("linearized-build", prior=function)
def check_build(prior: Callable[[Tensor, float], Tensor]) -> None:
    """Is ``prior(slopes, strength)`` strength * sum sqrt(|1 - a|), with a gradient that is 0 where a slope is 1?"""
    cases = (([0.0, 0.5, 0.9], 1.0), ([0.0, 0.5, 1.0, 1.2], 0.02), ([-0.3, 1.0, 1.0], 0.5), ([1.0, 1.0], 0.1))
    for values, strength in cases:
        with case(f"slopes {values} and strength {strength:g}"):
            if hint := _wrong(prior, values, strength):
                return report("linearized-build", False, "", f"with slopes {values} and strength {strength:g}, {hint}")
    report("linearized-build", True, "values and gradients are those of the prior, also where slopes are 1.", "")


def _wrong(prior: Callable[[Tensor, float], Tensor], values: list[float], strength: float) -> str:
    """What is wrong with a prior and its gradient at these slopes, as the end of a sentence, or nothing."""
    slopes = torch.tensor(values, requires_grad=True)
    found = prior(slopes, strength)
    value, right = one_number(found), strength * sum(abs(1 - a) ** 0.5 for a in values)
    if not abs(value - right) <= 0.01 * strength:
        return f"the prior is {right:.3f}; yours is {value:.3f}."
    if not (isinstance(found, Tensor) and found.requires_grad):
        return "no gradient flows back to the slopes: keep the value a tensor."
    (gradient,) = torch.autograd.grad(found.sum(), slopes, allow_unused=True)
    given = np.zeros(len(values)) if gradient is None else numbers(gradient)
    if not np.isfinite(given).all():
        return "there is a NaN in the gradient: at 1 the root has none. Sum over the other slopes."
    pull = np.array([0.0 if a == 1 else strength * np.sign(a - 1) / (2 * abs(1 - a) ** 0.5) for a in values])
    if not np.allclose(given, pull, rtol=0.02, atol=0.01 * strength):
        return f"the value is right, and the gradient should be {pull.round(3)}; yours is {given.round(3)}."
    return ""
