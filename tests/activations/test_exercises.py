"""The checks of the exercises accept right answers only."""

import math

import torch
from scipy.optimize import brentq

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
    assert check(capsys, lambda: exercises.check_dimension(lambda x: -x))
    assert not check(capsys, lambda: exercises.check_dimension(torch.relu))
    assert check(capsys, lambda: exercises.check_rounding(-15.0))
    assert not check(capsys, lambda: exercises.check_rounding(-2.0))
    assert not check(capsys, lambda: exercises.check_rounding(-60.0))
