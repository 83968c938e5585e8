"""The checks of the first chapter's exercises accept right answers and refuse wrong ones."""

from types import SimpleNamespace

import numpy as np
from answers import accepted, refused
from torch import nn

from affscore_book.first_signature import exercises


class Flip(nn.Module):
    def forward(self, x):
        return -x


X = np.random.default_rng(0).normal(size=(40, 3))
MIXING = np.array([[2, 1, 0], [1, 2, 1], [0, 1, 2]])

LOUD, QUIET = (SimpleNamespace(mean=np.array(scores)) for scores in ([0.1, 0.5, 0.9, 0.7], [0.2, 0.8, 0.9, 0.7]))
FACTOR = np.std([0.5, 0.9, 0.7]) / np.std([0.8, 0.9, 0.7])

RIGHT = {
    "without the first": lambda: exercises.check_without_first(FACTOR, LOUD, QUIET),
    "dead centre": lambda: exercises.check_dead_centre(-2.0),
    "dead centre of a wider interval": lambda: exercises.check_dead_centre(-3.0, 6),
    "score one": lambda: exercises.check_score_one(X, X @ MIXING - 4),
    "dead network": lambda: exercises.check_dead_network(nn.Sequential(nn.ReLU(), Flip(), nn.ReLU())),
}
WRONG = {
    "with the first": lambda: exercises.check_without_first(LOUD.mean.std() / QUIET.mean.std(), LOUD, QUIET),
    "upside down": lambda: exercises.check_without_first(1 / FACTOR, LOUD, QUIET),
    "some inputs positive": lambda: exercises.check_dead_centre(-1.0),
    "not the largest": lambda: exercises.check_dead_centre(-3.0),
    "not of this width": lambda: exercises.check_dead_centre(-2.0, 6),
    "not affine": lambda: exercises.check_score_one(X, np.maximum(X, 0)),
    "channel by channel": lambda: exercises.check_score_one(X, X * np.array([1, 2, 3]) + 1),
    "one channel alone": lambda: exercises.check_score_one(X, X @ np.array([[2, 1, 0], [1, 2, 0], [0, 0, 1]])),
    "not symmetric": lambda: exercises.check_score_one(X, X @ (MIXING + np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]))),
    "negative": lambda: exercises.check_score_one(X, -X @ MIXING),
    "one call": lambda: exercises.check_dead_network(nn.ReLU()),
    "alive": lambda: exercises.check_dead_network(nn.Sequential(nn.ReLU(), nn.Tanh())),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
