"""Checks of the exercises of the chapter on linearised networks."""

from __future__ import annotations

import math

from torch import Tensor, nn

from affscore_book.kit.checks import report
from affscore_book.linearized.paths import path_lengths
from affscore_book.linearized.slopes import symmetry_dimension


def check_napl(value: float) -> None:
    """NAPL of three identity-skip blocks whose inner ReLU is linear in half of its channels, with a ReLU after each."""
    if math.isclose(value, 6):
        hint = "that is the longest path. How long is the skip of a block, and what is the mean of it and the branch?"
    elif math.isclose(value, 4.5):
        hint = "the units after the addition all count, but in the branch only half of them are non-linear."
    else:
        hint = "each block adds half of its branch's p (skip or branch, each with 1/2) and the p after the addition."
    report("linearized-blocks", math.isclose(value, 3.75), "three times 0.5 / 2 + 1.", hint)


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


def check_strength(value: float) -> None:
    """The least strength that pulls a slope from 0 to 1 against a loss of (a - 0)^2 / 2."""
    right = 4 / 27**0.5
    hint = (
        "too weak: on the way there is a slope at which the loss pulls back harder than the prior pulls on."
        if value < right
        else "a weaker one will do: look for the slope at which the two pulls are in the tightest balance."
    )
    report("linearized-strength", abs(value - right) < 0.005, "the tightest place is a = 2/3.", hint)


def check_count(count: int) -> None:
    """The least number of linear channels of 64 with which the group has at least ten times ReLU's dimension."""
    if count != int(count) or not 0 <= count <= 64:
        return report("linearized-dimension", False, "", f"{count} should be a whole number from 0 to 64.")
    enough, one_less = (symmetry_dimension([1.0] * m + [0.0] * (64 - m)) >= 640 for m in (count, max(count - 1, 0)))
    report(
        "linearized-dimension",
        enough and not one_less,
        "m (m - 1) has to reach 9 times 64.",
        f"one channel less is enough, too: {count} is not the least."
        if enough
        else f"{count} channels do not suffice.",
    )


def check_matrices(count: int) -> None:
    """Weight matrices that remain of an MLP of seven when the last four of its six activations are all linear."""
    report(
        "linearized-matrices",
        count == 3,
        "two activations are left, so there are three matrices.",
        f"between {count} matrices there are {count - 1} activations; how many layers are still non-linear?",
    )
