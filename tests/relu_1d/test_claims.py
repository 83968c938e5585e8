"""The readings of Figure 3 follow the closed forms, and turn where another activation is put in ReLU's place."""

import math
from functools import partial

import pytest

from affscore_book.relu_1d import claims
from affscore_book.relu_1d.exact import uniform_input


def verdicts():
    return [row["verdict"] for row in claims.figure_3().rows()]


def test_the_denominator_makes_most_of_the_asymmetry_of_relu():
    assert verdicts() == ["agrees", "agrees", "not run here"]
    assert 1 < claims.numerator_ratio() < math.sqrt(2)


def test_the_share_is_that_of_two_ranges_by_hand():
    """One of the ranges, from its four numbers."""
    here, mirrored = uniform_input(-0.01, 4.99), uniform_input(-4.99, 0.01)
    total = math.log(here.deficit / mirrored.deficit)
    by_hand = math.log(mirrored.bound / here.bound) / total
    assert claims.denominator_share() <= by_hand + 1e-12
    assert total == pytest.approx(math.log(here.w2 / mirrored.w2) + math.log(mirrored.bound / here.bound))


def test_a_score_near_0_beside_a_large_denominator_would_be_seen(monkeypatch):
    """A leak turns the fall to 0 into a dip; a threshold below every denominator lets the fall in."""
    assert claims.lowest_score(1e-9) < 0.1 < claims.lowest_score()
    monkeypatch.setattr(claims, "uniform_input", partial(uniform_input, activation="leaky_relu", slope=0.5))
    assert claims.lowest_score() > 0.5
