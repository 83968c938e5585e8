"""Right answers are accepted, wrong ones get a hint that fits them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from affscore_book.linearized import exercises


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
    (exercises.check_napl, (3.75,), "Right: "),
    (exercises.check_napl, (6,), "longest path"),
    (exercises.check_napl, (4.5,), "only half of them"),
    (exercises.check_napl, (1.0,), "each block adds half"),
    (exercises.check_longer, (Beside(), torch.zeros(1, 1)), "Right: "),
    (exercises.check_longer, (CHAIN, torch.zeros(1, 1)), "APL is 1.00 and NAPL 1.00. Which summand"),
    (exercises.check_longer, (nn.Softmax(1), torch.zeros(1, 1)), "an operation without a rule"),
    (exercises.check_strength, (4 / 27**0.5,), "Right: "),
    (exercises.check_strength, (0.5,), "too weak"),
    (exercises.check_strength, (1.0,), "a weaker one will do"),
    (exercises.check_count, (25,), "Right: "),
    (exercises.check_count, (24,), "24 channels do not suffice"),
    (exercises.check_count, (26,), "26 is not the least"),
    (exercises.check_count, (65,), "whole number from 0 to 64"),
    (exercises.check_matrices, (3,), "Right: "),
    (exercises.check_matrices, (7,), "between 7 matrices there are 6 activations"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[2]}")
def test_an_answer_is_accepted_or_gets_the_hint_that_fits(case, capsys):
    check, answer, said = case
    check(*answer)
    printed = capsys.readouterr().out
    assert said in printed and printed.startswith("Right: " if said == "Right: " else "Not yet: ")
