"""The checks of the first chapter's exercises accept right answers and refuse wrong ones."""

import numpy as np
from answers import accepted, refused
from torch import nn

from affscore import Signature
from affscore.calls import Call
from affscore_book.first_signature import exercises


class Flip(nn.Module):
    def forward(self, x):
        return -x


X = np.random.default_rng(0).normal(size=(40, 3))
BEFORE = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (3,), 1) for i in range(4)]
TRAINED = Signature(BEFORE, np.array([[0.1, 0.2, 0.9, 0.4]]))
UNTRAINED = Signature(BEFORE, np.array([[0.5, 0.6, 0.7, 0.8]]))

RIGHT = {
    "dead centre": lambda: exercises.check_dead_centre(-2.0),
    "score one": lambda: exercises.check_score_one(X, X @ np.array([[2, 1, 0], [1, 2, 0], [0, 0, 1]]) - 4),
    "dead network": lambda: exercises.check_dead_network(nn.Sequential(nn.ReLU(), Flip(), nn.ReLU())),
    "training": lambda: exercises.check_training(0.75, TRAINED, UNTRAINED),
}
WRONG = {
    "some inputs positive": lambda: exercises.check_dead_centre(-1.0),
    "not the largest": lambda: exercises.check_dead_centre(-3.0),
    "not affine": lambda: exercises.check_score_one(X, np.maximum(X, 0)),
    "same factor": lambda: exercises.check_score_one(X, 3 * X + 1),
    "negative": lambda: exercises.check_score_one(X, X * np.array([1, -1, 2])),
    "one call": lambda: exercises.check_dead_network(nn.ReLU()),
    "alive": lambda: exercises.check_dead_network(nn.Sequential(nn.ReLU(), nn.Tanh())),
    "complement": lambda: exercises.check_training(0.25, TRAINED, UNTRAINED),
    "number of calls": lambda: exercises.check_training(3, TRAINED, UNTRAINED),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
