"""Chance is what is left when accuracies are dealt out at random."""

from __future__ import annotations

import numpy as np
import pytest
from made_signatures import published, random_scores

from affscore.suite.architectures import facts
from affscore_book.imagenet_signatures.chance import chance_table, predictors, strongest, strongest_by_chance

NAMES = ["vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "alexnet", "vgg11", "vgg13", "vgg16"]


@pytest.fixture(scope="module")
def networks():
    return {name: published(name, random_scores(i, 2, 9)) for i, name in enumerate(NAMES)}


def test_the_strongest_is_that_of_numpy_and_constant_columns_are_out():
    values, target = random_scores(0, 6, 4) - 0.5, random_scores(1, 6)
    expected = max(abs(np.corrcoef(values[:, j], target)[0, 1]) for j in range(4))
    assert strongest(values, target) == pytest.approx(expected)
    assert strongest(np.column_stack([values, np.full(6, 3.0)]), target) == pytest.approx(expected)
    assert strongest(np.column_stack([values, -2 * target + 1]), target) == pytest.approx(1)


def test_dealing_keeps_the_values_and_forgets_the_order():
    values, target = random_scores(0, 5, 3), np.arange(5.0)
    dealt = strongest_by_chance(values, target, draws=400)
    again = strongest_by_chance(values, target[::-1], draws=400, seed=1)
    assert dealt.shape == (400,) and dealt.max() <= 1 + 1e-12
    assert np.quantile(dealt, 0.5) == pytest.approx(np.quantile(again, 0.5), abs=0.05)


def test_predictors_are_those_of_figure_6(networks):
    found = predictors(networks)
    assert found.shape == (len(NAMES), 9)
    assert found[:, 0] == pytest.approx([each.mean.min() for each in networks.values()])
    assert found[:, -3] == pytest.approx([facts(name).parameters for name in NAMES])


def test_small_groups_reach_higher_by_chance(networks):
    rows = {row["group"]: row for row in chance_table(networks).rows()}
    assert rows["ViT"]["models"] == 4 and rows["all"]["models"] == len(NAMES) and "Post-ViT" not in rows
    for row in rows.values():
        assert 0 < row["half of the time above"] <= row["1 in 20 above"] <= 1 + 1e-12
    assert rows["ViT"]["half of the time above"] > rows["all"]["half of the time above"]
