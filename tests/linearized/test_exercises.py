"""Right answers are accepted, wrong ones get a hint that fits them. (A network for the first is in the notebook.)"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from affscore_book.linearized import exercises


def prior(slopes, strength, *, masked=True, power=0.5, weight=1.0):
    """What the exercise asks for, unless something is changed."""
    moving = slopes[slopes != 1] if masked else slopes
    return weight * strength * ((1 - moving).abs() ** power).sum()


CHAIN = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
CASES = [
    (exercises.check_longer, (CHAIN, torch.zeros(1, 1)), "APL is 1.00 and NAPL 1.00. Which summand"),
    (exercises.check_longer, (nn.Softmax(1), torch.zeros(1, 1)), "an operation without a rule"),
    (exercises.check_strength, (4 / 27**0.5,), "Right: "),
    (exercises.check_strength, (0.5,), "too weak"),
    (exercises.check_strength, (1.0,), "a weaker one will do"),
    (exercises.check_build, (prior,), "Right: "),
    (exercises.check_build, (partial(prior, masked=False),), "there is a NaN"),
    (exercises.check_build, (partial(prior, power=1.0),), "the prior is 2.023; yours is 1.600"),
    (exercises.check_build, (partial(prior, weight=2.0),), "yours is 4.047"),
    (exercises.check_build, (lambda slopes, strength: prior(slopes, strength).item(),), "no gradient flows"),
    (exercises.check_build, (lambda slopes, strength: prior(slopes.detach(), strength),), "no gradient flows"),
    (
        exercises.check_build,
        (lambda slopes, strength: prior(slopes, strength) - slopes.sum() + slopes.sum().detach(),),
        "the gradient should be",
    ),
    (exercises.check_count, (25,), "Right: "),
    (exercises.check_count, (24,), "24 channels do not suffice"),
    (exercises.check_count, (26,), "26 is not the least"),
    (exercises.check_count, (34, 128), "34 channels do not suffice"),
    (exercises.check_count, (35, 128), "Right: "),
    (exercises.check_count, (65,), "whole number from 0 to 64"),
]


@pytest.mark.parametrize("case", CASES)
def test_an_answer_is_accepted_or_gets_the_hint_that_fits(case, capsys):
    check, answer, said = case
    check(*answer)
    printed = capsys.readouterr().out
    assert said in printed and printed.startswith("Right: " if said == "Right: " else "Not yet: ")
