"""Maps, clouds, and equally many numbers a call: beside the score by hand, the trace, NumPy and what is stored."""

import numpy as np
import pytest
import torch
from planted_decade import FOLDER, stored
from scipy.optimize import linear_sum_assignment
from torch import nn

from affscore import affinity_score, signature
from affscore_book.decade.again import stored_network
from affscore_book.decade.collection import END, START, architectures
from affscore_book.decade.equal import CHANNELS, DRAWS, load_equal
from affscore_book.decade.networks import build, wide_vgg16
from affscore_book.decade.training import colour_data
from affscore_study.decade.equal import few_channels, one_position
from affscore_study.decade.maps import SHOWN, clouds_of_call, map_scores, scored_maps

IMAGES = torch.randn(80, 3, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def network() -> nn.Sequential:
    """Its first activation takes a map, the second a vector."""
    torch.manual_seed(0)
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5), nn.GELU()
    return nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(inplace=True), *head)


@torch.no_grad()
def maps_of(network: nn.Sequential) -> tuple[torch.Tensor, torch.Tensor]:
    before = network[0](IMAGES).double()
    return before, before.relu()


def test_one_position_is_spatial_pool_and_all_are_the_map(network):
    """One position is the spatial pool, and all positions are the flattened map."""
    assert list(scored_maps(network, IMAGES)) == ["1"]
    found = map_scores(network, IMAGES)
    assert list(found["1"]) == [1, 2, 4, None]
    assert found["1"][1] == pytest.approx(signature(network, [IMAGES]).scores[0, 0], abs=1e-6)
    maps = maps_of(network)
    assert found["1"][None] == pytest.approx(affinity_score(*(side.flatten(1) for side in maps)).item(), abs=1e-9)
    means = [side.reshape(80, 12, 2, 4, 2, 4).mean(dim=(3, 5)).flatten(1) for side in maps]
    assert found["1"][2] == pytest.approx(affinity_score(*means).item(), abs=1e-9)
    assert network[1].inplace


def test_a_module_that_runs_twice_is_refused(network):
    network[5] = network[1]  # the ReLU again
    with pytest.raises(ValueError, match="runs more than once"):
        map_scores(network, IMAGES)


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


def test_channel_subsets_match_signature_and_hand_scores(network):
    """All channels give the signature, few give other scores, and one is scored as by hand."""
    every = few_channels(network, IMAGES, 12)
    np.testing.assert_allclose(every, np.tile(signature(network, [IMAGES]).scores, (DRAWS, 1)), atol=1e-6)
    few = few_channels(network, IMAGES, 4)
    assert few.shape == (DRAWS, 2) and np.ptp(few[:, 0]) > 1e-4
    np.testing.assert_array_equal(few, few_channels(network, IMAGES, 4))
    pooled = [side.mean(dim=(2, 3)) for side in maps_of(network)]
    ones = [affinity_score(*(side[:, [c]] for side in pooled), covariance="ledoit_wolf").item() for c in range(12)]
    assert all(np.abs(np.array(ones) - value).min() < 1e-6 for value in few_channels(network, IMAGES, 1)[:, 0])


def test_random_position_of_a_flat_map_scores_as_average(network):
    """A random position of a constant map has the score of the average."""
    flat = IMAGES[:, :, :1, :1].expand(-1, -1, 8, 8)
    network[0] = nn.Conv2d(3, 12, 1)
    found = one_position(network, flat)
    assert list(found) == ["1"] and found["1"] == pytest.approx(signature(network, [flat]).scores[0, 0], abs=1e-6)
    assert found["1"] != pytest.approx(one_position(network, IMAGES)["1"], abs=1e-3)


def test_the_stored_scores_are_those_of_the_stored_networks():
    decade, found = stored(), load_equal(FOLDER)
    assert set(architectures(decade)) <= set(found)
    for name, of in found.items():
        raw = ("raw start", "spatial") in decade[name][0].signatures
        assert set(of.channels) == {(state, n) for n in CHANNELS for state in (END, START, *["raw start"] * raw)}
        assert all(len(scores) == len(decade[name][0].end.calls) for scores in of.channels.values())
    assert {name for name, of in found.items() if of.positions} == {"alexnet", "vgg11_bn", "mobilenet_v2"}
    assert found["vgg16"].wide.shape == (3, 15)
    data, alexnet = colour_data(), stored_network(FOLDER, "alexnet")
    rows = few_channels(alexnet, data.standardise(data.validation.images[:512]), 8)
    np.testing.assert_allclose(rows.mean(axis=0), found["alexnet"].channels[END, 8], atol=1e-3)


def test_the_wide_network_has_eight_times_the_channels():
    wide, small = ([layer.out_channels for layer in net.modules() if isinstance(layer, nn.Conv2d)]
                   for net in (wide_vgg16(), build("vgg16")))  # fmt: skip
    assert wide == [8 * count for count in small] and len(wide) == 13
