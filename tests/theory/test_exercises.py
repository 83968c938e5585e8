"""The checks of the exercises know right from wrong, and say why."""

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from affscore import affine_map, affinity_score, paired_affinity_score
from affscore.companions import linear_twin
from affscore_book.theory import exercises
from affscore_study.theory.trials import form_one

FOLD, R = ([-2, 0, 1], [2, 0, 1]), math.sqrt(27 / 28)
PLACES = [[2, 0], [-2, 0], [0, 1], [0, -1]]
X, Y = exercises.layer_in_question()
SCORE, TWIN, IMAGE = (affinity_score(X, z).item() for z in (Y, linear_twin(X, Y), affine_map(X, Y)(X)))


def by_hand(x, y):
    """The score by form (1) and an assignment, as one would write it down; no code of affscore."""
    cov_x, cov_y = np.cov(x.T, bias=True), np.cov(y.T, bias=True)
    image = (x - x.mean(axis=0)) @ form_one(cov_x, cov_y) + y.mean(axis=0)
    cost = ((image[:, None] - y[None]) ** 2).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)
    return 1 - math.sqrt(cost[rows, columns].mean() / (2 * np.trace(cov_y)))


def kept_pairs(x, y):
    return paired_affinity_score(x, y, covariance="empirical")


@pytest.mark.parametrize("seed", [7, 99])
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
        ("check_by_hand", (1 - math.sqrt(1 + math.sqrt(3 / 7)), *FOLD), "Not yet: you took the correlation of the"),
        ("check_by_hand", (0.0, *FOLD), "Not yet: 0.000 is not 1 - sqrt(1 - r)"),
        ("check_build", (by_hand,), "Right"),
        ("check_build", (lambda x, y: affinity_score(x, y),), "Not yet: a stretch scores 1.000"),
        ("check_build", (kept_pairs,), "Not yet: a stretch, shuffled: you kept the pairs"),
        ("check_build", (lambda x, y: 0.0,), "Not yet: a stretch scores 1.000 on the sample of this check, and yours"),
        ("check_copies", (10, PLACES), "Right"),
        ("check_copies", (9, PLACES), "Not yet: with 9 at each place s is 0.105"),
        ("check_copies", (11, PLACES), "Not yet: s is 0.086, but with one less"),
        ("check_copies", (2.5, PLACES), "Not yet: your answer is 2.5; it should be a whole number"),
        ("check_copies", (0, PLACES), "Not yet: 0 is not a number of samples"),
        ("check_share", ((1 - TWIN) / (1 - SCORE), X, Y), "Right"),
        ("check_share", (0.9, X, Y), "Right"),
        ("check_share", (1 - (1 - TWIN) / (1 - SCORE), X, Y), "Not yet: that is the part that is not the twin"),
        ("check_share", ((1 - IMAGE) / (1 - SCORE), X, Y), "Not yet: that is T(x)"),
        ("check_share", (0.0, X, Y), "Not yet: without shrinkage"),
        ("check_share", (0.5, X, Y), "Not yet: 0.500 is not the twin's share"),
    ],
)
def test_checks_know_right_from_wrong(capsys, check, arguments, start):
    getattr(exercises, check)(*arguments)
    assert capsys.readouterr().out.startswith(start)
