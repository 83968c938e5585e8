"""The checks of the exercises know right from wrong, and say why."""

import math

import numpy as np
import pytest

from affscore import affine_map, affinity_score
from affscore_book.theory import exercises
from affscore_book.theory.finite import linear_twin
from affscore_book.theory.measures import form_one, outlier_pair

S_X, S_Y = np.diag([4.0, 1.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
SOLUTION = form_one(S_X, S_Y)
FOUR = np.array([-1.0, -1, 1, 1])
X, Y = exercises.layer_in_question()
SCORE, TWIN, IMAGE = (affinity_score(X, z).item() for z in (Y, linear_twin(X, Y), affine_map(X, Y)(X)))


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
        ("check_below_zero", outlier_pair(), "Right"),
        ("check_below_zero", (FOUR, np.maximum(FOUR, 0)), "Not yet: the score is"),
        ("check_below_zero", (FOUR, 0 * FOUR), "Not yet: the score is undefined"),
        ("check_share", ((1 - TWIN) / (1 - SCORE), X, Y), "Right"),
        ("check_share", (1 - (1 - TWIN) / (1 - SCORE), X, Y), "Not yet: that is what the twin does not lack"),
        ("check_share", ((1 - IMAGE) / (1 - SCORE), X, Y), "Not yet: that is T(x)"),
        ("check_share", (0.0, X, Y), "Not yet: without shrinkage"),
        ("check_share", (0.5, X, Y), "Not yet: 0.500 is not the twin's share"),
    ],
)
def test_checks_know_right_from_wrong(capsys, check, arguments, start):
    getattr(exercises, check)(*arguments)
    assert capsys.readouterr().out.startswith(start)
