"""The checks of the exercises: right answers pass, wrong ones are told why."""

import pytest
import torch

from affscore_book.stitching import exercises


def rate(value):
    exercises.check_rate(value, alpha=10, learning_rate=0.05)


def blocks(same, other):
    """Each channel is ``same`` times itself plus ``other`` times its partner."""
    pair = torch.tensor([[same, other], [other, same]])
    return torch.block_diag(pair, pair)


NORM = exercises.exercise_matrix().norm().item()


@pytest.mark.parametrize(
    ("check", "answer", "start"),
    [
        (exercises.check_unseen, (blocks(0.5, 0.5),), "Right: "),
        (exercises.check_unseen, (blocks(0.0, 1.0),), "Not yet: one entry in each row"),
        (exercises.check_unseen, (blocks(3.0, -2.0),), "Right: "),
        (exercises.check_unseen, (blocks(0.5, 0.6),), "Not yet: for some features the outputs change"),
        (exercises.check_unseen, ([[1, 0], [0, 1]],), "Not yet: the matrix has shape (2, 2)"),
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
