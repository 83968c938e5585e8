"""The checks of the exercises know right from wrong, and say why."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from affscore import affine_map, affinity_score, paired_affinity_score
from affscore_book.blind_spots import exercises
from affscore_study.blind_spots.measures import r_squared

CROSSED = np.array([0.0, 1, 2, 9])
MANY = np.random.default_rng(4).exponential(size=200)  # its order is chance, so reversing it is a shuffle


def by_channel(x, y, power=1):
    """The score of independent channels."""
    return 1 - np.sqrt(1 - np.average(correlations(x, y) ** power, weights=y.var(axis=0)))


def correlations(x, y):
    return np.array([np.corrcoef(before, after)[0, 1] for before, after in zip(x.T, y.T, strict=True)])


def worst_order(x, y):
    """The paired score after the most expensive assignment."""
    image = affine_map(x, y, covariance="empirical")(x)
    _, order = linear_sum_assignment(cdist(image, y, "sqeuclidean"), maximize=True)
    return paired_affinity_score(x, y[order], covariance="empirical").item()


DARK = {"a": "shuffled", "b": "non-linear", "c": "dead", "d": "turn", "e": "PSD-affine"}


@pytest.mark.parametrize(
    ("check", "arguments", "start"),
    [
        ("check_blind_spot", (CROSSED, CROSSED[::-1].copy()), "Right"),
        ("check_blind_spot", (CROSSED, CROSSED), "Not yet: the paired score is 1.00"),
        ("check_blind_spot", (CROSSED, -CROSSED), "Not yet: the affinity score is"),
        ("check_blind_spot", (MANY, MANY[::-1].copy()), "Not yet: the paired score is -0.0"),
        ("check_build", (worst_order,), "Right"),
        (
            "check_build",
            (lambda x, y: worst_order(x, y) if (y < 0).any() else 0.0,),
            "Not yet: the lowest paired score for ReLU",
        ),
        ("check_build", (partial(paired_affinity_score, covariance="empirical"),), "Not yet: the lowest paired score"),
        ("check_build", (lambda x, y: 1 - np.sqrt(2),), "Not yet: the lowest paired score for tanh(x)"),
        ("check_formula", (by_channel,), "Right"),
        ("check_formula", (affinity_score,), "Not yet: that is the affinity score"),
        ("check_formula", (partial(affinity_score, covariance="empirical"),), "Not yet: that is the affinity score"),
        ("check_formula", (lambda x, y: (1 - np.sqrt(1 - correlations(x, y))).mean(),), "Not yet: that is the mean"),
        ("check_formula", (partial(by_channel, power=2),), "Not yet: the formula has the correlations"),
        ("check_formula", (lambda x, y: 0.5,), "Not yet: for ReLU on a sample of shape (64, 8) it is"),
        ("check_dark", (DARK,), "Right"),
        ("check_dark", (DARK | {"a": "PSD-affine", "e": "shuffled"},), "Not yet: 2 of 5"),
        ("check_dark", ({},), "Not yet: 5 of 5"),
        ("check_dark", (dict(zip("abcde", reversed(DARK.values()), strict=True)), 119), "Right"),
        ("check_dark", (DARK, 119), "Not yet: 4 of 5"),
    ],
)
def test_checks_know_right_from_wrong(capsys, check, arguments, start):
    getattr(exercises, check)(*arguments)
    assert capsys.readouterr().out.startswith(start)


def test_number_changes_only_the_order_of_the_layers():
    """The student's number changes the order of the layers and nothing else."""
    layers, turned = (exercises.layers_in_the_dark(number) for number in (0, 119))
    for name, other in zip("abcde", "edcba", strict=True):
        np.testing.assert_array_equal(layers[name], turned[other])


def test_three_measures_tell_the_unknown_layers_apart():
    """Three measures tell the layers in the dark apart, and no two of them do."""
    layers = {DARK[name]: pair for name, pair in exercises.layers_in_the_dark().items()}
    assert np.isnan(affinity_score(*layers.pop("dead")).item())
    ones = {}
    for kind, (x, y) in layers.items():
        numbers = [score(x, y, covariance="empirical").item() for score in (affinity_score, paired_affinity_score)]
        ones[kind] = tuple(number > 0.99 for number in [*numbers, r_squared(x, y)])
    assert ones == {
        "shuffled": (True, False, False), "non-linear": (False, False, False),
        "turn": (False, False, True), "PSD-affine": (True, True, True),
    }  # fmt: skip
