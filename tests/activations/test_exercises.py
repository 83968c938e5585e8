"""The checks of the exercises accept right answers only."""

import math

import numpy as np
import torch
from scipy.optimize import brentq

from affscore import affinity_score
from affscore_book.activations import exercises
from affscore_book.activations.laws import score_curve


def check(capsys, call):
    call()
    return capsys.readouterr().out.startswith("Right")


def test_exercises_accept_right_answers_only(capsys):
    # The tail's score is 0.1 where the correlation s / sqrt(exp(s^2) - 1) is 0.19.
    wide = brentq(lambda std: std / math.sqrt(math.expm1(std**2)) - 0.19, 1, 5)
    assert check(capsys, lambda: exercises.check_tail(wide)) and not check(capsys, lambda: exercises.check_tail(0.0))
    assert not any(check(capsys, lambda f=factor: exercises.check_tail(f * wide)) for factor in (0.95, 1.05))
    crossing = brentq(lambda std: (score_curve("tanh", 0, std) - score_curve("relu", 0, std)).item(), 1, 20)
    assert check(capsys, lambda: exercises.check_crossing(crossing))
    assert not check(capsys, lambda: exercises.check_crossing(1.05 * crossing))
    assert not check(capsys, lambda: exercises.check_crossing(-1.0))
    mild = lambda x: torch.relu(x - 1) + 0.1 * torch.relu(-2 - x)  # noqa: E731
    for right in (torch.nn.Softshrink(1.0), torch.nn.Hardshrink(1.0), mild):
        assert check(capsys, lambda f=right: exercises.check_graph(f))
    for wrong in (torch.relu, torch.nn.Softshrink(0.2), torch.nn.Identity(), torch.zeros_like):
        assert not check(capsys, lambda f=wrong: exercises.check_graph(f))
    inputs, outputs = np.random.default_rng(5).normal(size=(2, 1000, 300))
    assert check(capsys, lambda: exercises.check_null(affinity_score(inputs, outputs).item()))
    assert not check(
        capsys, lambda: exercises.check_null(affinity_score(inputs, outputs, covariance="empirical").item())
    )
    assert not any(check(capsys, lambda n=null: exercises.check_null(n)) for null in (0.0, 0.08, math.nan))
