"""The checks of the exercises accept right answers and refuse wrong ones with a hint."""

import numpy as np
from answers import accepted, refused

from affscore_book.redshift import exercises
from affscore_book.redshift.complexity import fourier_frequency
from affscore_book.redshift.networks import Network
from affscore_study.redshift.draws import random_network

NET = random_network(seed=0, draw="paired")
HALF = NET.rescaled(0.5, biases=True)
DRAWS = np.random.default_rng(0)
LUCK, CHANGE = DRAWS.normal(size=200), DRAWS.normal(0.1, 0.3, size=200)
WAVE = np.cos(np.pi * (np.arange(32) + 0.5) / 32)


def by_hand(image, power=2):
    """The mean frequency with cosines written out; no code of the chapter and no transform."""
    waves = [np.cos(np.pi * np.outer(np.arange(n), np.arange(n) + 0.5) / n) for n in image.shape]
    rows, columns = (wave / np.linalg.norm(wave, axis=1, keepdims=True) for wave in waves)
    weights = np.abs(rows @ (image - image.mean()) @ columns.T) ** power
    return (weights * np.hypot(*np.indices(image.shape))).sum() / weights.sum()


def one_unit(pairs):
    """The first unit's inputs doubled and its outputs halved."""
    (w, b), (v, c), *rest = [(np.array(weights), np.array(biases)) for weights, biases in pairs]
    w[0], b[0], v[:, 0] = 2 * w[0], 2 * b[0], v[:, 0] / 2
    return [(w, b), (v, c), *rest]


def signed(changes, draws):
    return (DRAWS.choice([-1, 1], (draws, len(changes))) * changes).mean(axis=1)


def shuffled(one, other):
    both = np.concatenate([one, other])
    mixed = [DRAWS.permutation(both) for _ in range(500)]
    gaps = np.array([a[len(one) :].mean() - a[: len(one)].mean() for a in mixed])
    return np.concatenate([gaps, -gaps])  # of mean 0, whatever was drawn before: the hint is that on its spread


RIGHT = {
    "build": lambda: exercises.check_build(by_hand),
    "biases": lambda: exercises.check_symmetry(NET, HALF),
    "saddle": lambda: exercises.check_slow(np.outer(np.arange(-15.5, 16), np.arange(-15.5, 16))),
    "one cell of waves": lambda: exercises.check_slow(np.outer(WAVE, WAVE)),
    "null": lambda: exercises.check_null(signed(CHANGE, 1000), LUCK, LUCK + CHANGE),
    "long null": lambda: exercises.check_null(signed(CHANGE, 20_000).tolist(), LUCK, LUCK + CHANGE),
    "no luck shared": lambda: exercises.check_null(signed(LUCK[::-1] - LUCK, 2000), LUCK, LUCK[::-1]),
}
PAIRS = [(w.numpy(), b.tolist()) for w, b in zip(NET.weights, NET.biases, strict=True)]
RIGHT |= {
    "biases, in pairs": lambda: exercises.check_symmetry(PAIRS, [(w / 2, np.divide(b, 2.0**k)) for k, (w, b) in
                                                                 enumerate(PAIRS, start=1)]),
    "one unit only": lambda: exercises.check_symmetry(PAIRS, one_unit(PAIRS)),
}  # fmt: skip
WRONG = {
    "build, Fourier": lambda: exercises.check_build(fourier_frequency),
    "build, magnitudes in place of powers": lambda: exercises.check_build(lambda image: by_hand(image, power=1)),
    "build, nothing": lambda: exercises.check_build(lambda image: 0.0),
    "same network": lambda: exercises.check_symmetry(NET, NET),
    "biases kept": lambda: exercises.check_symmetry(NET, NET.rescaled(0.5, biases=False)),
    "biases kept, in pairs": lambda: exercises.check_symmetry(PAIRS, [(w / 2, b) for w, b in PAIRS]),
    "weights alone": lambda: exercises.check_symmetry(PAIRS, [w for w, _ in PAIRS]),
    "another net": lambda: exercises.check_symmetry(NET, Network(HALF.weights[:-1], HALF.biases[:-1])),
    "complex": lambda: exercises.check_slow(np.random.default_rng(0).normal(size=(32, 32))),
    "ramp": lambda: exercises.check_slow(np.tile(np.arange(32), (32, 1))),
    "slow wave": lambda: exercises.check_slow(np.tile(WAVE, (32, 1))),
    "constant": lambda: exercises.check_slow(np.ones((32, 32))),
    "across draws": lambda: exercises.check_null(shuffled(LUCK, LUCK + CHANGE), LUCK, LUCK + CHANGE),
    "one sign": lambda: exercises.check_null(np.abs(signed(CHANGE, 1000)), LUCK, LUCK + CHANGE),
    "bootstrap": lambda: exercises.check_null(DRAWS.choice(CHANGE, (1000, 200)).mean(1), LUCK, LUCK + CHANGE),
    "single changes": lambda: exercises.check_null(DRAWS.choice([-1, 1], 1000) * 0.3, LUCK, LUCK + CHANGE),
    "too few": lambda: exercises.check_null(signed(CHANGE, 10), LUCK, LUCK + CHANGE),
    "not a row": lambda: exercises.check_null(np.zeros((1000, 2)), LUCK, LUCK + CHANGE),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
