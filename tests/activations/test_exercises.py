"""The checks of the exercises accept right answers only."""

import math

import torch
from scipy.optimize import brentq

from affscore_book.activations import exercises
from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import sample_score


def check(capsys, call):
    call()
    return capsys.readouterr().out.startswith("Right")


def test_exercises_accept_right_answers_only(capsys):
    crossing = brentq(lambda std: (score_curve("tanh", 0, std) - score_curve("relu", 0, std)).item(), 1, 20)
    assert check(capsys, lambda: exercises.check_crossing(crossing))
    assert not check(capsys, lambda: exercises.check_crossing(1.05 * crossing))
    assert not check(capsys, lambda: exercises.check_crossing(-1.0))
    mild = lambda x: torch.relu(x - 1) + 0.1 * torch.relu(-2 - x)  # noqa: E731
    for right in (torch.nn.Softshrink(1.0), torch.nn.Hardshrink(1.0), mild):
        assert check(capsys, lambda f=right: exercises.check_graph(f))
    for wrong in (torch.relu, torch.nn.Softshrink(0.2), torch.nn.Identity(), torch.zeros_like):
        assert not check(capsys, lambda f=wrong: exercises.check_graph(f))
    fall = lambda x: -torch.nn.functional.mish(x)  # noqa: E731
    own = sample_score(torch.nn.functional.mish, -3.0, 0.25, n=1000, d=300)
    for right in (sample_score(fall, -3.0, 0.25, n=1000, d=300, seed=3), score_curve("mish", -3.0, 0.25).item(), 0.95):
        assert check(capsys, lambda n=right: exercises.check_fall(n))
    assert not any(check(capsys, lambda n=wrong: exercises.check_fall(n)) for wrong in (own, 0.0, 1.0, 0.9, math.nan))
