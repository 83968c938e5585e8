"""The checks of the exercises: right answers pass, wrong ones are told why."""

import pytest

from affscore_book.stitching import exercises


def dimension(*answers):
    exercises.check_dimension(*answers, channels=8)


def rate(value):
    exercises.check_rate(value, alpha=10, learning_rate=0.05)


NORM = exercises.exercise_matrix().norm().item()


@pytest.mark.parametrize(
    ("check", "answer", "start"),
    [
        (dimension, (64, 15, 8), "Right: G_ReLU has by far the fewest"),
        (dimension, (8, 15, 8), "Not yet: full has not 8"),
        (dimension, (64, 16, 8), "Not yet: rank 1 has not 16"),
        (dimension, (64, 15, 64), "Not yet: G_ReLU has not 64"),
        (exercises.check_passes, ([[0, 2, 0], [0.5, 0, 0], [0, 0, 3]],), "Right: "),
        (exercises.check_passes, ([[0, 1, 0], [1, 0, 0], [0, 0, 1]],), "Not yet: that is a permutation"),
        (exercises.check_passes, ([[1, 1, 0], [0, 1, 0], [0, 0, 1]],), "Not yet: for some features"),
        (exercises.check_passes, ([[1, 0, 0], [1, 0, 0], [0, 0, 1]],), "Not yet: the matrix has shape (3, 3)"),
        (rate, (0.05 / (1 + 0.05 * 10 / NORM),), "Right: "),
        (rate, (0.05,), "Not yet: after one step the matrices differ by 0."),
    ],
)
def test_answers(check, answer, start, capsys):
    check(*answer)
    assert capsys.readouterr().out.startswith(start)
