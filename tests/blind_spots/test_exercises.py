"""The checks of the exercises know right from wrong, and say why."""

import math

import numpy as np
import pytest

from affscore_book.blind_spots import exercises

CROSSED = np.array([0.0, 1, 2, 9])
MANY = np.random.default_rng(4).exponential(size=200)  # its order is chance, so reversing it is a shuffle
FOUR, APART = np.array([-1.0, -1, 1, 1]), np.array([-math.sqrt(2), 0, 0, math.sqrt(2)])


@pytest.mark.parametrize(
    ("check", "arguments", "start"),
    [
        ("check_gap", (FOUR, APART), "Right"),
        ("check_gap", (FOUR, FOUR[::-1]), "Not yet: the two clouds are the same"),
        ("check_gap", (FOUR, APART + 1), "Not yet: the means differ"),
        ("check_gap", (FOUR, 2 * APART), "Not yet: the covariances differ"),
        ("check_blind_spot", (CROSSED, CROSSED[::-1].copy()), "Right"),
        ("check_blind_spot", (CROSSED, CROSSED), "Not yet: the paired score is 1.00"),
        ("check_blind_spot", (CROSSED, -CROSSED), "Not yet: the affinity score is"),
        ("check_blind_spot", (MANY, MANY[::-1].copy()), "Not yet: the paired score is -0.0"),
        ("check_from_r2", (1 - math.sqrt(0.2), 0.64), "Right"),
        ("check_from_r2", (1 - math.sqrt(0.36), 0.64), "Not yet: the formula takes the correlation"),
        ("check_from_r2", (0.64, 0.64), "Not yet: 0.640 does not fit"),
    ],
)
def test_checks_know_right_from_wrong(capsys, check, arguments, start):
    getattr(exercises, check)(*arguments)
    assert capsys.readouterr().out.startswith(start)
