"""Maps and clouds beside the score, the trace and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn

from affscore import affinity_score, signature
from affscore_book.decade.maps import SHOWN, clouds_of_call, map_scores, scored_maps


def network() -> nn.Sequential:
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(6, 5), nn.GELU())


IMAGES = torch.randn(80, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def test_one_position_is_the_spatial_pool_and_all_are_the_flattened_map():
    net = network()
    assert list(scored_maps(net, IMAGES)) == ["1"]  # the GELU's vectors are no maps
    found = map_scores(net, IMAGES)
    assert list(found["1"]) == [1, 2, 4, None]
    assert found["1"][1] == pytest.approx(signature(net, [IMAGES]).scores[0, 0], abs=1e-6)
    with torch.no_grad():
        maps = net[0](IMAGES).double()
    assert found["1"][None] == pytest.approx(affinity_score(maps.flatten(1), maps.relu().flatten(1)).item(), abs=1e-9)
    means = [each.reshape(80, 6, 2, 4, 2, 4).mean(dim=(3, 5)).flatten(1) for each in (maps, maps.relu())]
    assert found["1"][2] == pytest.approx(affinity_score(*means).item(), abs=1e-9)
    assert net[1].inplace


def test_a_module_that_runs_twice_is_refused():
    net = network()
    net[5] = net[1]  # the ReLU again
    with pytest.raises(ValueError, match="runs more than once"):
        map_scores(net, IMAGES)


@pytest.mark.parametrize("call", [0, 1])
def test_the_clouds_lie_apart_as_the_score_says(call):
    """In a plane of two channels nothing is lost, so that the score is that of the two clouds."""
    torch.manual_seed(call)
    net = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 2), nn.Tanh())
    x = torch.randn(SHOWN, 4)
    clouds = clouds_of_call(net, x, call)
    assert clouds.outputs.shape == clouds.image.shape == (SHOWN, 2)
    np.testing.assert_allclose((clouds.outputs**2).sum(axis=1).mean(), 1, atol=1e-6)
    assert np.abs(clouds.outputs.mean(axis=0)).max() < 1e-6
    assert (clouds.outputs**3).sum(axis=0).min() >= 0
    assert clouds.outputs.var(axis=0)[0] >= clouds.outputs.var(axis=0)[1]
    cost = ((clouds.outputs[:, None] - clouds.image[None]) ** 2).sum(axis=-1)
    score = 1 - np.sqrt(cost[linear_sum_assignment(cost)].mean() / 2)
    assert score == pytest.approx(signature(net, [x]).scores[0, call], abs=1e-6)


def test_a_dead_call_has_no_clouds():
    net = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    net[0].weight.data.zero_()
    net[0].bias.data.fill_(-1)
    assert not clouds_of_call(net, torch.randn(60, 4), 0).image.any()
