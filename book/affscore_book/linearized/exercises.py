"""Checks of the exercises of the chapter on linearised networks."""

from __future__ import annotations

import numpy as np
from scipy.stats import bootstrap
from torch import Tensor, nn

from affscore_book.kit.checks import report
from affscore_book.kit.statistics import student_interval
from affscore_book.linearized.paths import path_lengths
from affscore_book.linearized.results import LinearizedRuns
from affscore_book.linearized.slopes import symmetry_dimension


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


def check_count(count: int, channels: int = 64) -> None:
    """The least number of linear channels with which the group has at least ten times ReLU's dimension."""
    if count != int(count) or not 0 <= count <= channels:
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


def check_bootstrap(interval: tuple[float, float], study: LinearizedRuns) -> None:
    """Is ``(low, high)`` the bootstrap's 95 % interval of how far the MLP's late gap is above its middle gap?"""
    late, middle = study.gap("mlp"), study.gap("mlp", first="middle")
    difference = np.array([late[seed] - middle[seed] for seed in late])
    right = bootstrap((difference,), np.mean, method="percentile", rng=0).confidence_interval
    low, high = interval
    near = np.abs(np.array([low, high]) - right) < 0.03
    if np.allclose((low, high), student_interval(difference)[1:], atol=0.01):
        hint = "that is Student's interval. What do the means of networks drawn with replacement say?"
    elif near.any():
        hint = "one end is right. Take the middle 95 % of the means: cut off 2.5 % on each side."
    elif abs((low + high) / 2 - difference.mean()) < 0.03:
        hint = "it lies in the right place. Draw as many networks as there are, and both gaps of a network together."
    else:
        hint = f"the mean of late − middle is {difference.mean():.2f}, and the interval should hold it."
    report(
        "linearized-bootstrap",
        bool(near.all()),
        "0 is inside, so eight networks leave it undecided whether late is better than middle.",
        hint,
    )
