"""What the architecture alone tells: against regressions and counts made another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_signatures import made

from affscore.zoo.models import load_model
from affscore_book.imagenet_signatures.explained import activation_modules, explained, explained_table, family_medians
from affscore_book.imagenet_signatures.finding import stack


@pytest.mark.parametrize("seed", range(3))
def test_explained_is_the_squared_correlation_of_a_regression(seed):
    """Against least squares by NumPy; a straight line is explained fully, whatever its slope."""
    random = np.random.default_rng(seed)
    start, noise = random.uniform(0.7, 1, 30), random.uniform(0.5, 1, 30)
    result = explained(made(noise), made(start))
    slope, intercept = np.polyfit(start, noise, 1)
    residual = noise - slope * start - intercept
    assert result.share == pytest.approx(1 - residual.var() / noise.var(), abs=1e-9)
    assert result.shift == pytest.approx(noise.mean() - start.mean())
    assert math.isnan(result.ceiling)
    falling = explained(made(2 - start), made(start))
    assert falling.correlation == pytest.approx(-1) and falling.share == pytest.approx(1)


def test_the_ceiling_is_how_well_other_seeds_do():
    start = made([0.9, 0.8, 0.7, 0.9])
    rows = np.array([[0.1, 0.2, 0.3, 0.5], [0.5, 0.3, 0.2, 0.1], [0.2, 0.4, 0.6, 1.0]])
    seeds = [made(row, weights=f"trained on Fashion-MNIST, seed {i}") for i, row in enumerate(rows)]
    pairs = [np.corrcoef(rows[i], rows[j])[0, 1] ** 2 for i in range(3) for j in range(i)]
    assert explained(stack(seeds), start).ceiling == pytest.approx(np.mean(pairs))


def test_explained_table_has_a_row_for_each_comparison():
    table = explained_table({"net": made([0.1, 0.2, 0.4])}, {"random": {"net": made([0.5, 0.6, 0.8])}, "no": {}})
    assert len(table) == 1 and table.row("net")["share"] == pytest.approx(1)


def test_family_medians_are_sorted_and_of_medians():
    nets = {"vgg11": made([0.5, 0.7, 0.9]), "vgg13": made([0.1, 0.3, 0.3]), "vit_b_16": made([0.2, 0.4, 0.6])}
    assert family_medians(nets) == {"ViT": pytest.approx(0.4), "VGG": pytest.approx(0.5)}
    assert list(family_medians(nets)) == ["ViT", "VGG"]


def test_activation_modules_are_those_that_hooks_see():
    """Counted once more on a real AlexNet, and nothing where all activations are functions."""
    net = load_model("alexnet", weights="random").model
    assert activation_modules("alexnet") == sum("ReLU" in repr(module) for module in net.modules() if not any(
        True for _ in module.children()
    ))  # fmt: skip
    assert activation_modules("inception_v3") == 0
