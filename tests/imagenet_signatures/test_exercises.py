"""Right answers are accepted, wrong ones get a hint."""

from __future__ import annotations

import math

import numpy as np
from answers import accepted, refused
from scipy import stats

from affscore import Signature
from affscore.calls import Call
from affscore_book.imagenet_signatures import exercises

MODULES = ["relu", "a.relu", "a.relu", "a.relu", "b.relu", "b.relu"]
SHARED = Signature(
    [Call(f"{m}:relu[{i}]", m, "relu", i, False, (4,), 1) for i, m in enumerate(MODULES)],
    np.full((1, 6), 0.5),
    batch_sizes=[9],
)
TOKENS = Signature([Call("mlp:gelu[0]", "mlp", "gelu", 0, False, (197, 3072), 2)], [[0.5]], batch_sizes=[9])
T = stats.t.ppf(0.975, 3)
STARTS = np.random.default_rng(0).uniform(0.5, 1.0, (4, 9))
TRAINED = 0.3 * STARTS[[1, 2, 3, 0]] + np.random.default_rng(1).uniform(0.4, 0.7, (4, 9))
INSIDE = np.arange(9) % 2 == 1


def share(calls, *, own=False):
    """The mean squared correlation, by regression; pairs of one seed are left out unless ``own``."""
    pairs = [(x[calls], y[calls]) for i, x in enumerate(STARTS) for j, y in enumerate(TRAINED) if own or i != j]
    return np.mean([stats.linregress(x, y).rvalue ** 2 for x, y in pairs])


def ends(factor=3 / 4, t=T):
    """The jackknife's interval of the ratio, written out."""
    ratios = []
    for kept in [0, 1, 2, 3], [1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]:
        apart = [math.dist(TRAINED[i], TRAINED[j]) for i in kept for j in kept if i < j]
        ratios.append(np.mean(apart) / np.mean([math.dist(TRAINED[i], STARTS[i]) for i in kept]))
    half = t * math.sqrt(factor * 4 * np.var(ratios[1:]))
    return ratios[0] - half, ratios[0] + half


RIGHT = {
    "lists": lambda: exercises.check_lists(3, 2, SHARED),
    "lengths": lambda: exercises.check_lengths(3072, 577, TOKENS, 384, 16),
    "dropped": lambda: exercises.check_dropped(share(INSIDE), TRAINED, STARTS, INSIDE),
    "jackknife": lambda: exercises.check_jackknife(*ends(), TRAINED, STARTS),
    "jackknife with t rounded": lambda: exercises.check_jackknife(*ends(t=3.18), TRAINED, STARTS),
}
WRONG = {
    "calls": lambda: exercises.check_lists(6, 6, SHARED),
    "all mixed": lambda: exercises.check_lists(3, 3, SHARED),
    "swapped": lambda: exercises.check_lengths(577, 3072, TOKENS, 384, 16),
    "no class token": lambda: exercises.check_lengths(3072, 576, TOKENS, 384, 16),
    "all calls": lambda: exercises.check_dropped(share(np.full(9, True)), TRAINED, STARTS, INSIDE),
    "its own start": lambda: exercises.check_dropped(share(INSIDE, own=True), TRAINED, STARTS, INSIDE),
    "no root": lambda: exercises.check_dropped(share(INSIDE) ** 0.5, TRAINED, STARTS, INSIDE),
    "no factor": lambda: exercises.check_jackknife(*ends(factor=1), TRAINED, STARTS),
    "an ordinary error": lambda: exercises.check_jackknife(*ends(factor=1 / 12), TRAINED, STARTS),
    "one end": lambda: exercises.check_jackknife(0.0, ends()[1], TRAINED, STARTS),
    "the other end": lambda: exercises.check_jackknife(ends()[0], 2.0, TRAINED, STARTS),
    "another middle": lambda: exercises.check_jackknife(*np.add(ends(), 0.1), TRAINED, STARTS),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
