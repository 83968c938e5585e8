"""The checks of the exercises: right answers pass, wrong ones are told why."""

from pathlib import Path

import numpy as np
import pytest
import torch

from affscore_book.stitching import exercises
from affscore_book.stitching.study import load_stitching
from affscore_book.stitching.toy import load_toys, toy_features

DATA = Path(__file__).resolve().parents[2] / "book" / "data" / "stitching"
STUDY, TOYS = load_stitching(DATA / "study.json"), load_toys(DATA / "toy.json")
X, Y = (toy_features(TOYS["networks"][name], np.array(TOYS["fit"])[:, :2], 2) for name in ("a", "twin"))


def blocks(same, other):
    """Each channel is ``same`` times itself plus ``other`` times its partner."""
    pair = torch.tensor([[same, other], [other, same]])
    return torch.block_diag(pair, pair)


def intervals(factor=1.0, quantile=3.18245):
    """The jackknife written out, times a factor."""
    found = {}
    for block in ("block5", "block9"):
        alone = STUDY.table("resnet20", f"{block}.relu1", "g_relu")
        saved = factor * (alone - STUDY.table("resnet20", f"{block}.relu1", "g_relu", "closed form, shortcut too"))
        values = [np.nanmean(np.delete(np.delete(saved, i, 0), i, 1)) for i in range(4)]
        half = quantile * np.sqrt(3 * np.var(values))
        found[block] = [np.nanmean(saved) - half, np.nanmean(saved) + half]
    return found


def points(g_relu, full):
    exercises.check_points({"g_relu": g_relu, "full": full}, X, Y)


def saving(found):
    exercises.check_saving(found, STUDY)


@pytest.mark.parametrize(
    ("check", "answer", "start"),
    [
        (exercises.check_unseen, (blocks(0.5, 0.5),), "Right: "),
        (exercises.check_unseen, (blocks(0.0, 1.0),), "Not yet: one entry in each row"),
        (exercises.check_unseen, (blocks(3.0, -2.0),), "Right: "),
        (exercises.check_unseen, (blocks(0.5, 0.6),), "Not yet: for some features the outputs change"),
        (exercises.check_unseen, ([[1, 0], [0, 1]],), "Not yet: the matrix has shape (2, 2)"),
        (exercises.check_untrained, ({"relu1": 2.4, "relu4": 26.2},), "Right: "),
        (exercises.check_untrained, ({"relu1": 0.022, "relu4": 0.267},), "Not yet: fit on `train`"),
        (exercises.check_untrained, ({"relu1": -37.8, "relu4": -13.3},), "Not yet: these are penalties"),
        (exercises.check_untrained, ({"relu1": 2.2},), "Not yet: fit on `train`"),
        (points, (3, 8), "Right: "),
        (points, (3, 9), "Not yet: full finds it with fewer points"),
        (points, (3, 7), "Not yet: on so few points full"),
        (points, (2, 8), "Not yet: on so few points g_relu"),
        (saving, (intervals(),), "Right: "),
        (saving, ({"block5": (-6.5, 55.0), "block9": (6.4, 20.0)},), "Right: "),
        (saving, ({"block5": intervals()["block5"]},), "Not yet: block9: drop the row"),
        (saving, (intervals(quantile=1.96),), "Not yet: block5: the mean is right"),
        (saving, (intervals(factor=-1.0),), "Not yet: block5: drop the row"),
    ],
)
def test_answers(check, answer, start, capsys):
    check(*answer)
    assert capsys.readouterr().out.startswith(start)


def test_the_untrained_network_is_the_same_each_time_and_draws_nothing_from_others():
    torch.manual_seed(5)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    one, other = (exercises.untrained_network() for _ in range(2))
    assert torch.equal(torch.rand(3), drawn)
    images = torch.rand(2, 1, 32, 32)
    with torch.no_grad():
        assert torch.equal(one(images), other(images)) and one(images).shape == (2, 10)
