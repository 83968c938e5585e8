"""Right answers are accepted, wrong ones get a hint that fits them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from affscore_book.linearized import exercises
from affscore_book.linearized.results import load_runs

RUNS = load_runs(Path(__file__).parents[2] / "book" / "data" / "linearized")


class Beside(nn.Module):
    """A wide branch without activations beside a narrow one with four: many short paths, few long ones."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Sequential(nn.Linear(1, 100), nn.Linear(100, 1))
        self.deep = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(1, 1), nn.ReLU())))

    def forward(self, x):
        return self.wide(x) + self.deep(x)


CHAIN = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
CASES = [
    (exercises.check_longer, (Beside(), torch.zeros(1, 1)), "Right: "),
    (exercises.check_longer, (CHAIN, torch.zeros(1, 1)), "APL is 1.00 and NAPL 1.00. Which summand"),
    (exercises.check_longer, (nn.Softmax(1), torch.zeros(1, 1)), "an operation without a rule"),
    (exercises.check_strength, (4 / 27**0.5,), "Right: "),
    (exercises.check_strength, (0.5,), "too weak"),
    (exercises.check_strength, (1.0,), "a weaker one will do"),
    (exercises.check_bootstrap, ((-0.05, 0.24), RUNS), "Right: "),
    (exercises.check_bootstrap, ((-0.093, 0.278), RUNS), "that is Student's"),
    (exercises.check_bootstrap, ((-0.05, 0.17), RUNS), "one end is right"),
    (exercises.check_bootstrap, ((0.05, 0.13), RUNS), "both gaps of a network together"),
    (exercises.check_bootstrap, ((0.0, 1.0), RUNS), "the mean of late − middle is 0.09"),
    (exercises.check_count, (25,), "Right: "),
    (exercises.check_count, (24,), "24 channels do not suffice"),
    (exercises.check_count, (26,), "26 is not the least"),
    (exercises.check_count, (34, 128), "34 channels do not suffice"),
    (exercises.check_count, (35, 128), "Right: "),
    (exercises.check_count, (65,), "whole number from 0 to 64"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[2]}")
def test_an_answer_is_accepted_or_gets_the_hint_that_fits(case, capsys):
    check, answer, said = case
    check(*answer)
    printed = capsys.readouterr().out
    assert said in printed and printed.startswith("Right: " if said == "Right: " else "Not yet: ")


def test_any_draw_of_the_bootstrap_is_accepted_and_a_sign_error_is_not(capsys):
    late, middle = RUNS.gap("mlp"), RUNS.gap("mlp", first="middle")
    difference = np.array([late[seed] - middle[seed] for seed in late])
    for seed in range(5):
        means = np.random.default_rng(seed).choice(difference, (1000, 8)).mean(axis=1)
        exercises.check_bootstrap(tuple(np.quantile(means, [0.025, 0.975])), RUNS)
        assert capsys.readouterr().out.startswith("Right: ")
        exercises.check_bootstrap(tuple(np.quantile(-means, [0.025, 0.975])), RUNS)
        assert capsys.readouterr().out.startswith("Not yet: ")
