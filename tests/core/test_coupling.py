"""The assignment between two clouds is the cheapest of all."""

import itertools

import numpy as np
import pytest
import torch

from affscore.coupling import optimal_partners, partners, squared_distances


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("d", [1, 2, 5])
def test_no_permutation_is_cheaper(seed, d):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(2, 6, d, dtype=torch.float64, generator=generator)
    cost = squared_distances(x, y).numpy()
    np.testing.assert_allclose(cost, torch.cdist(x, y).square().numpy(), atol=1e-12)
    cheapest = min(sum(cost[i, j] for i, j in enumerate(order)) for order in itertools.permutations(range(6)))
    for found in (partners(x, y).numpy(), optimal_partners(cost.copy())):
        assert sorted(found.tolist()) == list(range(6))
        assert cost[range(6), found].sum() == pytest.approx(cheapest, rel=1e-12)
