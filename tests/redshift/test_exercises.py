"""The checks of the exercises accept right answers and refuse wrong ones with a hint."""

import numpy as np
from answers import accepted, refused

from affscore_book.redshift import exercises
from affscore_book.redshift.networks import Network, random_network

HALF = random_network(seed=0, draw="paired").rescaled(0.5, biases=True)
LUCK = np.array([-1.0, 1.0, -1.0, 1.0]) * 0.75**0.5  # variance 1
RIGHT = {
    "scale": lambda: exercises.check_scale(1 / 2 ** (1 / 4)),
    "biases": lambda: exercises.check_symmetry(random_network(seed=0, draw="paired"), HALF),
    "floor": lambda: exercises.check_floor(np.add.outer(np.arange(32), np.arange(32))),
    "pairs": lambda: exercises.check_draws(4 * (1 + 4) / 1, LUCK, 2 * LUCK),  # variances 1 and 4, difference 1
    "no luck shared": lambda: exercises.check_draws(4, LUCK, LUCK[[0, 0, 1, 1]]),
}
WRONG = {
    "scale": lambda: exercises.check_scale(0.5),
    "same network": lambda: exercises.check_symmetry(
        random_network(seed=0, draw="paired"), random_network(seed=0, draw="paired")
    ),
    "biases kept": lambda: exercises.check_symmetry(
        random_network(seed=0, draw="paired"), random_network(seed=0, draw="paired").rescaled(0.5, biases=False)
    ),
    "another net": lambda: exercises.check_symmetry(
        random_network(seed=0, draw="paired"), Network(HALF.weights[:-1], HALF.biases[:-1])
    ),
    "complex": lambda: exercises.check_floor(np.random.default_rng(0).normal(size=(32, 32))),
    "periodic": lambda: exercises.check_floor(np.tile(np.cos(2 * np.pi * np.arange(32) / 32), (32, 1))),
    "as many": lambda: exercises.check_draws(4, LUCK, 2 * LUCK),
    "the other way": lambda: exercises.check_draws(4 / 5, LUCK, 2 * LUCK),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
