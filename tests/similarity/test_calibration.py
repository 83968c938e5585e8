"""The calibrated maximum: like the package of its authors, true where there is nothing, and larger for a search."""

import numpy as np
import pytest
import torch
from calibrated_similarity import calibrate_layers

from affscore_book.similarity.kernels import cka, gram
from affscore_study.similarity.calibration import best_pair


def layers(seed, count=3, n=24, d=5, of=None):
    """Features (n, d), a layer each; partly those of another network, where one is given."""
    x = torch.randn(count, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return list(x if of is None else x + torch.stack(of))


def grams(features):
    return [gram(layer, "linear") for layer in features]


@pytest.mark.parametrize("related", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_the_authors(seed, related):
    x = layers(seed)
    y = layers(100 + seed, of=x if related else None)
    random = np.random.default_rng(seed)
    calibrated, _, tau = calibrate_layers(
        x, y, lambda one, other: cka(one, other, null=0).value, K=39, smax=None,
        perm_fn=lambda n, device: torch.from_numpy(random.permutation(n)),
    )  # fmt: skip
    found = best_pair(grams(x), grams(y), orders=39, seed=seed)
    assert found.threshold == pytest.approx(float(tau), abs=1e-6)
    assert max(found.value - found.threshold, 0) == pytest.approx(float(calibrated), abs=1e-6)


def test_under_the_null_one_in_twenty_passes():
    found = [best_pair(grams(layers(2 * s)), grams(layers(2 * s + 1)), orders=19) for s in range(200)]
    assert 0.01 < np.mean([best.value > best.threshold for best in found]) < 0.11


def test_one_pair_of_layers_has_the_threshold_of_one():
    one, many = (best_pair(grams(layers(0, count, 40)), grams(layers(50, count, 40))) for count in (1, 6))
    assert one.threshold == one.single and many.single < many.threshold


def test_too_few_orders_are_refused():
    with pytest.raises(ValueError, match="orders is 9"):
        best_pair(grams(layers(0)), grams(layers(1)), orders=9)
