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


@exercise("linearized-build", trained=function)
def check_build(trained: Callable[[Callable[[Tensor], Tensor], float, Tensor], Tensor]) -> None:
    """Does ``trained(loss, strength, slopes)`` make slopes linear by gradient descent, 2,000 steps of rate 0.01?

    The loss of a slope is c a^2 / 2, and so it arrives at 1 where c is small. One slope is 1 already, and its c is so
    large that a step takes it away from there for ever, unless it was set to 1 for good.
    """
    cost, strength = torch.tensor([0.2, 0.4, 0.6, 0.8, 1.5, 3.0, 9.0]), 0.5
    start = torch.tensor([0.0] * 6 + [1.0])
    with case("seven slopes, one of them 1"):
        found = torch.from_numpy(numbers(trained(lambda a: (cost * a**2).sum() / 2, strength, start.clone())))
    if found.shape != start.shape:
        return report("linearized-build", False, "", f"{tuple(found.shape)} is its shape; it should be (7,).")
    if not found.isfinite().all():
        hint = "there is a NaN: at 1 the root has no gradient. Sum it over the slopes that still move."
        return report("linearized-build", False, "", hint)
    right = start.double().numpy()
    for _ in range(2000):
        moving = right != 1
        pull = strength * np.sign(1 - right[moving]) / (2 * np.sqrt(np.abs(1 - right[moving])))
        right[moving] -= 0.01 * (cost.double().numpy()[moving] * right[moving] - pull)
        right[np.abs(right - 1) <= 0.01] = 1
    if ((found == 1).numpy() != (right == 1)).any():
        hint = "another set of slopes should arrive: is the prior added to the loss, with its strength?"
        if found[-1] != 1:
            hint = "the slope that was 1 has left: what is 1 once is 1 for good."
        elif float(found[:-1].max()) > 0.9 and int((found == 1).sum()) < 2:
            hint = "slopes come near 1 and are not fixed there: within 0.01 of it, set them to 1 for good."
        return report("linearized-build", False, "", hint)
    close = bool(np.allclose(found.numpy(), right, rtol=0, atol=0.01))
    report(
        "linearized-build",
        close,
        f"{int((right == 1).sum())} of {len(right)} slopes are linear; the others are held back by the loss.",
        "the right slopes are linear; the others rest elsewhere. 2,000 steps of 0.01, of plain gradient descent?",
    )
