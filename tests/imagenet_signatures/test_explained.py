"""What the architecture alone tells: against regressions and counts made another way."""

from pathlib import Path

import numpy as np
import pytest
from made_signatures import made, random_scores
from scipy import stats

from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures.calls import activation_modules
from affscore_study.imagenet_signatures.explained import (
    Comparison,
    comparisons,
    family_gap,
    medians,
    scores,
    share_table,
    shares,
)  # fmt: skip

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def test_a_share_is_what_a_regression_accounts_for():
    """Against least squares by NumPy; a straight line is accounted for fully, whatever its slope."""
    start, noise = random_scores(0, 2, 30)
    slope, intercept = np.polyfit(start, noise, 1)
    residual = noise - slope * start - intercept
    found = shares([noise, 2 - start], [start])
    assert found.ravel() == pytest.approx([1 - residual.var() / noise.var(), 1])
    among = shares([start, noise])  # each with the others, not with itself
    assert np.isnan(np.diag(among)).all() and among[0, 1] == among[1, 0] == pytest.approx(found[0, 0])
    for others in (np.ones((2, 4)), np.ones(5)):
        with pytest.raises(ValueError, match="ones and others have shapes"):
            shares(random_scores(0, 3, 5), others)


def test_scores_begin_at_a_call():
    nets = {0: made([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5]]), 1: made([0.7, 0.8, 0.9])}
    np.testing.assert_allclose(scores(nets), [[0.2, 0.3, 0.4], [0.7, 0.8, 0.9]])
    np.testing.assert_allclose(scores(nets, 2), [[0.3, 0.4], [0.8, 0.9]])


def test_a_table_of_shares_has_intervals_where_there_are_pairs():
    pairs = np.array([[np.nan, 0.2, 0.4], [0.2, np.nan, 0.6], [0.4, 0.6, np.nan]])
    table = share_table([Comparison("a", "one", 1, np.array([[0.3]])), Comparison("b", "seeds", 2, pairs)])
    assert table["share"] == pytest.approx([0.3, 0.4]) and np.isnan(table["low"][0])
    assert (table["low"][1], table["high"][1]) == (0, 1)  # three networks this different say nothing
    steady = np.where(np.eye(4, dtype=bool), np.nan, 0.4)
    steady[0, 1] = steady[1, 0] = 0.5
    low, high = (share_table([Comparison("b", "seeds", 2, steady)])[end][0] for end in ("low", "high"))
    assert 0.2 < low < 0.4 < high < 0.6


def test_stored_comparisons_never_pair_equal_seeds():
    """The stored comparisons never pair a network with its own seed.

    Both shares of a network are over pairs of different seeds; the Lites stand alone.
    """
    for each in comparisons(FOLDER):
        several = each.network in ("resnet20", "plain20")
        assert np.isfinite(each.pairs).sum() == (12 if several else 1)
        assert np.nanmin(each.pairs) >= 0 and np.nanmax(each.pairs) < 1
        assert np.isnan(np.diag(each.pairs)).all() == several


def test_family_gap_is_welchs_against_the_lowest_other():
    """The gap of a family is Welch's, against the lowest other family of several networks."""
    nets = {"vgg11": 0.5, "vgg13": 0.7, "vgg16": 0.6, "vit_b_16": 0.3, "vit_b_32": 0.35, "alexnet": 0.1,
            "resnet18": 0.8, "resnet34": 0.9}  # fmt: skip
    signatures = {name: made([value - 0.01, value, value + 0.1]) for name, value in nets.items()}
    assert medians(signatures)["VGG"] == pytest.approx([0.5, 0.7, 0.6])
    other, gap = family_gap(signatures, "ViT", ["VGG"])
    assert other == "VGG" and gap.mean == pytest.approx(0.325 - 0.6)
    own, lowest = [0.3, 0.35], [0.5, 0.7, 0.6]
    errors = np.array([np.var(each, ddof=1) / len(each) for each in (own, lowest)])
    freedom = errors.sum() ** 2 / (errors**2 / (np.array([2, 3]) - 1)).sum()
    half = stats.t.ppf(0.975, freedom) * np.sqrt(errors.sum())
    assert [gap.low, gap.high] == pytest.approx([gap.mean - half, gap.mean + half])
    lowest, among = family_gap(signatures, "ViT")  # AlexNet is alone; ResNet is higher
    assert (lowest, among.mean, among.high) == ("VGG", gap.mean, gap.high) and among.low < gap.low


def test_activation_modules_are_those_that_hooks_see():
    """Those of a real AlexNet, and nothing where all activations are functions."""
    assert activation_modules("alexnet") == str(load_model("alexnet", weights="random").model).count("ReLU")
    assert activation_modules("inception_v3") == 0
