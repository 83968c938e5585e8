"""The checks of the exercises accept right answers and refuse wrong ones with a hint."""

import numpy as np
from answers import accepted, refused

from affscore_book.redshift import exercises
from affscore_book.redshift.networks import Network, random_network

HALF = random_network(seed=0, draw="paired").rescaled(0.5, biases=True)
RIGHT = {
    "scale": lambda: exercises.check_scale(1 / 2 ** (1 / 4)),
    "biases": lambda: exercises.check_symmetry(random_network(seed=0, draw="paired"), HALF),
    "floor": lambda: exercises.check_floor(np.add.outer(np.arange(32), np.arange(32))),
    "draws": lambda: exercises.check_share(0.25, np.array([1.0, 0.5, 0.5, 0.5]), np.array([0.9, 0.6, 0.7, 0.8])),
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
    "complement": lambda: exercises.check_share(0.75, np.array([1.0, 0.5]), np.array([0.9, 0.4])),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
