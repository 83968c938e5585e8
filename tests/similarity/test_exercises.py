"""The checks of the exercises."""

import torch

from affscore_book.similarity import exercises
from affscore_book.similarity.figures import related_clouds


def test_exercises(capsys):
    x = related_clouds()["X"]
    turn = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64) / 2**0.5
    signs = torch.tensor([1.0, -1.0])
    old = ((answer, "each channel is an old one") for answer in (x, x.flip(1), -x, x * signs + 3))
    slight = torch.tensor([[0.999, -0.0447], [0.0447, 0.999]], dtype=torch.float64)
    cases = ((x @ turn, "Right"), (x**3, "linear CKA is"), (x @ slight, "G_ReLU-Procrustes is"), *old)
    for answer, said in cases:
        exercises.check_blind(x, answer)
        assert said in capsys.readouterr().out
    one = torch.linspace(-1, 1, 101, dtype=torch.float64)[:, None]
    noise = torch.randn(101, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for y, said in ((one**2, "Right"), (one.abs(), "Right"), (one**3, "linear CKA is"), (noise, "Laplace kernel is")):
        exercises.check_dependent(one, y)
        assert said in capsys.readouterr().out
    for share, right in ((0.125, True), (0.04, False), (8.0, False)):
        exercises.check_largest_share(share)
        assert capsys.readouterr().out.startswith("Right: " if right else "Not yet: ")
