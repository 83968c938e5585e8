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
    assert check(capsys, lambda: exercises.check_even_power(0.634)) and not check(
        capsys, lambda: exercises.check_even_power(0.711)
    )

    def score(std):
        return 1 - math.sqrt(1 - std / math.sqrt(math.expm1(std**2)))

    assert check(capsys, lambda: exercises.check_exponential(score))
    assert not check(capsys, lambda: exercises.check_exponential(lambda std: score(1.01 * std)))
    crossing = brentq(lambda std: (score_curve("tanh", 0, std) - score_curve("relu", 0, std)).item(), 1, 20)
    assert check(capsys, lambda: exercises.check_crossing(crossing))
    assert not check(capsys, lambda: exercises.check_crossing(1.05 * crossing))
    assert not check(capsys, lambda: exercises.check_crossing(-1.0))
    assert check(capsys, lambda: exercises.check_dimension(lambda x: -x))
    assert not check(capsys, lambda: exercises.check_dimension(torch.relu))
    assert check(capsys, lambda: exercises.check_rounding(-15.0))
    assert not check(capsys, lambda: exercises.check_rounding(-2.0))
    assert not check(capsys, lambda: exercises.check_rounding(-60.0))
