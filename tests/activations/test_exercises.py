"""The checks of the exercises accept right answers only."""

import math
import subprocess
import sys

import numpy as np
import torch
from scipy.optimize import brentq

from affscore_book.activations import exercises
from affscore_book.activations.laws import score_curve
from affscore_book.kit.checks import hint_after
from affscore_study.activations.samples import sample_score


def check(capsys, call):
    call()
    return capsys.readouterr().out.startswith("Right")


def test_exercises_accept_right_answers_only(capsys):
    crossing = brentq(lambda std: (score_curve("tanh", 0, std) - score_curve("relu", 0, std)).item(), 1, 20)
    assert check(capsys, lambda: exercises.check_crossing(crossing))
    assert not check(capsys, lambda: exercises.check_crossing(1.05 * crossing))
    assert not check(capsys, lambda: exercises.check_crossing(-1.0))
    mild = lambda x: torch.relu(x - 1) + 0.1 * torch.relu(-2 - x)  # noqa: E731
    shrink = lambda x: np.sign(x) * np.maximum(np.abs(x) - 1, 0)  # noqa: E731
    for right in (torch.nn.Softshrink(1.0), torch.nn.Hardshrink(1.0), mild, shrink):
        assert check(capsys, lambda f=right: exercises.check_graph(f))
    for wrong in (torch.relu, torch.nn.Softshrink(0.2), torch.nn.Identity(), torch.zeros_like):
        assert not check(capsys, lambda f=wrong: exercises.check_graph(f))
    fall = lambda x: -torch.nn.functional.mish(x)  # noqa: E731
    own = sample_score(torch.nn.functional.mish, -3.0, 0.25, n=300, d=100)
    for right in (sample_score(fall, -3.0, 0.25, n=300, d=100, seed=3), score_curve("mish", -3.0, 0.25).item(), 0.95):
        assert check(capsys, lambda n=right: exercises.check_fall(n))
    assert not any(check(capsys, lambda n=wrong: exercises.check_fall(n)) for wrong in (own, 0.0, 1.0, 0.9, math.nan))


def test_accepted_tail_is_steeper_and_never_falls(capsys):
    """The check accepts a tail that is steeper than the sigmoid's and never falls, and no other."""
    steeper = [lambda x: 1 / (1 + np.exp(-1.5 * x)), lambda x: np.exp(1.5 * np.minimum(x, 0))]
    wrong = [lambda x: 1 / (1 + np.exp(-x)), lambda x: -np.exp(1.5 * x), lambda x: np.zeros_like(x), np.arctan]
    assert all(check(capsys, lambda f=f: exercises.check_tail(f)) for f in steeper)
    assert not any(check(capsys, lambda f=f: exercises.check_tail(f)) for f in wrong)


def test_a_tail_of_another_shape_is_refused_with_a_sentence(capsys):
    hint_after(0)
    exercises.check_tail(lambda x: 1.0)
    assert capsys.readouterr().out == "Not yet: it should give one finite number for each number of the array.\n"


def test_the_checks_import_no_torch():
    program = "import sys; from affscore_book.activations import exercises; assert 'torch' not in sys.modules"
    program += "; exercises.check_fall(0.949); exercises.check_crossing(4.0); exercises.check_graph(exercises.relu)"
    program += "; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
