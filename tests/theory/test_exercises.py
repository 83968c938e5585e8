"""The checks of the exercises know right from wrong, and say why."""

import math

import numpy as np
import pytest

from affscore_book.theory import exercises
from affscore_book.theory.measures import form_one, outlier_pair

S_X, S_Y = np.diag([4.0, 1.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
SOLUTION = form_one(S_X, S_Y)
CROSSED = np.array([0.0, 1, 2, 9])
FOUR, APART = np.array([-1.0, -1, 1, 1]), np.array([-math.sqrt(2), 0, 0, math.sqrt(2)])


@pytest.mark.parametrize(
    ("check", "arguments", "start"),
    [
        ("check_distance", (math.sqrt(2 / 3), [0, 4, 1], [5, 0, 2]), "Right"),
        ("check_distance", (2 / 3, [0, 4, 1], [5, 0, 2]), "Not yet: that is the mean squared distance"),
        ("check_distance", (math.sqrt(42 / 3), [0, 4, 1], [5, 0, 2]), "Not yet: you paired the points as they come"),
        ("check_distance", (0.0, [0, 4, 1], [5, 0, 2]), "Not yet: 0.000 is not the distance"),
        ("check_matrix", (SOLUTION, S_X, S_Y), "Right"),
        ("check_matrix", (np.eye(3), S_X, S_Y), "Not yet: the matrix has shape"),
        ("check_matrix", (S_Y @ np.linalg.inv(S_X), S_X, S_Y), "Not yet: the matrix is not symmetric"),
        ("check_matrix", (-SOLUTION, S_X, S_Y), "Not yet: the matrix has a negative eigenvalue"),
        ("check_matrix", (np.eye(2), S_X, S_Y), "Not yet: A S_X A is not S_Y"),
        ("check_gap", (FOUR, APART), "Right"),
        ("check_gap", (FOUR, FOUR[::-1]), "Not yet: the two clouds are the same"),
        ("check_gap", (FOUR, APART + 1), "Not yet: the means differ"),
        ("check_gap", (FOUR, 2 * APART), "Not yet: the covariances differ"),
        ("check_blind_spot", (CROSSED, CROSSED[::-1].copy()), "Right"),
        ("check_blind_spot", (CROSSED, CROSSED), "Not yet: the paired score is 1.00"),
        ("check_blind_spot", (CROSSED, -CROSSED), "Not yet: the affinity score is"),
        ("check_below_zero", outlier_pair(), "Right"),
        ("check_below_zero", (FOUR, np.maximum(FOUR, 0)), "Not yet: the score is"),
        ("check_below_zero", (FOUR, 0 * FOUR), "Not yet: the score is undefined"),
        ("check_from_r2", (1 - math.sqrt(0.2), 0.64), "Right"),
        ("check_from_r2", (1 - math.sqrt(0.36), 0.64), "Not yet: the formula takes the correlation"),
        ("check_from_r2", (0.64, 0.64), "Not yet: 0.640 does not fit"),
    ],
)
def test_checks_know_right_from_wrong(capsys, check, arguments, start):
    getattr(exercises, check)(*arguments)
    assert capsys.readouterr().out.startswith(start)
