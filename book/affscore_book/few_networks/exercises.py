"""Checks of the exercises of the page on means over a few networks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from affscore_book.kit.answers import function, one_number, whole
from affscore_book.kit.checks import case, exercise, report

#: Student's factor for the mean of 2, 3, ... networks at 95 %: the page in the browser has no library that knows it.
STUDENT = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448,
    2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484,
    2.0452, 2.0423, 2.0395, 2.0369, 2.0345, 2.0322, 2.0301, 2.0281, 2.0262, 2.0244, 2.0227,
)  # fmt: skip


def error_of_ratio(one: np.ndarray, other: np.ndarray) -> float:
    """The standard error of mean(one) / mean(other), both of shape (n,), by leaving out one network at a time."""
    n = len(one)
    without = (one.sum() - one) / (other.sum() - other)
    return float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))


@exercise("few-networks-ratio", error=function)
def check_ratio(error: Callable[[np.ndarray, np.ndarray], float]) -> None:
    """Does ``error(one, other)`` give the jackknife's standard error of the ratio of the means of two rows (n,)?"""
    rng = np.random.default_rng(0)
    rows = {
        "four networks": rng.uniform(1, 3, size=(2, 4)),
        "nine networks": rng.uniform(1, 9, size=(2, 9)),
        "two equal rows": np.tile(rng.uniform(1, 3, size=5), (2, 1)),
    }
    for name, (one, other) in rows.items():
        with case(name):
            mine, exact = one_number(error(one.copy(), other.copy())), error_of_ratio(one, other)
            if not abs(mine - exact) < 1e-6:
                hint = f"with {name} it is {exact:.4f}, yours {mine:.4f}.\nLeave a network out of both rows at once."
                return report("few-networks-ratio", False, "", hint)
    report(
        "few-networks-ratio", True, "it asks for no formula of its own: any number that networks give can have it.", ""
    )


@exercise("few-networks-enough", networks=whole)
def check_enough(networks: int, spread: float = 1.0, half: float = 0.8) -> None:
    """Is ``networks`` the least number with which Student's interval reaches at most ``half`` to either side?

    The gaps of the networks have the standard deviation ``spread``.
    """
    reach = [factor * spread / np.sqrt(n) for n, factor in enumerate(STUDENT, start=2)]
    least = next(n for n, far in enumerate(reach, start=2) if far <= half)
    if networks < 2:
        return report("few-networks-enough", False, "", "a single network has no interval.")
    if networks != least:
        word = "more than needed" if networks > least else "too few"
        hint = (
            f"{networks} networks are {word}.\nThe factor depends on the number, too: try one number after the other."
        )
        return report("few-networks-enough", False, "", hint)
    report("few-networks-enough", True, f"with {least} networks the interval reaches {reach[least - 2]:.2f}.", "")
