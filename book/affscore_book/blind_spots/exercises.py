"""Checks of the exercises of the chapter on blind spots."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from affscore.score import affinity_score, paired_affinity_score
from affscore_book.kit.answers import function, mapping, numbers, one_number
from affscore_book.kit.checks import case, exercise, report
from affscore_book.theory.measures import fixed_image

TOLERANCE = 0.006  # two digits suffice


@exercise("blind-spots-shuffle", x=numbers, y=numbers)
def check_blind_spot(x: Any, y: Any) -> None:
    """Is the affinity score of (x, y) above 0.99 while the paired score is below -0.1, lower than chance makes it?"""
    if x.shape != y.shape:
        return report("blind-spots-shuffle", False, "", f"the outputs have shape {y.shape}; it should be {x.shape}.")
    score = affinity_score(x, y, covariance="empirical").item()
    paired = paired_affinity_score(x, y, covariance="empirical").item()
    if not score > 0.99:
        return report("blind-spots-shuffle", False, "", f"the affinity score is {score:.2f}; it should be above 0.99.")
    if not paired < -0.1:
        return report("blind-spots-shuffle", False, "", f"the paired score is {paired:.2f}; it should be below -0.1.")
    report("blind-spots-shuffle", True, "the clouds agree, the pairs do not.", "")


@exercise("blind-spots-build", paired=function)
def check_build(paired: Callable[[Any, Any], float]) -> None:
    """Does ``paired(x, y)`` give the paired score of samples of shape (n, d), without shrinkage?"""
    x = np.random.default_rng(0).normal(size=(60, 3))
    for name, y in (("tanh(x)", np.tanh(x)), ("-x", -x), ("a shuffled x", x[::-1].copy()), ("2 x + 1", 2 * x + 1)):
        with case(name):
            exact, mine = paired_affinity_score(x, y, covariance="empirical").item(), one_number(paired(x, y))
            if not abs(mine - exact) < 1e-7:
                hint = f"the paired score of {name} is {exact:.4f} on this sample, and yours is {mine:.4f}."
                return report("blind-spots-build", False, "", hint)
    report("blind-spots-build", True, "a map, and two means: no coupling has to be found.", "")


def call_and_strangers(seed: int = 0) -> tuple[Any, Any, list[Any]]:
    """Inputs and outputs of ReLU, each (256, 8), and its outputs for ten other batches of the same law."""
    batches = np.random.default_rng(seed).normal(size=(11, 256, 8))
    return batches[0], np.maximum(batches[0], 0), list(np.maximum(batches[1:], 0))


@exercise("blind-spots-null", null=one_number)
def check_null(null: float, x: Any, y: Any, others: Any) -> None:
    """Is ``null`` the mean score of ``x`` with each of ``others``, with shrinkage or without?"""
    score = affinity_score(x, y).item()
    each = [
        [affinity_score(x, other, covariance=kind).item() for other in others] for kind in ("ledoit_wolf", "empirical")
    ]
    means = [float(np.mean(scores)) for scores in each]
    single = any(abs(null - one) < 1e-6 for scores in each for one in scores)
    hint = f"{null:.3f} is no mean of the ten scores affinity_score(x, others[0]), affinity_score(x, others[1]), ..."
    if abs(null - score) < TOLERANCE:
        hint = "that is the score itself: shuffled outputs are the same cloud. What is another cloud of the same law?"
    elif single:
        hint = "that is the score with one of the ten; take the mean over all of them."
    praise = (
        f"strangers score {means[0]:.2f}, the call {score:.2f}. That it is higher shows that outputs follow inputs; "
        "how much higher is no scale."
    )
    report("blind-spots-null", not single and min(abs(null - mean) for mean in means) < TOLERANCE, praise, hint)


_KINDS = list(permutations(("shuffled", "non-linear", "dead", "turn", "PSD-affine")))


def layers_in_the_dark(number: int = 0) -> dict[str, tuple[Any, Any]]:
    """Five pairs of inputs and outputs, each of shape (300, 2), by name: in one of 120 orders."""
    rng = np.random.default_rng(5)
    x = rng.exponential(size=(300, 2))
    image = fixed_image(x)
    outputs = {
        "shuffled": rng.permutation(image),
        "non-linear": np.tanh(3 * (x - 1)),
        "dead": np.zeros_like(x),
        "turn": x @ np.array([[0.6, 0.8], [-0.8, 0.6]]),
        "PSD-affine": image,
    }
    return {name: (x, outputs[kind]) for name, kind in zip("abcde", _KINDS[number], strict=True)}


@exercise("blind-spots-dark", answer=mapping(str))
def check_dark(answer: Any, number: int = 0) -> None:
    """Does ``answer`` name the kind of each of :func:`layers_in_the_dark`?"""
    wrong = [name for name, kind in zip("abcde", _KINDS[number], strict=True) if answer.get(name) != kind]
    hint = (
        f"{len(wrong)} of 5 are not what you say. The score, the paired score and R2 together tell all of them apart."
    )
    report("blind-spots-dark", not wrong, "three measures, three blind spots, and no two layers alike in all.", hint)
