"""The checks of the exercises."""

import torch

from affscore_book.similarity import exercises
from affscore_book.similarity.figures import related_clouds


def test_exercises(capsys):
    x = related_clouds()["X"]
    turn = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64) / 2**0.5
    for answer, right in ((x @ turn, True), (x, False), (x.flip(1), False), (x**3, False)):
        exercises.check_blind(x, answer)
        assert capsys.readouterr().out.startswith("Right: " if right else "Not yet: ")
    for share, right in ((0.125, True), (0.04, False), (8.0, False)):
        exercises.check_largest_share(share)
        assert capsys.readouterr().out.startswith("Right: " if right else "Not yet: ")
