"""The checks of the first chapter's exercises accept right answers and refuse wrong ones."""

from functools import partial

import numpy as np
import torch
from answers import accepted, refused
from torch import nn

from affscore import affinity_score
from affscore_book.first_signature import exercises


def hooked(model, batch, *, where=lambda x: x.mean((2, 3)), early=True, clean=True, most=None):
    """The scores by hooks, with a mistake on request."""
    inputs, scores = [], []

    def before(module, args):
        inputs.append(where(args[0]) if early else args[0])

    def after(module, args, output):
        x = inputs.pop()
        scores.append(affinity_score(x if early else where(x), where(output)).item())

    relus = [part for part in model.modules() if isinstance(part, nn.ReLU)]
    handles = [part.register_forward_pre_hook(before) for part in relus]
    handles += [part.register_forward_hook(after) for part in relus]
    with torch.no_grad():
        model(batch)
    for handle in handles * clean:
        handle.remove()
    return scores[:most]


X = np.random.default_rng(0).normal(size=(40, 3))
MIXING = np.array([[2, 1, 0], [1, 2, 1], [0, 1, 2]])

LOUD, QUIET = (np.array(scores) for scores in ([0.1, 0.5, 0.9, 0.7], [0.2, 0.8, 0.9, 0.7]))
FACTOR = np.std([0.5, 0.9, 0.7]) / np.std([0.8, 0.9, 0.7])

RIGHT = {
    "without the first": lambda: exercises.check_without_first(FACTOR, LOUD, QUIET),
    "dead centre": lambda: exercises.check_dead_centre(-2.0),
    "dead centre of a wider interval": lambda: exercises.check_dead_centre(-3.0, 6),
    "score one": lambda: exercises.check_score_one(X, X @ MIXING - 4),
    "hooks": lambda: exercises.check_hooks(hooked),
}
WRONG = {
    "with the first": lambda: exercises.check_without_first(LOUD.std() / QUIET.std(), LOUD, QUIET),
    "upside down": lambda: exercises.check_without_first(1 / FACTOR, LOUD, QUIET),
    "some inputs positive": lambda: exercises.check_dead_centre(-1.0),
    "not the largest": lambda: exercises.check_dead_centre(-3.0),
    "not of this width": lambda: exercises.check_dead_centre(-2.0, 6),
    "not affine": lambda: exercises.check_score_one(X, np.maximum(X, 0)),
    "channel by channel": lambda: exercises.check_score_one(X, X * np.array([1, 2, 3]) + 1),
    "one channel alone": lambda: exercises.check_score_one(X, X @ np.array([[2, 1, 0], [1, 2, 0], [0, 0, 1]])),
    "not symmetric": lambda: exercises.check_score_one(X, X @ (MIXING + np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]))),
    "negative": lambda: exercises.check_score_one(X, -X @ MIXING),
    "one call": lambda: exercises.check_hooks(partial(hooked, most=1)),
    "after the fact": lambda: exercises.check_hooks(partial(hooked, early=False)),
    "one position": lambda: exercises.check_hooks(partial(hooked, where=lambda x: x[:, :, 0, 0].clone())),
    "hooks left": lambda: exercises.check_hooks(partial(hooked, clean=False)),
}


test_right_answers_are_accepted = accepted(RIGHT)
test_wrong_answers_are_refused_with_a_hint = refused(WRONG)
