"""Equally many numbers: some channels, or one position a channel, beside the score by hand and the stored ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from planted import FOLDER, stored
from torch import nn

from affscore import affinity_score, signature
from affscore_book.decade.again import IMAGES as FIRST
from affscore_book.decade.again import stored_network
from affscore_book.decade.claims import architectures
from affscore_book.decade.collection import END, START
from affscore_book.decade.equal import CHANNELS, DRAWS, few_channels, load_equal, one_position
from affscore_book.decade.networks import build, wide_vgg16
from affscore_book.decade.training import colour_data

IMAGES = torch.randn(64, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5), nn.GELU()
    return nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(inplace=True), *head)


def test_all_channels_are_the_signature_few_are_other_scores_and_one_is_scored_as_by_hand():
    net = network(0)
    every = few_channels(net, IMAGES, 12)
    np.testing.assert_allclose(every, np.tile(signature(net, [IMAGES]).scores, (DRAWS, 1)), atol=1e-6)
    few = few_channels(net, IMAGES, 4)
    assert few.shape == (DRAWS, 2) and np.ptp(few[:, 0]) > 1e-4
    np.testing.assert_array_equal(few, few_channels(net, IMAGES, 4))
    with torch.no_grad():
        before = net[0](IMAGES).double()
    pooled = [each.mean(dim=(2, 3)) for each in (before, before.relu())]
    ones = [affinity_score(*(each[:, [c]] for each in pooled), covariance="ledoit_wolf").item() for c in range(12)]
    assert all(np.abs(np.array(ones) - value).min() < 1e-6 for value in few_channels(net, IMAGES, 1)[:, 0])


def test_one_position_is_one_of_them():
    """Where a map is the same everywhere, each position has the score of the average."""
    net = network(1)
    flat = IMAGES[:, :, :1, :1].expand(-1, -1, 8, 8)
    net[0] = nn.Conv2d(3, 12, 1)
    found = one_position(net, flat)
    assert list(found) == ["1"] and found["1"] == pytest.approx(signature(net, [flat]).scores[0, 0], abs=1e-6)
    assert found["1"] != pytest.approx(one_position(net, IMAGES)["1"], abs=1e-3)
    assert net[1].inplace


def test_the_stored_scores_are_those_of_the_stored_networks():
    decade, found = stored(), load_equal(FOLDER)
    assert set(architectures(decade)) <= set(found)
    for name, each in found.items():
        calls = len(decade[name][0].end.calls)
        raw = ("raw start", "spatial") in decade[name][0].signatures
        assert set(each.channels) == {(state, n) for n in CHANNELS for state in (END, START, *["raw start"] * raw)}
        assert all(len(scores) == calls for scores in each.channels.values())
    assert {name for name, each in found.items() if each.positions} == {"alexnet", "vgg11_bn", "mobilenet_v2"}
    assert found["vgg16"].wide.shape == (3, 15) and DRAWS == 6
    data, alexnet = colour_data(), stored_network(FOLDER, "alexnet")
    images = data.standardise(data.validation.images[:FIRST])
    rows = few_channels(alexnet, images, 8)
    np.testing.assert_allclose(rows.mean(axis=0), found["alexnet"].channels[END, 8], atol=1e-3)


def test_nothing_stored_and_a_damaged_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no scores with equally many numbers"):
        load_equal(tmp_path)
    file = tmp_path / "equal" / "vgg11.json"
    file.parent.mkdir()
    text = json.dumps({"states": {"trained": {"8": {"mean": [0.5, None], "scatter": 0.01}}}})
    file.write_text(text)
    found = load_equal(tmp_path)["vgg11"]
    assert np.isnan(found.channels["trained", 8][1]) and found.positions == {} and found.wide.size == 0
    file.write_text(text[:-4])
    with pytest.raises(ValueError, match=r"vgg11\.json is not a complete file"):
        load_equal(tmp_path)


def test_the_wide_network_has_eight_times_the_channels():
    wide, small = ([each.out_channels for each in net.modules() if isinstance(each, nn.Conv2d)]
                   for net in (wide_vgg16(), build("vgg16")))  # fmt: skip
    assert wide == [8 * count for count in small] and len(wide) == 13
