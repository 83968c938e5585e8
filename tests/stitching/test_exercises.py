"""The checks of the exercises: right answers pass, wrong ones are told why."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from affscore_book.stitching import exercises
from affscore_book.stitching.toy import load_toys, toy_features

DATA = Path(__file__).resolve().parents[2] / "book" / "data" / "stitching"
TOYS = load_toys(DATA / "toy.json")
X, Y = (toy_features(TOYS["networks"][name], np.array(TOYS["fit"])[:, :2], 2) for name in ("a", "twin"))


def blocks(same, other):
    """Each channel is ``same`` times itself plus ``other`` times its partner."""
    pair = torch.tensor([[same, other], [other, same]])
    return torch.block_diag(pair, pair)


def built(paired=True, intercept=False, scaled=True, turned=False):
    """A stitch of G_ReLU written out, right unless something is changed."""

    def stitch(x, y):
        correlation = np.corrcoef(y.T, x.T)[:6, 6:]
        order = linear_sum_assignment(correlation, maximize=True)[1] if paired else correlation.argmax(1)
        matrix = np.zeros((6, 6))
        for row, column in enumerate(order):
            source = x[:, column] - intercept * x[:, column].mean()
            matrix[row, column] = source @ y[:, row] / (source @ source) if scaled else 1
        return matrix.T if turned else matrix

    return stitch


def points(g_relu, full):
    exercises.check_points({"g_relu": g_relu, "full": full}, X, Y)


@pytest.mark.parametrize(
    ("check", "answer", "start"),
    [
        (exercises.check_build, (built(),), "Right: "),
        (exercises.check_build, (built(turned=True),), "Not yet: rows of the matrix belong to y"),
        (exercises.check_build, (built(scaled=False),), "Not yet: the pairing is right; the scales are not."),
        (exercises.check_build, (built(intercept=True),), "Not yet: the pairing is right; the scales are not. Without"),
        (exercises.check_build, (built(paired=False),), "Not yet: each row and each column"),
        (exercises.check_build, (lambda x, y: np.linalg.lstsq(x, y)[0].T,), "Not yet: each row and each column"),
        (exercises.check_build, (lambda x, y: np.roll(np.eye(6), 1, axis=0),), "Not yet: another pairing"),
        (exercises.check_build, (lambda x, y: np.eye(5),), "Not yet: the matrix has shape (5, 5)"),
        (exercises.check_unseen, (blocks(0.5, 0.5),), "Right: "),
        (exercises.check_unseen, (blocks(0.0, 1.0),), "Not yet: one entry in each row"),
        (exercises.check_unseen, (blocks(3.0, -2.0),), "Right: "),
        (exercises.check_unseen, (blocks(0.5, 0.6),), "Not yet: for some features the outputs change"),
        (exercises.check_unseen, ([[1, 0], [0, 1]],), "Not yet: the matrix has shape (2, 2)"),
        (exercises.check_untrained, ({"relu1": 2.2, "relu4": 26.7},), "Right: "),
        (exercises.check_untrained, ({"relu1": 0.022, "relu4": 0.267},), "Not yet: fit on `train`"),
        (exercises.check_untrained, ({"relu1": -37.8, "relu4": -13.3},), "Not yet: these are penalties"),
        (exercises.check_untrained, ({"relu1": 2.2},), "Not yet: fit on `train`"),
        (points, (3, 8), "Right: "),
        (points, (3, 9), "Not yet: full finds it with fewer points"),
        (points, (3, 7), "Not yet: on so few points full"),
        (points, (2, 8), "Not yet: on so few points g_relu"),
    ],
)
def test_answers(check, answer, start, capsys):
    check(*answer)
    assert capsys.readouterr().out.startswith(start)


def test_untrained_network_is_fixed_and_draws_nothing():
    """The untrained network is the same each time and leaves the global generator alone."""
    state = torch.get_rng_state()
    one, other = (exercises.untrained_network() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    with torch.no_grad():
        assert torch.equal(one(torch.ones(2, 1, 32, 32)), other(torch.ones(2, 1, 32, 32)))
