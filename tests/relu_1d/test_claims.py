"""The readings of Figure 3 follow the closed forms."""

import math

import numpy as np
import pytest

from affscore import affinity_score
from affscore_book.relu_1d.exact import uniform_input
from affscore_study.relu_1d import claims


def verdicts():
    return [row["verdict"] for row in claims.figure_3().rows()]


def test_ranges_with_inputs_on_both_sides_have_like_numerators():
    """The factor falls as both sides fill, and at a fifth it is that of the range [-1, 4] by hand."""
    by_hand = (uniform_input(-4.0, 1.0).w2 / uniform_input(-1.0, 4.0).w2).item()
    assert claims.numerator_ratio(0.2) == pytest.approx(max(by_hand, 1 / by_hand), rel=1e-9)
    assert 1 < claims.numerator_ratio(0.4) < claims.numerator_ratio(0.2) < claims.numerator_ratio() < math.sqrt(2)


def test_the_share_is_that_of_two_ranges_by_hand():
    """One of the ranges, from its four numbers."""
    here, mirrored = uniform_input(-0.01, 4.99), uniform_input(-4.99, 0.01)
    total = math.log(here.deficit / mirrored.deficit)
    by_hand = math.log(mirrored.bound / here.bound) / total
    assert claims.denominator_share() <= by_hand + 1e-12
    assert total == pytest.approx(math.log(here.w2 / mirrored.w2) + math.log(mirrored.bound / here.bound))


def test_notebook_scores_are_those_of_its_ranges(monkeypatch):
    """The scores in the released notebook are those of the input ranges that it uses.

    A sample of 1000 points scatters around the exact score by about a hundredth; another range is farther off.
    """
    rng, centres = np.random.default_rng(0), np.linspace(-4, 4, 20)[[5, 8, 11, 13, 17]]
    for centre in centres[:4]:
        x = rng.uniform(centre - 2, centre + 2, size=(20, 1000))
        scores = [affinity_score(row, np.maximum(row, 0), covariance="empirical").item() for row in x]
        assert abs(np.mean(scores) - uniform_input(centre - 2, centre + 2).score) < 0.01
        assert np.std(scores) < 0.02
    assert verdicts() == ["agrees", "agrees"]
    monkeypatch.setattr(claims, "NOTEBOOK_SCORES", (0.13, 0.45, 0.77, 0.96, 1.0))  # the slide's
    assert verdicts() == ["agrees", "disagrees"]
