"""The checks of the exercises know right from wrong, and say why."""

import math

import numpy as np
import pytest

from affscore import affine_map, affinity_score
from affscore.companions import linear_twin
from affscore_book.theory import exercises
from affscore_book.theory.measures import form_one

S_X, S_Y = np.diag([4.0, 1.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
SOLUTION = form_one(S_X, S_Y)
FOLD, R = ([-2, 0, 1], [2, 0, 1]), math.sqrt(27 / 28)
PLACES = [[2, 0], [-2, 0], [0, 1], [0, -1]]
X, Y = exercises.layer_in_question()
SCORE, TWIN, IMAGE = (affinity_score(X, z).item() for z in (Y, linear_twin(X, Y), affine_map(X, Y)(X)))


@pytest.mark.parametrize("seed", [7, 8, 99])
def test_any_layer_in_question_lacks_what_its_twin_lacks(seed):
    x, y = exercises.layer_in_question(seed)
    plain, twin = affinity_score(x, y).item(), affinity_score(x, linear_twin(x, y)).item()
    assert plain < 0.7 and (1 - twin) / (1 - plain) > 0.85
    assert (x == X).all() == (seed == 7)


@pytest.mark.parametrize(
    ("check", "arguments", "start"),
    [
        ("check_by_hand", (1 - math.sqrt(1 - R), *FOLD), "Right"),
        ("check_by_hand", (0.87, *FOLD), "Right"),
        ("check_by_hand", (0.88, *FOLD), "Not yet: 0.880 is not"),
        ("check_by_hand", (R, *FOLD), "Not yet: that is r"),
        (
            "check_by_hand",
            (1 - math.sqrt(1 + math.sqrt(3 / 7)), *FOLD),
            "Not yet: you took the correlation of the pairs",
        ),
        ("check_by_hand", (0.0, *FOLD), "Not yet: 0.000 is not 1 - sqrt(1 - r)"),
        ("check_matrix", (SOLUTION, S_X, S_Y), "Right"),
        ("check_matrix", (np.eye(3), S_X, S_Y), "Not yet: the matrix has shape"),
        ("check_matrix", (S_Y @ np.linalg.inv(S_X), S_X, S_Y), "Not yet: the matrix is not symmetric"),
        ("check_matrix", (-SOLUTION, S_X, S_Y), "Not yet: the matrix has a negative eigenvalue"),
        ("check_matrix", (np.eye(2), S_X, S_Y), "Not yet: A cov_x A is not cov_y"),
        ("check_copies", (10, PLACES), "Right"),
        ("check_copies", (9, PLACES), "Not yet: with 9 at each place s is 0.105"),
        ("check_copies", (11, PLACES), "Not yet: s is 0.086, but with one less"),
        ("check_copies", (2.5, PLACES), "Not yet: 2.5 is not a number of samples"),
        ("check_copies", (0, PLACES), "Not yet: 0 is not a number of samples"),
        ("check_share", ((1 - TWIN) / (1 - SCORE), X, Y), "Right"),
        ("check_share", (0.9, X, Y), "Right"),
        ("check_share", (1 - (1 - TWIN) / (1 - SCORE), X, Y), "Not yet: that is what the twin does not lack"),
        ("check_share", ((1 - IMAGE) / (1 - SCORE), X, Y), "Not yet: that is T(x)"),
        ("check_share", (0.0, X, Y), "Not yet: without shrinkage"),
        ("check_share", (0.5, X, Y), "Not yet: 0.500 is not the twin's share"),
    ],
)
def test_checks_know_right_from_wrong(capsys, check, arguments, start):
    getattr(exercises, check)(*arguments)
    assert capsys.readouterr().out.startswith(start)
